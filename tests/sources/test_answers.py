"""Sources that change their rows or answer badly: one sentence each, and X as it was."""

from contextlib import suppress

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import limes
from limes.sources.answers import read_only

pytestmark = pytest.mark.usefixtures("quick_fit")


@pytest.fixture
def rows():
    return make_moons(300, noise=0.2, random_state=0)


def decide(X):
    """Return decision values that any rows have."""
    return X[:, 0] * X[:, 1] - 0.2


def zero_rows(X):
    values = decide(X)
    X.flags.writeable = True
    X[:] = 0.0
    return values


class FailsOnThird:
    """A function that raises on every third call."""

    __name__ = "FailsOnThird"

    def __init__(self):
        self.n_calls = 0

    def __call__(self, X):
        self.n_calls += 1
        if self.n_calls % 3 == 0:
            raise RuntimeError("the service\nis down")
        return decide(X)


BAD_SOURCES = {
    "zeroes": (zero_rows, "the source zero_rows changes the rows that it is given"),
    "third call": (
        FailsOnThird(),
        "FailsOnThird failed on .* with RuntimeError: the service is",
    ),
    "shape": (lambda X: decide(X)[:-1], r"returned an array of shape \(0,\) for 1 rows"),
    "cube": (lambda X: decide(X)[:, None, None], r"shape \(1, 1, 1\) for 1 rows: expected"),
    "scalar": (lambda X: 1.0, "returned float for 1 rows: expected an array"),
    "NaN": (lambda X: np.where(X[:, 0] > 0, np.nan, 1.0), r"returned NaN for \d+ of \d+ rows"),
    "strings": (lambda X: np.where(X[:, 0] > 0, "a", "b"), "returned '[ab]' as a decision value"),
    "generator": (lambda X: (value for value in decide(X)), "returned a generator for 1 rows"),
    "None": (lambda X: None, "returned NoneType for 1 rows: expected an array"),
    "sparse": (lambda X: sparse.csr_array(X[:, :1]), "returned csr_array for 1 rows"),
    "ragged": (lambda X: [[1.0], [1.0, 2.0]], "returned a list for 1 rows"),
}


@pytest.mark.parametrize("scheme", ["auto", "pairwise"])
@pytest.mark.parametrize("name", BAD_SOURCES)
def test_a_bad_answer_is_one_sentence_and_leaves_the_rows(rows, name, scheme):
    X, (source, expected) = rows[0], BAD_SOURCES[name]
    before = X.tobytes()
    with pytest.raises(ValueError, match=expected) as caught:
        limes.accelerate(source, X, scheme=scheme)
    assert "\n" not in str(caught.value)
    assert X.tobytes() == before
    assert X.flags.writeable


@pytest.mark.parametrize("noise", [1.0, 0.01])
def test_answers_that_differ_when_asked_twice_are_refused(rows, noise):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="gives other answers when it is asked again, for"):
        limes.accelerate(lambda X: decide(X) + rng.normal(0, noise, len(X)), rows[0])


ROW_DEPENDENT = {
    "mean": lambda X: decide(X) - decide(X).mean(),
    "number": lambda X: decide(X) * (-1) ** len(X),
    "order": lambda X: np.arange(len(X)) - 100.0,
}


@pytest.mark.parametrize("name", ROW_DEPENDENT)
def test_answers_that_depend_on_other_rows_are_refused(rows, name):
    with pytest.raises(ValueError, match="let each answer depend on its own row alone"):
        limes.accelerate(ROW_DEPENDENT[name], rows[0])


GOOD_ANSWERS = {
    "truth values": lambda X: decide(X) > 0,
    "objects": lambda X: np.array(decide(X).tolist(), dtype=object),
    "tiny": lambda X: 1e-12 * decide(X),
    "huge": lambda X: 1e200 * decide(X),
    "scores of three": lambda X: 1e-9 * np.column_stack([decide(X), -decide(X), X[:, 0] - 1]),
    "list": lambda X: decide(X).tolist(),
}


@pytest.mark.parametrize("name", GOOD_ANSWERS)
def test_numbers_of_any_type_and_size_are_taken(rows, name):
    fast = limes.accelerate(GOOD_ANSWERS[name], rows[0])
    values = np.asarray(GOOD_ANSWERS[name](rows[0]), dtype=float)
    labels = values > 0 if values.ndim == 1 else values.argmax(axis=1)
    assert np.mean(fast.predict(rows[0]) == labels) > 0.9


def test_a_forest_whose_threads_add_in_any_order_is_no_such_source(rows):
    forest = RandomForestClassifier(20, n_jobs=2, random_state=0).fit(*rows)
    assert limes.accelerate(forest, rows[0]).agreement_ > 0.8


class Writer(ClassifierMixin, BaseEstimator):
    """A classifier that writes into the rows that it is fitted on, or asked for."""

    def __init__(self, when="fit"):
        self.when = when

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(np.array(X), y)
        self.classes_ = self.inner_.classes_
        if self.when == "fit":
            self._write(X)
        return self

    def predict_proba(self, X):
        answer = self.inner_.predict_proba(np.array(X))
        if self.when == "predict":
            self._write(X)
        return answer

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _write(self, X):
        if hasattr(X, "iloc"):
            X.iloc[:, :] = 0.0
        elif sparse.issparse(X):
            X.data[:] = 0.0
        else:
            X[:] = 0.0


