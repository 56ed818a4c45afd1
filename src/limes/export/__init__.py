"""Fitted classifiers for places without Python: ONNX, C, libAGF."""
