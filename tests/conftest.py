"""Data, sources and settings that several tests share."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from limes.fit.config import DEFAULTS

# Scripts: the first imports the module beside it, the others run in environments of their own.
collect_ignore = [
    "_core/valgrind_run.py",
    "package/numpy_alone.py",
    "package/readme_lines.py",
]


def pytest_collection_modifyitems(items):
    """Leave out what needs the paper's data where they are not at hand."""
    if "LIMES_DATA" in os.environ:
        return
    skip = pytest.mark.skip(reason="LIMES_DATA does not name the folder of the datasets")
    for item in items:
        if "data" in item.keywords:
            item.add_marker(skip)


@contextmanager
def quick_training() -> Iterator[None]:
    """Train with few samples and few synthetic rows.

    All stages run as they do by default, in about a tenth of the time; the maps agree less with
    their source. For claims that do not depend on how well a map agrees.
    """
    quick = replace(
        DEFAULTS,
        transfer=replace(
            DEFAULTS.transfer,
            min_synthetic_rows=1000,
            max_synthetic_rows=2000,
            default_synthetic_rows=1000,
        ),
        train=replace(
            DEFAULTS.train,
            base_rows=1000,
            search_samples=10_000,
            blend_samples=5000,
            final_samples=20_000,
            rows_per_initial_point=8,
        ),
        validation=replace(DEFAULTS.validation, synthetic_rows=800),
        # Small problems are searched too.
        search=replace(DEFAULTS.search, unsearched_cost=3000),
        outliers=replace(DEFAULTS.outliers, samples=20_000, synthetic_rows=2000),
        schemes=replace(
            DEFAULTS.schemes, pair_rows=1000, min_pair_samples=4000, min_node_samples=4000
        ),
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("limes.fit.") and getattr(module, "DEFAULTS", None) is DEFAULTS:
                patch.setattr(module, "DEFAULTS", quick)
        yield


@pytest.fixture
def quick_fit():
    """Train with few samples and few synthetic rows in this test."""
    with quick_training():
        yield


@pytest.fixture(scope="session")
def data_folder():
    return Path(os.environ["LIMES_DATA"])


@pytest.fixture(scope="session")
def moons():
    """Two classes with a curved border."""
    return make_moons(300, noise=0.2, random_state=0)


@pytest.fixture(scope="session")
def blobs():
    """Four overlapping classes in three features."""
    X, y = make_blobs(
        500, n_features=3, centers=4, cluster_std=2.0, center_box=(-4, 4), random_state=3
    )
    return X, np.array(["ash", "birch", "cedar", "doum"])[y]
