"""Scenes: bands with names and nodata values, from files or xarray objects, read by the block."""

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray

Place: TypeAlias = tuple[slice, ...]
# Attributes in which xarray objects keep their nodata value, as in the CF conventions.
FILL_ATTRIBUTES = ("_FillValue", "missing_value", "nodata")
# Share of the memory for GDAL's cache of blocks.
CACHE_SHARE = 0.125
RASTER_EXTRA = (
    "rasters need the packages xarray, rioxarray and rasterio: pip install limes[raster]."
)


@dataclass(frozen=True, eq=False)
class Band:
    """One band of a scene: where it is, and how its stored values are meant."""

    # A DataArray, or the number of a file and of a band in it (from 1).
    source: Any
    dtype: np.dtype[Any]
    name: str | None = None
    nodata: float | None = None
    scale: float = 1.0
    offset: float = 0.0
    # Whether a file says that the band is not of values but of opacity.
    is_alpha: bool = False


@dataclass(frozen=True, eq=False)
class Scene:
    """Bands of equal shape that are read by the block."""

    title: str
    bands: tuple[Band, ...]
    shape: tuple[int, ...]
    # Height and width of the blocks in which a file is stored; None for arrays.
    block_shape: tuple[int, int] | None = None

    @property
    def names(self) -> list[str] | None:
        """Names of the bands, if all have one."""
        names = [band.name for band in self.bands]
        return None if None in names else [str(name) for name in names]

    def select(self, numbers: Sequence[int]) -> Self:
        """Return the scene with some of its bands, in this order."""
        return replace(self, bands=tuple(self.bands[number] for number in numbers))

    def read(self, place: Place) -> list[NDArray[Any]]:
        """Return a block of each band."""
        raise NotImplementedError

    def read_mask(self, place: Place) -> NDArray[np.bool_] | None:
        """Return where a block is valid by the scene's own mask; None if it has none."""
        return None

    def describe(self, numbers: Sequence[int]) -> str:
        """Return bands for a message: their names, or their numbers from 1."""
        return ", ".join(
            str(number + 1) if (name := self.bands[number].name) is None else repr(name)
            for number in numbers
        )


@dataclass(frozen=True, eq=False)
class FileScene(Scene):
    """Bands of one raster file, or of several files with the same grid."""

    files: tuple[Any, ...] = ()
    has_mask: bool = False
    # Bands of opacity that are masks, not values.
    masks: tuple[Band, ...] = ()

    def read(self, place: Place) -> list[NDArray[Any]]:
        """Return a block of each band, read from each file at once."""
        window = as_window(place)
        found: list[Any] = [None] * len(self.bands)
        for number, file in enumerate(self.files):
            wanted = [k for k, band in enumerate(self.bands) if band.source[0] == number]
            if wanted:
                with naming_file(file.name):
                    blocks = file.read([self.bands[k].source[1] for k in wanted], window=window)
                for k, block in zip(wanted, blocks, strict=True):
                    found[k] = block
        return found

    def read_mask(self, place: Place) -> NDArray[np.bool_] | None:
        """Return where the masks of the files, if they have any, are set."""
        window = as_window(place)
        masks = []
        for number, file in enumerate(self.files):
            with naming_file(file.name):
                own = [band.source[1] for band in self.masks if band.source[0] == number]
                masks += [file.read(index, window=window) for index in own]
                if self.has_mask:
                    masks.append(file.read_masks(1, window=window))
        return np.logical_and.reduce([mask != 0 for mask in masks]) if masks else None


@dataclass(frozen=True, eq=False)
class ArrayScene(Scene):
    """Bands that are xarray objects with the same dimensions, perhaps lazy."""

    def read(self, place: Place) -> list[NDArray[Any]]:
        """Return a block of each band, computed."""
        from dask.base import compute

        blocks = [band.source[place].data for band in self.bands]
        return [np.asarray(block) for block in compute(*blocks)]


