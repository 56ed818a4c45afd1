"""The paper's six tables."""

from collections.abc import Callable, Sequence

from limes.datasets import parameters
from limes.datasets.catalogue import find_entry
from limes.research.paper.checks import Verdict, find_verdict
from limes.research.paper.plan import (
    AGF_DATASETS,
    AGF_METHODS,
    EVERYTHING,
    MATCHED,
    RESULT_METHODS,
    TrialRow,
)
from limes.research.paper.published import (
    DATASETS,
    find_printed,
    printed_number,
    printed_spread,
    printed_verdict,
)
from limes.research.results import select
from limes.research.table import Cell, Column, Spread, Table, spread_of

PARTIAL = "¹"
PARTIAL_NOTE = f"{PARTIAL} Only 4000 of 98 528 rows are available: not comparable with the paper."
Lines = list[list[Cell]]
# How two numbers of a kind are compared: head and kind of the column, and the comparison.
COMPARED: dict[str, tuple[str, str, Callable[[float, float], float]]] = {
    "skill": ("difference", "change", lambda ours, theirs: ours - theirs),
    "count": ("difference", "percent", lambda ours, theirs: ours / theirs - 1),
    "seconds": ("paper/ours", "ratio", lambda ours, theirs: theirs / ours),
}
SKILL = "uncertainty_coefficient"
# Table 5: head and kind of each comparison, the column of our rows and the paper's.
SUBSAMPLED = {
    ("U.C.", "skill"): (SKILL, SKILL),
    ("accuracy", "skill"): ("accuracy", "accuracy"),
    ("rows", "count"): ("n_train", "train_samples"),
    ("support vectors", "count"): ("n_support", "support_vectors"),
    ("test s", "seconds"): ("test_seconds", "test_seconds"),
    ("train s", "seconds"): ("train_seconds", "train_seconds"),
}
# Table 6: head and kind of each comparison, whose trials, their column, and the paper's.
VERDICTS = {
    ("U.C. of SVM", "skill"): ("svm", SKILL, "svm_uc"),
    ("U.C. of borders", "skill"): ("fast", SKILL, "borders_uc"),
    ("SVM s", "seconds"): ("svm", "test_seconds", "svm_seconds"),
    ("borders s", "seconds"): ("fast", "test_seconds", "borders_seconds"),
}
# The paper has one SVM, and does not print whether it predicts by votes or by probabilities.
PRINTED_AS = {"svm-probability": "svm"}
# Table 2: our name of each parameter, the paper's column and the head.
PARAMETERS = {
    "n_trials": ("trials", "trials"),
    "test_fraction": ("test_fraction", "test fraction"),
    "linear_type": ("linear_type", "LIBLINEAR type"),
    "gamma": ("svm_gamma", "gamma"),
    "C": ("svm_C", "C"),
    "n_borders": ("n_borders_per_pair", "points per pair"),
}
# Table 3: column of our rows, head and kind of each comparison.
RESULTS = {
    "uncertainty_coefficient": ("U.C.", "skill"),
    "accuracy": ("accuracy", "skill"),
    "test_seconds": ("test s", "seconds"),
    "train_seconds": ("train s", "seconds"),
}
# Table 4: head and kind of each comparison, the method, its column, and the paper's.
SIZES = {
    ("training rows", "count"): ("svm", "n_train", "train"),
    ("support vectors", "count"): ("svm", "n_support", "support_vectors"),
    ("border points", "count"): ("borders", "n_borders", "border_points_total"),
    ("SVM s", "seconds"): ("svm", "test_seconds", "svm_test_seconds"),
    ("borders s", "seconds"): ("borders", "test_seconds", "borders_test_seconds"),
}


def make_tables(rows: Sequence[TrialRow], datasets: Sequence[str] = EVERYTHING) -> dict[str, Table]:
    """Make all tables."""
    names = [name for name in DATASETS if name in datasets]
    tables = [
        datasets_table(rows, names),
        parameters_table(names),
        results_table(rows, names),
        sizes_table(rows, names),
        subsampled_table(rows, names),
        verdicts_table(rows, names),
        agf_table(rows, [name for name in AGF_DATASETS if name in datasets]),
    ]
    return {table.name: table for table in tables}


