"""Scaling that came with a model: svm-scale, R's e1071, Orfeo ToolBox, GRASS GIS."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data

from limes._typing import Array
from limes.files.batches import MAX_FEATURES
from limes.files.streams import NumberedLines
from limes.files.xml import read_xml
from limes.model.affine import AffineMap, to_dense
from limes.sources.pipelines import as_affine

# Larger files hold something else: a million features with all digits are shorter.
MAX_FILE_BYTES = 1 << 26
# Features for each byte of a file of ranges: the step has two numbers for each up to the highest.
MAX_EXPANSION = 1 << 12
MIN_BOUND_FEATURES = 1 << 20
# Possessive quantifiers: there is no backtracking, so long text fails in linear time.
NUMBER = re.compile(rb"[-+]?(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?\d{1,5}+)?+")
INDEX = re.compile(rb"\d{1,9}")


class FeatureScaling(TransformerMixin, BaseEstimator):
    """A step that subtracts a number from each feature and multiplies by another.

    Before a classifier in a ``Pipeline``, it becomes part of the fast model.

    Parameters
    ----------
    shift, scale : ndarray of shape (n_features,)
        Feature j becomes ``(x[j] - shift[j]) * scale[j]``.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of a row.

    Examples
    --------
    >>> FeatureScaling(np.array([1.0]), np.array([0.5])).transform([[3.0]])
    array([[1.]])
    """

    def __init__(self, shift: Array, scale: Array) -> None:
        self.shift = shift
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the step unchanged: its numbers are given.

        Parameters
        ----------
        X, y : object
            Ignored.

        Returns
        -------
        FeatureScaling
            The same object.
        """
        return self

    def transform(self, X: Any) -> Array:
        """Scale rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Scaled rows.
        """
        rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        return (to_dense(rows) - self.shift) * self.scale

    @property
    def n_features_in_(self) -> int:
        """Number of features of a row."""
        return len(self.shift)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@as_affine.register
def _(step: FeatureScaling) -> AffineMap:
    return AffineMap.scaling(step.shift, step.scale)


class Scaling(NamedTuple):
    """What a scaling file holds: numbers of the features it lists, by their index.

    Features that it does not list become 0 if `drops_others`; else they must not exist.
    """

    indices: NDArray[Any]
    shift: Array
    scale: Array
    drops_others: bool

    def for_features(self, n_features: int, first_index: int, name: str) -> FeatureScaling:
        """Return the step for rows of so many features."""
        places = self.indices.astype(np.intp) - (first_index if self.drops_others else 0)
        if not self.drops_others and len(places) != n_features:
            raise ValueError(
                f"{name}: expected the scaling of {n_features} features, as the model has, found "
                f"{len(places)}."
            )
        if len(places) and not 0 <= places.min() <= places.max() < n_features:
            raise ValueError(f"{name}: expected features of the model, found {places.max() + 1}.")
        shift, scale = np.zeros(n_features), np.zeros(n_features)
        shift[places], scale[places] = self.shift, self.scale
        return FeatureScaling(shift, scale)

    def width(self, first_index: int) -> int:
        """Return the number of features that rows must have at least."""
        if not self.drops_others:
            return len(self.indices)
        return int(self.indices.max(initial=first_index - 1)) - first_index + 1


def read_scaling(path: str | os.PathLike[str]) -> Scaling:
    """Read the scaling of features: a file of svm-scale, R's write.svm, OTB or GRASS.

    - ``svm-scale -s`` writes ``x``, the limits, and index, minimum and maximum of each feature;
    - ``e1071::write.svm`` writes one line a feature, its centre and its deviation;
    - ``i.svm.train`` of GRASS GIS writes ``rescale``, one number a band, by which it is divided;
    - Orfeo ToolBox writes an XML file with the vectors ``mean`` and ``stddev``.
    """
    name = os.fspath(path)
    with Path(path).open("rb") as stream:
        n_bytes = os.fstat(stream.fileno()).st_size
        if n_bytes > MAX_FILE_BYTES:
            raise ValueError(f"{name}: expected a file of scaling, found one of a larger size.")
        preamble = stream.read(64).lstrip()
        stream.seek(0)
        if preamble.startswith((b"<", b"\xef\xbb\xbf<")):
            return _read_statistics(stream.read(), name)
        lines = NumberedLines(stream, name)
        if preamble[:1] in (b"x", b"y"):
            ranges = read_svm_ranges(lines)
            _check_highest(max(ranges.features, default=1), n_bytes, name)
            return ranges.scaling(name)
        return _read_centres(lines)


def _check_highest(index: int, n_bytes: int, name: str) -> None:
    """Raise an error for a feature whose index would take much memory for a short file."""
    largest = max(MIN_BOUND_FEATURES, MAX_EXPANSION * n_bytes)
    if index > largest:
        raise ValueError(
            f"{name}: expected features up to {largest} in a file of {n_bytes} bytes, found "
            f"{index}."
        )


