"""Train, time in turns, keep trained models."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import joblib

from limes._typing import Labels
from limes.atomic import atomic_write
from limes.research.bench.methods import SVC_PEER, Peer
from limes.research.bench.results import Row, append_rows, is_measured, read_rows
from limes.research.measure import BATCH_SECONDS, Effort, _repeated, limit_threads
from limes.research.problems import Problem
from limes.scores import accuracy_score, agreement, uncertainty_coefficient
from limes.timing import Timing, affordable_rows, time_in_turns
from limes.versions import machine, package_versions

# Single rows of one turn: all different, as in real use.
N_SINGLE = 20
# Changes with what is kept: older files are then left alone.
FORMAT = 2


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model."""

    # Whatever the peer asks.
    model: Any
    # Shape (n_test,). Its answers to the test rows.
    labels: Labels
    # How long the training took.
    fit_seconds: float
    # Size of the model. It is taken here, since arrays that a trained model has once may have
    # become two when it is read from a file.
    n_bytes: int


@dataclass(frozen=True, eq=False)
class Entrant:
    """A peer with its trained model, and that of the support vector machine."""

    peer: Peer
    own: Trained
    source: Trained


@dataclass(frozen=True, eq=False)
class Store:
    """Models by problem, method and versions: in memory and, if there is a folder, on disk.

    The files are pickles: use a folder that only you write to.

    Parameters
    ----------
    folder : Path or None, default=None
        Where files go; None keeps models in memory only.
    """

    folder: Path | None = None
    recent: dict[tuple[str, str], Trained] = field(default_factory=dict)

    def trained(self, problem: Problem, peer: Peer, source: Any) -> Trained:
        """Return the trained model of a peer, from the store if it is there.

        Parameters
        ----------
        problem : Problem
            What it is trained for.
        peer : Peer
            The method.
        source : object or None
            The trained support vector machine, for a peer that starts from it.

        Returns
        -------
        Trained
            Model, answers and time.
        """
        key = (problem.fingerprint, peer.model_name)
        if key not in self.recent:
            path = self._path(problem, peer)
            self.recent[key] = _load_or(path, lambda: train(problem, peer, source))
        return self.recent[key]

    def forget(self) -> None:
        """Drop what is in memory: models of another problem are not needed any more."""
        self.recent.clear()

    def _path(self, problem: Problem, peer: Peer) -> Path | None:
        """Return the file of a model, None where none is kept."""
        if self.folder is None or not peer.is_good_enough:
            return None
        digest = joblib.hash((FORMAT, problem.fingerprint, package_versions(peer.package)))
        return self.folder / f"{problem.name}-{peer.model_name}-{digest[:12]}.joblib"


def run_benchmark(
    problem: Problem,
    peers: Sequence[Peer],
    *,
    threads: Sequence[int],
    output: Path,
    store: Store,
    effort: Effort,
    is_again: bool = False,
    say: Callable[[str], None] = print,
) -> list[str]:
    """Measure the peers on one problem, and add the rows to a file.

    What the file has already, from the same versions on the same machine, is not measured again.

    Parameters
    ----------
    problem : Problem
        What they compete on.
    peers : sequence of Peer
        Who takes part. One that cannot is left out and named.
    threads : sequence of int
        Numbers of threads, one round of turns for each.
    output : Path
        The file of comma-separated values.
    store : Store
        Where trained models are kept.
    effort : Effort
        How hard to measure.
    is_again : bool, default=False
        Measure again what the file has.
    say : callable, default=print
        Told how far it is.

    Returns
    -------
    list of str
        Names of the peers that failed, besides those that are just not installed.
    """
    able = _able_peers(problem, peers, say)
    todo = [n for n in threads if is_again or not _is_done(output, problem, able, n)]
    if not todo:
        say(f"{problem.name}: all there already.")
        return []
    with limit_threads(1):
        entrants = _train_all(problem, able, store, say)
    for n_threads in todo:
        say(f"{problem.name}: {len(entrants)} methods in turns, threads: {n_threads}")
        append_rows(output, measure(problem, entrants, n_threads=n_threads, effort=effort))
    store.forget()
    return sorted({peer.name for peer in able} - {one.peer.name for one in entrants})


def measure(
    problem: Problem, entrants: Sequence[Entrant], *, n_threads: int, effort: Effort
) -> list[Row]:
    """Time trained models in turns.

    Parameters
    ----------
    problem : Problem
        What they were trained for.
    entrants : sequence of Entrant
        Peers with their models.
    n_threads : int
        Threads that a prediction may use.
    effort : Effort
        How hard to measure.

    Returns
    -------
    list of Row
        One for each entrant.
    """
    run = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    take_turns = partial(time_in_turns, n_turns=effort.n_turns, turn_seconds=effort.turn_seconds)
    with limit_threads(n_threads):
        batches = [_batch(one, problem, n_threads, effort.batch_rows) for one in entrants]
        many = take_turns([call for call, _ in batches])
        single = take_turns([_singles(one, problem, n_threads) for one in entrants])
    return [
        Row(
            dataset=problem.name,
            threads=n_threads,
            turns=effort.n_turns,
            machine=machine(),
            run=run,
            **_skill(one, problem),
            **_batch_columns(timing, n_rows),
            microseconds_one_row=1e6 * alone.seconds / N_SINGLE,
        )
        for one, (_, n_rows), timing, alone in zip(entrants, batches, many, single, strict=True)
    ]


