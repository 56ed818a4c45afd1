"""Predict scenes: ``predict_raster``, and the rows of scenes for ``accelerate``."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limes._typing import Labels
from limes.model.model import NO_PROBABILITIES
from limes.raster.geotiff import TILE, create_geotiff
from limes.raster.labels import ClassCodes, PixelClassifier, ValidPixels, code_classes
from limes.raster.scene import (
    ArrayScene,
    FileScene,
    Place,
    Scene,
    block_places,
    is_path,
    limited_cache,
    open_scene,
    paths_of,
    split_shape,
)
from limes.sources.table_encoder import check_no_encoder

if TYPE_CHECKING:
    import xarray

    from limes.classifier import BordersClassifier

Mask: TypeAlias = Callable[[Place], NDArray[np.bool_] | None]
OUTPUTS = ("label", "probability", "confidence")
# Attributes of a scene that are true of its map too; others describe the values of its bands.
KEPT_ATTRIBUTES = ("AREA_OR_POINT", "grid_mapping")
# Pixels of a block at most. Larger ones are not faster, and leave the allocator with more memory.
MAX_BLOCK_PIXELS = 1 << 18
MIN_MEMORY_MB = 32
# Share of the memory for the arrays of a block. The rest is left to GDAL's cache and to what the
# allocator keeps.
BLOCK_SHARE = 0.4


def predict_raster(
    fast: "BordersClassifier",
    scene: Any,
    *,
    output: Any = None,
    proba: bool = False,
    confidence: bool = False,
    mask: Any = None,
    nodata_input: Any = ...,
    nodata_output: float | None = None,
    band_dim: str = "band",
    match_by_name: bool = True,
    bad_bands: str = "error",
    scaled: bool = False,
    class_names: Mapping[Any, str] | Sequence[str] | None = None,
    colors: Mapping[Any, Any] | Sequence[Any] | None = None,
    max_memory_mb: int = 256,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Classify the pixels of a raster, by the block.

    A pixel is invalid, and gets the nodata value, where the mask is zero or where a band that the
    model uses is nodata or not finite. Words are those of sklearn-raster and rioxarray.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted.
    scene : path, sequence of paths, DataArray or Dataset
        Bands: those of a file, of a stack of files with one grid, along ``band_dim``, or variables.
    output : path or dict of paths, default=None
        GeoTIFF to write, in blocks; an old file stays until the new one is complete. With several
        outputs, a dict with the keys "label", "probability" and "confidence". None: return arrays.
    proba : bool, default=False
        Whether to return the probabilities of the classes too, float32, NaN where invalid.
    confidence : bool, default=False
        Whether to return the difference between the two largest probabilities too.
    mask : path, array or DataArray, default=None
        Zero where pixels are invalid, as in GDAL and Orfeo ToolBox.
    nodata_input : float, sequence, dict or None, optional
        Value of invalid pixels: one for all bands, one for each, or by name. None: there is none.
        Absent: that of the file, or the attribute ``_FillValue``.
    nodata_output : int, default=None
        Label of invalid pixels. None: 0, or the largest value of the type where 0 is a class.
    band_dim : str, default="band"
        Dimension of the bands in a DataArray.
    match_by_name : bool, default=True
        Whether bands are selected by name where both scene and model have names: those of a text
        coordinate, of ``long_name``, of descriptions in the file, or of variables. Otherwise, and
        where names are missing, bands are taken by position.
    bad_bands : {"error", "drop"}, default="error"
        What to do with bands that are nodata everywhere in a file or array: "drop" leaves out those
        beyond the number of features of the model.
    scaled : bool, default=False
        Whether stored values are multiplied by the scale and added to the offset of their band.
    class_names : dict or sequence of str, default=None
        Names of classes, by label or in the order of ``classes_``.
    colors : dict or sequence, default=None
        Colours of classes: "#rrggbb" or numbers from 0 to 255.
    max_memory_mb : int, default=256
        Memory for files that are read and written, GDAL's cache included.
    progress : callable, default=None
        Called with the number of pixels that are done, and of all.

    Returns
    -------
    DataArray, Dataset, path or dict of paths
        ``output`` if it is given. Otherwise labels, lazy if the scene is; with several outputs, a
        Dataset with ``label``, ``probability`` (class, y, x) and ``confidence``. Classes that are
        whole numbers keep their values; text is coded 1 to k, with the attributes ``flag_values``
        and ``flag_meanings`` of the CF conventions.

    Examples
    --------
    >>> import xarray as xr
    >>> from sklearn.svm import SVC
    >>> import limes
    >>> rng = np.random.default_rng(0)
    >>> pixels = rng.uniform(1, 100, size=(300, 2)).astype("uint8")
    >>> svc = SVC(gamma=1e-3).fit(pixels, 1 + (pixels[:, 0] > pixels[:, 1]))
    >>> fast = limes.accelerate(svc, scheme="exact")
    >>> scene = xr.DataArray([[[10, 0]], [[90, 0]]], dims=("band", "y", "x"))
    >>> limes.predict_raster(fast, scene.astype("uint8"), nodata_input=0).values
    array([[1, 0]], dtype=uint8)
    """
    if not hasattr(fast, "model_"):
        raise TypeError(
            f"fast must be a fitted BordersClassifier, got {fast!r:.60}: call limes.accelerate."
        )
    check_no_encoder(fast, "a scene")
    outputs = [
        "label",
        *(["probability"] if proba else []),
        *(["confidence"] if confidence else []),
    ]
    if len(outputs) > 1 and not fast.model_.has_probabilities:
        raise ValueError(NO_PROBABILITIES)
    if bad_bands not in ("error", "drop"):
        raise ValueError(f"bad_bands must be 'error' or 'drop', got {bad_bands!r}.")
    is_number = isinstance(max_memory_mb, Real) and math.isfinite(max_memory_mb)
    if not is_number or max_memory_mb < MIN_MEMORY_MB:
        raise ValueError(f"max_memory_mb must be {MIN_MEMORY_MB} or more, got {max_memory_mb!r}.")
    if not (progress is None or callable(progress)):
        raise TypeError(f"progress must be a function or None, got {progress!r:.60}.")
    codes = code_classes(
        fast.model_.classes, nodata=nodata_output, names=class_names, colours=colors
    )
    targets = _targets(output, outputs, scene, mask)
    limits = limited_cache(max_memory_mb) if is_path(scene) or targets else nullcontext()
    with limits, open_scene(scene, band_dim=band_dim, nodata=nodata_input) as opened:
        used = _match_bands(
            opened, fast, by_name=match_by_name, drop=bad_bands == "drop", scaled=scaled
        )
        if targets is not None and isinstance(used, ArrayScene):
            used = _upright(used)
        pixels = ValidPixels(used.bands, scaled=scaled)
        is_lazy = isinstance(used, ArrayScene) and any(band.source.chunks for band in used.bands)
        classifier = PixelClassifier(
            fast.model_,
            codes,
            pixels,
            outputs=outputs,
            n_jobs=1 if is_lazy and targets is None else fast.n_jobs,
        )
        if targets is None and isinstance(used, ArrayScene):
            found = _predict_arrays(used, classifier, outputs, mask)
            if not is_lazy:
                _check_seen(used, pixels)
            return _as_result(found, codes, fast.model_.classes, outputs)
        with _open_mask(mask, used, nodata_input) as read_mask:
            places = block_places(
                used, _block_pixels(classifier, used, outputs, max_memory_mb), TILE
            )
            blocks = _predict_blocks(used, classifier, read_mask, places, progress)
            if targets is None:
                found = _collect(used, classifier, outputs, blocks)
                return _as_result(found, codes, fast.model_.classes, outputs)
            _write(fast, used, classifier, codes, targets, blocks)
            return output


