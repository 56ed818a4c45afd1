"""Every tuned value of the fit, by stage; the user's options and limits.

Each comment gives the unit, the reason and the evidence. "Settled" means: chosen with the tables of
``docs/accuracy.md`` in view (25 datasets, three seeds). Sensitivity was not measured unless a
comment says so.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class DataConfig:
    """Which rows are used, and which are held out."""

    # Rows. More of them change the model little and the time of the fit a lot. Settled.
    max_rows: int = 50_000
    # Share of an equal part that the rows of a rare class get when rows are sampled. Not measured.
    min_class_share: float = 0.25
    # Share and number of rows that are held out to measure agreement on. Settled.
    held_out_share: float = 0.2
    max_held_out_rows: int = 4000


@dataclass(frozen=True)
class SyntheticConfig:
    """How synthetic rows are made from real ones."""

    # Values. A column with at most this many different values is a category and is never
    # interpolated. Not measured.
    max_category_values: int = 5
    # Nearest rows whose differences move a synthetic row. Not measured.
    n_neighbors: int = 20
    # Rows that synthetic rows start from, and rows among which neighbours are searched: with 20
    # 000, agreement on ten synthetic problems was .001 lower and the fit slower.
    max_start_rows: int = 8000
    max_neighbor_rows: int = 2000
    # Added to the ambiguity of a row (0 to 1) as its weight as a start; 0 would leave out
    # unambiguous rows. Not measured.
    unambiguous_weight: float = 0.05
    # Jitter: (part of the difference of two neighbours that is added, share of synthetic rows).
    # The rest of the rows, if any, is interpolated between a row and a neighbour. Settled.
    jitter_steps: tuple[tuple[float, float], ...] = ((0.5, 0.5), (0.8, 0.25))
    # Largest share of the categories of a row that is exchanged with a neighbour's. Not measured.
    max_exchanged_share: float = 0.5
    # Real rows below which the given share of synthetic rows is made by crossover, since jitter
    # stays near them. Settled.
    few_rows: int = 5000
    crossover_share: float = 0.3
    # Coverage rows: how far beyond two rows they reach, as a share of their distance.
    coverage_extrapolation: float = 0.3
    # Without X: synthetic rows for each training row that the source keeps, and bounds of their
    # number. Not measured.
    rows_per_training_row: int = 4
    min_rows: int = 2000
    max_rows: int = 20_000


@dataclass(frozen=True)
class TransferConfig:
    """How many rows the source labels."""

    # Rows: bounds of the number of synthetic rows, for slow and for fast sources. DESIGN 5.4: with
    # 20 000 rows letter agreed on .9646, with 120 000 on .9736.
    min_synthetic_rows: int = 20_000
    max_synthetic_rows: int = 120_000
    # Synthetic rows for each real one, and their number where that is less. DESIGN 5.4.
    synthetic_rows_per_row: int = 80
    default_synthetic_rows: int = 40_000
    # Cost of all queries in multiply-adds, exponentials included: several seconds. DESIGN 5.4.
    max_query_cost: float = 5e10
    # Real rows, repeated, as a share of all: without them, a shell in 30 dimensions lost .06 of
    # U.C., since jittered rows lie outside of it.
    real_share: float = 0.2
    # Coverage rows, as a share of the synthetic rows. On fifteen problems, six with test rows that
    # have moved, agreement was .9745 with .3 and .9747 with .5, and .9730 with .3 of rows on lines
    # between two rows; on rows of a scene, .961 with such rows and .986 with .3. The same of wide
    # rows: with .15 agreement was .004 lower on five.
    coverage_share: float = 0.5
    wide_coverage_share: float = 0.02
    # Features from which rows are wide: points are searched in principal components, and synthetic
    # rows made by crossover. DESIGN 5.3.
    wide_features: int = 48
    n_components: int = 32
    # Directions of the curved base of wide rows (DESIGN 5.3), and rows whose gradients give them.
    n_directions: int = 16
    gradient_rows: int = 500
    # Mean probability of all but the two likeliest classes above which probabilities are raised to
    # a power. DESIGN 5.3.
    max_rest_probability: float = 0.15


@dataclass(frozen=True)
class TrainConfig:
    """Base functions, and the optimiser with its budget."""

    # Base functions: rows of the regression, penalty of whitened parameters, and relative change
    # of the loss that ends it. With 1e-4 and 1e-5 (DESIGN 5.3: 1e-4), a shell in 20 and 26
    # dimensions lost .02 of U.C.
    base_rows: int = 20_000
    base_penalty: float = 1e-5
    base_tolerance: float = 1e-6
    # How fast the envelope of a curved base falls with the squared distance from the centre, in
    # units of its median. DESIGN 5.3.
    envelope_decay: float = 0.3
    # Samples of a candidate and of a smaller blend. DESIGN 5.4.
    search_samples: int = 200_000
    blend_samples: int = 100_000
    # Samples of the last training, and its most epochs. With a million and 10 (DESIGN 5.4),
    # agreement was .001 lower on seven synthetic problems.
    final_samples: int = 3_000_000
    final_epochs: int = 20
    # Samples of the training that adds the held-out rows, as a share of the last training.
    held_out_samples_share: float = 0.3
    # Rows in a step of Adam; its learning rates of local functions, points, base function and
    # components. DESIGN 5.4.
    batch_size: int = 256
    learning_rates: tuple[float, float, float, float] = (0.04, 0.02, 0.02, 0.004)
    # Weight decay of the local functions, and the same behind a projection. Settled.
    weight_decay: float = 0.01
    wide_weight_decay: float = 0.2
    # Initial points: rows for each. DESIGN 5.4.
    rows_per_initial_point: int = 64
    # Maps of pairs and nodes: rows needed for each point, and fewest epochs. Not measured.
    min_rows_per_point: int = 20
    min_pair_epochs: int = 2


@dataclass(frozen=True)
class ValidationConfig:
    """The rows that candidates are compared on."""

    # Rows. With fewer, synthetic rows are added for comparisons. Not measured.
    min_rows: int = 200
    # Synthetic rows. Not measured.
    synthetic_rows: int = 8000
    # Synthetic rows made for each that is kept; share of them that starts from rows in proportion
    # to their ambiguity instead of evenly. Not measured.
    oversampling: int = 2
    ambiguous_share: float = 0.5
    # Features below which crossover leaves the distribution of the rows. Not measured.
    min_features_for_crossover: int = 8
    # Bins of margins in importance weighting, and the fewest rows in each. Not measured.
    n_margin_bins: int = 12
    min_rows_per_bin: int = 10


@dataclass(frozen=True)
class CriterionConfig:
    """When a candidate is as good as its source."""

    # Uncertainty coefficient: largest expected loss, absolute and as a share of the source's. The
    # first is also the largest expected increase of the Brier score. Settled.
    max_skill_loss: float = 0.004
    max_relative_skill_loss: float = 0.01
    # Standard errors of the loss that are added to it: with 1, a rare class lost .04 of U.C., and
    # with .5 or 1 where rows can be handed to exact sums, phishing lost .012.
    loss_errors: float = 2.0
    # Share of the rows of any class that must keep their label, however rare the class. Not
    # measured.
    min_recall: float = 0.5


@dataclass(frozen=True)
class FallbackConfig:
    """Which rows a map hands to the exact sums."""

    # Agreement with the source on coverage rows that the default reaches by fallback: the first
    # within the time below. On a scene, agreement was lower than on coverage rows: .986 where these
    # had .990, .992 where they had .995.
    coverage_agreements: tuple[float, ...] = (0.995, 0.99)
    # Expected time that may be spent on that, in times of the model that would be selected without
    # fallback. Where none of these agreements is reached, no time is spent.
    max_time_factor: float = 2.0
    # Expected loss of uncertainty coefficient by the model without fallback above which the skill
    # is kept whatever that costs: an SVM of digits lost .17. With .05, mnist took 13 times as long
    # for an estimated loss that its test rows did not show.
    max_loss_alone: float = 0.1
    # Disagreement that is aimed at, as a share of what ``min_agreement`` allows, and standard
    # errors by which this must be exceeded on validation rows. Of overlapping classes, agreement
    # on unseen rows was .9981 where validation rows had 1.0 and coverage rows .999.
    disagreement_share: float = 0.5
    agreement_errors: float = 0.5
    # Rows to measure agreement on between and around the given ones.
    coverage_rows: int = 4000


@dataclass(frozen=True)
class SearchConfig:
    """Which candidates are trained, and which is selected."""

    # Sizes without a better agreement after which the search stops. With 1, the search on shuttle
    # stopped at one point.
    patience: int = 2
    # Points of the candidates, and of those behind a projection; shapes of the base function are
    # compared at the second size. Settled; DESIGN 5.3.
    sizes: tuple[int, ...] = (1, 16, 64, 256, 1024)
    wide_sizes: tuple[int, ...] = (1, 32, 128)
    # Share by which the cross-entropy of a curved base must be below that of all cheaper ones for
    # it to be tried with points.
    min_loss_decrease: float = 0.03
    # Nearest points whose functions are averaged, and the smaller number that is tried last.
    # Settled.
    blend: int = 7
    small_blend: int = 3
    # The source should cost at least this many times as much as a candidate. Below so many
    # multiply-adds per row, a candidate is fast whatever the source costs. Settled.
    min_speed_up: float = 10
    negligible_cost: float = 5000
    # Multiply-adds per row below which exact sums are taken without a search: a third of a
    # microsecond on AVX-512. Share of the cost of
    # the exact sums that a map may cost at most.
    unsearched_cost: float = 15_000
    max_share_of_exact_cost: float = 0.5
    # Multiply-adds that take as long as what a map does beside them: reading, checking, labelling a
    # row, and finding the points to blend. 23 ns with one point, 30 to 60 with 16 to 128, at 30
    # multiply-adds per ns (AVX-512).
    row_cost: float = 1000
    # Points up to which a candidate may cost as much as its source. Not measured.
    few_points: int = 128
    # Standard errors within which a candidate is as good as the best, and by which a training is
    # worse. With 1, fifteen problems cost a third more, agreed on .001 more rows and lost .001 more
    # of U.C.; shells in 15 dimensions lost .010 instead of gaining .010, and mnist (two seeds)
    # gained .001 instead of losing .008.
    select_errors: float = 2.0
    # The last training uses the held-out rows as well if they are at least this share of the rows.
    # Not measured.
    min_held_out_share: float = 0.1
    # Timing for max_time_us: rows and repeats. Largest number of points that limits allow.
    timed_rows: int = 20_000
    timing_turns: int = 5
    max_points: int = 4096


@dataclass(frozen=True)
class BordersConfig:
    """Points on the border of a source, as in the paper."""

    # Points of a map, and the most while placements are compared. The paper, section 2.2: one
    # hundred are usually enough.
    n_points: int = 100
    # Rows of a class that the source labels: a million pairs to choose from.
    max_rows_per_class: int = 1000
    # Comparison of placements: borders mapped with each, and rows for each border. Not measured.
    n_trial_borders: int = 6
    max_trial_rows: int = 2000
    # Rows among which neighbours on the other side are searched, and how many count as near. Not
    # measured.
    max_neighbor_rows: int = 5000
    n_neighbors: int = 20
    # Placement 'dense': pairs drawn for each that is kept, iterations of k-means, and weight added
    # to the ambiguity of a row. Not measured.
    pairs_drawn_per_pair: int = 4
    kmeans_steps: int = 4
    unambiguous_weight: float = 0.05


@dataclass(frozen=True)
class SchemesConfig:
    """Schemes of several maps that are trained."""

    # Nearest points whose functions are averaged. Not measured.
    blend: int = 4
    # Shortlist: points of the shared map and of a pair's map; rows and samples of a pair. Not
    # measured.
    shortlist_points: int = 128
    shortlist_samples: int = 600_000
    pair_points: int = 32
    pair_rows: int = 4000
    min_pair_samples: int = 80_000
    # Share of the transfer set whose class is on the shortlist, and smallest difference of logits
    # that keeps a class on it: one at least a third as likely as the best always is. Not measured.
    shortlist_coverage: float = 0.9995
    min_logit_margin: float = 1.0
    # Tree: points of a node, epochs over its rows, and smallest number of samples. Not measured.
    node_points: int = 128
    node_epochs: int = 15
    min_node_samples: int = 80_000


@dataclass(frozen=True)
class OutlierConfig:
    """Maps that replace the sums of a one-class SVM."""

    # Points of the candidates. With 256 points and more, far rows have fewer samples a point, and
    # the order of their scores is worse: .9855 instead of .9958 on two moons.
    sizes: tuple[int, ...] = (16, 64, 256)
    # Samples of a training; with three million the rank correlation was the same within .003.
    samples: int = 1_000_000
    # Synthetic rows, and the share of them that is made near the border. Not measured.
    synthetic_rows: int = 100_000
    near_border_share: float = 0.4
    # Logit of the median absolute value: cross-entropy then resolves most scores. Not measured.
    typical_logit: float = 1.5
    # Rows of a kind of outliers that validate a map, and as many held-out rows. Not measured.
    max_validation_rows: int = 2000
    # Smallest rank correlation and recall of both classes on every kind of rows that a map may
    # have to be taken instead of the exact sums. Outliers in use are of another kind: on two moons
    # the correlation was .9947 where validation rows had .9987.
    min_correlation: float = 0.997
    min_recall: float = 0.98
    # Rank correlation and recall below which a map that was asked for warns.
    warned_correlation: float = 0.99
    warned_recall: float = 0.95
    # Share of the wrong labels of a map that fallback corrects. Not measured.
    exact_share: float = 0.9


@dataclass(frozen=True)
class QualityConfig:
    """When a fit warns."""

    # Expected loss of uncertainty coefficient that must be exceeded, and the mean agreement over
    # classes above which the expectation, under the source's own probabilities, is too high: with
    # an agreement of .96, mnist lost .012 where .098 was expected, and a shell in 15 dimensions
    # gained .029 where a loss of .070 was; with .948, a saddle in 30 dimensions gained .002 where a
    # loss of .040 was.
    max_skill_loss: float = 0.01
    min_balanced_agreement: float = 0.93
    # Held-out rows below which chance decides: the standard error of an agreement of .95 is .04.
    min_deciding_rows: int = 24
    # Difference between the agreements on rows like those given and on rows between and around
    # them. Seventeen datasets have up to .065 with fewer than 48 features; with more, rows between
    # others are unlike any row, and the difference reaches .2.
    max_coverage_loss: float = 0.1
    # Rows whose labels show whether exact sums, taken without a search, are constant.
    labelled_rows: int = 2000
    # Share of outliers among the rows given to a detector. Detectors of one of ten classes predict
    # up to .963 of the rows of all classes as outliers, and .97 to 1 of rows times ten.
    max_outlier_share: float = 0.99


@dataclass(frozen=True)
class FitConfig:
    """The tuned values of all stages."""

    data: DataConfig = DataConfig()
    synthetic: SyntheticConfig = SyntheticConfig()
    transfer: TransferConfig = TransferConfig()
    train: TrainConfig = TrainConfig()
    validation: ValidationConfig = ValidationConfig()
    criterion: CriterionConfig = CriterionConfig()
    fallback: FallbackConfig = FallbackConfig()
    search: SearchConfig = SearchConfig()
    borders: BordersConfig = BordersConfig()
    schemes: SchemesConfig = SchemesConfig()
    outliers: OutlierConfig = OutlierConfig()
    quality: QualityConfig = QualityConfig()


DEFAULTS = FitConfig()


@dataclass(frozen=True)
class Limits:
    """The user's limits of a model; None for no limit."""

    # Smallest share of rows with the source's label: the cheapest candidate above it is selected.
    min_agreement: float | None = None
    # Multiply-adds per row.
    max_cost: int | None = None
    # Microseconds per row in a batch, on one thread of this computer.
    max_time_us: float | None = None
    # Bytes of the tables of the float32 C export, labels included.
    max_bytes: int | None = None
    # Bytes of the labels in them.
    label_bytes: int = 0

    @property
    def has_any(self) -> bool:
        """Whether cost, time or size is limited."""
        return any(limit is not None for limit in (self.max_cost, self.max_time_us, self.max_bytes))


@dataclass(frozen=True)
class FitOptions:
    """The user's options of a fit."""

    # Border points of each map; None leaves the number to the scheme.
    n_borders: int | None
    # Between which rows borders are searched; 'auto' is resolved before any map is made.
    placement: str
    # Nearest points whose functions are averaged; None leaves the number to the scheme.
    blend: int | None
    # Largest absolute decision value of a border point.
    tolerance: float
    # Decision value of the source at which the border lies.
    decision_offset: float = 0.0
    # Whether the model predicts in float64 instead of float32.
    double: bool = False
    # Whether a map may carry the exact sums: 'auto' where needed, True always, False never.
    fallback: str | bool = "auto"
    # Whether the base function may be curved.
    curved: bool = True
    # Factor on the training samples.
    effort: float = 1.0
    limits: Limits = field(default_factory=Limits)
