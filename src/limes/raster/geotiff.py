"""GeoTIFF files that are written whole or not at all, with colours and names of classes."""

import io
import os
import secrets
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from limes.atomic import atomic_paths
from limes.raster.labels import ClassCodes
from limes.raster.scene import RASTER_EXTRA, Place, as_window

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
) -> Iterator["GeoTIFF"]:
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
        output = own.enter_context(OutputFile(temporaries[-1], path))
        if codes is not None and has_names:
            with output.raising_errors(OSError):
                temporaries[0].write_text(_names_xml(codes), encoding="utf-8")
        with output.raising_errors(), warnings.catch_warnings():
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            with rasterio.open(
                output.name_for_gdal,
                "w",
                opener=output.opener,
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
                yield GeoTIFF(file, output)
        if not has_names:
            sidecar_path(path).unlink(missing_ok=True)


class GeoTIFF:
    """A GeoTIFF that is written by the block."""

    def __init__(self, file: Any, output: "OutputFile") -> None:
        self._file = file
        self._output = output

    def write(self, block: NDArray[Any], place: Place | None = None) -> None:
        """Write a block of shape (bands, rows, columns); without a place, all pixels."""
        with self._output.raising_errors():
            self._file.write(block, window=None if place is None else as_window(place))


class OutputFile(io.FileIO):
    """The file that GDAL writes to through Python; it keeps the first error until it is asked.

    If a write fails on a full disk, GDAL and libtiff print lines of their own, and raise nothing if
    it fails while the file is closed. Therefore they are told that all went well, and the error is
    raised here.
    """

    def __init__(self, temporary: Path, path: Path) -> None:
        super().__init__(temporary, "w+")
        # Not the name of the file, which rasterio would parse as an address. Each is in a folder of
        # its own, since some versions of rasterio keep one opener a folder.
        self.name_for_gdal = f"{secrets.token_hex(8)}/map.tif"
        self._path = path
        self._error: OSError | None = None

    def opener(self, name: str, mode: str = "rb", **_: Any) -> Any:
        """Return what GDAL writes to: this file, or memory for what it writes beside."""
        if not mode.startswith("w"):
            raise FileNotFoundError(2, "No such file or directory", name)
        return self if name.endswith(self.name_for_gdal) else io.BytesIO()

    def write(self, data: Any) -> int:
        """Write all bytes, or keep the error."""
        view = memoryview(data).cast("B")
        n_written = 0
        try:
            while n_written < len(view) and self._error is None:
                n_written += super().write(view[n_written:]) or 0
        except OSError as error:
            self._error = error
        if n_written < len(view):
            self.seek(len(view) - n_written, os.SEEK_CUR)
        return len(view)

    def close(self) -> None:
        """Close the file, or keep the error: network drives report some here."""
        try:
            super().close()
        except OSError as error:
            self._error = self._error or error

    @contextmanager
    def raising_errors(self, *kinds: type[Exception]) -> Iterator[None]:
        """Raise the error that was kept, or one of GDAL or of other kinds, with the map's name."""
        import rasterio.errors

        try:
            yield
            found: Exception | None = self._error
        except (rasterio.errors.RasterioError, *kinds) as error:
            found = self._error or error
        if found is None:
            return
        while isinstance(found.__cause__, Exception):
            found = found.__cause__
        reason = getattr(found, "strerror", None) or str(found).rstrip(".")
        raise OSError(
            f"{self._path}: writing failed ({reason:.200}); nothing was written: free space, or "
            "choose another folder."
        )


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
