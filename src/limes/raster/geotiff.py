"""GeoTIFF files that are written whole or not at all, with colours and names of classes."""

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from limes.atomic import atomic_paths
from limes.raster.labels import ClassCodes
from limes.raster.scene import RASTER_EXTRA

# Height and width of the tiles.
TILE = 256
# Types of which a GeoTIFF may have a colour table.
COLOUR_TYPES = (np.uint8, np.uint16)


@contextmanager
def create_geotiff(
    path: Path,
    grid: Mapping[str, Any],
    *,
    dtype: Any,
    nodata: float,
    n_bands: int = 1,
    codes: ClassCodes | None = None,
    names: list[str] | None = None,
    tags: Mapping[str, str] | None = None,
    renames: ExitStack | None = None,
) -> Iterator[Any]:
    """Open a GeoTIFF to write blocks to; it appears under its name when it is complete.

    `grid` has the height, width, CRS and transform, and ground control points or rational
    polynomial coefficients; `codes` the classes of a map of labels; `names` those of the bands.
    With `renames`, it appears when that is left, so that files that belong together are all
    complete before the first one appears.
    """
    try:
        import rasterio
    except ImportError as error:
        raise ImportError(RASTER_EXTRA) from error
    size = {key: grid[key] for key in ("height", "width", "crs", "transform") if key in grid}
    has_names = codes is not None and codes.values.dtype in COLOUR_TYPES
    # Names first: without them a map would be complete for those who look at it.
    targets = [sidecar_path(path), path] if has_names else [path]
    with ExitStack() as own:
        temporaries = (renames or own).enter_context(atomic_paths(*targets))
        temporary = temporaries[-1]
        try:
            with _raising_os_errors(path), warnings.catch_warnings():
                warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
                with rasterio.open(
                    temporary,
                    "w",
                    driver="GTiff",
                    **size,
                    count=n_bands,
                    dtype=dtype,
                    nodata=nodata,
                    tiled=True,
                    blockxsize=TILE,
                    blockysize=TILE,
                    compress="deflate",
                    interleave="band",
                    BIGTIFF="IF_SAFER",
                ) as file:
                    _describe(file, grid, codes, names, tags or {})
                    yield file
                _check_complete(temporary, path)
            if codes is not None and has_names:
                temporaries[0].write_text(_names_xml(codes), encoding="utf-8")
            else:
                sidecar_path(path).unlink(missing_ok=True)
        finally:
            Path(f"{temporary}.aux.xml").unlink(missing_ok=True)


def _describe(
    file: Any,
    grid: Mapping[str, Any],
    codes: ClassCodes | None,
    names: list[str] | None,
    tags: Mapping[str, str],
) -> None:
    """Write all but the pixels: places, tags, names and colours."""
    if grid.get("gcps"):
        file.gcps = grid["gcps"]
    if grid.get("rpcs") is not None:
        file.rpcs = grid["rpcs"]
    file.update_tags(**tags)
    for number, name in enumerate(names or [], start=1):
        file.set_band_description(number, name)
    if codes is not None and codes.values.dtype in COLOUR_TYPES:
        colours = dict(zip(codes.values.tolist(), codes.colours, strict=True))
        file.write_colormap(1, {**colours, int(codes.nodata): (0, 0, 0, 0)})


@contextmanager
def _raising_os_errors(path: Path) -> Iterator[None]:
    """Turn an error of rasterio while writing into an OSError that names the file."""
    import rasterio.errors

    try:
        yield
    except rasterio.errors.RasterioError as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise OSError(
            f"{path}: writing failed ({str(cause).rstrip('.'):.200}); nothing was written: free "
            "space, or choose another folder."
        ) from None


def _check_complete(temporary: Path, path: Path) -> None:
    """Raise unless all tiles are inside the file: GDAL only logs some errors of a full disk."""
    import rasterio

    n_bytes = temporary.stat().st_size
    end = 0
    with rasterio.open(temporary) as file:
        for band in file.indexes:
            for row, column in np.ndindex(-(-file.height // TILE), -(-file.width // TILE)):
                place = f"{column}_{row}"
                offset = file.get_tag_item(f"BLOCK_OFFSET_{place}", "TIFF", bidx=band)
                size = file.get_tag_item(f"BLOCK_SIZE_{place}", "TIFF", bidx=band)
                end = max(end, int(offset or n_bytes + 1) + int(size or 0))
    if end > n_bytes:
        raise OSError(
            f"{path}: writing failed (the file ends before its last tile); nothing was written: "
            "free space, or choose another folder."
        )


def sidecar_path(path: str | os.PathLike[str]) -> Path:
    """Return the file beside a raster in which GDAL and QGIS look for names of classes."""
    return Path(f"{os.fspath(path)}.aux.xml")


def _names_xml(codes: ClassCodes) -> str:
    """Return the names of classes as GDAL stores them, which rasterio cannot write."""
    names = dict(zip(codes.values.tolist(), codes.names, strict=True))
    lines = [
        f"      <Category>{escape(names.get(value, ''))}</Category>\n"
        for value in range(max(names) + 1)
    ]
    return (
        '<PAMDataset>\n  <PAMRasterBand band="1">\n    <CategoryNames>\n'
        f"{''.join(lines)}"
        "    </CategoryNames>\n  </PAMRasterBand>\n</PAMDataset>\n"
    )
