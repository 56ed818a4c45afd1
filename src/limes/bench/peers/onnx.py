"""onnxruntime: the trained support vector machine in another engine."""

import warnings
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from limes.bench.peers.peer import Ask, Peer
from limes.bench.problem import Problem


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
