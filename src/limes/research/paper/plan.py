"""Which trials; matching of sub-sampled SVMs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from limes.datasets import parameters
from limes.research.paper.printed import DATASETS
from limes.research.paper.rows import Candidate, Row, select

# Fractions are powers of two by eighths: the next one has 9 % fewer rows.
STEPS_A_HALVING = 8
# A machine for fewer training rows a class is none.
ROWS_A_CLASS = 10
# With more training rows one choice of them is as good as another.
MANY_ROWS = 10_000
# Where the trials at a match miss the target by more, the fraction beside it is tried as often:
# the search has fewer trials a fraction, and may have been misled by one of them.
MOST_MISSED = 0.01
# The machine with all its rows decides as the sub-sampled ones do.
WHOLE = "svm-probability"
# From a step to the skill there, None where nobody has tried it yet.
Skill = Callable[[int], float | None]
SAMPLE_CLASSES = "sample_classes"
# Seconds that all trials of a dataset take but those of limes and its match, about: for the order,
# the cheapest first, and for the time that is left.
SECONDS = {
    "splice": 25,
    "heart": 40,
    "madelon": 45,
    "dna": 70,
    "seismic": 70,
    "pendigits": 75,
    "sat": 100,
    "ijcnn1": 100,
    "mushrooms": 105,
    "segment": 150,
    "letter": 180,
    "shuttle": 250,
    "usps": 250,
    "phishing": 250,
    "codrna": 290,
    SAMPLE_CLASSES: 420,
    "humidity": 800,
    "mnist": 4000,
}
EVERYTHING = (*DATASETS, SAMPLE_CLASSES)
RESULT_METHODS = ("linear", "svm", "svm-probability", "borders", "limes")
AGF_METHODS = ("agf", "agf-borders", "agf-limes")
ALL_METHODS = (*RESULT_METHODS, "subsampled", *AGF_METHODS)
# The author's own kernel classifier, on data that it was made for.
AGF_DATASETS = (SAMPLE_CLASSES, "heart", "sat", "humidity")
# What a sub-sampled machine is matched with.
MATCHED = ("borders", "limes")
# Methods that give the same every time on the same split, the linear ones almost.
STEADY = ("linear", "svm", "svm-probability", "agf")
N_TRIALS = 10
# Trials of limes' default where all have one split, since a fit takes seconds; and of the
# accelerated AGF where one takes minutes.
N_LIMES_TRIALS = 3
N_SLOW_TRIALS = 1
# Figures of the sample classes.
FIGURE_TRIALS = 20
FIGURE_METHODS = {"borders": ("borders", "true-borders"), "training": ("svm",)}
# Border points, and training rows.
SETTINGS = {
    "borders": (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000, 2000, 3000),
    "training": (20, 50, 100, 200, 300, 500, 1000, 2000, 5000, 10_000),
}
EXPERIMENTS = ("results", "subsampled", "borders", "training")
# A subset that takes about two minutes.
QUICK_DATASETS = ("heart", "splice", "sat")
QUICK_METHODS = (*RESULT_METHODS, "subsampled")
QUICK_TRIALS = 2
QUICK_SETTINGS = {"borders": (2, 5, 10, 20, 50, 200, 1000), "training": (50, 100, 500, 2000, 5000)}
QUICK_FIGURE_TRIALS = 3
SAMPLE_TRAIN, SAMPLE_TEST = 1000, 10_000
UNFINISHED = ", stopped before it converged"


class Match(NamedTuple):
    """Where the search stands."""

    step: int
    is_final: bool

    @property
    def fraction(self) -> float:
        """The fraction of the training rows."""
        return fraction_of(self.step)


def fraction_of(step: int) -> float:
    """Return the fraction of the training rows at a step.

    Examples
    --------
    >>> fraction_of(16)
    0.25
    """
    return float(2.0 ** (-step / STEPS_A_HALVING))


def search_fraction(skill: Skill, target: float, n_steps: int) -> Match:
    """Halve the range of fractions until two neighbours have the target between them.

    Skill is taken to grow with the fraction. The nearer of the two neighbours is the match; the
    machine with all rows is, where it is no better than the target.

    Examples
    --------
    >>> search_fraction(lambda step: 1.0 - step / 100, 0.9, 40)
    Match(step=10, is_final=True)
    """
    if _known(skill, 0) <= target:
        return Match(0, True)
    low, high = 0, n_steps
    while high - low > 1:
        middle = (low + high) // 2
        found = skill(middle)
        if found is None:
            return Match(middle, False)
        low, high = (middle, high) if found >= target else (low, middle)
    if skill(high) is None:
        return Match(high, False)
    return Match(min((low, high), key=lambda step: abs(_known(skill, step) - target)), True)


@dataclass(frozen=True)
class Tried:
    """What has been tried to match a method on a dataset."""

    # The mean skill of the method, on the splits of the machines where there are several.
    target: float
    # The machine with all its rows.
    whole: list[Row]
    # Machines on fewer rows by step.
    fewer: dict[int, list[Row]]

    def trials(self, step: int) -> list[Row]:
        """Return the trials at a step."""
        return self.fewer.get(step, []) if step else self.whole

    def missed(self, step: int) -> float:
        """Return by how much a step that was tried is better than the target."""
        return mean_skill(self.trials(step)) - self.target

    def search(self) -> Match:
        """Halve the range of fractions by as many trials as a search needs."""
        seeds = {*search_seeds(self.whole)}

        def skill(step: int) -> float | None:
            found = [row for row in self.trials(step) if not step or row.seed in seeds]
            is_tried = not step or {row.seed for row in found} == seeds
            return mean_skill(found) if is_tried else None

        return search_fraction(skill, self.target, _n_steps(self.whole[0]))

    def nearest(self) -> Match:
        """Return the nearest fraction among those tried as often as the last one."""
        searched = self.search()
        if not searched.is_final or searched.step == 0:
            return searched
        n_least = len(self.trials(searched.step))
        often = {0} | {step for step, rows in self.fewer.items() if len(rows) >= n_least}
        beside = self._walk(searched.step, often)
        if beside not in often:
            return Match(beside, False)
        return Match(min(often, key=lambda step: (abs(self.missed(step)), -step)), True)

    def _walk(self, step: int, often: set[int]) -> int:
        """Go towards the target until it is near, or passed, or nothing more is tried or left."""
        way = 1 if self.missed(step) > 0 else -1
        last = _n_steps(self.whole[0]) if way > 0 else 0
        while step in often and step != last and way * self.missed(step) > MOST_MISSED:
            step += way
        return step


def find_tried(rows: Sequence[Row], dataset: str, method: str) -> Tried | None:
    """Gather what has been tried to match a method."""
    whole = select(rows, experiment="results", dataset=dataset, method=WHOLE)
    wanted = select(rows, experiment="results", dataset=dataset, method=method)
    if not whole or not wanted:
        return None
    splits = {row.split for row in whole}
    fewer: dict[int, list[Row]] = {}
    for row in select(rows, dataset=dataset, method="subsampled"):
        fewer.setdefault(_step_of(row), []).append(row)
    return Tried(mean_skill([row for row in wanted if row.split in splits]), whole, fewer)


def match_method(rows: Sequence[Row], dataset: str, method: str) -> Match | None:
    """Find the machine that matches a method best of those tried, as far as the rows tell."""
    tried = find_tried(rows, dataset, method)
    return None if tried is None else tried.nearest()


def search_seeds(whole: Sequence[Row]) -> Sequence[int]:
    """Return the trials that a fraction is judged by."""
    seeds = sorted(row.seed for row in whole)
    if len(seeds) > 1:
        return seeds
    return range(5 if whole[0].n_train < MANY_ROWS else 1)


def mean_skill(rows: Sequence[Row]) -> float:
    """Return the mean uncertainty coefficient."""
    return float(np.mean([row.uncertainty_coefficient for row in rows]))


def _known(skill: Skill, step: int) -> float:
    """Return a skill that must be there."""
    value = skill(step)
    assert value is not None
    return value


def _step_of(row: Row) -> int:
    """Return the step of a machine on fewer rows."""
    return round(-STEPS_A_HALVING * math.log2(row.setting or 1.0))


def _n_steps(whole: Row) -> int:
    """Return the step below which too few rows are left."""
    halvings = math.log2(whole.n_train / (ROWS_A_CLASS * whole.n_classes))
    return max(2, int(STEPS_A_HALVING * halvings))


@dataclass(frozen=True)
class Step:
    """Trials that belong together."""

    # For the progress.
    title: str
    # From the rows so far to the trials wanted; some depend on what came out of others. A step is
    # done when there are rows of all of them.
    wanted: Callable[[Sequence[Row]], list[Candidate]]
    # About what it takes.
    seconds: int


def make_plan(
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    experiments: Sequence[str] = EXPERIMENTS,
    is_quick: bool = False,
) -> list[Step]:
    """List the steps, the cheapest dataset first."""
    usual = QUICK_METHODS if is_quick else ALL_METHODS
    chosen = _with_needed(check_names("method", methods or usual, ALL_METHODS))
    by_default = (*QUICK_DATASETS, SAMPLE_CLASSES) if is_quick else EVERYTHING
    named = check_names("dataset", datasets or by_default, EVERYTHING)
    n_most = QUICK_TRIALS if is_quick else N_TRIALS
    steps = []
    for name in sorted(named, key=lambda name: SECONDS[name]):
        if "results" in experiments:
            steps.append(_results(name, chosen, n_most))
        if name == SAMPLE_CLASSES:
            steps += [_figure(one, is_quick) for one in FIGURE_METHODS if one in experiments]
        elif "subsampled" in experiments and "subsampled" in chosen:
            steps.append(_matches(name, [one for one in MATCHED if one in chosen], n_most))
    return steps


def check_names(what: str, names: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Return the names asked for, all where none are, and refuse others."""
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise ValueError(f"{what} must be one of {', '.join(known)}, got {unknown[0]!r}.")
    return tuple(dict.fromkeys(names or known))


