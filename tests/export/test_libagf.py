import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from limes import BorderMap, BordersClassifier, accelerate
from limes.export.libagf import read_libagf_model, to_libagf
from limes.model import Model
from limes.model.affine import AffineMap
from limes.model.schemes import PairwiseScheme
from tests.export.cases import binary_blended, blobs, fitted, moons, rows_like, trees

PAPER = {"scheme": "pairwise", "blend": 1, "refine": False, "random_state": 0}


@pytest.fixture(scope="module")
def four():
    X, y = blobs(labels=[4, 2, 9, -1])
    return accelerate(SVC(gamma=0.1).fit(X, y), X, n_borders=40, **PAPER)


def written(path, text):
    path.write_text(text)
    return path


def stored(*maps, n_classes=2, n_features=2):
    scheme = PairwiseScheme(tuple(maps), n_classes)
    return BordersClassifier.from_model(Model(scheme, np.arange(n_classes), n_features))


class TestRoundTrip:
    def test_a_classifier_comes_back_with_the_same_labels(self, four, tmp_path):
        path = written(tmp_path / "m.agf", to_libagf(four))
        again = read_libagf_model(path, by_vote=True)
        rows = rows_like(four, 10_000)
        assert_array_equal(again.predict(rows), four.predict(rows))
        assert_allclose(again.predict_proba(rows), four.predict_proba(rows), atol=1e-6)

    def test_its_text_comes_back_to_the_last_digit(self, four, tmp_path):
        text = to_libagf(four)
        assert to_libagf(read_libagf_model(written(tmp_path / "m.agf", text))) == text

    def test_two_classes_come_back(self, tmp_path):
        X, y = moons()
        fast = accelerate(SVC(gamma=2).fit(X, y), X, **PAPER)
        again = read_libagf_model(written(tmp_path / "m.agf", to_libagf(fast)))
        rows = rows_like(fast, 5000)
        assert_array_equal(again.predict(rows), fast.predict(rows))
        assert again.n_borders_ == fast.n_borders_
        assert again.cost_ == fast.cost_
        assert np.isnan(again.agreement_)

    @pytest.mark.parametrize("is_turned", [True, False])
    def test_an_even_scaling_is_taken_out(self, tmp_path, is_turned):
        """Shifted, turned and scaled rows have the same nearest points."""
        X = blobs(3, 3)[0]
        shift = np.array([3.0, -2.0, 1.0])
        turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
        turned, scaled = AffineMap(shift, 0.5 * turn), AffineMap.scaling(shift, np.full(3, 0.5))
        maps = [
            BorderMap.from_borders(
                points=np.random.default_rng(seed).normal(size=(9, 3)),
                normals=np.random.default_rng(seed + 5).normal(size=(9, 3)),
                preprocessing=turned if is_turned else scaled,
            )
            for seed in range(3)
        ]
        fast = stored(*maps, n_classes=3, n_features=3)
        again = read_libagf_model(written(tmp_path / "m.agf", to_libagf(fast)), by_vote=True)
        assert_array_equal(again.predict(X), fast.predict(X))
        assert_allclose(again.predict_proba(X), fast.predict_proba(X), atol=1e-5)

    def test_a_border_with_one_side_keeps_its_value(self, tmp_path):
        curve = BorderMap.from_borders(points=np.eye(2), normals=np.eye(2))
        maps = [curve, BorderMap.constant(np.ones(2), -1.5), BorderMap.constant(np.ones(2), 0.25)]
        fast = stored(*maps, n_classes=3)
        again = read_libagf_model(written(tmp_path / "m.agf", to_libagf(fast)), by_vote=True)
        rows = np.random.default_rng(0).normal(size=(1000, 2))
        assert_array_equal(again.predict(rows), fast.predict(rows))
        assert_allclose(again.predict_proba(rows), fast.predict_proba(rows), atol=1e-5)

    def test_the_only_point_may_stand_anywhere_on_its_plane(self, tmp_path):
        line = BorderMap([[5.0, 5.0]], [[[1.0, 2.0]]], [[-3.0]])
        again = read_libagf_model(written(tmp_path / "m.agf", to_libagf(stored(line))))
        rows = np.random.default_rng(0).normal(size=(100, 2))
        assert_allclose(again.decision_function(rows), rows @ [1.0, 2.0] - 3.0, atol=1e-5)


