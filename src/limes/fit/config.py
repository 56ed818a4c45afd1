"""The tuned values of the fit, by stage, and what a user may ask of it.

Every value has its unit and a reason. "Settled" means: chosen with the tables of
``docs/accuracy.md`` in view (25 datasets, three seeds). Where nothing is said of how sensitive the
result is to a value, that was not measured.
"""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class DataConfig:
    """Which rows are used, and which are held out."""

    # Rows. More of them change a fit little and its time a lot. Settled.
    max_rows: int = 50_000
    # Numbers in the rows together: 1 GB of float64.
    max_values: int = 1 << 27
    # Share and number of rows that the fit does not see, to measure agreement on. Settled.
    held_out_share: float = 0.2
    max_held_out_rows: int = 4000
    # Rows of a class below which none is held out: twice the folds of the calibration.
    min_class_rows: int = 10
    # Rows are rescaled if their standard deviation is outside these bounds, or their mean is more
    # than so many deviations from zero: learning rates suit rows of about unit size.
    min_spread: float = 0.25
    max_spread: float = 4.0
    max_mean_in_spreads: float = 10.0


@dataclass(frozen=True)
class SyntheticConfig:
    """How synthetic rows are made from real ones."""

    # A column with at most so many different values is a category, and is never interpolated.
    max_category_values: int = 5
    # Nearest rows that a new row may take its differences from. As in the paper's neighbourhoods.
    n_neighbors: int = 20
    # Rows that new ones start from, and among which neighbours are searched: bounds the time.
    max_start_rows: int = 8000
    max_neighbor_rows: int = 20_000
    # Added to the ambiguity of a row as its weight as a start; 0 would leave out unambiguous rows.
    unambiguous_weight: float = 0.05
    # Jitter: (part of the difference of two neighbours that is added, share of the new rows).
    jitter_steps: tuple[tuple[float, float], ...] = ((0.5, 0.5), (0.8, 0.25))
    # Share of the new rows that lie between a row and a neighbour. Settled with the steps above.
    interpolated_share: float = 0.25
    # Below so many rows, this share of the new ones is made by crossover: jitter does not reach far
    # enough. On 150 digits agreement rose from .873 to .959 with it.
    few_rows: int = 5000
    crossover_share: float = 0.3
    # Without X: rows made for each training row that the source keeps, and their bounds.
    rows_per_training_row: int = 4
    min_rows: int = 2000
    max_rows: int = 20_000


@dataclass(frozen=True)
class TransferConfig:
    """How many rows the source labels."""

    # Multiply-adds of a source in a second of one processor, about: measured on RBF sums.
    multiply_adds_per_second: float = 8e9
    # Multiply-adds that labelling may cost in all: ten seconds.
    max_query_cost: float = 10 * 8e9
    # Rows. The least however slow the source is, and the most however fast. Settled.
    min_synthetic_rows: int = 20_000
    max_synthetic_rows: int = 120_000
    # Numbers in the synthetic rows together: 1 GB of float32.
    max_values: int = 1 << 28
    # Synthetic rows for each real one, and the number that is made however few are real. Settled.
    synthetic_rows_per_row: int = 80
    default_synthetic_rows: int = 40_000
    # Rows in one call of the source: bounds memory.
    query_block_rows: int = 4096
    # From so many features on, points are searched in so many principal components. Settled.
    wide_features: int = 48
    n_components: int = 32