def datasets_table(rows: Sequence[TrialRow], names: Sequence[str]) -> Table:
    """Make table 1: sizes of the datasets."""
    quantities = ("features", "classes", "train", "test")
    lines: Lines = []
    for name in names:
        line = find_printed("datasets", dataset=name)
        trials = select(rows, experiment="results", dataset=name, method="svm", seed=0)
        theirs = [printed_number(line, column) for column in quantities]
        ours = _sizes(trials[0], has_split=theirs[-1] is not None) if trials else _known_sizes(name)
        pairs = list(zip(ours, theirs, strict=True))
        differs = [key for key, pair in zip(quantities, pairs, strict=True) if len({*pair}) > 1]
        numbers: list[Cell] = [cell for pair in pairs for cell in pair]
        lines.append(
            [mark_partial(name, trials), find_entry(name).kind, *numbers, ", ".join(differs)]
        )
    heads = [Column(f"{column}{who}", "count") for column in quantities for who in ("", ", paper")]
    columns = [Column("dataset"), Column("kind"), *heads, Column("differs")]
    note = "Rows without a published split are all listed as training rows, as in the paper."
    return Table("datasets", "Table 1: datasets", columns, lines, with_partial(note, lines))


def _sizes(row: TrialRow, *, has_split: bool) -> list[float | None]:
    """Return features, classes, training and test rows; without a split all count as training."""
    is_split = has_split and row.part == "whole"
    parts = (row.n_train, row.n_test) if is_split else (row.n_train + row.n_test, None)
    return [row.n_features, row.n_classes, *parts]


def _known_sizes(name: str) -> list[float | None]:
    """Return the same for a dataset without trials, from the catalogue."""
    entry = find_entry(name)
    return [len(entry.columns), entry.n_classes, entry.n_train, entry.n_test or None]


def parameters_table(names: Sequence[str]) -> Table:
    """Make table 2: parameters of the training."""
    lines: Lines = []
    for name in names:
        settings, line = parameters(name), find_printed("parameters", dataset=name)
        ours = [f"{getattr(settings, field):g}" for field in PARAMETERS]
        theirs = [f"{float(line[column]):g}" for column, _ in PARAMETERS.values()]
        pairs = list(zip(ours, theirs, strict=True))
        differs = [field for field, pair in zip(PARAMETERS, pairs, strict=True) if len({*pair}) > 1]
        lines.append([name, *(word for pair in pairs for word in pair), ", ".join(differs)])
    heads = [f"{head}{who}" for _, head in PARAMETERS.values() for who in ("", ", paper")]
    columns = [Column("dataset"), *map(Column, heads), Column("differs")]
    return Table("parameters", "Table 2: parameters", columns, lines)


def results_table(rows: Sequence[TrialRow], names: Sequence[str]) -> Table:
    """Make table 3: skill and time of all methods."""
    lines = [
        _result_line(trials, name, method)
        for name in names
        for method in RESULT_METHODS
        if (trials := select(rows, experiment="results", dataset=name, method=method))
    ]
    start = [Column("dataset"), Column("method"), Column("trials", "count")]
    columns = [
        *start,
        *(column for head in RESULTS.values() for column in comparison_columns(*head)),
    ]
    note = (
        "Times are processor seconds for all test rows with one thread, without reading files; the "
        "paper's are for whole programs on another computer."
    )
    return Table("results", "Table 3: skill and time", columns, lines, with_partial(note, lines))


def _result_line(trials: Sequence[TrialRow], name: str, method: str) -> list[Cell]:
    """Return the numbers of one method on one dataset."""
    cells: list[Cell] = [mark_partial(name, trials), method, len(trials)]
    printed_as = PRINTED_AS.get(method, method)
    for quantity, (_, kind) in RESULTS.items():
        line = find_printed("results", dataset=name, method=printed_as, quantity=quantity)
        theirs = printed_spread(line, "mean", "std")
        cells += comparison_cells(spread_of(trials, quantity), theirs, kind)
    return cells


