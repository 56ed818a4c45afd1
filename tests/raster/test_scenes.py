"""Two real scenes of Landsat, in the folder that LIMES_SCENES names."""

import os
from pathlib import Path

import numpy as np
import pytest
import rasterio
import rioxarray
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from limes import accelerate, predict_raster
from tests.conftest import quick_training

SCENES = Path(os.environ.get("LIMES_SCENES", "."))
pytestmark = pytest.mark.skipif(
    "LIMES_SCENES" not in os.environ, reason="LIMES_SCENES does not name the folder of the scenes"
)
LANDSAT7 = [SCENES / "landsat7" / f"lsat7_2000_{band}.tif" for band in (10, 20, 30, 40, 50, 70)]
LANDSAT8 = SCENES / "landsat8" / "scene.tif"


def read(paths):
    """Return all bands as float32, read by rasterio."""
    bands = []
    for path in paths:
        with rasterio.open(path) as file:
            bands += list(file.read().astype(np.float32))
    return np.array(bands)


def check_map(path, fast, bands, is_valid):
    """Compare a map with ``predict`` of the valid pixels in one array."""
    with rasterio.open(path) as file:
        labels, nodata = file.read(1), file.nodata
    assert_array_equal(labels[is_valid], fast.predict(bands[:, is_valid].T))
    assert (labels[~is_valid] == nodata).all()


def test_a_stack_of_two_types_and_two_nodata_values(tmp_path, monkeypatch):
    monkeypatch.setattr("limes.classifier.SAMPLED_ROWS", 5000)
    bands = read(LANDSAT7)
    labels = read([SCENES / "landsat7" / "landsat96_labelled_pixels.tif"])[0]
    nodata = np.array([-99999] * 5 + [-32768])[:, None, None]
    is_valid = (np.isfinite(bands) & (bands != nodata)).all(axis=0)
    assert is_valid.sum() == 135_092
    chosen = is_valid & (labels > 0)
    assert chosen.sum() == 2436
    svc = make_pipeline(StandardScaler(), SVC(C=50, gamma=0.5))
    svc = svc.fit(bands[:, chosen].T.astype(float), labels[chosen].astype(int))
    with quick_training():
        fast = accelerate(svc, LANDSAT7, scheme="shared", n_borders=16)
    predict_raster(fast, LANDSAT7, output=tmp_path / "map.tif")
    check_map(tmp_path / "map.tif", fast, bands, is_valid)


def test_a_scene_without_a_nodata_tag(tmp_path):
    bands = read([LANDSAT8])
    is_valid = (bands != 0).all(axis=0)
    assert (~is_valid).sum() == 627_031
    rows = bands[:, is_valid].T[::30_000].astype(float)
    svc = make_pipeline(StandardScaler(), SVC()).fit(rows, (rows[:, 0] > np.median(rows[:, 0])) + 1)
    fast = accelerate(svc, rows, scheme="exact")
    predict_raster(fast, LANDSAT8, output=tmp_path / "map.tif", nodata_input=0)
    check_map(tmp_path / "map.tif", fast, bands, is_valid)
    lazy = rioxarray.open_rasterio(LANDSAT8, chunks={"y": 500}).rio.write_nodata(0)
    with rasterio.open(tmp_path / "map.tif") as file:
        assert_array_equal(fast.predict(lazy).compute().values, file.read(1))