def predict_array(fast: "BordersClassifier", method: str, X: Any) -> Any:
    """Return what a method predicts for a raster or its path, or for rows in an xarray object."""
    if not is_path(X) and getattr(X, "ndim", 0) == 2 and "band" not in X.dims:
        return getattr(fast, method)(X.data)
    if method == "predict":
        return predict_raster(fast, X)
    if method == "predict_proba":
        return predict_raster(fast, X, proba=True)["probability"]
    raise TypeError(f"{method} takes rows, got a raster: use predict or predict_proba.")


def sample_rows(
    X: Any, n_rows: int, seed: np.random.SeedSequence, *, names: Any = None, nodata: Any = ...
) -> Any:
    """Return a uniform sample of the valid pixels of a scene, read by the block."""
    rng = np.random.default_rng(seed)
    if not is_path(X) and getattr(X, "ndim", 0) == 2 and "band" not in X.dims:
        rows = X.values
        return rows[np.sort(rng.choice(len(rows), min(n_rows, len(rows)), replace=False))]
    with open_scene(X, nodata=nodata) as scene:
        if names is not None and scene.names is not None:
            scene = scene.select(_find_names(scene, list(names)))
        pixels = ValidPixels(scene.bands)
        keys = np.empty(0)
        sample = np.empty((0, len(scene.bands)), dtype=pixels.row_type)
        for place in block_places(scene, MAX_BLOCK_PIXELS, TILE):
            blocks = scene.read(place)
            rows = pixels.rows(blocks, pixels.find(blocks, scene.read_mask(place)))
            # The rows with the lowest of random keys are a sample of all.
            drawn = rng.random(len(rows))
            is_low = drawn < (keys.max() if len(keys) == n_rows else np.inf)
            keys, sample = np.append(keys, drawn[is_low]), np.concatenate([sample, rows[is_low]])
            if len(keys) > n_rows:
                lowest = np.argpartition(keys, n_rows)[:n_rows]
                keys, sample = keys[lowest], sample[lowest]
        _check_seen(scene, pixels)
    if not len(sample):
        raise ValueError(f"{scene.title}: expected valid pixels, got none.")
    if names is None or len(names) != sample.shape[1]:
        return sample
    import pandas

    return pandas.DataFrame(sample, columns=list(names))


