"""Read libAGF's text models, trusting nothing in them."""

import os
import stat
from array import array
from math import isfinite
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array
from limes.border_map import BorderMap
from limes.classifier import BordersClassifier
from limes.coupling import class_pairs
from limes.model_file import StoredModel, restore
from limes.schemes.pairwise import PairwiseScheme

# A row of a million features with all digits is shorter; a line without end is no model.
MAX_LINE_BYTES = 1 << 26
MAX_LABEL = 2**31


def read_libagf_model(
    path: str | os.PathLike[str], *, by_vote: bool = False, max_bytes: int = 1 << 32
) -> BordersClassifier:
    r"""Read a text model that libAGF's ``svm_accelerate`` or ``to_libagf`` wrote.

    Parameters
    ----------
    path : path-like
        Text file that begins with ``1v1``.
    by_vote : bool, default=False
        How more than two classes are decided, which the file does not say: by coupled
        probabilities, as libAGF's programs do unless told otherwise, or by the votes of pairs.
    max_bytes : int, default=2**32
        Largest file to read.

    Returns
    -------
    BordersClassifier
        Fitted, without a source.

    Examples
    --------
    >>> import tempfile
    >>> text = "1v1\n2\n3 7\n-1\n1 2\n0.5 0.5\n1 2\n0 -2\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.agf")
    ...     _ = path.write_text(text)
    ...     read_libagf_model(path).predict([[0.0, 0.0], [0.0, 1.0]])
    array([3, 7])
    """
    info = Path(path).stat()
    if not stat.S_ISREG(info.st_mode):
        raise ValueError(
            f"{os.fspath(path)}: expected a plain file, found a folder, pipe or device."
        )
    if info.st_size > max_bytes:
        raise ValueError(
            f"{os.fspath(path)}: expected a file of at most max_bytes={max_bytes!r}, found "
            f"{info.st_size} bytes."
        )
    with Path(path).open("rb") as stream:
        return parse_libagf_model(stream, os.fspath(path), by_vote=by_vote)


def parse_libagf_model(stream: BinaryIO, name: str, *, by_vote: bool = False) -> BordersClassifier:
    """Read the lines of a text model."""
    lines = _Lines(stream, name)
    if lines.next().split() != [b"1v1"]:
        raise lines.error("a libAGF model of pairs, which begins with '1v1'")
    labels, polarity = _read_front(lines)
    maps = [_read_map(lines, sign) for sign in polarity]
    n_features = maps[0].n_features
    for one in maps:
        if one.n_features != n_features:
            raise lines.error(f"{n_features} features in every pair, got {one.n_features}")
    if lines.skip_empty():
        raise lines.error(f"the end of the file after {len(maps)} pairs")
    ordered = _sorted_maps(_near_each_other(maps), labels)
    scheme = PairwiseScheme(ordered, len(labels), by_vote=by_vote)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            _ = scheme.compiled
    except ValueError as error:
        raise ValueError(f"{name}: expected numbers of moderate size: {error}") from None
    return _as_classifier(scheme, np.sort(labels), n_features)


