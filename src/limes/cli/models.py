"""Open any model file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from scipy import sparse

from limes.libsvm import LibsvmClassifier, read_libsvm_model
from limes.model.container import MAGIC
from limes.source_file import is_source, read_source

# Bytes of a file that are enough to know what it is.
FRONT_BYTES = 64
LIBAGF_TYPES = (b"1v1", b"1vR", b"ADJ")


@dataclass(frozen=True, eq=False)
class OpenModel:
    """A classifier from a file."""

    # The file.
    path: Path
    # What it holds.
    kind: str
    # Fitted.
    model: Any
    # Names of the features, where it was trained on a table.
    names: tuple[str, ...] | None = None

    @property
    def classes(self) -> NDArray[Any]:
        """The labels."""
        return self.model.classes_

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return int(self.model.n_features_in_)

    @property
    def has_probabilities(self) -> bool:
        """Whether it gives probabilities."""
        return hasattr(self.model, "predict_proba")

    @property
    def takes_sparse(self) -> bool:
        """Whether it takes sparse rows as they are."""
        from sklearn.utils import get_tags

        return bool(get_tags(self.model).input_tags.sparse)

    def width_of_rows(self, said: int | None) -> int | None:
        """Return the features of a row of LIBSVM text; None where the text may name more.

        A LIBSVM model knows only the features that are not zero in some support vector.
        """
        return said if said is not None or self.kind == "libsvm" else self.n_features

    def take(self, X: Any, rows: Path) -> tuple["OpenModel", Any]:
        """Return the model and rows with as many features as each other."""
        model, n_found = self, X.shape[1]
        if n_found > self.n_features and self.kind == "libsvm":
            model = open_model(self.path, n_features=n_found)
        if sparse.issparse(X) and n_found < model.n_features:
            X.resize(X.shape[0], model.n_features)
        if X.shape[1] != model.n_features:
            raise ValueError(
                f"{rows}: expected rows of {model.n_features} features, as {self.path} takes, "
                f"found {n_found}: name the label's column with --label, or the features with "
                "--columns."
            )
        is_taken = model.takes_sparse or not sparse.issparse(X)
        return model, X if is_taken else X.toarray()

    def use_threads(self, n_jobs: int) -> None:
        """Let predictions use so many threads, where they use any."""
        if self.kind == "borders":
            self.model.set_params(n_jobs=n_jobs)


def open_model(path: Path, *, n_features: int | None = None) -> OpenModel:
    """Read a model file of any kind, whatever its name."""
    with path.open("rb") as stream:
        front = stream.read(FRONT_BYTES)
    if front.startswith(MAGIC):
        return _open_own(path)
    if front.split(maxsplit=1)[:1] in ([word] for word in LIBAGF_TYPES):
        return _open_libagf(path)
    if front.lstrip().startswith((b"svm_type", b"kernel_type")):
        return OpenModel(path, "libsvm", _read_libsvm(path, n_features))
    raise ValueError(
        f"{path}, byte 0: expected a model: a .limes file, a LIBSVM or libAGF model, or what limes "
        f"train wrote; found {_shown(front)}."
    )


def _open_own(path: Path) -> OpenModel:
    """Open a file of our own form."""
    if is_source(path):
        model, names = read_source(path)
        return OpenModel(path, "source", model, names)
    from limes.classifier import load

    fast = load(path)
    names = getattr(fast, "feature_names_in_", None)
    return OpenModel(path, "borders", fast, None if names is None else tuple(map(str, names)))


def _open_libagf(path: Path) -> OpenModel:
    """Open a text model of libAGF's programs."""
    from limes.export.libagf import read_libagf_model

    return OpenModel(path, "borders", read_libagf_model(path))


def _read_libsvm(path: Path, n_features: int | None) -> LibsvmClassifier:
    """Read a LIBSVM model, with at least so many features."""
    model = read_libsvm_model(path)
    if n_features is None or n_features <= model.n_features_in_:
        return model
    return read_libsvm_model(path, n_features=n_features)


def _shown(front: bytes) -> str:
    """Say what a file seems to be."""
    if front.startswith((b"\x80\x03", b"\x80\x04", b"\x80\x05", b"\x78\x9c", b"\x78\x01")):
        return "a pickle, which is not read since it could run anything"
    return repr(front[:20]) if front else "an empty file"
