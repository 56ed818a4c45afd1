"""Run a plan: what the file has already is not tried again."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from limes.paper.cases import SAMPLE_TRAIN, Case, load_case
from limes.paper.plan import Step
from limes.paper.rows import Row, Trial, append_row, check_writable, latest, read_rows
from limes.paper.trials import run_trial


def run_plan(
    steps: Sequence[Step],
    path: Path,
    *,
    is_again: bool = False,
    say: Callable[[str], None] = print,
    advance: Callable[[int], None] = lambda seconds: None,
) -> list[str]:
    """Run all trials that are wanted and not there yet, and add their rows to a file."""
    check_writable(path)
    rows = {row.trial: row for row in latest(read_rows(path))}
    done: set[Trial] = set() if is_again else set(rows)
    failed: list[str] = []
    for step in steps:
        told = 0
        for row in _attempt(step, rows, done, failed, say):
            # Outside of the attempt: a row that cannot be kept ends the run.
            append_row(path, row)
            rows[row.trial] = row
            done.add(row.trial)
            say(_describe(row))
            reached = max(told, int(step.seconds * _share_done(step, rows, done)))
            advance(reached - told)
            told = reached
        advance(step.seconds - told)
    return failed


def pending_steps(steps: Sequence[Step], path: Path) -> list[Step]:
    """Leave out the steps whose trials are all in a file, so that the time left can be told."""
    rows = latest(read_rows(path))
    done = {row.trial for row in rows}
    return [step for step in steps if not (wanted := step.wanted(rows)) or {*wanted} - done]


def _attempt(
    step: Step,
    rows: dict[Trial, Row],
    done: set[Trial],
    failed: list[str],
    say: Callable[[str], None],
) -> Iterator[Row]:
    """Run the trials of one step, and note it where it fails."""
    try:
        yield from _run_step(step, rows, done)
    except Exception as error:  # a dataset that is not there, or a fault: the others go on
        say(f"{step.title} failed: {type(error).__name__}: {error}")
        failed.append(step.title)


def _run_step(step: Step, rows: dict[Trial, Row], done: set[Trial]) -> Iterator[Row]:
    """Run the trials of one step, which may want others after each."""
    cases = _LastCase()
    while trial := next((one for one in step.wanted([*rows.values()]) if one not in done), None):
        yield run_trial(cases.load(trial), trial)


def _share_done(step: Step, rows: dict[Trial, Row], done: set[Trial]) -> float:
    """Return how much of what a step wants at the moment is there."""
    wanted = step.wanted([*rows.values()])
    return sum(trial in done for trial in wanted) / max(len(wanted), 1)


class _LastCase:
    """The case of the trial before, which the next one mostly shares."""

    def __init__(self) -> None:
        self._key: tuple[str, int, int] | None = None
        self._case: Case | None = None

    def load(self, trial: Trial) -> Case:
        """Return the case of a trial."""
        n_train = SAMPLE_TRAIN
        if trial.experiment == "training" and trial.setting is not None:
            n_train = int(trial.setting)
        key = (trial.dataset, trial.split, n_train)
        if self._case is None or key != self._key:
            self._case = None  # two large ones need not be in memory
            self._case = load_case(trial.dataset, split=trial.split, n_train=n_train)
            self._key = key
        return self._case


def _describe(row: Row) -> str:
    """Tell in a line what came out."""
    setting = "" if row.setting is None else f" {row.setting:.4g}"
    return (
        f"{row.dataset}, {row.method}{setting}, seed {row.seed}: U.C. "
        f"{row.uncertainty_coefficient:.3f}, trained in {row.train_seconds:.3g} s, "
        f"tests in {row.test_seconds:.3g} s"
    )
