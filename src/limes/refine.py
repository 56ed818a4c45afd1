"""Fit a map to its source: what the source says of many rows, learnt by a few points."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils.extmath import randomized_svd

from limes._core.training import TrainedMap, train
from limes._typing import Array
from limes.queries import spread_rows
from limes.sources.protocol import MulticlassSource

# Multiply-adds that a source does in a second of one processor, about, and those that asking it
# may cost in all.
ASKED_A_SECOND = 8e9
QUESTION_BUDGET = 10 * ASKED_A_SECOND
MIN_QUESTIONS, MAX_QUESTIONS = 20_000, 120_000
# However few real rows there are, new ones hold no more numbers than this.
MAX_NEW_NUMBERS = 1 << 28
# More new rows than this for each real one say little that is new, where real ones are not few.
QUESTIONS_A_ROW, FEW_QUESTIONS = 80, 40_000
# Rows in one block of questions.
BLOCK_ROWS = 4096
# Training: the seconds of one processor that it may take, and the most looks at each row and at all
# rows: more teach little.
TRIAL_SECONDS, LAST_SECONDS = 1.5, 8.0
MAX_EPOCHS, MAX_LOOKS = 20, 4_000_000
TRIAL_EPOCHS, TRIAL_LOOKS = 10, 800_000
# A map of few points with many real rows for each does not learn them by heart: it may look longer.
FEW_POINTS, MANY_ROWS, LONGER = 64, 64, 3
# However few or wide the rows are, it looks at so many if it may.
MIN_LOOKS, LOOKS_A_SECOND = 400_000, 150_000
# Rows a step, largest steps of the local functions, the points,
# the base function and the components, and the pull of the local functions towards zero.
N_BATCH = 256
RATES = (0.02, 0.01, 0.005, 0.002)
DECAY, WIDE_DECAY = 0.01, 0.2
# Rows for each point of k-means, and how likely one is that the source is sure of.
ROWS_A_POINT = 64
MIN_PLACED = 4000
SURE_SHARE = 0.02
# The unit of length of local functions, where all rows are one.
MIN_RADIUS = 1e-3
# Wide rows are searched in this many principal components.
WIDE_FEATURES = 48
N_COMPONENTS = 32
MOST_SQUARE = 3000


@dataclass(frozen=True, eq=False)
class Lessons:
    """Rows, and what the source says of them."""

    # Shape (n_rows, n_features). Real rows first, then made ones; float32, in the space of the
    # source.
    rows: NDArray[np.float32]
    # Shape (n_rows, n_search). The same in the space where points are searched.
    search: NDArray[np.float32]
    # Shape (n_rows, n_outputs). Probabilities: of the second class alone where there are two.
    targets: NDArray[np.float32]
    # Shape (n_rows,). 1 where two classes are equally likely, 0 where the source is sure.
    doubt: Array
    # Shape (n_features, n_search). Principal components that rows are searched in; None for the
    # rows themselves.
    components: Array | None
    # How many are real rows.
    n_real: int

    @property
    def n_made(self) -> int:
        """How many rows were made."""
        return len(self.rows) - self.n_real


def prepare_lessons(source: MulticlassSource, rows: Array, *, rng: np.random.Generator) -> Lessons:
    """Ask the source about real rows and about many made from them."""
    components = _principal_components(rows) if rows.shape[1] >= WIDE_FEATURES else None
    wanted = min(MAX_QUESTIONS, max(FEW_QUESTIONS, QUESTIONS_A_ROW * len(rows)))
    n_new = int(max(MIN_QUESTIONS, min(wanted, QUESTION_BUDGET / source.row_cost)))
    n_new = min(n_new, MAX_NEW_NUMBERS // rows.shape[1])
    return _ask_about(source, rows, n_new, near=rows, components=components, rng=rng)


def add_lessons(
    lessons: Lessons, source: MulticlassSource, rows: Array, *, rng: np.random.Generator
) -> Lessons:
    """Ask the source about further real rows too, and about as many made from each of them."""
    n_new = lessons.n_made * len(rows) // lessons.n_real
    # In the same precision, or a category would have two values.
    near = np.concatenate([rows.astype(np.float32), lessons.rows[: lessons.n_real]])
    more = _ask_about(source, rows, n_new, near=near, components=lessons.components, rng=rng)

    def join(before: Any, after: Any) -> Any:
        cut, added = lessons.n_real, more.n_real
        return np.concatenate([before[:cut], after[:added], before[cut:], after[added:]])

    rows32 = join(lessons.rows, more.rows)
    return Lessons(
        rows32,
        rows32 if lessons.components is None else join(lessons.search, more.search),
        join(lessons.targets, more.targets),
        join(lessons.doubt, more.doubt),
        lessons.components,
        lessons.n_real + more.n_real,
    )


def _ask_about(
    source: MulticlassSource,
    rows: Array,
    n_new: int,
    *,
    near: Array,
    components: Array | None,
    rng: np.random.Generator,
) -> Lessons:
    """Ask about real rows, and about new ones made from them and rows near to them."""
    asked = _ask(source, rows)
    search = near if components is None else near @ components
    new = spread_rows(near, find_doubt(asked), n_new, search=search, rng=rng)
    all_rows = np.concatenate([rows.astype(np.float32), new])
    targets = np.concatenate([asked, _ask(source, new)])
    return Lessons(
        all_rows,
        all_rows if components is None else (all_rows @ components).astype(np.float32),
        # Some sources answer column by column, which the core does not take.
        np.ascontiguousarray(targets[:, 1:] if targets.shape[1] == 2 else targets, np.float32),
        find_doubt(targets),
        components,
        len(rows),
    )


def find_doubt(probabilities: Array) -> Array:
    """Return how near the two likeliest classes of each row are, from 0 to 1.

    Examples
    --------
    >>> find_doubt(np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]))
    array([1. , 0.5])
    """
    best = np.partition(probabilities, -2, axis=1)[:, -2:]
    return 1.0 - (best[:, 1] - best[:, 0])


def fit_map(
    lessons: Lessons,
    *,
    n_points: int,
    blend: int,
    rng: np.random.Generator,
    seconds: float = TRIAL_SECONDS,
    most_looks: float = np.inf,
) -> TrainedMap:
    """Fit points and their linear functions to the lessons."""
    points, radius = _place_points(lessons, n_points, rng)
    n_looks = min(most_looks, count_looks(lessons, n_points, blend, seconds))
    fitted = TrainedMap.start(
        points,
        n_features=lessons.rows.shape[1],
        n_outputs=lessons.targets.shape[1],
        radius=radius,
        components=None if lessons.components is None else lessons.components.T,
    )
    train(
        fitted,
        lessons.rows,
        lessons.targets,
        weights=np.ones(len(lessons.rows), dtype=np.float32),
        blend=blend,
        n_epochs=max(2, round(n_looks / len(lessons.rows))),
        n_batch=N_BATCH,
        rates=RATES,
        decay=DECAY if lessons.components is None else WIDE_DECAY,
        seed=int(rng.integers(2**62)),
    )
    return fitted


def count_looks(lessons: Lessons, n_points: int, blend: int, seconds: float) -> float:
    """Return how many rows training should look at in all."""
    enough = min(MAX_EPOCHS * len(lessons.rows), MAX_LOOKS)
    if n_points <= FEW_POINTS and lessons.n_real >= MANY_ROWS * n_points:
        enough *= LONGER
    few = min(MIN_LOOKS, LOOKS_A_SECOND * seconds)
    return max(few, min(enough, seconds / look_seconds(lessons, n_points, blend)))


def look_seconds(lessons: Lessons, n_points: int, blend: int) -> float:
    """Return about how long training looks at one row, as it was measured on one processor.

    It is a formula, not a clock, so that a fit does not depend on what else the machine does.
    """
    n_features, n_search = lessons.rows.shape[1], lessons.search.shape[1]
    n_outputs = lessons.targets.shape[1]
    projected = 0 if lessons.components is None else 2 * n_search * n_features
    products = n_points * n_search + projected + 2 * n_outputs * n_features
    # Outputs are computed by eights.
    local = n_search * (n_outputs if n_outputs == 1 else -(-n_outputs // 8) * 8)
    nanoseconds = 100 * blend + 1.2 * n_points + products / 15 + blend * local / 4
    return 1e-9 * (nanoseconds + 2 * n_points * local / N_BATCH)


def fit_sharpness(logits: Array, probabilities: Array, weights: Array) -> float:
    """Return the factor by which logits come nearest to the source's own probabilities."""
    if logits.shape[1] == 1:
        logits = np.column_stack([np.zeros(len(logits)), logits])

    def loss(log_factor: float) -> float:
        expected = log_softmax(np.exp(log_factor) * logits, axis=1)
        return float(-weights @ np.sum(probabilities * expected, axis=1))

    found = minimize_scalar(loss, bounds=(np.log(0.02), np.log(50)), method="bounded")
    return float(np.exp(found.x))


