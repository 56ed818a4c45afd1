"""Scale LIBSVM text as LIBSVM's `svm-scale` does, in two passes over the file."""

from pathlib import Path
from typing import Any

import numpy as np

from limes._typing import Array
from limes.atomic import atomic_write
from limes.files import RowOptions, open_rows
from limes.files.libsvm import begins_with_zero
from limes.files.streams import NumberedLines
from limes.libsvm.scaling import read_svm_ranges

# Rows that are dense at once.
BLOCK_ROWS = 1000


class SvmScale:
    r"""The program with its limits: one run scales one file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.svm")
    ...     _ = path.write_text("1 1:1 2:3\n2 1:4 2:3\n")
    ...     warnings = SvmScale(-1.0, 1.0).run(str(path))  # doctest: +NORMALIZE_WHITESPACE
    1 1:-1
    2 1:1
    """

    def __init__(
        self, lower: float, upper: float, y_limits: tuple[float, float] | None = None
    ) -> None:
        self._limits = (lower, upper)
        self._y_limits = y_limits
        self._y_range = (np.inf, -np.inf)
        self._low = self._high = np.empty(0)
        # Features are numbered from 1, but some programs write files that begin with 0.
        self._first_index = 1
        self._n_values = self._n_written = 0

    def run(self, path: str, *, save: str | None = None, restore: str | None = None) -> list[str]:
        """Print the scaled rows, and return the warnings."""
        for name in (path, *([] if restore is None else [restore])):
            if not Path(name).is_file():
                raise FileNotFoundError(2, "can't open file", name)
        self._first_index = 0 if begins_with_zero(Path(path)) else 1
        options = RowOptions(format="libsvm", first_index=self._first_index)
        self._find_ranges(path, options)
        warnings = []
        if self._first_index == 0:
            warnings.append("WARNING: minimal feature index is 0, but indices should start from 1")
        if restore is not None:
            warnings += self._restore(restore, path)
        if save is not None:
            self._save(save)
            if self._first_index == 0:
                warnings.append(
                    "WARNING: scaling factors with indices smaller than 1 are not stored to the "
                    f"file {save}."
                )
        with open_rows(Path(path), options) as rows:
            for batch in rows:
                self._print(batch.X, np.asarray(batch.y))
        if self._n_written > self._n_values:
            warnings += [
                f"WARNING: original #nonzeros {self._n_values}",
                f"       > new      #nonzeros {self._n_written}",
                "If feature values are non-negative and sparse, use -l 0 rather than the default "
                "-l -1",
            ]
        return warnings

    def _find_ranges(self, path: str, options: RowOptions) -> None:
        """Find minimum and maximum of each feature; a value that is not given is 0."""
        counts = np.empty(0, dtype=np.int64)
        n_rows = 0
        with open_rows(Path(path), options) as rows:
            for batch in rows:
                X = batch.X
                self._widen(X.shape[1])
                counts = np.pad(counts, (0, len(self._low) - len(counts)))
                counts += np.bincount(X.indices, minlength=len(counts))
                np.minimum.at(self._low, X.indices, X.data)
                np.maximum.at(self._high, X.indices, X.data)
                self._n_values += len(X.data)
                n_rows += X.shape[0]
                y, (low, high) = np.asarray(batch.y), self._y_range
                self._y_range = min(low, float(y.min())), max(high, float(y.max()))
        has_zeros = counts < n_rows
        self._low[has_zeros] = np.minimum(self._low[has_zeros], 0.0)
        self._high[has_zeros] = np.maximum(self._high[has_zeros], 0.0)

    def _widen(self, n_features: int) -> None:
        """Add features without values."""
        n_more = max(0, n_features - len(self._low))
        self._low = np.pad(self._low, (0, n_more), constant_values=np.inf)
        self._high = np.pad(self._high, (0, n_more), constant_values=-np.inf)

    def _restore(self, path: str, rows: str) -> list[str]:
        """Take limits and ranges of an earlier run; other features become 0."""
        with Path(path).open("rb") as stream:
            ranges = read_svm_ranges(NumberedLines(stream, path))
        if ranges.labels is not None:
            self._y_limits, self._y_range = ranges.labels
        self._limits = ranges.limits
        self._widen(max(ranges.features, default=0) - self._first_index + 1)
        varies = np.flatnonzero(self._low < self._high) + self._first_index
        listed = {index: range_ for index, range_ in ranges.features.items() if index >= 1}
        # A feature 0 keeps its own range, which files of ranges do not hold.
        start = 1 - self._first_index
        self._low[start:], self._high[start:] = 0.0, 0.0
        for index, (low, high) in listed.items():
            self._low[index - self._first_index] = low
            self._high[index - self._first_index] = high
        return [
            f"WARNING: feature index {index} appeared in file {rows} was not seen in the scaling "
            f"factor file {path}. The feature is scaled to 0."
            for index in varies.tolist()
            if index >= 1 and index not in listed
        ]

    def _save(self, path: str) -> None:
        """Write limits and ranges."""
        lines = []
        if self._y_limits is not None:
            lines += ["y", _pair(*self._y_limits), _pair(*self._y_range)]
        lines += ["x", _pair(*self._limits)]
        for place in np.flatnonzero(self._low != self._high).tolist():
            index = place + self._first_index
            if index >= 1:
                lines.append(f"{index} {_pair(self._low[place], self._high[place])}")
        with atomic_write(path) as stream:
            stream.write("".join(f"{line}\n" for line in lines).encode())

    def _print(self, X: Any, y: Array) -> None:
        """Print scaled rows, without features that are constant or become 0."""
        places = np.flatnonzero(self._low != self._high)
        indices = (places + self._first_index).tolist()
        low, high = self._low[places], self._high[places]
        lower, upper = self._limits
        X.resize((X.shape[0], len(self._low)))
        for start in range(0, X.shape[0], BLOCK_ROWS):
            rows = X[start : start + BLOCK_ROWS].toarray()[:, places]
            scaled = lower + (upper - lower) * (rows - low) / (high - low)
            scaled[rows == low] = lower
            scaled[np.broadcast_to(high, rows.shape) == rows] = upper
            labels = self._scale_labels(y[start : start + BLOCK_ROWS])
            for label, row in zip(labels.tolist(), scaled.tolist(), strict=True):
                pairs = [f"{i}:{value:g} " for i, value in zip(indices, row, strict=True) if value]
                self._n_written += len(pairs)
                print(f"{label:.17g} {''.join(pairs)}")

    def _scale_labels(self, y: Array) -> Array:
        """Return labels in the limits that are given for them."""
        if self._y_limits is None:
            return y
        (lower, upper), (low, high) = self._y_limits, self._y_range
        with np.errstate(all="ignore"):
            scaled = lower + (upper - lower) * (y - low) / (high - low)
        scaled[y == low] = lower
        scaled[y == high] = upper
        return scaled


def _pair(low: float, high: float) -> str:
    """Return two numbers with all their digits."""
    return f"{low:.17g} {high:.17g}"
