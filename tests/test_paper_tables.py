"""Tables, claims and the page: all from rows."""

import csv
import io
from pathlib import Path

import pytest

from limes.paper.claims import check_claims, missing_trials
from limes.paper.page import make_page, write_table
from limes.paper.rows import latest, read_rows
from limes.paper.statistics import Spread
from limes.paper.table import Column, Table
from limes.paper.tables import make_tables
from paper_cases import BASE, borders, row, searched, whole

SMALL = Table(
    "small",
    "Times & skill",
    [Column("data_set"), Column("skill", "skill"), Column("s", "seconds"), Column("n", "count")],
    [["a", Spread(0.76432, 0.0071, 3), 0.5, 12], ["b", Spread(0.5), None, Spread(7.0, 0.0, 3)]],
    "50 % of it",
)


def lines_of(table):
    return [
        dict(zip([one.head for one in table.columns], line, strict=True)) for line in table.lines
    ]


def test_markdown_rounds_to_the_spread():
    assert SMALL.markdown().splitlines()[2:4] == [
        "| a | 0.764 ± 0.007 | 0.500 | 12 |",
        "| b | 0.500 | - | 7 |",
    ]


def test_csv_keeps_all_digits():
    rows = list(csv.DictReader(io.StringIO(SMALL.csv())))
    assert rows[0] == {
        "data_set": "a",
        "skill": "0.76432",
        "skill std": "0.0071",
        "s": "0.5",
        "n": "12",
        "n std": "",
    }
    assert rows[1]["skill std"] == ""


def test_latex_escapes_what_it_must():
    text = SMALL.latex()
    assert r"\caption{Times \& skill. 50 \% of it}" in text
    assert r"data\_set & skill & s & n \\ \hline" in text
    assert r"a & 0.764 $\pm$ 0.007 & 0.500 & 12 \\" in text


def test_a_table_is_written_in_three_forms(tmp_path):
    assert sorted(path.name for path in write_table(SMALL, tmp_path)) == [
        "small.csv",
        "small.md",
        "small.tex",
    ]


def test_the_papers_numbers_stand_beside_ours():
    trials = [
        borders(seed=seed, uncertainty_coefficient=skill) for seed, skill in ((0, 0.75), (1, 0.77))
    ]
    svm, own = lines_of(make_tables([BASE, *trials])["results"])
    assert svm["accuracy"].mean == 0.91
    assert svm["accuracy, paper"].mean == 0.914
    assert own["U.C."].mean == pytest.approx(0.76)
    assert own["U.C., paper"] == Spread(0.764, 0.007)
    assert own["U.C., difference"] == pytest.approx(-0.004)
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


def test_corrected_parameters_are_shown():
    lines = {line["dataset"]: line for line in lines_of(make_tables([])["parameters"])}
    assert lines["letter"]["differs"] == "C: paper prints 1"
    assert [name for name, line in lines.items() if line["differs"]] == [
        "splice",
        "letter",
        "phishing",
    ]


def test_lines_of_other_datasets_are_left_out():
    heart = row(dataset="heart")
    table = make_tables([BASE, heart], ["heart"])["results"]
    assert [line[0] for line in table.lines] == ["heart"]


def found(claims, words):
    (claim,) = [claim for claim in claims if words in claim.text]
    return claim


def test_claims_count_what_holds_and_name_what_does_not():
    rows = [BASE, row(dataset="segment", n_support=400, accuracy=0.96)]
    claims = check_claims(rows)
    support = found(claims, "support vectors")
    assert support.good == ["sat"]
    assert support.others == {"segment": "400, paper 340 (+17.6%)"}
    assert found(claims, "accuracy").good == ["sat", "segment"]


def test_a_part_of_a_dataset_proves_nothing():
    assert check_claims([row(dataset="seismic", part="part")]) == []


def test_a_verdict_that_changes_is_on_the_page():
    searches = searched({step: 0.85 - 0.002 * step for step in range(1, 80)})
    rows = [whole(), borders(), *searches]
    page = make_page(rows, make_tables(rows), [], Path("docs/paper"))
    assert "- **sat**, borders: succeeds (paper: fails)" in page
    assert "| letter | C | 1 | 50 |" in page
    assert "limes paper --draw -o docs/paper" in page


def test_missing_trials_are_named():
    (linear, svm, *_) = missing_trials([BASE])
    assert linear.startswith("linear: heart")
    assert "sat" in linear
    assert "sat" not in svm.split(", ")


def test_the_sample_classes_have_a_line_of_their_own():
    rows = [row(dataset="sample_classes", method="agf"), row(dataset="sat", method="agf")]
    assert [line[0] for line in make_tables(rows)["agf"].lines] == ["sample_classes", "sat"]
    assert [line[0] for line in make_tables(rows, ["sample_classes"])["agf"].lines] == [
        "sample_classes"
    ]


def test_the_rows_of_this_repository_bear_the_paper_out():
    rows = latest(read_rows(Path(__file__).parents[1] / "docs" / "paper" / "rows.csv"))
    claims = check_claims(rows)
    assert found(claims, "SVM: accuracy").others == {}
    assert len(found(claims, "SVM: support vectors").others) <= 1
    assert len(found(claims, "twice the paper's spread").others) <= 2
    assert min(found(claims, words).n_all for words in ("SVM: accuracy", "spread")) >= 15
