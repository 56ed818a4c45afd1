"""The examples of docs/clusters.md. `make test-cluster`."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.svm import SVC

from limes import accelerate
from tests.cluster.test_spark import loads, spark  # noqa: F401 - fixtures
from tests.conftest import quick_training

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]
PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
SECTION = re.compile(r"^## (\w+)\n.*?^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXAMPLES = dict(SECTION.findall(PAGE.read_text()))
NAMES = [f"b{k}" for k in range(6)]


@pytest.fixture(scope="module")
def fast():
    X = np.random.default_rng(0).integers(1, 200, (300, 6)).astype(float)
    svc = SVC(gamma=1e-4, C=10).fit(X, (X[:, 0] > 90).astype(int) + (X[:, 1] > 120))
    with quick_training():
        return accelerate(svc, X, scheme="shared", n_borders=16)


def run(name, **given):
    """Run an example, and return its variables."""
    variables = {"names": NAMES, **given}
    exec(EXAMPLES[name], variables)
    return variables


def test_every_section_has_an_example():
    assert list(EXAMPLES) == ["Dask", "Spark", "Polars", "DuckDB"]


def test_dask(fast):
    found = run("Dask", fast=fast)
    assert_array_equal(found["counts"], np.bincount(fast.predict(found["rows"].compute())))


def test_spark(fast, spark):  # noqa: F811
    assert run("Spark", fast=fast, spark=spark)["counts"]["count"].sum() == 100_000


def test_polars(fast):
    found = run("Polars", fast=fast)["labelled"]
    assert_array_equal(found["label"], fast.predict(found.select(NAMES).to_numpy()))


def test_duckdb(fast):
    found = run("DuckDB", fast=fast)["labels"]
    rows = np.repeat(np.array([[1.0], [50.0], [150.0]]), 6, axis=1)
    assert_array_equal(found, fast.predict(rows))
