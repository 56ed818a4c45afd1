"""The whole job on data that need no download: train, accelerate, compare, draw."""

from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from limes.classifier import BordersClassifier, accelerate
from limes.datasets import sample_classes
from limes.plotting import draw_borders, new_figure


def demonstrate(n_rows: int, picture: Path) -> None:
    """Accelerate two support vector machines, print both comparisons, draw the first's borders.

    Parameters
    ----------
    n_rows : int
        Training rows of the two synthetic classes.
    picture : Path
        Where the picture goes.
    """
    X, y = sample_classes(n_rows, random_state=0)
    svc = SVC(C=10, gamma=10).fit(X, y)
    fast = accelerate(svc, X, random_state=0)
    print("Two classes in two dimensions (the synthetic example of the paper):\n")
    print(fast.report(*sample_classes(20_000, random_state=1)))
    _draw(fast, n_rows, picture)
    print(f"\nTheir borders are drawn in {picture}.\n")
    _show_digits()


def _draw(fast: BordersClassifier, n_rows: int, picture: Path) -> None:
    """Draw the borders over some rows."""
    figure = new_figure(figsize=(7, 6), layout="constrained")
    axes = figure.subplots()
    draw_borders(fast, *sample_classes(min(n_rows, 1500), random_state=1), axes)
    axes.set_title(f"{fast.n_borders_} border points stand in for the support vectors")
    axes.set_aspect("equal")
    figure.savefig(picture, dpi=150)


def _show_digits() -> None:
    """Accelerate a machine of ten classes."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    svc = make_pipeline(StandardScaler(), SVC(gamma=0.01)).fit(X_train, y_train)
    fast = accelerate(svc, X_train, random_state=0)
    print("Ten handwritten digits, 64 pixels (scikit-learn's own data):\n")
    print(fast.report(X_test, y_test))
