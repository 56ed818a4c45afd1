"""Open model files of any kind."""

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from scipy import sparse

from limes.files.streams import FORMATS, recognise_file
from limes.libsvm import read_libsvm_model
from limes.model.file_layout import MAGIC
from limes.saved_source import is_source, read_source
from limes.sources.exact import is_detector, labels_of

# Bytes of a file by which its kind is recognised.
PREAMBLE_BYTES = 64
# In XML, comments and a document type may precede the name of the first element.
XML_PREAMBLE_BYTES = 4096
LIBAGF_TYPES = (b"1v1", b"1vR", b"ADJ")
# A control file of multi_borders: a name, then a hierarchy or the classes left of a border.
LIBAGF_CONTROL = re.compile(rb"\s*[A-Za-z_.][^\s{}/;:,\"<>%]*\s+(?:\{\s|[\d\s]+/\s)")


@dataclass(frozen=True, eq=False)
class OpenModel:
    """A classifier from a file."""

    path: Path
    # "borders" for a fast classifier, "libsvm" for a LIBSVM model, "source" for others.
    kind: str
    # The fitted classifier.
    model: Any
    # Names of the features, if it was trained on a table.
    names: tuple[str, ...] | None = None
    # File of the scaling of its rows.
    scaling: Path | None = None

    @property
    def classes(self) -> NDArray[Any]:
        """The labels, sorted."""
        return labels_of(self.model)

    @property
    def is_detector(self) -> bool:
        """Whether it is an outlier detector, with the labels -1 and 1."""
        return is_detector(self.model)

    @property
    def label_order(self) -> NDArray[Any]:
        """The labels in the order of the file."""
        return _last_step(self.model).labels if self.kind == "libsvm" else self.classes

    @property
    def first_index(self) -> int | None:
        """Number of the first feature in LIBSVM text; None if the model does not say."""
        return _last_step(self.model).first_index if self.kind == "libsvm" else None

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return int(self.model.n_features_in_)

    @property
    def has_probabilities(self) -> bool:
        """Whether it predicts probabilities."""
        return hasattr(self.model, "predict_proba")

    @property
    def takes_sparse(self) -> bool:
        """Whether it accepts sparse rows."""
        from sklearn.utils import get_tags

        return bool(get_tags(self.model).input_tags.sparse)

    def n_features_of_text(self, given: int | None) -> int | None:
        """Return the number of features to read from LIBSVM text; None means as many as it has.

        A LIBSVM model stores only features that are not zero in some support vector.
        """
        return given if given is not None or self.kind == "libsvm" else self.n_features

    def align(self, X: Any, rows: Path) -> tuple["OpenModel", Any]:
        """Return the model and the rows with the same number of features."""
        model, n_given = self, X.shape[1]
        if n_given > self.n_features and self.kind == "libsvm":
            model = open_model(self.path, n_features=n_given, scaling=self.scaling)
        if sparse.issparse(X) and n_given < model.n_features:
            X.resize(X.shape[0], model.n_features)
        if X.shape[1] != model.n_features:
            raise ValueError(
                f"{rows}: expected rows of {model.n_features} features, as in {self.path}, found "
                f"{n_given}: name the label's column with --label, or the features with --columns."
            )
        is_accepted = model.takes_sparse or not sparse.issparse(X)
        return model, X if is_accepted else X.toarray()

    def use_threads(self, n_jobs: int) -> None:
        """Set the number of threads, if the model has threads."""
        if self.kind == "borders":
            self.model.set_params(n_jobs=n_jobs)


def open_model(
    path: Path, *, n_features: int | None = None, scaling: Path | None = None
) -> OpenModel:
    """Read a model file of any kind, recognised by its first bytes.

    `scaling` is a file of svm-scale, R's write.svm or Orfeo ToolBox, for a LIBSVM model.
    """
    opened = _open_model(path, n_features, scaling)
    if scaling is not None and opened.scaling is None:
        raise ValueError(
            f"{scaling}: expected the scaling of a LIBSVM model, got one for {path}, which is "
            "another kind of model."
        )
    return opened


def _open_model(path: Path, n_features: int | None, scaling: Path | None) -> OpenModel:
    """Read a model file of any kind."""
    kind = recognise_model(path)
    if kind == "limes":
        return _open_limes(path)
    if kind == "libagf":
        return _open_libagf(path)
    if kind == "libsvm":
        model = read_libsvm_model(path, n_features=n_features, range=scaling, widen=True)
        return OpenModel(path, "libsvm", model, scaling=scaling)
    if kind is not None:
        model = getattr(import_module(f"limes.foreign.{kind}"), f"read_{kind}_model")(path)
        names = getattr(model, "feature_names_in_", None)
        return OpenModel(path, "source", model, None if names is None else tuple(map(str, names)))
    with path.open("rb") as stream:
        preamble = stream.read(PREAMBLE_BYTES)
    content = recognise_file(path)
    if content is not None:
        remedy = "" if content.name in ("TIFF", *FORMATS) else f": {content.remedy}"
        found = f"{content.title}{remedy}"
    else:
        found = repr(preamble[:20]) if preamble else "an empty file"
    raise ValueError(
        f"{path}, byte 0: expected a model: a .limes file, one of LIBSVM, libAGF, OpenCV, skops or "
        f"ONNX, or a file of limes train; found {found}."
    )


def recognise_model(path: Path) -> str | None:
    """Return which program's model a file is, by its first bytes; None if it is none."""
    with path.open("rb") as stream:
        start = stream.read(XML_PREAMBLE_BYTES)
    preamble = start[:PREAMBLE_BYTES]
    if preamble.startswith(MAGIC):
        return "limes"
    if preamble.split(maxsplit=1)[:1] in ([word] for word in LIBAGF_TYPES):
        return "libagf"
    if path.suffix in (".brd", ".bgd") or LIBAGF_CONTROL.match(preamble):
        return "libagf"
    if preamble.lstrip().startswith((b"svm_type", b"kernel_type")):
        return "libsvm"
    # An ONNX file begins with the number of its version and the field after that.
    if preamble[:1] == b"\x08" and preamble[2:3] in (b"\x12", b":", b"B"):
        return "onnx"
    text = preamble.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"%YAML") or (text.startswith(b"{") and b"opencv" in text):
        return "opencv"
    if text.startswith(b"<") and b"opencv_storage" in start:
        return "opencv"
    content = recognise_file(path)
    return "skops" if content is not None and content.name == "skops" else None


def _open_limes(path: Path) -> OpenModel:
    """Open a fast classifier, or a source that limes train wrote."""
    if is_source(path):
        model, names = read_source(path)
        return OpenModel(path, "source", model, names)
    from limes.classifier import load

    fast = load(path)
    names = getattr(fast, "feature_names_in_", None)
    return OpenModel(path, "borders", fast, None if names is None else tuple(map(str, names)))


def _open_libagf(path: Path) -> OpenModel:
    """Open a text model of libAGF."""
    from limes.export.libagf import read_libagf_model
    from limes.export.libagf_files import read_libagf_borders

    with path.open("rb") as stream:
        is_text = stream.read(4).split()[:1] in ([word] for word in LIBAGF_TYPES)
    read = read_libagf_model if is_text else read_libagf_borders
    return OpenModel(path, "borders", read(path))


def _last_step(model: Any) -> Any:
    """Return the classifier of a pipeline."""
    return model[-1] if hasattr(model, "steps") else model
