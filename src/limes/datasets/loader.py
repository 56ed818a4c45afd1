"""Find, check and split datasets."""

import os
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.model_selection import train_test_split

from limes.atomic import atomic_write
from limes.datasets.catalogue import ENTRIES, Entry, find_entry, parameters
from limes.datasets.download import ORIGINS, Progress

Arrays = dict[str, NDArray[Any]]
# Exceptions of NumPy and the zip reader for damaged files, depending on the damage.
UNREADABLE = (
    *(OSError, ValueError, TypeError, EOFError, KeyError, NotImplementedError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test rows of one dataset.

    Parameters
    ----------
    name : str
        Name in the paper.
    X_train : ndarray of shape (n_rows, n_features)
        Rows as published: not standardised.
    y_train : ndarray of shape (n_rows,)
        Class indices, from 0.
    X_test, y_test : ndarray
        The same of test rows.
    classes : ndarray of shape (n_classes,)
        All class indices.
    kind : str
        Type of the features: float, integer, binary, categorical or mixed.
    source, licence, note : str
        Where the data were published, under which licence, and remarks.
    is_partial : bool
        Whether only a part of the published rows is available: scores are not the paper's.

    Examples
    --------
    >>> import numpy as np
    >>> rows, labels = np.zeros((2, 3)), np.array([0, 1])
    >>> data = Dataset(
    ...     "mine", rows, labels, rows, labels, labels, "float", "", "", "", is_partial=False
    ... )
    >>> data.X_train.shape, data.classes.tolist()
    ((2, 3), [0, 1])
    """

    name: str
    X_train: NDArray[Any]
    y_train: NDArray[np.intp]
    X_test: NDArray[Any]
    y_test: NDArray[np.intp]
    classes: NDArray[np.intp]
    kind: str
    source: str
    licence: str
    note: str
    is_partial: bool


class Listing(NamedTuple):
    """One row of the list of datasets.

    Parameters
    ----------
    name : str
        Name in the paper.
    n_train, n_test : int
        Rows; ``n_test`` is 0 if no split is published.
    n_features, n_classes : int
        Features and classes.
    kind : str
        Type of the features.
    source, licence, note : str
        Where the data were published, under which licence, and remarks.
    is_present : bool
        Whether the files are on this computer.
    is_partial : bool
        Whether only a part of the published rows is available.
    path : Path or None
        The folder of the files; None where there are none.

    Examples
    --------
    >>> from limes.datasets import list_datasets
    >>> next(listing.n_classes for listing in list_datasets() if listing.name == "sat")
    6
    """

    name: str
    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    kind: str
    source: str
    licence: str
    note: str
    is_present: bool
    is_partial: bool
    path: Path | None


def load(
    name: str,
    *,
    random_state: int | np.random.RandomState | None = 0,
    test_fraction: float | None = None,
    all_rows: bool = False,
    dtype: DTypeLike = np.float64,
    can_download: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """Load one of the paper's seventeen datasets, split into training and test rows.

    The file ``NAME.npz`` is searched in the folder ``$LIMES_DATA``, then in :func:`cache_folder`;
    if it is in neither, the data are downloaded from where they were published, checked, and
    stored in the cache.

    Parameters
    ----------
    name : str
        Name in the paper, such as "sat"; :func:`list_datasets` returns all.
    random_state : int, RandomState or None, default=0
        Seed of the random split of a dataset without a published split.
    test_fraction : float or None, default=None
        Share of the rows to test on. None means the published split or, if there is none, the
        fraction of the paper's table 2. With a number all rows are pooled and split at random.
    all_rows : bool, default=False
        Whether to return all training rows where the paper used fewer: 60 000 of mnist, not
        45 000.
    dtype : float64 or float32, default=float64
        Type of the rows. Both represent whole numbers of the datasets exactly.
    can_download : bool, default=True
        Whether to download a dataset that is not on this computer.
    progress : callable or None, default=None
        Called during a download with the address, the bytes received and their total (or None).
        None shows no progress; ``limes datasets`` draws a bar.

    Returns
    -------
    Dataset
        Rows, labels and their origin.

    Examples
    --------
    >>> data = load("sat")  # doctest: +SKIP
    >>> data.X_train.shape, data.X_test.shape  # doctest: +SKIP
    ((4435, 36), (2000, 36))
    """
    entry = find_entry(name)
    _check_options(test_fraction, dtype)
    path = find_file(entry) or _fetch(entry, can_download, progress or _no_progress)
    arrays = _reduce(entry, read_file(entry, path), all_rows)
    if test_fraction is None and "y_test" not in arrays:
        test_fraction = parameters(name).test_fraction
    if test_fraction is not None:
        arrays = _split(arrays, test_fraction, random_state)
    is_partial = is_partial_file(path)
    return Dataset(
        name=name,
        X_train=np.ascontiguousarray(arrays["X_train"], dtype),
        y_train=arrays["y_train"],
        X_test=np.ascontiguousarray(arrays["X_test"], dtype),
        y_test=arrays["y_test"],
        classes=np.arange(entry.n_classes),
        kind=entry.kind,
        source=entry.source,
        licence=entry.licence,
        note=_note(entry, is_partial),
        is_partial=is_partial,
    )


def _check_options(test_fraction: float | None, dtype: DTypeLike) -> None:
    """Raise an error for invalid options, before anything is downloaded."""
    if test_fraction is not None and not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction must lie between 0 and 1, got {test_fraction!r}.")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")


def find_file(entry: Entry) -> Path | None:
    """Return the file of a dataset, a partial one only if there is no complete one."""
    folders = [*_user_folder(), cache_folder()]
    stems = [entry.name] + [f"{entry.name}_partial"] * bool(entry.partial_counts)
    paths = [folder / f"{stem}.npz" for stem in stems for folder in folders]
    return next((path for path in paths if path.is_file()), None)


def _user_folder() -> list[Path]:
    """Return the folder in LIMES_DATA, if that is set."""
    value = os.environ.get("LIMES_DATA")
    if not value:
        return []
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"LIMES_DATA must be an existing folder, got {value!r}: correct or unset it."
        )
    return [folder]


def cache_folder() -> Path:
    """Return the folder of downloaded datasets.

    ``$LIMES_CACHE`` if it is set, else a folder "limes" where the platform has caches:
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


def is_partial_file(path: Path) -> bool:
    """Return whether a file has, by its name, only a part of the rows."""
    return path.stem.endswith("_partial")


def _fetch(entry: Entry, can_download: bool, progress: Progress) -> Path:
    """Download a dataset into the cache and return its file."""
    path = cache_folder() / f"{entry.name}.npz"
    advice = f"put {path.name} into {path.parent} or into the folder LIMES_DATA."
    if not can_download:
        raise FileNotFoundError(f"The dataset {entry.name!r} is not on this computer: {advice}")
    try:
        arrays = ORIGINS[entry.name].fetch(entry, progress)
    except OSError as error:
        raise FileNotFoundError(
            f"The dataset {entry.name!r} is not on this computer and could not be downloaded "
            f"({error}): {advice}"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"The download from {entry.source} is not the dataset {entry.name!r} "
            f"({error}): {advice}"
        ) from error
    check_arrays(entry, arrays, f"The download from {entry.source}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
    return path


def _no_progress(address: str, n_bytes: int, total: int | None) -> None:
    """Show nothing."""


def read_file(entry: Entry, path: Path) -> Arrays:
    """Read a dataset file and check it against the entry."""
    is_partial = is_partial_file(path)
    keys = [f"{array}_{part}" for part in _expected(entry, is_partial) for array in "Xy"]
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in keys if key in archive.files}
    except UNREADABLE as error:
        # NumPy takes unknown files for pickles, and its message advises to allow them.
        reason = "it is no archive of plain arrays" if "pickle" in str(error) else error
        raise ValueError(
            f"{path} is not a readable dataset file ({reason}): delete or replace it."
        ) from error
    check_arrays(entry, arrays, str(path), is_partial=is_partial)
    return arrays


def check_arrays(entry: Entry, arrays: Arrays, origin: str, *, is_partial: bool = False) -> None:
    """Raise an error that names the origin unless rows, columns and classes match the entry."""
    try:
        for part, counts in _expected(entry, is_partial).items():
            X, y = _find_part(arrays, part)
            _check_rows(X, (sum(counts), entry.n_features))
            _check_labels(y, counts, entry.n_classes)
    except ValueError as error:
        raise ValueError(f"{origin} is not the dataset {entry.name!r}: {error}") from error


def _expected(entry: Entry, is_partial: bool) -> dict[str, tuple[int, ...]]:
    """Return the parts of a file, each with its number of rows of each class."""
    if is_partial:
        return {"train": entry.partial_counts}
    parts = {"train": entry.train_counts, "test": entry.test_counts}
    return {part: counts for part, counts in parts.items() if counts}


def _find_part(arrays: Arrays, part: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows and labels of a part."""
    try:
        return arrays[f"X_{part}"], arrays[f"y_{part}"]
    except KeyError as error:
        raise ValueError(f"the array {error} is missing, found {sorted(arrays)}.") from None


def _check_rows(X: NDArray[Any], shape: tuple[int, int]) -> None:
    """Raise an error unless rows have the shape and are finite numbers."""
    if X.shape != shape:
        raise ValueError(f"rows must have the shape {shape}, got {X.shape}.")
    if X.dtype.kind not in "iuf" or not np.isfinite(X).all():
        raise ValueError(f"rows must be finite numbers, got others of type {X.dtype}.")


def _check_labels(y: NDArray[Any], counts: tuple[int, ...], n_classes: int) -> None:
    """Raise an error unless the classes have the expected numbers of rows, as far as known."""
    if y.shape != (sum(counts),) or y.dtype.kind not in "iu":
        raise ValueError(f"labels must be {sum(counts)} integers, got {y.shape} of {y.dtype}.")
    if y.min() != 0 or y.max() != n_classes - 1:
        raise ValueError(f"labels must be 0 to {n_classes - 1}, got {y.min()} to {y.max()}.")
    y_counts = tuple(np.bincount(y).tolist())
    if len(counts) == n_classes and y_counts != counts:
        raise ValueError(f"classes must have {counts} rows, got {y_counts}.")


def _reduce(entry: Entry, arrays: Arrays, all_rows: bool) -> Arrays:
    """Return the columns and training rows that the paper used."""
    n_train = len(arrays["y_train"]) if all_rows else entry.n_train_used
    used_rows = {"train": slice(n_train), "test": slice(None)}
    reduced = {}
    for part, rows in used_rows.items():
        if f"y_{part}" in arrays:
            X = arrays[f"X_{part}"][rows]
            reduced[f"X_{part}"] = X[:, entry.columns] if entry.runs else X
            reduced[f"y_{part}"] = arrays[f"y_{part}"][rows].astype(np.intp)
    return reduced


def _split(
    arrays: Arrays, test_fraction: float, random_state: int | np.random.RandomState | None
) -> Arrays:
    """Pool all rows and split them at random."""
    X = np.concatenate([arrays[key] for key in ("X_train", "X_test") if key in arrays])
    y = np.concatenate([arrays[key] for key in ("y_train", "y_test") if key in arrays])
    parts = train_test_split(X, y, test_size=test_fraction, random_state=random_state)
    return dict(zip(("X_train", "X_test", "y_train", "y_test"), parts, strict=True))


def _note(entry: Entry, is_partial: bool) -> str:
    """Return the remarks for the user, first of all that rows are missing."""
    if not is_partial:
        return entry.note
    n_rows, n_all = sum(entry.partial_counts), sum(entry.train_counts + entry.test_counts)
    return f"Only {n_rows} of {n_all} rows are available, without the published split. {entry.note}"


def list_datasets() -> list[Listing]:
    """List the seventeen datasets, and which of them are on this computer.

    Returns
    -------
    list of Listing
        In the paper's order, with the shapes that :func:`load` returns. Files are not opened.

    Examples
    --------
    >>> [listing.name for listing in list_datasets()][:3]
    ['heart', 'shuttle', 'sat']
    """
    return [_listing(entry) for entry in ENTRIES]


def _listing(entry: Entry) -> Listing:
    """Return the facts about one dataset and its file."""
    path = find_file(entry)
    is_partial = path is not None and is_partial_file(path)
    return Listing(
        name=entry.name,
        n_train=sum(entry.partial_counts) if is_partial else entry.n_train,
        n_test=0 if is_partial else entry.n_test,
        n_features=len(entry.columns),
        n_classes=entry.n_classes,
        kind=entry.kind,
        source=entry.source,
        licence=entry.licence,
        note=_note(entry, is_partial),
        is_present=path is not None,
        is_partial=is_partial,
        path=path,
    )
