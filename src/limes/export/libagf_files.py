"""libAGF's binary borders (`.brd`, `.bgd`) and the control files of `multi_borders`."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._typing import Array
from limes.atomic import atomic_paths
from limes.classifier import BordersClassifier
from limes.export.libagf import (
    as_border_classifier,
    planes_through_points,
    scheme_for_libagf,
    sort_pairs,
)
from limes.files.batches import as_int32_labels
from limes.files.libagf import VALUES, read_vectors
from limes.model.border_map import BorderMap
from limes.model.coupling import class_pairs
from limes.model.schemes import MapScheme, OneVsRestScheme, PairwiseScheme, TreeScheme

MAX_CONTROL_BYTES = 1 << 24
MAX_CLASSES = 10_000
TOKEN = re.compile(r"[{}/;]|[^\s{}/;]+")
WHOLE = re.compile(r"-?\d{1,9}")


def read_libagf_borders(
    path: str | os.PathLike[str], *, by_vote: bool = False
) -> BordersClassifier:
    """Read borders of libAGF's ``class_borders`` or ``multi_borders``.

    Parameters
    ----------
    path : path-like
        Either file of a pair ``name.brd`` and ``name.bgd``, whose classes are 0 and 1, or a control
        file. The borders that a control file names are beside it.
    by_vote : bool, default=False
        How several classes with a border between each two are decided: by coupled probabilities,
        the default of libAGF, or by votes.

    Returns
    -------
    BordersClassifier
        Fitted classifier without a source.
    """
    path = Path(path)
    if path.suffix in (".brd", ".bgd"):
        map_ = _read_border(path.with_suffix(""), os.fspath(path))
        return _as_classifier(PairwiseScheme((map_,), 2, by_vote=by_vote), [0, 1], os.fspath(path))
    return _ControlFile(path, by_vote=by_vote).read()


def write_libagf_borders(
    fast: BordersClassifier, path: str | os.PathLike[str], *, scaled: bool = False
) -> list[Path]:
    """Write a classifier for libAGF's ``classify_b`` (two classes) or ``classify_m`` (more).

    Two classes become ``path.brd`` and ``path.bgd``; more become the control file ``path.txt`` with
    such a pair for each border. libAGF evaluates the nearest point only: fit with ``blend=1`` and
    ``refine=False``. ``classify_b`` names the classes 0 and 1.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted with ``scheme="pairwise"``, ``"one-vs-rest"`` or ``"tree"``, with integers as labels.
    path : path-like
        Start of the names of the files.
    scaled : bool, default=False
        Write the borders for rows that are already scaled, as by the steps before the source.

    Returns
    -------
    list of Path
        The files that were written.
    """
    base = Path(path)
    scheme = scheme_for_libagf(fast, ("pairwise", "one-vs-rest", "tree"))
    labels = as_int32_labels(fast.classes_, program="libAGF").tolist()
    planes = planes_through_points(scheme, scaled=scaled)
    if len(labels) == 2:
        names = [base.name]
    else:
        names = [f"{base.name}-{number:02d}" for number in range(len(planes))]
    contents: dict[Path, bytes] = {}
    for name, (points, normals) in zip(names, planes, strict=True):
        contents[base.with_name(f"{name}.brd")] = _vector_bytes(points)
        contents[base.with_name(f"{name}.bgd")] = _vector_bytes(normals)
    if len(labels) > 2:
        control = _control_text(scheme, names, labels)
        contents[base.with_name(f"{base.name}.txt")] = control.encode()
    with atomic_paths(*contents) as temporaries:
        for temporary, data in zip(temporaries, contents.values(), strict=True):
            temporary.write_bytes(data)
    return list(contents)


def _vector_bytes(rows: Array) -> bytes:
    """Return rows as libAGF stores them: their length, then float32."""
    with np.errstate(over="ignore"):
        numbers = rows.astype(VALUES)
    if not np.isfinite(numbers).all():
        raise ValueError("libAGF's borders are float32, got a number beyond their range.")
    return rows.shape[1].to_bytes(4, "little", signed=True) + numbers.tobytes()


def _control_text(scheme: MapScheme, names: Sequence[str], labels: Sequence[int]) -> str:
    """Return the control file of several borders."""
    if isinstance(scheme, TreeScheme):
        return _tree_text(scheme.children, names, labels, 0, "") + "\n"
    everyone = range(len(labels))
    if isinstance(scheme, PairwiseScheme):
        sides = [([i], [j]) for i, j in class_pairs(len(labels))]
    else:
        sides = [([other for other in everyone if other != one], [one]) for one in everyone]
    lines = [
        f"{name} {' '.join(map(str, left))} / {' '.join(map(str, right))};"
        for name, (left, right) in zip(names, sides, strict=True)
    ]
    return "\n".join([*lines, "{", *(f"  {label}" for label in labels), "}"]) + "\n"


def _tree_text(
    children: NDArray[np.int64], names: Sequence[str], labels: Sequence[int], node: int, indent: str
) -> str:
    """Return a node of a hierarchy with its two children in braces."""
    inner = f"{indent}  "
    parts = [
        f"{inner}{labels[-1 - child]}"
        if child < 0
        else _tree_text(children, names, labels, int(child), inner)
        for child in children[node]
    ]
    return "\n".join([f"{indent}{names[node]}", f"{indent}{{", *parts, f"{indent}}}"])


def _read_border(base: Path, name: str) -> BorderMap:
    """Read the two files of a border; values above zero mean the second side."""
    points, normals = (
        read_vectors(base.with_name(f"{base.name}{ending}")) for ending in (".brd", ".bgd")
    )
    if points.shape != normals.shape or not len(points):
        raise ValueError(
            f"{name}: expected as many normals as border points and at least one, found "
            f"{normals.shape} and {points.shape} in {base.name}."
        )
    if not (np.isfinite(points).all() and np.isfinite(normals).all()):
        raise ValueError(f"{name}: expected finite numbers in the borders of {base.name}.")
    with np.errstate(over="ignore", invalid="ignore"):
        return BorderMap.from_borders(
            points=points.astype(np.float64), normals=normals.astype(np.float64)
        )


def _as_classifier(scheme: MapScheme, labels: Sequence[int], name: str) -> BordersClassifier:
    """Return the classifier of maps that have the same features."""
    widths = {map_.n_features for map_ in scheme.maps}
    if len(widths) > 1:
        raise ValueError(f"{name}: expected borders of the same features, found {sorted(widths)}.")
    return as_border_classifier(scheme, np.array(labels), name)


class _ControlFile:
    """A control file while it is read: its words, and the borders that it names."""

    def __init__(self, path: Path, *, by_vote: bool) -> None:
        self._path = path
        self._name = os.fspath(path)
        self._by_vote = by_vote
        if path.stat().st_size > MAX_CONTROL_BYTES:
            raise ValueError(f"{self._name}: expected a control file, found a larger file.")
        try:
            self._words = TOKEN.findall(path.read_bytes().decode("ascii"))
        except UnicodeDecodeError:
            raise ValueError(f"{self._name}: expected a control file in ASCII.") from None
        self._place = 0

    def read(self) -> BordersClassifier:
        """Return the classifier."""
        is_flat = len(self._words) < 2 or self._words[1] != "{"
        classifier = self._read_flat() if is_flat else self._read_tree()
        if self._place < len(self._words):
            raise self._error("the end of the file")
        return classifier

    def _next(self) -> str:
        """Return the next word, or nothing at the end."""
        word = self._words[self._place] if self._place < len(self._words) else ""
        self._place += 1
        return word

    def _error(self, expected: str) -> ValueError:
        """Return the error that the last word is not what was expected."""
        place = min(self._place, len(self._words)) or 1
        found = repr(self._words[place - 1][:60]) if self._words else "an empty file"
        return ValueError(f"{self._name}, word {place}: expected {expected}, found {found}.")

    def _border(self, word: str) -> BorderMap:
        """Read a border that the file names."""
        if not word or word in "{}/;" or "\0" in word:
            raise self._error("the name of a border")
        try:
            return _read_border(self._path.parent / word, self._name)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ValueError(
                f"{self._name}: expected {word[:60]!r}.brd and .bgd beside it: {reason}."
            ) from None

    def _labels(self) -> list[int]:
        """Read the labels in braces."""
        if self._next() != "{":
            raise self._error("'{' and the classes")
        labels: list[int] = []
        while (word := self._next()) != "}":
            if not WHOLE.fullmatch(word) or len(labels) == MAX_CLASSES:
                raise self._error("a whole number as a class, or '}'")
            labels.append(int(word))
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise self._error("two classes or more that differ")
        return labels

    def _read_flat(self) -> BordersClassifier:
        """Read borders with the classes on their two sides, then the labels."""
        borders: list[tuple[str, list[int], list[int]]] = []
        while self._place < len(self._words) and self._words[self._place] != "{":
            name = self._next()
            borders.append((name, self._side("/"), self._side(";")))
        labels = self._labels()
        n_classes = len(labels)
        used = {one for _, left, right in borders for one in (*left, *right)}
        # Numbers are places in the list of labels; some write the labels themselves.
        places = dict(enumerate(range(n_classes)))
        if not used <= set(places):
            places = {label: place for place, label in enumerate(labels)}
        if used != set(places):
            raise self._error(f"borders between all of {n_classes} classes")
        sides = [
            (frozenset(places[one] for one in left), frozenset(places[one] for one in right))
            for _, left, right in borders
        ]
        maps = [self._border(name) for name, _, _ in borders]
        scheme = self._flat_scheme(maps, sides, labels)
        return _as_classifier(scheme, sorted(labels), self._name)

    def _side(self, end: str) -> list[int]:
        """Read the classes up to a slash or semicolon."""
        found: list[int] = []
        while (word := self._next()) != end:
            if not WHOLE.fullmatch(word) or len(found) == MAX_CLASSES:
                raise self._error(f"whole numbers up to {end!r}")
            found.append(int(word))
        return found

    def _flat_scheme(
        self,
        maps: list[BorderMap],
        sides: list[tuple[frozenset[int], frozenset[int]]],
        labels: list[int],
    ) -> MapScheme:
        """Return the scheme: a border between each two classes, or between each and the rest."""
        n_classes = len(labels)
        by_sides = dict(zip(sides, maps, strict=True))
        pairs: list[BorderMap | None] = [
            _find(by_sides, frozenset([i]), frozenset([j])) for i, j in class_pairs(n_classes)
        ]
        everyone = frozenset(range(n_classes))
        rest: list[BorderMap | None] = [
            _find(by_sides, everyone - {one}, frozenset([one])) for one in range(n_classes)
        ]
        if len(maps) == len(pairs) and all(pairs):
            listed = [map_ for map_ in pairs if map_ is not None]
            return PairwiseScheme(
                sort_pairs(listed, np.array(labels)), n_classes, by_vote=self._by_vote
            )
        if len(maps) == len(rest) and all(rest):
            ordered = [rest[place] for place in np.argsort(labels)]
            return OneVsRestScheme(tuple(map_ for map_ in ordered if map_ is not None), n_classes)
        raise ValueError(
            f"{self._name}: expected a border between each two classes, or between each and the "
            f"rest, found {len(maps)} others."
        )

    def _read_tree(self) -> BordersClassifier:
        """Read a hierarchy: a name and two children in braces, each a class or such a name."""
        nodes: list[tuple[str, list[int]]] = []
        labels: list[int] = []
        # Nodes whose braces are open.
        open_nodes: list[int] = []
        while True:
            word = self._next()
            if word == "}" and open_nodes and len(nodes[open_nodes[-1]][1]) == 2:
                open_nodes.pop()
                if not open_nodes:
                    break
                continue
            if not word or word in "{}/;" or (open_nodes and len(nodes[open_nodes[-1]][1]) == 2):
                raise self._error("a class, or a name and two children in braces")
            is_node = self._place < len(self._words) and self._words[self._place] == "{"
            if not is_node and not (open_nodes and WHOLE.fullmatch(word)):
                raise self._error("a class, or a name and two children in braces")
            if open_nodes:
                child = len(nodes) if is_node else -1 - len(labels)
                nodes[open_nodes[-1]][1].append(child)
            if is_node:
                open_nodes.append(len(nodes))
                nodes.append((word, []))
                self._place += 1
            else:
                labels.append(int(word))
            if len(labels) > MAX_CLASSES or len(nodes) > MAX_CLASSES:
                raise self._error(f"at most {MAX_CLASSES} classes")
        if len(set(labels)) < len(labels):
            raise self._error("classes that differ")
        maps = tuple(self._border(name) for name, _ in nodes)
        ranks = np.argsort(np.argsort(labels))
        children = np.array(
            [[one if one >= 0 else -1 - ranks[-1 - one] for one in both] for _, both in nodes]
        )
        scheme = TreeScheme(maps, len(labels), children=children)
        return _as_classifier(scheme, sorted(labels), self._name)


def _find(
    by_sides: dict[tuple[frozenset[int], frozenset[int]], BorderMap],
    left: frozenset[int],
    right: frozenset[int],
) -> Any:
    """Return the border between two sides, turned if it lists them the other way round."""
    if (left, right) in by_sides:
        return by_sides[left, right]
    turned = by_sides.get((right, left))
    return None if turned is None else BorderMap(turned.points, -turned.slopes, -turned.offsets)
