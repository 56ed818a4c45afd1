"""Sizes and agreement of C headers for `docs/microcontrollers.md`: one row per dataset and type."""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from limes.classifier import BordersClassifier, accelerate
from limes.datasets import Dataset, load
from limes.export.c import c_header
from limes.export.size import measure_sizes
from limes.model.packed import table_bytes
from limes.research.results import read_rows, write_rows
from limes.sources.exact import exact_scheme_of

DATASETS = ("heart", "segment", "pendigits", "sat", "letter", "usps", "splice", "phishing")
DTYPES = ("float32", "int16", "int8")
MAX_BYTES = 16384
# Training rows of the SVM, at most.
MAX_ROWS = 4000
TABLE = re.compile(r"(?<=<!-- rows -->\n).*(?=<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class SizeRow:
    """One header."""

    dataset: str
    dtype: str
    n_borders: int
    # Shape of the base function.
    base: str
    # Tables of the header, and of the exact sums of the source as float32.
    table_bytes: int
    source_bytes: int
    n_test_rows: int
    # Share of test rows with the label of the float model; that with the source's.
    agreement: float
    source_agreement: float
    # On an ATmega328P and a Cortex-M0; None where it does not fit.
    avr_flash: int | None
    avr_ram: int | None
    m0_flash: int | None
    m0_ram: int | None
    multiply_adds: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, store the rows, and write the table into the page; or write the table alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of the pages")
    parser.add_argument("--table", action="store_true", help="write the table from stored rows")
    args = parser.parse_args(arguments)
    path, page = args.docs / "microcontrollers" / "sizes.csv", args.docs / "microcontrollers.md"
    if not args.table:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_rows(path, SizeRow, [row for name in DATASETS for row in measure(name)])
    text = page.read_text(encoding="utf-8")
    page.write_text(TABLE.sub(make_table(read_rows(path, SizeRow)), text), encoding="utf-8")


def measure(name: str) -> Iterator[SizeRow]:
    """Fit a map of at most 16 kB to an SVM, and measure its headers of all types."""
    data = load(name)
    X, y = data.X_train[:MAX_ROWS], data.y_train[:MAX_ROWS]
    source = make_pipeline(StandardScaler(), SVC(C=10)).fit(X, y)
    limits = {"max_bytes": MAX_BYTES, "fallback": False, "random_state": 0}
    fast = accelerate(source, X, scheme="shared", **limits)
    exact = exact_scheme_of(source)
    assert exact is not None
    for dtype in DTYPES:
        yield _measure_header(name, dtype, fast, data, source, table_bytes(exact, fast.classes_))


def _measure_header(
    name: str,
    dtype: str,
    fast: BordersClassifier,
    data: Dataset,
    source: object,
    source_bytes: int,
) -> SizeRow:
    """Return the row of one header; agreement is that on test rows, with the ranges of the fit."""
    from limes.export.c_fixed import fixed_scheme

    header = c_header(fast, name="model", dtype=dtype)
    rows = data.X_test.astype(np.float32)
    floats = fast.scheme_.classify(rows)
    found = floats
    if dtype != "float32":
        found = fixed_scheme(fast, fast.scheme_, dtype, None).class_index(rows)
    avr, m0 = measure_sizes(header, fast.cost_)
    curve = fast.scheme_.maps[0].curve
    return SizeRow(
        name,
        dtype,
        fast.n_borders_,
        "linear" if curve is None else curve.shape,
        header.sizes.total,
        source_bytes,
        len(rows),
        float(np.mean(found == floats)),
        float(np.mean(fast.classes_[found] == source.predict(data.X_test))),  # type: ignore[attr-defined]
        avr.flash,
        avr.ram,
        m0.flash,
        m0.ram,
        avr.multiply_adds,
    )


def make_table(rows: Sequence[SizeRow]) -> str:
    """Return the table of the page."""
    lines = [
        "| dataset | type | points, base | tables | SVM | agrees | with SVM | AVR flash | RAM | M0 "
        "flash | RAM | multiply-adds |",
        "| --- | --- | --- " + "| ---: " * 9 + "|",
    ]
    for row in rows:
        sizes = [row.avr_flash, row.avr_ram, row.m0_flash, row.m0_ram]
        cells = [
            row.dataset,
            row.dtype,
            f"{row.n_borders}, {row.base}",
            f"{row.table_bytes:,}",
            f"{row.source_bytes:,}",
            f"{row.agreement:.2%}",
            f"{row.source_agreement:.2%}",
            *("none" if size is None else f"{size:,}" for size in sizes),
            f"{row.multiply_adds:,}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
