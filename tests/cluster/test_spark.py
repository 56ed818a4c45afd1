"""Spark: five million rows on two executors with one core each. `make test-cluster`."""

import os
import shutil
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from limes import accelerate
from limes.dask_arrays import ShippedModel, _load
from tests.raster.conftest import make_fast

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]
N_ROWS = 5_000_000
N_FEATURES = 4


@pytest.fixture(scope="module")
def loads(tmp_path_factory):
    """A file to which Python workers write when they load a model."""
    return tmp_path_factory.mktemp("loads") / "loads.txt"


@pytest.fixture(scope="module")
def spark(loads):
    assert shutil.which("java"), "Spark needs Java 17: apt-get install openjdk-17-jre-headless"
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
        .config("spark.executorEnv.LIMES_COUNTED_LOADS", str(loads))
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def frame(spark):
    """Rows that are computed from their number."""
    from pyspark.sql import functions as f

    columns = [
        ((f.col("id") * (7 + 2 * k)) % 199).cast("float").alias(f"b{k}") for k in range(N_FEATURES)
    ]
    return spark.range(0, N_ROWS, 1, 8).select("id", *columns)


def rows(n_rows):
    number = np.arange(n_rows)
    columns = [(number * (7 + 2 * k)) % 199 for k in range(N_FEATURES)]
    return np.stack(columns, axis=1).astype(np.float32)


NAMES = [f"b{k}" for k in range(N_FEATURES)]


class CountedModel(ShippedModel):
    """Adds a line to a file when a process loads the model."""

    def load(self):
        n_before = _load.cache_info().misses
        model = super().load()
        if _load.cache_info().misses > n_before:
            with open(os.environ["LIMES_COUNTED_LOADS"], "a") as file:
                file.write(f"{os.getpid()}\n")
        return model


def test_five_million_rows_have_the_labels_of_predict(frame, loads, monkeypatch):
    from limes.spark import predict_udf

    monkeypatch.setattr("limes.spark.ShippedModel", CountedModel)
    fast = make_fast([3, 7, 9])
    predict = predict_udf(fast)
    labelled = frame.select("id", predict(*NAMES).alias("label"))
    found = labelled.toPandas().sort_values("id")["label"].to_numpy()
    assert_array_equal(found, fast.predict(rows(N_ROWS)))
    labelled.agg({"label": "sum"}).collect()
    workers = loads.read_text().split()
    print(f"{len(workers)} loads in {len(set(workers))} Python workers")
    assert 1 <= len(workers) == len(set(workers)) <= 4


def test_text_labels_and_a_column_of_arrays(frame, tmp_path):
    from pyspark.sql import functions as f

    from limes.spark import predict_udf

    fast = make_fast(["crop", "tree", "water"])
    fast.save(tmp_path / "m.limes")
    some = frame.limit(1000)
    predict = predict_udf(tmp_path / "m.limes")
    proba = predict_udf(fast.model_, proba=True)
    found = some.select(
        "id", predict(f.array(*NAMES)).alias("label"), proba(*NAMES).alias("p")
    ).toPandas()
    expected = rows(N_ROWS)[found["id"].to_numpy()]
    assert_array_equal(found["label"], fast.predict(expected))
    assert_allclose(np.stack(found["p"]), fast.predict_proba(expected), atol=1e-6)


def test_one_feature_is_a_column_too(frame):
    from sklearn.svm import SVC

    from limes.spark import predict_udf

    X = np.linspace(0, 199, 200)[:, None]
    fast = accelerate(SVC(gamma=1e-3).fit(X, X[:, 0] > 90), scheme="exact")
    found = frame.limit(500).select("b0", predict_udf(fast)("b0").alias("label")).toPandas()
    assert_array_equal(found["label"], fast.predict(found[["b0"]].to_numpy()))


def test_a_wrong_number_of_columns_is_refused(spark):
    from limes.spark import predict_udf

    with pytest.raises(ValueError, match=r"expected 4 columns.*got 3"):
        predict_udf(make_fast([1, 2, 3]))("b0", "b1", "b2")


def test_probabilities_that_a_model_has_not_are_refused(spark):
    from sklearn.svm import SVC

    from limes.spark import predict_udf

    X = np.linspace(0, 199, 200)[:, None]
    exact = accelerate(SVC(gamma=1e-3).fit(X, X[:, 0] > 90), scheme="exact")
    with pytest.raises(ValueError, match="needs probabilities"):
        predict_udf(exact, proba=True)
