"""From border maps to labels and probabilities."""