def _able_peers(problem: Problem, peers: Sequence[Peer], say: Callable[[str], None]) -> list[Peer]:
    """Leave out who cannot take part, and name them."""
    objections = {peer.name: peer.objection(problem) for peer in peers}
    for name, objection in objections.items():
        if objection:
            say(f"{problem.name}: {name} is left out: {objection}")
    return [peer for peer in peers if not objections[peer.name]]


def _is_done(output: Path, problem: Problem, peers: Sequence[Peer], n_threads: int) -> bool:
    """Tell whether the file has the same measurements already."""
    common = {"dataset": problem.name, "threads": n_threads, "seed": problem.seed}
    common |= {"machine": machine(), **problem.sizes}
    wanted = [
        common | {"method": one.name, "versions": package_versions(one.package)} for one in peers
    ]
    return is_measured(read_rows(output), wanted)


def _train_all(
    problem: Problem, peers: Sequence[Peer], store: Store, say: Callable[[str], None]
) -> list[Entrant]:
    """Train everybody; one that fails is left out and named."""
    source = store.trained(problem, SVC_PEER, None)
    entrants = []
    for peer in peers:
        say(f"{problem.name}: training {peer.name}")
        try:
            own = store.trained(problem, peer, source.model)
        except Exception as error:  # whatever a foreign library raises, the others go on
            say(f"{problem.name}: {peer.name} failed: {type(error).__name__}: {error}")
            continue
        entrants.append(Entrant(peer, own, source))
    return entrants


def _batch(
    one: Entrant, problem: Problem, n_threads: int, n_wanted: int
) -> tuple[Callable[[], Any], int | None]:
    """Prepare the question about many rows, and tell how many; no rows for who takes none."""
    ask = one.peer.ask(one.own.model, n_threads)
    if ask is None:
        return lambda: None, None
    rows = _repeated(one.peer.rows(problem), n_wanted)
    n_rows = affordable_rows(ask, rows, seconds=BATCH_SECONDS)
    return lambda: ask(rows[:n_rows]), n_rows


def _singles(one: Entrant, problem: Problem, n_threads: int) -> Callable[[], None]:
    """Prepare the questions about single rows."""
    ask = one.peer.ask_one(one.own.model, n_threads)
    rows = one.peer.single_rows(_repeated(one.peer.rows(problem)[:N_SINGLE], N_SINGLE))

    def ask_each() -> None:
        for row in rows:
            ask(row)

    ask_each()
    return ask_each


def _skill(one: Entrant, problem: Problem) -> dict[str, Any]:
    """Return the columns that do not depend on time or threads."""
    truth, labels = problem.y_test, one.own.labels
    return {
        **problem.sizes,
        "method": one.peer.name,
        "seed": problem.seed,
        "accuracy": float(accuracy_score(truth, labels)),
        "uncertainty_coefficient": float(uncertainty_coefficient(truth, labels)),
        "agreement": float(agreement(one.source.labels, labels)),
        "model_bytes": one.own.n_bytes,
        "fit_seconds": one.own.fit_seconds,
        "source_seconds": one.source.fit_seconds if one.peer.needs_source else 0.0,
        "detail": one.peer.detail(one.own.model),
        "versions": package_versions(one.peer.package),
    }


def _batch_columns(timing: Timing, n_rows: int | None) -> dict[str, Any]:
    """Return the columns of a batch, empty for who takes single rows only."""
    if n_rows is None:
        return {"microseconds_a_row": None, "batch_rows": None, "cpu_share": None}
    return {
        "microseconds_a_row": 1e6 * timing.seconds / n_rows,
        "batch_rows": n_rows,
        "cpu_share": timing.cpu_share,
    }


def train(problem: Problem, peer: Peer, source: Any) -> Trained:
    """Train the model of a peer and let it answer the test rows."""
    peer.load()
    rows = peer.training_rows(problem)
    start = time.perf_counter()
    model = peer.fit(problem, rows, source)
    fit_seconds = time.perf_counter() - start
    return Trained(model, peer.labels(model, problem), fit_seconds, peer.n_bytes(model))


def _load_or(path: Path | None, make: Callable[[], Trained]) -> Trained:
    """Read a model from its file; make it and write the file where there is none."""
    if path is None:
        return make()
    if path.is_file():
        return joblib.load(path)
    trained = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        joblib.dump(trained, stream)
    return trained
