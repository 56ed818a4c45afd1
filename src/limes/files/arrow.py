"""The one place that imports pyarrow, which reads and writes tables of columns."""

try:
    import pyarrow
    import pyarrow.csv
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError as error:
    raise ImportError(
        "CSV, Parquet and Arrow files need pyarrow: install it with pip install 'limes[files]'."
    ) from error

import numpy as np
from numpy.typing import NDArray

__all__ = ["parse_numbers", "pyarrow"]

# A byte that no text of numbers holds: every line is one field.
NO_DELIMITER = "\x01"


def parse_numbers(text: bytes) -> NDArray[np.float64]:
    r"""Return the numbers of a text that has one on each line.

    Examples
    --------
    >>> parse_numbers(b"1\n-2.5e3\n")
    array([ 1.0e+00, -2.5e+03])
    """
    csv = pyarrow.csv
    table = csv.read_csv(
        pyarrow.BufferReader(text),
        read_options=csv.ReadOptions(use_threads=False, column_names=["number"]),
        parse_options=csv.ParseOptions(
            delimiter=NO_DELIMITER, quote_char=False, ignore_empty_lines=False
        ),
        convert_options=csv.ConvertOptions(
            column_types={"number": pyarrow.float64()}, null_values=[], check_utf8=False
        ),
    )
    return table.column(0).to_numpy()
