"""The paper's six tables, from rows."""

import pytest

from limes.research.paper.tables import make_tables
from limes.research.table import Spread
from tests.research.paper.cases import BASE, borders, row, searched, whole


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
