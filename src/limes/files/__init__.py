"""Read and write files of rows in batches: LIBSVM text, CSV, Parquet, Arrow, NumPy, libAGF."""

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
