"""Tables and figures from benchmark rows."""

from dataclasses import replace

import pytest

from limes.research.bench.report import draw_dataset, markdown, summary


def test_the_table_has_a_line_for_each_method(outcome):
    sections = markdown(outcome.rows).partition("training rows")[2]
    lines = [line for line in sections.splitlines() if line.startswith("|")]
    methods = [line.split("|")[1].strip() for line in lines[2:]]
    assert methods == ["svc", "linear", "limes", "limes-predictor"]
    assert "µs per row, 2 threads" in lines[0]


def test_the_summary_names_the_fastest_method_of_equal_skill(outcome):
    skill = {"svc": 0.9, "linear": 0.85, "limes": 0.899}
    times = {"svc": 50, "linear": 0.1, "limes": 2}
    rows = [
        replace(
            row, uncertainty_coefficient=skill[row.method], microseconds_per_row=times[row.method]
        )
        for row in outcome.rows
        if row.method in skill and row.threads == 1
    ]

    def last_line(rows):
        return [word.strip() for word in summary(rows).splitlines()[-1].split("|")[2:-1]]

    expected = ["0.9000", "0.8990", "2.00", "25.0", "-", "svc", "0.9000", "50.0", "25.0"]
    assert last_line(rows) == expected
    # The linear one is faster than limes, and now of equal skill.
    rows[1] = replace(rows[1], uncertainty_coefficient=0.8981)
    assert last_line(rows)[5:] == ["linear", "0.8981", "0.100", "0.0500"]
    assert last_line(rows[2:])[5:] == ["none", "-", "-", "-"]
    assert summary(rows[:2]) == ""


def test_the_table_states_that_the_computer_was_busy(outcome):
    rows = [replace(row, cpu_share=0.5) for row in outcome.rows]
    assert "The computer was busy: a one-thread batch had 50% to 50%" in markdown(rows)
    assert "busy" not in markdown([replace(row, cpu_share=1.0) for row in rows])


def test_the_figure_shows_time_and_skill_of_each_row(outcome):
    pytest.importorskip("matplotlib")
    figure = draw_dataset(outcome.rows)
    for ax, n_threads in zip(figure.axes, (1, 2), strict=True):
        drawn = [tuple(line.get_xydata()[0]) for line in ax.lines]
        assert drawn == [
            (row.microseconds_per_row, row.uncertainty_coefficient)
            for row in outcome.rows
            if row.threads == n_threads and row.microseconds_per_row is not None
        ]
        assert ax.get_xscale() == "log"


def test_a_method_far_below_the_others_is_labelled_at_the_edge(outcome):
    pytest.importorskip("matplotlib")
    rows = [
        replace(row, uncertainty_coefficient=0.25 if row.method == "linear" else 0.9)
        for row in outcome.rows
    ]
    ax = draw_dataset(rows).axes[0]
    assert [text.get_text() for text in ax.texts] == ["0.25"]
    assert 0.78 < ax.get_ylim()[0] < 0.9
