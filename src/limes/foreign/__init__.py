"""Models of other programs, read as classifiers: OpenCV, ONNX, skops."""

from limes.foreign.onnx import read_onnx_model
from limes.foreign.opencv import read_opencv_model
from limes.foreign.skops import read_skops_model

__all__ = ["read_onnx_model", "read_opencv_model", "read_skops_model"]
