"""The scaling laws of the paper's figures, and that the figures show them."""

import numpy as np
import pytest

from limes.research.paper import run as running
from limes.research.paper.figures import by_setting, saturation, support_law
from limes.research.paper.plan import FigurePoint, Trial
from limes.research.paper.run import find_points, load_paper_problem, run_trial
from limes.research.paper.times import TimeRow
from limes.research.results import read_rows, write_rows
from limes.timing import Timing
from tests.research.paper.cases import BASE, borders, row, searched, whole

N_TRIALS = 3


@pytest.fixture(scope="module")
def no_clock():
    """Leave the timing out: only skill and sizes matter here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "time_alone", lambda predict, rows: (Timing(1.0, 1.0), len(rows)))
        yield


@pytest.fixture(scope="module")
def growth(no_clock):
    """Return SVMs on more and more rows."""
    return [
        run_trial(
            load_paper_problem("sample_classes", split=seed, n_train=n_train),
            Trial("training", "sample_classes", "svm", float(n_train), seed, seed),
        )
        for n_train in (100, 300, 1000, 3000)
        for seed in range(N_TRIALS)
    ]


@pytest.fixture(scope="module")
def by_borders(no_clock):
    """Return borders with more and more points."""
    rows = []
    for seed in range(N_TRIALS):
        problem = load_paper_problem("sample_classes", split=seed)
        for n_borders in (2, 5, 10, 20, 40, 100, 400):
            for method in ("borders", "true-borders"):
                trial = Trial("borders", "sample_classes", method, float(n_borders), seed, seed)
                rows.append(run_trial(problem, trial))
    return rows


def test_support_vectors_grow_with_the_papers_exponent(growth):
    law = support_law(growth)
    assert law.exponent == pytest.approx(0.94, abs=0.05)
    assert law.factor == pytest.approx(0.38, abs=0.1)


@pytest.mark.parametrize("method", ["borders", "true-borders"])
def test_skill_saturates_at_about_twenty_border_points(by_borders, method):
    rows = [one for one in by_borders if one.method == method]
    skills = by_setting(rows, "uncertainty_coefficient")
    assert 10 <= saturation(skills) <= 40
    assert skills[2.0].mean < 0.8 * skills[400.0].mean


def test_points_come_back_from_their_file(tmp_path):
    points = find_points()
    write_rows(tmp_path / "points.csv", FigurePoint, points)
    assert read_rows(tmp_path / "points.csv", FigurePoint) == points
    kinds = {kind: sum(point.kind == kind for point in points) for kind in KINDS}
    assert kinds["class 1"] + kinds["class 2"] == 300
    assert min(kinds.values()) > 50


KINDS = ("class 1", "class 2", "support vector", "true border", "SVM border")


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    return figure.subplots()


def test_the_fitted_law_is_drawn(growth, ax):
    from limes.research.paper.figures import draw_support_growth

    draw_support_growth(growth, ax)
    x, y = ax.get_lines()[-1].get_data()
    assert y[1] / y[0] == pytest.approx((x[1] / x[0]) ** support_law(growth).exponent)
    assert any("paper: 0.38" in text.get_text() for text in ax.get_legend().get_texts())


def timed():
    """Return times that are straight lines: 1 + 0.04 n and 1 + 0.001 n microseconds."""
    sizes = {"svm": (0.04, (100, 1000, 5000)), "borders": (0.001, (100, 10_000, 300_000))}
    return [
        TimeRow(method, 0, n, n, 1 + slope * n, 0.5 + slope * n, "", "", "")
        for method, (slope, numbers) in sizes.items()
        for n in numbers
    ]


@pytest.fixture
def panels():
    return pytest.importorskip("matplotlib.figure").Figure().subplots(1, 2)


def test_break_even_is_measured_beside_the_line_of_the_slopes(panels):
    from limes.research.paper.figures import draw_break_even

    draw_break_even(timed(), panels)
    measured, line = panels[0].get_lines()
    np.testing.assert_allclose(line.get_ydata(), 40 * np.array(line.get_xdata()), atol=1e-6)
    assert max(measured.get_ydata()) <= 300_000
    assert panels[0].get_xscale() == "linear"
    assert "slope 40" in panels[0].get_title()
    np.testing.assert_array_equal(measured.get_xdata(), [100, 1000, 5000])


@pytest.mark.parametrize("draw", ["draw_svm_time", "draw_border_time"])
def test_times_have_the_papers_axes_beside_ours(draw, panels):
    from limes.research.paper import figures

    getattr(figures, draw)(timed(), panels)
    assert [ax.get_xscale() for ax in panels] == ["linear", "log"]
    assert "single test point" in panels[0].get_ylabel()
    assert "intercept 1 µs" in panels[0].get_title()


def test_the_overview_has_a_panel_for_each_dataset():
    pytest.importorskip("matplotlib")
    from limes.research.paper.figures import draw_overview

    rows = [BASE, whole(), borders(), row(dataset="heart"), *searched({8: 0.7, 16: 0.6})]
    figure = draw_overview(rows)
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == ["heart", "sat"]
    sat = figure.axes[1]
    fewer = next(line for line in sat.get_lines() if line.get_label() == "SVM on fewer rows")
    assert fewer.get_ydata() == pytest.approx((0.8, 0.7, 0.6))


def test_a_part_of_a_dataset_is_marked():
    pytest.importorskip("matplotlib")
    from limes.research.paper.figures import draw_overview

    figure = draw_overview([row(dataset="seismic", part="part")])
    assert figure.axes[0].get_title() == "seismic (part)"


def test_no_two_methods_look_alike():
    from limes.research.paper.figures import STYLES

    styles = [(style["color"], style["marker"]) for style in STYLES.values()]
    assert len({*styles}) == len(styles)
    assert len({style["marker"] for style in STYLES.values()}) == len(styles)


def test_a_method_far_below_is_labelled_at_the_edge(ax):
    from limes.research.paper.figures import draw_dataset

    draw_dataset([BASE, borders(uncertainty_coefficient=0.2)], ax)
    assert ax.get_ylim()[0] > 0.5
    assert [text.get_text() for text in ax.texts] == ["0.20 ↓"]


def test_without_rows_nothing_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from limes.research.paper.figures import save_figures

    assert save_figures([], [], tmp_path) == []