@contextmanager
def limited_cache(max_memory_mb: float) -> Iterator[None]:
    """Limit GDAL's cache of blocks, which is 5 % of the computer's memory by default."""
    try:
        import rasterio
    except ImportError as error:
        raise ImportError(RASTER_EXTRA) from error
    with rasterio.Env(GDAL_CACHEMAX=int(CACHE_SHARE * max_memory_mb * 1e6)):
        yield


@contextmanager
def open_scene(scene: Any, *, band_dim: str = "band", nodata: Any = ...) -> Iterator[Scene]:
    """Open a path, a sequence of paths (a stack of bands), a DataArray or a Dataset."""
    with ExitStack() as stack:
        if isinstance(scene, str | os.PathLike):
            opened: Scene = _open_files([scene], stack)
        elif isinstance(scene, Sequence):
            opened = _open_files(list(scene), stack)
        else:
            opened = _open_array(scene, band_dim)
        yield opened if nodata is ... else _with_nodata(opened, nodata)


def is_path(scene: Any) -> bool:
    """Return whether a scene is one file, or a stack of files."""
    return isinstance(scene, str | os.PathLike | Sequence)


def paths_of(scene: Any) -> list[Path]:
    """Return the files of a scene that is given by paths."""
    listed = [scene] if isinstance(scene, str | os.PathLike) else list(scene)
    return [Path(path) for path in listed]


def with_sources(paths: Sequence[Path]) -> list[Path]:
    """Return files with those whose pixels they show: the sources of virtual rasters, masks.

    Files of statistics and overviews are left out, as are those that cannot be opened.
    """
    import rasterio

    found: list[Path] = []
    waiting = list(paths)
    while waiting:
        path = waiting.pop(0)
        if path in found:
            continue
        found.append(path)
        with suppress(rasterio.errors.RasterioError, OSError), warnings.catch_warnings():
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            with rasterio.open(path) as file:
                names = [name for name in file.files if not name.endswith((".aux.xml", ".ovr"))]
            waiting += [Path(name) for name in names[1:] if Path(name).is_file()]
    return found


@contextmanager
def naming_file(path: Any) -> Iterator[None]:
    """Turn an error of rasterio into an OSError that names the file."""
    import rasterio.errors

    try:
        yield
    except rasterio.errors.RasterioError as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise OSError(
            f"{os.fspath(path)}: expected a complete raster, got one that cannot be read "
            f"({str(cause).rstrip('.'):.200}): copy or make it again."
        ) from None


def _open_files(paths: list[Any], stack: ExitStack) -> FileScene:
    """Open files of the same grid; their bands are joined in order."""
    try:
        import rasterio
        from rasterio.enums import ColorInterp, MaskFlags
    except ImportError as error:
        raise ImportError(RASTER_EXTRA) from error
    if not paths:
        raise ValueError("scene must have at least one file, got an empty sequence.")
    files = []
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(
                f"a stack must be of paths, got {type(path).__name__}: join arrays with "
                'xarray.concat(arrays, "band").'
            )
        name = os.fspath(path)
        if "://" not in name and not name.startswith("/vsi") and not Path(name).exists():
            raise FileNotFoundError(2, "No such file or directory", name)
        with naming_file(name), warnings.catch_warnings():
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            files.append(stack.enter_context(rasterio.open(name)))
        if not files[-1].count:
            raise ValueError(
                f"{name}: expected bands, got {len(files[-1].subdatasets)} datasets inside: give "
                "the names of those, as gdalinfo lists them."
            )
        _check_grid(files[0], files[-1])
    bands = tuple(
        Band(
            (number, index), np.dtype(dtype), name, nodata, scale, offset, kind == ColorInterp.alpha
        )
        for number, file in enumerate(files)
        for index, dtype, name, nodata, scale, offset, kind in zip(
            file.indexes,
            file.dtypes,
            file.descriptions,
            file.nodatavals,
            file.scales,
            file.offsets,
            file.colorinterp,
            strict=True,
        )
    )
    flags = [file.mask_flag_enums[0] for file in files]
    has_mask = any(MaskFlags.per_dataset in flag and MaskFlags.alpha not in flag for flag in flags)
    title = os.fspath(paths[0]) if len(paths) == 1 else f"{os.fspath(paths[0])} ..."
    shapes = [shape for file in files for shape in file.block_shapes]
    block = (max(shape[0] for shape in shapes), max(shape[1] for shape in shapes))
    return FileScene(title, bands, files[0].shape, block, tuple(files), has_mask)