def _targets(output: Any, outputs: list[str], scene: Any, mask: Any) -> dict[str, Path] | None:
    """Return the file of each output, or None; raise if one would be overwritten by another."""
    if output is None:
        return None
    given = output if isinstance(output, Mapping) else {"label": output}
    if set(given) != set(outputs):
        raise ValueError(
            f"output must be paths for {', '.join(map(repr, outputs))}, got {output!r:.200}: give "
            "a dict with these keys."
        )
    targets = {name: Path(given[name]) for name in outputs}
    inputs = paths_of(scene) if is_path(scene) else []
    inputs += [Path(mask)] if isinstance(mask, str | os.PathLike) else []
    known = {os.path.realpath(path) for path in inputs}
    for path in targets.values():
        if os.path.realpath(path) in known:
            raise ValueError(
                f"output must not be a file that is read or written already, got {str(path)!r}: "
                "choose another name."
            )
        known.add(os.path.realpath(path))
        if path.is_dir():
            raise IsADirectoryError(21, "expected a file to write, got a folder", str(path))
        if not path.absolute().parent.is_dir():
            raise FileNotFoundError(2, "No such folder", str(path.parent))
    return targets


def _match_bands(
    scene: Scene, fast: "BordersClassifier", *, by_name: bool, drop: bool, scaled: bool
) -> Scene:
    """Return the scene with the bands of the model, in its order."""
    names = getattr(fast, "feature_names_in_", None)
    if by_name and names is not None and scene.names is not None:
        return scene.select(_find_names(scene, list(names)))
    n_features, n_bands = fast.n_features_in_, len(scene.bands)
    if n_bands == n_features:
        return scene
    values = [k for k, band in enumerate(scene.bands) if not band.is_alpha]
    if isinstance(scene, FileScene) and len(values) == n_features:
        masks = tuple(band for band in scene.bands if band.is_alpha)
        return replace(scene.select(values), masks=masks)
    empty = _empty_bands(scene) if n_bands > n_features else []
    if drop and n_bands - len(empty) == n_features:
        return scene.select([k for k in range(n_bands) if k not in empty])
    remark = f" (nodata everywhere: {scene.describe(empty)})" if empty else ""
    remedy = "; bad_bands='drop' leaves out such bands" if empty else ""
    raise ValueError(
        f"{scene.title}: expected {n_features} bands, as the model has features, got {n_bands}"
        f"{remark}: select the bands that the model was trained on{remedy}."
    )


