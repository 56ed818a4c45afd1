"""One page that shows what a fast classifier is worth, beside its source."""

from limes.html_report.page import html_report, render
from limes.html_report.scores import (
    Comparison,
    ModelScores,
    PredictionCounter,
    PredictionCounts,
    ask,
    compare_answers,
    time_models,
)

__all__ = [
    "Comparison",
    "ModelScores",
    "PredictionCounter",
    "PredictionCounts",
    "ask",
    "compare_answers",
    "html_report",
    "render",
    "time_models",
]
