"""From a source and rows to the border maps of a scheme."""

from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from limes._typing import Array, Codes
from limes.affine import AffineMap
from limes.border_map import BorderMap
from limes.coupling import class_pairs
from limes.placement import place_pairs, split_sides
from limes.queries import make_twins
from limes.roots import find_borders
from limes.schemes.choosing import Trial
from limes.schemes.judges import Judges
from limes.schemes.judging import MIN_TWINS
from limes.schemes.one_vs_rest import OneVsRestScheme
from limes.schemes.pairwise import PairwiseScheme
from limes.schemes.protocol import Scheme
from limes.schemes.targets import Targets
from limes.sources.protocol import MulticlassSource, Shifted, Source

# One hundred border points are usually enough (the paper, section 2.2).
DEFAULT_BORDERS = 100
# Rows of a class that are asked for their side of a border: a million pairs to choose from.
MAX_CLASS_ROWS = 1000
# Rows on which maps are compared while they are made, and probabilities with the source's.
MIN_JUDGES = 200


@dataclass(frozen=True)
class Settings:
    """How to search for borders.

    Parameters
    ----------
    n_borders : int or None
        Border points of each map; None leaves it to the scheme.
    placement : str
        Between which rows to search; 'auto' is to be chosen before any map is made.
    blend : int or None
        Number of nearest points whose functions are averaged; None leaves it to the scheme.
    tolerance : float
        The largest absolute decision value of a border point.
    level : float, default=0.0
        The decision value of the source at which the border lies.
    double : bool, default=False
        Predict in float64 instead of float32.
    targets : Targets
        What is asked of a map whose number of points is not given.
    """

    n_borders: int | None
    placement: str
    blend: int | None
    tolerance: float
    level: float = 0.0
    double: bool = False
    targets: Targets = field(default_factory=Targets)


@dataclass(frozen=True, eq=False)
class Ground:
    """Rows that borders are searched between, in the space of the source."""

    # Shape (n_rows, n_features). Rows.
    rows: Array
    # Shape (n_rows,). Their class numbers.
    codes: Codes
    # From raw rows to that space.
    before: AffineMap | None
    # Raw rows kept aside, to be judged by.
    judges: Judges
    # Shape (n_aside, n_features). Rows that were kept aside, in the space of the source.
    aside: Array


@dataclass(frozen=True, eq=False)
class Fitted:
    """Border maps, and how they came to be."""

    # The maps.
    scheme: Scheme
    # What was tried on the way.
    trials: list[Trial] = field(default_factory=list)
    # The same, before they learnt from the rows kept aside too; None where they never did.
    earlier: Scheme | None = None

    @property
    def judged(self) -> Scheme:
        """The maps that the rows kept aside can judge."""
        return self.scheme if self.earlier is None else self.earlier


def enough_judges(source: MulticlassSource, ground: Ground) -> tuple[Judges, Array]:
    """Return whom to compare maps by while they are made, and their rows in the source's space.

    Where those kept aside are few, all real rows and others made beside them. A map has seen the
    real ones among many that were made from them, which is a small advantage to all maps alike;
    too few rows would be a large error.
    """
    judges = ground.judges
    moved = judges.rows if ground.before is None else ground.before.apply(judges.rows)
    if len(judges.rows) >= MIN_JUDGES:
        return judges, moved
    rows = np.concatenate([moved, ground.rows])
    twins, _ = make_twins(rows, len(rows), MIN_TWINS, search=rows, rng=np.random.default_rng(0))
    rows = np.concatenate([rows, twins])
    return Judges.evenly(rows, source.codes(rows)), rows


def fit_pairwise(
    source: MulticlassSource,
    ground: Ground,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PairwiseScheme:
    """Map the border of each pair of classes."""
    pairs = class_pairs(len(source.classes))
    borders = [source.pair(*pair) for pair in pairs]
    members = [list(pair) for pair in pairs]
    maps = _map_all(borders, members, ground, settings, seed, n_jobs, verbose)
    return PairwiseScheme(
        maps, len(source.classes), settings.double, by_vote=source.decides_by_vote
    )


def fit_one_vs_rest(
    source: MulticlassSource,
    ground: Ground,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Scheme:
    """Map the border of each class against the rest; two classes have but one border."""
    n_classes = len(source.classes)
    if n_classes == 2:
        return fit_pairwise(source, ground, settings, seed=seed, n_jobs=n_jobs, verbose=verbose)
    borders = [source.one_vs_rest(one) for one in range(n_classes)]
    members = [list(range(n_classes)) for _ in range(n_classes)]
    maps = _map_all(borders, members, ground, settings, seed, n_jobs, verbose)
    return OneVsRestScheme(maps, n_classes, settings.double)


def _map_all(
    borders: list[Source],
    members: list[list[int]],
    ground: Ground,
    settings: Settings,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
    verbose: int,
) -> tuple[BorderMap, ...]:
    """Map several borders, each between the rows of its own classes."""
    seeds = seed.spawn(len(borders))
    # One thread of BLAS a border: they would fight over the same processors.
    with threadpool_limits(limits=1, user_api="blas"):
        maps = Parallel(n_jobs=n_jobs, prefer="threads", verbose=verbose)(
            delayed(map_border)(border, own, ground, settings, np.random.default_rng(child))
            for border, own, child in zip(borders, members, seeds, strict=True)
        )
    return tuple(maps)


def map_border(
    source: Source,
    classes: list[int],
    ground: Ground,
    settings: Settings,
    rng: np.random.Generator,
) -> BorderMap:
    """Search for the points of one border.

    Rows that are all on one side have no border between them: its map is then the same everywhere.
    """
    source = shift_border(source, settings)
    rows = ground.rows[draw_rows(ground.codes, classes, rng)]
    sides = split_sides(source, rows)
    n_borders = settings.n_borders or DEFAULT_BORDERS
    pairs = place_pairs(sides, n_borders, placement=settings.placement, rng=rng)
    if not len(pairs):
        return _one_sided(source, rows, ground)
    points, normals = find_borders(
        source, sides.below[pairs[:, 0]], sides.above[pairs[:, 1]], tolerance=settings.tolerance
    )
    return BorderMap.from_borders(
        points=points, normals=normals, before=ground.before, blend=settings.blend or 1
    )


def shift_border(source: Source, settings: Settings) -> Source:
    """Return the border at the decision value that is asked for."""
    return Shifted(source, settings.level) if settings.level else source


def draw_rows(codes: Codes, classes: list[int], rng: np.random.Generator) -> Codes:
    """Return the rows of some classes, a random part of a large class."""
    own = [np.flatnonzero(codes == one) for one in classes]
    kept = [
        rows if len(rows) <= MAX_CLASS_ROWS else rng.choice(rows, MAX_CLASS_ROWS, replace=False)
        for rows in own
    ]
    return np.concatenate(kept)


def _one_sided(source: Source, rows: Array, ground: Ground) -> BorderMap:
    """Return the map of a border that no two rows lie across: the middle row's value everywhere."""
    if not len(rows):
        rows = ground.rows
    middle = rows.mean(axis=0)
    value = float(np.median(source.decision(rows)))
    return BorderMap.constant(middle, value, ground.before)
