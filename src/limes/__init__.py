"""Makes slow kernel classifiers fast: a piecewise-linear classifier with the same answers."""
