"""The page."""

from collections.abc import Sequence
from pathlib import Path

from limes.datasets import parameters
from limes.research.paper.checks import (
    Claim,
    Finding,
    check_claims,
    describe_laws,
    judge,
    missing_trials,
)
from limes.research.paper.figures import read_points, save_figures
from limes.research.paper.plan import MATCHED, UNFINISHED
from limes.research.paper.printed import DATASETS, printed_verdict
from limes.research.paper.rows import Row, select
from limes.research.paper.table import Table, three_significant
from limes.research.paper.tables import make_tables

INTRODUCTION = """\
# The paper, number by number

Peter Mills, *Accelerating kernel classifiers through borders mapping* (2018,
[arXiv:1708.05917](https://arxiv.org/abs/1708.05917)), tried his method on seventeen datasets. This
page repeats all of it and puts our numbers beside his. It is drawn from the trials in
[rows.csv]({folder}/rows.csv) alone, by

```sh
limes paper --draw -o {output}
```

`limes paper -o {output}` runs the trials that are missing first; `limes paper --quick` is a small
subset that takes minutes.

- **linear**: LIBLINEAR's solver of table 2, without an intercept, as its `train` does it.
- **svm**: LIBSVM (scikit-learn's `SVC`) with the paper's C and gamma, on standardised rows. Its own
  `predict` is timed; its labels come from limes' exact sums, which are the same and quicker.
- **svm-probability**: the same machine, which decides by its probabilities, as `svm-predict -b 1`
  does; the paper seems to have used it. The votes are timed.
- **borders**: the paper's mode, `limes.accelerate(svm, X, y, scheme="pairwise", n_borders=...,
  placement="random", blend=1, refine=False, border="probability")`.
- **limes**: `limes.accelerate(svm, X)`, everything at its default; the rows here were made before
  that stopped at the cheapest map that keeps the source's skill, by larger maps.
- **sub-sampled**: an SVM on so many training rows that its U.C. is that of the borders or of limes.
  It decides by probability: on few rows of uneven classes votes do much worse. Its votes are timed,
  which are less work.

U.C. is the uncertainty coefficient: the share of the class entropy that the answers explain. Times
are processor time with one thread, of the quickest of three batches, and stand for all test rows.
The paper does not print C and gamma of its SVM for the sample classes: ours (20 and 0.2) are chosen
so that it has the printed number of support vectors, so that law is no independent check.
"""
# Why some numbers are not the paper's. Each is shown only where the rows show the difference.
VERDICTS = (
    "**Verdicts** are about programs: the paper's times are those of whole programs, which start "
    "and read files; ours are of predictions alone, and our borders are searched by blocks in a "
    "compiled core."
)
REASONS = {
    "letter": "All methods are better than in the paper, the linear one most of all (table 3): the "
    "difference is in the rows or their split rather than in the borders.",
    "mnist": "The linear classifier of the printed type 1 cannot reach the paper's accuracy: "
    "without an intercept on standardised rows its optimum, found with Newton's method, has .802 "
    "(U.C. .654), and LIBLINEAR stops short of it after 1000 rounds. What type 4 minimises, "
    "smoothed and given to L-BFGS, has .917 (.810), so that may be the type meant.",
    "mushrooms": "Some features are set in two or three rows, and weigh heavily when standardised: "
    "the number of support vectors depends on which rows a random split trains on. LIBSVM 3.37 has "
    "as many on the same ten splits, up to 20 more or fewer on one of them when the two labels "
    "change places, and 800 if it stops at a tolerance of .01; twenty further splits have 1039 "
    "(`python benchmarks/support_vectors.py`).",
    "ijcnn1": "The accuracy by votes is the paper's. One class has a tenth of the rows, so U.C. "
    "depends on just where its border lies, and with it on the sigmoid, which we fit to 3000 rows.",
    "splice": "Accuracy and support vectors are the paper's; the rest is not explained.",
}
CAPTIONS = {
    "support_vectors": "300 rows of the sample classes, the support vectors among them, and the "
    "true border.",
    "borders": "Borders from the class definitions and from the SVM on those rows.",
    "skill_borders": "Skill against the number of border points (1000 training rows).",
    "support_growth": "Support vectors against training rows.",
    "skill_training": "Skill of the SVM against training rows.",
    "svm_time": "Time of the SVM against support vectors.",
    "borders_time": "Time of the borders against border points.",
    "break_even": "As many border points take as long as so many support vectors; beyond the "
    "largest numbers that were timed, the fitted lines are extrapolated.",
    "skill_time": "Ours: skill over time of every method on every dataset. The best place is the "
    "upper left corner.",
}


def write_all(rows: Sequence[Row], output: Path) -> list[Path]:
    """Write tables, figures and the page."""
    tables = make_tables(rows)
    figures = save_figures(rows, read_points(output / "points.csv"), output)
    paths = [path for table in tables.values() for path in write_table(table, output)]
    page = output.with_name(f"{output.name}.md")
    page.write_text(make_page(rows, tables, [one.stem for one in figures], output), "utf-8")
    return [*paths, *figures, page]


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write a table in all three forms."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {".md": table.markdown(), ".csv": table.csv(), ".tex": table.latex()}
    paths = []
    for ending, text in texts.items():
        paths.append(folder / f"{table.name}{ending}")
        paths[-1].write_text(text, "utf-8")
    return paths


