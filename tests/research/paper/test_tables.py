"""Tables, claims and the page: all from rows."""

import csv
import io
from pathlib import Path

import pytest

from limes.research.paper.checks import check_claims, missing_trials
from limes.research.paper.page import make_page, write_table
from limes.research.paper.printed import DATASETS
from limes.research.paper.rows import latest, read_rows
from limes.research.paper.table import Column, Spread, Table
from limes.research.paper.tables import make_tables
from tests.research.paper.cases import BASE, borders, row, searched, whole

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


def judged():
    """Return trials of sat whose match is found."""
    return [whole(), borders(), *searched({step: 0.85 - 0.002 * step for step in range(1, 80)})]


def test_table_5_has_all_that_the_paper_prints():
    (line,) = lines_of(make_tables(judged())["subsampled"])
    their = {head: line[f"{head}, paper"].mean for head in THEIRS}
    assert their == THEIRS
    assert line["accuracy, difference"] == pytest.approx(0.91 - 0.893)
    assert line["rows, difference"] == pytest.approx(4435 / 1772 - 1)


THEIRS = {
    "U.C.": 0.766,
    "accuracy": 0.893,
    "rows": 1772,
    "support vectors": 733,
    "test s": 0.70,
    "train s": 2.24,
}


def test_table_6_has_the_papers_skill_and_ratio():
    (line,) = lines_of(make_tables(judged())["verdicts"])
    assert line["SVM/borders, paper"] == pytest.approx(0.70 / 0.85)
    assert line["SVM/borders"] == pytest.approx(0.5 / 0.01)
    assert line["U.C. of SVM, paper"].mean == 0.77
    assert line["U.C. of borders, difference"] == pytest.approx(0)
    assert line["limes"] is None


def test_ratios_have_three_digits_that_count():
    ratios = Table("ratios", "", [Column("ratio", "ratio")], [[1076.8], [4.0], [0.9271]])
    assert ratios.markdown().splitlines()[2:] == ["| 1080 |", "| 4.00 |", "| 0.927 |"]


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


def found(claims, words):
    (claim,) = [claim for claim in claims if words in claim.text]
    return claim


def test_claims_count_what_holds_and_name_what_does_not():
    rows = [BASE, row(dataset="segment", n_support=400, accuracy=0.96)]
    claims = check_claims(rows)
    support = found(claims, "support vectors")
    assert support.good == ["sat"]
    assert support.others == {"segment": "400, paper 340 ± 11 (+17.6%)"}
    assert found(claims, "accuracy").good == ["sat", "segment"]


def test_a_part_of_a_dataset_proves_nothing():
    assert check_claims([row(dataset="seismic", part="part")]) == []


def test_a_verdict_that_changes_is_on_the_page():
    page = page_of(judged())
    assert "- **sat**, borders: succeeds (paper: fails)" in page
    assert "| letter | C | 1 | 50 |" in page
    assert "limes paper --draw -o docs/paper" in page


def test_the_spread_stands_beside_a_miss():
    rows = [row(dataset="segment", n_support=n, split=n, seed=n) for n in (390, 410)]
    support = found(check_claims(rows), "support vectors")
    assert support.others == {"segment": "400 ± 14, paper 340 ± 11 (+17.6%)"}


def test_linear_classifiers_are_held_against_the_paper_too():
    rows = [row(method="linear", accuracy=0.82), row(method="linear", dataset="dna", accuracy=0.95)]
    linear = found(check_claims(rows), "Linear: accuracy")
    assert linear.good == ["sat"]
    assert linear.others == {"dna": "0.950, paper 0.900"}


def test_the_papers_rule_counts_a_part_of_a_dataset_and_says_so():
    here = {"dataset": "seismic", "part": "part", "n_train": 3200, "n_classes": 3}
    rows = [whole(**here), borders(**here, uncertainty_coefficient=0.8)]
    rule = found(check_claims(rows), "Borders in the paper's mode succeed")
    assert rule.good == ["seismic"]
    assert rule.text.endswith("(of seismic a part)")


def test_missing_trials_are_named():
    lines = {line.split(":")[0]: line for line in missing_trials([BASE])}
    assert "heart (10)" in lines["linear"]
    assert "sat (1)" in lines["linear"]
    assert "sat" not in lines["svm"]
    assert "sample_classes" in lines["limes"]
    assert "sample_classes" in lines["true-borders"]


def page_of(rows):
    return make_page(rows, make_tables(rows), [], Path("docs/paper"))


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
    assert "on 1 of them, 2.50 hours" in page


def grown(skills):
    """Return machines of the sample classes on more and more rows."""
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


def test_a_law_that_is_not_the_papers_is_told_where_things_differ():
    page = page_of(grown({100: 0.4, 200: 0.5, 300: 0.51, 500: 0.53, 1000: 0.53}))
    agrees, differs = page.split("## What differs")
    assert "from 100 training rows on (paper: 0.38" in agrees
    assert "from 500 training rows on" not in agrees
    assert "at 300 rows ours has 96% of its best" in differs
    assert (
        "from 300 training rows on"
        in page_of(grown({100: 0.4, 200: 0.5, 300: 0.53, 500: 0.53})).split("## What differs")[0]
    )


def test_the_sample_classes_have_a_line_of_their_own():
    rows = [row(dataset="sample_classes", method="agf"), row(dataset="sat", method="agf")]
    assert [line[0] for line in make_tables(rows)["agf"].lines] == ["sample_classes", "sat"]
    assert [line[0] for line in make_tables(rows, ["sample_classes"])["agf"].lines] == [
        "sample_classes"
    ]


def test_the_rows_of_this_repository_bear_the_paper_out():
    rows = latest(read_rows(Path(__file__).parents[3] / "docs" / "paper" / "rows.csv"))
    claims = check_claims(rows)
    assert found(claims, "SVM: accuracy").others == {}
    assert len(found(claims, "SVM: support vectors").others) <= 1
    assert len(found(claims, "twice the paper's spread").others) <= 2
    assert min(found(claims, words).n_all for words in ("SVM: accuracy", "spread")) >= 15
    assert list(found(claims, "Linear: accuracy").others) == ["letter", "mnist"]


@pytest.mark.parametrize(
    "words", ["Borders in the paper's mode succeed", "limes' default succeeds"]
)
def test_by_the_papers_rule_all_seventeen_succeed(words):
    rows = latest(read_rows(Path(__file__).parents[3] / "docs" / "paper" / "rows.csv"))
    rule = found(check_claims(rows), words)
    assert rule.good == list(DATASETS)
    assert "(of seismic a part)" in rule.text


def test_the_rows_of_this_repository_are_the_whole_plan():
    rows = latest(read_rows(Path(__file__).parents[3] / "docs" / "paper" / "rows.csv"))
    assert missing_trials(rows) == []
