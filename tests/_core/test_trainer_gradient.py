"""Loss and gradient of the trainer, against their definition in NumPy and central differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from limes._core import _native, simd_levels

PARAMETERS = ("components", "points", "slopes", "offsets", "base_slopes", "base_offsets")
RADIUS = 1.7


class Problem:
    """A random map with rows, targets and weights; float32 as the trainer takes them."""

    def __init__(self, n_features, n_search, n_outputs, n_points, n_blended, seed=0):
        rng = np.random.default_rng(seed)

        def normal(*shape):
            return rng.normal(size=shape).astype(np.float32)

        self.n_blended = n_blended
        self.rows = normal(21, n_features)
        logits = normal(21, max(n_outputs, 2))
        targets = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        self.targets = np.ascontiguousarray(targets[:, :n_outputs])
        self.weights = rng.random(21).astype(np.float32)
        self.anchors = normal(n_points, n_search)
        self.parameters = {
            "components": normal(n_search, n_features) if n_search != n_features else None,
            "points": normal(n_points, n_search),
            "slopes": normal(n_points, n_outputs, n_search),
            "offsets": normal(n_points, n_outputs),
            "base_slopes": normal(n_outputs, n_features),
            "base_offsets": normal(n_outputs),
        }

    def values(self, parameters):
        """Return the values of all rows, as the trainer defines them."""
        components, points, slopes, offsets, base_slopes, base_offsets = parameters.values()
        x = self.rows.astype(np.float64)
        z = x if components is None else x @ components.T
        values = base_offsets + x @ base_slopes.T
        if len(points) == 1:
            return values
        scores = 0.5 * np.sum((z[:, None] - points) ** 2, axis=2)
        near = np.argsort(scores, axis=1, kind="stable")[:, : self.n_blended + 1]
        ordered = np.take_along_axis(scores, near, axis=1)
        weights = ordered[:, -1:] - ordered[:, :-1]
        weights /= weights.sum(axis=1, keepdims=True)
        near = near[:, :-1]
        shift = (z[:, None] - self.anchors[near]) / RADIUS
        local = offsets[near] + np.einsum("nkqr,nkr->nkq", slopes[near], shift)
        return values + np.einsum("nk,nkq->nq", weights, local)

    def loss(self, parameters):
        """Return the weighted mean cross-entropy."""
        values = self.values(parameters)
        if values.shape[1] == 1:
            losses = np.logaddexp(0, values[:, 0]) - self.targets[:, 0] * values[:, 0]
        else:
            log_sum = np.logaddexp.reduce(values, axis=1, keepdims=True)
            losses = np.sum(self.targets * (log_sum - values), axis=1)
        return np.mean(self.weights * losses)

    def differences(self, name, step=1e-6):
        """Return the central differences of the loss by one array of parameters."""
        exact = {
            key: None if array is None else array.astype(np.float64)
            for key, array in self.parameters.items()
        }
        gradient = np.empty_like(exact[name])
        for place in np.ndindex(gradient.shape):
            losses = []
            for sign in (1, -1):
                moved = {**exact, name: exact[name].copy()}
                moved[name][place] += sign * step
                losses.append(self.loss(moved))
            gradient[place] = (losses[0] - losses[1]) / (2 * step)
        return gradient

    def native(self, level):
        """Return the loss and the gradients of the compiled trainer."""
        gradients = {
            name: None if array is None else np.full_like(array, np.nan)
            for name, array in self.parameters.items()
        }
        loss = _native.loss_and_gradient(
            self.rows,
            self.targets,
            self.weights,
            self.anchors,
            *self.parameters.values(),
            self.n_blended,
            RADIUS,
            tuple(gradients.values()),
            level,
        )
        return loss, gradients


SHAPES = [
    pytest.param((3, 3, 1, 9, 3), id="one output"),
    pytest.param((3, 3, 4, 9, 3), id="several outputs"),
    pytest.param((11, 2, 1, 9, 3), id="projected, one output"),
    pytest.param((11, 2, 4, 9, 3), id="projected, several outputs"),
    pytest.param((3, 3, 2, 5, 1), id="without blending"),
    pytest.param((3, 3, 2, 1, 1), id="one point"),
]


@pytest.mark.parametrize("level", simd_levels())
@pytest.mark.parametrize("shape", SHAPES)
def test_the_loss_is_the_weighted_cross_entropy(level, shape):
    problem = Problem(*shape)
    assert_allclose(problem.native(level)[0], problem.loss(problem.parameters), rtol=1e-5)


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_agree_with_central_differences(shape, name):
    problem = Problem(*shape)
    if problem.parameters[name] is None:
        return
    expected = problem.differences(name)
    for level in simd_levels():
        assert_allclose(problem.native(level)[1][name], expected, rtol=1e-4, atol=2e-6)


def test_gradients_must_be_arrays_like_the_parameters():
    problem = Problem(3, 3, 1, 5, 2)
    arguments = [problem.rows, problem.targets, problem.weights, problem.anchors]
    arguments += [*problem.parameters.values(), problem.n_blended, RADIUS]
    with pytest.raises(ValueError, match="gradients must be"):
        _native.loss_and_gradient(*arguments, (None,), "")
    wrong = (None, np.zeros((4, 3), np.float32), *list(problem.parameters.values())[2:])
    with pytest.raises(ValueError, match="points must have shape"):
        _native.loss_and_gradient(*arguments, wrong, "")