class _Lines:
    """Lines of a file, with the place of the last one for messages."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        self.number = 0
        self._stream = stream
        self._text = b""

    def next(self) -> bytes:
        """Return the next line, or nothing at the end of the file."""
        self._text = self._stream.readline(MAX_LINE_BYTES)
        self.number += 1
        if len(self._text) == MAX_LINE_BYTES:
            raise self.error(f"a line of fewer than {MAX_LINE_BYTES} bytes")
        return self._text

    def skip_empty(self) -> bytes:
        """Return the next line with something in it, or nothing at the end of the file."""
        while (text := self.next()) and not text.strip():
            pass
        return text

    def whole_numbers(self, expected: str) -> list[int]:
        """Return the whole numbers of the next line."""
        words = self.next().split()
        if not words or not all(word.lstrip(b"-").isdigit() and len(word) < 20 for word in words):
            raise self.error(expected)
        try:
            return [int(word) for word in words]
        except ValueError:
            raise self.error(expected) from None

    def floats(self, n_numbers: int) -> list[float]:
        """Return the numbers of the next line, so many and finite."""
        words = self.next().split()
        expected = f"{n_numbers} numbers"
        if len(words) != n_numbers or b"_" in self._text:
            raise self.error(expected)
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            raise self.error(expected) from None
        if not all(map(isfinite, numbers)):
            raise self.error("finite numbers")
        return numbers

    def error(self, expected: str) -> ValueError:
        """Return what to raise when the last line is not what was expected."""
        found = repr(self._text[:60])[1:] if self._text else "the end of the file"
        return ValueError(f"{self.name}, line {self.number}: expected {expected}, found {found}.")


def _read_front(lines: _Lines) -> tuple[NDArray[np.int64], list[int]]:
    """Read the number of classes, their labels, and which side of each pair is which."""
    n_classes, *more = lines.whole_numbers("the number of classes")
    if n_classes < 2 or more:
        raise lines.error("the number of classes, 2 or more")
    labels = lines.whole_numbers(f"{n_classes} labels")
    is_label = [abs(one) < MAX_LABEL for one in labels]
    if len(labels) != n_classes or len(set(labels)) < n_classes or not all(is_label):
        raise lines.error(f"{n_classes} labels that differ")
    n_pairs = n_classes * (n_classes - 1) // 2
    polarity = lines.whole_numbers(f"{n_pairs} times 1 or -1")
    if len(polarity) != n_pairs or not set(polarity) <= {1, -1}:
        raise lines.error(f"{n_pairs} times 1 or -1")
    return np.array(labels), polarity


def _read_map(lines: _Lines, sign: int) -> BorderMap:
    """Read the border of one pair; a positive sign is for values above zero in the second class."""
    points = _read_matrix(lines, "border points")
    normals = _read_matrix(lines, "normals")
    if points.shape != normals.shape:
        expected = f"as many normals as border points, {points.shape[0]} of {points.shape[1]}"
        raise lines.error(expected)
    with np.errstate(over="ignore", invalid="ignore"):
        return BorderMap.from_borders(points=points, normals=sign * normals)


def _read_matrix(lines: _Lines, what: str) -> Array:
    """Read rows after their number and length; memory grows with the lines that are there."""
    sizes = lines.whole_numbers(f"the number of {what} and of features")
    if len(sizes) != 2 or min(sizes) < 1:
        raise lines.error(f"the number of {what} and of features, both at least 1")
    n_rows, n_features = sizes
    numbers = array("d")
    for _ in range(n_rows):
        numbers.extend(lines.floats(n_features))
    return np.array(numbers).reshape(n_rows, n_features)


def _near_each_other(maps: list[BorderMap]) -> list[BorderMap]:
    """Move the only point of a map to those of the others, which changes no value.

    A border with one side is a point far away, and would pull the centre of all rows there.
    """
    several = [one.points[0] for one in maps if one.n_borders > 1]
    single = [one.points[0] for one in maps if one.n_borders == 1]
    anchor = several[0] if several else min(single, key=lambda point: float(np.abs(point).max()))
    return [
        one if one.n_borders > 1 else BorderMap(anchor[None], one.normals, one.offsets)
        for one in maps
    ]


def _sorted_maps(maps: list[BorderMap], labels: NDArray[np.int64]) -> tuple[BorderMap, ...]:
    """Return the maps of pairs in the order of sorted labels, some of them turned round."""
    places = {pair: place for place, pair in enumerate(class_pairs(len(labels)))}
    order = np.argsort(labels)
    turned = []
    for first, second in class_pairs(len(labels)):
        i, j = int(order[first]), int(order[second])
        one = maps[places[min(i, j), max(i, j)]]
        turned.append(
            one if i < j else BorderMap(one.points, -one.normals, -one.offsets, None, one.blend)
        )
    return tuple(turned)


def _as_classifier(
    scheme: PairwiseScheme, classes: NDArray[np.int64], n_features: int
) -> BordersClassifier:
    """Return a fitted classifier of which nothing but its borders is known."""
    attributes = {
        "n_borders_": scheme.n_borders,
        "cost_": scheme.cost,
        "agreement_": float("nan"),
        "agreement_error_": float("nan"),
        "one_sided_": [],
    }
    stored = StoredModel(scheme, classes, n_features, attributes=attributes)
    return restore(stored, BordersClassifier(scheme="pairwise", blend=1, refine=False))
