"""Write classifiers as LIBSVM's model files."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from limes.atomic import replacing
from limes.kernels import Kernel
from limes.libsvm.classifier import LibsvmClassifier
from limes.svm_machine import SvmMachine

__all__ = ["write_libsvm_model"]

Array = NDArray[np.float64]


def write_libsvm_model(model: SVC | NuSVC | LibsvmClassifier, path: str | os.PathLike[str]) -> None:
    """Write a support vector machine as a model file that ``svm-predict`` takes.

    Numbers have all their digits. The file is written under another name beside ``path`` and then
    renamed: whatever happens, ``path`` is either the old file or the whole new one.

    Parameters
    ----------
    model : SVC, NuSVC or LibsvmClassifier
        Fitted. LIBSVM knows whole numbers as labels and nothing else. Probabilities are
        written for a ``LibsvmClassifier`` that has them.
    path : path-like
        File to write.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> svc = SVC(kernel="linear").fit([[0.0], [2.0]], [3, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_libsvm_model(svc, Path(folder, "two.model"))
    ...     lines = Path(folder, "two.model").read_text().splitlines()
    >>> lines[:3], lines[-1]
    (['svm_type c_svc', 'kernel_type linear', 'nr_class 2'], '-0.5 1:2.0 ')
    """
    lines = _model_lines(_as_libsvm(model))
    with replacing(path) as stream:
        stream.writelines(line.encode("ascii") for line in lines)


def _as_libsvm(model: Any) -> LibsvmClassifier:
    """Return the model as LIBSVM would have it."""
    if isinstance(model, LibsvmClassifier):
        return model
    if not isinstance(model, SVC | NuSVC):
        raise TypeError(f"expected an SVC, NuSVC or LibsvmClassifier, got {model!r}.")
    check_is_fitted(model)
    svm_type = "nu_svc" if isinstance(model, NuSVC) else "c_svc"
    machine, labels = SvmMachine.from_sklearn(model), _whole_labels(model.classes_)
    return LibsvmClassifier(machine, labels, svm_type=svm_type)


def _whole_labels(classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the classes as LIBSVM's labels, if they are whole numbers of 32 bits."""
    if classes.dtype.kind in "biuf":
        labels = classes.astype(np.int64)
        if (labels == classes).all() and (np.abs(labels) < 2**31).all():
            return labels
    raise ValueError(
        f"LIBSVM's labels are whole numbers below 2**31, got classes {classes[:5].tolist()!r}. "
        "Refit the source on numbers, with LabelEncoder for instance."
    )


def _model_lines(model: LibsvmClassifier) -> Iterator[str]:
    """Give the lines of the file, one support vector at a time."""
    machine = model.machine
    yield f"svm_type {model.svm_type}\n"
    yield from _kernel_lines(machine.kernel)
    yield f"nr_class {machine.n_classes}\ntotal_sv {len(machine.vectors)}\n"
    yield f"rho {_join(-machine.intercepts)}\nlabel {_join(model.labels)}\n"
    if model.sigmoids is not None:
        yield f"probA {_join(model.sigmoids[0])}\nprobB {_join(model.sigmoids[1])}\n"
    yield f"nr_sv {_join(machine.n_support)}\nSV\n"
    for coefs, vector in zip(machine.dual_coef.T, machine.vectors, strict=True):
        places = np.flatnonzero(vector)
        pairs = zip((places + 1).tolist(), vector[places].tolist(), strict=True)
        # LIBSVM ends each line with a space, and its reader counts on one after coefficients.
        yield " ".join([_join(coefs), *(f"{place}:{value!r}" for place, value in pairs), "\n"])


def _kernel_lines(kernel: Kernel) -> Iterator[str]:
    """Give the kernel's word and those of its constants that it uses."""
    yield f"kernel_type {'polynomial' if kernel.name == 'poly' else kernel.name}\n"
    if kernel.name == "poly":
        yield f"degree {int(kernel.degree)}\n"
    if kernel.name != "linear":
        yield f"gamma {kernel.gamma!r}\n"
    if kernel.name in ("poly", "sigmoid"):
        yield f"coef0 {kernel.coef0!r}\n"


def _join(numbers: NDArray[Any]) -> str:
    """Return numbers with every bit, a space between them."""
    values: Iterable[float] = numbers.tolist()
    return " ".join(map(repr, values))
