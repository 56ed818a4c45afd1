"""Every method that is compared: trained, asked, weighed."""

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from limes._typing import Labels
from limes.classifier import BordersClassifier, accelerate
from limes.report import pickled_size
from limes.research.problems import Problem
from limes.versions import top_packages

Ask = Callable[[Any], Any]
# Megabytes of kernel values that a fit may keep: the default 200 makes large ones crawl.
CACHE_SIZE = 1000


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
    def is_good_enough(self) -> bool:
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


@dataclass(frozen=True)
class LightgbmPeer(Peer):
    """Boosted trees."""

    # Rounds of boosting.
    n_trees: int = 100

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> Any:
        """Train on standardised rows."""
        from lightgbm import LGBMClassifier

        trees = LGBMClassifier(
            n_estimators=self.n_trees, random_state=problem.seed, n_jobs=1, verbose=-1
        )
        return trees.fit(rows, problem.y_train)

    def ask(self, model: Any, n_threads: int) -> Ask:
        """Ask the trees themselves, which is quicker than asking the estimator around them."""
        trees, classes = model.booster_, model.classes_

        def predict(rows: Any) -> Any:
            probabilities = trees.predict(rows, num_threads=n_threads)
            is_binary = probabilities.ndim == 1
            return classes[
                (probabilities > 0.5).astype(int) if is_binary else probabilities.argmax(axis=1)
            ]

        return predict


LIGHTGBM_PEER = LightgbmPeer("lightgbm-100", "lightgbm")


@dataclass(frozen=True)
class BordersPeer(Peer):
    """The fast model of the source, through ``predict``."""

    @property
    def needs_source(self) -> bool:
        """Whether it starts from the trained support vector machine."""
        return True

    @property
    def is_good_enough(self) -> bool:
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


@dataclass(frozen=True)
class EstimatorPeer(Peer):
    """A scikit-learn estimator."""

    # From a problem to an estimator.
    make: Callable[[Problem], Any] = SVC
    # Training rows that it cannot do without.
    min_rows: int = 0

    def objection(self, problem: Problem) -> str:
        """Say why it cannot take part; empty where it can."""
        if len(problem.X_train) < self.min_rows:
            return f"needs {self.min_rows} training rows, there are {len(problem.X_train)}"
        return super().objection(problem)

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> Any:
        """Train on standardised rows; one that has not converged yet is used as it is."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.make(problem).fit(rows, problem.y_train)

    def detail(self, model: Any) -> str:
        """Say how many support vectors there are."""
        return support_vectors(model)


def svc(problem: Problem) -> SVC:
    """Make the support vector machine that limes replaces."""
    return SVC(C=problem.C, gamma=problem.gamma, cache_size=CACHE_SIZE)


SVC_PEER = EstimatorPeer("svc", dtype=np.float64, make=svc)


@dataclass(frozen=True)
class OnnxPeer(Peer):
    """The source, converted; its model is the bytes of the graph."""

    @property
    def needs_source(self) -> bool:
        """Whether it starts from the trained support vector machine."""
        return True

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> bytes:
        """Convert the source."""
        from skl2onnx import to_onnx

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # it reads attributes that will go
            return to_onnx(source, rows[:1], options={"zipmap": False}).SerializeToString()

    def ask(self, model: bytes, n_threads: int) -> Ask:
        """Open a session with its own threads; only labels are asked for."""
        from onnxruntime import InferenceSession, SessionOptions

        options = SessionOptions()
        options.intra_op_num_threads = n_threads
        options.inter_op_num_threads = 1
        session = InferenceSession(model, options, providers=["CPUExecutionProvider"])
        row, label = session.get_inputs()[0].name, [session.get_outputs()[0].name]
        return lambda rows: session.run(label, {row: rows})[0]

    def n_bytes(self, model: bytes) -> int:
        """Return the size of the graph."""
        return len(model)


ONNX_PEER = OnnxPeer("onnxruntime", "onnxruntime skl2onnx")


def intelex_svc(problem: Problem) -> Any:
    """Make its support vector machine; nothing in scikit-learn itself is replaced."""
    from sklearnex.svm import SVC

    return SVC(C=problem.C, gamma=problem.gamma, cache_size=CACHE_SIZE)


INTELEX_PEERS = tuple(
    EstimatorPeer(f"intelex-{dtype.__name__}", "sklearnex.svm", dtype, make=intelex_svc)
    for dtype in (np.float32, np.float64)
)


def nystroem(n_components: int) -> Callable[[Problem], Any]:
    """Make a linear machine on some components of the same kernel."""
    return lambda problem: make_pipeline(
        Nystroem(
            gamma=None if problem.gamma == "scale" else problem.gamma,
            n_components=n_components,
            random_state=problem.seed,
        ),
        LinearSVC(C=problem.C, random_state=problem.seed),
    )


def perceptron(n_hidden: int) -> Callable[[Problem], Any]:
    """Make a neural network with one hidden layer."""
    return lambda problem: MLPClassifier((n_hidden,), random_state=problem.seed)


SCIKIT_LEARN_PEERS = (
    *(
        EstimatorPeer(f"nystroem-{size}", make=nystroem(size), min_rows=size)
        for size in (100, 500, 1500)
    ),
    *(EstimatorPeer(f"mlp-{size}", make=perceptron(size)) for size in (32, 128)),
    EstimatorPeer(
        "linear", dtype=np.float64, make=lambda problem: LinearSVC(random_state=problem.seed)
    ),
)
PEERS: tuple[Peer, ...] = (
    SVC_PEER,
    *INTELEX_PEERS,
    ONNX_PEER,
    *SCIKIT_LEARN_PEERS,
    LIGHTGBM_PEER,
    LIMES_PEER,
    PREDICTOR_PEER,
)


def choose_peers(names: Sequence[str] | None = None) -> list[Peer]:
    """Return the peers of some names or families, all for None.

    Parameters
    ----------
    names : sequence of str or None, default=None
        Such as "nystroem-500", or "nystroem" for all its sizes.

    Returns
    -------
    list of Peer
        In the order of the tables.

    Examples
    --------
    >>> [peer.name for peer in choose_peers(["limes", "mlp", "svc"])]
    ['svc', 'mlp-32', 'mlp-128', 'limes', 'limes-predictor']
    """
    if names is None:
        return list(PEERS)
    for name in names:
        if not any(_is_meant(peer, name) for peer in PEERS):
            raise ValueError(
                f"methods must be some of {[peer.name for peer in PEERS]}, got {name!r}."
            )
    return [peer for peer in PEERS if any(_is_meant(peer, name) for name in names)]


def _is_meant(peer: Peer, name: str) -> bool:
    """Tell whether a name is that of a peer or of its family."""
    return peer.name == name or peer.name.startswith(f"{name}-")


def support_vectors(model: Any) -> str:
    """Say how many support vectors a model has, if it has any."""
    n_support = len(getattr(model, "support_", ()))
    return f"{n_support} support vectors" if n_support else ""
