"""Dataset files: where they may lie, and that they hold what they should."""

import os
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes.datasets.catalogue import Entry

__all__ = [
    "cache_folder",
    "check_arrays",
    "find_file",
    "is_partial_file",
    "read_file",
    "write_file",
]

Arrays = dict[str, NDArray[Any]]

# What NumPy and the zip reader raise on damaged files, one by one as the damage falls.
UNREADABLE = (
    *(OSError, ValueError, TypeError, EOFError, KeyError, NotImplementedError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)


def cache_folder() -> Path:
    """Return the folder where fetched datasets are kept.

    ``$LIMES_CACHE`` if it is set, else a folder of limes' own where the platform keeps caches:
    ``$XDG_CACHE_HOME`` or ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS,
    ``%LOCALAPPDATA%`` on Windows. It may not exist yet.

    Returns
    -------
    Path
        A folder of ``NAME.npz`` files.

    Examples
    --------
    >>> cache_folder().name
    'datasets'
    """
    if chosen := os.environ.get("LIMES_CACHE"):
        return Path(chosen).expanduser() / "datasets"
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "limes" / "datasets"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "limes" / "datasets"
    if sys.platform == "win32" and (chosen := os.environ.get("LOCALAPPDATA")):
        return Path(chosen) / "limes" / "Cache" / "datasets"
    return Path.home() / ".cache" / "limes" / "datasets"


def find_file(entry: Entry) -> Path | None:
    """Return the file of a dataset, a partial one only where there is no whole one."""
    folders = [*_given_folder(), cache_folder()]
    stems = [entry.name] + [f"{entry.name}_partial"] * bool(entry.partial_counts)
    places = [folder / f"{stem}.npz" for stem in stems for folder in folders]
    return next((path for path in places if path.is_file()), None)


def _given_folder() -> list[Path]:
    """Return the folder that LIMES_DATA names, if it names one."""
    given = os.environ.get("LIMES_DATA")
    if not given:
        return []
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"LIMES_DATA names the folder {given!r}, which does not exist: correct or unset it."
        )
    return [folder]


def is_partial_file(path: Path) -> bool:
    """Return whether a file says by its name that it holds only a part of the rows."""
    return path.stem.endswith("_partial")


def read_file(entry: Entry, path: Path) -> Arrays:
    """Read a dataset file, once it holds what the entry says."""
    is_partial = is_partial_file(path)
    keys = [f"{array}_{part}" for part in _expected(entry, is_partial) for array in "Xy"]
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in keys if key in archive.files}
    except UNREADABLE as error:
        # NumPy takes what it does not know for a pickle, and tells how to load it all the same.
        why = "it is no archive of plain arrays" if "pickle" in str(error) else error
        raise ValueError(
            f"{path} is not a readable dataset file ({why}): delete it, or put a good copy there."
        ) from error
    check_arrays(entry, arrays, str(path), is_partial=is_partial)
    return arrays


def check_arrays(entry: Entry, arrays: Arrays, origin: str, *, is_partial: bool = False) -> None:
    """Raise an error that names the origin unless rows, columns and classes are as expected."""
    try:
        for part, counts in _expected(entry, is_partial).items():
            X, y = _find_part(arrays, part)
            _check_rows(X, (sum(counts), entry.n_features))
            _check_labels(y, counts, entry.n_classes)
    except ValueError as error:
        raise ValueError(f"{origin} is not the dataset {entry.name!r}: {error}") from error


def _expected(entry: Entry, is_partial: bool) -> dict[str, tuple[int, ...]]:
    """Return the parts of a file, with the rows of each class."""
    if is_partial:
        return {"train": entry.partial_counts}
    parts = {"train": entry.train_counts, "test": entry.test_counts}
    return {part: counts for part, counts in parts.items() if counts}


def _find_part(arrays: Arrays, part: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the training rows and labels, or those for testing."""
    try:
        return arrays[f"X_{part}"], arrays[f"y_{part}"]
    except KeyError as error:
        raise ValueError(f"the array {error} is missing, there are {sorted(arrays)}.") from None


def _check_rows(X: NDArray[Any], shape: tuple[int, int]) -> None:
    """Check shape and content of the rows."""
    if X.shape != shape:
        raise ValueError(f"rows must have the shape {shape}, got {X.shape}.")
    if X.dtype.kind not in "iuf" or not np.isfinite(X).all():
        raise ValueError(f"rows must be finite numbers, got others of type {X.dtype}.")


def _check_labels(y: NDArray[Any], counts: tuple[int, ...], n_classes: int) -> None:
    """Check how many rows each class has, as far as that is known."""
    if y.shape != (sum(counts),) or y.dtype.kind not in "iu":
        raise ValueError(f"labels must be {sum(counts)} integers, got {y.shape} of {y.dtype}.")
    if y.min() != 0 or y.max() != n_classes - 1:
        raise ValueError(f"labels must be 0 to {n_classes - 1}, got {y.min()} to {y.max()}.")
    found = tuple(np.bincount(y).tolist())
    if len(counts) == n_classes and found != counts:
        raise ValueError(f"classes must have {counts} rows, got {found}.")


def write_file(arrays: Arrays, path: Path) -> None:
    """Write a dataset file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