def make_page(
    rows: Sequence[Row], tables: dict[str, Table], figures: Sequence[str], output: Path
) -> str:
    """Write the page."""
    claims, laws = check_claims(rows), describe_laws(rows)
    parts = [
        INTRODUCTION.format(folder=output.name, output=output.as_posix()),
        _cost(rows),
        _missing(rows),
        _agreement(claims, laws),
        _differences(claims, laws),
        _unfinished(rows),
        _corrections(),
        _changed_verdicts(rows),
        *(f"## {table.title}\n\n{table.markdown()}" for table in tables.values()),
        _pictures(figures, output.name),
    ]
    return "\n".join(part for part in parts if part)


def _cost(rows: Sequence[Row]) -> str:
    """Say what the trials took, as far as it was measured."""
    trained, tested = (
        sum(getattr(row, column) for row in rows) / 3600
        for column in ("train_seconds", "test_seconds")
    )
    measured = [row.trial_seconds for row in rows if row.trial_seconds is not None]
    return (
        f"The {len(rows)} rows sum to {trained:.2f} hours of training and {tested:.2f} of "
        "predicting on one processor; of the latter only a part was run, as slow methods are timed "
        f"on some of the test rows. `trial_seconds`, all that a trial took, has been measured on "
        f"{len(measured)} of them, {sum(measured) / 3600:.2f} hours.\n"
    )


def _missing(rows: Sequence[Row]) -> str:
    """Say which trials there are not."""
    lines = missing_trials(rows)
    if not lines:
        return ""
    head = "Of the whole plan these trials have not been run:"
    return "\n".join([head, "", *(f"- {line}" for line in lines), ""])


def _agreement(claims: Sequence[Claim], laws: Sequence[Finding]) -> str:
    """Say what agrees."""
    lines = ["## What agrees", "", "| | holds on | of |", "| --- | ---: | ---: |"]
    lines += [f"| {one.text} | {len(one.good)} | {one.n_all} |" for one in claims]
    note = "Whole datasets only, unless a line says otherwise: of seismic there is a part."
    return "\n".join([*lines, "", note, "", *(f"- {one.text}" for one in laws if one.agrees), ""])


def _differences(claims: Sequence[Claim], laws: Sequence[Finding]) -> str:
    """Say what differs, and why as far as it is known."""
    lines = ["## What differs, and why", ""]
    for claim in claims:
        if claim.others:
            told = [f"{name} ({numbers})" for name, numbers in claim.others.items()]
            lines.append(f"- Not so: *{claim.text}*: {'; '.join(told)}.")
    lines += [f"- {one.text}" for one in laws if not one.agrees]
    named = {name for claim in claims for name in claim.others}
    reasons = [f"- **{name}**: {reason}" for name, reason in REASONS.items() if name in named]
    is_changed = any("verdict" in claim.text and claim.others for claim in claims)
    return "\n".join([*lines, "", *reasons, *([f"- {VERDICTS}"] if is_changed else []), ""])


def _unfinished(rows: Sequence[Row]) -> str:
    """Name linear fits that did not converge."""
    found = [row for row in select(rows, method="linear") if row.model.endswith(UNFINISHED)]
    names = ", ".join(dict.fromkeys(row.dataset for row in found))
    if not names:
        return ""
    return f"Linear fits that LIBLINEAR stopped before they converged, at its own limit: {names}.\n"


def _corrections() -> str:
    """List the parameters that the paper misprints."""
    lines = ["## Corrected parameters", "", "| dataset | parameter | paper | used |"]
    lines.append("| --- | --- | ---: | ---: |")
    for name in DATASETS:
        settings = parameters(name)
        for field, value in settings.printed.items():
            lines.append(f"| {name} | {field} | {value:g} | {getattr(settings, field):g} |")
    lines += [
        "",
        "These give the support vectors and accuracies that the paper prints.",
        "",
        "The gradient that the paper prints lacks the factor A/2 of the chain rule, which the "
        "author's program has, and so has this one.",
        "",
    ]
    return "\n".join(lines)


def _changed_verdicts(rows: Sequence[Row]) -> str:
    """List the verdicts that are not the paper's."""
    lines = ["## Verdicts that change", ""]
    for method in MATCHED:
        for name in DATASETS:
            verdict = judge(rows, name, method)
            if verdict and not verdict.is_that_of_the_paper(name):
                lines.append(
                    f"- **{name}**, {method}: {verdict.word} (paper: {printed_verdict(name)}). The "
                    f"SVM that is as good takes {three_significant(verdict.speedup)} times as long."
                )
    return "\n".join([*lines, "", *_exact_verdicts(rows), ""])


def _exact_verdicts(rows: Sequence[Row]) -> list[str]:
    """Say where a machine that is summed in limes' core would be quicker."""
    lines = []
    for method in MATCHED:
        judged = {name: judge(rows, name, method) for name in DATASETS}
        tried = {name: one for name, one in judged.items() if one}
        slower = [name for name, one in tried.items() if one.exact_speedup <= 1]
        if tried:
            lines.append(
                f"Against an SVM that is summed in limes' own core, not by LIBSVM, {method} would "
                f"fail on {', '.join(slower) or 'none'} of {len(tried)} datasets."
            )
    return lines


def _pictures(figures: Sequence[str], folder: str) -> str:
    """Show the figures."""
    lines = ["## Figures", ""]
    for name in figures:
        lines += [f"![{CAPTIONS[name]}]({folder}/{name}.png)", "", f"*{CAPTIONS[name]}*", ""]
    return "\n".join(lines)
