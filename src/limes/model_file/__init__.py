"""Fitted classifiers in one file: numbers and a header, nothing that could be executed."""

from limes.model_file.stored import StoredModel, describe, read_model, restore, write_model

__all__ = ["StoredModel", "describe", "read_model", "restore", "write_model"]
