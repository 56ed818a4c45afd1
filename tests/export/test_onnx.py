import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from limes import BorderMap, BordersClassifier
from limes.model import Model
from limes.model.schemes import PairwiseScheme, Scheme
from tests.export.cases import (
    CASES,
    binary,
    blobs,
    coupled,
    expected,
    fitted,
    on_borders,
    one_vs_rest,
    rows_like,
    trees,
    truth_labels,
    votes,
    votes_projected,
)

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from limes.export.onnx import (  # noqa: E402
    register,
    to_onnx,
)

# The largest difference in probability that was measured, over all cases and 10 000 rows each, is
# 3.3e-6 in float32 and 1.3e-14 in float64.
# Of labels, none of 10 000 differed in any case: what the bounds on rounding would allow is more.
MAX_DIFFERENT = 2
TOLERANCE = {"float32": 1e-5, "float64": 1e-6}


def predictions(model, X):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_onnxruntime_gives_the_labels_and_probabilities_of_python(case, dtype):
    known = expected(case, dtype)
    labels, probabilities = predictions(to_onnx(known.fast, dtype=dtype), known.rows.astype(dtype))
    differs = labels != known.labels
    assert not differs[~known.is_open].any()
    assert differs.sum() <= MAX_DIFFERENT
    known.assert_probabilities(probabilities, TOLERANCE[dtype])
    assert probabilities.dtype == dtype
    assert_array_equal(known.fast.classes_[probabilities.argmax(axis=1)], labels)


@pytest.mark.parametrize("blend", [1, 2, 3])
def test_equally_near_points_are_taken_in_their_order(blend):
    """Whole numbers, whose sums are exact, so that many rows are equally near to two points."""
    rng = np.random.default_rng(0)
    points = rng.integers(-3, 4, size=(20, 2))
    maps = tuple(
        BorderMap(points, rng.integers(-3, 4, size=(20, 1, 2)), np.zeros((20, 1)), blend=blend)
        for _ in range(3)
    )
    stored = Model(PairwiseScheme(maps, 3), np.arange(3), 2)
    fast = BordersClassifier.from_model(stored)
    rows = rng.integers(-4, 5, size=(500, 2)).astype(np.float32)
    distances = np.sort(np.square(rows[:, None] - points).sum(axis=2), axis=1)
    assert np.sum(distances[:, blend - 1] == distances[:, blend]) > 50
    labels, _ = predictions(to_onnx(fast), rows)
    is_zero = (fast.scheme_.values(rows) == 0).any(axis=1)
    assert_array_equal(labels[~is_zero], fast.predict(rows)[~is_zero])


def test_a_value_of_zero_votes_as_in_python():
    fast, rows = on_borders()
    assert np.sum(fast.scheme_.values(rows) == 0) > 100
    labels, _ = predictions(to_onnx(fast), rows)
    assert_array_equal(labels, fast.predict(rows))


def test_the_type_is_that_of_the_classifier_unless_another_is_given():
    def kind(model):
        return model.graph.input[0].type.tensor_type.elem_type

    assert kind(to_onnx(fitted(binary))) == onnx.TensorProto.FLOAT
    assert kind(to_onnx(fitted(votes_projected))) == onnx.TensorProto.DOUBLE
    assert kind(to_onnx(fitted(votes_projected), dtype="float32")) == onnx.TensorProto.FLOAT


def test_only_standard_operators_are_used():
    model = to_onnx(fitted(votes))
    assert [opset.domain for opset in model.opset_import] == [""]
    assert {node.domain for node in model.graph.node} == {""}


def test_the_graph_of_many_pairs_is_as_short_as_that_of_few():
    X, y = blobs(2, 12)
    many = BordersClassifier(SVC(), scheme="pairwise", n_borders=5, random_state=0).fit(X, y)
    few = len(to_onnx(fitted(votes)).graph.node)
    # Eight nodes for each further class: a step of the elimination.
    assert len(to_onnx(many).graph.node) < few + 9 * 8


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_no_rows_give_no_predictions(case):
    fast = fitted(case)
    rows = np.empty((0, fast.n_features_in_), np.float32)
    labels, probabilities = predictions(to_onnx(fast, dtype="float32"), rows)
    assert labels.shape == (0,)
    assert probabilities.shape == (0, len(fast.classes_))


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (np.array([0, 2**64 - 1], dtype=np.uint64), np.uint64),
        (np.array([1, 2], dtype=np.int8), np.int64),
        (np.array([0.5, 2.5]), np.float64),
        (np.array(["no", "ja"], dtype=object), object),
    ],
    ids=["uint64", "int8", "float64", "text"],
)
def test_labels_keep_their_values(classes, expected):
    line = BorderMap.from_borders(points=[[0.0]], normals=[[2.0]])
    fast = BordersClassifier.from_model(Model(PairwiseScheme((line,), 2), classes, 1))
    labels, _ = predictions(to_onnx(fast), np.array([[-1.0], [1.0]], dtype=np.float32))
    assert labels.tolist() == classes.tolist()
    assert labels.dtype == expected