def _find_names(scene: Scene, names: list[str]) -> list[int]:
    """Return the numbers of the bands with the names of features."""
    known = scene.names or []
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(
            f"{scene.title}: expected bands named {names!r:.200}, got {known!r:.200}: rename them, "
            "or give match_by_name=False to take them by position."
        )
    return [known.index(name) for name in names]


def _empty_bands(scene: Scene) -> list[int]:
    """Return the bands that are nodata everywhere; none for lazy arrays, which are not computed."""
    if any(getattr(band.source, "chunks", None) for band in scene.bands):
        return []
    pixels = ValidPixels(scene.bands)
    for place in block_places(scene, MAX_BLOCK_PIXELS, TILE):
        pixels.find(scene.read(place))
        if pixels.is_seen.all():
            break
    return np.flatnonzero(~pixels.is_seen).tolist()


def _check_seen(scene: Scene, pixels: ValidPixels) -> None:
    """Raise if a band that the model uses had no valid value anywhere."""
    if not pixels.is_seen.all() and all(scene.shape):
        empty = np.flatnonzero(~pixels.is_seen).tolist()
        raise ValueError(
            f"{scene.title}: expected values in every band, got only nodata in band "
            f"{scene.describe(empty)}: give the right nodata_input, or a model without them."
        )


def _predict_arrays(
    scene: ArrayScene, classifier: PixelClassifier, outputs: list[str], mask: Any
) -> list["xarray.DataArray"]:
    """Return the outputs for xarray objects, lazily where these are lazy."""
    import xarray

    arrays = [band.source for band in scene.bands]
    if mask is not None:
        arrays.append(_mask_array(mask, arrays[0]))
    sizes = {"class": classifier.n_classes} if "probability" in outputs else {}
    found = xarray.apply_ufunc(
        _predict_in_parts,
        *arrays,
        kwargs={"classifier": classifier, "n_bands": len(scene.bands), "outputs": tuple(outputs)},
        keep_attrs=True,  # those of the coordinates: the CRS is one
        output_core_dims=[["class"] if name == "probability" else [] for name in outputs],
        dask="parallelized",
        output_dtypes=[classifier.output_type(name) for name in outputs],
        dask_gufunc_kwargs={"output_sizes": sizes},
    )
    found = list(found) if len(outputs) > 1 else [found]
    grid_mapping = arrays[0].encoding.get("grid_mapping")
    for array in found:
        array.attrs = {key: array.attrs[key] for key in KEPT_ATTRIBUTES if key in array.attrs}
        if grid_mapping is not None:
            array.encoding["grid_mapping"] = grid_mapping
    return found


def _predict_in_parts(
    *blocks: NDArray[Any], classifier: PixelClassifier, n_bands: int, outputs: tuple[str, ...]
) -> Any:
    """Predict blocks of arrays of any size in parts, so that little memory is taken."""
    shape = np.broadcast_shapes(*(block.shape for block in blocks))
    blocks = tuple(np.broadcast_to(block, shape) for block in blocks)
    found = [
        np.empty(
            (*shape, classifier.n_classes) if name == "probability" else shape,
            dtype=classifier.output_type(name),
        )
        for name in outputs
    ]
    for place in split_shape(shape, MAX_BLOCK_PIXELS):
        parts = [block[place] for block in blocks]
        is_valid = parts[n_bands] if len(parts) > n_bands else None
        for array, part in zip(found, classifier(parts[:n_bands], is_valid), strict=True):
            array[place] = part
    return tuple(found) if len(found) > 1 else found[0]


