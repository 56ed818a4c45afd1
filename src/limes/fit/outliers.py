"""`fit_detector()`: the sums of a one-class SVM, or a map whose scores have nearly their order."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from limes._core.train import TrainedMap
from limes._typing import Array
from limes.fit.config import DEFAULTS
from limes.fit.data import rescale, sample_rows
from limes.fit.quality import EXACT_ROWS, detector_causes, few_rows_finding
from limes.fit.search import exact_candidate
from limes.fit.synthetic import coverage_rows, interpolate, sample_near_border
from limes.fit.train import continue_training, fit_base, to_border_map, with_points
from limes.fit.transfer_set import MAX_VALUES, QUERY_BLOCK_ROWS, TransferSet
from limes.fit.validation import agreement_error
from limes.model.affine import AffineMap
from limes.model.border_map import BorderMap
from limes.model.curved_base import SHAPES
from limes.model.exact import ExactScheme, FallbackScheme
from limes.model.model import Candidate, FitInfo, scheme_index
from limes.model.outlier_scores import OutlierScores
from limes.model.schemes import MapScheme, PairwiseScheme, Scheme
from limes.model.svm import TrainedSvm
from limes.sources.exact import exact_scheme_of, no_exact_sums_reason
from limes.sources.training_range import outside_reason

DETECTOR_SCHEMES = ("auto", "exact", "shared")
# Smallest spread of values. Guards a source that is constant.
MIN_SPREAD = 1e-30


@dataclass(frozen=True, eq=False)
class FittedDetector:
    """A scheme of the classes outlier and inlier, how it scores, and what is known of it."""

    scheme: Scheme
    scores: OutlierScores
    info: FitInfo


def fit_detector(
    model: Any,
    X: Any | None,
    *,
    scheme: str,
    n_borders: int | None,
    fallback: bool,
    effort: float,
    seed: np.random.SeedSequence,
    verbose: int = 0,
) -> FittedDetector:
    """Take the sums of a one-class SVM, or fit a map to them where that is wanted or faster."""
    exact = exact_scheme_of(model)
    if exact is None or not isinstance(exact.sums, TrainedSvm):
        raise ValueError(
            "an outlier detector must be a one-class SVM with a linear, polynomial, RBF or sigmoid "
            f"kernel: {no_exact_sums_reason(model)}."
        )
    offset, kernel = float(exact.sums.intercepts[0]), exact.sums.kernel.name
    scores = OutlierScores(offset, is_gaussian=kernel == "rbf" and offset > 0)
    must_be_map = scheme == "shared" or (scheme == "auto" and n_borders is not None)
    if must_be_map and X is None:
        raise ValueError(
            "a map needs rows as they occur in use: give X, or scheme='exact', which needs none."
        )
    is_cheap = exact.cost <= DEFAULTS.search.unsearched_cost
    causes = () if X is None else _causes(model, exact, X)
    sums_alone = _exact_detector(exact, scores, [exact_candidate(exact, is_selected=True)], causes)
    if X is None or scheme == "exact" or (is_cheap and not must_be_map):
        return sums_alone
    fit = _DetectorFit(exact, scores, X, fallback, effort, seed, verbose)
    sizes = DEFAULTS.outliers.sizes if n_borders is None else (n_borders,)
    trained = [fit.train(size) for size in sizes if must_be_map or fit.is_fast(size)]
    good = [item for item in trained if fit.is_good_enough(item)]
    candidates = [item.candidate for item in trained]
    if not good and not must_be_map:
        return _exact_detector(exact, scores, [*candidates, *sums_alone.info.candidates], causes)
    selected = (
        min(good, key=lambda item: item.candidate.cost)
        if good
        else max(trained, key=lambda item: item.candidate.score_correlation)
    )
    if not must_be_map:
        candidates.append(exact_candidate(exact))
    return _map_detector(selected, candidates, scores, causes or fit.findings(selected))


def _causes(model: Any, exact: ExactScheme, X: Any) -> tuple[str, ...]:
    """Return why the rows given do not suit the source, in one sentence, or nothing."""
    n_rows = X.shape[0]
    places = np.arange(0, n_rows, max(1, -(-n_rows // DEFAULTS.quality.labelled_rows)))
    return detector_causes(outside_reason(model, X), scheme_index(exact, X[places]))


def _exact_detector(
    exact: ExactScheme,
    scores: OutlierScores,
    candidates: list[Candidate],
    warnings: tuple[str, ...],
) -> FittedDetector:
    """Return the exact sums, whose labels and scores are those of the source."""
    info = FitInfo(
        agreement=1.0,
        agreement_error=0.0,
        coverage_agreement=1.0,
        score_correlation=1.0,
        candidates=sorted(candidates, key=lambda candidate: candidate.cost),
        agreement_rows=EXACT_ROWS,
        warnings=list(warnings),
    )
    return FittedDetector(exact, scores, info)


def _map_detector(
    selected: "_TrainedDetector",
    candidates: list[Candidate],
    scores: OutlierScores,
    warnings: tuple[str, ...],
) -> FittedDetector:
    """Return a map as the detector, its candidate marked."""
    marked = [
        replace(candidate, is_selected=candidate is selected.candidate) for candidate in candidates
    ]
    own = selected.candidate
    info = FitInfo(
        agreement=own.agreement,
        agreement_error=own.agreement_error,
        coverage_agreement=own.coverage_agreement,
        score_correlation=own.score_correlation,
        candidates=sorted(marked, key=lambda candidate: candidate.cost),
        agreement_rows=selected.rows,
        warnings=list(warnings),
    )
    return FittedDetector(selected.scheme, scores, info)


@dataclass(frozen=True, eq=False)
class _TrainedDetector:
    """A map with its fallback, and how well it follows the source."""

    scheme: Scheme
    candidate: Candidate
    # Smallest share of the source's inliers or outliers that keep their label.
    recall: float
    # The rows that it was validated on, in words.
    rows: str


@dataclass(eq=False)
class _DetectorFit:
    """Rows with the source's scores, and the maps that are trained on them."""

    exact: ExactScheme
    scores: OutlierScores
    X: Any
    fallback: bool
    effort: float
    seed: np.random.SeedSequence
    verbose: int = 0
    preprocessing: AffineMap | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed.spawn(1)[0])
        sampled = sample_rows(self.X, self.exact.preprocessing, class_index=None, rng=self.rng)
        rescaled, self.rescaling = rescale(sampled)
        self.preprocessing = rescaled.preprocessing
        self.sums = replace(self.exact, preprocessing=None)
        order = self.rng.permutation(len(rescaled.rows))
        n_held_out = min(len(order) // 5, DEFAULTS.outliers.max_validation_rows)
        rows = rescaled.rows[order]
        self.rows = rows[n_held_out:]
        held_out = rows[:n_held_out] if n_held_out >= DEFAULTS.validation.min_rows else rows
        self.n_deciding = n_held_out
        self.validation = self._validation_rows(held_out)
        self.slope, self.transfer_set = self._build_transfer_set()
        self.bases = self._fit_bases()

    def values(self, rows: NDArray[np.floating]) -> Array:
        """Return the values that a map should have, block by block."""
        parts = []
        for start in range(0, len(rows), QUERY_BLOCK_ROWS):
            block = rows[start : start + QUERY_BLOCK_ROWS].astype(np.float64)
            block = block if self.rescaling is None else self.rescaling.undo(block)
            parts.append(self.scores.to_values(self.sums.decision(block)))
        return np.concatenate(parts)

    def _validation_rows(self, held_out: Array) -> dict[str, tuple[Array, Array]]:
        """Return rows and their values by the kind of synthetic ones, half of the rows."""
        inliers = held_out[: DEFAULTS.outliers.max_validation_rows]
        sets = {
            kind: np.concatenate([inliers, make(held_out, len(inliers), self.rng)])
            for kind, make in OUTLIERS.items()
        }
        return {kind: (rows, self.values(rows)) for kind, rows in sets.items()}

    def _build_transfer_set(self) -> tuple[float, TransferSet]:
        """Return the factor from values to logits, and the rows that maps are trained on."""
        config = DEFAULTS.outliers
        real = self.values(self.rows)
        spread = max(float(np.std(real)), MIN_SPREAD)
        n_synthetic = int(
            np.clip(
                DEFAULTS.transfer.max_query_cost / self.exact.cost,
                DEFAULTS.transfer.min_synthetic_rows,
                config.synthetic_rows,
            )
        )
        n_synthetic = int(min(n_synthetic, MAX_VALUES / self.rows.shape[1]))
        n_near = int(config.near_border_share * n_synthetic)
        n_each = (n_synthetic - n_near) // len(OUTLIERS)
        parts: list[NDArray[np.floating]] = [
            self.rows,
            sample_near_border(
                self.rows,
                1.0 / (1.0 + np.square(real / spread)),
                n_near,
                search_rows=self.rows,
                rng=self.rng,
            ),
            *(make(self.rows, n_each, self.rng) for make in OUTLIERS.values()),
        ]
        rows = np.concatenate([part.astype(np.float32) for part in parts])
        values = self.values(rows)
        middle = float(np.median(np.abs(values)))
        slope = config.typical_logit / max(middle, MIN_SPREAD)
        probabilities = 1.0 / (1.0 + np.exp(-np.clip(slope * values, -50.0, 50.0)))
        return slope, TransferSet(
            rows,
            probabilities[:, None].astype(np.float32),
            4.0 * probabilities * (1.0 - probabilities),
            components=None,
            explained_share=1.0,
            directions=None,
            n_real=len(self.rows),
            sharpening=1.0,
        )

    def _fit_bases(self) -> TrainedMap:
        """Return the base function with the lowest cross-entropy."""
        is_wide = self.rows.shape[1] >= DEFAULTS.transfer.wide_features
        shapes = [shape for shape in SHAPES if not (is_wide and shape == "quadratic")]
        fitted = [fit_base(self.transfer_set, shape) for shape in shapes]
        return min(fitted, key=lambda item: item[1])[0]

    def is_fast(self, n_points: int) -> bool:
        """Return whether a map of so many points costs less than half of the exact sums."""
        start = with_points(self.bases, self.transfer_set, n_points, np.random.default_rng(0))
        cost = self._as_scheme(to_border_map(start, DEFAULTS.search.blend)).cost
        return cost <= DEFAULTS.search.max_share_of_exact_cost * self.exact.cost

    def train(self, n_points: int) -> _TrainedDetector:
        """Train a map of so many points, and compare its scores with the source's."""
        blend = DEFAULTS.search.blend
        trained = continue_training(
            with_points(self.bases, self.transfer_set, n_points, self.rng),
            self.transfer_set,
            blend=blend,
            n_samples=self.effort * DEFAULTS.outliers.samples,
            rng=self.rng,
        )
        map_ = to_border_map(trained, blend).scaled(1.0 / self.slope)
        result = self._evaluate(map_)
        if self.verbose:
            own = result.candidate
            print(
                f"{own.n_borders} points, {own.shape} base: cost {own.cost} multiply-adds per row, "
                f"agreement {own.agreement:.2%}, rank correlation {own.score_correlation:.4f}"
            )
        return result

    def _as_scheme(self, map_: BorderMap) -> MapScheme:
        """Return the scheme of a map, for raw rows."""
        return PairwiseScheme((map_.with_preprocessing(self.preprocessing),), 2)

    def _evaluate(self, map_: BorderMap) -> _TrainedDetector:
        """Choose the margin of fallback, and measure labels and scores on each kind of rows."""
        found = {
            kind: map_.decide(rows)[:, 0].astype(np.float64)
            for kind, (rows, _) in self.validation.items()
        }
        margin = self._margin(found) if self.fallback else 0.0
        agreements: dict[str, float] = {}
        correlations: list[float] = []
        recalls: list[float] = []
        shares: list[float] = []
        for kind, (_, values) in self.validation.items():
            is_exact = np.abs(found[kind]) < margin
            predicted = np.where(is_exact, values, found[kind])
            is_same = (predicted > 0) == (values > 0)
            agreements[kind] = float(is_same.mean())
            correlations.append(_rank_correlation(*map(self._decisions, (predicted, values))))
            sides = (values > 0), (values <= 0)
            recalls.extend(float(is_same[side].mean()) for side in sides if side.any())
            shares.append(float(is_exact.mean()))
        alone = self._as_scheme(map_)
        scheme: Scheme = alone
        if margin > 0:
            # The margin of a scheme is a difference of log odds, which are twice the value.
            scheme = FallbackScheme(alone, self.exact, 2.0 * margin, float(np.mean(shares)))
        n_rows = sum(len(values) for _, values in self.validation.values())
        agreement = float(np.mean(list(agreements.values())))
        candidate = Candidate(
            scheme.name,
            scheme.n_borders,
            map_.blend,
            scheme.cost,
            agreement,
            agreement_error(agreement * n_rows, n_rows),
            fallback_share=float(np.mean(shares)) if margin > 0 else 0.0,
            coverage_agreement=agreements["between and around"],
            shape="linear" if map_.curve is None else map_.curve.shape,
            score_correlation=min(correlations),
        )
        rows = f"{n_rows:,} rows, half of them held-out rows, half synthetic outliers"
        return _TrainedDetector(scheme, candidate, min(recalls), rows)

    def _decisions(self, values: Array) -> Array:
        """Return decision values, of which those far from all rows are equal, as the source's."""
        return self.scores.from_values(values[:, None])

    def _margin(self, found: dict[str, Array]) -> float:
        """Return the absolute value below which a map has most of its wrong labels."""
        wrong = [
            np.abs(found[kind][(found[kind] > 0) != (values > 0)])
            for kind, (_, values) in self.validation.items()
        ]
        distances = np.concatenate(wrong)
        return float(np.quantile(distances, DEFAULTS.outliers.exact_share)) if len(distances) else 0

    def is_good_enough(self, trained: _TrainedDetector) -> bool:
        """Return whether a map follows the source on every kind of rows, and is fast beside it."""
        config, own = DEFAULTS.outliers, trained.candidate
        is_fast = own.cost <= DEFAULTS.search.max_share_of_exact_cost * self.exact.cost
        follows = own.score_correlation >= config.min_correlation
        return is_fast and follows and trained.recall >= config.min_recall

    def findings(self, trained: _TrainedDetector) -> tuple[str, ...]:
        """Return how a map falls short of the source, one sentence for each reason."""
        config, own = DEFAULTS.outliers, trained.candidate
        measured = f"a rank correlation of {own.score_correlation:.3f} with the source's"
        few = few_rows_finding(self.n_deciding, f"the map, whose scores have {measured}")
        if few:
            return few
        if own.score_correlation < config.warned_correlation:
            return (
                f"the scores of the map have {measured} on rows half of which are outliers: give "
                "scheme='exact' for the source's own scores.",
            )
        if trained.recall < config.warned_recall:
            return (
                f"the map finds {trained.recall:.1%} of the source's inliers or outliers: give "
                "scheme='exact' for the source's own labels.",
            )
        return ()


def _rank_correlation(first: Array, second: Array) -> float:
    """Return Spearman's correlation; 0 where one of both is constant."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(spearmanr(first, second).statistic)


def _far_around(rows: Array, n_rows: int, rng: np.random.Generator) -> Array:
    """Make rows on lines through two rows, up to their distance beyond them."""
    return interpolate(rows, n_rows, rng, extrapolation=1.0)


def _uniform(rows: Array, n_rows: int, rng: np.random.Generator) -> Array:
    """Make rows evenly in the box of the rows, half its width wider on each side."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = 0.5 * (high - low)
    return rng.uniform(low - margin, high + margin, (n_rows, len(low)))


def _noisy(rows: Array, n_rows: int, rng: np.random.Generator) -> Array:
    """Add noise to rows, of a third to three times the deviation of each feature."""
    starts = rows[rng.integers(len(rows), size=n_rows)]
    factor = rng.choice([0.3, 1.0, 2.0, 3.0], size=(n_rows, 1))
    return starts + factor * rows.std(axis=0) * rng.normal(size=starts.shape)


def _recombined(rows: Array, n_rows: int, rng: np.random.Generator) -> Array:
    """Make rows whose features are independent, each drawn from another row."""
    index = rng.integers(len(rows), size=(n_rows, rows.shape[1]))
    return np.take_along_axis(rows, index, axis=0)


# Kinds of synthetic outliers: what a detector meets in use is not known.
OUTLIERS: dict[str, Callable[[Array, int, np.random.Generator], Array]] = {
    "between and around": coverage_rows,
    "far around": _far_around,
    "uniform": _uniform,
    "noisy": _noisy,
    "recombined": _recombined,
}
