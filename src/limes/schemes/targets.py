"""What a user asks of a map: how well it must agree, and what it may cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limes.schemes.protocol import Scheme
from limes.timing import time_in_turns

# Rows of a timing, how often it is taken, and the most points that limits leave room for.
N_TIMED = 20_000
N_TURNS = 5
MOST_POINTS = 4096


@dataclass(frozen=True)
class Targets:
    """What is asked of a map; None asks nothing."""

    # Share of rows that must get the source's label: the cheapest map that does is taken.
    min_agreement: float | None = None
    # Multiply-adds a row.
    max_cost: int | None = None
    # Microseconds a row in a batch, on one thread of this machine.
    max_time_us: float | None = None
    # Size of the points and functions.
    max_bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit to what a map may cost."""
        return any(limit is not None for limit in (self.max_cost, self.max_time_us, self.max_bytes))

    def excess(self, scheme: Scheme, rows: NDArray[np.floating]) -> str:
        """Return which limit a scheme goes beyond, in words; nothing where it keeps all."""
        if self.max_cost is not None and scheme.cost > self.max_cost:
            return f"max_cost={self.max_cost!r}: it costs {scheme.cost} multiply-adds a row"
        if self.max_bytes is not None and scheme.n_bytes > self.max_bytes:
            return f"max_bytes={self.max_bytes!r}: it takes {scheme.n_bytes} bytes"
        if self.max_time_us is not None:
            taken = time_row(scheme, rows)
            if taken > self.max_time_us:
                return f"max_time_us={self.max_time_us!r}: it takes {taken:.2g} µs a row"
        return ""


def time_row(scheme: Scheme, rows: NDArray[np.floating]) -> float:
    """Return the microseconds that a scheme takes for a row of a batch, on one thread."""
    batch = np.resize(rows, (N_TIMED, rows.shape[1])).astype(np.float32)
    scheme.classify(batch[:100])
    (best,) = time_in_turns([lambda: scheme.classify(batch)], n_turns=N_TURNS, turn_seconds=0.0)
    return 1e6 * best.seconds / N_TIMED


def sizes_within(
    targets: Targets,
    sizes: Sequence[int],
    shape: Callable[[int], Scheme],
    rows: NDArray[np.floating],
) -> list[int]:
    """Return the numbers of points that limits allow: some of those given, and the largest."""
    if not targets.is_limited:
        return list(sizes)
    excess = targets.excess(shape(1), rows)
    if excess:
        raise ValueError(
            f"even a single linear function for each class goes beyond {excess}. Allow more, or "
            "give the source fewer features."
        )
    low, high = 1, MOST_POINTS + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if not targets.excess(shape(middle), rows) else (low, middle)
    return sorted({*(size for size in sizes if size < low), min(low, max(sizes))})