def _mask_array(mask: Any, like: "xarray.DataArray") -> "xarray.DataArray":
    """Return a mask as an array that is True where pixels are valid."""
    import xarray

    if isinstance(mask, str | os.PathLike):
        with open_scene(mask) as opened:
            _check_place(opened, like)
            values = _read_mask(opened, tuple(slice(0, size) for size in opened.shape))
        own = ("y", "x") if {"y", "x"} <= set(like.dims) else like.dims[-2:]
        mask = xarray.DataArray(values, dims=own)
    if isinstance(mask, xarray.DataArray):
        extra = [dim for dim in mask.dims if dim not in like.dims]
        mask = mask.squeeze([dim for dim in extra if mask.sizes[dim] == 1], drop=True)
        dims, shape = mask.dims, mask.shape
        data = mask.data
        _check_coordinates(mask, like)
        _check_place(mask, like)
    else:
        data = np.asarray(mask)
        shape = data.shape
        dims = like.dims[like.ndim - len(shape) :]
    if set(dims) - set(like.dims) or any(
        like.sizes[dim] != n for dim, n in zip(dims, shape, strict=True)
    ):
        raise ValueError(
            f"mask must have the shape of the scene, {dict(like.sizes)!r}, got {shape!r}."
        )
    is_valid = (data != 0) & ~np.isnan(data)
    return xarray.DataArray(is_valid, dims=dims)


def _check_coordinates(mask: "xarray.DataArray", like: "xarray.DataArray") -> None:
    """Raise if a mask of the scene's shape is of another place."""
    for dim in mask.dims:
        if dim not in mask.indexes or dim not in like.indexes or mask.sizes[dim] != like.sizes[dim]:
            continue
        own, other = mask.indexes[dim], like.indexes[dim]
        is_number = own.dtype.kind in "iuf" and other.dtype.kind in "iuf"
        if not (np.allclose(own, other, rtol=1e-9) if is_number else own.equals(other)):
            raise ValueError(
                f"mask must have the coordinates of the scene along {dim!r}, got {own[0]!r} to "
                f"{own[-1]!r}, not {other[0]!r} to {other[-1]!r}: align it with reindex_like, or "
                "give its values to take it by position."
            )


def _check_place(mask: Any, scene: Any) -> None:
    """Raise if a mask of the scene's shape is in another projection or of another place.

    A mask without either is taken by position.
    """
    if mask.shape[-2:] != scene.shape[-2:]:
        return  # another message says that
    (crs, place), (expected_crs, expected) = _place_of(mask), _place_of(scene)
    remedy = "warp it to the grid of the scene, or give its values to take it by position."
    if crs is not None and expected_crs is not None and crs != expected_crs:
        raise ValueError(
            f"mask must have the CRS of the scene, {expected_crs!s:.80}, got {crs!s:.80}: {remedy}"
        )
    if place is None or expected is None:
        return
    if not place.almost_equals(expected, 1e-6 * abs(expected.a)):
        raise ValueError(
            f"mask must have the transform of the scene, {tuple(expected)[:6]}, got "
            f"{tuple(place)[:6]}: {remedy}"
        )


def _place_of(raster: Any) -> tuple[Any, Any]:
    """Return the CRS and the transform of a scene or DataArray, None where it has none."""
    if isinstance(raster, FileScene):
        raster = raster.files[0]
        crs, transform = raster.crs, raster.transform
    elif hasattr(raster, "dims"):
        import rioxarray  # noqa: F401 - adds the accessor `rio`
        from rioxarray.exceptions import RioXarrayError

        try:
            crs, transform = raster.rio.crs, raster.rio.transform()
        except RioXarrayError:  # its dimensions have other names
            return None, None
    else:
        return None, None
    return crs, None if transform.is_identity else transform


