"""A small scene of four bands with nodata, and a classifier for its pixels."""

import warnings

import numpy as np
import pytest
import rasterio
from sklearn.svm import SVC

from limes import accelerate
from tests.conftest import quick_training

NAMES = ["blue", "green", "red", "nir"]
NODATA = 0
GRID = {"crs": "EPSG:32621", "transform": rasterio.Affine(30, 0, 717345, 0, -30, -2776995)}


def make_fast(classes, **options):
    """Return a classifier of three classes of four features."""
    rng = np.random.default_rng(0)
    X = rng.integers(1, 200, (300, 4)).astype(float)
    y = np.array(classes)[(X[:, 0] > 90).astype(int) + (X[:, 1] > 120)]
    with quick_training():
        return accelerate(
            SVC(gamma=1e-4, C=10).fit(X, y), X, scheme="shared", n_borders=16, **options
        )


@pytest.fixture(scope="session")
def fast():
    return make_fast([3, 7, 9])


@pytest.fixture(scope="session")
def text_fast():
    return make_fast(["crop", "tree", "water"])


@pytest.fixture(scope="session")
def pixels():
    """Bands of uint16; a corner and some pixels of one band are nodata."""
    rng = np.random.default_rng(3)
    bands = rng.integers(1, 200, (4, 70, 90)).astype(np.uint16)
    bands[:, :20, :30] = NODATA
    bands[2, 40:45, 50:60] = NODATA
    return bands


@pytest.fixture(scope="session")
def labels(fast, pixels):
    """The map as it is defined: ``predict`` of each valid pixel."""
    is_valid = (pixels != NODATA).all(axis=0)
    expected = np.zeros(is_valid.shape, dtype=np.uint8)
    expected[is_valid] = fast.predict(pixels[:, is_valid].T.astype(np.float32))
    return expected


def write_tif(path, bands, *, names=None, nodata=NODATA, **options):
    """Write a GeoTIFF and return its path."""
    grid = {**GRID, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(
            path,
            "w",
            driver="GTiff",
            count=len(bands),
            height=bands.shape[1],
            width=bands.shape[2],
            dtype=bands.dtype,
            nodata=nodata,
            **grid,
        ) as file:
            file.write(bands)
            for number, name in enumerate(names or [], start=1):
                file.set_band_description(number, name)
    return path


@pytest.fixture
def tif(tmp_path, pixels):
    return write_tif(tmp_path / "scene.tif", pixels)
