"""Classify rasters: xarray objects and files that rasterio reads, in bounded memory."""

from limes.raster.predict import predict_array, predict_raster, sample_rows

__all__ = ["predict_array", "predict_raster", "sample_rows"]
