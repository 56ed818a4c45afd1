"""Types of the compiled module."""

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

def simd_levels() -> list[str]: ...
def apply_sigmoid(numbers: NDArray[Any]) -> None: ...

class Maps:
    def __init__(
        self,
        center: NDArray[Any],
        maps: Sequence[tuple[Any, ...]],
        projection: NDArray[Any] | None,
        blend: int,
        double: bool,
        pairs: NDArray[Any] | None,
        curve: tuple[Any, ...] | None,
        level: str,
    ) -> None: ...
    def nearest(
        self, X: NDArray[Any], out: NDArray[Any], index: int, n_threads: int, /
    ) -> None: ...
    def decide(self, X: NDArray[Any], out: NDArray[Any], n_threads: int, /) -> None: ...
    def decide_selected(
        self, X: NDArray[Any], map_numbers: NDArray[Any], out: NDArray[Any], n_threads: int, /
    ) -> None: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_maps(self) -> int: ...
    @property
    def n_values(self) -> int: ...
    @property
    def is_double(self) -> bool: ...
    @property
    def level(self) -> str: ...

class Classifier:
    def __init__(
        self,
        maps: Maps | None,
        rule: str,
        pairs: Maps | None,
        children: NDArray[Any] | None,
        shortlist: tuple[int, float, float] | None,
        tie_breaker: Callable[[list[float]], int] | None,
        exact: ExactSums | None,
        fallback_margin: float,
    ) -> None: ...
    def label(
        self, X: NDArray[Any], table: NDArray[Any], out: NDArray[Any], n_threads: int, /
    ) -> int: ...
    def probabilities(self, X: NDArray[Any], out: NDArray[Any], n_threads: int, /) -> int: ...
    def first_out_of_range(self, X: NDArray[Any], /) -> int: ...
    @property
    def has_probabilities(self) -> bool: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def max_exponent(self) -> int: ...

class Predictor:
    def __init__(self, classifier: Classifier, labels: tuple[Any, ...] | None) -> None: ...
    def __call__(self, row: Any, /) -> Any: ...

def train(
    rows: NDArray[Any],
    targets: NDArray[Any],
    anchors: NDArray[Any],
    components: NDArray[Any] | None,
    points: NDArray[Any],
    slopes: NDArray[Any],
    offsets: NDArray[Any],
    base_slopes: NDArray[Any],
    base_offsets: NDArray[Any],
    curved: tuple[Any, ...] | None,
    n_blended: int,
    radius: float,
    n_samples: int,
    n_batch: int,
    rates: tuple[float, float, float, float],
    decay: float,
    seed: int,
    level: str,
) -> float: ...
def loss_and_gradient(
    rows: NDArray[Any],
    targets: NDArray[Any],
    anchors: NDArray[Any],
    components: NDArray[Any] | None,
    points: NDArray[Any],
    slopes: NDArray[Any],
    offsets: NDArray[Any],
    base_slopes: NDArray[Any],
    base_offsets: NDArray[Any],
    curved: tuple[Any, ...] | None,
    n_blended: int,
    radius: float,
    gradients: tuple[NDArray[Any] | None, ...],
    level: str,
) -> float: ...

class RbfVectors:
    def __init__(self, vectors: NDArray[Any], gamma: float, level: str) -> None: ...
    def sums(
        self, X: NDArray[Any], weights: NDArray[Any], out: NDArray[Any], n_threads: int, /
    ) -> None: ...
    def sums_and_gradients(
        self,
        X: NDArray[Any],
        weights: NDArray[Any],
        sums: NDArray[Any],
        gradients: NDArray[Any],
        n_threads: int,
        /,
    ) -> None: ...
    @property
    def n_features(self) -> int: ...

class ExactSums:
    def __init__(
        self,
        vectors: NDArray[Any],
        n_support: NDArray[Any],
        coefficients: NDArray[Any] | None,
        intercepts: NDArray[Any],
        kernel: str,
        gamma: float,
        degree: int,
        coef0: float,
        rule: str,
        class_order: NDArray[Any] | None,
        preprocessing: tuple[NDArray[Any], ...] | None,
        level: str,
    ) -> None: ...
    def values(self, X: NDArray[Any], out: NDArray[Any], n_threads: int, /) -> None: ...
    def logits(
        self,
        X: NDArray[Any],
        slopes: NDArray[Any],
        shifts: NDArray[Any],
        out: NDArray[Any],
        n_threads: int,
        /,
    ) -> None: ...
    def count_uncertain(self, X: NDArray[Any], /) -> int: ...
    def error_ratios(self, X: NDArray[Any], out: NDArray[Any], /) -> None: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_values(self) -> int: ...
