"""Measurements of limes: accuracy, benchmarks, and the case studies of the paper."""
