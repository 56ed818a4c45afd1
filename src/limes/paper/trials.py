"""One trial to one row: train, ask, time."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes.bench.machine import machine, versions
from limes.bench.threads import limit_threads
from limes.paper.cases import Case
from limes.paper.methods import METHODS, Answer
from limes.paper.rows import Row, Trial
from limes.scores import accuracy_score, agreement, uncertainty_coefficient
from limes.timing import Timing, affordable_rows, time_in_turns

# A batch has so many rows at least, so that the call itself does not count; test rows are
# repeated where there are fewer.
BATCH_ROWS = 2000
# One batch of a slow method may take this long; it gets fewer rows then.
BATCH_SECONDS = 0.1
N_TURNS = 3


def run_trial(case: Case, trial: Trial) -> Row:
    """Train one method on a case, and measure its skill and time with one thread.

    Examples
    --------
    >>> from limes.paper.cases import load_case
    >>> trial = Trial("results", "sample_classes", "svm", None, 0, 0)
    >>> run_trial(load_case("sample_classes", n_train=100), trial).n_train
    100
    """
    start = time.process_time()
    with limit_threads(1):
        answer = METHODS[trial.method](case, trial)
        labels = answer.ask(answer.rows) if answer.labels is None else answer.labels
        timing, timed_rows = _time(answer.ask, answer.rows)
        exact = answer.ask_exactly and _time(answer.ask_exactly, answer.rows)[0]
    return Row(
        **trial._asdict(),
        **_sizes(case, answer),
        **_skill(case, answer, labels),
        train_seconds=answer.train_seconds,
        test_seconds=timing.seconds,
        timed_rows=timed_rows,
        cpu_share=timing.cpu_share,
        exact_seconds=exact and exact.seconds,
        model=answer.model,
        versions=versions("scipy"),
        machine=machine(),
        moment=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        trial_seconds=time.process_time() - start,
    )


def _time(ask: Callable[[Any], Any], rows: NDArray[Any]) -> tuple[Timing, int]:
    """Return the least time for all rows, and how many were asked at once to find it.

    It is processor time: with one thread that is what an idle machine takes, however many
    programs are running beside this one.
    """
    batch = rows[np.arange(max(len(rows), BATCH_ROWS)) % len(rows)]
    n_asked = affordable_rows(ask, batch, seconds=BATCH_SECONDS)
    (best,) = time_in_turns([lambda: ask(batch[:n_asked])], n_turns=N_TURNS)
    return best._replace(seconds=best.seconds * best.cpu_share * len(rows) / n_asked), n_asked


def _sizes(case: Case, answer: Answer) -> dict[str, Any]:
    """Return the columns that tell how large everything is."""
    return {
        **case.problem.sizes,
        "n_train": answer.n_train,
        "part": "part" if case.is_partial else "whole",
        "n_support": answer.n_support,
        "n_borders": answer.n_borders,
    }


def _skill(case: Case, answer: Answer, labels: Any) -> dict[str, Any]:
    """Return the columns that tell how good the answers are."""
    truth, source = case.problem.y_test, answer.source_labels
    return {
        "accuracy": float(accuracy_score(truth, labels)),
        "uncertainty_coefficient": uncertainty_coefficient(truth, labels),
        "agreement": None if source is None else agreement(source, labels),
    }
