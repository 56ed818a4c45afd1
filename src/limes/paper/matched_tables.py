"""The paper's tables 5 and 6 from rows: machines that are as good as the accelerated ones."""

from collections.abc import Sequence

from limes.paper.beside import (
    Lines,
    cells_beside,
    heads_beside,
    mark_partial,
    printed_spread,
    with_partial,
)
from limes.paper.plan import MATCHED
from limes.paper.printed import find_printed
from limes.paper.rows import Row
from limes.paper.statistics import Spread
from limes.paper.table import Cell, Column, Table
from limes.paper.verdicts import Verdict, judge, printed_verdict

SKILL = "uncertainty_coefficient"
# What table 5 compares: its head and kind, the column of our rows and the paper's.
SUBSAMPLED = {
    ("U.C.", "skill"): (SKILL, SKILL),
    ("accuracy", "skill"): ("accuracy", "accuracy"),
    ("rows", "count"): ("n_train", "train_samples"),
    ("support vectors", "count"): ("n_support", "support_vectors"),
    ("test s", "seconds"): ("test_seconds", "test_seconds"),
    ("train s", "seconds"): ("train_seconds", "train_seconds"),
}


def subsampled_table(rows: Sequence[Row], names: Sequence[str]) -> Table:
    """Make table 5: machines on fewer rows that are as good as the borders."""
    judged = {name: judge(rows, name, "borders") for name in names}
    lines: Lines = [_subsampled_line(name, one) for name, one in judged.items() if one]
    columns = [
        *(Column("dataset"), Column("trials", "count"), Column("U.C. of borders", "skill")),
        *(column for head in SUBSAMPLED for column in heads_beside(*head)),
    ]
    note = (
        "The fraction of the training rows is found by bisection, in steps of 9 %; all rows where "
        "the whole machine is no better than its borders. Where the trials at the end of the "
        "search miss the U.C. by more than 0.01, the fraction beside it is tried as often; of all "
        "tried so often, the nearest in U.C. is shown. The paper has no line of some datasets."
    )
    return Table(
        "subsampled", "Table 5: sub-sampled SVM", columns, lines, with_partial(note, lines)
    )


def _subsampled_line(name: str, verdict: Verdict) -> list[Cell]:
    """Return the sub-sampled machines of one dataset."""
    line = find_printed("subsampled", dataset=name)
    cells: list[Cell] = []
    for (_, kind), (column, their) in SUBSAMPLED.items():
        printed = printed_spread(line, their, f"{their}_std")
        cells += cells_beside(verdict.spread("machine", column), printed, kind)
    skill = verdict.spread("fast", SKILL)
    return [mark_partial(name, verdict.machine), len(verdict.machine), skill, *cells]


def verdicts_table(rows: Sequence[Row], names: Sequence[str]) -> Table:
    """Make table 6: whether the accelerated machines are worth having."""
    judged = {name: [judge(rows, name, method) for method in MATCHED] for name in names}
    lines: Lines = [_verdict_line(name, *own) for name, own in judged.items() if any(own)]
    ratios = ("SVM/borders, paper", "SVM/borders", "SVM/limes", "exact SVM/borders")
    columns = [
        *map(Column, ("dataset", "paper", "borders", "limes")),
        *(Column(head, "ratio") for head in (*ratios, "exact SVM/limes")),
        *(column for head in VERDICTS for column in heads_beside(*head)),
        *(Column(f"U.C. of {what}", "skill") for what in ("SVM as good as limes", "limes")),
        *(Column(head, "seconds") for head in ("SVM s as good as limes", "limes s")),
    ]
    note = (
        "Succeeds: the sub-sampled SVM of equal U.C. is slower. * A linear classifier has a higher "
        "U.C. Exact SVM: the ratio for an SVM that is summed in limes' own core, not by LIBSVM."
    )
    return Table("verdicts", "Table 6: verdicts", columns, lines, with_partial(note, lines))


# What table 6 compares: its head and kind, whose trials and what of them, and the paper's column.
VERDICTS = {
    ("U.C. of SVM", "skill"): ("machine", SKILL, "svm_uc"),
    ("U.C. of borders", "skill"): ("fast", SKILL, "borders_uc"),
    ("SVM s", "seconds"): ("machine", "test_seconds", "svm_seconds"),
    ("borders s", "seconds"): ("fast", "test_seconds", "borders_seconds"),
}


def _verdict_line(name: str, borders: Verdict | None, limes: Verdict | None) -> list[Cell]:
    """Return the paper's verdict on one dataset and ours."""
    line = find_printed("verdicts", dataset=name)
    found = [row for one in (borders, limes) if one for row in one.machine]
    compared: list[Cell] = []
    for (_, kind), (which, column, their) in VERDICTS.items():
        printed = printed_spread(line, their, f"{their}_std")
        compared += cells_beside(_spread(borders, which, column), printed, kind)
    return [
        *(mark_partial(name, found), printed_verdict(name)),
        *(getattr(one, "word", None) for one in (borders, limes)),
        float(line["svm_seconds"]) / float(line["borders_seconds"]),
        *(getattr(one, "speedup", None) for one in (borders, limes)),
        *(getattr(one, "exact_speedup", None) for one in (borders, limes)),
        *compared,
        *(_spread(limes, which, SKILL) for which in ("machine", "fast")),
        *(_spread(limes, which, "test_seconds") for which in ("machine", "fast")),
    ]


def _spread(verdict: Verdict | None, which: str, column: str) -> Spread | None:
    """Return a spread of a verdict, None where there is no verdict."""
    return None if verdict is None else verdict.spread(which, column)
