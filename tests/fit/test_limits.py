"""Limits of the user are kept or refused; without X, rows are made from training rows."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import limes
from limes.export.c import constant_bytes, to_c
from limes.fit.evaluation import microseconds_per_row
from limes.plotting import draw_candidates, new_figure

pytestmark = pytest.mark.usefixtures("quick_fit")


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(1500, noise=0.2, random_state=0)
    return SVC(gamma=2, C=10).fit(X[:1000], y[:1000]), X[:1000], X[1000:]


@pytest.fixture(scope="module")
def checkerboard():
    """Classes that many points are needed for, whatever the base function."""
    X = np.random.default_rng(0).uniform(-1, 1, (1500, 2))
    y = np.floor(2.5 * X).sum(axis=1) % 2
    return SVC(gamma=10, C=10).fit(X[:1000], y[:1000]), X[:1000], X[1000:]


@pytest.mark.parametrize("max_bytes", [600, 900, 2048])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_the_c_header_of_a_small_model_is_within_max_bytes(max_bytes, scale):
    """With text labels and with features far from zero, whose curved base has more tables."""
    X, y = make_moons(600, noise=0.2, random_state=0)
    X, y = X * scale + scale, np.array(["first class", "second"])[y]
    source = make_pipeline(StandardScaler(), SVC(gamma=1, C=10)).fit(X, y)
    fast = limes.accelerate(source, X, max_bytes=max_bytes, scheme="shared", fallback=False)
    to_c(fast, dtype="float32", max_bytes=max_bytes)
    assert f"#define LIMES_MODEL_BYTES {constant_bytes(fast)}\n" in to_c(fast)


def test_a_time_limit_is_kept(checkerboard):
    model, X, _ = checkerboard
    options = {"scheme": "shared", "fallback": False, "random_state": 0}
    small = limes.accelerate(model, X, n_borders=16, **options)
    # Without a limit, more points are selected, which take longer than the limit.
    unlimited = limes.accelerate(model, X, **options)
    limit = 2 * microseconds_per_row(small.scheme_, X)
    fast = limes.accelerate(model, X, max_time_us=limit, **options)
    assert 1 < fast.n_borders_ < unlimited.n_borders_
    assert microseconds_per_row(fast.scheme_, X) < 2 * limit


def test_the_cheapest_candidate_with_min_agreement_is_selected(moons):
    model, X, rows = moons
    options = {"scheme": "shared", "fallback": False}
    modest = limes.accelerate(model, X, min_agreement=0.8, **options)
    strict = limes.accelerate(model, X, min_agreement=0.985, **options)
    assert modest.cost_ < strict.cost_
    for fast, required in [(modest, 0.8), (strict, 0.985)]:
        agreeing = [item.cost for item in fast.candidates_ if item.agreement >= required]
        assert fast.cost_ == min(agreeing)
    assert np.mean(strict.predict(rows) == model.predict(rows)) > 0.97


def test_a_min_agreement_out_of_reach_warns(moons):
    model, X, _ = moons
    with pytest.warns(limes.QualityWarning, match=r"min_agreement=0.999999 is not reached"):
        limes.accelerate(model, X, min_agreement=0.999999, max_cost=30)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_cost": 1}, "max_cost=1: a row costs 2"),
        ({"max_bytes": 3}, "max_bytes=3"),
        ({"max_cost": 0}, "max_cost must be None or a number"),
        ({"max_bytes": "2 kB"}, "'2 kB'"),
        ({"min_agreement": 1.5}, "1.5"),
        ({"max_cost": 99, "scheme": "pairwise"}, "scheme='auto'"),
        ({"max_cost": 99, "n_borders": 5}, "n_borders='auto'"),
        ({"min_agreement": 0.9, "refine": False}, "refine=True"),
    ],
)
def test_impossible_limits_are_refused(moons, options, words):
    model, X, _ = moons
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        limes.accelerate(model, X, random_state=0, **options)


def make_sources():
    X, y = make_blobs(900, centers=4, n_features=3, cluster_std=2.0, random_state=1)
    X = X * [1.0, 30.0, 0.1] + [0.0, 1000.0, 5.0]
    kinds = {
        "svm": make_pipeline(StandardScaler(), SVC()),
        "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
        "process": make_pipeline(StandardScaler(), GaussianProcessClassifier(optimizer=None)),
    }
    train = {"process": 200}
    fitted = {
        name: kind.fit(X[: train.get(name, 600)], y[: train.get(name, 600)])
        for name, kind in kinds.items()
    }
    return fitted, X[600:]


SOURCES, ROWS = make_sources()


@pytest.mark.parametrize("name", list(SOURCES))
def test_a_model_that_keeps_its_training_rows_needs_no_rows(name):
    model = SOURCES[name]
    with pytest.warns(UserWarning, match="may be lower on real ones"):
        fast = limes.accelerate(model, random_state=0)
    assert np.mean(fast.predict(ROWS) == model.predict(ROWS)) > 0.93
    assert fast.n_features_in_ == 3


def test_a_model_without_training_rows_needs_rows():
    X, y = make_moons(100, random_state=0)
    with pytest.raises(ValueError, match="X is needed for LogisticRegression"):
        limes.accelerate(LogisticRegression().fit(X, y))
    with pytest.raises(ValueError, match="y has labels"):
        limes.accelerate(SVC().fit(X, y), y=y)


def test_the_candidates_are_drawn(moons):
    pytest.importorskip("matplotlib")
    model, X, _ = moons
    fast = limes.accelerate(model, X, scheme="shared", fallback=False)
    axes = new_figure().add_subplot()
    draw_candidates(fast, axes)
    words = [text.get_text() for text in axes.texts]
    # Names that would overlap are left out, but not that of the selected candidate.
    assert 2 < len(words) <= len(fast.candidates_)
    assert any(word.startswith(f"{fast.n_borders_} point") for word in words)
    _, labels = axes.get_legend_handles_labels()
    shapes = {item.shape for item in fast.candidates_}
    assert {f"candidates, {shape} base" for shape in shapes} <= set(labels)
    with pytest.raises(ValueError, match="no trade-off"):
        draw_candidates(limes.accelerate(model, X, scheme="pairwise", random_state=0), axes)
