"""Trained models, kept in a folder so that the next run need not train them again."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib

from limes._typing import Labels
from limes.atomic import replacing
from limes.bench.machine import versions
from limes.bench.peers import Peer
from limes.bench.problem import Problem

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
        if self.folder is None or not peer.is_kept:
            return None
        digest = joblib.hash((FORMAT, problem.fingerprint, versions(peer.package)))
        return self.folder / f"{problem.name}-{peer.model_name}-{digest[:12]}.joblib"


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
    with replacing(path) as stream:
        joblib.dump(trained, stream)
    return trained
