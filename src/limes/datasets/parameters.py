"""The paper's table 2: how each dataset was trained and tested, with its slips put right."""

from dataclasses import dataclass, field

from limes.datasets.catalogue import find_entry

__all__ = ["Settings", "parameters"]


@dataclass(frozen=True)
class Settings:
    """One line of table 2.

    Parameters
    ----------
    n_trials : int
        Trials to average over.
    has_single_trials : bool
        True where the paper ran some methods only once, for want of time or since the split
        is published.
    test_fraction : float
        Share of the rows kept for testing: the paper's f.
    linear_type : int
        LIBLINEAR's solver, see :func:`limes.linear.liblinear_classifier`.
    gamma, C : float
        Of the radial basis function SVM.
    n_borders : int
        Border points for each pair of classes: the paper's n_b.
    printed : dict
        What the paper prints where that is a slip, by the name of the field.
    """

    n_trials: int
    has_single_trials: bool
    test_fraction: float
    linear_type: int
    gamma: float
    C: float
    n_borders: int
    printed: dict[str, float] = field(default_factory=dict)


def parameters(name: str) -> Settings:
    """Return how the paper trained and tested a dataset.

    Parameters
    ----------
    name : str
        One of the seventeen, such as "sat".

    Returns
    -------
    Settings
        With the corrected values; ``printed`` keeps the paper's.

    Examples
    --------
    >>> parameters("letter").C, parameters("letter").printed
    (50.0, {'C': 1.0})
    """
    return TABLE[find_entry(name).name]


TABLE = {
    "heart": Settings(10, False, 0.4, 1, 0.01, 0.5, 100),
    "shuttle": Settings(10, True, 0.25, 4, 0.111, 1.0, 100),
    "sat": Settings(10, True, 0.31, 4, 0.1, 50.0, 200),
    "segment": Settings(10, False, 0.4, 4, 0.1, 100.0, 50),
    "dna": Settings(10, True, 0.372, 2, 0.0055, 1.0, 1000),
    # Ten times the printed value is 1/60, and reproduces both support vectors and accuracy.
    "splice": Settings(10, True, 0.685, 1, 0.0167, 1.0, 500, {"gamma": 0.00167}),
    "codrna": Settings(10, True, 0.82, 4, 0.125, 1.0, 500),
    # The author's own makefile has 50; with the printed 1 the accuracy is .937, not .963.
    "letter": Settings(10, True, 0.4, 4, 0.065, 50.0, 75, {"C": 1.0}),
    "pendigits": Settings(10, True, 0.318, 4, 0.01, 50.0, 200),
    "usps": Settings(10, True, 0.216, 4, 0.004, 1.0, 50),
    "mnist": Settings(1, False, 0.143, 1, 0.0015, 50.0, 500),
    "ijcnn1": Settings(10, True, 0.647, 0, 0.045, 1.0, 500),
    "madelon": Settings(10, True, 0.231, 2, 0.002, 1.0, 100),
    "seismic": Settings(10, True, 0.2, 1, 0.02, 1.0, 200),
    "mushrooms": Settings(10, False, 0.4, 1, 0.0089, 50.0, 200),
    # Ten times the printed value is 1/68, and reproduces both support vectors and accuracy.
    "phishing": Settings(10, False, 0.4, 0, 0.0147, 1.0, 500, {"gamma": 0.00147}),
    "humidity": Settings(10, True, 0.4, 5, 0.143, 50.0, 200),
}
