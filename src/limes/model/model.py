"""A scheme with labels: classes, probabilities and decision values of many rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes._core import thread_count
from limes._core.hardware import check_jobs
from limes._typing import Array, Indices, Labels
from limes.model.schemes import Scheme

# Starting threads, and asking how many there may be, takes as long as this many rows.
MIN_THREADED_ROWS = 2000
# One pass: enough rows to be worth starting threads, few enough numbers to stay in the cache.
BLOCK_ROWS = 1 << 16
BLOCK_NUMBERS = 1 << 20


@dataclass(frozen=True)
class Candidate:
    """One line of the trade-off: what a map costs, and how well it agrees with the source."""

    # How the maps are joined.
    scheme: str
    # Points in all.
    n_borders: int
    # Number of nearest points whose functions are averaged.
    blend: int
    # Multiply-adds a row.
    cost: int
    # Share of rows kept aside that get the source's label.
    agreement: float
    # Standard error of the agreement.
    error: float
    # Whether this is the one.
    is_chosen: bool = False
    # How much of the source's uncertainty coefficient it is expected to lose, by how likely the
    # source finds every class of the rows kept aside; nan where that was not looked at.
    lost: float = float("nan")


def threads_for(rows: Any, n_jobs: int | None) -> int:
    """Return the threads that rows are worth."""
    check_jobs(n_jobs)
    return thread_count(n_jobs) if rows.shape[0] >= MIN_THREADED_ROWS else 1


def find_labels(scheme: Scheme, rows: Any, classes: Labels, *, n_threads: int = 1) -> Labels:
    """Return the label of each row, all in one call of the core where it can be."""
    is_object = classes.dtype.hasobject
    if not (is_object or sparse.issparse(rows)):
        return _label_block(scheme, rows, classes, n_threads)
    labels = np.empty(rows.shape[0], dtype=classes.dtype)
    numbers = np.arange(len(classes), dtype=np.int32) if is_object else classes
    for place, block in blocks(rows):
        found = _label_block(scheme, block, numbers, n_threads, place.start)
        labels[place] = classes[found] if is_object else found
    return labels


def find_class_index(scheme: Scheme, rows: Any, *, n_threads: int = 1) -> Indices:
    """Return the class number of each row."""
    return find_labels(scheme, rows, np.arange(scheme.n_classes), n_threads=n_threads)


def find_values(
    scheme: Scheme, rows: Any, *, n_threads: int = 1
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Go through the values of the maps, a block of rows at a time."""
    for place, block in blocks(rows, len(scheme.maps)):
        within = _within_range(scheme, block, place.start)
        yield place, scheme.values(within, n_threads=n_threads)


def find_probabilities(scheme: Scheme, rows: Any, *, n_threads: int = 1) -> Array:
    """Return the probability of each class."""
    probabilities = np.empty((rows.shape[0], scheme.n_classes))
    for place, values in find_values(scheme, rows, n_threads=n_threads):
        probabilities[place] = scheme.probabilities(values)
    return probabilities


def _label_block(
    scheme: Scheme, block: NDArray[Any], labels: Labels, n_threads: int, start: int = 0
) -> Labels:
    """Label dense rows, of which the first is row number ``start`` of all."""
    found, refused = scheme.classifier.label(block, labels, n_threads=n_threads)
    if refused >= 0:
        _refuse(block[refused], start + refused)
    return found


def _within_range(scheme: Scheme, block: NDArray[Any], start: int) -> NDArray[Any]:
    """Return rows as the core's own labels take them, or say which has no value."""
    first = scheme.classifier.first_beyond(block)
    if first < 0:
        return block
    largest = np.finfo(np.float64 if scheme.double else np.float32).max
    # A comparison with NaN is false.
    is_fit = np.abs(block[first:]).max(axis=1) <= largest
    if not is_fit.all():
        refused = first + int(np.argmin(is_fit))
        _refuse(block[refused], start + refused)
    return scheme.classifier.within(block)


def _refuse(row: NDArray[Any], number: int) -> NoReturn:
    """Say why a row has no label."""
    if np.isnan(row).any():
        raise ValueError(f"Input X contains NaN, in row {number}: fill in or leave out such rows.")
    largest = row[np.abs(row).argmax()]
    if np.isinf(largest):
        raise ValueError(f"Input X contains infinity, in row {number}: leave out such rows.")
    raise ValueError(
        f"X has a value too large for float32 in row {number}, {float(largest)!r}: scale the rows, "
        "or fit with dtype='float64'."
    )


def blocks(X: Any, n_values: int = 1) -> Iterator[tuple[slice, NDArray[np.floating[Any]]]]:
    """Go through rows a block at a time, sparse ones made dense on the way."""
    size = max(1, min(BLOCK_ROWS, BLOCK_NUMBERS // max(X.shape[1], n_values, 1)))
    for start in range(0, X.shape[0], size):
        place = slice(start, min(start + size, X.shape[0]))
        yield place, X[place].toarray() if sparse.issparse(X) else X[place]
