"""Every method that is compared: how it is trained, how it predicts, how large it is."""

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

Predict = Callable[[Any], Any]
# Megabytes of kernel values that a fit may cache: the default 200 makes large fits very slow.
CACHE_SIZE = 1000


@dataclass(frozen=True)
class Method:
    """A method of classification, as a user would run it.

    Parameters
    ----------
    name : str
        Name in the results: a family and, after a hyphen, a size.
    package : str, default='sklearn'
        The modules that it needs, separated by spaces.
    dtype : dtype, default=float32
        Type of the rows that it is fastest with.
    """

    name: str
    package: str = "sklearn"
    dtype: DTypeLike = np.float32

    @property
    def model_name(self) -> str:
        """Name of the trained model, which several methods may share."""
        return self.name

    @property
    def needs_source(self) -> bool:
        """Whether it starts from the trained SVM."""
        return False

    @property
    def is_cacheable(self) -> bool:
        """Whether its trained model may be stored for another run."""
        return True

    def reason_to_skip(self, problem: Problem) -> str:
        """Return why it cannot be measured on a problem; empty if it can."""
        missing = [name for name in top_packages(self.package) if find_spec(name) is None]
        return f"{missing[0]} is not installed: pip install 'limes[bench]'" if missing else ""

    def load(self) -> None:
        """Import the modules that it needs, so that the time of a fit does not include that."""
        for name in self.package.split():
            import_module(name)

    def training_rows(self, problem: Problem) -> NDArray[Any]:
        """Return the training rows in the form that it is fastest with."""
        return problem.train_rows(self.dtype)

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> Any:
        """Train a model; ``source`` is the trained SVM or None."""
        raise NotImplementedError

    def rows(self, problem: Problem) -> NDArray[Any]:
        """Return the test rows in the form that it is fastest with."""
        return problem.test_rows(self.dtype)

    def predictor(self, model: Any, n_threads: int) -> Predict | None:
        """Return a function from many rows to labels; None if it is meant for single rows only."""
        return model.predict

    def single_row_predictor(self, model: Any, n_threads: int) -> Predict:
        """Return a function from one row, in the form of ``single_rows``, to its label."""
        predict = self.predictor(model, n_threads)
        assert predict is not None
        return predict

    def single_rows(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return each row in the form that ``single_row_predictor`` takes."""
        return [rows[index : index + 1] for index in range(len(rows))]

    def labels(self, model: Any, problem: Problem) -> Labels:
        """Return its predictions for the test rows."""
        predict = self.predictor(model, 1)
        assert predict is not None
        return np.asarray(predict(self.rows(problem)))

    def n_bytes(self, model: Any) -> int:
        """Return the size of a trained model."""
        return pickled_size(model)

    def detail(self, model: Any) -> str:
        """Describe the size of a trained model in a few words."""
        return ""


@dataclass(frozen=True)
class EstimatorMethod(Method):
    """A scikit-learn estimator."""

    # From a problem to an estimator.
    make: Callable[[Problem], Any] = SVC
    # Fewest training rows.
    min_rows: int = 0

    def reason_to_skip(self, problem: Problem) -> str:
        """Return why it cannot be measured on a problem; empty if it can."""
        if len(problem.X_train) < self.min_rows:
            return f"needs {self.min_rows} training rows, there are {len(problem.X_train)}"
        return super().reason_to_skip(problem)

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> Any:
        """Train on standardised rows; a fit that did not converge is used as it is."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.make(problem).fit(rows, problem.y_train)

    def detail(self, model: Any) -> str:
        """Return the number of support vectors, if it has any."""
        n_support = len(getattr(model, "support_", ()))
        return f"{n_support} support vectors" if n_support else ""


def svc(problem: Problem) -> SVC:
    """Return the SVM that limes replaces, not yet trained."""
    return SVC(C=problem.C, gamma=problem.gamma, cache_size=CACHE_SIZE)


def _intelex_svc(problem: Problem) -> Any:
    """Return the SVM of scikit-learn-intelex, without patching scikit-learn."""
    from sklearnex.svm import SVC

    return SVC(C=problem.C, gamma=problem.gamma, cache_size=CACHE_SIZE)


def _nystroem(n_components: int) -> Callable[[Problem], Any]:
    """Return a maker of linear SVMs on components of the same kernel."""
    return lambda problem: make_pipeline(
        Nystroem(
            gamma=None if problem.gamma == "scale" else problem.gamma,
            n_components=n_components,
            random_state=problem.seed,
        ),
        LinearSVC(C=problem.C, random_state=problem.seed),
    )


def _perceptron(n_hidden: int) -> Callable[[Problem], Any]:
    """Return a maker of neural networks with one hidden layer."""
    return lambda problem: MLPClassifier((n_hidden,), random_state=problem.seed)


@dataclass(frozen=True)
class OnnxMethod(Method):
    """The source, converted; its model is the bytes of the graph."""

    @property
    def needs_source(self) -> bool:
        """Whether it starts from the trained SVM."""
        return True

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> bytes:
        """Convert the source."""
        from skl2onnx import to_onnx

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # it reads deprecated attributes
            return to_onnx(source, rows[:1], options={"zipmap": False}).SerializeToString()

    def predictor(self, model: bytes, n_threads: int) -> Predict:
        """Open a session with this many threads that computes labels only."""
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


@dataclass(frozen=True)
class LightgbmMethod(Method):
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

    def predictor(self, model: Any, n_threads: int) -> Predict:
        """Predict with the booster, which is faster than with the estimator around it."""
        booster, classes = model.booster_, model.classes_

        def predict(rows: Any) -> Any:
            probabilities = booster.predict(rows, num_threads=n_threads)
            is_binary = probabilities.ndim == 1
            return classes[
                (probabilities > 0.5).astype(int) if is_binary else probabilities.argmax(axis=1)
            ]

        return predict


@dataclass(frozen=True)
class BordersMethod(Method):
    """The fast model of the source, through ``predict``."""

    @property
    def needs_source(self) -> bool:
        """Whether it starts from the trained SVM."""
        return True

    @property
    def is_cacheable(self) -> bool:
        """Whether its model may be stored: no, since it is what is being tested."""
        return False

    def training_rows(self, problem: Problem) -> NDArray[Any]:
        """Return raw rows: the scaling is part of the model."""
        return problem.X_train

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> BordersClassifier:
        """Accelerate the source with the scaler before it."""
        model = make_pipeline(problem.scaler, source)
        return accelerate(model, rows, random_state=problem.seed)

    def rows(self, problem: Problem) -> NDArray[Any]:
        """Return raw rows: the scaling is part of the model."""
        return problem.X_test.astype(self.dtype)

    def predictor(self, model: BordersClassifier, n_threads: int) -> Predict | None:
        """Return ``predict`` of the same model with this many threads."""
        return copy(model).set_params(n_jobs=n_threads).predict

    def n_bytes(self, model: BordersClassifier) -> int:
        """Return the size of its file, which does not hold the source."""
        with TemporaryDirectory() as folder:
            path = Path(folder, "model.limes")
            model.save(path)
            return path.stat().st_size

    def detail(self, model: BordersClassifier) -> str:
        """Return the scheme and the number of border points."""
        return f"{model.scheme_.name}, {model.n_borders_} border points"


@dataclass(frozen=True)
class PredictorMethod(BordersMethod):
    """The same model through ``predictor()``, which is meant for single rows."""

    @property
    def model_name(self) -> str:
        """Name of the trained model, which it shares with ``limes``."""
        return "limes"

    def predictor(self, model: BordersClassifier, n_threads: int) -> None:
        """Return None: many rows are what ``predict`` is for."""
        return

    def single_row_predictor(self, model: BordersClassifier, n_threads: int) -> Predict:
        """Return a function without the checks of ``predict``."""
        return model.predictor()

    def single_rows(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return each row without a second dimension."""
        return list(rows)

    def labels(self, model: BordersClassifier, problem: Problem) -> Labels:
        """Return the predictions for the test rows, which are those of ``predict``."""
        return model.predict(self.rows(problem))


SVC_METHOD = EstimatorMethod("svc", dtype=np.float64, make=svc)
# In the order of the tables.
METHODS: tuple[Method, ...] = (
    SVC_METHOD,
    EstimatorMethod("intelex-float32", "sklearnex.svm", np.float32, make=_intelex_svc),
    EstimatorMethod("intelex-float64", "sklearnex.svm", np.float64, make=_intelex_svc),
    OnnxMethod("onnxruntime", "onnxruntime skl2onnx"),
    *(
        EstimatorMethod(f"nystroem-{size}", make=_nystroem(size), min_rows=size)
        for size in (100, 500, 1500)
    ),
    *(EstimatorMethod(f"mlp-{size}", make=_perceptron(size)) for size in (32, 128)),
    EstimatorMethod(
        "linear", dtype=np.float64, make=lambda problem: LinearSVC(random_state=problem.seed)
    ),
    LightgbmMethod("lightgbm-100", "lightgbm"),
    BordersMethod("limes"),
    PredictorMethod("limes-predictor"),
)


def choose_methods(names: Sequence[str] | None = None) -> list[Method]:
    """Return the methods with these names or of these families, all for None.

    Parameters
    ----------
    names : sequence of str or None, default=None
        Such as "nystroem-500", or "nystroem" for all its sizes.

    Returns
    -------
    list of Method
        In the order of the tables.

    Examples
    --------
    >>> [method.name for method in choose_methods(["limes", "mlp", "svc"])]
    ['svc', 'mlp-32', 'mlp-128', 'limes', 'limes-predictor']
    """
    if names is None:
        return list(METHODS)
    for name in names:
        if not any(_has_name(method, name) for method in METHODS):
            known = [method.name for method in METHODS]
            raise ValueError(f"methods must be among {known}, got {name!r}.")
    return [method for method in METHODS if any(_has_name(method, name) for name in names)]


def _has_name(method: Method, name: str) -> bool:
    """Return whether a name is that of a method or of its family."""
    return method.name == name or method.name.startswith(f"{name}-")
