"""Any numbers and any text are read from a file as they were written."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_array_equal
from scipy import sparse

from limes.files import RowOptions, create_rows, read_rows
from limes.files.libsvm import parse_lines

pytest.importorskip("pyarrow")

SHAPES = array_shapes(min_dims=2, max_dims=2, max_side=6)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SMALL = st.floats(allow_nan=False, allow_infinity=False, width=32)
# Without line ends, and without zeros, which NumPy's fixed-width text drops at its end.
WORDS = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1)
quick = settings(max_examples=60, deadline=None)


def written_and_read(name, X, y, options=None):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        with create_rows(path) as writer:
            writer.write(X, y)
        X_read, labels, _ = read_rows(path, options)
    return X_read.toarray() if sparse.issparse(X_read) else X_read, labels


@quick
@given(arrays(np.float64, SHAPES, elements=FLOATS), st.integers(-(2**31) + 1, 2**31 - 1))
@pytest.mark.parametrize("name", ["rows.svm", "rows.csv", "rows.parquet", "rows.npz"])
def test_numbers_are_read_to_the_last_bit(name, X, label):
    labels = np.full(len(X), label)
    options = RowOptions(n_features=X.shape[1]) if name == "rows.svm" else None
    X_read, y = written_and_read(name, X, labels, options)
    assert_array_equal(X_read, X)
    assert_array_equal(y, labels)


@quick
@given(arrays(np.float32, SHAPES, elements=SMALL), st.integers(-(2**31) + 1, 2**31 - 1))
def test_float32_is_read_from_libagf(X, label):
    X_read, y = written_and_read("rows.vec", X, np.full(len(X), label))
    assert_array_equal(X_read, X)
    assert_array_equal(y, np.full(len(X), label))


@quick
@given(st.lists(WORDS, min_size=1, max_size=5))
@example(['a "quoted", word', "'", ";", "\t", " x ", "é"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.npz"])
def test_text_is_read_as_labels(name, words):
    labels = np.array([*words, "a word that is no number"])
    _, y = written_and_read(name, np.ones((len(labels), 2)), labels)
    assert_array_equal(y, labels)


@quick
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_as_libsvm_text(data):
    try:
        lines = parse_lines(data + b"\n", name="file", first_line=1)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert refusal.startswith("file, line ")
        return
    assert lines.counts.sum() == len(lines.features) == len(lines.values)
    assert lines.rows(lines.n_features).shape == (len(lines.labels), lines.n_features)


LINE = st.from_regex(rb"[-+]?[0-9]{1,4}( [1-9]:-?[0-9]\.[0-9]{1,3}){0,2} ?", fullmatch=True)


@quick
@given(st.lists(LINE, min_size=1, max_size=5))
def test_text_is_read_as_by_scikit_learn_or_refused_by_both(lines):
    from io import BytesIO

    from sklearn.datasets import load_svmlight_file

    text = b"\n".join(lines) + b"\n"
    try:
        X, y = load_svmlight_file(BytesIO(text), zero_based=False)
    except ValueError:
        with pytest.raises(ValueError, match="each above the one before"):
            parse_lines(text, name="file", first_line=1)
        return
    parsed = parse_lines(text, name="file", first_line=1)
    assert_array_equal(parsed.labels, y)
    assert_array_equal(parsed.rows(9).toarray()[:, : X.shape[1]], X.toarray())