class TestFormat:
    def test_the_text_is_as_svm_accelerate_writes_it(self):
        """Above zero is the first class of a pair: polarity -1, normals turned round."""
        line = BorderMap.from_borders(points=[[0.5, 1.0]], normals=[[0.0, 2.0]])
        assert to_libagf(stored(line)) == "1v1\n2\n0 1\n-1\n1 2\n0.5 1.0\n1 2\n-0.0 -2.0\n"

    def test_each_polarity_is_understood(self, tmp_path):
        text = "1v1\n2 \n5 3 \n{} \n1 1\n0\n1 1\n1\n"
        rows = np.array([[-1.0], [1.0]])
        ahead = read_libagf_model(written(tmp_path / "a", text.format(1)))
        behind = read_libagf_model(written(tmp_path / "b", text.format(-1)))
        assert ahead.classes_.tolist() == [3, 5]
        assert ahead.predict(rows).tolist() == [5, 3]
        assert behind.predict(rows).tolist() == [3, 5]

    def test_pairs_follow_labels_that_are_not_sorted(self, tmp_path):
        """Three half planes: which class each row wins is known."""
        pairs = ["1 1\n0\n1 1\n1\n", "1 1\n1\n1 1\n1\n", "1 1\n2\n1 1\n1\n"]
        path = written(tmp_path / "m", "1v1\n3\n30 10 20\n1 1 1\n" + "".join(pairs))
        fast = read_libagf_model(path, by_vote=True)
        # Below 0: 30 wins both its pairs. From 0 to 2: 10 wins both. Above 2: 20 does.
        assert fast.predict([[-1.0], [1.5], [3.0]]).tolist() == [30, 10, 20]

    def test_classes_are_decided_by_coupling_unless_by_vote_is_given(self, four, tmp_path):
        path = written(tmp_path / "m.agf", to_libagf(four))
        assert not read_libagf_model(path).scheme_.by_vote
        assert read_libagf_model(path, by_vote=True).scheme_.by_vote

    def test_scaled_rows_can_be_chosen(self, tmp_path):
        X, y = blobs(4, 3)
        X = X * [1, 20, 3, 400]
        source = make_pipeline(StandardScaler(), PCA(3), SVC(gamma=0.2)).fit(X, y)
        fast = accelerate(source, X, n_borders=30, **PAPER)
        with pytest.raises(ValueError, match=r"Scale the rows first.*scaled=True"):
            to_libagf(fast)
        path = written(tmp_path / "m.agf", to_libagf(fast, scaled=True))
        again = read_libagf_model(path, by_vote=True)
        assert_array_equal(again.predict(source[:-1].transform(X)), fast.predict(X))


class TestRefusedModels:
    def test_another_scheme_is_named(self):
        X, y = blobs(labels=[4, 2, 9, -1])
        fast = accelerate(SVC().fit(X, y), X, **{**PAPER, "scheme": "tree"})
        with pytest.raises(ValueError, match=r"one border a pair or a class, got scheme 'tree'"):
            to_libagf(fast)

    def test_a_blend_is_refused(self):
        with pytest.raises(ValueError, match="nearest point only, got blend=4: fit with blend=1"):
            to_libagf(fitted(binary_blended))

    def test_planes_beside_their_points_are_refused(self):
        line = BorderMap(np.eye(2), np.ones((2, 1, 2)), np.zeros((2, 1)))
        with pytest.raises(ValueError, match=r"go through their points.*refine=False"):
            to_libagf(stored(line))

    @pytest.mark.parametrize("labels", [["a", "b"], [0.5, 1.5], [0, 2**31]])
    def test_labels_that_are_no_whole_numbers_are_refused(self, labels):
        fast = stored(BorderMap.from_borders(points=[[0.0, 0.0]], normals=[[0.0, 2.0]]))
        fast.classes_ = np.array(labels)
        with pytest.raises(
            ValueError, match="labels must be whole numbers of 32 bits for libAGF, got"
        ):
            to_libagf(fast)

    def test_text_labels_of_a_fitted_classifier_are_refused(self):
        X, y = trees()
        with pytest.raises(ValueError, match="LabelEncoder"):
            to_libagf(accelerate(SVC().fit(X, y), X, n_borders=3, **PAPER))


