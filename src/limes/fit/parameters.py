"""The parameters of the estimator: their rules, and the options of a fit that they give."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from limes.fit.borders import PLACEMENTS
from limes.fit.config import FitOptions, Limits
from limes.model.exact import ExactScheme
from limes.model.schemes import SCHEMES

# Parameters that choose the number of points, each with one limit of a model.
LIMITS = ("min_agreement", "max_cost", "max_time_us", "max_bytes")


def fit_options(estimator: Any) -> FitOptions:
    """Return the parameters as a fit takes them."""
    return FitOptions(
        n_borders=None if estimator.n_borders == "auto" else int(estimator.n_borders),
        placement=estimator.placement,
        blend=None if estimator.blend == "auto" else int(estimator.blend),
        tolerance=estimator.tolerance,
        decision_offset=float(np.arctanh(estimator.threshold)),
        double=estimator.dtype == "float64",
        fallback=estimator.fallback,
        curved=bool(estimator.curved),
        effort=float(estimator.effort),
        limits=Limits(*(getattr(estimator, name) for name in LIMITS)),
    )


def check_parameters(estimator: Any) -> None:
    """Raise for a parameter that is wrong, before anything long begins."""
    check_values(estimator, RULES)
    if estimator.scheme in ("shared", ExactScheme.name) and estimator.threshold:
        raise ValueError(
            f"threshold must be 0 with scheme={estimator.scheme!r}, got {estimator.threshold!r}: "
            "it predicts where labels of the source change. Give scheme='auto' or 'pairwise'."
        )
    if estimator.fallback is True and not _can_fall_back(estimator):
        raise ValueError(
            "fallback=True is for scheme='auto' or 'shared' with refine=True and threshold=0, got "
            f"{estimator.scheme!r}, {estimator.refine!r} and {estimator.threshold!r}."
        )
    given = [name for name in LIMITS if getattr(estimator, name) is not None]
    is_open = estimator.scheme in ("auto", "shared") and estimator.n_borders == "auto"
    if given and not (is_open and estimator.refine and not estimator.threshold):
        raise ValueError(
            f"{given[0]} chooses the number of points: give it with scheme='auto' or "
            f"'shared', n_borders='auto', refine=True and threshold=0, got {estimator.scheme!r}, "
            f"{estimator.n_borders!r}, {estimator.refine!r} and {estimator.threshold!r}."
        )


def check_values(estimator: Any, rules: dict[str, Callable[[Any], str]]) -> None:
    """Raise for the first parameter that breaks its rule."""
    for name, rule in rules.items():
        value = getattr(estimator, name)
        expected = rule(value)
        if expected:
            raise ValueError(f"{name} must be {expected}, got {value!r}.")


def _can_fall_back(estimator: Any) -> bool:
    """Return whether the model may have a single map, which can hand over rows."""
    return estimator.scheme in ("auto", "shared") and estimator.refine and not estimator.threshold


def one_of(*choices: str) -> Callable[[Any], str]:
    """Return the rule of a parameter with a few values."""
    text = f"one of {sorted(choices)}"
    return lambda value: "" if isinstance(value, str) and value in choices else text


def _between(low: float, high: float) -> Callable[[Any], str]:
    """Return the rule of a number strictly between two others."""
    text = f"a number between {low} and {high}"
    return lambda value: "" if _is_number(value) and low < float(value) < high else text


def _limit(high: float) -> Callable[[Any], str]:
    """Return the rule of an optional limit."""
    text = f"None or a number from 0 to {high}"

    def rule(value: Any) -> str:
        return "" if value is None or (_is_number(value) and 0 < float(value) <= high) else text

    return rule


def _count(value: Any) -> str:
    """Return what is wrong with a number of points, or nothing."""
    is_auto = isinstance(value, str) and value == "auto"
    is_count = _is_integer(value) and int(value) >= 1
    return "" if is_auto or is_count else "'auto' or an integer of 1 or more"


def _is_number(value: Any) -> bool:
    """Return whether a value is a real number, which True is not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    """Return whether a value is a whole number, which True is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


# What each parameter must be: a rule returns that in words where a value breaks it.
RULES: dict[str, Callable[[Any], str]] = {
    "scheme": one_of("auto", ExactScheme.name, *SCHEMES),
    "placement": one_of("auto", *PLACEMENTS),
    "border": one_of("predict", "probability"),
    "dtype": one_of("float32", "float64"),
    "n_borders": _count,
    "blend": _count,
    "threshold": _between(-1.0, 1.0),
    "tolerance": _between(0.0, np.inf),
    "refine": lambda value: "" if isinstance(value, bool | np.bool_) else "True or False",
    "curved": lambda value: "" if isinstance(value, bool | np.bool_) else "True or False",
    "effort": _between(0.0, np.inf),
    "fallback": lambda value: (
        ""
        if isinstance(value, bool) or (isinstance(value, str) and value == "auto")
        else "'auto', True or False"
    ),
    "verbose": lambda value: "" if isinstance(value, Integral) else "an integer",
    "n_jobs": lambda value: (
        ""
        if value is None or (_is_integer(value) and value != 0)
        else "None or an integer other than 0, such as -1 for all"
    ),
    "min_agreement": _limit(1.0),
    "max_cost": _limit(np.inf),
    "max_time_us": _limit(np.inf),
    "max_bytes": _limit(np.inf),
}
