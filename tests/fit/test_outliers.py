"""Maps of one-class SVMs: which are taken, and what is said of them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.svm import OneClassSVM

import limes
from limes.fit import outliers
from limes.fit.outliers import OUTLIERS
from limes.model.exact import ExactScheme

pytestmark = pytest.mark.usefixtures("quick_fit")


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(800, 3)) * [100.0, 1.0, 5.0] + [1e4, 0.0, 0.0]


@pytest.fixture(scope="module")
def source(rows):
    return OneClassSVM(nu=0.5, gamma="auto").fit((rows - rows.mean(axis=0)) / rows.std(axis=0))


@pytest.mark.parametrize("kind", OUTLIERS)
def test_synthetic_outliers_are_new_rows_of_the_same_shape(kind, rows):
    made = OUTLIERS[kind](rows, 500, np.random.default_rng(1))
    assert made.shape == (500, 3)
    assert np.isfinite(made).all()
    # A row between two equal ones is not new.
    assert len({tuple(row) for row in made} & {tuple(row) for row in rows}) < 5


def test_a_map_that_does_not_follow_the_scores_is_not_taken(rows, source):
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    fast = limes.accelerate(source, scaled)
    assert len(fast.candidates_) > 1
    assert isinstance(fast.scheme_, ExactScheme) == (
        max(c.score_correlation for c in fast.candidates_ if c.n_borders) < 0.997
    )


def test_a_map_that_was_asked_for_warns_where_its_scores_have_another_order(rows):
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    spiky = OneClassSVM(nu=0.5, gamma=20.0).fit(scaled)
    with pytest.warns(limes.QualityWarning, match=r"rank correlation of 0\.\d+ with the source's"):
        fast = limes.accelerate(spiky, scaled, n_borders=4)
    assert fast.n_borders_ == 4
    assert fast.score_correlation_ < 0.99


@pytest.mark.filterwarnings("ignore::limes.QualityWarning")
def test_maps_take_raw_rows_of_any_scale_and_the_same_call_gives_the_same_map(rows):
    source = OneClassSVM(nu=0.5, gamma=1e-4).fit(rows)
    first, second = (limes.accelerate(source, rows, scheme="shared") for _ in range(2))
    assert_array_equal(first.decision_function(rows), second.decision_function(rows))
    assert np.mean(first.predict(rows) == source.predict(rows)) > 0.95


@pytest.mark.filterwarnings("ignore::limes.QualityWarning")
def test_a_source_that_is_constant_has_a_map_of_the_same_label(rows):
    source = OneClassSVM(nu=0.5, gamma=1e-12).fit(rows)
    fast = limes.accelerate(source, rows, scheme="shared")
    assert np.isfinite(fast.decision_function(rows)).all()


def test_half_of_each_kind_of_validation_rows_are_the_held_out_ones(rows, source):
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    exact = limes.accelerate(source)
    fit = outliers._DetectorFit(
        exact.scheme_,
        exact.model_.outlier_scores,
        scaled,
        fallback=True,
        effort=1.0,
        seed=np.random.SeedSequence(0),
    )
    kinds = list(fit.validation.values())
    for made, values in kinds:
        n_half = len(made) // 2
        assert_array_equal(made[:n_half], kinds[0][0][:n_half])
        assert np.mean(values[n_half:] > 0) < np.mean(values[:n_half] > 0) + 0.1
