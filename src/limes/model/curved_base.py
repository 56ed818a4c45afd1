"""The curved part of a map: a polynomial of second degree with an envelope."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._core import Curve
from limes._typing import Array
from limes.model.affine import AffineMap

# What a base function may have beside its linear part, from the cheapest to the dearest: nothing;
# with v the row around the centre and u the envelope, u and u v; with u v_i²; with u v_i v_j.
SHAPES = ("linear", "envelope", "diagonal", "quadratic")
# Distance from the centre of a map, in units of v, up to which v is computed from rows around that
# centre: float32 then has an error of 2e-6 at most.
MAX_CENTER_DISTANCE = 16.0


@dataclass(frozen=True, eq=False)
class CurvedBase:
    """A polynomial of second degree with an envelope, added to the linear functions of a map.

    The value of output c at a row x is ``u(v) (constants[c] + slopes[c] . v + v' A_c v)`` with
    ``v = preprocessing.apply(x)`` and the envelope ``u(v) = 1 / (1 + decay mean(v²))²``, so that
    the function vanishes far from the centre. A sum of Gaussian kernels is an envelope times a
    power series; this is its second order.

    Examples
    --------
    >>> ball = CurvedBase(AffineMap.identity(2), [1.0], [[0.0, 0.0]], [[-1.0, -1.0]], decay=0.5)
    >>> ball.shape, ball.values(np.array([[0.0, 0.0], [1.0, 1.0]])).round(3).ravel()
    ('diagonal', array([ 1.   , -0.444]))
    """

    # From raw rows to v.
    preprocessing: AffineMap
    # Shape (n_outputs,).
    constants: Array
    # Shape (n_outputs, n_terms).
    slopes: Array
    # The coefficients of v_i² and v_i v_j: shape (n_outputs, n_terms) for the shape 'diagonal';
    # (n_outputs, n_terms (n_terms + 1) / 2) for 'quadratic', in the order of np.triu_indices,
    # those with i < j standing for both v_i v_j and v_j v_i; None for 'envelope'.
    squares: Array | None = None
    # How fast the envelope falls with the mean square of v.
    decay: float = 0.3
    # Number of classes for which squares are evaluated: those with the largest values without
    # them. The other classes keep these values, but at most the lowest with squares. None: all.
    n_listed: int | None = None

    def __post_init__(self) -> None:
        for name in ("constants", "slopes", "squares"):
            if getattr(self, name) is not None:
                array = np.array(getattr(self, name), dtype=np.float64, order="C")
                array.flags.writeable = False
                object.__setattr__(self, name, array)
        self._check()

    @property
    def shape(self) -> str:
        """One of SHAPES; 'diagonal' where a single term makes both the same."""
        if self.squares is None:
            return "envelope"
        return "diagonal" if self.squares.shape[1] == self.n_terms else "quadratic"

    @property
    def n_terms(self) -> int:
        """Number of components of v."""
        return int(self.slopes.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.constants)

    @property
    def n_numbers(self) -> int:
        """Number of coefficients, with those of the step before."""
        n_squares = 0 if self.squares is None else self.squares.size
        matrix = self.preprocessing.matrix
        before = self.n_terms + (self.n_terms if matrix is None else matrix.size)
        return self.constants.size + self.slopes.size + n_squares + before

    @property
    def cost(self) -> int:
        """Multiply-adds per row."""
        step, n_terms = self.preprocessing, self.n_terms
        # v, the sum of its squares, and the product of each with the root of the envelope.
        before = n_terms * (2 + (step.n_features if step.is_dense else 1))
        plain = self.n_outputs * (n_terms + 2)
        if self.shape == "envelope":
            return before + plain
        if self.shape == "diagonal":
            return before + plain + n_terms * (1 + self.n_outputs)
        # As a sum over i of v_i times a sum over j, without products of two terms.
        n_curved = self.n_outputs if self.n_listed is None else self.n_listed
        return before + plain + n_curved * n_terms * (n_terms + 3) // 2

    def with_preprocessing(self, preprocessing: AffineMap | None) -> "CurvedBase":
        """Return the function of raw rows that a linear step turns into rows of this one."""
        if preprocessing is None:
            return self
        return replace(self, preprocessing=preprocessing.then(self.preprocessing))

    def move_center(self, center: Array) -> Array:
        """Return the centre of a map, moved to that of v in the features where it is far away.

        Rows are rounded to float32 after the centre is subtracted: v would lose the digits that its
        distance takes.
        """
        step = self.preprocessing
        largest = np.zeros(step.n_features)
        if step.matrix is not None:
            largest = np.abs(step.matrix).max(axis=1)
        np.maximum.at(largest, step.columns, np.abs(step.scale))
        is_far = np.abs(step.shift - center) * largest > MAX_CENTER_DISTANCE
        return np.where(is_far, step.shift, center)

    def centered(self, center: Array) -> "CurvedBase":
        """Return the function of rows from which a centre has been subtracted."""
        step = self.preprocessing
        return replace(self, preprocessing=replace(step, shift=step.shift - center))

    def for_core(self) -> Curve:
        """Return the same for the compiled core."""
        step = self.preprocessing
        return Curve(
            step.shift,
            None if step.is_dense else step.columns,
            step.scale if step.matrix is None else step.matrix,
            self.constants,
            self.slopes,
            self.squares,
            self.decay,
            self.n_outputs if self.n_listed is None else self.n_listed,
        )

    def scaled(self, factor: float) -> "CurvedBase":
        """Return the function whose values are a multiple of these."""
        squares = None if self.squares is None else factor * self.squares
        return replace(
            self,
            constants=factor * self.constants,
            slopes=factor * self.slopes,
            squares=squares,
        )

    def values(self, X: Any, linear: Array | None = None) -> Array:
        """Return the values of raw rows: the definition in NumPy that the core repeats.

        With ``linear``, shape (n_rows, n_outputs), the values of the map without the curved part,
        the sum of both: a list of classes depends on it.
        """
        v = self.preprocessing.apply(X)
        envelope = 1.0 / np.square(1.0 + self.decay * np.mean(np.square(v), axis=1))
        plain = envelope[:, None] * (self.constants + v @ self.slopes.T)
        plain = plain if linear is None else linear + plain
        if self.squares is None:
            return plain
        products = np.square(v) if self.shape == "diagonal" else _products(v)
        with_squares = plain + envelope[:, None] * (products @ self.squares.T)
        if self.n_listed is None or self.n_listed >= self.n_outputs:
            return with_squares
        # The lowest class first among equals.
        order = np.argsort(-plain, axis=1, kind="stable")
        listed, others = order[:, : self.n_listed], order[:, self.n_listed :]
        lowest = np.take_along_axis(with_squares, listed, 1).min(axis=1, keepdims=True)
        bounded = np.minimum(np.take_along_axis(plain, others, 1), lowest)
        np.put_along_axis(with_squares, others, bounded, 1)
        return with_squares

    def _check(self) -> None:
        """Raise for an array whose shape does not fit the others."""
        n_outputs, n_terms = self.constants.shape[0], self.preprocessing.n_outputs
        if n_terms < 1:
            raise ValueError("preprocessing must have at least one output, got none.")
        if self.constants.ndim != 1 or self.slopes.shape != (n_outputs, n_terms):
            raise ValueError(
                f"slopes must have the shape {(n_outputs, n_terms)!r}, one row for each of the "
                f"constants and one column for each term, got {self.slopes.shape!r}."
            )
        n_pairs = n_terms * (n_terms + 1) // 2
        if self.squares is not None and self.squares.shape not in (
            (n_outputs, n_terms),
            (n_outputs, n_pairs),
        ):
            raise ValueError(
                f"squares must have the shape {(n_outputs, n_terms)!r} or "
                f"{(n_outputs, n_pairs)!r}, got {self.squares.shape!r}."
            )
        if not 0 < self.decay < np.inf:
            raise ValueError(f"decay must be a positive number, got {self.decay!r}.")
        if self.n_listed is not None and not 2 <= self.n_listed <= n_outputs:
            raise ValueError(
                f"n_listed must be None or from 2 to {n_outputs}, got {self.n_listed!r}."
            )


def _products(v: Array) -> Array:
    """Return the products v_i v_j with i <= j, in the order of np.triu_indices."""
    return np.concatenate([v[:, i : i + 1] * v[:, i:] for i in range(v.shape[1])], axis=1)