@dataclass(frozen=True)
class TrainConfig:
    """The optimiser and its budget."""

    # Seconds of one processor by the cost model: of a candidate, of the last training, and of any
    # training behind a projection, where longer training was no better on seven datasets. Settled.
    search_seconds: float = 1.5
    final_seconds: float = 8.0
    wide_seconds: float = 3.0
    # Most epochs and samples, of the last training and of a candidate. Settled.
    max_epochs: int = 20
    max_samples: int = 4_000_000
    search_max_epochs: int = 10
    search_max_samples: int = 800_000
    # A map with at most so many points, and so many real rows for each, does not overfit: the
    # bounds above are so many times larger for it. Not measured one by one.
    few_points: int = 64
    rows_per_point_for_longer: int = 64
    longer_factor: int = 3
    # Least samples, and least samples for each second of the budget. Not measured one by one.
    min_samples: int = 400_000
    min_samples_per_second: int = 150_000
    # Rows in a step of Adam. Settled.
    batch_size: int = 256
    # Adam's learning rates of local functions, points, base function and components. Settled.
    learning_rates: tuple[float, float, float, float] = (0.02, 0.01, 0.005, 0.002)
    # Weight decay of the local functions, and behind a projection. Settled.
    weight_decay: float = 0.01
    wide_weight_decay: float = 0.2
    # Rows of k-means for each point, and the least in all. Agreement hardly depends on them.
    kmeans_rows_per_point: int = 64
    min_kmeans_rows: int = 4000
    # Added to the ambiguity of a row as its weight in k-means.
    unambiguous_weight: float = 0.02
    # Maps of pairs and nodes: rows needed for each point, rows and steps of k-means.
    min_rows_per_point: int = 20
    pair_kmeans_rows_per_point: int = 16
    pair_kmeans_steps: int = 3


@dataclass(frozen=True)
class ValidationConfig:
    """The rows that candidates are compared on."""

    # Rows. With fewer, synthetic rows are added for comparisons. Not measured.
    min_rows: int = 200
    # Synthetic rows of a validation set: as many as so many multiply-adds of the source label.
    max_query_cost: float = 6e9
    min_synthetic_rows: int = 4000
    max_synthetic_rows: int = 8000
    # Rows among which neighbours are searched, and the least rows to start from.
    max_neighbor_rows: int = 8000
    min_start_rows: int = 20
    # Features below which crossover would leave the data.
    min_features_for_crossover: int = 8
    # Multiply-adds that training the source again may cost for each row that it then labels.
    max_refit_cost: float = 1.2e10
    # Folds, and rows left out that are enough for the distribution of margins.
    n_folds: int = 5
    out_of_fold_rows: int = 1500
    # Bins of margins in importance weighting, and rows in each at least.
    n_margin_bins: int = 12
    min_rows_per_bin: int = 10


@dataclass(frozen=True)
class CriterionConfig:
    """When a candidate is as good as its source."""

    # Uncertainty coefficient: largest expected loss, absolute and as a share of the source's own.
    # Settled.
    max_skill_loss: float = 0.004
    max_relative_skill_loss: float = 0.01
    # Brier score: largest expected increase. Settled.
    max_brier_increase: float = 0.005
    # Share of the rows of any class that must keep its label, however rare the class.
    min_recall: float = 0.5


@dataclass(frozen=True)
class SearchConfig:
    """Which candidates are trained, and which is selected."""

    # Sizes without a better agreement after which the search stops. With 1, shuttle stopped at one
    # point.
    patience: int = 2
    # Numbers of points that are tried, and behind a projection.
    sizes: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)
    wide_sizes: tuple[int, ...] = (1, 32, 128)
    # Seeds that are drawn: the sizes, the halvings, and the small blend.
    max_candidates: int = 12
    # Nearest points whose functions are averaged, and the smaller number that is tried last.
    blend: int = 7
    small_blend: int = 3
    # A candidate should cost at most this share of the source; below so many multiply-adds a
    # candidate is quick whatever the source costs.
    min_speed_up: float = 10
    negligible_cost: float = 5000
    # Points that a map may have however few rows there are.
    points_for_any_rows: int = 64
    # Up to so many points a candidate may cost as much as its source.
    few_points: int = 128
    # Share of the rarest class: agreement that differs by less counts as the same.
    min_difference: float = 0.001
    # The last training uses the held-out rows as well if they are at least this share of the rows
    # and it takes at most so many seconds.
    min_held_out_share: float = 0.1
    retrain_seconds: float = 6.0
    # Standard errors by which a longer training must be worse to be given up.
    worse_errors: float = 2.0
    # Timing for max_time_us: rows and repeats; and the most points that limits allow.
    timed_rows: int = 20_000
    timing_turns: int = 5
    max_points: int = 4096


