"""The paper's trials and printed numbers, and the search for sub-sampled SVMs of equal skill."""

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from limes.datasets import parameters
from limes.research.results import Spread, select

PrintedRow = dict[str, str]


@cache
def printed(table: str) -> tuple[PrintedRow, ...]:
    """Return the lines of one of the paper's tables.

    Examples
    --------
    >>> printed("datasets")[2]["train"]
    '4435'
    """
    text = files(__package__).joinpath("data", f"{table}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


DATASETS = tuple(line["dataset"] for line in printed("datasets"))


def find_printed(table: str, **values: str) -> PrintedRow:
    """Return the first line with these values, an empty one if the paper has none.

    Examples
    --------
    >>> find_printed("sizes", dataset="sat")["support_vectors"]
    '1447'
    """
    lines = printed(table)
    matching = (line for line in lines if all(line[key] == word for key, word in values.items()))
    return next(matching, {})


def printed_number(line: PrintedRow, column: str) -> float | None:
    """Return a printed number, None if there is none.

    Examples
    --------
    >>> printed_number({"train": "4435", "test": "-"}, "train")
    4435.0
    """
    word = line.get(column, "")
    return None if word in ("", "-") else float(word)


def printed_spread(line: PrintedRow, column: str, std_column: str) -> Spread | None:
    """Return a printed mean with its standard deviation, None if there is none.

    Examples
    --------
    >>> printed_spread({"mean": "0.764", "std": "0.007"}, "mean", "std")
    Spread(mean=0.764, std=0.007, n_trials=1)
    """
    mean = printed_number(line, column)
    return None if mean is None else Spread(mean, printed_number(line, std_column))


def printed_verdict(dataset: str) -> str:
    """Return the paper's verdict, with its star where a linear classifier is better.

    Examples
    --------
    >>> printed_verdict("dna")
    'fails*'
    """
    line = find_printed("verdicts", dataset=dataset)
    return f"{line['verdict']}{'*' if line['linear_is_better'] == 'yes' else ''}"


SAMPLE_CLASSES = "sample_classes"
SAMPLE_TRAIN, SAMPLE_TEST = 1000, 10_000
EVERYTHING = (*DATASETS, SAMPLE_CLASSES)
EXPERIMENTS = ("results", "subsampled", "vectors", "borders", "training")
RESULT_METHODS = ("linear", "svm", "svm-probability", "borders", "limes")
AGF_METHODS = ("agf", "agf-borders", "agf-limes")
# SVMs with some of their support vectors left out, and SVMs trained on fewer rows instead.
VECTOR_METHODS = ("kept-vectors", "rescaled-vectors", "fewer-rows")
ALL_METHODS = (*RESULT_METHODS, "subsampled", *VECTOR_METHODS, *AGF_METHODS)
# Methods that a sub-sampled SVM is matched with.
MATCHED = ("borders", "limes")
# The SVM on all training rows that predicts in the same way as the sub-sampled ones.
WHOLE = "svm-probability"
# Methods with the same result every time on the same split, the linear ones nearly so.
DETERMINISTIC = ("linear", "svm", "svm-probability", "agf")
# Datasets for AGF, the kernel classifier of the paper's author.
AGF_DATASETS = (SAMPLE_CLASSES, "heart", "sat", "humidity")
# Approximate seconds of all trials of a dataset but those of limes and its match: for the order,
# the cheapest first, and for the remaining time.
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
N_TRIALS = 10
# Trials of limes' default on a single split, since a fit takes seconds; and of the accelerated AGF
# where one takes minutes.
N_LIMES_TRIALS = 3
N_SLOW_TRIALS = 1
# Fractions of the support vectors, or of the training rows, that each method keeps, and how many
# trials there are where training takes seconds and where it takes minutes.
KEPT_FRACTIONS = {
    "kept-vectors": (0.9, 0.75, 0.5, 0.25, 0.1),
    "rescaled-vectors": (0.5,),
    "fewer-rows": (0.5, 0.1),
}
N_VECTOR_TRIALS = 5
N_SLOW_VECTOR_TRIALS = 3
SLOW_DATASETS = ("mnist", "humidity", "codrna")
# Figures of the sample classes, with numbers of border points or training rows.
FIGURE_TRIALS = 20
FIGURE_METHODS = {"borders": ("borders", "true-borders"), "training": ("svm",)}
SETTINGS = {
    "borders": (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000, 2000, 3000),
    "training": (20, 50, 100, 200, 300, 500, 1000, 2000, 5000, 10_000),
}
# A subset that takes about two minutes.
QUICK_DATASETS = ("heart", "splice", "sat")
QUICK_METHODS = (*RESULT_METHODS, "subsampled")
QUICK_TRIALS = 2
QUICK_SETTINGS = {"borders": (2, 5, 10, 20, 50, 200, 1000), "training": (50, 100, 500, 2000, 5000)}
QUICK_FIGURE_TRIALS = 3
# End of a linear classifier's description if its fit did not converge.
UNFINISHED = ", stopped before it converged"
# Fractions are powers of two by eighths: the next one has 9 % fewer rows.
STEPS_PER_HALVING = 8
# Fewest training rows per class of a sub-sampled SVM.
ROWS_PER_CLASS = 10
# With more training rows, one random choice of them is as good as another.
MANY_ROWS = 10_000
# If the trials at a match differ from the target by more, the next fraction is tried as often: the
# search has fewer trials per fraction, and one of them may have misled it.
MAX_MISS = 0.01
# From a step to the skill there, None if it has not been tried yet.
Skill = Callable[[int], float | None]


class Trial(NamedTuple):
    """What identifies a trial."""

    experiment: str
    dataset: str
    method: str
    setting: float | None
    seed: int
    split: int


@dataclass(frozen=True)
class TrialRow:
    """Result of one trial.

    Parameters
    ----------
    experiment, dataset, method, setting, seed, split
        As in `Trial`.
    n_train, n_test, n_features, n_classes : int
        Training and test rows, their features and classes.
    part : str
        "whole", or "part" if only some rows of the dataset are available.
    accuracy, uncertainty_coefficient : float
        Skill on the test rows.
    agreement : float or None
        Share of the test rows with the source's label, if there is a source.
    train_seconds : float
        Processor time of the fit with one thread, without that of the source.
    test_seconds : float
        Processor time of the fastest batch over its rows, times the test rows; one thread.
    timed_rows : int
        Rows of that batch.
    cpu_share : float
        Processor time of that batch over wall-clock time: below 1 on a busy computer.
    core_seconds : float or None
        The same as `test_seconds` for an SVM that is summed in limes' core instead of by LIBSVM.
    n_support, n_borders : int or None
        Support vectors and border points in all.
    model : str
        More about the model, such as its scheme.
    versions, computer : str
        Versions of the packages; processor and SIMD level.
    timestamp : str
        When the trial ended, in UTC.
    trial_seconds : float or None
        Processor time of the whole trial, predictions and timing included; a source that several
        trials share counts for the first of them. Rows of older versions have none.
    """

    experiment: str
    dataset: str
    method: str
    setting: float | None
    seed: int
    split: int
    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    part: str
    accuracy: float
    uncertainty_coefficient: float
    agreement: float | None
    train_seconds: float
    test_seconds: float
    timed_rows: int
    cpu_share: float
    core_seconds: float | None
    n_support: int | None
    n_borders: int | None
    model: str
    versions: str
    computer: str
    timestamp: str
    trial_seconds: float | None = None

    @property
    def trial(self) -> Trial:
        """What identifies the trial."""
        return Trial(*(getattr(self, name) for name in Trial._fields))


@dataclass(frozen=True)
class FigurePoint:
    """A point in the plane of the sample classes.

    Its kind is "class 1" or "class 2" for a row, "support vector", "true border" for a point of
    the border from the class definitions, or "SVM border".
    """

    kind: str
    x: float
    y: float


@dataclass(frozen=True)
class Step:
    """Trials that belong together."""

    # For the progress.
    title: str
    # From the rows so far to the trials needed; some depend on the results of others. A step is
    # done when all of them have rows.
    needed: Callable[[Sequence[TrialRow]], list[Trial]]
    # Approximate time.
    seconds: int


def make_plan(
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    experiments: Sequence[str] = EXPERIMENTS,
    is_quick: bool = False,
) -> list[Step]:
    """List the steps, the cheapest dataset first."""
    default_methods = QUICK_METHODS if is_quick else ALL_METHODS
    chosen = _with_prerequisites(check_names("method", methods or default_methods, ALL_METHODS))
    default_datasets = (*QUICK_DATASETS, SAMPLE_CLASSES) if is_quick else EVERYTHING
    names = check_names("dataset", datasets or default_datasets, EVERYTHING)
    max_trials = QUICK_TRIALS if is_quick else N_TRIALS
    steps = []
    for name in sorted(names, key=lambda name: SECONDS[name]):
        if "results" in experiments:
            steps.append(_result_step(name, chosen, max_trials))
        if name == SAMPLE_CLASSES:
            figures = [figure for figure in FIGURE_METHODS if figure in experiments]
            steps += [_figure_step(figure, is_quick) for figure in figures]
        elif "subsampled" in experiments and "subsampled" in chosen:
            matched = [method for method in MATCHED if method in chosen]
            steps.append(_match_step(name, matched, max_trials))
        if "vectors" in experiments and name != SAMPLE_CLASSES:
            steps += _vectors_steps(name, chosen, max_trials)
    return steps


def check_names(what: str, names: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Return the given names, all known ones if there are none, and raise an error for others."""
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise ValueError(f"{what} must be one of {', '.join(known)}, got {unknown[0]!r}.")
    return tuple(dict.fromkeys(names or known))


def _with_prerequisites(methods: tuple[str, ...]) -> tuple[str, ...]:
    """Add the methods that the match of a sub-sampled SVM depends on."""
    if "subsampled" not in methods:
        return methods
    matched = () if any(name in methods for name in MATCHED) else MATCHED
    return (*methods, WHOLE, *matched)


def _result_step(dataset: str, methods: Sequence[str], max_trials: int) -> Step:
    """Plan the trials of the paper's main table on one dataset."""
    known = RESULT_METHODS + (AGF_METHODS if dataset in AGF_DATASETS else ())
    trials = [
        _make_trial("results", dataset, method, None, seed)
        for method in known
        if method in methods
        for seed in range(min(max_trials, n_trials_of(dataset, method)))
    ]
    # Trials with the same split share one SVM.
    trials.sort(key=lambda trial: trial.split)
    return Step(f"results of {dataset}", lambda rows: trials, SECONDS[dataset] // 2)


def n_trials_of(dataset: str, method: str) -> int:
    """Return the number of trials of a method on a dataset."""
    if method in ("agf-borders", "agf-limes") and dataset in ("sat", "humidity"):
        return N_SLOW_TRIALS
    if method in DETERMINISTIC and not has_split_per_trial(dataset):
        return 1
    if method == "limes" and not has_split_per_trial(dataset):
        return N_LIMES_TRIALS
    return parameters(dataset).n_trials if method == "subsampled" else N_TRIALS


def has_split_per_trial(dataset: str) -> bool:
    """Return whether each trial has its own training and test rows."""
    if dataset == SAMPLE_CLASSES:
        return True
    settings = parameters(dataset)
    return not settings.has_single_trials and settings.n_trials > 1


def _make_trial(
    experiment: str, dataset: str, method: str, setting: float | None, seed: int
) -> Trial:
    """Return a trial, with its own split where the paper has one."""
    split = seed if has_split_per_trial(dataset) else 0
    return Trial(experiment, dataset, method, setting, seed, split)


def _figure_step(experiment: str, is_quick: bool) -> Step:
    """Plan the trials of a figure of the sample classes."""
    n_trials = QUICK_FIGURE_TRIALS if is_quick else FIGURE_TRIALS
    settings = (QUICK_SETTINGS if is_quick else SETTINGS)[experiment]
    trials = [
        _make_trial(experiment, SAMPLE_CLASSES, method, float(setting), seed)
        for seed in range(n_trials)
        for setting in settings
        for method in FIGURE_METHODS[experiment]
    ]
    return Step(f"sample classes, {experiment}", lambda rows: trials, SECONDS[SAMPLE_CLASSES] // 2)


def _vectors_steps(dataset: str, methods: Sequence[str], max_trials: int) -> list[Step]:
    """Plan the trials of SVMs with fewer support vectors, none if no such method is chosen."""
    n_trials = N_SLOW_VECTOR_TRIALS if dataset in SLOW_DATASETS else N_VECTOR_TRIALS
    trials = [
        _make_trial("vectors", dataset, method, fraction, seed)
        for seed in range(min(max_trials, n_trials))
        for method, fractions in KEPT_FRACTIONS.items()
        if method in methods
        for fraction in fractions
    ]
    title = f"fewer support vectors of {dataset}"
    return [Step(title, lambda rows: trials, SECONDS[dataset] // 4)] if trials else []


def _match_step(dataset: str, matched: Sequence[str], max_trials: int) -> Step:
    """Plan the search for the sub-sampled SVM that matches each accelerated one."""

    def needed(rows: Sequence[TrialRow]) -> list[Trial]:
        return [
            trial
            for method in matched
            for trial in _match_trials(rows, dataset, method, max_trials)
        ]

    return Step(f"sub-sampled SVMs of {dataset}", needed, SECONDS[dataset] // 2)


def _match_trials(
    rows: Sequence[TrialRow], dataset: str, method: str, max_trials: int
) -> list[Trial]:
    """Return the trials of the fraction that the search is at, then of the one next to it."""
    search = find_search(rows, dataset, method)
    if search is None:
        return []
    match, nearest = search.bisect(), search.nearest()
    n_final = min(max_trials, n_trials_of(dataset, "subsampled"))
    seeds: Sequence[int] = range(n_final) if match.is_final else search_seeds(search.whole)
    seeds_at_match = [row.seed for row in search.trials(match.step)]
    needed = [(match.step, seeds), *([] if nearest.is_final else [(nearest.step, seeds_at_match)])]
    return [
        _make_trial("subsampled", dataset, "subsampled", fraction_of(step), seed)
        for step, step_seeds in needed
        for seed in step_seeds
        if step
    ]


class Match(NamedTuple):
    """State of a search."""

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
    return float(2.0 ** (-step / STEPS_PER_HALVING))


def match_method(rows: Sequence[TrialRow], dataset: str, method: str) -> Match | None:
    """Return the sub-sampled SVM whose skill is nearest to that of a method, so far."""
    search = find_search(rows, dataset, method)
    return None if search is None else search.nearest()


@dataclass(frozen=True)
class MatchSearch:
    """The trials so far of SVMs that match a method on a dataset."""

    # The mean skill of the method, on the splits of the SVMs where there are several.
    target: float
    # Trials of the SVM on all training rows.
    whole: list[TrialRow]
    # Trials of SVMs on fewer rows, by step.
    fewer: dict[int, list[TrialRow]]

    def trials(self, step: int) -> list[TrialRow]:
        """Return the trials at a step."""
        return self.fewer.get(step, []) if step else self.whole

    def excess(self, step: int) -> float:
        """Return by how much the skill at a step that was tried exceeds the target."""
        return mean_skill(self.trials(step)) - self.target

    def bisect(self) -> Match:
        """Halve the range of fractions with the few trials per step that a search has."""
        seeds = {*search_seeds(self.whole)}

        def skill(step: int) -> float | None:
            rows = [row for row in self.trials(step) if not step or row.seed in seeds]
            is_tried = not step or {row.seed for row in rows} == seeds
            return mean_skill(rows) if is_tried else None

        return search_fraction(skill, self.target, _n_steps(self.whole[0]))

    def nearest(self) -> Match:
        """Return the nearest fraction among those tried as often as the final one."""
        match = self.bisect()
        if not match.is_final or match.step == 0:
            return match
        n_least = len(self.trials(match.step))
        often = {0} | {step for step, rows in self.fewer.items() if len(rows) >= n_least}
        next_step = self._step_towards_target(match.step, often)
        if next_step not in often:
            return Match(next_step, False)
        return Match(min(often, key=lambda step: (abs(self.excess(step)), -step)), True)

    def _step_towards_target(self, step: int, often: set[int]) -> int:
        """Return the first step towards the target that is near it, past it, untried or last."""
        direction = 1 if self.excess(step) > 0 else -1
        last = _n_steps(self.whole[0]) if direction > 0 else 0
        while step in often and step != last and direction * self.excess(step) > MAX_MISS:
            step += direction
        return step


def find_search(rows: Sequence[TrialRow], dataset: str, method: str) -> MatchSearch | None:
    """Collect the trials of the search for a method's match."""
    whole = select(rows, experiment="results", dataset=dataset, method=WHOLE)
    matched = select(rows, experiment="results", dataset=dataset, method=method)
    if not whole or not matched:
        return None
    splits = {row.split for row in whole}
    fewer: dict[int, list[TrialRow]] = {}
    for row in select(rows, dataset=dataset, method="subsampled"):
        fewer.setdefault(_step_of(row), []).append(row)
    return MatchSearch(mean_skill([row for row in matched if row.split in splits]), whole, fewer)


def search_fraction(skill: Skill, target: float, n_steps: int) -> Match:
    """Halve the range of fractions until the target lies between two neighbours.

    Skill is assumed to grow with the fraction. The match is the nearer of the two neighbours, or
    the SVM on all rows if its skill does not exceed the target.

    Examples
    --------
    >>> search_fraction(lambda step: 1.0 - step / 100, 0.9, 40)
    Match(step=10, is_final=True)
    """
    if _known_skill(skill, 0) <= target:
        return Match(0, True)
    low, high = 0, n_steps
    while high - low > 1:
        middle = (low + high) // 2
        middle_skill = skill(middle)
        if middle_skill is None:
            return Match(middle, False)
        low, high = (middle, high) if middle_skill >= target else (low, middle)
    if skill(high) is None:
        return Match(high, False)
    return Match(min((low, high), key=lambda step: abs(_known_skill(skill, step) - target)), True)


def search_seeds(whole: Sequence[TrialRow]) -> Sequence[int]:
    """Return the seeds of the trials at each fraction of a search."""
    seeds = sorted(row.seed for row in whole)
    if len(seeds) > 1:
        return seeds
    return range(5 if whole[0].n_train < MANY_ROWS else 1)


def mean_skill(rows: Sequence[TrialRow]) -> float:
    """Return the mean uncertainty coefficient."""
    return float(np.mean([row.uncertainty_coefficient for row in rows]))


def _known_skill(skill: Skill, step: int) -> float:
    """Return the skill at a step that has been tried."""
    value = skill(step)
    assert value is not None
    return value


def _step_of(row: TrialRow) -> int:
    """Return the step of a sub-sampled SVM."""
    return round(-STEPS_PER_HALVING * math.log2(row.setting or 1.0))


def _n_steps(whole: TrialRow) -> int:
    """Return the last step that has enough rows."""
    halvings = math.log2(whole.n_train / (ROWS_PER_CLASS * whole.n_classes))
    return max(2, int(STEPS_PER_HALVING * halvings))
