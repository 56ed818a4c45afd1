"""One competitor: how it is trained, asked and weighed."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from limes._typing import Labels
from limes.bench.problem import Problem
from limes.report import pickled_size

Ask = Callable[[Any], Any]


@dataclass(frozen=True)
class Peer:
    """A method of classification, as a user would run it.

    Parameters
    ----------
    name : str
        In the results: a family and, after a hyphen, a size.
    package : str, default='sklearn'
        The modules that it needs, with spaces between.
    dtype : dtype, default=float32
        Of the rows that it is quickest with.
    """

    name: str
    package: str = "sklearn"
    dtype: DTypeLike = np.float32

    @property
    def model_name(self) -> str:
        """The trained model that it asks: several may share one."""
        return self.name

    @property
    def needs_source(self) -> bool:
        """Whether it starts from the trained support vector machine."""
        return False

    @property
    def is_kept(self) -> bool:
        """Whether its trained model may be kept for another run."""
        return True

    def objection(self, problem: Problem) -> str:
        """Say why it cannot take part; empty where it can."""
        missing = [name for name in top_packages(self.package) if find_spec(name) is None]
        return f"{missing[0]} is not installed: pip install 'limes[bench]'" if missing else ""

    def load(self) -> None:
        """Import what it needs, so that no fit waits for it."""
        for name in self.package.split():
            import_module(name)

    def training_rows(self, problem: Problem) -> NDArray[Any]:
        """Return the training rows as it likes them best."""
        return problem.train_rows(self.dtype)

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> Any:
        """Train a model; ``source`` is the trained support vector machine or None."""
        raise NotImplementedError

    def rows(self, problem: Problem) -> NDArray[Any]:
        """Return the test rows as it likes them best."""
        return problem.test_rows(self.dtype)

    def ask(self, model: Any, n_threads: int) -> Ask | None:
        """Return what answers many rows; None if it is meant for single rows only."""
        return model.predict

    def ask_one(self, model: Any, n_threads: int) -> Ask:
        """Return what answers a single row, in the form that ``single_rows`` gives."""
        ask = self.ask(model, n_threads)
        assert ask is not None
        return ask

    def single_rows(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return each row as it wants a single one."""
        return [rows[place : place + 1] for place in range(len(rows))]

    def labels(self, model: Any, problem: Problem) -> Labels:
        """Return its answers to the test rows."""
        ask = self.ask(model, 1)
        assert ask is not None
        return np.asarray(ask(self.rows(problem)))

    def n_bytes(self, model: Any) -> int:
        """Return the size of a trained model."""
        return pickled_size(model)

    def detail(self, model: Any) -> str:
        """Say in a few words how large the trained model came out."""
        return ""


def top_packages(modules: str) -> list[str]:
    """Return the packages of some modules.

    Examples
    --------
    >>> top_packages("sklearnex.svm numpy")
    ['sklearnex', 'numpy']
    """
    return [name.partition(".")[0] for name in modules.split()]
