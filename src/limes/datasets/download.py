"""Download datasets from LIBSVM's site, OpenML and GitHub."""

import bz2
import http.client
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Protocol
from urllib.request import urlopen

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, load_svmlight_file

from limes.datasets.catalogue import Entry

# Called with the address, the bytes received and their total (None if it is not known).
Progress = Callable[[str, int, int | None], None]
CHUNK = 1 << 16
TIMEOUT = 60.0  # seconds without a byte
LIBSVM_DATA = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
# The author's repository is the only place that has these two files.
LIBAGF_DATA = (
    "https://raw.githubusercontent.com/Peteysoft/libmsci/"
    "a2acd627ae2eda872658476fcd1f845299b9ce5b/libagf/examples/humidity_data/"
)
Part = tuple[NDArray[Any], NDArray[Any]]


class Origin(Protocol):
    """A place that a dataset can be downloaded from."""

    def fetch(self, entry: Entry, progress: Progress) -> dict[str, NDArray[Any]]:
        """Return the arrays of the dataset's file, unchecked."""


@dataclass(frozen=True)
class LibsvmSite:
    """Text files of the LIBSVM site, plain or compressed: training rows and, if any, test rows."""

    train: str
    test: str | None = None

    def fetch(self, entry: Entry, progress: Progress) -> dict[str, NDArray[Any]]:
        """Download the files; classes are numbered in the order of their labels."""
        X, y = self._read(self.train, entry, progress)
        names = np.unique(y)
        arrays = {"X_train": X, "y_train": _class_index(y, names)}
        if self.test:
            X, y = self._read(self.test, entry, progress)
            arrays |= {"X_test": X, "y_test": _class_index(y, names)}
        return arrays

    def _read(self, file: str, entry: Entry, progress: Progress) -> Part:
        """Return rows and labels of one file."""
        content = download(LIBSVM_DATA + file, progress)
        text = bz2.decompress(content) if file.endswith(".bz2") else content
        X, y = load_svmlight_file(
            BytesIO(text), n_features=entry.n_features, dtype=np.float32, zero_based=False
        )
        rows = X.toarray()
        # One file has 1/sqrt(30) instead of 1.
        return (rows != 0).astype(np.uint8) if entry.kind == "binary" else rows, y


@dataclass(frozen=True)
class OpenML:
    """A dataset of OpenML, by its number, with its class names in the paper's order."""

    data_id: int
    names: tuple[str, ...]

    def fetch(self, entry: Entry, progress: Progress) -> dict[str, NDArray[Any]]:
        """Download it with scikit-learn, which reports no progress."""
        address = f"openml.org/d/{self.data_id}"
        progress(address, 0, None)
        bunch = fetch_openml(data_id=self.data_id, as_frame=False, parser="liac-arff", cache=False)
        X = np.asarray(bunch.data, dtype=np.float32)
        progress(address, X.nbytes, X.nbytes)
        return {"X_train": X, "y_train": _class_index(bunch.target, np.array(self.names))}


@dataclass(frozen=True)
class LibAGF:
    """Binary files of the paper's author: rows, and a quantity whose ranges are the classes."""

    rows: str
    quantity: str
    lowest: float
    highest: float
    n_classes: int

    def fetch(self, entry: Entry, progress: Progress) -> dict[str, NDArray[Any]]:
        """Download both; the thresholds are in geometric progression."""
        rows = np.frombuffer(download(LIBAGF_DATA + self.rows, progress), "<f4", offset=4)
        quantity = np.frombuffer(download(LIBAGF_DATA + self.quantity, progress), "<f4")
        thresholds = np.geomspace(self.lowest, self.highest, self.n_classes - 1, dtype=np.float32)
        class_index = np.searchsorted(thresholds, quantity, side="right")
        return {
            "X_train": rows.reshape(-1, entry.n_features).astype(np.float32),
            "y_train": class_index.astype(np.int16),
        }


ORIGINS: dict[str, Origin] = {
    "heart": LibsvmSite("binary/heart"),
    "shuttle": LibsvmSite("multiclass/shuttle.scale", "multiclass/shuttle.scale.t"),
    "sat": LibsvmSite("multiclass/satimage.scale", "multiclass/satimage.scale.t"),
    "segment": OpenML(36, ("brickface", "sky", "foliage", "cement", "window", "path", "grass")),
    "dna": LibsvmSite("multiclass/dna.scale", "multiclass/dna.scale.t"),
    "splice": LibsvmSite("binary/splice", "binary/splice.t"),
    "codrna": LibsvmSite("binary/cod-rna", "binary/cod-rna.t"),
    "letter": OpenML(6, tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    "pendigits": LibsvmSite("multiclass/pendigits", "multiclass/pendigits.t"),
    "usps": LibsvmSite("multiclass/usps.bz2", "multiclass/usps.t.bz2"),
    "mnist": LibsvmSite("multiclass/mnist.bz2", "multiclass/mnist.t.bz2"),
    "ijcnn1": LibsvmSite("binary/ijcnn1.bz2", "binary/ijcnn1.t.bz2"),
    "madelon": LibsvmSite("binary/madelon", "binary/madelon.t"),
    "seismic": LibsvmSite("multiclass/vehicle/seismic.bz2", "multiclass/vehicle/seismic.t.bz2"),
    "mushrooms": LibsvmSite("binary/mushrooms"),
    "phishing": LibsvmSite("binary/phishing"),
    "humidity": LibAGF("est_bt_cld_land_z0.00.vec", "train_SQ36s.dat", 7e-5, 1e-3, 8),
}


def download(url: str, progress: Progress) -> bytes:
    """Return the bytes at an address; raise an ``OSError`` if there are fewer than announced."""
    parts: list[bytes] = []
    n_bytes = 0
    try:
        with urlopen(url, timeout=TIMEOUT) as response:
            announced = response.headers.get("Content-Length")
            total = int(announced) if announced else None
            while part := response.read(CHUNK):
                parts.append(part)
                n_bytes += len(part)
                progress(url, n_bytes, total)
    except http.client.HTTPException as error:
        raise OSError(f"{url} broke off: {error}") from error
    if total is not None and n_bytes != total:
        raise OSError(f"{url} broke off after {n_bytes} of {total} bytes")
    progress(url, n_bytes, n_bytes)
    return b"".join(parts)


def _class_index(y: NDArray[Any], names: NDArray[Any]) -> NDArray[np.int16]:
    """Return the index of each label among the names."""
    order = np.argsort(names)
    ranks = np.searchsorted(names, y, sorter=order)
    class_index = order[np.minimum(ranks, len(names) - 1)]
    unknown = np.unique(y[names[class_index] != y])
    if len(unknown):
        raise ValueError(f"labels must be among {names.tolist()}, got {unknown.tolist()}")
    return class_index.astype(np.int16)
