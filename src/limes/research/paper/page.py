"""The page of the paper: what agrees, what differs, its six tables, all figures."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from limes.datasets import parameters
from limes.datasets.catalogue import find_entry
from limes.research.paper.checks import (
    Claim,
    LawCheck,
    Verdict,
    check_claims,
    check_scaling_laws,
    check_text,
    check_vectors,
    find_verdict,
    missing_trials,
)
from limes.research.paper.figures import TIME_COLUMNS, save_figures
from limes.research.paper.plan import (
    AGF_DATASETS,
    AGF_METHODS,
    DATASETS,
    EVERYTHING,
    KEPT_FRACTIONS,
    MATCHED,
    RESULT_METHODS,
    UNFINISHED,
    FigurePoint,
    TrialRow,
    find_printed,
    printed_number,
    printed_spread,
    printed_verdict,
)
from limes.research.paper.scaling import (
    FAIR,
    GAMMAS,
    GOOD,
    SIDES,
    STRIP,
    ScalingRow,
    check_law,
    read_scaling,
    standard_error,
)
from limes.research.paper.times import (
    TimeRow,
    measured_break_even,
    read_times,
    shortest_times,
)
from limes.research.results import (
    Cell,
    Column,
    Goal,
    Spread,
    Table,
    read_rows,
    rounded_to_three_digits,
    select,
    spread_of,
)

INTRODUCTION = """\
# The paper, number by number

