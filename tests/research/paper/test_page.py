"""The page of the paper, from rows."""

from pathlib import Path

from limes.research.paper.page import make_page, write_table
from limes.research.paper.tables import make_tables
from limes.research.table import Column, Table
from tests.research.paper.cases import BASE, borders, row
from tests.research.paper.test_tables import searched_trials

SMALL = Table("small", "Skill", [Column("dataset"), Column("skill", "skill")], [["a", 0.5]])


def test_a_table_is_written_as_markdown_and_csv(tmp_path):
    names = sorted(path.name for path in write_table(SMALL, tmp_path))
    assert names == ["small.csv", "small.md"]


def page_of(rows):
    return make_page(rows, make_tables(rows), [], Path("docs/paper"))


def test_a_verdict_that_changes_is_on_the_page():
    page = page_of(searched_trials())
    assert "- **sat**, borders: succeeds (paper: fails)" in page
    assert "| letter | C | 1 | 50 |" in page
    assert "limes paper --draw -o docs/paper" in page


def test_what_is_missing_is_on_the_page():
    assert "Of the whole plan these trials have not been run:\n\n- agf: heart (10)" in page_of(
        [BASE]
    )


def test_a_linear_fit_that_did_not_converge_is_on_the_page():
    stopped = row(method="linear", model="LIBLINEAR type 5, stopped before it converged")
    assert "stopped before they converged, at its own limit: sat." in page_of([stopped])
    assert "before they converged" not in page_of([row(method="linear", model="LIBLINEAR type 4")])


def test_the_cost_of_all_trials_is_on_the_page():
    page = page_of([row(train_seconds=3600.0), borders(test_seconds=7200.0, trial_seconds=9000.0)])
    assert "sum to 1.00 hours of training and 2.00 of predicting" in page
    assert "for 1 of them: 2.50 hours" in page


def grown(skills):
    """Return SVMs of the sample classes on more and more rows."""
    return [
        row(
            experiment="training",
            dataset="sample_classes",
            setting=float(n),
            n_train=n,
            n_support=round(0.38 * n**0.94),
            uncertainty_coefficient=skill,
        )
        for n, skill in skills.items()
    ]


def test_a_law_that_differs_from_the_papers_is_listed_there():
    page = page_of(grown({100: 0.4, 200: 0.5, 300: 0.51, 500: 0.53, 1000: 0.53}))
    agrees, differs = page.split("## What differs")
    assert "from 100 training rows on (paper: 0.38" in agrees
    assert "from 500 training rows on" not in agrees
    assert "at 300 rows ours has 96% of its best" in differs
    assert (
        "from 300 training rows on"
        in page_of(grown({100: 0.4, 200: 0.5, 300: 0.53, 500: 0.53})).split("## What differs")[0]
    )
