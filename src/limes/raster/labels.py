"""From blocks of bands to blocks of labels, probabilities and confidence; values of classes."""

import colorsys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limes.dask_arrays import ship_model
from limes.model.model import CORE_TYPES, Model, scheme_labels
from limes.raster.scene import Band

Colour: TypeAlias = tuple[int, int, int, int]
# Types of labels, the smallest first.
LABEL_TYPES = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.int64)
# Types that float32 holds exactly.
SMALL_TYPES = "?bBhHef"
# Colours of the first classes: distinct for most people who see colours differently (Okabe and Ito
# 2008), then others.
COLOURS = ["#009e73", "#e69f00", "#56b4e9", "#d55e00", "#0072b2", "#f0e442", "#cc79a7", "#999999"]
COLOURS += ["#7f3b08", "#b8e186", "#542788", "#1b7837"]


@dataclass(frozen=True, eq=False)
class ClassCodes:
    """The value, name and colour of each class in a map, and the value of other pixels."""

    values: NDArray[Any]
    nodata: float
    names: list[str]
    colours: list[Colour]

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of a map by the CF conventions."""
        return {
            "long_name": "class",
            "flag_values": self.values,
            "flag_meanings": " ".join("_".join(name.split()) or "_" for name in self.names),
            "_FillValue": self.values.dtype.type(self.nodata),
        }


def code_classes(
    classes: NDArray[Any], *, nodata: float | None = None, names: Any = None, colours: Any = None
) -> ClassCodes:
    """Choose the values of classes in a map: their own if they are whole numbers, else 1 to k.

    Examples
    --------
    >>> code_classes(np.array([-1, 1])).values.dtype, code_classes(np.array([0, 1])).nodata
    (dtype('int8'), 255)
    """
    if not (nodata is None or isinstance(nodata, Real)):
        raise TypeError(f"nodata_output must be a number or None, got {nodata!r}.")
    listed = classes.tolist()
    if all(isinstance(label, int | float) for label in listed):
        is_whole = all(float(label).is_integer() for label in listed)
        values = [int(label) for label in listed] if is_whole else listed
    else:
        is_whole, values = True, list(range(1, len(listed) + 1))
    if nodata is not None and nodata in values:
        label = listed[values.index(nodata)]
        raise ValueError(
            f"nodata_output must not be the value of a class, got {nodata!r}, the value of "
            f"{label!r}: choose another, or None."
        )
    coded, fill = _smallest_type(values, nodata) if is_whole else (np.array(values), nodata)
    return ClassCodes(
        coded,
        float("nan") if fill is None else fill,
        [str(name) for name in _by_class(names, listed, values, listed, "class_names")],
        [
            _as_colour(colour)
            for colour in _by_class(colours, listed, values, _default_colours(values), "colors")
        ],
    )


def _smallest_type(values: list[Any], nodata: float | None) -> tuple[NDArray[Any], int]:
    """Return values in the smallest type that holds them and a nodata value."""
    if nodata is not None and not float(nodata).is_integer():
        raise ValueError(f"nodata_output must be a whole number, got {nodata!r}.")
    for kind in LABEL_TYPES:
        limits = np.iinfo(kind)
        fill = int(nodata) if nodata is not None else 0 if 0 not in values else int(limits.max)
        if fill not in values and all(limits.min <= v <= limits.max for v in (*values, fill)):
            return np.array(values, dtype=kind), fill
    given = [*values, *([] if nodata is None else [nodata])]
    raise ValueError(f"classes and nodata_output must be integers of 64 bits, got {given!r:.200}.")


def _by_class(
    given: Any, classes: list[Any], values: list[Any], default: Sequence[Any], name: str
) -> list[Any]:
    """Return what is given for each class: by its label or value, or in the order of classes."""
    if given is None:
        return list(default)
    if isinstance(given, Mapping):
        keys = {str(key): value for key, value in given.items()}
        _check_keys(keys, classes, values, name)
        return [
            keys.get(str(label), keys.get(str(value), other))
            for label, value, other in zip(classes, values, default, strict=True)
        ]
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise TypeError(f"{name} must be a dict or a sequence, got {given!r:.60}.")
    listed = list(given)
    if len(listed) != len(classes):
        raise ValueError(
            f"{name} must have one entry for each of {len(classes)} classes, got {len(listed)}."
        )
    return listed


def _check_keys(keys: Mapping[str, Any], classes: list[Any], values: list[Any], name: str) -> None:
    """Warn of what is given for classes that the model has not; raise if it has none of them."""
    known = {str(key) for key in (*classes, *values)}
    unknown = [key for key in keys if key not in known]
    if not unknown:
        return
    message = f"{name} must have the classes of the model, {classes!r:.200}, got {unknown!r:.200}"
    if len(unknown) == len(keys):
        raise ValueError(f"{message}: give labels or values of classes.")
    warnings.warn(f"{message}, which are left out.", stacklevel=2)


def _default_colours(values: list[Any]) -> list[Any]:
    """Return a colour for each class."""
    return [
        COLOURS[k]
        if k < len(COLOURS)
        else tuple(round(255 * part) for part in colorsys.hsv_to_rgb(k * 0.618 % 1, 0.6, 0.8))
        for k in range(len(values))
    ]


def _as_colour(colour: Any) -> Colour:
    """Return red, green, blue and alpha from 0 to 255 of '#rrggbb' or of three or four numbers."""
    try:
        if isinstance(colour, str):
            parts = list(bytes.fromhex(colour.removeprefix("#")))
        else:
            parts = [int(part) for part in colour]
        if len(parts) in (3, 4) and all(0 <= part <= 255 for part in parts):
            red, green, blue, alpha = (*parts, 255)[:4]
            return red, green, blue, alpha
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"a colour must be '#rrggbb' or three or four numbers from 0 to 255, got {colour!r}."
    )


class ValidPixels:
    """Which pixels have a value in every band, and their values as rows."""

    def __init__(self, bands: Sequence[Band], *, scaled: bool = False) -> None:
        self._scales = [(band.scale, band.offset) for band in bands]
        self._scaled = scaled and any(pair != (1.0, 0.0) for pair in self._scales)
        common = _common_type([band.dtype for band in bands])
        self._nodata = [_stored_nodata(band) for band in bands]
        self.row_type = np.dtype(np.float64) if self._scaled else common
        # Which bands had a value in some block.
        self.is_seen = np.zeros(len(bands), dtype=bool)

    def find(self, blocks: Sequence[NDArray[Any]], is_valid: Any = None) -> NDArray[np.bool_]:
        """Return where all bands have a value, and `is_valid` is set if it is given."""
        shape = blocks[0].shape
        valid = np.ones(shape, dtype=bool) if is_valid is None else np.array(is_valid, dtype=bool)
        for k, (block, nodata) in enumerate(zip(blocks, self._nodata, strict=True)):
            own = np.isfinite(block) if block.dtype.kind == "f" else None
            if nodata is not None:
                is_value = block != nodata
                own = is_value if own is None else np.logical_and(own, is_value, out=own)
            self.is_seen[k] = self.is_seen[k] or own is None or own.any()
            if own is not None:
                valid &= own
        return valid

    def rows(self, blocks: Sequence[NDArray[Any]], valid: NDArray[np.bool_]) -> NDArray[Any]:
        """Return the valid pixels as rows, scaled if requested."""
        n_valid = int(np.count_nonzero(valid))
        columns = np.empty((len(blocks), n_valid), dtype=self.row_type)
        for block, (scale, offset), column in zip(blocks, self._scales, columns, strict=True):
            column[...] = block.ravel() if n_valid == valid.size else block[valid]
            if self._scaled:
                column *= scale
                column += offset
        return columns.T


class PixelClassifier:
    """Predict blocks of pixels; it can be sent to other processes.

    The outputs are labels, the probabilities of classes (in the last axis) and the confidence, the
    difference between the two largest probabilities: those that are named, in this order.
    """

    def __init__(
        self,
        model: Model,
        codes: ClassCodes,
        pixels: ValidPixels,
        *,
        outputs: Sequence[str] = ("label",),
        n_jobs: int | None = 1,
    ) -> None:
        self.pixels = pixels
        self._shipped = ship_model(model)
        self._codes = codes
        self._outputs = tuple(outputs)
        self._n_jobs = n_jobs

    def __call__(self, blocks: Sequence[NDArray[Any]], is_valid: Any = None) -> list[NDArray[Any]]:
        """Return a block of each output; the model is not called where no pixel is valid."""
        valid = self.pixels.find(blocks, is_valid)
        return [self._fill(valid, part) for part in self._predict(self.pixels.rows(blocks, valid))]

    @property
    def digest(self) -> str:
        """SHA-256 of the model's file."""
        return self._shipped.digest

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self._codes.values)

    def output_type(self, name: str) -> np.dtype[Any]:
        """Return the type of an output."""
        return self._codes.values.dtype if name == "label" else np.dtype(np.float32)

    def _predict(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the outputs for rows."""
        found = {"label": np.empty(0, dtype=self._codes.values.dtype)}
        found["probability"] = np.empty((0, self.n_classes), dtype=np.float32)
        found["confidence"] = np.empty(0, dtype=np.float32)
        if len(rows):
            scheme = (model := self._shipped.load()).scheme
            if "label" in self._outputs:
                values = self._codes.values
                found["label"] = scheme_labels(scheme, rows, values, n_jobs=self._n_jobs)
            if self._outputs != ("label",):
                probabilities = model.predict_proba(rows, n_jobs=self._n_jobs)
                found["probability"] = probabilities.astype(np.float32)
                if "confidence" in self._outputs:
                    highest = np.partition(probabilities, -2, axis=1)[:, -2:]
                    found["confidence"] = (highest[:, 1] - highest[:, 0]).astype(np.float32)
        return [found[name] for name in self._outputs]

    def _fill(self, valid: NDArray[np.bool_], part: NDArray[Any]) -> NDArray[Any]:
        """Return a block with the results of its valid pixels."""
        shape = (*valid.shape, *part.shape[1:])
        if len(part) == valid.size:
            return part.reshape(shape)
        fill = self._codes.nodata if part.dtype == self._codes.values.dtype else np.nan
        block = np.full(shape, fill, dtype=part.dtype)
        if len(part):
            block[valid] = part
        return block


def _common_type(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the type of rows that the core reads and that holds the values of all bands."""
    if any(dtype.kind not in "biuf" for dtype in dtypes):
        raise TypeError(f"bands must be real numbers, got {', '.join(map(str, dtypes)):.200}.")
    common = np.result_type(*dtypes)
    if common in CORE_TYPES:
        return common
    is_small = all(dtype.char in SMALL_TYPES for dtype in dtypes)
    return np.dtype(np.float32 if is_small else np.float64)


def _stored_nodata(band: Band) -> Any:
    """Return a band's nodata value in its own type; None where no pixel can have it."""
    if band.nodata is None or np.isnan(band.nodata):
        return None
    if band.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return band.dtype.type(band.nodata)
    is_whole = float(band.nodata).is_integer()
    if band.dtype.kind == "b" or not is_whole:
        return None
    limits = np.iinfo(band.dtype)
    return int(band.nodata) if limits.min <= band.nodata <= limits.max else None
