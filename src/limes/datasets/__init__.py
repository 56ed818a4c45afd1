"""Data by name."""