class TestBadInput:
    def test_what_is_no_classifier_of_ours_is_refused(self):
        with pytest.raises(TypeError, match="BordersOutlierDetector, got SVC"):
            to_onnx(SVC())

    def test_an_unfitted_classifier_says_so(self):
        with pytest.raises(ValueError, match="not fitted"):
            to_onnx(BordersClassifier())

    def test_an_unknown_type_is_refused(self):
        with pytest.raises(ValueError, match=r"dtype must be .* got 'float16'"):
            to_onnx(fitted(binary), dtype="float16")

    def test_a_scheme_that_is_not_known_is_named(self):
        class Other(PairwiseScheme):
            name = "other"

        scheme = fitted(binary).scheme_
        stored = Model(Other(scheme.maps, 2), np.arange(2), 2)
        with pytest.raises(ValueError, match=r"supports the schemes \[.*\], got 'other'"):
            to_onnx(BordersClassifier.from_model(stored))

    def test_numbers_beyond_float32_are_refused(self):
        line = BorderMap.from_borders(points=[[1e50]], normals=[[2.0]])
        scheme: Scheme = PairwiseScheme((line,), 2, True)
        fast = BordersClassifier.from_model(Model(scheme, np.arange(2), 1))
        with pytest.raises(ValueError, match="too large for float32"):
            to_onnx(fast, dtype="float32")
        to_onnx(fast)


class TestSkl2onnx:
    """Pipelines, converted by the package for scikit-learn."""

    skl2onnx = pytest.importorskip("skl2onnx")

    @pytest.mark.usefixtures("quick_fit")
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_a_pipeline_converts(self, dtype):
        register()
        X, y = trees()
        fast = BordersClassifier(SVC(gamma=0.1), scheme="shared", fallback=False)
        pipe = make_pipeline(StandardScaler(), fast)
        rows = X.astype(dtype)
        pipe.fit(X, y)
        model = self.skl2onnx.to_onnx(pipe, rows[:1], options={"zipmap": False})
        labels, probabilities = predictions(model, rows)
        assert_array_equal(labels, pipe.predict(rows))
        assert_allclose(probabilities, pipe.predict_proba(rows), atol=1e-5)

    @pytest.mark.parametrize("case", [binary, coupled, one_vs_rest, truth_labels])
    def test_a_classifier_alone_converts(self, case):
        register()
        fast, rows = fitted(case), rows_like(fitted(case), 200)
        model = self.skl2onnx.to_onnx(fast, rows[:1], options={"zipmap": False})
        labels, probabilities = predictions(model, rows)
        assert_array_equal(labels.astype(fast.classes_.dtype), fast.predict(rows))
        assert_allclose(probabilities, fast.predict_proba(rows), atol=1e-5)

    @pytest.mark.usefixtures("quick_fit")
    def test_two_of_them_in_one_graph_do_not_meet(self):
        from sklearn.ensemble import VotingClassifier

        register()
        X, y = blobs(2, 3)
        both = VotingClassifier(
            [(name, BordersClassifier(SVC(), n_borders=16)) for name in ("a", "b")],
            voting="soft",
            flatten_transform=False,
        ).fit(X, y)
        rows = X.astype(np.float32)
        model = self.skl2onnx.to_onnx(both, rows[:1], options={id(both): {"zipmap": False}})
        assert_array_equal(predictions(model, rows)[0], both.predict(rows))

    def test_labels_that_are_no_whole_numbers_are_refused(self):
        register()
        line = BorderMap.from_borders(points=[[0.0]], normals=[[2.0]])
        stored = Model(PairwiseScheme((line,), 2), np.array([0.5, 1.5]), 1)
        fast = BordersClassifier.from_model(stored)
        with pytest.raises(RuntimeError, match="labels should be integers or strings"):
            self.skl2onnx.to_onnx(fast, np.zeros((1, 1), np.float32))