@contextmanager
def _open_mask(mask: Any, scene: Scene, nodata: Any) -> Iterator[Mask]:
    """Yield a function from a block to where it is valid: by a mask, and by that of the scene."""
    with ExitStack() as stack:
        if mask is None:
            yield scene.read_mask
            return
        if isinstance(mask, str | os.PathLike):
            opened: Any = stack.enter_context(open_scene(mask))
        elif isinstance(scene, FileScene):
            opened = _upright_mask(mask)
        else:
            like = scene.bands[0].source
            found = _mask_array(mask, like)
            opened = found.broadcast_like(like).transpose(*like.dims).values
        if opened.shape != scene.shape:
            raise ValueError(
                f"mask must have the shape of the scene, {scene.shape!r}, got {opened.shape!r}."
            )
        like = scene if isinstance(scene, FileScene) else scene.bands[0].source
        _check_place(opened if isinstance(opened, Scene) else mask, like)

        def read(place: Place) -> NDArray[np.bool_]:
            if isinstance(opened, Scene):
                is_valid = _read_mask(opened, place)
            else:
                block = opened[place]
                is_valid = (block != 0) & ~np.isnan(block)
            own = scene.read_mask(place)
            return is_valid if own is None else is_valid & own

        yield read


def _read_mask(mask: Scene, place: Place) -> NDArray[np.bool_]:
    """Return where the first band of a mask is neither zero nor nodata."""
    block = mask.read(place)[0]
    return ValidPixels(mask.bands[:1]).find([block]) & (block != 0)


def _upright_mask(mask: Any) -> NDArray[Any]:
    """Return a mask of a file as an array in the order of a file."""
    if hasattr(mask, "dims"):
        import rioxarray  # noqa: F401 - adds the accessor `rio`

        mask = mask.transpose(..., mask.rio.y_dim, mask.rio.x_dim).values
    array = np.asarray(mask)
    while array.ndim > 2 and len(array) == 1:
        array = array[0]
    return array


def _block_pixels(
    classifier: PixelClassifier, scene: Scene, outputs: list[str], max_memory_mb: int
) -> int:
    """Return how many pixels of a block take a share of the memory."""
    n_stored = sum(band.dtype.itemsize for band in scene.bands)
    n_bytes = n_stored + len(scene.bands) * classifier.pixels.row_type.itemsize + 8
    if len(outputs) > 1:
        n_bytes += 32 * classifier.n_classes + 16
    return max(TILE, min(MAX_BLOCK_PIXELS, int(BLOCK_SHARE * max_memory_mb * 1e6 / n_bytes)))


def _predict_blocks(
    scene: Scene,
    classifier: PixelClassifier,
    read_mask: Mask,
    places: list[Place],
    progress: Callable[[int, int], None] | None,
) -> Iterator[tuple[Place, list[NDArray[Any]]]]:
    """Yield the outputs of each block."""
    n_done, n_all = 0, math.prod(scene.shape)
    for place in places:
        yield place, classifier(scene.read(place), read_mask(place))
        n_done += math.prod(part.stop - part.start for part in place)
        if progress is not None:
            progress(n_done, n_all)
    _check_seen(scene, classifier.pixels)


def _collect(
    scene: FileScene | Scene,
    classifier: PixelClassifier,
    outputs: list[str],
    blocks: Iterator[tuple[Place, list[NDArray[Any]]]],
) -> list["xarray.DataArray"]:
    """Return the outputs of a file in memory, with its coordinates."""
    import rioxarray
    import xarray

    found = [
        np.empty(
            (*scene.shape, classifier.n_classes) if name == "probability" else scene.shape,
            dtype=classifier.output_type(name),
        )
        for name in outputs
    ]
    for place, parts in blocks:
        for array, part in zip(found, parts, strict=True):
            array[place] = part
    assert isinstance(scene, FileScene)
    opened: Any = rioxarray.open_rasterio(scene.files[0].name)
    like = opened.isel(band=0, drop=True)
    opened.close()
    dims, coords = like.dims, dict(like.coords)
    return [
        xarray.DataArray(array, dims=(*dims, "class") if array.ndim == 3 else dims, coords=coords)
        for array in found
    ]