def _with_needed(methods: tuple[str, ...]) -> tuple[str, ...]:
    """Add the methods without which no sub-sampled machine can be matched."""
    if "subsampled" not in methods:
        return methods
    matched = () if any(one in methods for one in MATCHED) else MATCHED
    return (*methods, WHOLE, *matched)


def n_trials_of(dataset: str, method: str) -> int:
    """Return how often a method is tried on a dataset."""
    if method in ("agf-borders", "agf-limes") and dataset in ("sat", "humidity"):
        return N_SLOW_TRIALS
    if method in STEADY and not is_split_each_time(dataset):
        return 1
    if method == "limes" and not is_split_each_time(dataset):
        return N_LIMES_TRIALS
    return parameters(dataset).n_trials if method == "subsampled" else N_TRIALS


def is_split_each_time(dataset: str) -> bool:
    """Tell whether each trial has training and test rows of its own."""
    if dataset == SAMPLE_CLASSES:
        return True
    settings = parameters(dataset)
    return not settings.has_single_trials and settings.n_trials > 1


def _results(dataset: str, methods: Sequence[str], n_most: int) -> Step:
    """Plan the trials of the paper's main table on one dataset."""
    known = RESULT_METHODS + (AGF_METHODS if dataset in AGF_DATASETS else ())
    trials = [
        _trial("results", dataset, method, None, seed)
        for method in known
        if method in methods
        for seed in range(min(n_most, n_trials_of(dataset, method)))
    ]
    # What has one split shares one machine.
    trials.sort(key=lambda trial: trial.split)
    return Step(f"results of {dataset}", lambda rows: trials, SECONDS[dataset] // 2)


def _matches(dataset: str, matched: Sequence[str], n_most: int) -> Step:
    """Plan the search for the sub-sampled machine that matches each accelerated one."""

    def wanted(rows: Sequence[Row]) -> list[Candidate]:
        return [trial for method in matched for trial in _match(rows, dataset, method, n_most)]

    return Step(f"sub-sampled machines of {dataset}", wanted, SECONDS[dataset] // 2)


def _match(rows: Sequence[Row], dataset: str, method: str, n_most: int) -> list[Candidate]:
    """Return the trials that the search needs next, or in the end; then those beside it."""
    tried = find_tried(rows, dataset, method)
    if tried is None:
        return []
    searched, nearest = tried.search(), tried.nearest()
    n_final = min(n_most, n_trials_of(dataset, "subsampled"))
    seeds: Any = range(n_final) if searched.is_final else search_seeds(tried.whole)
    beside = [row.seed for row in tried.trials(searched.step)]
    wanted = [(searched.step, seeds), *([] if nearest.is_final else [(nearest.step, beside)])]
    return [
        _trial("subsampled", dataset, "subsampled", fraction_of(step), seed)
        for step, seeds_ in wanted
        for seed in seeds_
        if step
    ]


def _figure(experiment: str, is_quick: bool) -> Step:
    """Plan the trials of a figure of the sample classes."""
    n_trials = QUICK_FIGURE_TRIALS if is_quick else FIGURE_TRIALS
    settings = (QUICK_SETTINGS if is_quick else SETTINGS)[experiment]
    trials = [
        _trial(experiment, SAMPLE_CLASSES, method, float(setting), seed)
        for seed in range(n_trials)
        for setting in settings
        for method in FIGURE_METHODS[experiment]
    ]
    return Step(f"sample classes, {experiment}", lambda rows: trials, SECONDS[SAMPLE_CLASSES] // 2)


def _trial(
    experiment: str, dataset: str, method: str, setting: float | None, seed: int
) -> Candidate:
    """Name a trial, with a split of its own where the paper has one."""
    split = seed if is_split_each_time(dataset) else 0
    return Candidate(experiment, dataset, method, setting, seed, split)
