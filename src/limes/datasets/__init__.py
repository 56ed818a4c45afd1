"""Datasets by name: the paper's seventeen and its two synthetic classes."""

from limes.datasets.catalogue import Settings, parameters
from limes.datasets.loader import Dataset, Listing, cache_folder, list_datasets, load
from limes.datasets.sample_classes import SampleClassesClassifier, sample_classes

__all__ = [
    "Dataset",
    "Listing",
    "SampleClassesClassifier",
    "Settings",
    "cache_folder",
    "list_datasets",
    "load",
    "parameters",
    "sample_classes",
]
