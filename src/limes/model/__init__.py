"""`Model`, `BorderMap`, schemes, `load_model`."""

__all__ = ["StoredModel", "describe", "read_model", "restore", "write_model"]
