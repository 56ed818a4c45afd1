"""Write the report that the site shows, by the function that users call."""

from pathlib import Path
from typing import Any

from sklearn.svm import SVC
from sphinx.application import Sphinx

import limes
from limes.datasets import sample_classes
from limes.html_report import html_report

FOLDER = "generated/extra"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the page before Sphinx copies the folder."""
    app.connect("builder-inited", lambda app: write_report(Path(app.srcdir) / FOLDER))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_report(folder: Path) -> None:
    """Accelerate an SVM of the sample classes, and report on rows that it has not seen."""
    path = folder / "report.html"
    if path.exists():
        return
    X, y = sample_classes(20_000, random_state=0)
    svc = SVC(C=50).fit(X[:4000], y[:4000])
    fast = limes.accelerate(svc, X[:10_000])
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(html_report(fast, X[10_000:], y[10_000:], title="Sample classes"))