def _as_result(
    found: list["xarray.DataArray"], codes: ClassCodes, classes: Labels, outputs: list[str]
) -> Any:
    """Return one array, or a Dataset of several, with attributes."""
    import xarray

    arrays = dict(zip(outputs, found, strict=True))
    label = arrays["label"].rename("label").assign_attrs(codes.attributes)
    if len(arrays) == 1:
        return label
    arrays["label"] = label
    if "probability" in arrays:
        by_class = arrays["probability"].transpose("class", ...).assign_coords({"class": classes})
        arrays["probability"] = by_class.assign_attrs(long_name="probability of the class")
    if "confidence" in arrays:
        arrays["confidence"] = arrays["confidence"].assign_attrs(
            long_name="difference between the two largest probabilities"
        )
    return xarray.Dataset(arrays)


def _write(
    fast: "BordersClassifier",
    scene: Scene,
    classifier: PixelClassifier,
    codes: ClassCodes,
    targets: dict[str, Path],
    blocks: Iterator[tuple[Place, list[NDArray[Any]]]],
) -> None:
    """Write the outputs by the block; none appears before the last block is written."""
    grid, tags = _grid_of(scene), _tags_of(fast, classifier.digest)
    with ExitStack() as renames, ExitStack() as stack:
        files = []
        for name, path in targets.items():
            is_label, is_proba = name == "label", name == "probability"
            files.append(
                stack.enter_context(
                    create_geotiff(
                        path,
                        grid,
                        dtype=classifier.output_type(name),
                        nodata=codes.nodata if is_label else math.nan,
                        n_bands=classifier.n_classes if is_proba else 1,
                        codes=codes if is_label else None,
                        names=codes.names if is_proba else ["class" if is_label else name],
                        tags=tags,
                        renames=renames,
                    )
                )
            )
        for place, parts in blocks:
            for file, part in zip(files, parts, strict=True):
                file.write(np.moveaxis(part, -1, 0) if part.ndim == 3 else part[None], place)


def _upright(scene: ArrayScene) -> ArrayScene:
    """Return a scene of two dimensions with these in the order of a file."""
    import rioxarray  # noqa: F401 - adds the accessor `rio`

    first = scene.bands[0].source
    dims = (first.rio.y_dim, first.rio.x_dim)
    others = {dim: 0 for dim in first.dims if dim not in dims}
    if any(first.sizes[dim] != 1 for dim in others):
        raise ValueError(
            f"a scene must have two dimensions and bands to be written, got {first.dims!r}: select "
            "one place along the others, or leave out output."
        )
    bands = tuple(
        replace(band, source=band.source.isel(others, drop=True).transpose(*dims))
        for band in scene.bands
    )
    return replace(scene, bands=bands, shape=bands[0].source.shape)


def _grid_of(scene: Scene) -> dict[str, Any]:
    """Return where the pixels of a scene are."""
    if isinstance(scene, FileScene):
        file = scene.files[0]
        height, width = file.shape
        grid = {"height": height, "width": width, "crs": file.crs, "transform": file.transform}
        gcps, crs = file.gcps
        if gcps:
            grid["gcps"] = (gcps, crs)
        if file.transform.is_identity:
            del grid["transform"]
        return {**grid, "rpcs": file.rpcs}
    array = scene.bands[0].source
    height, width = array.shape
    return {
        "height": height,
        "width": width,
        "crs": array.rio.crs,
        "transform": array.rio.transform(),
        "gcps": (array.rio.get_gcps(), array.rio.crs) if array.rio.get_gcps() else None,
    }


def _tags_of(fast: "BordersClassifier", digest: str) -> dict[str, str]:
    """Return tags that say which model made a map, and how well it agrees with its source."""
    import limes

    return {
        "LIMES_VERSION": limes.__version__,
        "LIMES_MODEL_SHA256": digest,
        "LIMES_AGREEMENT": f"{fast.agreement_:.4f}",
        "LIMES_COVERAGE_AGREEMENT": f"{fast.coverage_agreement_:.4f}",
    }
