"""Rows of the measurements of exact sums and fallback, and the page that is written from them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from limes.research.results import Cell, Column, Table, goal_line, mean_of, select, yes_or_no

# What the page is compared with, in the order of its tables.
MIN_SVC_RATIO, MIN_INTELEX_RATIO, MIN_PRODUCT_RATIO, MEDIAN_INTELEX_RATIO = 10, 2, 0.6, 4
MAX_KERNEL_RATIO, KERNEL_DATASETS = 2, ("sat", "usps", "letter")
MAX_UNCERTAIN, MAX_PROBABILITY_DIFFERENCE = 0.05, 1e-6
MAX_STANDARD_ERRORS = 3
MIN_SCENE_AGREEMENT = 0.99
MAX_SKILL_LOSS, MAX_MEDIAN_SLOWDOWN, MAX_SLOWDOWN = 0.01, 1.1, 2
MAX_FIT_SECONDS = 0.2
# A row is near a border if a deciding value is at most this share of its sum |alpha| K.
NEAR = 1e-12
INTRODUCTION = """\
# Exact sums, and fallback to them

The page is written by `python -m limes.research.exact` from the rows in `docs/exact/`; the paper's
datasets come from `LIMES_DATA`, the scenes from `LIMES_SCENES`. SVMs have the paper's parameters
and follow a scaler. Times are microseconds of processor time per row, of one thread, minimums of
calls in turns, on a computer that may have run other programs as well: *CPU* is the least processor
time divided by wall-clock time among the calls of a line, 1 on an idle computer. SVC gets
standardised float64 rows and scikit-learn-intelex standardised float32 rows, so that neither pays
for the scaling; limes gets raw rows, in float32 unless stated.
"""
SUMS_TEXT = f"""
## `scheme="exact"`

`limes.accelerate(svm, scheme="exact")`, without rows. Labels are compared on all test rows (mnist
and humidity: 5000), in float64. A row is *near* if one of the decision values between the predicted
class and the others, in float64, is at most {NEAR:g} sum |alpha| K; near rows may have another
label, and are listed below the tables. *Uncertain* is the share of rows that the float32 sums do
not decide, and that are summed again in float64. *Product* is a matrix product of the rows with the
support vectors alone, in float32 (NumPy, in blocks that stay in the cache), *with exponentials* the
same followed by `np.exp` of each block in place. *Probabilities* is the largest difference from
`predict_proba` of an SVC with `probability=True`, *calibrated* of one in
`CalibratedClassifierCV(ensemble=False)`.
"""
AGREEMENT_TEXT = """
## `min_agreement`

`limes.accelerate(svm, rows, min_agreement=...)`. *Found* is the agreement on the test rows, on all
valid pixels for the scenes, whose rows are 2000 of these pixels drawn at random. *Error* is the
binomial standard error of the agreement that was required, for so many test rows.
"""
SCENES_TEXT = """
## Scenes with labelled pixels alone

`limes.accelerate(svm, labelled_pixels)` with default settings. *Found* is the agreement on all
valid pixels.
"""
DEFAULT_TEXT = """
## Default settings, before and after

`limes.accelerate(svm, X_train)` of commit 6238070, before exact sums and fallback, and of this
version: each line is the mean over its seeds, *ratio* the time after divided by the time before,
both predicted in turns. Sources that are not searched, because their exact sums are fast enough,
may be slower than before.
"""
FIT_TEXT = """
## Time of `accelerate` for small SVMs

