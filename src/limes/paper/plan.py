"""Which trials the paper's tables and figures are drawn from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from limes.datasets import parameters
from limes.paper.cases import SAMPLE_CLASSES
from limes.paper.matching import WHOLE, find_tried, fraction_of, search_seeds
from limes.paper.printed import DATASETS
from limes.paper.rows import Row, Trial

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


@dataclass(frozen=True)
class Step:
    """Trials that belong together."""

    # For the progress.
    title: str
    # From the rows so far to the trials wanted; some depend on what came out of others. A step is
    # done when there are rows of all of them.
    wanted: Callable[[Sequence[Row]], list[Trial]]
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

    def wanted(rows: Sequence[Row]) -> list[Trial]:
        return [trial for method in matched for trial in _match(rows, dataset, method, n_most)]

    return Step(f"sub-sampled machines of {dataset}", wanted, SECONDS[dataset] // 2)


def _match(rows: Sequence[Row], dataset: str, method: str, n_most: int) -> list[Trial]:
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


def _trial(experiment: str, dataset: str, method: str, setting: float | None, seed: int) -> Trial:
    """Name a trial, with a split of its own where the paper has one."""
    split = seed if is_split_each_time(dataset) else 0
    return Trial(experiment, dataset, method, setting, seed, split)
