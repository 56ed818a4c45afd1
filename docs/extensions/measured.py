"""Tables and figures in the text that are computed from the committed rows of the benchmarks."""

import csv
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results.csv"
Row = dict[str, str]


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directives and roles of this module."""
    app.add_directive("benchmark-table", BenchmarkTable)
    app.add_directive("benchmark-single", SingleRows)
    app.add_directive("benchmark-ratios", Ratios)
    app.add_role("ratio", RatioRole())
    app.add_role("median-ratio", MedianRatioRole())
    app.add_role("skill", SkillRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}


@cache
def results() -> dict[tuple[str, str], Row]:
    """Return the rows by dataset and method, measured with one thread."""
    with RESULTS.open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["threads"] == "1"]
    return {(row["dataset"], row["method"]): row for row in rows}


def microseconds(dataset: str, method: str) -> float:
    """Return the time per row in a batch."""
    return float(results()[dataset, method]["microseconds_per_row"])


def times(value: float) -> str:
    """Write a ratio with two digits, or as a whole number."""
    return f"{value:.2g} times" if value < 100 else f"{value:.0f} times"


class _Table(SphinxDirective):
    """A table of datasets and methods."""

    option_spec: ClassVar = {
        "datasets": directives.unchanged,
        "methods": directives.unchanged_required,
    }
    has_content = False
    heading: tuple[str, ...]

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        self.env.note_dependency(str(RESULTS))
        methods = self.options["methods"].split()
        named = self.options.get("datasets", "").split()
        rows = self.rows(named or sorted({dataset for dataset, _ in results()}), methods)
        return [make_table(self.columns(methods), rows)]

    def columns(self, methods: list[str]) -> list[str]:
        """Return the heading."""
        raise NotImplementedError

    def rows(self, datasets: list[str], methods: list[str]) -> list[list[str]]:
        """Return the lines of the table."""
        raise NotImplementedError


class BenchmarkTable(_Table):
    """Skill and time of some methods on some datasets."""

    def columns(self, methods: list[str]) -> list[str]:
        """Return the heading."""
        return ["dataset", "method", "accuracy", "U.C.", "µs per row", "agreement with svc"]

    def rows(self, datasets: list[str], methods: list[str]) -> list[list[str]]:
        """Return one line for each method of a dataset."""
        return [
            [
                dataset,
                method,
                f"{float(row['accuracy']):.3f}",
                f"{float(row['uncertainty_coefficient']):.3f}",
                f"{float(row['microseconds_per_row']):.3g}",
                f"{float(row['agreement']):.1%}",
            ]
            for dataset in datasets
            for method in methods
            if (row := results().get((dataset, method)))
        ]


class SingleRows(_Table):
    """Time for a single row, a column for each method."""

    def columns(self, methods: list[str]) -> list[str]:
        """Return the heading."""
        return ["dataset", *methods]

    def rows(self, datasets: list[str], methods: list[str]) -> list[list[str]]:
        """Return one line for each dataset."""
        return [
            [dataset]
            + [
                f"{float(results()[dataset, method]['microseconds_single_row']):.2g}"
                for method in methods
            ]
            for dataset in datasets
        ]


class Ratios(_Table):
    """Time per row of some methods divided by that of limes, and the skill of source and model."""

    def columns(self, methods: list[str]) -> list[str]:
        """Return the heading."""
        ratios = [f"{method} / limes" for method in methods]
        return ["dataset", "U.C. of svc", "U.C. of limes", "µs per row, limes", *ratios]

    def rows(self, datasets: list[str], methods: list[str]) -> list[list[str]]:
        """Return one line for each dataset."""
        return [
            [
                dataset,
                f"{float(results()[dataset, 'svc']['uncertainty_coefficient']):.3f}",
                f"{float(results()[dataset, 'limes']['uncertainty_coefficient']):.3f}",
                f"{microseconds(dataset, 'limes'):.2g}",
            ]
            + [
                f"{microseconds(dataset, method) / microseconds(dataset, 'limes'):.0f}"
                for method in methods
            ]
            for dataset in datasets
        ]


class RatioRole(SphinxRole):
    """``dataset first second``: how many times as long the second method takes as the first."""

    def run(self) -> tuple[list[nodes.Node], list[Any]]:
        """Return the figure as text."""
        dataset, first, second = self.text.split()
        value = microseconds(dataset, second) / microseconds(dataset, first)
        return [nodes.Text(times(value))], []


class MedianRatioRole(SphinxRole):
    """``first / second``: the median over all datasets of the time per row of both, divided."""

    def run(self) -> tuple[list[nodes.Node], list[Any]]:
        """Return the figure as text."""
        first, second = self.text.split(" / ")
        datasets = {dataset for dataset, method in results() if method == first}
        ratios = [microseconds(name, first) / microseconds(name, second) for name in datasets]
        return [nodes.Text(f"{median(ratios):.0f}")], []


class SkillRole(SphinxRole):
    """``dataset method``: the uncertainty coefficient, as a percentage."""

    def run(self) -> tuple[list[nodes.Node], list[Any]]:
        """Return the figure as text."""
        dataset, method = self.text.split()
        value = float(results()[dataset, method]["uncertainty_coefficient"])
        return [nodes.Text(f"{100 * value:.0f} %")], []


def make_table(columns: list[str], rows: list[list[str]]) -> nodes.table:
    """Return a table, numbers to the right."""
    group = nodes.tgroup(cols=len(columns))
    group += [nodes.colspec(colwidth=1) for _ in columns]
    heading, body = nodes.thead(), nodes.tbody()
    heading += _table_row(columns)
    body += [_table_row(row) for row in rows]
    group += [heading, body]
    table = nodes.table(classes=["table", "measured"])
    table += group
    return table


def _table_row(texts: list[str]) -> nodes.row:
    """Return a row of a table."""
    row = nodes.row()
    for text in texts:
        is_number = text.replace(".", "").replace("%", "").isdigit()
        cell = nodes.entry(classes=["text-right"] if is_number else [])
        cell += nodes.paragraph(text=text)
        row += cell
    return row
