"""What agrees with the paper: claims and verdicts, from rows."""

from pathlib import Path

import pytest

from limes.research.paper.checks import check_claims, check_text, check_vectors, missing_trials
from limes.research.paper.plan import DATASETS, TrialRow
from limes.research.paper.scaling import read_scaling
from limes.research.paper.times import read_times
from limes.research.results import latest, read_rows
from tests.research.paper.cases import BASE, borders, row, whole


@pytest.fixture(scope="module")
def repository_rows():
    path = Path(__file__).parents[3] / "docs" / "paper" / "rows.csv"
    return latest(read_rows(path, TrialRow), key=lambda row: row.trial)


def find_claim(claims, words):
    (claim,) = [claim for claim in claims if words in claim.text]
    return claim


def test_claims_count_what_holds_and_name_what_does_not():
    rows = [BASE, row(dataset="segment", n_support=400, accuracy=0.96)]
    claims = check_claims(rows)
    support = find_claim(claims, "support vectors")
    assert support.holds_on == ["sat"]
    assert support.fails_on == {"segment": "400, paper 340 ± 11 (+17.6%)"}
    assert find_claim(claims, "accuracy").holds_on == ["sat", "segment"]


def test_a_part_of_a_dataset_is_not_compared():
    assert check_claims([row(dataset="seismic", part="part")]) == []


def test_a_difference_is_shown_with_the_spread():
    rows = [row(dataset="segment", n_support=n, split=n, seed=n) for n in (390, 410)]
    support = find_claim(check_claims(rows), "support vectors")
    assert support.fails_on == {"segment": "400 ± 14, paper 340 ± 11 (+17.6%)"}


def test_linear_classifiers_are_compared_with_the_paper_too():
    rows = [row(method="linear", accuracy=0.82), row(method="linear", dataset="dna", accuracy=0.95)]
    linear = find_claim(check_claims(rows), "Linear: accuracy")
    assert linear.holds_on == ["sat"]
    assert linear.fails_on == {"dna": "0.950, paper 0.900"}


def test_the_papers_rule_counts_a_part_of_a_dataset_and_names_it():
    here = {"dataset": "seismic", "part": "part", "n_train": 3200, "n_classes": 3}
    rows = [whole(**here), borders(**here, uncertainty_coefficient=0.8)]
    rule = find_claim(check_claims(rows), "Borders in the paper's mode succeed")
    assert rule.holds_on == ["seismic"]
    assert rule.text.endswith("(part of seismic only)")


def test_missing_trials_are_named():
    lines = {line.split(":")[0]: line for line in missing_trials([BASE])}
    assert "heart (10)" in lines["linear"]
    assert "sat (1)" in lines["linear"]
    assert "sat" not in lines["svm"]
    assert "sample_classes" in lines["limes"]
    assert "sample_classes" in lines["true-borders"]


def test_the_rows_of_this_repository_confirm_the_paper(repository_rows):
    claims = check_claims(repository_rows)
    assert find_claim(claims, "SVM: accuracy").fails_on == {}
    assert len(find_claim(claims, "SVM: support vectors").fails_on) <= 1
    assert len(find_claim(claims, "twice the paper's spread").fails_on) <= 2
    assert min(find_claim(claims, words).n_datasets for words in ("SVM: accuracy", "spread")) >= 15
    assert list(find_claim(claims, "Linear: accuracy").fails_on) == ["letter", "mnist"]


@pytest.mark.parametrize(
    "words", ["Borders in the paper's mode succeed", "limes' default succeeds"]
)
def test_by_the_papers_rule_all_seventeen_succeed(words, repository_rows):
    rule = find_claim(check_claims(repository_rows), words)
    assert rule.holds_on == list(DATASETS)
    assert "(part of seismic only)" in rule.text


def test_the_rows_of_this_repository_are_the_whole_plan(repository_rows):
    assert missing_trials(repository_rows) == []


def kept(method, skills):
    base = {"experiment": "vectors", "method": method, "setting": 0.5}
    return [
        row(**base, seed=seed, uncertainty_coefficient=skill) for seed, skill in enumerate(skills)
    ]


@pytest.mark.parametrize(
    ("half_of_vectors", "half_of_rows", "is_precipitous"),
    [
        ([0.4, 0.42], [0.78, 0.78], True),
        # Not a tenth.
        ([0.75, 0.75], [0.8, 0.8], False),
        # Fewer rows lose as much.
        ([0.5, 0.5], [0.6, 0.6], False),
        # Chance.
        ([0.1, 1.0], [0.8, 0.8], False),
    ],
)
def test_a_precipitous_drop_is_large_in_itself_and_beside_fewer_rows(
    half_of_vectors, half_of_rows, is_precipitous
):
    trials = kept("kept-vectors", half_of_vectors) + kept("fewer-rows", half_of_rows)
    check = check_vectors([BASE, *trials], "sat")
    assert check.is_precipitous == is_precipitous
    (claim,) = check_text([BASE, *trials], [], [])
    assert claim.is_met == is_precipitous


def test_nothing_is_said_of_vectors_before_both_methods_were_tried():
    assert check_vectors([BASE, *kept("kept-vectors", [0.4])], "sat") is None


def test_every_claim_of_the_text_is_checked_against_the_rows_of_this_repository(repository_rows):
    folder = Path(__file__).parents[3] / "docs" / "paper"
    times, scaling = read_times(folder / "times.csv"), read_scaling(folder / "scaling.csv")
    claims = {claim.asked: claim for claim in check_text(repository_rows, times, scaling)}
    assert len(claims) == 9
    page = folder.with_name("paper.md").read_text()
    assert all(claim.line in page for claim in claims.values())
    drop = claims["Sub-sampling the support vectors themselves causes a precipitous drop"]
    assert "of 17 datasets" in drop.measured
