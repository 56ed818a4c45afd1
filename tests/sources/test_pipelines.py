"""Linear preprocessing as one map: the same rows as from scikit-learn's steps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from limes.sources.pipelines import as_affine

LINEAR = {
    "standard": StandardScaler(),
    "no-mean": StandardScaler(with_mean=False),
    "no-deviation": StandardScaler(with_std=False),
    "robust": RobustScaler(),
    "robust-scale": RobustScaler(with_centering=False),
    "min-max": MinMaxScaler((-1, 3)),
    "max-abs": MaxAbsScaler(),
    "identity": FunctionTransformer(),
    "variance": VarianceThreshold(),
    "spread": VarianceThreshold(0.5),
    "pca": PCA(3),
    "whitened": PCA(4, whiten=True),
    "incremental": IncrementalPCA(3),
    "svd": TruncatedSVD(3),
    "paper": make_pipeline(VarianceThreshold(), StandardScaler()),
    "scaled-pca": make_pipeline(StandardScaler(), PCA(4), StandardScaler()),
    "columns": ColumnTransformer(
        [("a", StandardScaler(), [0, 2]), ("b", "passthrough", [5]), ("c", "drop", [1])]
    ),
    "columns-pca": ColumnTransformer([("a", PCA(2), [0, 1, 2]), ("b", MinMaxScaler(), [4, 5])]),
    "nested": make_pipeline(make_pipeline(MinMaxScaler(), "passthrough"), PCA(2), MinMaxScaler()),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) * [1, 10, 0.1, 1, 3, 1] + [0, 1000, 5, 0, 0, 7]
    X[:, 3] = 4.0
    return X, rng.integers(2, size=80)


@pytest.mark.parametrize("name", LINEAR)
def test_the_map_gives_the_rows_of_the_transformer(name, rows):
    X, y = rows
    step = LINEAR[name].fit(X, y)
    assert_allclose(as_affine(step).apply(X), step.transform(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", LINEAR)
def test_pulled_back_directions_give_the_same_rise(name, rows):
    X, y = rows
    affine = as_affine(LINEAR[name].fit(X, y))
    directions = np.random.default_rng(1).normal(size=(5, affine.n_outputs))
    step = X[:5] - X[5:10]
    rise = np.einsum("ij,ij->i", affine.apply(X[:5]) - affine.apply(X[5:10]), directions)
    assert_allclose(np.einsum("ij,ij->i", affine.pull_back(directions), step), rise, rtol=1e-8)


@pytest.mark.parametrize(
    "step",
    [
        PowerTransformer(),
        MinMaxScaler(clip=True),
        FunctionTransformer(np.log1p),
        make_pipeline(StandardScaler(), PowerTransformer()),
    ],
)
def test_a_step_that_is_not_linear_is_no_affine_map(step, rows):
    assert as_affine(step.fit(np.abs(rows[0]))) is None
