"""Adaptive Gaussian filtering and its relatives: kernel estimators with solved bandwidths."""
