"""LIBSVM model files, read as classifiers and written from them."""

from limes.libsvm.classifier import LibsvmClassifier
from limes.libsvm.model_file import read_libsvm_model, write_libsvm_model
from limes.libsvm.one_class import LibsvmOneClass

__all__ = ["LibsvmClassifier", "LibsvmOneClass", "read_libsvm_model", "write_libsvm_model"]
