"""The paper's scaling law: border points against training rows, in two to six dimensions."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.svm import SVC

from limes._typing import Array
from limes.classifier import accelerate
from limes.research.paper.run import PAPER_MODE
from limes.research.results import Spread, append_rows, latest, read_rows, select, spread
from limes.sources.svm import svm_from_sklearn
from limes.versions import computer, package_versions

# Sides of the box that the rows fill, by dimension. The border is a sheet across it with waves of
# length 2 pi: from half a wavelength to five of them.
SIDES: dict[int, tuple[float, ...]] = {
    2: (6.0, 9.0, 14.0, 20.0, 30.0),
    3: (4.0, 6.0, 8.0, 11.0, 15.0),
    4: (4.0, 5.0, 6.0, 7.0, 8.0),
    5: (3.0, 3.75, 4.5, 5.25, 6.0),
    6: (3.0, 3.5, 4.0, 4.5, 5.0),
}
N_SEEDS = 10
# Constants of the SVMs: the classes do not overlap, and one kernel is as narrow as the waves are
# curved, the other wider.
C = 100.0
GAMMAS = (0.3, 0.1)
# Rows within this distance of the border, along the last axis, are scored: the share of all rows
# that lie near the border depends on the side.
STRIP = 0.5
N_TEST = 4000
# What counts as good accuracy there; the flat sheet through the middle has about 0.6.
GOOD = 0.9
FAIR = 0.8
# Sizes grow by this factor until two in a row exceed the good accuracy by the excess.
FACTOR = 2**0.5
EXCESS = 0.01
FIRST_SIZE = {"svm": 32, "borders": 2}
LAST_SIZE = {"svm": 26_000, "borders": 20_000}
# Rows between which border points are searched.
PAIR_ROWS = 4000
# Training rows at which dimensions are compared: all of them were measured there.
COMMON_ROWS = 3000
# A law holds if the measured exponent is within so many standard errors of it.
MAX_ERRORS = 2.0


@dataclass(frozen=True)
class ScalingRow:
    """Accuracy near the border of a model of a given size.

    Parameters
    ----------
    dimension, side : int, float
        Of the box.
    seed : int
        Of phases, rows and choices.
    method : str
        "svm", whose size is its number of training rows, or "borders", of the class definitions in
        the paper's mode, whose size is its number of points.
    gamma : float or None
        Of the SVM.
    size : int
        Training rows or border points.
    accuracy : float
        Share of the test rows near the border with the right class.
    n_support : int or None
        Support vectors.
    versions, computer, timestamp : str
        As of all results.
    """

    dimension: int
    side: float
    seed: int
    method: str
    gamma: float | None
    size: int
    accuracy: float
    n_support: int | None
    versions: str
    computer: str
    timestamp: str


class Curve(NamedTuple):
    """What identifies the accuracies of a method on a problem."""

    dimension: int
    side: float
    seed: int
    method: str
    gamma: float | None


@dataclass(frozen=True, eq=False)
class WavySheet:
    """Two classes above and below a sheet with waves, in a box that rows fill evenly.

    The volume grows with the side to the power of the dimension, the area of the sheet to the
    power of one less, and what is to be learned of each part of it stays the same.

    Examples
    --------
    >>> sheet = WavySheet(dimension=3, side=5.0, phases=np.zeros(2))
    >>> sheet.decision(np.array([[0.0, 0.0, 2.5], [0.0, 0.0, 4.0]]))
    array([0. , 1.5])
    """

    dimension: int
    side: float
    # Shape (dimension - 1,).
    phases: Array

    @classmethod
    def draw(cls, curve: Curve, rng: np.random.Generator) -> "WavySheet":
        """Draw the phases."""
        phases = rng.uniform(0, 2 * np.pi, curve.dimension - 1)
        return cls(curve.dimension, curve.side, phases)

    def height(self, X: Array) -> Array:
        """Return the last coordinate of the sheet above the others."""
        waves = np.sin(X[:, :-1] + self.phases).sum(axis=1) / np.sqrt(self.dimension - 1)
        return np.asarray(0.5 * self.side + waves)

    def decision(self, X: Array) -> Array:
        """Return how far rows are above the sheet."""
        return np.asarray(X[:, -1] - self.height(X))

    def rows(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw rows in the whole box."""
        return rng.uniform(0, self.side, (n_rows, self.dimension))

    def rows_near_border(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw rows within a strip around the sheet."""
        X = self.rows(n_rows, rng)
        X[:, -1] = self.height(X) + rng.uniform(-STRIP, STRIP, n_rows)
        return X


def run_scaling(
    path: Path,
    *,
    n_seeds: int = N_SEEDS,
    is_again: bool = False,
    log: Callable[[str], None] = print,
) -> None:
    """Measure the curves that a file does not have, and append their rows."""
    done = set() if is_again else {_curve_of(row) for row in read_rows(path, ScalingRow)}
    for curve in plan_curves(n_seeds):
        if curve not in done:
            rows = measure_curve(curve)
            append_rows(path, rows)
            last = rows[-1]
            log(f"{curve}: {last.accuracy:.3f} near the border with {last.size}")


def read_scaling(path: Path) -> list[ScalingRow]:
    """Read the latest accuracy of each model."""
    return latest(read_rows(path, ScalingRow), key=lambda row: (_curve_of(row), row.size))


def plan_curves(n_seeds: int = N_SEEDS) -> list[Curve]:
    """List all curves, each seed of all problems before the next."""
    methods: list[tuple[str, float | None]] = [("borders", None)]
    methods += [("svm", gamma) for gamma in GAMMAS]
    return [
        Curve(dimension, side, seed, method, gamma)
        for seed in range(n_seeds)
        for dimension, sides in SIDES.items()
        for side in sides
        for method, gamma in methods
    ]


def measure_curve(curve: Curve) -> list[ScalingRow]:
    """Measure the accuracy near the border of larger and larger models."""
    # Sheet and test rows are those of all methods.
    shared = np.random.default_rng([curve.dimension, curve.seed, 0])
    sheet = WavySheet.draw(curve, shared)
    X_test = sheet.rows_near_border(N_TEST, shared)
    is_above = sheet.decision(X_test) > 0
    rng = np.random.default_rng([curve.dimension, curve.seed, 1])
    rows: list[ScalingRow] = []
    for size in _sizes(curve.method):
        predicted, n_support = _predict(sheet, curve, size, X_test, rng)
        rows.append(
            ScalingRow(
                *curve,
                size=size,
                accuracy=float(np.mean(predicted == is_above)),
                n_support=n_support,
                versions=package_versions("scipy"),
                computer=computer(),
                timestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            )
        )
        if len(rows) > 1 and min(row.accuracy for row in rows[-2:]) > GOOD + EXCESS:
            break
    return rows


def _sizes(method: str) -> Iterator[int]:
    """Yield larger and larger sizes."""
    size = float(FIRST_SIZE[method])
    while size <= LAST_SIZE[method]:
        yield round(size)
        size *= FACTOR


def _predict(
    sheet: WavySheet, curve: Curve, size: int, X_test: Array, rng: np.random.Generator
) -> tuple[Any, int | None]:
    """Train a model of this size on new rows, and return its predictions."""
    if curve.method == "svm":
        X = sheet.rows(size, rng)
        svm = SVC(C=C, gamma=curve.gamma).fit(X, sheet.decision(X) > 0)
        return svm_from_sklearn(svm).predict_index(X_test) == 1, len(svm.support_)
    X = sheet.rows(PAIR_ROWS, rng)
    seed = int(rng.integers(1 << 31))
    fast = accelerate(sheet.decision, X, n_borders=size, random_state=seed, **PAPER_MODE)
    return fast.predict(X_test) == 1, None


def _curve_of(row: ScalingRow) -> Curve:
    """Return what identifies the curve of a row."""
    return Curve(row.dimension, row.side, row.seed, row.method, row.gamma)


def size_needed(rows: Sequence[ScalingRow], accuracy: float) -> float | None:
    """Return the size at which a curve reaches an accuracy, None if it does not.

    The curve is made to rise everywhere, as little as possible, and interpolated in the logarithm
    of the size.

    Examples
    --------
    >>> base = ScalingRow(2, 6.0, 0, "svm", 0.3, 100, 0.7, None, "", "", "")
    >>> from dataclasses import replace
    >>> size_needed([base, replace(base, size=400, accuracy=0.9)], 0.8)
    200.0
    """
    ordered = sorted(rows, key=lambda row: row.size)
    if not ordered:
        return None
    logs = np.log([row.size for row in ordered])
    rising = IsotonicRegression().fit_transform(logs, [row.accuracy for row in ordered])
    if not rising[0] < accuracy <= rising[-1]:
        return None
    after = int(np.argmax(rising >= accuracy))
    share = (accuracy - rising[after - 1]) / (rising[after] - rising[after - 1])
    return float(round(np.exp(logs[after - 1] + share * (logs[after] - logs[after - 1])), 6))


@dataclass(frozen=True)
class ScalingCheck:
    """Exponents of the numbers needed in one dimension, with their standard errors."""

    dimension: int
    gamma: float
    # Numbers needed at the smallest and at the largest side, means over the seeds.
    training_rows: tuple[float, float]
    border_points: tuple[float, float]
    # In the volume: of training rows and border points; then of border points in training rows.
    # Means over the seeds and their standard deviations.
    rows_exponent: Spread
    points_exponent: Spread
    exponent: Spread

    @property
    def expected(self) -> float:
        """The paper's exponent."""
        return (self.dimension - 1) / self.dimension

    @property
    def holds(self) -> bool:
        """Whether the exponent of border points in training rows is the paper's."""
        return abs(self.exponent.mean - self.expected) <= MAX_ERRORS * standard_error(self.exponent)


def standard_error(exponent: Spread) -> float:
    """Return the standard error of a mean; infinite of a single trial."""
    return float("inf") if exponent.std is None else exponent.std / exponent.n_trials**0.5


def check_law(
    rows: Sequence[ScalingRow], dimension: int, gamma: float, accuracy: float = GOOD
) -> ScalingCheck | None:
    """Measure the law in one dimension, None without two sides at which all is known."""
    seeds = sorted({row.seed for row in rows})
    found = [needed_by_side(rows, dimension, gamma, seed, accuracy) for seed in seeds]
    complete = [sides for sides in found if len(sides) > 1]
    if not complete:
        return None
    exponents = np.array([_exponents(dimension, sides) for sides in complete])
    spreads = [spread(column) for column in exponents.T]
    ends = np.array([[sides[min(sides)], sides[max(sides)]] for sides in complete]).mean(axis=0)
    assert all(spreads)
    return ScalingCheck(
        dimension,
        gamma,
        (float(ends[0, 0]), float(ends[1, 0])),
        (float(ends[0, 1]), float(ends[1, 1])),
        *(value for value in spreads if value is not None),
    )


def needed_by_side(
    rows: Sequence[ScalingRow], dimension: int, gamma: float, seed: int, accuracy: float = GOOD
) -> dict[float, tuple[float, float]]:
    """Return training rows and border points needed, for each side at which both are known."""
    own = select(rows, dimension=dimension, seed=seed)
    needed: dict[float, tuple[float, float]] = {}
    for side in sorted({row.side for row in own}):
        at_side = select(own, side=side)
        n_rows = size_needed(select(at_side, method="svm", gamma=gamma), accuracy)
        n_points = size_needed(select(at_side, method="borders"), accuracy)
        if n_rows is not None and n_points is not None:
            needed[side] = (n_rows, n_points)
    return needed


def mean_needed(
    rows: Sequence[ScalingRow], dimension: int, gamma: float
) -> list[tuple[float, float]]:
    """Return geometric means over the seeds of training rows and border points, by side."""
    by_side: dict[float, list[tuple[float, float]]] = {}
    for seed in {row.seed for row in rows}:
        for side, pair in needed_by_side(rows, dimension, gamma, seed).items():
            by_side.setdefault(side, []).append(pair)
    means = [np.exp(np.mean(np.log(by_side[side]), axis=0)) for side in sorted(by_side)]
    return [(float(mean[0]), float(mean[1])) for mean in means]


def rows_per_point(
    rows: Sequence[ScalingRow], dimension: int, gamma: float, n_rows: float = COMMON_ROWS
) -> float | None:
    """Return training rows per border point where the SVM needs this many; None if unknown."""
    needed = np.log(mean_needed(rows, dimension, gamma)) if rows else np.empty((0, 2))
    if len(needed) < 2 or not needed[0, 0] <= np.log(n_rows) <= needed[-1, 0]:
        return None
    return float(n_rows / np.exp(np.interp(np.log(n_rows), *needed.T)))


def _exponents(dimension: int, needed: dict[float, tuple[float, float]]) -> list[float]:
    """Fit the exponents of both numbers in the volume, and return their ratio too.

    The volume is known without error, so that its fits have no bias.
    """
    volumes = dimension * np.log(list(needed))
    slopes = np.polyfit(volumes, np.log(list(needed.values())), 1)[0]
    return [float(slopes[0]), float(slopes[1]), float(slopes[1] / slopes[0])]