Peter Mills, *Accelerating kernel classifiers through borders mapping* (2018,
[arXiv:1708.05917](https://arxiv.org/abs/1708.05917)), evaluates the method on seventeen datasets.
This page repeats its tables and figures, and checks its claims. It is written from the trials in
[rows.csv]({folder}/rows.csv), [times.csv]({folder}/times.csv) and
[scaling.csv]({folder}/scaling.csv), by

```sh
limes paper --draw -o {output}
```

`limes paper -o {output}` runs the missing trials first; `limes paper --quick` runs a small subset
within minutes.

- **linear**: LIBLINEAR's solver of table 2, without an intercept, as its `train` does it.
- **svm**: LIBSVM (scikit-learn's `SVC`) with the paper's C and gamma, on standardised rows. Its own
  `predict` is timed; its labels come from limes' core, which sums the same kernels in less time.
- **svm-probability**: the same SVM, predicting by its probabilities, as `svm-predict -b 1` does;
  the paper seems to have used it. The votes are timed.
- **borders**: the paper's mode, `limes.accelerate(svm, X, y, scheme="pairwise", n_borders=...,
  placement="random", blend=1, refine=False, border="probability")`.
- **limes**: `limes.accelerate(svm, X)` with default settings. A small SVM is not replaced by a map:
  its own sums in the core are the model.
- **sub-sampled**: an SVM on the fraction of the training rows whose U.C. is nearest to that of the
  borders or of limes. It predicts by probability, as votes are much worse on few rows of uneven
  classes. Its votes are timed, which are less work.

U.C. is the uncertainty coefficient: the share of the class entropy that the predictions explain.
Times are processor time with one thread, of the fastest of three batches, scaled to all test rows.
The paper does not print C and gamma of its SVM for the sample classes: ours (20 and 0.2) are chosen
so that it has the printed number of support vectors, so that law is not an independent check.
"""
TEXT = """\
## Claims of the text

Times are those of the sample classes, in turns with one thread, the shortest of the trials. A
single test point is a call of `predict` with one row, of scikit-learn's `SVC` and of limes; in a
batch 2000 rows share the time of a call. Border points are placed as in the paper; in large maps
the core passes over points that cannot be the nearest, so that times are not quite a straight line.

The scaling law is measured on rows that fill a box evenly, with two classes on either side of a
sheet across it whose waves have the height 1 and the length 2π. The side of the box grows, and with
it the volume, while each part of the sheet stays as it is. Needed are the training rows of an SVM
(C = 100, two widths of the kernel), and the border points of the class definitions in the paper's
mode, for the right class of {good:.0%} of the rows within {strip:g} of the sheet. A law holds if
its exponent is within two standard errors of the measured one. The boxes are half a wavelength to
five wavelengths wide, in six dimensions less than one, as larger ones need too many rows.
"""
# Why some numbers differ from the paper's. Each is shown only if the rows show the difference.
VERDICTS = (
    "**Verdicts** compare programs: the paper's times are those of whole programs, which start and "
    "read files; ours are of predictions alone, and our borders are evaluated by blocks of rows in "
    "a compiled core."
)
REASONS = {
    "letter": "All methods are better than in the paper, the linear one most of all (table 3): the "
    "difference is in the rows or their split rather than in the borders.",
    "mnist": "The linear classifier of the printed type 1 cannot reach the paper's accuracy: "
    "without an intercept on standardised rows its optimum, found with Newton's method, has .802 "
    "(U.C. .654), and LIBLINEAR stops short of it after 1000 iterations. The objective of type 4, "
    "smoothed and minimised with L-BFGS, has .917 (.810), so that may be the type meant.",
    "mushrooms": "Some features are set in two or three rows, and are large when standardised: the "
    "number of support vectors depends on which rows a random split trains on. LIBSVM 3.37 has as "
    "many on the same ten splits, up to 20 more or fewer on one of them if the two labels are "
    "exchanged, and 800 with a tolerance of .01; twenty further splits have 1039.",
    "ijcnn1": "The accuracy by votes is the paper's. One class has a tenth of the rows, so U.C. "
    "depends on the exact position of its border, and thus on the sigmoid, which we fit to 3000 "
    "rows.",
    "splice": "Accuracy and support vectors are the paper's; the rest is not explained.",
}
CAPTIONS = {
    "support_vectors": "300 rows of the sample classes, the support vectors among them, and the "
    "true border.",
    "borders": "Borders from the class definitions and from the SVM on those rows.",
    "skill_borders": "Skill against the number of border points (1000 training rows).",
    "support_growth": "Support vectors against training rows.",
    "skill_training": "Skill of the SVM against training rows.",
    "svm_time": "Figure 6: time of the SVM against support vectors, with the paper's axes and in a "
    "batch.",
    "borders_time": "Figure 7: time of the borders against border points, with the paper's axes "
    "and in a batch.",
    "break_even": "Figure 8: border points that take as long as a number of support vectors, with "
    "the paper's axes and in a batch. Each point is measured: the time of the SVM lies between "
    "those of two numbers of border points.",
    "scaling": "Border points against training rows needed in larger and larger boxes, and the "
    "exponents for each dimension.",
    "skill_time": "Ours: skill over time of every method on every dataset. The upper left corner "
    "is best.",
}


def write_all(rows: Sequence[TrialRow], output: Path) -> list[Path]:
    """Write tables, figures and the page."""
    times, scaling = read_times(output / "times.csv"), read_scaling(output / "scaling.csv")
    tables = make_tables(rows) | law_tables(times, scaling)
    points = read_rows(output / "points.csv", FigurePoint)
    figures = save_figures(rows, points, output, times=times, scaling=scaling)
    paths = [path for table in tables.values() for path in write_table(table, output)]
    page = output.with_name(f"{output.name}.md")
    text = _text_claims(check_text(rows, times, scaling))
    names = [path.stem for path in figures]
    page.write_text(make_page(rows, tables, names, output, text), "utf-8")
    return [*paths, *figures, page]


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write a table as Markdown and CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix, text in ((".md", table.markdown()), (".csv", table.csv())):
        paths.append(folder / f"{table.name}{suffix}")
        paths[-1].write_text(text, "utf-8")
    return paths


def make_page(
    rows: Sequence[TrialRow],
    tables: dict[str, Table],
    figures: Sequence[str],
    output: Path,
    text_claims: str = "",
) -> str:
    """Write the page."""
    claims, laws = check_claims(rows), check_scaling_laws(rows)
    parts = [
        INTRODUCTION.format(folder=output.name, output=output.as_posix()),
        _cost(rows),
        _missing(rows),
        _agreement(claims, laws),
        _differences(claims, laws),
        _unfinished(rows),
        _corrections(),
        _changed_verdicts(rows),
        text_claims,
        *(f"## {table.title}\n\n{table.markdown()}" for table in tables.values()),
        _figures(figures, output.name),
    ]
    return "\n".join(part for part in parts if part)


def _cost(rows: Sequence[TrialRow]) -> str:
    """Write the processor time of the trials, as far as it was measured."""
    trained, tested = (
        sum(getattr(row, column) for row in rows) / 3600
        for column in ("train_seconds", "test_seconds")
    )
    measured = [row.trial_seconds for row in rows if row.trial_seconds is not None]
    return (
        f"The {len(rows)} rows sum to {trained:.2f} hours of training and {tested:.2f} of "
        "predicting on one processor; of the latter only a part was run, as slow methods are timed "
        "on some of the test rows. `trial_seconds`, the time of a whole trial, was measured for "
        f"{len(measured)} of them: {sum(measured) / 3600:.2f} hours. {_computers(rows)}\n"
    )


def _computers(rows: Sequence[TrialRow]) -> str:
    """Write what computed, and how far times of different sessions can be compared."""
    names = ", then ".join(dict.fromkeys(row.computer for row in rows))
    ratios = {
        name: votes.mean / again.mean
        for name in DATASETS
        if (votes := spread_of(_timed(rows, name, "svm"), "test_seconds"))
        and (again := spread_of(_timed(rows, name, "svm-probability"), "test_seconds"))
    }
    if not ratios:
        return f"Computer: {names}."
    far = [name for name, ratio in ratios.items() if abs(np.log(ratio)) > np.log(SESSION_FACTOR)]
    values = [*ratios.values()]
    return (
        f"Computer: {names}. The times of svm and svm-probability are those of the same votes, "
        f"measured in different sessions: their ratio is {min(values):.2f} to {max(values):.2f}, "
        f"{float(np.median(values)):.2f} in the median, further than {SESSION_FACTOR:g} from 1 on "
        f"{', '.join(far) or 'none'}. Times of different methods are comparable within such a "
        "factor."
    )


def _timed(rows: Sequence[TrialRow], dataset: str, method: str) -> list[TrialRow]:
    """Return the trials of a method in the paper's main table."""
    return select(rows, experiment="results", dataset=dataset, method=method)


def _text_claims(claims: Sequence[Goal]) -> str:
    """Write what the paper says in its text, and whether it is so."""
    lines = [claim.line for claim in claims]
    return "\n".join([TEXT.format(good=GOOD, strip=STRIP), *lines, ""]) if lines else ""


def _missing(rows: Sequence[TrialRow]) -> str:
    """List the trials that have not been run."""
    lines = missing_trials(rows)
    if not lines:
        return ""
    head = "Of the whole plan these trials have not been run:"
    return "\n".join([head, "", *(f"- {line}" for line in lines), ""])


def _agreement(claims: Sequence[Claim], laws: Sequence[LawCheck]) -> str:
    """Write what agrees with the paper."""
    lines: list[list[Cell]] = [
        [claim.text, len(claim.holds_on), claim.n_datasets] for claim in claims
    ]
    columns = [Column("claim"), Column("holds on", "count"), Column("of", "count")]
    note = "Whole datasets only, unless a line names seismic, of which only a part is available."
    table = Table("claims", "What agrees", columns, lines, note)
    agreeing = [f"- {law.text}" for law in laws if law.agrees]
    return "\n".join([f"## {table.title}", "", table.markdown(), *agreeing, ""])


def _differences(claims: Sequence[Claim], laws: Sequence[LawCheck]) -> str:
    """Write what differs, and why as far as it is known."""
    lines = ["## What differs, and why", ""]
    for claim in claims:
        if claim.fails_on:
            exceptions = [f"{name} ({numbers})" for name, numbers in claim.fails_on.items()]
            lines.append(f"- Does not hold: *{claim.text}*: {'; '.join(exceptions)}.")
    lines += [f"- {law.text}" for law in laws if not law.agrees]
    named = {name for claim in claims for name in claim.fails_on}
    reasons = [f"- **{name}**: {reason}" for name, reason in REASONS.items() if name in named]
    if reasons:
        reasons.insert(0, "Why, with numbers that were measured beside the rows:\n")
    is_changed = any("verdict" in claim.text and claim.fails_on for claim in claims)
    return "\n".join([*lines, "", *reasons, *([f"- {VERDICTS}"] if is_changed else []), ""])


def _unfinished(rows: Sequence[TrialRow]) -> str:
    """Name linear fits that did not converge."""
    stopped = [row for row in select(rows, method="linear") if row.model.endswith(UNFINISHED)]
    names = ", ".join(dict.fromkeys(row.dataset for row in stopped))
    if not names:
        return ""
    return f"Linear fits that LIBLINEAR stopped before they converged, at its own limit: {names}.\n"


def _corrections() -> str:
    """List the parameters that the paper misprints."""
    lines: list[list[Cell]] = [
        [name, field, f"{value:g}", f"{getattr(parameters(name), field):g}"]
        for name in DATASETS
        for field, value in parameters(name).printed.items()
    ]
    heads = [Column("dataset"), Column("parameter"), Column("paper", "g"), Column("used", "g")]
    note = (
        "These give the support vectors and accuracies that the paper prints.\n\n"
        "The gradient that the paper prints lacks the factor A/2 of the chain rule, which the "
        "author's program has, and so has this one."
    )
    table = Table("corrections", "Corrected parameters", heads, lines, note)
    return f"## {table.title}\n\n{table.markdown()}"


def _changed_verdicts(rows: Sequence[TrialRow]) -> str:
    """List the verdicts that differ from the paper's."""
    lines = ["## Verdicts that change", ""]
    for method in MATCHED:
        for name in DATASETS:
            verdict = find_verdict(rows, name, method)
            if verdict and not verdict.agrees_with_paper(name):
                lines.append(
                    f"- **{name}**, {method}: {verdict.word} (paper: {printed_verdict(name)}). The "
                    f"SVM of equal skill takes {rounded_to_three_digits(verdict.speedup)} times as "
                    "long."
                )
    return "\n".join([*lines, "", *_verdicts_in_core(rows), ""])


def _verdicts_in_core(rows: Sequence[TrialRow]) -> list[str]:
    """Write where an SVM that is summed in limes' core would be faster."""
    lines = []
    for method in MATCHED:
        verdicts = {name: find_verdict(rows, name, method) for name in DATASETS}
        known = {name: verdict for name, verdict in verdicts.items() if verdict}
        slower = [name for name, verdict in known.items() if verdict.core_speedup <= 1]
        if known:
            lines.append(
                f"Against an SVM that is summed in limes' own core, not by LIBSVM, {method} would "
                f"fail on {', '.join(slower) or 'none'} of {len(known)} datasets."
            )
    return lines


def _figures(figures: Sequence[str], folder: str) -> str:
    """Write the figures with their captions."""
    lines = ["## Figures", ""]
    for name in figures:
        lines += [f"![{CAPTIONS[name]}]({folder}/{name}.png)", "", f"*{CAPTIONS[name]}*", ""]
    return "\n".join(lines)


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
VERDICT_COLUMNS = {
    ("U.C. of SVM", "skill"): ("svm", SKILL, "svm_uc"),
    ("U.C. of borders", "skill"): ("fast", SKILL, "borders_uc"),
    ("SVM s", "seconds"): ("svm", "test_seconds", "svm_seconds"),
    ("borders s", "seconds"): ("fast", "test_seconds", "borders_seconds"),
}
# The paper has one SVM, and does not print whether it predicts by votes or by probabilities.
PRINTED_AS = {"svm-probability": "svm"}
# Heads of the columns of SVMs that keep a fraction.
VECTOR_HEADS = {"kept-vectors": "vectors", "rescaled-vectors": "rescaled", "fewer-rows": "rows"}
# Times of the same votes in two sessions that differ by more are named.
SESSION_FACTOR = 1.5
# Methods whose times are compared.
TIMED = ("svm", "borders")
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
        vectors_table(rows, names),
    ]
    return {table.name: table for table in tables}


def law_tables(times: Sequence[TimeRow], scaling: Sequence[ScalingRow]) -> dict[str, Table]:
    """Make the tables of the break-even and of the scaling law."""
    return {table.name: table for table in (break_even_table(times), scaling_table(scaling))}


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
        "(table 2) times the pairs; ours are, except on shuttle, where some classes have few rows. "
        "Where limes has no points, it predicts by the SVM's own sums."
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
        *(column for head in VERDICT_COLUMNS for column in comparison_columns(*head)),
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
    for (_, kind), (which, column, printed_column) in VERDICT_COLUMNS.items():
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


def vectors_table(rows: Sequence[TrialRow], names: Sequence[str]) -> Table:
    """Make a table that the paper does not have: SVMs without some of their support vectors."""
    lines: Lines = []
    for name in names:
        check = check_vectors(rows, name)
        if check is not None:
            skills = [
                check.spread(method, fraction, SKILL)
                for method, fractions in KEPT_FRACTIONS.items()
                for fraction in fractions
            ]
            accuracies = [
                check.spread(method, 0.5, "accuracy") for method in ("kept-vectors", "fewer-rows")
            ]
            n_trials = len({row.seed for row in check.trials})
            line = [mark_partial(name, check.trials), n_trials, check.skill, *skills]
            drop = "yes" if check.is_precipitous else "no"
            lines.append([*line, check.accuracy, *accuracies, drop])
    heads = [
        f"{VECTOR_HEADS[method]} {fraction:.0%}"
        for method, fractions in KEPT_FRACTIONS.items()
        for fraction in fractions
    ]
    accuracy_heads = [f"accuracy{what}" for what in ("", ", vectors 50%", ", rows 50%")]
    skill_columns = [Column(f"U.C.{what}", "skill") for what in ("", *(f", {h}" for h in heads))]
    columns = [
        *(Column("dataset"), Column("trials", "count"), *skill_columns),
        *(Column(head, "skill") for head in accuracy_heads),
        Column("precipitous drop"),
    ]
    note = (
        "Vectors: the SVM with a random share of its support vectors of each class, with their "
        "coefficients. Rescaled: with their coefficients divided by the share. Rows: an SVM "
        "trained on a share of the rows. All predict by votes."
    )
    title = "Support vectors left out"
    return Table("vectors", title, columns, lines, with_partial(note, lines))


def break_even_table(times: Sequence[TimeRow]) -> Table:
    """Make a table of the sizes at which an SVM and borders take as long."""
    lines: Lines = []
    if times:
        points = [
            dict(measured_break_even(*(shortest_times(times, m, column) for m in TIMED)))
            for column in TIME_COLUMNS
        ]
        sizes = shortest_times(times, "svm", TIME_COLUMNS[0]).sizes
        lines = [[size, *(found.get(size) for found in points)] for size in sizes]
    heads = ("support vectors", "border points, single test point", "border points, batch")
    note = (
        "Border points in the paper's mode that take as long as an SVM, interpolated between "
        "measured sizes; none where the SVM takes longer than the largest map."
    )
    columns = [Column(head, "count") for head in heads]
    return Table("break_even", "Break-even", columns, lines, note)


def scaling_table(scaling: Sequence[ScalingRow]) -> Table:
    """Make a table of the exponents of the scaling law."""
    lines: Lines = []
    for accuracy in (GOOD, FAIR):
        for gamma in GAMMAS:
            for dimension in SIDES:
                check = check_law(scaling, dimension, gamma, accuracy) if scaling else None
                if check is not None:
                    ranges = (check.training_rows, check.border_points)
                    exponents = (check.rows_exponent, check.points_exponent, check.exponent)
                    lines.append(
                        [
                            *(dimension, f"{gamma:g}", f"{accuracy:g}"),
                            *(f"{low:.0f} to {high:.0f}" for low, high in ranges),
                            *(f"{e.mean:.2f} ± {standard_error(e):.2f}" for e in exponents),
                            *(check.expected, "yes" if check.holds else "no"),
                        ]
                    )
    heads = [
        *("gamma", "accuracy", "training rows needed", "border points needed"),
        *("rows against volume", "points against volume", "points against rows"),
    ]
    columns = [Column("dimension", "count"), *map(Column, heads)]
    columns += [Column("law (D - 1)/D", ".2f"), Column("holds")]
    note = (
        "Needed numbers from the smallest to the largest box, means over the seeds; exponents with "
        "their standard errors over the seeds."
    )
    return Table("scaling_law", "Scaling law", columns, lines, note)


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
