"""Which rows to learn from, which to keep aside, and how to go through many."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from limes._typing import Codes

# One pass: enough rows to be worth starting threads, few enough numbers to stay in the cache.
BLOCK_ROWS = 1 << 16
BLOCK_NUMBERS = 1 << 20
# More rows than this teach a border little, and every one is asked of the slow source.
MAX_ROWS = 50_000
MAX_NUMBERS = 1 << 27
# The share of rows kept aside to measure agreement, and the most that are worth asking about.
ASIDE_SHARE = 0.2
MAX_ASIDE = 4000
# A class keeps all its rows for the search below this number.
MIN_CLASS_ROWS = 10


def blocks(X: Any, n_values: int = 1) -> Iterator[tuple[slice, NDArray[np.floating[Any]]]]:
    """Go through rows a block at a time, sparse ones made dense on the way."""
    size = max(1, min(BLOCK_ROWS, BLOCK_NUMBERS // max(X.shape[1], n_values, 1)))
    for start in range(0, X.shape[0], size):
        place = slice(start, min(start + size, X.shape[0]))
        yield place, X[place].toarray() if sparse.issparse(X) else X[place]


def choose_rows(
    n_rows: int, n_features: int, *, codes: Codes | None, rng: np.random.Generator
) -> Codes:
    """Choose the rows to learn from: all, or a random part of many."""
    limit = max(1, min(MAX_ROWS, MAX_NUMBERS // max(n_features, 1)))
    if n_rows <= limit:
        return np.arange(n_rows)
    order = rng.permutation(n_rows)
    if codes is None:
        return np.sort(order[:limit])
    groups = np.unique(codes, return_inverse=True)[1]
    counts = np.bincount(groups)
    share = np.maximum(limit // len(counts) // 4, counts * limit // n_rows)
    return np.sort(order[place_in_class(groups[order]) < share[groups[order]]])


def keep_aside(codes: Codes, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose rows that the search must not see, so that agreement can be measured on them."""
    counts = np.bincount(codes)
    share = np.floor(counts * min(ASIDE_SHARE, MAX_ASIDE / len(codes)))
    share[counts < MIN_CLASS_ROWS] = 0
    order = rng.permutation(len(codes))
    is_aside = np.empty(len(codes), dtype=bool)
    is_aside[order] = place_in_class(codes[order]) < share[codes[order]]
    return is_aside


def place_in_class(codes: Codes) -> Codes:
    """Return how many earlier rows have the same class.

    Examples
    --------
    >>> place_in_class(np.array([2, 0, 2, 2, 0]))
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    starts = np.cumsum(counts) - counts
    place = np.empty(len(codes), dtype=np.intp)
    place[order] = np.arange(len(codes)) - starts[codes[order]]
    return place
