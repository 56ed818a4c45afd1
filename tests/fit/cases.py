"""Problems that several tests of the fit use."""

import numpy as np

import limes
from limes.fit.transfer_set import build_transfer_set
from limes.sources.base import SourceContext, as_source


def make_transfer_set(function, n_features=2, n_rows=2000):
    """Return the source of a decision function, uniform rows, and their transfer set."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (n_rows, n_features))
    source = as_source(function, SourceContext(rows, None, False, rng))
    return source, rows, build_transfer_set(source, rows, rng=rng)


def accelerate_pairwise(model, X, **options):
    """Fit twelve points on each border of a pair of classes."""
    options = {"scheme": "pairwise", "n_borders": 12, "random_state": 0, **options}
    return limes.accelerate(model, X, **options)


def points_of(fast):
    """Return the points of all maps."""
    return np.concatenate([map_.points for map_ in fast.scheme_.maps])