class SparseWriter(Writer):
    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X.copy(), y)
        self.classes_ = self.inner_.classes_
        self._write(X)
        return self


@pytest.mark.parametrize("when", ["fit", "predict"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_classifier_cannot_change_an_array(rows, when, order):
    X = np.array(rows[0], order=order)
    before = X.copy()
    with pytest.raises(ValueError, match="Writer changes the rows that it is given"):
        limes.BordersClassifier(Writer(when)).fit(X, rows[1])
    assert np.array_equal(X, before)


@pytest.mark.parametrize("when", ["fit", "predict"])
def test_a_classifier_cannot_change_a_data_frame(rows, when):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows[0], columns=["a", "b"])
    before = frame.copy(deep=True)
    # A frame may replace its columns instead of writing into them.
    with suppress(ValueError):
        limes.BordersClassifier(Writer(when)).fit(frame, rows[1])
    assert frame.equals(before)


def test_a_classifier_cannot_change_a_sparse_matrix(rows):
    X = sparse.csr_array(rows[0])
    before = X.copy()
    with pytest.raises(ValueError, match="SparseWriter changes the rows that it is given"):
        limes.BordersClassifier(SparseWriter()).fit(X, rows[1])
    assert (before != X).nnz == 0


def test_an_svm_is_fitted_on_rows_of_all_kinds_without_a_copy(rows):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    for kind in (
        X,
        sparse.csr_array(X),
        sparse.csr_matrix(X),
        pandas.DataFrame(X, columns=["a", "b"]),
    ):
        fast = limes.BordersClassifier(SVC(gamma=2)).fit(kind, y)
        assert np.mean(fast.predict(kind) == y) > 0.9


def test_probabilities_that_are_none_are_refused(rows):
    class Wrong(Writer):
        def predict_proba(self, X):
            return super().predict_proba(X) - 0.5

    model = Wrong("never").fit(*rows)
    with pytest.raises(
        ValueError, match=r"Wrong returned -0\.\d+ as a probability: expected 0 to 1"
    ):
        limes.accelerate(model, rows[0])


def test_a_source_that_fails_in_a_report_is_named(rows):
    class Fails(Writer):
        def predict(self, X):
            if getattr(self, "is_down", False):
                raise RuntimeError("the service is down")
            return super().predict(X)

    model = Fails("never").fit(*rows)
    fast = limes.accelerate(model, rows[0])
    model.is_down = True
    with pytest.raises(ValueError, match=r"the source Fails failed on \d+ rows with Runtime"):
        fast.report(rows[0])


def test_a_source_that_needs_writable_rows_is_given_copies(rows):
    class Compiled(Writer):
        def predict(self, X):
            if not X.flags.writeable:
                raise ValueError("buffer source array is read-only")
            return super().predict(X)

    fast = limes.accelerate(Compiled("never").fit(*rows), rows[0])
    assert fast.report(rows[0]).agreement > 0.9


def test_labels_that_are_no_classes_are_refused(rows):
    class Wrong(Writer):
        def predict(self, X):
            return np.full(len(X), 7)

    model = Wrong("never").fit(*rows)
    with pytest.raises(ValueError, match="predicted the label 7, which is not one of its classes_"):
        limes.accelerate(model, rows[0])


class TestReadOnly:
    def test_arrays_share_memory_and_cannot_be_made_writable(self, rows):
        view = read_only(rows[0])
        assert np.shares_memory(view, rows[0])
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True

    def test_sparse_matrices_share_memory(self, rows):
        X = sparse.csr_matrix(rows[0])
        view = read_only(X)
        assert np.shares_memory(view.data, X.data)
        with pytest.raises(ValueError, match="read-only"):
            view.data[0] = 1.0
        X.data[0] = X.data[0]

    def test_data_frames_keep_types_and_names(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": ["x", "y"]}, index=[5, 7])
        frame["d"] = frame["c"].astype("category")
        view = read_only(frame)
        assert view.equals(frame)
        assert list(view.dtypes) == list(frame.dtypes)
        assert np.shares_memory(view["b"].to_numpy(), frame["b"].to_numpy())

    def test_frames_of_polars_are_cloned(self):
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame({"a": [1.0, 2.0]})
        view = read_only(frame)
        view[0, "a"] = 9.0
        assert frame["a"].to_list() == [1.0, 2.0]


class TestLabels:
    def test_one_class_is_refused(self, rows):
        X, one = rows[0], np.zeros(300, dtype=int)
        for fit in (
            lambda: limes.accelerate(decide, X, one),
            lambda: limes.accelerate(SVC().fit(*rows), X, one),
            lambda: limes.BordersClassifier().fit(X, one),
        ):
            with pytest.raises(ValueError, match=r"one class|no row of the class"):
                fit()

    def test_names_that_do_not_match_get_the_error_of_scikit_learn(self, rows):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(rows[0], columns=["a", "b"])
        model = SVC().fit(frame, rows[1])
        for other in (frame[["b", "a"]], frame.rename(columns={"a": "c"})):
            with pytest.raises(ValueError, match="The feature names should match"):
                limes.accelerate(model, other)
