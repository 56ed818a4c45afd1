"""Files of rows: LIBSVM text, CSV, Parquet, Arrow, NumPy and libAGF, read and written in pieces."""

from limes.files.answers import create_answers
from limes.files.batch import Batch, join_labels
from limes.files.formats import FORMATS, find_format
from limes.files.reading import RowFile, RowOptions, open_rows, read_rows
from limes.files.writing import create_rows

__all__ = [
    "FORMATS",
    "Batch",
    "RowFile",
    "RowOptions",
    "create_answers",
    "create_rows",
    "find_format",
    "join_labels",
    "open_rows",
    "read_rows",
]
