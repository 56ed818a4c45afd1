"""libAGF text models, written and read."""

import os
import stat
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array
from limes.classifier import BordersClassifier
from limes.export.rounding import scheme_to_export
from limes.files.batches import as_int32_labels
from limes.files.streams import NumberedLines
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.coupling import class_pairs
from limes.model.exact import ExactScheme
from limes.model.model import FitInfo, Model
from limes.model.schemes import MapScheme, OneVsRestScheme, PairwiseScheme

__all__ = ["read_libagf_model", "to_libagf"]

# What svm_accelerate writes for every pair: above zero is the first class.
POLARITY = -1
# A border without two sides becomes a point this many times further away than all others: its
# value varies by a millionth, and float32 can still represent the point.
FAR = 1e6
# Largest distance of a plane from its point, relative to the terms of the sum.
PRECISION = 1e-9
MAX_LABEL = 2**31


def to_libagf(fast: BordersClassifier, *, scaled: bool = False) -> str:
    """Return a classifier as a text model, as libAGF's ``svm_accelerate`` writes it.

    libAGF evaluates the nearest point only, in the space of its rows, and its planes go through
    their points: ``blend`` must be 1 and ``refine`` False. A fallback to exact sums is left out.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted with ``scheme="pairwise"`` or ``"one-vs-rest"``, with integers as labels.
    scaled : bool, default=False
        Write the model for rows that are already scaled, as by the steps before the source. libAGF
        has no scaling: without this, a classifier whose steps change which point is nearest raises
        an error.

    Returns
    -------
    str
        The text; every number is written with all its digits.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [3, 3, 7, 7]
    >>> options = {"scheme": "pairwise", "n_borders": 2, "blend": 1, "refine": False}
    >>> fast = limes.accelerate(SVC().fit(X, y), X, random_state=0, **options)
    >>> to_libagf(fast).splitlines()[:5]
    ['1v1', '2', '3 7', '-1', '2 2']
    """
    scheme = scheme_for_libagf(fast, ("pairwise", "one-vs-rest"))
    labels = as_int32_labels(fast.classes_, program="libAGF")
    planes = planes_through_points(scheme, scaled=scaled)
    kind = "1v1" if isinstance(scheme, PairwiseScheme) else "1vR"
    # Above zero is the second class of a pair, but the class itself against the rest.
    sign = POLARITY if kind == "1v1" else 1
    lines = [kind, str(len(labels)), _join(labels), _join(np.full(len(planes), POLARITY))]
    for points, normals in planes:
        lines += _map_lines(points, sign * normals)
    return "\n".join(lines) + "\n"


def scheme_for_libagf(fast: BordersClassifier, names: Sequence[str]) -> MapScheme:
    """Return the scheme of a classifier, if libAGF can evaluate it."""
    scheme = scheme_to_export(fast, fallback=False)
    if fast.model_.outlier_scores is not None:
        raise ValueError("libAGF has no outlier detectors: export this one to C or ONNX.")
    wanted = " or ".join(repr(name) for name in names)
    if isinstance(scheme, ExactScheme):
        raise ValueError(
            "libAGF's models hold border points, got exact sums: fit with scheme='pairwise' "
            "(limes accelerate --scheme pairwise), or write the SVM as a LIBSVM model."
        )
    if any(map_.curve is not None for map_ in scheme.maps):
        also = "" if scheme.name in names else f" and scheme={wanted}"
        raise ValueError(
            "libAGF's models hold linear functions, got a curved base: fit with "
            f"curved=False{also}."
        )
    if scheme.name not in names:
        raise ValueError(
            f"libAGF's models have one border a pair or a class, got scheme {scheme.name!r}: fit "
            f"with scheme={wanted} (limes accelerate --scheme)."
        )
    if any(map_.blend > 1 and map_.n_borders > 1 for map_ in scheme.maps):
        raise ValueError(
            "libAGF evaluates the nearest point only, got "
            f"blend={scheme.maps[0].blend!r}: fit with blend=1."
        )
    assert isinstance(scheme, MapScheme)
    return scheme


def planes_through_points(scheme: MapScheme, *, scaled: bool) -> list[tuple[Array, Array]]:
    """Return the points and normals of each map, whose planes go through the points."""
    planes = [_scaled_planes(one) if scaled else _raw_planes(one) for one in scheme.maps]
    reach = max(float(np.abs(points).max()) for points, _, _ in planes) or 1.0
    return [_through_points(*plane, reach) for plane in planes]


