"""The paper's rule: borders succeed where a sub-sampled machine of equal skill is slower."""

from collections.abc import Sequence
from dataclasses import dataclass

from limes.paper.matching import WHOLE, match_method, mean_skill
from limes.paper.printed import find_printed
from limes.paper.rows import Row, select
from limes.paper.statistics import Spread, spread_of


@dataclass(frozen=True)
class Verdict:
    """Whether an accelerated machine is worth having."""

    # Of the training rows of the machine that is as good.
    fraction: float
    # Its trials.
    machine: list[Row]
    # Those of the accelerated one.
    fast: list[Row]
    # Whether a linear classifier explains more; None where it was not tried.
    is_linear_better: bool | None

    @property
    def succeeds(self) -> bool:
        """Whether the machine takes longer."""
        return self.speedup > 1

    def is_that_of_the_paper(self, dataset: str) -> bool:
        """Tell whether the paper came to the same, but for stars."""
        return self.word.rstrip("*") == printed_verdict(dataset).rstrip("*")

    @property
    def speedup(self) -> float:
        """How many times as long the machine takes, LIBSVM's own predictions."""
        return self._mean(self.machine, "test_seconds") / self._mean(self.fast, "test_seconds")

    @property
    def exact_speedup(self) -> float:
        """The same for a machine that is summed in limes' core."""
        return self._mean(self.machine, "exact_seconds") / self._mean(self.fast, "test_seconds")

    @property
    def word(self) -> str:
        """The verdict as the paper writes it."""
        star = "*" if self.is_linear_better else ""
        return f"{'succeeds' if self.succeeds else 'fails'}{star}"

    @staticmethod
    def _mean(rows: Sequence[Row], column: str) -> float:
        """Return a mean that must be there."""
        found = spread_of(rows, column)
        return found.mean if found else float("nan")

    def spread(self, which: str, column: str) -> Spread | None:
        """Return mean and spread of a column, of the machine or of the fast one."""
        return spread_of(getattr(self, which), column)


def printed_verdict(dataset: str) -> str:
    """Return the paper's verdict, with its star where a linear classifier is better.

    Examples
    --------
    >>> printed_verdict("dna")
    'fails*'
    """
    line = find_printed("verdicts", dataset=dataset)
    return f"{line['verdict']}{'*' if line['linear_is_better'] == 'yes' else ''}"


def judge(rows: Sequence[Row], dataset: str, method: str) -> Verdict | None:
    """Give the verdict on a method."""
    match = match_method(rows, dataset, method)
    if match is None or not match.is_final:
        return None
    results = select(rows, experiment="results", dataset=dataset)
    machine = select(results, method=WHOLE)
    if match.step:
        machine = select(rows, dataset=dataset, method="subsampled", setting=match.fraction)
    fast, linear = select(results, method=method), select(results, method="linear")
    is_linear_better = mean_skill(linear) > mean_skill(fast) if linear else None
    return Verdict(match.fraction, machine, fast, is_linear_better)
