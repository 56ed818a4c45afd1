"""Files of datasets, as on a disk and as on a server."""

import email.message
import io

import numpy as np


class Response(io.BytesIO):
    """The response of a server: its bytes, and the number that it announces."""

    def __init__(self, content, announced):
        super().__init__(content)
        self.headers = email.message.Message()
        if announced is not None:
            self.headers["Content-Length"] = str(announced)


def silent(address, n_bytes, total):
    """Show no progress."""


def svmlight(X, y):
    """Return text as on the LIBSVM site: without zeros, columns from 1."""
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{value:g}" for j, value in enumerate(row) if value)
        for row, label in zip(X, y, strict=True)
    ]
    return "\n".join(lines).encode() + b"\n"


def heart(seed=0):
    """Return rows with the shape and class counts of heart."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 9, (270, 13)).astype(np.float32), np.repeat([0, 1], [150, 120])


def save(folder, name, **arrays):
    """Write a dataset file and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{name}.npz", **arrays)
    return folder / f"{name}.npz"