GOOD = ["1v1", "2", "3 7", "-1", "2 2", "0 0", "1 1", "2 2", "1 0", "0 1"]


class TestBadFiles:
    @pytest.mark.parametrize(
        ("line", "text", "expected"),
        [
            (1, "1vX", "'1v1'"),
            (1, "ADJ", "'1v1'"),
            (1, "", "'1v1'"),
            (2, "1", "2 or more"),
            (2, "two", "number of classes"),
            (2, "2 2", "2 or more"),
            (2, "-2", "2 or more"),
            (2, "9" * 30, "number of classes"),
            (2, "999999999999", "999999999999 labels that differ"),
            (3, "3 3", "labels that differ"),
            (3, "3", "2 labels"),
            (3, "3 2147483648", "labels that differ"),
            (3, "3 --7", "2 labels"),
            (4, "0", "1 or -1"),
            (4, "1 1", "1 or -1"),
            (5, "2", "both at least 1"),
            (5, "0 2", "both at least 1"),
            (5, "2 -2", "both at least 1"),
            (6, "0", "2 numbers"),
            (6, "0 zero", "2 numbers"),
            (6, "0 nan", "finite"),
            (6, "0 1e999", "finite"),
            (6, "0 1_0", "2 numbers"),
            (8, "3 2", "2 numbers"),
        ],
    )
    def test_a_wrong_line_is_named(self, tmp_path, line, text, expected):
        lines = [*GOOD[: line - 1], text, *GOOD[line:]]
        path = written(tmp_path / "m.agf", "\n".join(lines) + "\n")
        with pytest.raises(ValueError) as raised:
            read_libagf_model(path)
        message = str(raised.value)
        assert message.startswith(f"{path}, line ")
        assert expected in message
        assert "\n" not in message

    def test_the_good_file_is_read(self, tmp_path):
        read_libagf_model(written(tmp_path / "m.agf", "\n".join(GOOD)))

    @pytest.mark.parametrize("n_lines", range(len(GOOD)))
    def test_a_file_cut_short_is_refused(self, tmp_path, n_lines):
        path = written(tmp_path / "m.agf", "\n".join(GOOD[:n_lines]) + "\n")
        with pytest.raises(ValueError, match=f"line {max(n_lines, 1)}|the end of the file"):
            read_libagf_model(path)

    def test_more_than_a_model_is_refused(self, tmp_path):
        path = written(tmp_path / "m.agf", "\n".join([*GOOD, "", "1 2"]))
        with pytest.raises(ValueError, match="line 12: expected the end of the file"):
            read_libagf_model(path)

    def test_pairs_of_different_features_are_refused(self, tmp_path):
        one, two = ["1 1", "0", "1 1", "1"], ["1 2", "0 0", "1 2", "1 1"]
        lines = ["1v1", "3", "1 2 3", "1 1 1", *one, *two, *one]
        with pytest.raises(ValueError, match="1 features in every map, got 2"):
            read_libagf_model(written(tmp_path / "m.agf", "\n".join(lines)))

    def test_numbers_too_large_to_compute_with_are_refused(self, tmp_path):
        lines = [*GOOD[:5], "1e300 0", *GOOD[6:]]
        path = written(tmp_path / "m.agf", "\n".join(lines))
        with pytest.raises(ValueError, match=r"m\.agf: expected numbers of moderate size"):
            read_libagf_model(path)

    def test_a_promise_of_many_rows_takes_no_memory(self, tmp_path):
        lines = [*GOOD[:4], "999999999999 2", *GOOD[5:]]
        with pytest.raises(ValueError, match="expected 2 numbers"):
            read_libagf_model(written(tmp_path / "m.agf", "\n".join([*lines[:7]])))

    def test_a_larger_file_than_allowed_is_not_read(self, tmp_path):
        with pytest.raises(ValueError, match="at most max_bytes=10, found"):
            read_libagf_model(written(tmp_path / "m.agf", "\n".join(GOOD)), max_bytes=10)

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
    def test_what_is_no_plain_file_is_refused_at_once(self, make, tmp_path):
        make(tmp_path / "m.agf")
        with pytest.raises(ValueError, match="expected a plain file"):
            read_libagf_model(tmp_path / "m.agf")
