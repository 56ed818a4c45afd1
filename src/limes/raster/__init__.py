"""Classify rasters: xarray objects and files that rasterio reads, in bounded memory."""

from limes.raster.predict import predict_array as predict_array
from limes.raster.predict import predict_raster
from limes.raster.predict import sample_rows as sample_rows

__all__ = ["predict_raster"]