def sizes_table(rows: Sequence[TrialRow], names: Sequence[str]) -> Table:
    """Make table 4: support vectors and border points."""
    tried = [
        name for name in names if select(rows, experiment="results", dataset=name, method="svm")
    ]
    lines: Lines = [_size_line(rows, name) for name in tried]
    heads = [column for head in SIZES for column in comparison_columns(*head)]
    limes_columns = [Column("points of limes", "count"), Column("limes s", "seconds")]
    note = (
        "The paper's totals of dna, letter, pendigits and seismic are not the points per pair "
        "(table 2) times the pairs; ours are, except on shuttle, where some classes have few rows."
    )
    return Table(
        "sizes",
        "Table 4: model sizes",
        [Column("dataset"), *heads, *limes_columns],
        lines,
        with_partial(note, lines),
    )


def _size_line(rows: Sequence[TrialRow], name: str) -> list[Cell]:
    """Return the sizes of all models of one dataset."""
    line = find_printed("sizes", dataset=name)
    results = select(rows, experiment="results", dataset=name)
    cells: list[Cell] = [mark_partial(name, results)]
    for (_, kind), (method, column, printed_column) in SIZES.items():
        ours = spread_of(select(results, method=method), column)
        theirs = printed_spread(line, printed_column, f"{printed_column}_std")
        cells += comparison_cells(ours, theirs, kind)
    limes = select(results, method="limes")
    return [*cells, spread_of(limes, "n_borders"), spread_of(limes, "test_seconds")]


def subsampled_table(rows: Sequence[TrialRow], names: Sequence[str]) -> Table:
    """Make table 5: SVMs on fewer rows with the skill of the borders."""
    verdicts = {name: find_verdict(rows, name, "borders") for name in names}
    lines: Lines = [
        _subsampled_line(name, verdict) for name, verdict in verdicts.items() if verdict
    ]
    columns = [
        *(Column("dataset"), Column("trials", "count"), Column("U.C. of borders", "skill")),
        *(column for head in SUBSAMPLED for column in comparison_columns(*head)),
    ]
    note = (
        "The fraction of the training rows is found by bisection, in steps of 9 %; all rows where "
        "the SVM on all rows is no better than its borders. Where the trials at the end of the "
        "search differ from the U.C. by more than 0.01, the next fraction is tried as often; of "
        "all tried so often, the nearest in U.C. is shown. The paper has no line for some datasets."
    )
    return Table(
        "subsampled", "Table 5: sub-sampled SVM", columns, lines, with_partial(note, lines)
    )


def _subsampled_line(name: str, verdict: Verdict) -> list[Cell]:
    """Return the sub-sampled SVMs of one dataset."""
    line = find_printed("subsampled", dataset=name)
    cells: list[Cell] = []
    for (_, kind), (column, printed_column) in SUBSAMPLED.items():
        theirs = printed_spread(line, printed_column, f"{printed_column}_std")
        cells += comparison_cells(verdict.spread("svm", column), theirs, kind)
    skill = verdict.spread("fast", SKILL)
    return [mark_partial(name, verdict.svm), len(verdict.svm), skill, *cells]


def verdicts_table(rows: Sequence[TrialRow], names: Sequence[str]) -> Table:
    """Make table 6: accelerated SVMs against sub-sampled ones of equal skill."""
    verdicts = {name: [find_verdict(rows, name, method) for method in MATCHED] for name in names}
    lines: Lines = [_verdict_line(name, *pair) for name, pair in verdicts.items() if any(pair)]
    ratios = ("SVM/borders, paper", "SVM/borders", "SVM/limes", "SVM in core/borders")
    columns = [
        *map(Column, ("dataset", "paper", "borders", "limes")),
        *(Column(head, "ratio") for head in (*ratios, "SVM in core/limes")),
        *(column for head in VERDICTS for column in comparison_columns(*head)),
        *(Column(f"U.C. of {what}", "skill") for what in ("SVM as good as limes", "limes")),
        *(Column(head, "seconds") for head in ("SVM s as good as limes", "limes s")),
    ]
    note = (
        "Succeeds: the sub-sampled SVM of equal U.C. is slower. * A linear classifier has a higher "
        "U.C. SVM in core: the ratio for an SVM that is summed in limes' core, not by LIBSVM."
    )
    return Table("verdicts", "Table 6: verdicts", columns, lines, with_partial(note, lines))


