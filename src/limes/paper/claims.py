"""What can be checked against the paper, counted from rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from limes.paper.figures import support_law
from limes.paper.plan import RESULT_METHODS
from limes.paper.printed import DATASETS, find_printed, printed_number
from limes.paper.rows import Row, select
from limes.paper.statistics import by_setting, saturation, spread_of
from limes.paper.verdicts import judge

SUPPORT_SHARE = 0.02
ACCURACY = 0.01
# The splits of 270 rows are not the paper's: one of 162 by chance has another accuracy.
ACCURACY_OF = {"heart": 0.03}
BORDERS = 0.02


@dataclass(frozen=True)
class Claim:
    """Something that holds for so many datasets.

    Parameters
    ----------
    text : str
        What.
    good : list of str
        Datasets for which it does.
    others : dict of str to str, default={}
        Those for which it does not, with the numbers.
    """

    text: str
    good: list[str]
    others: dict[str, str] = field(default_factory=dict)

    @property
    def n_all(self) -> int:
        """On how many datasets it has been tried."""
        return len(self.good) + len(self.others)


def check_claims(rows: Sequence[Row]) -> list[Claim]:
    """Hold the rows against the paper, dataset by dataset.

    Parameters
    ----------
    rows : sequence of Row
        One for each trial.

    Returns
    -------
    list of Claim
        On whole datasets only.
    """
    whole = [row for row in rows if row.part == "whole"]
    checks: dict[str, Check] = {
        "SVM: support vectors within 2 % of the paper": _support,
        "SVM: accuracy within 0.01 (0.03 on heart, whose splits are random)": _accuracy,
        "SVM that decides by probability: U.C. within 0.02": _probability,
        "Borders in the paper's mode: U.C. within twice the paper's spread or 0.02": _borders,
        "Borders in the paper's mode: the paper's verdict": _same_verdict,
        "Borders in the paper's mode succeed by the paper's rule": _success_of("borders"),
        "limes' default succeeds by the paper's rule": _success_of("limes"),
        "limes' default: U.C. no more than 0.01 below the SVM's": _close_to_machine,
    }
    return [claim for text, check in checks.items() if (claim := _count(text, check, whole)).n_all]


def missing_trials(rows: Sequence[Row]) -> list[str]:
    """Name methods that have not been tried on a dataset.

    Parameters
    ----------
    rows : sequence of Row
        One for each trial.

    Returns
    -------
    list of str
        Method and datasets.
    """
    found = []
    for method in RESULT_METHODS:
        tried = {row.dataset for row in select(rows, experiment="results", method=method)}
        missing = [name for name in DATASETS if name not in tried]
        if missing:
            found.append(f"{method}: {', '.join(missing)}")
    return found


def describe_fits(rows: Sequence[Row]) -> list[str]:
    """Tell the laws that the figures of the sample classes show.

    Parameters
    ----------
    rows : sequence of Row
        One for each trial.

    Returns
    -------
    list of str
        One sentence for each.
    """
    lines = []
    if growth := select(rows, experiment="training"):
        law = support_law(growth)
        lines.append(
            f"Support vectors grow as {law.factor:.2f} · rows^{law.exponent:.2f} "
            "(paper: 0.38 · rows^0.94)."
        )
        skills = by_setting(growth, "uncertainty_coefficient")
        lines.append(
            f"The SVM's U.C. stays within 2 % of its best from {saturation(skills):.0f} "
            "training rows on (paper: it saturates at 200 to 300)."
        )
    for method, source in (("borders", "the SVM"), ("true-borders", "the class definitions")):
        if found := select(rows, experiment="borders", method=method):
            skills = by_setting(found, "uncertainty_coefficient")
            lines.append(
                f"With borders of {source}, U.C. stays within 2 % of its best from "
                f"{saturation(skills):.0f} points on (paper: about 20)."
            )
    return lines


# From rows and a dataset to whether it holds, with the numbers; None where it was not tried.
Check = Callable[[Sequence[Row], str], tuple[bool, str] | None]


def _count(text: str, check: Check, rows: Sequence[Row]) -> Claim:
    """Try a claim on all datasets."""
    found = {name: result for name in DATASETS if (result := check(rows, name)) is not None}
    return Claim(
        text,
        [name for name, (holds, _) in found.items() if holds],
        {name: numbers for name, (holds, numbers) in found.items() if not holds},
    )


def _support(rows: Sequence[Row], name: str) -> tuple[bool, str] | None:
    """Compare support vectors."""
    own = spread_of(_results(rows, name, "svm"), "n_support")
    their = printed_number(find_printed("sizes", dataset=name), "support_vectors")
    if own is None or their is None:
        return None
    share = own.mean / their - 1
    return abs(share) <= SUPPORT_SHARE, f"{own.mean:.0f}, paper {their:.0f} ({share:+.1%})"


def _accuracy(rows: Sequence[Row], name: str) -> tuple[bool, str] | None:
    """Compare the accuracy of the machine."""
    own = spread_of(_results(rows, name, "svm"), "accuracy")
    line = find_printed("results", dataset=name, method="svm", quantity="accuracy")
    their = printed_number(line, "mean")
    if own is None or their is None:
        return None
    is_near = abs(own.mean - their) <= ACCURACY_OF.get(name, ACCURACY)
    return is_near, f"{own.mean:.3f}, paper {their:.3f}"


def _probability(rows: Sequence[Row], name: str) -> tuple[bool, str] | None:
    """Compare the uncertainty coefficient of the machine that decides by probability."""
    own = spread_of(_results(rows, name, "svm-probability"), "uncertainty_coefficient")
    line = find_printed("results", dataset=name, method="svm", quantity="uncertainty_coefficient")
    their = printed_number(line, "mean")
    if own is None or their is None:
        return None
    return abs(own.mean - their) <= BORDERS, f"{own.mean:.3f}, paper {their:.3f}"


def _borders(rows: Sequence[Row], name: str) -> tuple[bool, str] | None:
    """Compare the uncertainty coefficient of the borders."""
    own = spread_of(_results(rows, name, "borders"), "uncertainty_coefficient")
    line = find_printed(
        "results", dataset=name, method="borders", quantity="uncertainty_coefficient"
    )
    their, std = printed_number(line, "mean"), printed_number(line, "std")
    if own is None or their is None:
        return None
    margin = max(BORDERS, 2 * (std or 0.0))
    return abs(own.mean - their) <= margin, f"{own.mean:.3f}, paper {their:.3f}"


def _same_verdict(rows: Sequence[Row], name: str) -> tuple[bool, str] | None:
    """Compare verdicts on the borders."""
    verdict = judge(rows, name, "borders")
    if verdict is None:
        return None
    their = find_printed("verdicts", dataset=name)["verdict"]
    return verdict.word.rstrip("*") == their, f"{verdict.word}, paper: {their}"


def _success_of(method: str) -> Check:
    """Make the check of the paper's rule for a method."""

    def check(rows: Sequence[Row], name: str) -> tuple[bool, str] | None:
        verdict = judge(rows, name, method)
        if verdict is None:
            return None
        return verdict.succeeds, f"the SVM takes {verdict.speedup:.2f} times as long"

    return check


def _close_to_machine(rows: Sequence[Row], name: str) -> tuple[bool, str] | None:
    """Compare limes with the machine that it replaces, split by split."""
    machine = {row.split: row for row in _results(rows, name, "svm")}
    fast = [row for row in _results(rows, name, "limes") if row.split in machine]
    lost = [
        machine[row.split].uncertainty_coefficient - row.uncertainty_coefficient for row in fast
    ]
    if not lost:
        return None
    mean = sum(lost) / len(lost)
    return mean <= ACCURACY, f"{mean:.3f} below"


def _results(rows: Sequence[Row], name: str, method: str) -> list[Row]:
    """Return the trials of the paper's main table."""
    return select(rows, experiment="results", dataset=name, method=method)
