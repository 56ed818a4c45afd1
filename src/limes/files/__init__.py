"""Files of rows: LIBSVM text, CSV, Parquet, Arrow, NumPy and libAGF, read and written in pieces."""

from limes.files.batches import Batch, LabelCollector, join_labels
from limes.files.predictions import create_predictions
from limes.files.rows import RowFile, RowOptions, create_rows, open_rows, read_rows
from limes.files.streams import FORMATS, find_format

__all__ = [
    "FORMATS",
    "Batch",
    "LabelCollector",
    "RowFile",
    "RowOptions",
    "create_predictions",
    "create_rows",
    "find_format",
    "join_labels",
    "open_rows",
    "read_rows",
]
