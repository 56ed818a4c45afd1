"""The page of the paper, from rows."""

from pathlib import Path

import pytest

from limes.research.paper.page import make_page, make_tables, write_table
from limes.research.results import Column, Spread, Table
from tests.research.paper.cases import BASE, borders, row, searched, whole

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


def test_times_of_the_same_votes_say_how_far_sessions_differ():
    page = page_of([row(test_seconds=1.0), whole(test_seconds=2.0)])
    assert "ratio is 0.50 to 0.50" in page
    assert "further than 1.5 from 1 on sat" in page
    assert "from 1 on none" in page_of([row(), whole()])


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


def lines_of(table):
    return [
        dict(zip([column.head for column in table.columns], line, strict=True))
        for line in table.lines
    ]


def test_our_numbers_are_compared_with_the_papers():
    trials = [
        borders(seed=seed, uncertainty_coefficient=skill) for seed, skill in ((0, 0.75), (1, 0.77))
    ]
    svm, ours = lines_of(make_tables([BASE, *trials])["results"])
    assert svm["accuracy"].mean == 0.91
    assert svm["accuracy, paper"].mean == 0.914
    assert ours["U.C."].mean == pytest.approx(0.76)
    assert ours["U.C., paper"] == Spread(0.764, 0.007)
    assert ours["U.C., difference"] == pytest.approx(-0.004)
    assert svm["test s, paper/ours"] == pytest.approx(1.01 / 0.5)


def test_what_has_not_been_tried_has_no_line():
    tables = make_tables([BASE])
    assert [line[0] for line in tables["results"].lines] == ["sat"]
    assert tables["verdicts"].lines == []


def test_a_dataset_with_missing_rows_is_marked():
    tables = make_tables([row(dataset="seismic", part="part", n_train=3200, n_test=800)])
    assert tables["results"].lines[0][0] == "seismic¹"
    assert "¹ Only 4000 of 98 528 rows" in tables["results"].note
    assert "Only 4000" not in make_tables([BASE])["results"].note


def test_sizes_of_split_and_unsplit_datasets_are_those_of_table_1():
    heart = row(dataset="heart", n_train=162, n_test=108, n_features=13, n_classes=2)
    lines = {line["dataset"]: line for line in lines_of(make_tables([BASE, heart])["datasets"])}
    assert (lines["sat"]["train"], lines["sat"]["test"]) == (4435, 2000)
    assert (lines["heart"]["train"], lines["heart"]["test"]) == (270, None)
    assert lines["heart"]["differs"] == ""


def test_what_has_not_been_tried_has_the_sizes_of_the_catalogue():
    lines = {line["dataset"]: line for line in lines_of(make_tables([])["datasets"])}
    assert (lines["usps"]["test"], lines["usps"]["test, paper"]) == (2007, 2001)
    assert (lines["splice"]["classes"], lines["splice"]["classes, paper"]) == (2, 3)
    assert (lines["heart"]["train"], lines["heart"]["test"]) == (270, None)
    assert (lines["mnist"]["features"], lines["mnist"]["train"]) == (665, 45000)
    assert lines["sat"]["differs"] == ""


def test_table_4_has_the_papers_times():
    (line,) = lines_of(make_tables([BASE, borders()])["sizes"])
    assert line["SVM s, paper"].mean == 1.01
    assert line["SVM s, paper/ours"] == pytest.approx(1.01 / 0.5)
    assert line["border points, difference"] == 0


def searched_trials():
    """Return trials of sat whose match is known."""
    return [whole(), borders(), *searched({step: 0.85 - 0.002 * step for step in range(1, 80)})]


def test_table_5_has_all_that_the_paper_prints():
    (line,) = lines_of(make_tables(searched_trials())["subsampled"])
    theirs = {head: line[f"{head}, paper"].mean for head in PRINTED}
    assert theirs == PRINTED
    assert line["accuracy, difference"] == pytest.approx(0.91 - 0.893)
    assert line["rows, difference"] == pytest.approx(4435 / 1772 - 1)


PRINTED = {
    "U.C.": 0.766,
    "accuracy": 0.893,
    "rows": 1772,
    "support vectors": 733,
    "test s": 0.70,
    "train s": 2.24,
}


def test_table_6_has_the_papers_skill_and_ratio():
    (line,) = lines_of(make_tables(searched_trials())["verdicts"])
    assert line["SVM/borders, paper"] == pytest.approx(0.70 / 0.85)
    assert line["SVM/borders"] == pytest.approx(0.5 / 0.01)
    assert line["U.C. of SVM, paper"].mean == 0.77
    assert line["U.C. of borders, difference"] == pytest.approx(0)
    assert line["limes"] is None


def test_corrected_parameters_are_shown():
    lines = {line["dataset"]: line for line in lines_of(make_tables([])["parameters"])}
    assert (lines["letter"]["C"], lines["letter"]["C, paper"]) == ("50", "1")
    differs = {name: line["differs"] for name, line in lines.items() if line["differs"]}
    assert differs == {
        "splice": "gamma",
        "letter": "C",
        "phishing": "gamma",
    }


def test_lines_of_other_datasets_are_left_out():
    heart = row(dataset="heart")
    table = make_tables([BASE, heart], ["heart"])["results"]
    assert [line[0] for line in table.lines] == ["heart"]


def test_the_sample_classes_have_a_line_of_their_own():
    rows = [row(dataset="sample_classes", method="agf"), row(dataset="sat", method="agf")]
    assert [line[0] for line in make_tables(rows)["agf"].lines] == ["sample_classes", "sat"]
    assert [line[0] for line in make_tables(rows, ["sample_classes"])["agf"].lines] == [
        "sample_classes"
    ]
