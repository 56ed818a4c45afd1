"""One page that compares a fast classifier with its source."""

from limes.html_report.page import html_report, render

__all__ = ["html_report", "render"]
