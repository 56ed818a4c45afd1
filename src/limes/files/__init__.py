"""Read and write files of rows in batches: LIBSVM text, CSV, Parquet, Arrow, NumPy, libAGF."""

import sys
from typing import TYPE_CHECKING, NoReturn

from limes.files.batches import Batch, LabelCollector, join_labels
from limes.files.predictions import create_predictions
from limes.files.rows import RowFile, RowOptions, create_rows, open_rows, read_rows
from limes.files.streams import FORMATS, find_format, find_input_format
from limes.old_names import refuse_old_name

__all__ = [
    "FORMATS",
    "Batch",
    "LabelCollector",
    "RowFile",
    "RowOptions",
    "create_predictions",
    "create_rows",
    "find_format",
    "find_input_format",
    "join_labels",
    "open_rows",
    "read_rows",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        """Raise for a name that is not there, giving its new one if it was renamed."""
        refuse_old_name(sys.modules[__name__], name, {"create_answers": "create_predictions"})