def _raw_planes(border_map: BorderMap) -> tuple[Array, Array, Array]:
    """Return points, normals and offsets for raw rows, if the same points are nearest there."""
    normals, offsets = border_map.slopes[:, 0], border_map.offsets[:, 0]
    if border_map.preprocessing is None:
        return border_map.points, normals, offsets
    factor = _common_factor(border_map.preprocessing)
    if factor is None and border_map.n_borders > 1:
        raise ValueError(
            "libAGF measures distances in the rows that it is given, and the steps before the "
            "source change them. Scale the rows first and accelerate the classifier alone, or use "
            "scaled=True and give libAGF scaled rows."
        )
    if factor is None:
        return border_map.preprocessing.undo(border_map.points), normals, offsets
    points = (
        border_map.points @ border_map.preprocessing.to_matrix().T / factor
        + border_map.preprocessing.shift
    )
    return np.asarray(points), normals, offsets


def _common_factor(preprocessing: AffineMap) -> float | None:
    """Return the factor of all squared distances, or None if they have no common one."""
    if preprocessing.matrix is None:
        scale, n_features = np.square(preprocessing.scale), preprocessing.n_features
        diagonal = np.bincount(preprocessing.columns, scale, n_features).astype(np.float64)
        largest_other = 0.0
    else:
        products = preprocessing.matrix @ preprocessing.matrix.T
        diagonal = products.diagonal()
        largest_other = float(np.abs(products - np.diag(diagonal)).max())
    factor = float(diagonal.mean())
    is_even = bool(np.abs(diagonal - factor).max() <= PRECISION * factor)
    return factor if is_even and factor > 0 and largest_other <= PRECISION * factor else None


def _scaled_planes(border_map: BorderMap) -> tuple[Array, Array, Array]:
    """Return points, normals and offsets in the space of the points."""
    normals, offsets = border_map.slopes[:, 0], border_map.offsets[:, 0]
    if border_map.preprocessing is None:
        return border_map.points, normals, offsets
    inner = normals @ np.linalg.pinv(border_map.preprocessing.to_matrix()).T
    return border_map.points, inner, offsets + normals @ border_map.preprocessing.shift


def _through_points(
    points: Array, normals: Array, offsets: Array, reach: float
) -> tuple[Array, Array]:
    """Return points and normals; raise an error if a plane does not go through its point."""
    if len(points) == 1 and not normals.any():
        return _far_point(points, float(offsets[0]), reach)
    products = points * normals
    distances = products.sum(axis=1) + offsets
    if len(points) == 1:
        # The only point is always the nearest: it can be anywhere on its plane.
        return points - distances[:, None] * normals / np.square(normals).sum(), normals
    if (np.abs(distances) > PRECISION * (np.abs(products).sum(axis=1) + np.abs(offsets))).any():
        raise ValueError(
            "libAGF's planes go through their points, which those of a map fitted to its source do "
            "not: fit with refine=False."
        )
    return points, normals


def _far_point(points: Array, value: float, reach: float) -> tuple[Array, Array]:
    """Return a point so far away that its value is nearly constant."""
    normals = np.zeros_like(points)
    # A value of exactly zero means the first class.
    value = value or -1.0 / FAR
    normals[0, 0] = value / (FAR * reach)
    far = points.copy()
    far[0, 0] -= FAR * reach
    return far, normals


def _map_lines(points: Array, normals: Array) -> Iterator[str]:
    """Yield the lines of one map: points, then normals, each after their size."""
    for rows in (points, normals):
        yield f"{rows.shape[0]} {rows.shape[1]}"
        yield from map(_join, rows)


def _join(numbers: NDArray[Any]) -> str:
    """Return numbers with every bit, a space between them."""
    return " ".join(map(repr, numbers.tolist()))


