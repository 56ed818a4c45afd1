"""Problems that several tests of the fit use."""

import numpy as np

import limes
from limes.fit.train import continue_training, fit_base, to_border_map, with_points
from limes.fit.transfer_set import build_transfer_set
from limes.sources.base import SourceContext, as_source


def make_transfer_set(function, n_features=2, n_rows=2000):
    """Return the source of a decision function, uniform rows, and their transfer set."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (n_rows, n_features))
    source = as_source(function, SourceContext(rows, None, False, rng))
    return source, rows, build_transfer_set(source, rows, rng=rng)


def train_map(transfer_set, *, n_points, blend, rng, shape="linear", n_samples=200_000):
    """Return a trained map of logits."""
    start = with_points(fit_base(transfer_set, shape)[0], transfer_set, n_points, rng)
    trained = continue_training(start, transfer_set, blend=blend, n_samples=n_samples, rng=rng)
    return to_border_map(trained, blend)


def accelerate_pairwise(model, X, **options):
    """Fit twelve points on each border of a pair of classes."""
    options = {"scheme": "pairwise", "n_borders": 12, "random_state": 0, **options}
    return limes.accelerate(model, X, **options)


def points_of(fast):
    """Return the points of all maps."""
    return np.concatenate([map_.points for map_ in fast.scheme_.maps])
