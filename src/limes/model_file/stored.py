"""What a file keeps of a fitted classifier: everything that predicts, and nothing of its source."""

import os
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

import limes
from limes._typing import Labels
from limes.atomic import replacing
from limes.model_file.container import Container, parse_container, read_container, write_container
from limes.model_file.values import PLAIN_TYPES, Decoder, Encoder
from limes.schemes.choosing import Trial
from limes.schemes.protocol import Scheme

# Attributes of a fitted classifier that have an entry of their own, or none.
NOT_ATTRIBUTES = {
    "estimator_",
    "classes_",
    "scheme_",
    "n_features_in_",
    "feature_names_in_",
    "tradeoff_",
}
# Parameters that say nothing about the model: they belong to the machine or to the source.
NOT_PARAMETERS = {"estimator", "n_jobs", "verbose"}
# Larger files than this are not what they seem to be.
MAX_BYTES = 1 << 32
MAX_FEATURES = 1 << 31

Estimator = TypeVar("Estimator")


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A fitted classifier without its source."""

    # The border maps, and how they are joined.
    scheme: Scheme
    # Shape (n_classes,). Labels.
    classes: Labels
    # Number of features of a row.
    n_features: int
    # Shape (n_features,). Names of the columns.
    feature_names: NDArray[Any] | None = None
    # Of the estimator.
    parameters: dict[str, Any] = field(default_factory=dict)
    # What else its fit found: agreement, cost.
    attributes: dict[str, Any] = field(default_factory=dict)
    # What the fit tried.
    tradeoff: list[Trial] = field(default_factory=list)


def describe(fitted: Any) -> StoredModel:
    """Return what a file keeps of a fitted classifier."""
    parameters = {
        name: value
        for name, value in fitted.get_params(deep=False).items()
        if name not in NOT_PARAMETERS and _is_plain(value)
    }
    attributes = {
        name: value
        for name, value in vars(fitted).items()
        if name.endswith("_") and not name.startswith("_") and name not in NOT_ATTRIBUTES
    }
    return StoredModel(
        fitted.scheme_,
        fitted.classes_,
        int(fitted.n_features_in_),
        getattr(fitted, "feature_names_in_", None),
        parameters,
        {name: value for name, value in attributes.items() if _is_storable(value)},
        list(getattr(fitted, "tradeoff_", [])),
    )


def restore(stored: StoredModel, estimator: Estimator) -> Estimator:
    """Make an unfitted classifier the fitted one that was stored."""
    for name, value in stored.attributes.items():
        setattr(estimator, name, value)
    own = {
        "scheme_": stored.scheme,
        "classes_": stored.classes,
        "n_features_in_": stored.n_features,
        "feature_names_in_": stored.feature_names,
        "tradeoff_": stored.tradeoff,
    }
    for name, value in own.items():
        if value is not None:
            setattr(estimator, name, value)
    return estimator


def write_model(path: str | os.PathLike[str], stored: StoredModel) -> None:
    """Write a model file: the old one stays until the new one is complete."""
    encoder = Encoder()
    header = {
        "limes": limes.__version__,
        "n_features": stored.n_features,
        "classes": encoder.encode(np.asarray(stored.classes)),
        "feature_names": encoder.encode(stored.feature_names),
        "parameters": {name: encoder.encode(one) for name, one in stored.parameters.items()},
        "attributes": {name: encoder.encode(one) for name, one in stored.attributes.items()},
        "scheme": encoder.encode(stored.scheme),
        "tradeoff": [_encode_trial(encoder, trial) for trial in stored.tradeoff],
    }
    with replacing(path) as stream:
        write_container(stream, header, encoder.arrays)


def read_model(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> StoredModel:
    """Read a model file, trusting nothing in it."""
    return decode_model(read_container(path, max_bytes=max_bytes))


def parse_model(data: bytes, name: str) -> StoredModel:
    """Read the bytes of a model file."""
    return decode_model(parse_container(data, name))


def decode_model(container: Container) -> StoredModel:
    """Return the model that a header and arrays describe, if they make one."""
    try:
        stored = _decode(container)
    except RecursionError:
        container.fail("a header of a few levels", "one nested too deeply")
    _try_a_row(container, stored)
    return stored


def _decode(container: Container) -> StoredModel:
    """Return the parts of a model."""
    header = container.header
    n_features = header.get("n_features")
    if type(n_features) is not int or not 0 < n_features < MAX_FEATURES:
        container.fail("a number of features of at least 1", n_features)
    decoder = Decoder(container, n_features)
    scheme = decoder.scheme(decoder.entry(header, "scheme", dict))
    names = None if header.get("feature_names") is None else _names(decoder, header)
    return StoredModel(
        scheme,
        _classes(decoder, header, scheme),
        n_features,
        names,
        _entries(decoder, header, "parameters", suffix=""),
        _entries(decoder, header, "attributes", suffix="_"),
        _trials(decoder, header),
    )


def _is_plain(value: Any) -> bool:
    """Tell whether a value is a number, a text or None."""
    return value is None or isinstance(value, (*PLAIN_TYPES, np.generic))


def _is_storable(value: Any) -> bool:
    """Tell whether an attribute can be kept: plain, a list of plain values, or numbers."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return _is_plain(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")


