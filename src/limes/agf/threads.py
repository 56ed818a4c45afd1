"""One BLAS thread while blocks are weighed."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

# Wider rows spend most of their time in matrix products, which then deserve all threads.
MOST_FEATURES = 128


def calm_blas(n_features: int) -> AbstractContextManager[Any]:
    """Keep BLAS to one thread within a block of code, unless rows are wide.

    Between the short products of blocks its threads would only spin, which on a busy machine
    takes several times as long as the work itself.
    """
    if n_features > MOST_FEATURES:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    """Find the libraries once: it takes a millisecond."""
    return ThreadpoolController()
