"""Maps with a curved base, their values by definition, and how far rounding may move them."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from limes import BorderMap, BordersClassifier
from limes.model import Model
from limes.model.affine import AffineMap
from limes.model.border_map import compile_maps
from limes.model.curved_base import CurvedBase
from limes.model.schemes import PairwiseScheme, SharedScheme
from tests.export.cases import is_uncertain

N_FEATURES = 5
# Spread and place of the features of rows: float32 cannot hold the places.
SPREAD = np.array([1.0, 0.05, 30.0, 2.0, 1.0])
PLACE = np.array([1000.1, -3.3, 0.1, 70.7, 0.0])


@dataclass(frozen=True)
class Case:
    """One kind of curved base."""

    shape: str
    step: str
    n_outputs: int
    n_listed: int | None = None
    n_points: int = 9
    blend: int = 1

    def __str__(self) -> str:
        listed = f"-{self.n_listed} listed" if self.n_listed else ""
        return f"{self.shape}-{self.step}-{self.n_outputs}{listed}-{self.n_points} points"


SQUARED = ("diagonal", "quadratic")
STEPS = ("scaling", "selecting", "dense")
CASES = (
    *(Case(*kind) for kind in product(("envelope", *SQUARED), STEPS, (1, 4))),
    *(Case(*kind, n_points=1) for kind in product(SQUARED, STEPS, (4,), (2,))),
    Case("quadratic", "columns", 4, n_points=1),
    Case("quadratic", "dense", 1, n_points=1),
    Case("diagonal", "scaling", 4, 3, blend=3),
    Case("quadratic", "selecting", 1, blend=2),
    Case("envelope", "dense", 4, n_points=1),
)


def preprocessing(step, rng):
    """Return a step around a place near that of the rows."""
    shift = PLACE + 0.3 * SPREAD * rng.normal(size=N_FEATURES)
    if step == "columns":
        return AffineMap(shift, columns=np.array([0, 3, 4]), scale=np.ones(3))
    if step == "scaling":
        return AffineMap.scaling(shift, 0.7 / SPREAD)
    if step == "selecting":
        columns = np.array([3, 0, 1])
        return AffineMap(shift, columns=columns, scale=-1.0 / SPREAD[columns])
    return AffineMap(shift, rng.normal(size=(N_FEATURES, 3)) / SPREAD[:, None])


def curved_map(case, *, seed=0):
    """Return a random map whose curved base matters as much as its linear functions."""
    rng = np.random.default_rng(seed)
    step = preprocessing(case.step, rng)
    n_terms = step.n_outputs
    n_products = {"diagonal": n_terms, "quadratic": n_terms * (n_terms + 1) // 2}
    squares = None
    if case.shape in n_products:
        squares = rng.normal(size=(case.n_outputs, n_products[case.shape]))
    curve = CurvedBase(
        step,
        rng.normal(size=case.n_outputs),
        rng.normal(size=(case.n_outputs, n_terms)),
        squares,
        decay=0.2,
        n_listed=case.n_listed,
    )
    slopes = 0.3 * rng.normal(size=(case.n_points, case.n_outputs, N_FEATURES)) / SPREAD
    offsets = 0.3 * rng.normal(size=(case.n_points, case.n_outputs)) - slopes @ PLACE
    scaling = AffineMap.scaling(PLACE, 1.0 / SPREAD)
    points = rng.normal(size=(case.n_points, N_FEATURES))
    return BorderMap(points, slopes, offsets, scaling, case.blend, curve)


def scheme_of(map_, *, double=False):
    """Return the scheme of one map: two classes, or one for each output."""
    if map_.n_outputs == 1:
        return PairwiseScheme((map_,), 2, double)
    return SharedScheme((map_,), map_.n_outputs, double)


def classifier(scheme):
    """Return a classifier whose labels are class indices."""
    model = Model(scheme, np.arange(scheme.n_classes), scheme.n_features)
    return BordersClassifier.from_model(model)


def rows_around(n_rows=2000, *, seed=1):
    """Return rows in float32, a tenth of them far from the centre."""
    rng = np.random.default_rng(seed)
    rows = 1.2 * rng.normal(size=(n_rows, N_FEATURES))
    rows[::10] *= 20
    return (PLACE + SPREAD * rows).astype(np.float32)


def linear_values(map_, rows):
    """Return the values of a map without its curved base, in float64."""
    plain = compile_maps([replace(map_, curve=None)], double=True)
    return plain.decide(rows.astype(np.float64)).astype(np.float64)


def defined_values(map_, rows):
    """Return the values of a map by the definition of the curved base in NumPy."""
    return map_.curve.values(rows.astype(np.float64), linear=linear_values(map_, rows))


@dataclass(frozen=True)
class Expected:
    """Values by definition, how far rounding may move them, and rows that it may change more."""

    values: np.ndarray
    bound: np.ndarray
    is_tie: np.ndarray

    @property
    def is_certain(self):
        """Rows whose class rounding cannot change."""
        if self.values.shape[1] == 1:
            return ~self.is_tie & (np.abs(self.values) > self.bound)[:, 0]
        two = np.sort(self.values, axis=1)[:, -2:]
        return ~self.is_tie & (two[:, 1] - two[:, 0] > 2 * self.bound.max(axis=1))


def expected(map_, rows, dtype):
    """Return what a program of some precision must give."""
    plain = classifier(scheme_of(replace(map_, curve=None)))
    _, is_tie, bound = is_uncertain(plain, rows, dtype)
    bound = bound + curve_bound(map_.curve, rows, dtype) + packing_bound(map_)
    n_listed = map_.curve.n_listed
    if n_listed is not None:
        linear = replace(map_.curve, squares=None, n_listed=None)
        ranked = -np.sort(-linear.values(rows, linear=linear_values(map_, rows)), axis=1)
        gap = ranked[:, n_listed - 1] - ranked[:, n_listed]
        is_tie = is_tie | (gap <= 2 * bound.max(axis=1))
        # A class that is not listed has the value of one that is.
        bound = np.broadcast_to(bound.max(axis=1, keepdims=True), bound.shape)
    return Expected(defined_values(map_, rows), bound, is_tie)


def packing_bound(map_):
    """Return how far the offsets may be off that are moved to a centre, in float64."""
    sizes = np.abs(map_.offsets) + np.abs(map_.slopes) @ np.abs(PLACE)
    return (N_FEATURES + 2) * np.finfo(np.float64).eps * sizes.max(axis=0)


def curve_bound(curve, rows, dtype):
    """Return how far the curved base may be off: one unit in the last place for each term."""
    eps, step = np.finfo(dtype).eps, curve.preprocessing
    matrix = np.abs(step.to_matrix())
    v = step.apply(rows)
    size = np.abs(rows.astype(float) - step.shift) + eps * np.abs(step.shift)
    size = size @ matrix
    moved = (N_FEATURES + 5) * eps * size
    share = 1.0 / (1.0 + curve.decay * np.mean(np.square(v), axis=1, keepdims=True))
    # The relative error of the envelope.
    relative = 4 * share * curve.decay * np.mean(size * moved, axis=1, keepdims=True) + 16 * eps
    slopes = np.abs(curve.slopes)
    terms = np.abs(curve.constants) + size @ slopes.T
    change = moved @ slopes.T
    n_terms = curve.n_terms
    if curve.squares is not None:
        first = second = np.arange(n_terms)
        if curve.shape == "quadratic":
            first, second = np.triu_indices(n_terms)
        squares = np.abs(curve.squares)
        terms = terms + (size[:, first] * size[:, second]) @ squares.T
        both = moved[:, first] * size[:, second] + size[:, first] * moved[:, second]
        change = change + both @ squares.T
    unit = (2 * n_terms + 8) * eps
    return share**2 * ((unit + relative) * terms + change)