def read_libagf_model(
    path: str | os.PathLike[str], *, by_vote: bool = False, max_bytes: int = 1 << 32
) -> BordersClassifier:
    r"""Read a text model that libAGF's ``svm_accelerate`` or ``to_libagf`` wrote.

    Parameters
    ----------
    path : path-like
        Text file that begins with ``1v1`` or ``1vR``. The files of ``read_libagf_borders`` are read
        too.
    by_vote : bool, default=False
        How more than two classes are decided, which the file does not contain: by coupled
        probabilities, the default of libAGF's programs, or by the votes of pairs.
    max_bytes : int, default=2**32
        Largest file to read.

    Returns
    -------
    BordersClassifier
        Fitted classifier without a source.

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
    lines = NumberedLines(stream, name)
    if (kind := lines.next().split()) not in ([b"1v1"], [b"1vR"]):
        raise lines.error("a libAGF model, which begins with '1v1' or '1vR'")
    is_pairwise = kind == [b"1v1"]
    labels, polarity = _read_preamble(lines, is_pairwise=is_pairwise)
    # Values above zero mean the second class of a pair, and the class against the rest.
    maps = [_read_map(lines, sign if is_pairwise else -sign) for sign in polarity]
    n_features = maps[0].n_features
    for one in maps:
        if one.n_features != n_features:
            raise lines.error(f"{n_features} features in every map, got {one.n_features}")
    if lines.next_nonblank():
        raise lines.error(f"the end of the file after {len(maps)} maps")
    maps = _near_each_other(maps)
    scheme: MapScheme
    if is_pairwise:
        scheme = PairwiseScheme(sort_pairs(maps, labels), len(labels), by_vote=by_vote)
    else:
        scheme = OneVsRestScheme(tuple(maps[place] for place in np.argsort(labels)), len(labels))
    return as_border_classifier(scheme, np.sort(labels), name)


def _read_preamble(
    lines: NumberedLines, *, is_pairwise: bool
) -> tuple[NDArray[np.int64], list[int]]:
    """Read the number of classes, their labels, and which side of each map is which."""
    n_classes, *more = _read_integers(lines, "the number of classes")
    if n_classes < 2 or more:
        raise lines.error("the number of classes, 2 or more")
    labels = _read_integers(lines, f"{n_classes} labels")
    is_label = [abs(one) < MAX_LABEL for one in labels]
    if len(labels) != n_classes or len(set(labels)) < n_classes or not all(is_label):
        raise lines.error(f"{n_classes} labels that differ")
    n_maps = n_classes * (n_classes - 1) // 2 if is_pairwise else n_classes
    polarity = _read_integers(lines, f"{n_maps} times 1 or -1")
    if len(polarity) != n_maps or not set(polarity) <= {1, -1}:
        raise lines.error(f"{n_maps} times 1 or -1")
    return np.array(labels), polarity


def _read_map(lines: NumberedLines, sign: int) -> BorderMap:
    """Read the border of one pair; a positive sign is for values above zero in the second class."""
    points = _read_matrix(lines, "border points")
    normals = _read_matrix(lines, "normals")
    if points.shape != normals.shape:
        expected = f"as many normals as border points, {points.shape[0]} of {points.shape[1]}"
        raise lines.error(expected)
    with np.errstate(over="ignore", invalid="ignore"):
        return BorderMap.from_borders(points=points, normals=sign * normals)


def _read_matrix(lines: NumberedLines, what: str) -> Array:
    """Read rows after their number and length; memory grows with the lines that are there."""
    sizes = _read_integers(lines, f"the number of {what} and of features")
    if len(sizes) != 2 or min(sizes) < 1:
        raise lines.error(f"the number of {what} and of features, both at least 1")
    n_rows, n_features = sizes
    numbers = array("d")
    for _ in range(n_rows):
        numbers.extend(_read_floats(lines, n_features))
    return np.array(numbers).reshape(n_rows, n_features)


def _read_integers(lines: NumberedLines, expected: str) -> list[int]:
    """Return the integers of the next line."""
    words = lines.next().split()
    if not words or not all(word.lstrip(b"-").isdigit() and len(word) < 20 for word in words):
        raise lines.error(expected)
    try:
        return [int(word) for word in words]
    except ValueError:
        raise lines.error(expected) from None


def _read_floats(lines: NumberedLines, n_numbers: int) -> list[float]:
    """Return the numbers of the next line, so many and finite."""
    text = lines.next()
    words = text.split()
    expected = f"{n_numbers} numbers"
    if len(words) != n_numbers or b"_" in text:
        raise lines.error(expected)
    return lines.as_floats(words, expected)


def _near_each_other(maps: list[BorderMap]) -> list[BorderMap]:
    """Move the only point of a map to those of the others, which changes no value.

    A border with one side is a point far away, which would move the centre of all maps.
    """
    several = [one.points[0] for one in maps if one.n_borders > 1]
    single = [one.points[0] for one in maps if one.n_borders == 1]
    anchor = several[0] if several else min(single, key=lambda point: float(np.abs(point).max()))
    return [
        one if one.n_borders > 1 else BorderMap(anchor[None], one.slopes, one.offsets)
        for one in maps
    ]


def sort_pairs(maps: list[BorderMap], labels: NDArray[np.int64]) -> tuple[BorderMap, ...]:
    """Return the maps of pairs in the order of sorted labels; reverse those whose labels swap."""
    places = {pair: place for place, pair in enumerate(class_pairs(len(labels)))}
    order = np.argsort(labels)
    turned = []
    for first, second in class_pairs(len(labels)):
        i, j = int(order[first]), int(order[second])
        one = maps[places[min(i, j), max(i, j)]]
        turned.append(
            one if i < j else BorderMap(one.points, -one.slopes, -one.offsets, None, one.blend)
        )
    return tuple(turned)


def as_border_classifier(
    scheme: MapScheme, classes: NDArray[np.int64], name: str
) -> BordersClassifier:
    """Return a fitted classifier of which nothing but its borders is known."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            _ = scheme.compiled
    except ValueError as error:
        raise ValueError(f"{name}: expected numbers of moderate size: {error}") from None
    info = FitInfo(parameters={"scheme": scheme.name, "blend": 1, "refine": False})
    return BordersClassifier.from_model(Model(scheme, classes, scheme.n_features, info=info))
