"""What writes a file in one of the formats, a piece at a time."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from numpy.typing import NDArray


class PieceWriter:
    """The end of a file: reached, or given up."""

    def close(self) -> None:
        """Finish the file; by default the last piece has finished it."""

    def discard(self) -> None:
        """Let go of everything after an error; by default there is nothing to let go of."""


class RowWriter(PieceWriter, ABC):
    """What writes rows."""

    @abstractmethod
    def write(self, X: Any, y: NDArray[Any] | None) -> None:
        """Append rows and their labels."""


class AnswerWriter(PieceWriter, ABC):
    """What writes predictions."""

    @abstractmethod
    def write(
        self, labels: NDArray[Any], probabilities: NDArray[Any] | None, table: Any = None
    ) -> None:
        """Append labels, their probabilities, and the columns of the rows that they are for."""


Writer = TypeVar("Writer", bound=PieceWriter)


@contextmanager
def finishing(writer: Writer) -> Iterator[Writer]:
    """Close a writer at the end, or discard it after an error."""
    try:
        yield writer
        writer.close()
    except BaseException:
        writer.discard()
        raise