def _ask(source: MulticlassSource, rows: NDArray[np.floating]) -> Array:
    """Return the probabilities that the source's scores stand for, block by block."""
    starts = range(0, len(rows), BLOCK_ROWS)
    parts = [source.scores(rows[i : i + BLOCK_ROWS].astype(np.float64)) for i in starts]
    scores = np.concatenate(parts)
    if not np.isfinite(scores).all():
        raise ValueError(
            f"the source gave the score {scores[~np.isfinite(scores)][0]} for a row: scores must "
            "be finite."
        )
    return softmax(scores, axis=1)


def _principal_components(rows: Array) -> Array:
    """Return the directions in which rows vary most."""
    some = rows[:: max(1, len(rows) // 5000)]
    centred = some - some.mean(axis=0)
    if centred.shape[1] > MOST_SQUARE:
        # No square matrix of so many features: a few directions need none.
        directions = randomized_svd(centred, N_COMPONENTS, random_state=0)[2]
        return np.ascontiguousarray(directions.T)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return np.ascontiguousarray(directions[:, ::-1][:, :N_COMPONENTS])


def _place_points(lessons: Lessons, n_points: int, rng: np.random.Generator) -> tuple[Array, float]:
    """Spread points over the rows, more of them where the source is in doubt."""
    if n_points == 1:
        return np.zeros((1, lessons.search.shape[1])), 1.0
    chance = lessons.doubt + SURE_SHARE
    n_drawn = max(ROWS_A_POINT * n_points, MIN_PLACED)
    picked = rng.choice(len(lessons.rows), size=n_drawn, p=chance / chance.sum())
    rows = lessons.search[picked]
    means = MiniBatchKMeans(
        n_points,
        init="random",
        n_init=1,
        max_iter=10,
        batch_size=4096,
        random_state=int(rng.integers(2**31)),
    ).fit(rows)
    spread = np.square(rows - means.cluster_centers_[means.labels_]).mean()
    return means.cluster_centers_, max(MIN_RADIUS, float(np.sqrt(spread)))
