"""Files of rows: LIBSVM text, CSV, Parquet, Arrow, NumPy and libAGF, read and written in pieces."""

from limes.files.batches import Batch, LabelParts, join_labels
from limes.files.predictions import create_answers
from limes.files.rows import RowFile, RowOptions, create_rows, open_rows, read_rows
from limes.files.streams import FORMATS, find_format

__all__ = [
    "FORMATS",
    "Batch",
    "LabelParts",
    "RowFile",
    "RowOptions",
    "create_answers",
    "create_rows",
    "find_format",
    "join_labels",
    "open_rows",
    "read_rows",
]
