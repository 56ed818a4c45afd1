"""GeoTIFF files: whole or not at all."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
import rasterio

from limes.raster.geotiff import create_geotiff
from limes.raster.labels import code_classes
from tests.raster.conftest import GRID

# A limit of the size of a file stands for a full disk: GDAL meets the same error of writing.
FULL_DISK = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from limes.raster.geotiff import create_geotiff
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
noise = np.random.default_rng(0).integers(0, 255, (1, 400, 400)).astype("u1")
try:
    size = {"height": 400, "width": 400}
    with create_geotiff(Path(sys.argv[1]), size, dtype="uint8", nodata=0) as file:
        file.write(noise)
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit of the size of a file")
@pytest.mark.parametrize("limit", [100, 50_000, 160_000])
def test_a_full_disk_leaves_nothing(tmp_path, limit):
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "map.tif"), str(limit)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.startswith(f"{tmp_path / 'map.tif'}: writing failed (")
    assert run.stdout.count("\n") == 1
    assert not run.stderr, "GDAL and libtiff print nothing"
    assert not list(tmp_path.iterdir())


def test_an_old_sidecar_is_removed_with_the_old_map(tmp_path):
    path = tmp_path / "map.tif"
    size = {"height": 3, "width": 4, **GRID}
    codes = code_classes(np.array(["crop", "tree"]))
    with create_geotiff(path, size, dtype="uint8", nodata=0, codes=codes) as file:
        file.write(np.ones((1, 3, 4), "u1"))
    assert (tmp_path / "map.tif.aux.xml").exists()
    with create_geotiff(path, size, dtype="float32", nodata=np.nan) as file:
        file.write(np.ones((1, 3, 4), "f4"))
    assert [p.name for p in tmp_path.iterdir()] == ["map.tif"]


def test_classes_below_zero_have_no_colours(tmp_path):
    path = tmp_path / "map.tif"
    codes = code_classes(np.array([-1, 1]))
    with create_geotiff(
        path, {"height": 3, "width": 4, **GRID}, dtype="int8", nodata=0, codes=codes
    ) as file:
        file.write(np.full((1, 3, 4), -1, "i1"))
    with rasterio.open(path) as file:
        assert (file.read() == -1).all()
        assert file.dtypes == ("int8",)


@pytest.mark.skipif(shutil.which("gdalinfo") is None, reason="gdalinfo is not installed")
def test_gdal_itself_finds_place_colours_and_names(tmp_path):
    path = tmp_path / "map.tif"
    codes = code_classes(np.array(["crop", "tree"]), colours=["#ff0000", "#00ff00"])
    size = {"height": 3, "width": 4, **GRID}
    with create_geotiff(path, size, dtype="uint8", nodata=0, codes=codes) as file:
        file.write(np.ones((1, 3, 4), "u1"))
    text = subprocess.run(["gdalinfo", path], capture_output=True, text=True, check=True).stdout
    for line in ("UTM zone 21N", "Origin = (717345", "NoData Value=0", "1: crop", "2: tree"):
        assert line in text
    assert "2: 0,255,0,255" in text
