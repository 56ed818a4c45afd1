"""limes with its default settings: the source's borders, asked about raw rows."""

from copy import copy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from limes._typing import Labels
from limes.accelerating import accelerate
from limes.bench.peers.peer import Ask, Peer
from limes.bench.problem import Problem
from limes.classifier import BordersClassifier


@dataclass(frozen=True)
class BordersPeer(Peer):
    """The fast model of the source, through ``predict``."""

    @property
    def needs_source(self) -> bool:
        """Whether it starts from the trained support vector machine."""
        return True

    @property
    def is_kept(self) -> bool:
        """Whether its model may be kept: no, it is what is under test."""
        return False

    def training_rows(self, problem: Problem) -> NDArray[Any]:
        """Return raw rows: the scaling is inside the model."""
        return problem.X_train

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> BordersClassifier:
        """Find the borders of the source, with the scaler in front of it."""
        model = make_pipeline(problem.scaler, source)
        return accelerate(model, rows, random_state=problem.seed)

    def rows(self, problem: Problem) -> NDArray[Any]:
        """Return raw rows: the scaling is inside the model."""
        return problem.X_test.astype(self.dtype)

    def ask(self, model: BordersClassifier, n_threads: int) -> Ask | None:
        """Return ``predict`` with its own number of threads."""
        return _with_threads(model, n_threads).predict

    def n_bytes(self, model: BordersClassifier) -> int:
        """Return the size of its file, which leaves the source out."""
        with TemporaryDirectory() as folder:
            path = Path(folder, "model.limes")
            model.save(path)
            return path.stat().st_size

    def detail(self, model: BordersClassifier) -> str:
        """Name the scheme and the number of border points."""
        return f"{model.scheme_.name}, {model.n_borders_} border points"


@dataclass(frozen=True)
class PredictorPeer(BordersPeer):
    """The same model through ``predictor()``, which is meant for single rows."""

    @property
    def model_name(self) -> str:
        """The trained model that it asks."""
        return LIMES_PEER.name

    def ask(self, model: BordersClassifier, n_threads: int) -> None:
        """Return nothing: ``predict`` is what answers many rows."""
        return

    def ask_one(self, model: BordersClassifier, n_threads: int) -> Ask:
        """Return the lean callable."""
        return model.predictor()

    def single_rows(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return each row without a second dimension."""
        return list(rows)

    def labels(self, model: BordersClassifier, problem: Problem) -> Labels:
        """Return the answers to the test rows, which are those of ``predict``."""
        return model.predict(self.rows(problem))


def _with_threads(model: BordersClassifier, n_threads: int) -> BordersClassifier:
    """Return the same model with another number of threads."""
    return copy(model).set_params(n_jobs=n_threads)


LIMES_PEER = BordersPeer("limes")
PREDICTOR_PEER = PredictorPeer("limes-predictor")
