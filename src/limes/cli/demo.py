"""`limes demo`: accelerate two SVMs and draw the borders of one."""

import argparse
from pathlib import Path
from typing import Any

from limes.cli.main import add_command

ADVICE = """\
For your own model, give limes.accelerate rows as they occur in use; labels are not needed.
Its agreement_ stands for rows like those given, coverage_agreement_ for rows between and around
them."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "demo",
        help="accelerate an SVM and draw its borders",
        description="Train, accelerate, compare and draw, on data that need no download.",
        example="limes demo -o borders.png",
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("limes-demo.png"), metavar="OUT")
    parser.add_argument(
        "--rows", type=int, default=6000, help="training rows (default: %(default)s)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demonstration."""
    demonstrate(args.rows, args.output, as_json=args.json)
    return 0


def demonstrate(n_rows: int, picture: Path, *, as_json: bool = False) -> None:
    """Accelerate two SVMs, print both comparisons, and draw the borders of the first."""
    from limes.cli.terminal import Progress, show

    with Progress("accelerating an SVM with two classes"):
        first = _show_two_classes(n_rows, picture)
    if not as_json:
        print("Two classes in two dimensions (the synthetic example of the paper):\n")
        print(f"{first}\n\nThe borders are drawn in {picture}.\n")
    with Progress("accelerating an SVM with ten classes"):
        second = _show_digits()
    reports = {"sample_classes": first.to_dict(), "digits": second.to_dict()}
    show(
        {"picture": str(picture), **reports},
        "Ten handwritten digits, 64 pixels (the digits of scikit-learn); at least 99 % of rows are "
        f"to get the source's label:\n\n{second}\n\n{ADVICE}",
        as_json=as_json,
    )


def _show_two_classes(n_rows: int, picture: Path) -> Any:
    """Accelerate an SVM with two classes and draw its borders."""
    from sklearn.svm import SVC

    from limes.classifier import accelerate
    from limes.datasets import sample_classes

    X, y = sample_classes(n_rows, random_state=0)
    svc = SVC(C=10, gamma=10).fit(X, y)
    # In the paper's scheme the points lie on the border, so that the picture explains the method.
    fast = accelerate(svc, X, scheme="pairwise", n_borders=100, random_state=0)
    _draw(fast, n_rows, picture)
    return fast.report(*sample_classes(20_000, random_state=1))


def _draw(fast: Any, n_rows: int, picture: Path) -> None:
    """Draw the borders and some rows."""
    from limes.datasets import sample_classes
    from limes.plotting import draw_borders, new_figure

    figure = new_figure(figsize=(7, 6), layout="constrained")
    axes = figure.subplots()
    draw_borders(fast, *sample_classes(min(n_rows, 1500), random_state=1), axes)
    axes.set_title(f"{fast.n_borders_} border points replace the support vectors")
    axes.set_aspect("equal")
    figure.savefig(picture, dpi=150)


def _show_digits() -> Any:
    """Accelerate an SVM with ten classes."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    from limes.classifier import accelerate

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    svc = make_pipeline(StandardScaler(), SVC(gamma=0.01)).fit(X_train, y_train)
    # Few rows of many pixels: the exact sums predict those that the map is uncertain of.
    return accelerate(svc, X_train, min_agreement=0.99).report(X_test, y_test)