class SvmRanges(NamedTuple):
    """What a file of ``svm-scale -s`` holds: limits, and the range of each feature by its index."""

    limits: tuple[float, float]
    features: dict[int, tuple[float, float]]
    # Limits and range of the labels, if these were scaled.
    labels: tuple[tuple[float, float], tuple[float, float]] | None

    def scaling(self, name: str) -> Scaling:
        """Return the same as shift and scale."""
        lower, upper = self.limits
        lows, highs = np.array(list(self.features.values())).reshape(-1, 2).T
        with np.errstate(all="ignore"):
            scale = (upper - lower) / (highs - lows)
            shift = lows - lower / scale
        return _checked(Scaling(np.array(list(self.features)), shift, scale, True), name)


def read_svm_ranges(lines: NumberedLines) -> SvmRanges:
    """Read a file of ``svm-scale -s``."""
    labels = None
    if (words := lines.next().split()) == [b"y"]:
        labels = _read_pair(lines), _read_pair(lines)
        words = lines.next().split()
    if words != [b"x"]:
        raise lines.error("'x', after it the limits and the features")
    lower, upper = _read_pair(lines)
    if not lower < upper:
        raise lines.error("a lower limit and an upper one above it")
    listed: dict[int, tuple[float, float]] = {}
    while text := lines.next_nonblank():
        words = text.split()
        if len(words) != 3 or not INDEX.fullmatch(words[0]) or int(words[0]) > MAX_FEATURES:
            raise lines.error("the index, minimum and maximum of a feature")
        low, high = _as_numbers(lines, words[1:])
        if int(words[0]) in listed or not low < high or not np.isfinite(high - low):
            raise lines.error("each feature once, its minimum below its maximum")
        listed[int(words[0])] = low, high
    return SvmRanges((lower, upper), listed, labels)


def _read_centres(lines: NumberedLines) -> Scaling:
    """Read the scale file of R's ``write.svm``: centre and deviation of each feature.

    With one number a line it is the ``rescale`` of GRASS GIS: the centres are 0.
    """
    rows: list[list[float]] = []
    while text := lines.next_nonblank():
        words = text.split()
        if len(words) not in (1, 2) or (rows and len(words) != len(rows[0])):
            raise lines.error(
                "a file of scaling: 'x' and limits (svm-scale), or in each line the centre and "
                "deviation of a feature (R's write.svm) or a divisor (GRASS GIS)"
            )
        rows.append(_as_numbers(lines, words))
        if len(rows) > MAX_FEATURES:
            raise lines.error(f"at most {MAX_FEATURES} features")
    if not rows:
        raise ValueError(f"{lines.name}: expected the scaling of features, found an empty file.")
    numbers = np.array(rows)
    centres = np.zeros(len(rows)) if numbers.shape[1] == 1 else numbers[:, 0]
    return _standardising(centres, numbers[:, -1], lines.name)


def _read_statistics(text: bytes, name: str) -> Scaling:
    """Read Orfeo ToolBox's statistics of an image or of vectors."""
    root = read_xml(text, name)
    vectors: dict[str, list[float]] = {}
    for statistic in root.all("Statistic"):
        key = statistic.attributes.get("name", "")
        values = [one.attributes.get("value", "") for one in statistic.all("StatisticVector")]
        if not all(NUMBER.fullmatch(value.encode("ascii", "replace")) for value in values):
            raise ValueError(f"{name}: expected numbers as {key[:60]!r}.")
        vectors[key] = [float(value) for value in values]
    means, deviations = vectors.get("mean"), vectors.get("stddev")
    if root.tag != "FeatureStatistics" or not means or deviations is None:
        raise ValueError(
            f"{name}: expected statistics of Orfeo ToolBox, with 'mean' and 'stddev', found the "
            f"element {root.tag[:60]!r} with {str(sorted(vectors))[:100]}."
        )
    if len(means) != len(deviations):
        raise ValueError(
            f"{name}: expected as many deviations as means, found {len(deviations)} and "
            f"{len(means)}."
        )
    return _standardising(np.array(means), np.array(deviations), name)


def _standardising(centres: Array, deviations: Array, name: str) -> Scaling:
    """Return the scaling by centres and deviations."""
    if not (deviations > 0).all():
        place = int(np.argmin(deviations > 0))
        raise ValueError(
            f"{name}: expected deviations above 0, found {float(deviations[place])!r} of feature "
            f"{place + 1}."
        )
    with np.errstate(all="ignore"):
        scaling = Scaling(np.arange(len(centres)), centres, 1 / deviations, False)
    return _checked(scaling, name)


def _checked(scaling: Scaling, name: str) -> Scaling:
    """Return a scaling whose numbers are finite."""
    if not (np.isfinite(scaling.shift).all() and np.isfinite(scaling.scale).all()):
        raise ValueError(f"{name}: expected numbers of moderate size, found an overflow.")
    return scaling


def _read_pair(lines: NumberedLines) -> tuple[float, float]:
    """Return the two numbers of the next line."""
    words = lines.next().split()
    if len(words) != 2:
        raise lines.error("two numbers")
    first, second = _as_numbers(lines, words)
    return first, second


def _as_numbers(lines: NumberedLines, words: list[bytes]) -> list[float]:
    """Return words as finite numbers."""
    if not all(map(NUMBER.fullmatch, words)):
        raise lines.error("numbers")
    return lines.as_floats(words)
