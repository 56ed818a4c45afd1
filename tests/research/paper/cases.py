"""Rows of imagined trials, with numbers that are easy to follow."""

from dataclasses import replace

from limes.research.paper.plan import TrialRow

BASE = TrialRow(
    experiment="results",
    dataset="sat",
    method="svm",
    setting=None,
    seed=0,
    split=0,
    n_train=4435,
    n_test=2000,
    n_features=36,
    n_classes=6,
    part="whole",
    accuracy=0.91,
    uncertainty_coefficient=0.8,
    agreement=None,
    train_seconds=1.0,
    test_seconds=0.5,
    timed_rows=2000,
    cpu_share=1.0,
    core_seconds=0.05,
    n_support=1447,
    n_borders=None,
    model="",
    versions="none",
    computer="none",
    timestamp="never",
)


def row(**changes):
    return replace(BASE, **changes)


def whole(**changes):
    """Return a trial of the SVM on all rows that predicts by probability."""
    return row(**({"method": "svm-probability"} | changes))


def borders(**changes):
    base = {"method": "borders", "n_support": None, "core_seconds": None, "n_borders": 3000}
    return row(**(base | {"uncertainty_coefficient": 0.76, "test_seconds": 0.01} | changes))


def fewer(step, skill, seed, **changes):
    """Return a trial of an SVM on a fraction of the rows."""
    changes |= {"experiment": "subsampled", "method": "subsampled", "setting": 2 ** (-step / 8)}
    return row(uncertainty_coefficient=skill, seed=seed, **changes)


def searched(skills, **changes):
    """Return the trials of a search: five seeds for each step."""
    return [
        fewer(step, skill, seed, **changes) for step, skill in skills.items() for seed in range(5)
    ]