def _verdict_line(name: str, borders: Verdict | None, limes: Verdict | None) -> list[Cell]:
    """Return the paper's verdict on one dataset and ours."""
    line = find_printed("verdicts", dataset=name)
    verdicts = (borders, limes)
    svm_trials = [row for verdict in verdicts if verdict for row in verdict.svm]
    compared: list[Cell] = []
    for (_, kind), (which, column, printed_column) in VERDICTS.items():
        theirs = printed_spread(line, printed_column, f"{printed_column}_std")
        compared += comparison_cells(_spread(borders, which, column), theirs, kind)
    return [
        *(mark_partial(name, svm_trials), printed_verdict(name)),
        *(getattr(verdict, "word", None) for verdict in verdicts),
        float(line["svm_seconds"]) / float(line["borders_seconds"]),
        *(getattr(verdict, "speedup", None) for verdict in verdicts),
        *(getattr(verdict, "core_speedup", None) for verdict in verdicts),
        *compared,
        *(_spread(limes, which, SKILL) for which in ("svm", "fast")),
        *(_spread(limes, which, "test_seconds") for which in ("svm", "fast")),
    ]


def _spread(verdict: Verdict | None, which: str, column: str) -> Spread | None:
    """Return mean and spread of a verdict's column, None if there is no verdict."""
    return None if verdict is None else verdict.spread(which, column)


def agf_table(rows: Sequence[TrialRow], names: Sequence[str]) -> Table:
    """Make a table that the paper does not have: AGF as the source."""
    lines: Lines = []
    for name in names:
        for method in ("svm", *AGF_METHODS):
            trials = select(rows, experiment="results", dataset=name, method=method)
            if trials:
                skills = [spread_of(trials, column) for column in (SKILL, "accuracy", "agreement")]
                lines.append([name, method, len(trials), *skills, _microseconds(trials)])
    heads = [Column(head, "skill") for head in ("U.C.", "accuracy", "agreement with the source")]
    start = [Column("dataset"), Column("method"), Column("trials", "count")]
    columns = [*start, *heads, Column("µs per row", "seconds")]
    return Table("agf", "AGF as the source", columns, lines)


def _microseconds(trials: Sequence[TrialRow]) -> float | None:
    """Return the mean microseconds per row."""
    seconds = spread_of(trials, "test_seconds")
    return None if seconds is None else 1e6 * seconds.mean / trials[0].n_test


def comparison_columns(name: str, kind: str) -> list[Column]:
    """Return the heads of three columns: ours, the paper's, and the comparison.

    Examples
    --------
    >>> [column.head for column in comparison_columns("test s", "seconds")]
    ['test s', 'test s, paper', 'test s, paper/ours']
    """
    last, last_kind, _ = COMPARED[kind]
    return [
        Column(name, kind),
        Column(f"{name}, paper", kind),
        Column(f"{name}, {last}", last_kind),
    ]


def comparison_cells(ours: Spread | None, theirs: Spread | None, kind: str) -> list[Cell]:
    """Return the cells of those three columns.

    Examples
    --------
    >>> comparison_cells(Spread(2.0), Spread(3.0), "seconds")[2]
    1.5
    """
    if ours is None or theirs is None:
        return [ours, theirs, None]
    return [ours, theirs, COMPARED[kind][2](ours.mean, theirs.mean)]


def mark_partial(name: str, trials: Sequence[TrialRow]) -> str:
    """Mark a dataset of which only a part is available."""
    return f"{name}{PARTIAL}" if any(row.part == "part" for row in trials) else name


def with_partial(note: str, lines: Lines) -> str:
    """Explain the mark of a partial dataset, if there is one."""
    is_marked = any(str(line[0]).endswith(PARTIAL) for line in lines)
    return f"{note} {PARTIAL_NOTE}" if is_marked else note
