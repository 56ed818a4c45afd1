"""The whole fit: what the default selects, and which placement a scheme reports."""

import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import limes
from limes.fit.borders import PLACEMENTS
from limes.scores import uncertainty_coefficient
from tests.fit.cases import accelerate_pairwise, points_of


def test_the_default_selects_few_points_and_reports_their_skill_loss():
    X, y = make_moons(4000, noise=0.25, random_state=0)
    svc = SVC(C=10, gamma=2).fit(X, y)
    fast = limes.accelerate(svc, X, scheme="shared", fallback=False)
    selected = next(item for item in fast.candidates_ if item.is_selected)
    assert selected.skill_loss <= 0.004
    assert selected.n_borders <= 64
    assert [item.cost for item in fast.candidates_] == sorted(
        item.cost for item in fast.candidates_
    )
    # A single linear function is not enough for two moons.
    assert fast.candidates_[0].n_borders == 1
    assert fast.candidates_[0].skill_loss > 0.05
    unseen, true = make_moons(20_000, noise=0.25, random_state=1)
    skill = [uncertainty_coefficient(true, model.predict(unseen)) for model in (svc, fast)]
    assert skill[0] - skill[1] < 0.01


@pytest.mark.parametrize("scheme", ["pairwise", "one-vs-rest", "tree", "shortlist"])
def test_every_scheme_of_border_points_has_a_placement(scheme, eight_blobs_svm, eight_blobs):
    fast = accelerate_pairwise(eight_blobs_svm, eight_blobs[0], scheme=scheme, refine=False)
    assert fast.placement_ in PLACEMENTS


@pytest.mark.parametrize("placement", ["auto", "near"])
def test_trained_maps_have_no_placement(placement, eight_blobs_svm, eight_blobs):
    for scheme in ("shared", "tree"):
        fast = accelerate_pairwise(
            eight_blobs_svm, eight_blobs[0], scheme=scheme, placement=placement
        )
        assert fast.placement_ is None


def test_a_border_at_a_threshold_has_a_placement(eight_blobs):
    X, y = eight_blobs
    svm = SVC(C=10, gamma=1.0).fit(X, y > 3)
    fast = limes.accelerate(svm, X, threshold=0.9, random_state=0)
    assert fast.placement_ in PLACEMENTS


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_placement_does_not_depend_on_the_number_of_threads(
    n_jobs, eight_blobs_svm, eight_blobs
):
    first = accelerate_pairwise(eight_blobs_svm, eight_blobs[0])
    again = accelerate_pairwise(eight_blobs_svm, eight_blobs[0], n_jobs=n_jobs)
    assert again.placement_ == first.placement_
    assert_array_equal(points_of(again), points_of(first))


def test_the_placement_is_printed_and_stored(eight_blobs_svm, eight_blobs, capsys, tmp_path):
    fast = accelerate_pairwise(eight_blobs_svm, eight_blobs[0], verbose=1)
    output = capsys.readouterr().out
    for placement in PLACEMENTS:
        assert f"placement {placement}:" in output
    (line,) = [line for line in output.splitlines() if line.endswith("selected")]
    assert line.startswith(f"placement {fast.placement_}:")
    fast.save(tmp_path / "fast.limes")
    assert limes.load(tmp_path / "fast.limes").placement_ == fast.placement_
