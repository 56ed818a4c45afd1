"""Border maps: points with linear functions, their cost, and their form in the core."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limes._core import Maps, split_common_slopes, thread_count
from limes._typing import Array
from limes.model.affine import AffineMap, is_sparse
from limes.model.curved_base import CurvedBase
from limes.old_names import refuse_old_name


@dataclass(frozen=True, eq=False)
class BorderMap:
    """A piecewise-linear function: each row is evaluated by the functions of its nearest point.

    Parameters
    ----------
    points : array-like of shape (n_borders, n_search_features)
        Border points, in the space where "nearest" is meant (the paper's b).
    slopes : array-like of shape (n_borders, n_outputs, n_features)
        Slopes of the linear functions of each point, with respect to raw rows (the paper's v).
    offsets : array-like of shape (n_borders, n_outputs)
        Their values at a raw row of zeros.
    preprocessing : AffineMap, default=None
        From raw rows to the space of the points; None where they are the same.
    blend : int, default=1
        Number of nearest points whose functions are averaged, the nearer the heavier.
    curve : CurvedBase, default=None
        A curved function of raw rows that is added to the values; None for none.

    Examples
    --------
    >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    >>> line.decide([[5.0, 1.0], [5.0, 2.0], [-3.0, 0.0]]).ravel()
    array([ 0.,  2., -2.], dtype=float32)
    """

    points: Array
    slopes: Array
    offsets: Array
    preprocessing: AffineMap | None = None
    blend: int = 1
    curve: CurvedBase | None = None

    def __post_init__(self) -> None:
        for name in ("points", "slopes", "offsets"):
            array = np.array(getattr(self, name), dtype=np.float64, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        self._check()

    @classmethod
    def from_borders(
        cls,
        *,
        points: ArrayLike,
        normals: ArrayLike,
        preprocessing: AffineMap | None = None,
        blend: int = 1,
    ) -> "BorderMap":
        """Build the map of one border from its points and the gradient at each.

        Parameters
        ----------
        points : array-like of shape (n_borders, n_features)
            Where the decision value is zero.
        normals : array-like of shape (n_borders, n_features)
            Its gradient there.
        preprocessing : AffineMap, default=None
            The space that both are in; None for raw rows.
        blend : int, default=1
            Number of nearest points whose functions are averaged.

        Returns
        -------
        BorderMap
            With one output: ``normal . (row - point)``.

        Examples
        --------
        >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
        >>> line.decide([[5.0, 2.0], [5.0, 0.0]]).ravel().tolist()
        [2.0, -2.0]
        """
        points = np.asarray(points, dtype=np.float64)
        normals = np.asarray(normals, dtype=np.float64)
        if points.ndim != 2 or points.shape != normals.shape:
            raise ValueError(
                "points and normals must have one shape (n_borders, n_features), "
                f"got {points.shape!r} and {normals.shape!r}."
            )
        offsets = -np.einsum("ij,ij->i", normals, points)
        if preprocessing is not None:
            normals = preprocessing.pull_back(normals)
            offsets = offsets - normals @ preprocessing.shift
        return cls(points, normals[:, None], offsets[:, None], preprocessing, blend)

    @classmethod
    def constant(
        cls, point: Array, value: float, preprocessing: AffineMap | None = None
    ) -> "BorderMap":
        """Build the map of a border without rows on both sides: one value everywhere.

        Parameters
        ----------
        point : ndarray of shape (n_features,)
            Any point; all rows have it as the nearest.
        value : float
            The value everywhere.
        preprocessing : AffineMap, default=None
            The space that the point is in; None for raw rows.

        Returns
        -------
        BorderMap
            With one output.

        Examples
        --------
        >>> everywhere = BorderMap.constant(np.array([0.0, 0.0]), -1.5)
        >>> everywhere.decide([[5.0, 2.0]]).item(), everywhere.is_constant
        (-1.5, True)
        """
        n_features = preprocessing.n_features if preprocessing is not None else len(point)
        return cls(point[None], np.zeros((1, 1, n_features)), np.array([[value]]), preprocessing)

    def with_preprocessing(self, preprocessing: AffineMap | None) -> "BorderMap":
        """Return the map of raw rows that a linear step turns into rows of this one.

        Parameters
        ----------
        preprocessing : AffineMap or None
            From raw rows to rows of this map; None changes nothing.

        Returns
        -------
        BorderMap
            It has the same values, of rows before the step.

        Examples
        --------
        >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
        >>> raw = line.with_preprocessing(AffineMap.identity(2))
        >>> bool((raw.decide([[5.0, 2.0]]) == line.decide([[5.0, 2.0]])).all())
        True
        """
        if preprocessing is None:
            return self
        slopes = preprocessing.pull_back(self.slopes)
        offsets = self.offsets - np.einsum("mqd,d->mq", slopes, preprocessing.shift)
        search = (
            preprocessing if self.preprocessing is None else preprocessing.then(self.preprocessing)
        )
        curve = None if self.curve is None else self.curve.with_preprocessing(preprocessing)
        return BorderMap(self.points, slopes, offsets, search, self.blend, curve)

    def scaled(self, factor: float) -> "BorderMap":
        """Return the map whose values are a multiple of these, by a factor above zero.

        Parameters
        ----------
        factor : float
            Above zero.

        Returns
        -------
        BorderMap
            With the same borders.

        Examples
        --------
        >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
        >>> line.scaled(3.0).decide([[5.0, 2.0]]).item()
        6.0
        """
        return replace(
            self,
            slopes=factor * self.slopes,
            offsets=factor * self.offsets,
            curve=None if self.curve is None else self.curve.scaled(factor),
        )

    @property
    def n_borders(self) -> int:
        """Number of points."""
        return len(self.points)

    @property
    def n_features(self) -> int:
        """Number of features of a raw row."""
        return int(self.slopes.shape[2])

    @property
    def n_outputs(self) -> int:
        """Number of linear functions of each point."""
        return int(self.slopes.shape[1])

    @property
    def is_constant(self) -> bool:
        """Whether all rows have the same value, since no border was found."""
        return not self.slopes.any() and self.curve is None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            new_names = {"normals": "slopes", "before": "preprocessing"}
            refuse_old_name(self, name, {**new_names, "after": "with_preprocessing"})

    def nearest(self, X: ArrayLike, *, n_jobs: int | None = 1) -> NDArray[np.intp]:
        """Return the number of the point nearest to each row, the lowest of equally near ones.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Raw rows; float32 and float64 are taken as they are.
        n_jobs : int or None, default=1
            Threads: None or 1 for one, -1 for all that this process may use.

        Returns
        -------
        ndarray of shape (n_rows,)
            Row numbers of ``points``.

        Examples
        --------
        >>> ends = BorderMap.from_borders(points=[[0.0], [4.0]], normals=[[1.0], [-1.0]])
        >>> ends.nearest([[1.0], [3.0], [2.0]]).tolist()
        [0, 1, 0]
        """
        return self.compiled.nearest(_as_rows(X), n_threads=thread_count(n_jobs))

    def decide(self, X: ArrayLike, *, n_jobs: int | None = 1) -> NDArray[np.floating[Any]]:
        """Return decision values: those of the linear functions of each row's nearest points.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Raw rows; float32 and float64 are taken as they are.
        n_jobs : int or None, default=1
            Threads: None or 1 for one, -1 for all that this process may use.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
            Values.

        Examples
        --------
        >>> ends = BorderMap.from_borders(points=[[0.0], [4.0]], normals=[[1.0], [-1.0]])
        >>> ends.decide([[1.0], [5.0]]).ravel().tolist()
        [1.0, -1.0]
        """
        rows, n_threads = _as_rows(X), thread_count(n_jobs)
        return self.compiled.decide(rows, n_threads=n_threads)

    @cached_property
    def compiled(self) -> Maps:
        """The same, packed for the compiled core."""
        return compile_maps([self])

    @cached_property
    def is_factored(self) -> bool:
        """Whether slopes differ in the directions of the search only: blends are cheaper then."""
        if self.preprocessing is None or not self.preprocessing.is_dense or self.blend == 1:
            return False
        matrix = self.preprocessing.to_matrix()
        return split_common_slopes(self.slopes, matrix, self.blend) is not None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is computed on demand, such as the form for this processor."""
        lasting = (field.name for field in fields(self))
        return {name: self.__dict__[name] for name in lasting}

    def _check(self) -> None:
        """Raise for an array whose shape does not fit the others."""
        n_search = self.points.shape[1] if self.points.ndim == 2 else None
        if not n_search or not len(self.points):
            raise ValueError(
                "points must have the shape (n_borders, n_features), both at least 1, "
                f"got {self.points.shape!r}."
            )
        if self.slopes.ndim != 3 or self.slopes.shape[0] != len(self.points):
            raise ValueError(
                f"slopes must have the shape ({len(self.points)}, n_outputs, n_features), "
                f"got {self.slopes.shape!r}."
            )
        step = self.preprocessing
        expected = self.n_features if step is None else step.n_outputs
        if n_search != expected:
            raise ValueError(
                f"points must have {expected} features, as the rows that are searched have, "
                f"got {n_search!r}."
            )
        if self.offsets.shape != (len(self.points), self.n_outputs):
            raise ValueError(
                f"offsets must have the shape {(len(self.points), self.n_outputs)!r}, "
                f"got {self.offsets.shape!r}."
            )
        if self.curve is not None and (
            self.curve.n_outputs != self.n_outputs
            or self.curve.preprocessing.n_features != self.n_features
        ):
            raise ValueError(
                f"curve must have {self.n_outputs} outputs of {self.n_features} features, got "
                f"{self.curve.n_outputs!r} of {self.curve.preprocessing.n_features!r}."
            )
        if not isinstance(self.blend, int | np.integer) or self.blend < 1:
            raise ValueError(f"blend must be an integer of at least 1, got {self.blend!r}.")


def compile_maps(
    maps: Sequence[BorderMap],
    *,
    double: bool = False,
    pairs: list[tuple[int, int]] | None = None,
) -> Maps:
    """Pack maps that share their rows for one pass of the compiled core.

    A linear step before the search moves into the points: the nearest point to ``t @ M`` is the
    one with the smallest ``|p|² / 2 - t . (M p)``, so a row pays nothing for it. Only a projection
    to few features is done first, where that is cheaper than searching in all of them.
    """
    form = packed_form(maps)
    return Maps(
        form.center,
        list(form.parts),
        projection=form.projection,
        blend=form.blend,
        double=double,
        pairs=pairs,
        curve=None if form.curve is None else form.curve.for_core(),
    )


@dataclass(frozen=True, eq=False)
class PackedForm:
    """Maps as the core and every export compute them, with ``t = x - center``."""

    # Shape (n_features,). Subtracted from each row.
    center: Array
    # Shape (n_features, n_search). Of ``t``, where the search runs in few directions.
    projection: Any
    # Points, biases, slopes and offsets of each map: the nearest point has the lowest of
    # ``biases - points @ t`` (or of the projected ``t``); its values are ``offsets + slopes @ t``.
    parts: tuple[tuple[Array, Array, Array, Array], ...]
    # Number of nearest points whose functions are averaged.
    blend: int
    # Added to the values of a single map: a function of ``t``, not of ``x``.
    curve: CurvedBase | None = None


def packed_form(maps: Sequence[BorderMap]) -> PackedForm:
    """Return maps of the same rows in the form that is computed.

    Examples
    --------
    >>> line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    >>> form = packed_form([line])
    >>> form.center, form.parts[0][3]  # the value at the centre
    (array([0., 1.]), array([[0.]]))
    """
    curve = shared_curve(maps)
    preprocessing = maps[0].preprocessing
    center = preprocessing.shift if preprocessing is not None else _mean_point(maps)
    if curve is not None:
        center = curve.move_center(center)
        curve = curve.centered(center)
    is_first = preprocessing is not None and is_projected(maps)
    projection = preprocessing.to_matrix() if preprocessing is not None and is_first else None
    parts = tuple(_centered(center, map_, projection is not None) for map_ in maps)
    # A constant map has blend 1, which must not end the blending of the others.
    return PackedForm(center, projection, parts, max(int(map_.blend) for map_ in maps), curve)


def shared_curve(maps: Sequence[BorderMap]) -> CurvedBase | None:
    """Return the curved part of a single map, None for none; of several maps none may have one."""
    if len(maps) > 1 and any(map_.curve is not None for map_ in maps):
        raise ValueError(
            f"only a single map may have a curve, got {len(maps)} maps. Use one map with several "
            "outputs, or maps without curves."
        )
    return maps[0].curve


def is_projected(maps: Sequence[BorderMap]) -> bool:
    """Return whether projecting rows before the search is cheaper."""
    preprocessing = maps[0].preprocessing
    if preprocessing is None or not preprocessing.is_dense:
        return False
    return _projected_cost(maps, preprocessing) < _plain_cost(maps)


def row_cost(maps: Sequence[BorderMap]) -> int:
    """Return the multiply-adds per row of the search and the functions."""
    preprocessing = maps[0].preprocessing
    if preprocessing is not None and is_projected(maps):
        return _projected_cost(maps, preprocessing)
    return _plain_cost(maps)


def _projected_cost(maps: Sequence[BorderMap], preprocessing: AffineMap) -> int:
    """Return the multiply-adds per row if rows are projected before the search."""
    n_points = sum(map_.n_borders for map_ in maps)
    functions = sum(function_cost(map_, projected=True) for map_ in maps)
    return preprocessing.n_outputs * (preprocessing.n_features + n_points) + functions


def _plain_cost(maps: Sequence[BorderMap]) -> int:
    """Return the multiply-adds per row if rows are not projected."""
    # A map of one point needs no search.
    searched = sum(map_.n_borders for map_ in maps if map_.n_borders > 1)
    return searched * maps[0].n_features + sum(function_cost(map_) for map_ in maps)


def function_cost(map_: BorderMap, *, projected: bool = False) -> int:
    """Return the multiply-adds per row of the functions alone, with those of the curve."""
    curved = 0 if map_.curve is None else map_.curve.cost
    n_blended = min(map_.blend, max(map_.n_borders - 1, 1))
    if projected and map_.is_factored:
        return curved + map_.n_outputs * (map_.n_features + n_blended * map_.points.shape[1])
    return curved + map_.n_outputs * n_blended * map_.n_features


def _mean_point(maps: Sequence[BorderMap]) -> Array:
    """Return the mean of all points, around which float32 has the most digits.

    It is rounded to a power of two as large as the points' spread, so that taking it from points
    and rows with few digits (whole numbers, say) is exact, and what is equally near stays so.
    """
    points = np.concatenate([map_.points for map_ in maps])
    spread = np.ptp(points, axis=0)
    grid = np.exp2(np.floor(np.log2(np.where(spread > 0, spread, 1.0))))
    middle = points.mean(axis=0)
    return np.where(spread > 0, np.round(middle / grid) * grid, points[0])


def _centered(
    center: Array, map_: BorderMap, is_projected: bool
) -> tuple[Array, Array, Array, Array]:
    """Return points, biases, slopes and offsets relative to the centre."""
    step = map_.preprocessing
    # The centre is the step's own shift, which is mapped to zero, unless a curve has moved it.
    points = map_.points - (center if step is None else step.apply(center[None])[0])
    biases = 0.5 * np.square(points).sum(axis=1)
    packed_points = points if step is None or is_projected else step.pull_back(points)
    return packed_points, biases, map_.slopes, map_.offsets + map_.slopes @ center


def _as_rows(X: Any) -> NDArray[np.floating[Any]]:
    """Return rows as an array of float32 or float64, without a copy where it is one already."""
    rows = np.asarray(X.toarray() if is_sparse(X) else X)
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    return rows
