"""Which placement is taken where that is left to us."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

import limes
from limes.fit.borders import PLACEMENTS, Border, choose_placement, first_within_error
from limes.fit.config import DEFAULTS, FitOptions
from limes.fit.data import FitData
from limes.fit.schemes import borders_of
from limes.fit.validation import ValidationSet
from limes.sources.base import SourceContext, as_source


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(600, centers=8, n_features=3, cluster_std=1.8, random_state=0)


@pytest.fixture(scope="module")
def svm(blobs):
    return SVC(C=10).fit(*blobs)


def points_of(fast):
    return np.concatenate([one.points for one in fast.scheme_.maps])


def accelerate(svm, X, **options):
    options = {"scheme": "pairwise", "n_borders": 12, "random_state": 0, **options}
    return limes.accelerate(svm, X, **options)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_default_finds_the_borders_of_the_placement_it_took(placement, svm, blobs, monkeypatch):
    def prefer(misses):
        return PLACEMENTS.index(placement)

    monkeypatch.setattr("limes.fit.borders.simplest", prefer)
    chosen = accelerate(svm, blobs[0])
    assert chosen.placement_ == placement
    assert chosen.placement == "auto"
    given = accelerate(svm, blobs[0], placement=placement)
    assert given.placement_ == placement
    assert_array_equal(points_of(chosen), points_of(given))


@pytest.mark.parametrize("scheme", ["pairwise", "one-vs-rest", "tree", "shortlist"])
def test_every_scheme_that_searches_borders_chooses(scheme, svm, blobs):
    fast = accelerate(svm, blobs[0], scheme=scheme, refine=False)
    assert fast.placement_ in PLACEMENTS


@pytest.mark.parametrize("placement", ["auto", "near"])
def test_maps_that_are_fitted_have_no_placement(placement, svm, blobs):
    for scheme in ("shared", "tree"):
        fast = accelerate(svm, blobs[0], scheme=scheme, placement=placement)
        assert fast.placement_ is None


def test_a_moved_border_is_tried_where_it_lies(blobs):
    X, y = blobs
    svm = SVC(C=10, gamma=1.0).fit(X, y > 3)
    fast = limes.accelerate(svm, X, threshold=0.9, random_state=0)
    assert fast.placement_ in PLACEMENTS


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_choice_is_the_same_every_time(n_jobs, svm, blobs):
    first = accelerate(svm, blobs[0])
    again = accelerate(svm, blobs[0], n_jobs=n_jobs)
    assert again.placement_ == first.placement_
    assert_array_equal(points_of(again), points_of(first))


def test_the_choice_is_told(svm, blobs, capsys, tmp_path):
    fast = accelerate(svm, blobs[0], verbose=1)
    said = capsys.readouterr().out
    for placement in PLACEMENTS:
        assert f"placement {placement}:" in said
    (line,) = [line for line in said.splitlines() if line.endswith("chosen")]
    assert line.startswith(f"placement {fast.placement_}:")
    fast.save(tmp_path / "fast.limes")
    assert limes.load(tmp_path / "fast.limes").placement_ == fast.placement_


def test_few_rows_leave_the_simplest():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    fast = accelerate(SVC().fit(X, [0, 0, 1, 1]), X)
    assert fast.placement_ == "random"


def test_the_first_within_the_error_of_the_best_is_taken():
    equal = np.eye(4, 50)
    assert first_within_error(equal) == 0
    worse = np.zeros((4, 50))
    worse[0, :5] = 1
    assert first_within_error(worse) == 1
    worse[1, :4] = 1
    worse[2, 0] = 1
    assert first_within_error(worse) == 2


def test_nothing_missed_leaves_the_simplest():
    assert first_within_error(np.zeros((4, 10))) == 0
    assert first_within_error(np.zeros((4, 0))) == 0


class Curve:
    """A border with many bends, where rows are: points elsewhere are of no use."""

    def __call__(self, X):
        return 2 * (X[:, 1] - 0.5 * np.sin(4 * X[:, 0]))


def test_points_where_rows_are_beat_others_where_that_matters():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-3, 3, 3000), 0.5 * rng.normal(size=3000)])
    X = np.vstack([X, np.column_stack([rng.uniform(-3, 3, 600), 40 * rng.normal(size=600)])])
    fast = limes.accelerate(Curve(), X, scheme="pairwise", n_borders=30, random_state=0)
    plain = limes.accelerate(
        Curve(), X, scheme="pairwise", n_borders=30, random_state=0, placement="random"
    )
    assert fast.placement_ != "random"
    truth = (Curve()(X) > 0).astype(int)
    assert (fast.predict(X) == truth).mean() > (plain.predict(X) == truth).mean()


def test_borders_with_the_most_doubt_are_tried(svm, blobs, monkeypatch):
    X, _ = blobs
    tried = []

    def note(border, *rest):
        tried.append(border.classes)
        return np.zeros((len(PLACEMENTS), len(rest[2])))

    monkeypatch.setattr("limes.fit.borders._try_placements", note)
    source = as_source(svm, SourceContext(X, None, False, np.random.default_rng(0)))
    class_index = source.predict_index(X)
    data, validation = (
        FitData(X, class_index, None, X[:0]),
        ValidationSet.unweighted(X, class_index),
    )
    options = FitOptions(10, "auto", None, 1e-5)
    borders = borders_of("pairwise", source, data)
    seed = np.random.SeedSequence(0)
    assert choose_placement(borders, source, data, validation, options, seed=seed) == "random"
    assert seed.n_children_spawned == 0
    centers = np.array([X[class_index == one].mean(axis=0) for one in range(8)])
    lengths = [np.linalg.norm(centers[one] - centers[other]) for one, other in tried]
    rest = [
        np.linalg.norm(centers[one] - centers[other]) for one in range(8) for other in range(one)
    ]
    assert len(tried) == DEFAULTS.borders.n_trial_borders
    assert np.median(lengths) < 0.7 * np.median(rest)


def test_a_border_lies_between_the_classes_of_its_sides():
    border = Border(None, [0, 2], [1])
    assert border.classes == [0, 1, 2]
    first, second = np.array([0, 1, 0, 3]), np.array([1, 2, 2, 1])
    assert_array_equal(border.parts(first, second), [True, True, False, False])
