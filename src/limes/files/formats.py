"""Which format a file of rows has: by its ending, or by name."""

from pathlib import PurePath

# What each format's files end with. LIBSVM's own have all kinds of endings, or none.
ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".vec": "libagf",
    ".cls": "libagf",
}
FORMATS = ("libsvm", "csv", "parquet", "arrow", "npy", "npz", "libagf")
COMPRESSIONS = (".gz", ".bz2", ".xz")
# Text that a pipe can carry; the others need a file that can be searched.
TEXT_FORMATS = ("libsvm", "csv")


def find_format(path: PurePath, kind: str | None = None) -> str:
    """Return the format of a file.

    Parameters
    ----------
    path : PurePath
        File; ``-`` stands for a pipe.
    kind : str, default=None
        The format's name where the user gives it; None goes by the ending.

    Returns
    -------
    str
        One of ``FORMATS``; LIBSVM text where the ending says nothing.

    Examples
    --------
    >>> find_format(PurePath("rows.csv.gz")), find_format(PurePath("heart_scale"))
    ('csv', 'libsvm')
    """
    if kind is not None and kind not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {kind!r}.")
    found = kind or ENDINGS.get(plain_suffix(path), "libsvm")
    compression = compression_of(path)
    if compression and found not in TEXT_FORMATS:
        raise ValueError(
            f"{path}: only LIBSVM text and CSV are read and written compressed, not {found!r}: "
            f"decompress the file first, or leave {compression!r} out of its name."
        )
    if str(path) == "-" and found not in TEXT_FORMATS:
        raise ValueError(f"a pipe can carry {' or '.join(TEXT_FORMATS)}, not {found!r}.")
    return found


def compression_of(path: PurePath) -> str:
    """Return the ending of a compressed file, or nothing."""
    suffix = path.suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


def plain_suffix(path: PurePath) -> str:
    """Return the ending of a file's name, without that of a compression."""
    return (path.with_suffix("") if compression_of(path) else path).suffix.lower()