def _check_grid(first: Any, other: Any) -> None:
    """Raise unless two files have the same shape, projection and place."""
    facts = {"shape": lambda file: file.shape, "CRS": lambda file: file.crs}
    for name, read in facts.items():
        if read(first) != read(other):
            raise ValueError(
                f"{other.name}: expected the {name} of {first.name}, {_short(read(first))}, got "
                f"{_short(read(other))}: warp the files of a stack to one grid."
            )
    if not first.transform.almost_equals(other.transform, 1e-6 * abs(first.transform.a)):
        raise ValueError(
            f"{other.name}: expected the transform of {first.name}, {tuple(first.transform)[:6]}, "
            f"got {tuple(other.transform)[:6]}: warp the files of a stack to one grid."
        )


def _short(value: Any) -> str:
    """Return a value for a message; a CRS by its code if it has one."""
    return f"{value!s:.80}"


def _open_array(scene: Any, band_dim: str) -> ArrayScene:
    """Return the bands of a DataArray along a dimension, or the variables of a Dataset."""
    try:
        import xarray
    except ImportError as error:
        raise ImportError(RASTER_EXTRA) from error
    if isinstance(scene, xarray.Dataset):
        arrays, names = _bands_of_dataset(scene, band_dim)
    elif isinstance(scene, xarray.DataArray) and band_dim in scene.dims:
        names = _band_names(scene, band_dim)
        arrays = [scene.isel({band_dim: k}, drop=True) for k in range(scene.sizes[band_dim])]
    elif isinstance(scene, xarray.DataArray):
        raise ValueError(
            f"scene must have the dimension band_dim={band_dim!r}, got {scene.dims!r}: name its "
            "bands' dimension with band_dim."
        )
    else:
        raise TypeError(
            "scene must be a path, a sequence of paths, an xarray DataArray or Dataset, got "
            f"{type(scene).__name__}."
        )
    if not arrays:
        raise ValueError("scene must have at least one band, got none.")
    try:
        arrays = list(xarray.broadcast(*xarray.align(*arrays, join="exact", copy=False)))
    except ValueError as error:
        raise ValueError(
            "the bands of a scene must have the same coordinates, got others "
            f"({str(error).splitlines()[0]:.200}): align them first."
        ) from None
    bands = tuple(_array_band(array, name) for array, name in zip(arrays, names, strict=True))
    title = str(getattr(scene, "name", None) or "scene")
    return ArrayScene(title, bands, arrays[0].shape)


def _bands_of_dataset(
    scene: "xarray.Dataset", band_dim: str
) -> tuple[list["xarray.DataArray"], list[Any]]:
    """Return the variables as bands; a variable with a dimension of bands has several."""
    arrays: list[Any] = []
    names: list[Any] = []
    for name, variable in scene.data_vars.items():
        if not variable.dims:
            continue  # the CRS, as a variable
        variable = variable.assign_attrs({**scene.attrs, **variable.attrs})
        if band_dim not in variable.dims:
            arrays.append(variable)
            names.append(str(name))
            continue
        size = variable.sizes[band_dim]
        arrays += [variable.isel({band_dim: k}, drop=True) for k in range(size)]
        own = _band_names(variable, band_dim)
        names += [str(name)] if size == 1 else own
    return arrays, names


def _band_names(scene: "xarray.DataArray", band_dim: str) -> list[str | None]:
    """Return the names of bands: those of a text coordinate, or those in ``long_name``."""
    n_bands = scene.sizes[band_dim]
    if band_dim in scene.coords and scene.coords[band_dim].dtype.kind in "UOT":
        return [str(name) for name in scene.coords[band_dim].values]
    long_name = scene.attrs.get("long_name")
    if isinstance(long_name, tuple | list) and len(long_name) == n_bands:
        return [str(name) for name in long_name]
    return [None] * n_bands