def _classes(decoder: Decoder, header: dict[str, Any], scheme: Scheme) -> Labels:
    """Return the labels, as many as the scheme has and no two alike."""
    classes = decoder.array(decoder.entry(header, "classes", dict), "array")
    if classes.shape != (scheme.n_classes,) or scheme.n_classes < 2:
        decoder.container.fail(f"{scheme.n_classes} labels, at least two", classes.shape)
    is_number = classes.dtype.kind != "f" or bool(np.isfinite(classes).all())
    if len(np.unique(classes)) < len(classes) or not is_number:
        decoder.container.fail("labels that differ", classes.tolist())
    return classes.copy()


def _names(decoder: Decoder, header: dict[str, Any]) -> NDArray[Any]:
    """Return the names of the features, as scikit-learn keeps them."""
    names = decoder.array(decoder.entry(header, "feature_names", dict), "array")
    if names.shape != (decoder.n_features,) or names.dtype.kind not in "UO":
        decoder.container.fail(f"{decoder.n_features} names of features", names.shape)
    return names.astype(object)


def _entries(decoder: Decoder, header: dict[str, Any], key: str, *, suffix: str) -> dict[str, Any]:
    """Return named values, whose names can be those of parameters or attributes."""
    entries = decoder.entry(header, key, dict)
    # Files of the first days have an empty one; it is an entry of its own now.
    entries = {name: value for name, value in entries.items() if name != "tradeoff_"}
    for name in entries:
        is_name = name.isidentifier() and not name.startswith("_") and name.endswith(suffix)
        if not is_name or name in NOT_ATTRIBUTES | NOT_PARAMETERS:
            decoder.container.fail(f"names of {key}", name)
    decoded = {name: decoder.decode(value) for name, value in entries.items()}
    for name, value in decoded.items():
        if not _is_storable(value):
            decoder.container.fail(f"a plain value of {name!r}", value)
    return decoded


def _encode_trial(encoder: Encoder, trial: Trial) -> dict[str, Any]:
    """Return one line of the trade-off as JSON, each value of the type that is read again."""
    kinds = get_type_hints(Trial)
    return {name: encoder.encode(kinds[name](value)) for name, value in asdict(trial).items()}


def _trials(decoder: Decoder, header: dict[str, Any]) -> list[Trial]:
    """Return the trade-off, which a file may be without."""
    entries = decoder.entry(header, "tradeoff", list) if "tradeoff" in header else []
    return [_decode_trial(decoder, entry) for entry in entries]


def _decode_trial(decoder: Decoder, entry: Any) -> Trial:
    """Return one line of the trade-off, all of it of the right types; what is unknown is left."""
    hints = get_type_hints(Trial)
    needed = [one.name for one in fields(Trial) if one.default is MISSING]
    if not isinstance(entry, dict) or not set(needed) <= entry.keys():
        decoder.container.fail(f"one of 'tradeoff' with {', '.join(needed)}", entry)
    values = {name: decoder.decode(entry[name]) for name in hints if name in entry}
    for name, value in values.items():
        if type(value) is not hints[name]:
            decoder.container.fail(f"{hints[name].__name__} {name!r}", value)
    return Trial(**values)


def _try_a_row(container: Container, stored: StoredModel) -> None:
    """See that a scheme can answer: its maps fit each other and the number of classes."""
    scheme = stored.scheme
    try:
        with np.errstate(all="ignore"):
            values = scheme.values(_middle_row(scheme))
            codes, probabilities = scheme.codes(values), scheme.probabilities(values)
    # Whatever goes wrong with numbers from a file, it is the file that is wrong.
    except Exception as error:
        container.fail("maps that answer a row", f"{type(error).__name__}: {error}".split("\n")[0])
    n_classes = len(stored.classes)
    if probabilities.shape != (1, n_classes) or not 0 <= int(codes[0]) < n_classes:
        container.fail(f"an answer of {n_classes} classes", probabilities.shape)


def _middle_row(scheme: Scheme) -> NDArray[np.float64]:
    """Return a row amid the border points, which is in range whatever the model was fitted on."""
    first = scheme.maps[0]
    return np.array(first.points[:1] if first.before is None else first.before.shift[None])
