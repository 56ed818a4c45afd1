"""LIBSVM model files, read as classifiers and written from them."""

from limes.libsvm.classifier import LibsvmClassifier
from limes.libsvm.model_file import read_libsvm_model, write_libsvm_model

__all__ = ["LibsvmClassifier", "read_libsvm_model", "write_libsvm_model"]