def _array_band(array: "xarray.DataArray", name: str | None) -> Band:
    """Return a band with the nodata value and scale of its attributes."""
    fills = [array.attrs[key] for key in FILL_ATTRIBUTES if key in array.attrs]
    nodata = float(np.ravel(fills[0])[0]) if fills else None
    scale, offset = array.attrs.get("scale_factor", 1.0), array.attrs.get("add_offset", 0.0)
    return Band(array, array.dtype, name, nodata, float(scale), float(offset))


def _with_nodata(scene: Scene, nodata: Any) -> Scene:
    """Return the scene with the nodata values that a user gives."""
    n_bands = len(scene.bands)
    values: list[Any]
    if nodata is None or np.isscalar(nodata):
        values = [nodata] * n_bands
    elif isinstance(nodata, Mapping):
        known = {band.name for band in scene.bands}
        unknown = [name for name in nodata if name not in known]
        if unknown:
            raise ValueError(
                f"nodata_input must have names of bands, {sorted(map(str, known))!r:.200}, got "
                f"{unknown[0]!r}."
            )
        values = [nodata.get(band.name) for band in scene.bands]
    else:
        values = list(nodata) if isinstance(nodata, Sequence | np.ndarray) else [nodata]
        if len(values) != n_bands:
            raise ValueError(
                f"nodata_input must have one value for each of {n_bands} bands, got {len(values)}."
            )
    wrong = [value for value in values if not (value is None or isinstance(value, Real))]
    if wrong:
        raise TypeError(f"nodata_input must be numbers or None, got {wrong[0]!r:.60}.")
    given = [None if value is None else float(value) for value in values]
    pairs = zip(scene.bands, given, strict=True)
    return replace(scene, bands=tuple(replace(band, nodata=value) for band, value in pairs))


def block_places(scene: Scene, max_pixels: int, tile: int) -> list[Place]:
    """Return the blocks in which a scene is read: whole tiles of its file and of the output.

    A file that is stored in lines is read in lines of full width; one in tiles, in tiles. `tile`
    is the height and width of the tiles of the output.
    """
    if scene.block_shape is None or len(scene.shape) != 2:
        return list(split_shape(scene.shape, max_pixels))
    height, width = scene.shape
    block_height, block_width = scene.block_shape
    if block_width >= width:
        step_width = width
        step_height = max(1, max_pixels // width)
        for unit in (math.lcm(tile, block_height), tile, block_height):
            if unit <= step_height:
                step_height = step_height // unit * unit
                break
    else:
        step_height = _common_step(tile, block_height, max_pixels // tile)
        unit = _common_step(tile, block_width, max_pixels // step_height)
        step_width = max(unit, max_pixels // step_height // unit * unit)
        if step_width >= width:
            rows = max_pixels // width // step_height
            step_height, step_width = max(1, rows) * step_height, width
    return [
        (slice(top, min(top + step_height, height)), slice(left, min(left + step_width, width)))
        for top in range(0, height, step_height)
        for left in range(0, width, step_width)
    ]


def _common_step(tile: int, block: int, limit: int) -> int:
    """Return a multiple of the output's tile and of the file's blocks, if that is not too large."""
    common = math.lcm(tile, block)
    return common if common <= limit else tile


def split_shape(shape: Sequence[int], max_pixels: int) -> Iterator[Place]:
    """Yield slices that divide an array of any number of dimensions into parts.

    Examples
    --------
    >>> list(split_shape((3, 4), 8))
    [(slice(0, 2, None), slice(0, 4, None)), (slice(2, 3, None), slice(0, 4, None))]
    """
    if not shape:
        yield ()
        return
    rest = math.prod(shape[1:])
    step = max(1, max_pixels // max(rest, 1))
    for start in range(0, shape[0], step):
        first = slice(start, min(start + step, shape[0]))
        for others in split_shape(shape[1:], max(max_pixels // step, 1)):
            yield (first, *others)


def as_window(place: Place) -> Any:
    """Return a block as rasterio's window."""
    from rasterio.windows import Window

    rows, columns = place
    return Window(columns.start, rows.start, columns.stop - columns.start, rows.stop - rows.start)
