"""LightGBM: boosted trees."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from limes.bench.peers.peer import Ask, Peer
from limes.bench.problem import Problem


@dataclass(frozen=True)
class LightgbmPeer(Peer):
    """Boosted trees."""

    # Rounds of boosting.
    n_trees: int = 100

    def fit(self, problem: Problem, rows: NDArray[Any], source: Any) -> Any:
        """Train on standardised rows."""
        from lightgbm import LGBMClassifier

        trees = LGBMClassifier(
            n_estimators=self.n_trees, random_state=problem.seed, n_jobs=1, verbose=-1
        )
        return trees.fit(rows, problem.y_train)

    def ask(self, model: Any, n_threads: int) -> Ask:
        """Ask the trees themselves, which is quicker than asking the estimator around them."""
        trees, classes = model.booster_, model.classes_

        def predict(rows: Any) -> Any:
            probabilities = trees.predict(rows, num_threads=n_threads)
            is_binary = probabilities.ndim == 1
            return classes[
                (probabilities > 0.5).astype(int) if is_binary else probabilities.argmax(axis=1)
            ]

        return predict


LIGHTGBM_PEER = LightgbmPeer("lightgbm-100", "lightgbm")
