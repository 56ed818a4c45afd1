"""What can be exported."""

from collections.abc import Iterable

from sklearn.utils.validation import check_is_fitted

from limes.classifier import BordersClassifier
from limes.schemes.protocol import Scheme


def fitted_scheme(fast: BordersClassifier) -> Scheme:
    """Return the scheme of a fitted classifier."""
    if not isinstance(fast, BordersClassifier):
        raise TypeError(
            f"an export takes a fitted BordersClassifier, got {type(fast).__name__}: give what "
            "limes.accelerate or limes.load returned."
        )
    check_is_fitted(fast)
    return fast.scheme_


def unknown_scheme(scheme: Scheme, known: Iterable[str], form: str) -> ValueError:
    """Return what to raise for a scheme that a form of export does not have."""
    return ValueError(
        f"an export to {form} knows the schemes {sorted(known)}, got {scheme.name!r}: fit with one "
        "of these."
    )