Processor time of one thread, the longest of five calls, without the import of the package.
"""


@dataclass(frozen=True)
class SumsRow:
    """Exact sums of one SVM compared with its own predictions, and with other programs.

    Parameters
    ----------
    dataset : str
        Name.
    n_test, n_features, n_classes, n_support : int
        Sizes of the test rows and of the SVM.
    n_near : int
        Rows whose deciding value is not above rounding.
    near_rows : str
        Their indices, separated by spaces.
    n_different : int
        Other rows with another label than the SVM's.
    probability_difference, calibrated_difference : float or None
        Largest difference from the probabilities of an SVC with ``probability=True``, and of one in
        ``CalibratedClassifierCV(ensemble=False)``; None if not measured.
    uncertain_share : float
        Share of rows that float32 does not decide.
    svc, intelex, limes, limes_float64, product, product_and_exponentials : float
        Microseconds of processor time per row.
    cpu_share : float
        Least processor time divided by wall-clock time.
    """

    dataset: str
    n_test: int
    n_features: int
    n_classes: int
    n_support: int
    n_near: int
    near_rows: str
    n_different: int
    probability_difference: float | None
    calibrated_difference: float | None
    uncertain_share: float
    svc: float
    intelex: float
    limes: float
    limes_float64: float
    product: float
    product_and_exponentials: float
    cpu_share: float


@dataclass(frozen=True)
class AgreementRow:
    """A fast model compared with its SVM on rows that its fit did not get.

    Parameters
    ----------
    case : str
        Dataset or scene.
    svm : str
        Parameters of the SVM.
    required : float or None
        ``min_agreement``; None for default settings.
    n_given, n_test, n_features, n_support : int
        Rows given to the fit, rows compared, sizes of the SVM.
    scheme : str
        Scheme of the model.
    cost : float
        Its expected multiply-adds per row.
    fallback_share : float
        ``fallback_share_``.
    agreement_estimated : float
        ``agreement_``.
    coverage_agreement : float or None
        ``coverage_agreement_``; None if it has none.
    agreement : float
        Share of the compared rows with the SVM's label.
    n_different : int
        Number of compared rows with another label.
    svc, intelex, limes : float
        Microseconds of processor time per row.
    fit_seconds : float
        Processor time of ``accelerate``.
    cpu_share : float
        Least processor time divided by wall-clock time.
    """

    case: str
    svm: str
    required: float | None
    n_given: int
    n_test: int
    n_features: int
    n_support: int
    scheme: str
    cost: float
    fallback_share: float
    agreement_estimated: float
    coverage_agreement: float | None
    agreement: float
    n_different: int
    svc: float
    intelex: float
    limes: float
    fit_seconds: float
    cpu_share: float

    @property
    def standard_error(self) -> float:
        """Binomial standard error of the required agreement, on so many rows."""
        assert self.required is not None
        return float(np.sqrt(self.required * (1 - self.required) / self.n_test))


@dataclass(frozen=True)
class DefaultRow:
    """Default settings of two versions, on one dataset and seed.

    Parameters
    ----------
    dataset : str
        Name.
    seed : int
        Seed of both fits.
    n_test, n_support : int
        Sizes of the test rows and of the SVM.
    source_skill, skill_before, skill : float
        Uncertainty coefficients of the SVM, of the earlier version and of this one.
    agreement_before, agreement : float
        Agreement with the SVM on the test rows.
    scheme : str
        Scheme of this version's model.
    cost : float
        Its expected multiply-adds per row.
    fallback_share : float
        ``fallback_share_``.
    svc, limes_before, limes : float
        Microseconds of processor time per row.
    fit_seconds_before, fit_seconds : float
        Processor time of ``accelerate``.
    cpu_share : float
        Least processor time divided by wall-clock time.
    """

    dataset: str
    seed: int
    n_test: int
    n_support: int
    source_skill: float
    skill_before: float
    skill: float
    agreement_before: float
    agreement: float
    scheme: str
    cost: float
    fallback_share: float
    svc: float
    limes_before: float
    limes: float
    fit_seconds_before: float
    fit_seconds: float
    cpu_share: float


@dataclass(frozen=True)
class FitRow:
    """The time of ``accelerate`` for a small SVM.

    Parameters
    ----------
    case : str
        Dataset or scene.
    n_support : int
        Support vectors.
    scheme : str
        Scheme of the model.
    seconds : float
        Processor time of the slowest of a few calls.
    """

    case: str
    n_support: int
    scheme: str
    seconds: float


class Rows(NamedTuple):
    """All rows of the page."""

    sums: Sequence[SumsRow] = ()
    agreement: Sequence[AgreementRow] = ()
    default: Sequence[DefaultRow] = ()
    fit: Sequence[FitRow] = ()


def make_page(rows: Rows) -> str:
    """Write the page; parts without rows are left out."""
    scenes = select(rows.agreement, required=None)
    required = [row for row in rows.agreement if row.required is not None]
    parts: list[tuple[str, Sequence[Any], Callable[[Any], Iterator[str]]]] = [
        (SUMS_TEXT, rows.sums, _sums_part),
        (AGREEMENT_TEXT, required, _agreement_part),
        (SCENES_TEXT, scenes, _scenes_part),
        (DEFAULT_TEXT, rows.default, _default_part),
        (FIT_TEXT, rows.fit, _fit_part),
    ]
    sections = ["\n".join([text, *lines(part), ""]) for text, part, lines in parts if part]
    return "".join([INTRODUCTION, *sections])


def _sums_part(rows: Sequence[SumsRow]) -> Iterator[str]:
    """Return the tables of the exact sums, near rows and goals."""
    yield _table(SUMS_COLUMNS, map(_sums_line, rows))
    yield _table(TIME_COLUMNS, map(_time_line, rows))
    for row in rows:
        if row.n_near:
            yield f"- Near rows of {row.dataset}: {row.near_rows.replace(' ', ', ')}."
    yield _goal(
        "Labels of `predict` on all rows that are not near", rows, lambda row: not row.n_different
    )
    with_probabilities = [row for row in rows if row.probability_difference is not None]
    yield _goal(
        f"Probabilities within {MAX_PROBABILITY_DIFFERENCE:g}, where measured",
        with_probabilities,
        lambda row: (
            max(row.probability_difference, row.calibrated_difference) <= MAX_PROBABILITY_DIFFERENCE
        ),
    )
    yield _goal(
        f"At most {MAX_UNCERTAIN:.0%} of rows summed again",
        rows,
        lambda row: row.uncertain_share <= MAX_UNCERTAIN,
    )
    yield _goal(
        f"At least {MIN_SVC_RATIO} times as fast as SVC",
        rows,
        lambda row: row.svc >= MIN_SVC_RATIO * row.limes,
    )
    yield _goal(
        f"At least {MIN_INTELEX_RATIO} times as fast as scikit-learn-intelex, or at least "
        f"{MIN_PRODUCT_RATIO:.0%} of the speed of the product",
        rows,
        lambda row: (
            row.intelex >= MIN_INTELEX_RATIO * row.limes
            or row.product >= MIN_PRODUCT_RATIO * row.limes
        ),
    )
    ratio = float(np.median([row.intelex / row.limes for row in rows]))
    yield (
        f"- At least {MEDIAN_INTELEX_RATIO} times as fast as scikit-learn-intelex on the median: "
        f"{yes_or_no(ratio >= MEDIAN_INTELEX_RATIO)}, {ratio:.1f} times."
    )
    yield _goal(
        f"At most {MAX_KERNEL_RATIO} times the product with exponentials on "
        f"{', '.join(KERNEL_DATASETS)}",
        [row for row in rows if row.dataset in KERNEL_DATASETS],
        lambda row: row.limes <= MAX_KERNEL_RATIO * row.product_and_exponentials,
    )


SUMS_COLUMNS = (
    Column("dataset"),
    *(Column(head, "count") for head in ("test rows", "features", "classes", "support vectors")),
    *(Column(head, "count") for head in ("near", "other labels")),
    *(Column(head, ".1e") for head in ("probabilities", "calibrated")),
    Column("uncertain", ".4f"),
)
TIME_COLUMNS = (
    Column("dataset"),
    *(Column(head, "seconds") for head in ("SVC", "intelex", "limes", "limes, float64 rows")),
    *(Column(head, "seconds") for head in ("product", "with exponentials")),
    *(Column(f"{head} / limes", "ratio") for head in ("SVC", "intelex", "product")),
    Column("limes / with exponentials", "ratio"),
    Column("CPU", ".2f"),
)


def _sums_line(row: SumsRow) -> list[Cell]:
    """Return the cells of one dataset in the table of labels."""
    sizes = (row.n_test, row.n_features, row.n_classes, row.n_support)
    counts = (row.n_near, row.n_different)
    differences = (row.probability_difference, row.calibrated_difference)
    return [row.dataset, *sizes, *counts, *differences, row.uncertain_share]


def _time_line(row: SumsRow) -> list[Cell]:
    """Return the cells of one dataset in the table of times."""
    others = (row.svc, row.intelex, row.product)
    return [
        row.dataset,
        *(row.svc, row.intelex, row.limes, row.limes_float64),
        *(row.product, row.product_and_exponentials),
        *(other / row.limes for other in others),
        row.limes / row.product_and_exponentials,
        row.cpu_share,
    ]


def _agreement_part(rows: Sequence[AgreementRow]) -> Iterator[str]:
    """Return the table of required agreements and its goals."""
    ordered = sorted(rows, key=lambda row: row.required or 0)
    yield _table(AGREEMENT_COLUMNS, map(_agreement_line, ordered))
    for required, group in groupby(ordered, key=lambda row: row.required):
        cases = list(group)
        assert required is not None
        mean = float(np.mean([row.agreement for row in cases]))
        if required == 1.0:
            yield _goal("1.0 required: all labels equal", cases, lambda row: not row.n_different)
            continue
        yield (
            f"- {required:g} required: mean of {len(cases)} cases {mean:.4f}, at least what is "
            f"required: {yes_or_no(mean >= required)}."
        )
        yield _goal(
            f"{required:g} required: not below by more than {MAX_STANDARD_ERRORS} standard errors",
            cases,
            lambda row: row.agreement >= row.required - MAX_STANDARD_ERRORS * row.standard_error,
        )


AGREEMENT_COLUMNS = (
    Column("case"),
    Column("required", "g"),
    Column("found", ".4f"),
    Column("error", ".4f"),
    Column("estimated", ".4f"),
    Column("on coverage rows", ".4f"),
    Column("scheme"),
    Column("fallback share", ".4f"),
    Column("cost", "count"),
    *(Column(head, "seconds") for head in ("SVC", "intelex", "limes")),
    Column("intelex / limes", "ratio"),
    Column("fit, s", ".1f"),
    Column("CPU", ".2f"),
)


def _agreement_line(row: AgreementRow) -> list[Cell]:
    """Return the cells of one case with a required agreement."""
    return [
        row.case,
        *(row.required, row.agreement, row.standard_error),
        *(row.agreement_estimated, row.coverage_agreement),
        *(row.scheme, row.fallback_share, row.cost),
        *(row.svc, row.intelex, row.limes, row.intelex / row.limes),
        *(row.fit_seconds, row.cpu_share),
    ]


def _scenes_part(rows: Sequence[AgreementRow]) -> Iterator[str]:
    """Return the table of scenes and its goal."""
    yield _table(SCENE_COLUMNS, map(_scene_line, rows))
    yield _goal(
        f"Agreement on all valid pixels at least {MIN_SCENE_AGREEMENT:g}",
        rows,
        lambda row: row.agreement >= MIN_SCENE_AGREEMENT,
    )


SCENE_COLUMNS = (
    Column("scene"),
    Column("SVM"),
    *(Column(head, "count") for head in ("support vectors", "pixels given", "valid pixels")),
    *(Column(head, ".4f") for head in ("found", "estimated", "on coverage rows")),
    Column("scheme"),
    Column("fallback share", ".4f"),
    *(Column(head, "seconds") for head in ("SVC", "intelex", "limes")),
    *(Column(f"{head} / limes", "ratio") for head in ("SVC", "intelex")),
    Column("fit, s", ".1f"),
    Column("CPU", ".2f"),
)


def _scene_line(row: AgreementRow) -> list[Cell]:
    """Return the cells of one scene with default settings."""
    return [
        *(row.case, row.svm, row.n_support, row.n_given, row.n_test),
        *(row.agreement, row.agreement_estimated, row.coverage_agreement),
        *(row.scheme, row.fallback_share),
        *(row.svc, row.intelex, row.limes, row.svc / row.limes, row.intelex / row.limes),
        *(row.fit_seconds, row.cpu_share),
    ]


def _default_part(rows: Sequence[DefaultRow]) -> Iterator[str]:
    """Return the table of the default settings before and after, and its goals."""
    names = list(dict.fromkeys(row.dataset for row in rows))
    groups = [(name, select(rows, dataset=name)) for name in names]
    yield _table(DEFAULT_COLUMNS, (_default_line(name, group) for name, group in groups))

    def slowdown(group: tuple[str, Sequence[DefaultRow]]) -> float:
        return mean_of(group[1], "limes") / mean_of(group[1], "limes_before")

    def is_fast_enough(group: tuple[str, Sequence[DefaultRow]]) -> bool:
        is_exact = all(row.scheme == "exact" for row in group[1])
        is_exempt = is_exact and _svc_ratio(group[1]) >= MIN_SVC_RATIO
        return is_exempt or slowdown(group) <= MAX_SLOWDOWN

    yield _goal(
        f"U.C. at most {MAX_SKILL_LOSS:g} below the SVM's",
        groups,
        lambda group: (
            mean_of(group[1], "skill") >= mean_of(group[1], "source_skill") - MAX_SKILL_LOSS
        ),
    )
    median = float(np.median([slowdown(group) for group in groups]))
    yield (
        f"- Median time at most {MAX_MEDIAN_SLOWDOWN:g} times that before: "
        f"{yes_or_no(median <= MAX_MEDIAN_SLOWDOWN)}, {median:.2f} times."
    )
    yield _goal(
        f"At most {MAX_SLOWDOWN} times the time before, or exact and at least {MIN_SVC_RATIO} "
        "times as fast as SVC",
        groups,
        is_fast_enough,
    )


DEFAULT_COLUMNS = (
    Column("dataset"),
    Column("seeds", "count"),
    *(Column(f"U.C., {head}", "skill") for head in ("SVM", "before", "after")),
    *(Column(f"agreement, {head}", ".4f") for head in ("before", "after")),
    Column("schemes"),
    Column("fallback share", ".4f"),
    *(Column(head, "seconds") for head in ("SVC", "before", "after")),
    Column("ratio", ".2f"),
    Column("SVC / after", "ratio"),
    *(Column(f"fit {head}, s", ".1f") for head in ("before", "after")),
    Column("CPU", ".2f"),
)


def _default_line(name: str, rows: Sequence[DefaultRow]) -> list[Cell]:
    """Return the cells of one dataset with default settings."""
    return [
        *(name, len(rows)),
        *(mean_of(rows, column) for column in ("source_skill", "skill_before", "skill")),
        *(mean_of(rows, column) for column in ("agreement_before", "agreement")),
        ", ".join(sorted({row.scheme for row in rows})),
        *(mean_of(rows, column) for column in ("fallback_share", "svc", "limes_before", "limes")),
        mean_of(rows, "limes") / mean_of(rows, "limes_before"),
        _svc_ratio(rows),
        *(mean_of(rows, column) for column in ("fit_seconds_before", "fit_seconds")),
        min(row.cpu_share for row in rows),
    ]


def _svc_ratio(rows: Sequence[DefaultRow]) -> float:
    """Return how many times as fast as SVC the model of this version is."""
    return mean_of(rows, "svc") / mean_of(rows, "limes")


def _fit_part(rows: Sequence[FitRow]) -> Iterator[str]:
    """Return the table of the time of ``accelerate`` and its goal."""
    lines = ([row.case, row.n_support, row.scheme, row.seconds] for row in rows)
    yield _table(FIT_COLUMNS, lines)
    yield _goal(
        f"Below {MAX_FIT_SECONDS:g} s, and exact",
        rows,
        lambda row: row.seconds < MAX_FIT_SECONDS and row.scheme == "exact",
    )


FIT_COLUMNS = (
    Column("case"),
    Column("support vectors", "count"),
    Column("scheme"),
    Column("s", ".3f"),
)


def _table(columns: Sequence[Column], lines: Any) -> str:
    """Write a table."""
    return Table("exact", "", columns, list(lines)).markdown()


def _goal(goal: str, cases: Sequence[Any], is_met: Callable[[Any], bool]) -> str:
    """Return a goal, how many cases meet it and which do not, as a line."""
    return goal_line(goal, ((_name(case), is_met(case)) for case in cases))


def _name(case: Any) -> str:
    """Return the name of a row, or of a group of rows of one dataset."""
    row = case[1][0] if isinstance(case, tuple) else case
    return str(row.dataset if hasattr(row, "dataset") else row.case)
