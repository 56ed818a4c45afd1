"""Loss and gradient of the trainer, against their definition in NumPy and central differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from limes._core import _native, simd_levels
from limes._core.train import CurvedInputs, _as_tuple

PARAMETERS = ("components", "points", "slopes", "offsets", "base_slopes", "base_offsets")
RADIUS = 1.7


class Problem:
    """A random map with rows and targets; float32 as the trainer takes them."""

    def __init__(
        self,
        n_features,
        n_search,
        n_outputs,
        n_points,
        n_blended,
        *,
        shape=None,
        n_directions=None,
        n_rows=21,
        seed=1,
    ):
        rng = np.random.default_rng(seed)

        def normal(*size):
            return rng.normal(size=size).astype(np.float32)

        self.n_blended = n_blended
        self.rows = normal(n_rows, n_features)
        logits = normal(n_rows, max(n_outputs, 2))
        targets = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        self.targets = np.ascontiguousarray(targets[:, :n_outputs])
        self.anchors = normal(n_points, n_search)
        self.curved, n_inputs = None, n_features
        if shape is not None:
            directions = None if n_directions is None else normal(n_directions, n_features)
            center = normal(n_features)
            self.curved = CurvedInputs.from_rows(
                shape, self.rows, center=center, scale=0.7, directions=directions, decay=0.4
            )
            n_inputs += self.curved.n_inputs
        self.parameters = {
            "components": normal(n_search, n_features) if n_search != n_features else None,
            "points": normal(n_points, n_search),
            "slopes": normal(n_points, n_outputs, n_search) / np.sqrt(n_search),
            "offsets": normal(n_points, n_outputs),
            "base_slopes": normal(n_outputs, n_inputs) / np.float32(np.sqrt(n_inputs)),
            "base_offsets": normal(n_outputs),
        }
        self.parameters["slopes"] = self.parameters["slopes"].astype(np.float32)

    def inputs(self):
        """Return the inputs of the base function."""
        x = self.rows.astype(np.float64)
        if self.curved is None:
            return x
        raw = define_curved_inputs(self.curved, x)
        return np.hstack([x, (raw - self.curved.means) * self.curved.inverse_deviations])

    def blend(self, parameters):
        """Return the numbers of the nearest points of each row and their weights."""
        x, components = self.rows.astype(np.float64), parameters["components"]
        z = x if components is None else x @ components.T
        scores = 0.5 * np.sum((z[:, None] - parameters["points"]) ** 2, axis=2)
        near = np.argsort(scores, axis=1, kind="stable")[:, : self.n_blended + 1]
        ordered = np.take_along_axis(scores, near, axis=1)
        weights = ordered[:, -1:] - ordered[:, :-1]
        total = weights.sum(axis=1, keepdims=True)
        weights = np.where(total > 0, weights / np.where(total > 0, total, 1), 1 / self.n_blended)
        return near, ordered, weights, (z[:, None] - self.anchors[near]) / RADIUS

    def values(self, parameters):
        """Return the values of all rows, as the trainer defines them."""
        values = parameters["base_offsets"] + self.inputs() @ parameters["base_slopes"].T
        if len(parameters["points"]) == 1:
            return values
        near, _, weights, shift = self.blend(parameters)
        near, shift = near[:, :-1], shift[:, :-1]
        local = parameters["offsets"][near] + np.einsum(
            "nkqr,nkr->nkq", parameters["slopes"][near], shift
        )
        return values + np.einsum("nk,nkq->nq", weights, local)

    def loss(self, parameters):
        """Return the mean cross-entropy."""
        values = self.values(parameters)
        if values.shape[1] == 1:
            losses = np.logaddexp(0, values[:, 0]) - self.targets[:, 0] * values[:, 0]
        else:
            log_sum = np.logaddexp.reduce(values, axis=1, keepdims=True)
            losses = np.sum(self.targets * (log_sum - values), axis=1)
        return np.mean(losses)

    def exact(self):
        """Return the parameters in float64."""
        return {
            name: None if array is None else array.astype(np.float64)
            for name, array in self.parameters.items()
        }

    def differences(self, name, step=1e-6):
        """Return the central differences of the loss by one array of parameters."""
        exact = self.exact()
        gradient = np.empty_like(exact[name])
        for place in np.ndindex(gradient.shape):
            losses = []
            for sign in (1, -1):
                moved = {**exact, name: exact[name].copy()}
                moved[name][place] += sign * step
                losses.append(self.loss(moved))
            gradient[place] = (losses[0] - losses[1]) / (2 * step)
        return gradient

    def defined_gradients(self):
        """Return the gradients by all parameters, by the chain rule in NumPy."""
        exact, x, n_rows = self.exact(), self.rows.astype(np.float64), len(self.rows)
        values = self.values(exact)
        if values.shape[1] == 1:
            probabilities = 1 / (1 + np.exp(-values))
        else:
            powers = np.exp(values - values.max(axis=1, keepdims=True))
            probabilities = powers / powers.sum(axis=1, keepdims=True)
        g = (probabilities - self.targets) / n_rows
        gradients = {
            name: None if array is None else np.zeros_like(array) for name, array in exact.items()
        }
        gradients["base_slopes"] = g.T @ self.inputs()
        gradients["base_offsets"] = g.sum(axis=0)
        if len(exact["points"]) == 1:
            return gradients
        near, ordered, weights, shift = self.blend(exact)
        total = np.sum(ordered[:, -1:] - ordered[:, :-1], axis=1)
        z = x if exact["components"] is None else x @ exact["components"].T
        for row in range(n_rows):
            points, s, w = near[row], shift[row], weights[row]
            slopes = exact["slopes"][points[:-1]]
            local = exact["offsets"][points[:-1]] + np.einsum("kqr,kr->kq", slopes, s[:-1])
            by_weight = local @ g[row]
            by_score = np.zeros(len(points))
            if self.n_blended > 1 and total[row] > 0:
                by_score[:-1] = -(by_weight - w @ by_weight) / total[row]
                by_score[-1] = -by_score[:-1].sum()
            away = exact["points"][points] - z[row]
            np.add.at(gradients["points"], points, by_score[:, None] * away)
            np.add.at(gradients["offsets"], points[:-1], w[:, None] * g[row])
            outer = w[:, None, None] * g[row][:, None] * s[:-1, None, :]
            np.add.at(gradients["slopes"], points[:-1], outer)
            by_z = np.einsum("k,q,kqr->r", w, g[row], slopes) / RADIUS - by_score @ away
            if exact["components"] is not None:
                gradients["components"] += by_z[:, None] * x[row]
        return gradients

    def native(self, level):
        """Return the loss and the gradients of the compiled trainer."""
        gradients = {
            name: None if array is None else np.full_like(array, np.nan)
            for name, array in self.parameters.items()
        }
        arguments = [*self.arguments(), tuple(gradients.values()), level]
        return _native.loss_and_gradient(*arguments), gradients

    def arguments(self):
        """Return the arguments that all functions of the trainer share."""
        curved = None if self.curved is None else _as_tuple(self.curved)
        arrays = [self.rows, self.targets, self.anchors, *self.parameters.values()]
        return [*arrays, curved, self.n_blended, RADIUS]


def define_curved_inputs(curved, x):
    """Return the curved inputs, in the words of their definition."""
    scaled = curved.scale * (x - curved.center)
    v = scaled if curved.directions is None else (x - curved.center) @ curved.directions.T
    u = 1 / (1 + curved.decay * np.mean(v**2, axis=1)) ** 2
    columns, n = [], v.shape[1]
    if curved.shape != "linear":
        columns = [u, *(u * v[:, i] for i in range(n))]
    if curved.shape == "diagonal":
        columns += [u * v[:, i] ** 2 for i in range(n)]
    if curved.shape == "quadratic":
        columns += [u * v[:, i] * v[:, j] for i in range(n) for j in range(i, n)]
    return np.column_stack(columns) if columns else np.zeros((len(x), 0))


SHAPES = [
    pytest.param((3, 3, 1, 9, 3), {}, id="one output"),
    pytest.param((3, 3, 4, 9, 3), {}, id="several outputs"),
    pytest.param((11, 2, 1, 9, 3), {}, id="projected, one output"),
    pytest.param((11, 2, 4, 9, 3), {}, id="projected, several outputs"),
    pytest.param((3, 3, 2, 5, 1), {}, id="without blending"),
    pytest.param((3, 3, 2, 1, 1), {}, id="one point"),
    pytest.param((4, 4, 1, 1, 1), {"shape": "quadratic"}, id="one point, quadratic"),
    pytest.param((3, 3, 2, 9, 3), {"shape": "linear"}, id="linear"),
    pytest.param((3, 3, 1, 9, 3), {"shape": "envelope"}, id="envelope"),
    pytest.param((3, 3, 2, 9, 3), {"shape": "diagonal"}, id="diagonal"),
    pytest.param((3, 3, 3, 9, 3), {"shape": "quadratic"}, id="quadratic"),
    pytest.param(
        (6, 2, 3, 9, 3), {"shape": "envelope", "n_directions": 2}, id="projected, envelope"
    ),
    pytest.param((6, 2, 1, 9, 3), {"shape": "quadratic"}, id="projected, quadratic"),
    pytest.param(
        (5, 2, 2, 9, 3), {"shape": "diagonal", "n_directions": 3}, id="projected, directions"
    ),
    pytest.param((4, 4, 2, 9, 3), {"shape": "quadratic", "n_directions": 6}, id="directions"),
]

# Sizes around those of vectors and tiles, too large for differences.
LARGE = [
    pytest.param((16, 16, 26, 40, 7), {"n_rows": 77}, id="two vectors of outputs"),
    pytest.param((5, 5, 150, 12, 7), {"n_rows": 33}, id="150 outputs"),
    pytest.param((5, 5, 150, 1, 1), {"shape": "quadratic"}, id="150 outputs, quadratic"),
    pytest.param((32, 32, 16, 9, 7), {"n_rows": 65}, id="outputs of a whole vector"),
    pytest.param((37, 37, 7, 8, 7), {}, id="all points but one are blended"),
    pytest.param((3, 3, 3, 40, 12), {"n_rows": 70}, id="many blended"),
    pytest.param((2, 2, 1, 4100, 7), {}, id="many points"),
    pytest.param((70, 17, 10, 30, 7), {"n_rows": 40}, id="wide, projected"),
    pytest.param((31, 31, 2, 20, 7), {"shape": "quadratic", "n_rows": 1}, id="one row"),
    pytest.param((33, 33, 5, 20, 7), {"shape": "quadratic", "n_rows": 50}, id="594 inputs"),
    pytest.param((15, 15, 1, 20, 7), {"shape": "diagonal", "n_rows": 50}, id="diagonal"),
    pytest.param(
        (40, 8, 9, 20, 7), {"shape": "quadratic", "n_directions": 16, "n_rows": 50}, id="directions"
    ),
]


@pytest.mark.parametrize("level", simd_levels())
@pytest.mark.parametrize(("sizes", "options"), [*SHAPES, *LARGE])
def test_loss_and_gradients_agree_with_their_definition(level, sizes, options):
    problem = Problem(*sizes, **options)
    loss, gradients = problem.native(level)
    assert_allclose(loss, problem.loss(problem.parameters), rtol=1e-5)
    for name, expected in problem.defined_gradients().items():
        if expected is not None:
            scale = np.abs(expected).max(initial=1e-3)
            assert_allclose(gradients[name], expected, rtol=2e-4, atol=2e-4 * scale, err_msg=name)


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize(("sizes", "options"), SHAPES)
def test_gradients_agree_with_central_differences(sizes, options, name):
    problem = Problem(*sizes, **options)
    if problem.parameters[name] is None:
        return
    expected = problem.differences(name)
    assert_allclose(problem.defined_gradients()[name], expected, rtol=1e-4, atol=1e-8)
    for level in simd_levels():
        assert_allclose(problem.native(level)[1][name], expected, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("level", simd_levels())
@pytest.mark.parametrize("n_points", [12, 4100])
def test_of_points_equally_near_the_first_are_blended(level, n_points):
    problem = Problem(2, 2, 3, n_points, 3)
    problem.parameters["points"][:] = 0.5
    gradients = problem.native(level)[1]
    is_used = np.abs(gradients["offsets"]).max(axis=1) > 0
    assert list(np.flatnonzero(is_used)) == [0, 1, 2]
    assert_allclose(gradients["offsets"][0], gradients["offsets"][2], rtol=1e-6)
    assert not gradients["points"].any()


@pytest.mark.parametrize("level", simd_levels())
@pytest.mark.parametrize("n_blended", [3, 9])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e30])
def test_any_number_is_survived(level, n_blended, number):
    problem = Problem(5, 5, 3, 12, n_blended, shape="quadratic")
    for array in (problem.rows, problem.targets, problem.parameters["points"]):
        kept = array.copy()
        array[3] = number
        with np.errstate(all="ignore"):
            loss, _ = problem.native(level)
        array[:] = kept
        assert isinstance(loss, float)


def test_gradients_must_be_arrays_like_the_parameters():
    problem = Problem(3, 3, 1, 5, 2)
    arguments = problem.arguments()
    with pytest.raises(ValueError, match="gradients must be"):
        _native.loss_and_gradient(*arguments, (None,), "")
    wrong = (None, np.zeros((4, 3), np.float32), *list(problem.parameters.values())[2:])
    with pytest.raises(ValueError, match="points must have shape"):
        _native.loss_and_gradient(*arguments, wrong, "")