@dataclass(frozen=True)
class BordersConfig:
    """Points on the border of a source, as in the paper."""

    # Points of a map. The paper, section 2.2: one hundred are usually enough.
    n_points: int = 100
    # Rows of a class whose side is asked: a million pairs to choose from.
    max_rows_per_class: int = 1000
    # Choice of a placement: borders tried, their points, and the rows that compare them.
    n_trial_borders: int = 6
    n_trial_points: int = 100
    max_trial_rows: int = 2000
    # Rows among which near ones of the other side are searched, and how many of them are near.
    max_neighbor_rows: int = 5000
    n_neighbors: int = 20
    # Pairs drawn for each that k-means keeps, its steps, and the weight of unambiguous rows.
    pairs_drawn_per_pair: int = 4
    kmeans_steps: int = 4
    unambiguous_weight: float = 0.05


@dataclass(frozen=True)
class SchemesConfig:
    """Schemes of several maps that are trained."""

    # Nearest points whose functions are averaged.
    blend: int = 4
    # Shortlist: points of the shared map and of a pair's; rows and samples of a pair.
    shortlist_points: int = 128
    pair_points: int = 32
    pair_rows: int = 4000
    min_pair_samples: int = 80_000
    # Share of the transfer set whose class is on the shortlist, and the least margin of logits: a
    # class at least a third as likely as the best is always on it.
    shortlist_coverage: float = 0.9995
    min_logit_margin: float = 1.0
    # Tree: points of a node, epochs over its rows, and the least samples.
    node_points: int = 128
    node_epochs: int = 15
    min_node_samples: int = 80_000


@dataclass(frozen=True)
class FitConfig:
    """The tuned values of all stages."""

    data: DataConfig = DataConfig()
    synthetic: SyntheticConfig = SyntheticConfig()
    transfer: TransferConfig = TransferConfig()
    train: TrainConfig = TrainConfig()
    validation: ValidationConfig = ValidationConfig()
    criterion: CriterionConfig = CriterionConfig()
    search: SearchConfig = SearchConfig()
    borders: BordersConfig = BordersConfig()
    schemes: SchemesConfig = SchemesConfig()


DEFAULTS = FitConfig()


@dataclass(frozen=True)
class Budget:
    """How long a map is trained: at most so many seconds, samples and epochs."""

    seconds: float
    max_samples: float = np.inf
    max_epochs: float = np.inf


SEARCH_BUDGET = Budget(
    DEFAULTS.train.search_seconds,
    DEFAULTS.train.search_max_samples,
    DEFAULTS.train.search_max_epochs,
)
FINAL_BUDGET = Budget(DEFAULTS.train.final_seconds)
WIDE_BUDGET = Budget(
    DEFAULTS.train.wide_seconds,
    DEFAULTS.train.search_max_samples,
    DEFAULTS.train.search_max_epochs,
)


@dataclass(frozen=True)
class Limits:
    """What a user asks of a model; None asks nothing."""

    # Share of rows that must get the source's label: the cheapest candidate that does is selected.
    min_agreement: float | None = None
    # Multiply-adds per row.
    max_cost: int | None = None
    # Microseconds per row in a batch, on one thread of this computer.
    max_time_us: float | None = None
    # Size of points and functions.
    max_bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether cost, time or size is limited."""
        return any(limit is not None for limit in (self.max_cost, self.max_time_us, self.max_bytes))


@dataclass(frozen=True)
class FitOptions:
    """What a user asks of the fit."""

    # Border points of each map; None leaves it to the scheme.
    n_borders: int | None
    # Between which rows borders are searched; 'auto' is resolved before any map is made.
    placement: str
    # Nearest points whose functions are averaged; None leaves it to the scheme.
    blend: int | None
    # Largest absolute decision value of a border point.
    tolerance: float
    # Decision value of the source at which the border lies.
    decision_offset: float = 0.0
    # Whether the model predicts in float64 instead of float32.
    double: bool = False
    limits: Limits = field(default_factory=Limits)
