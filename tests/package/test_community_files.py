"""Files for contributors, users who cite, and reviewers: complete, consistent, nothing invented."""

import csv
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import limes

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
FORMS = sorted(set(GITHUB.glob("ISSUE_TEMPLATE/*.yml")) - {GITHUB / "ISSUE_TEMPLATE/config.yml"})
PAPER = ROOT / "paper" / "paper.md"
FILES = [
    ROOT / "CITATION.cff",
    ROOT / "CODE_OF_CONDUCT.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    ROOT / ".readthedocs.yaml",
    ROOT / "pyproject.toml",
    GITHUB / "PULL_REQUEST_TEMPLATE.md",
    GITHUB / "ISSUE_TEMPLATE" / "config.yml",
    PAPER,
    ROOT / "paper" / "paper.bib",
    *FORMS,
    *WORKFLOWS,
]
# What stands in templates until somebody fills it in, and contacts: none is known.
PLACEHOLDERS = {
    "a mark to fill in": r"\b(TODO|TBD|FIXME|XXX+|lorem ipsum|placeholder)\b",
    "a name to fill in": r"\b(your|my|some)[ _-]?(name|e-?mail|organi[sz]ation|username|repo)\b",
    "a field to fill in": r"<[a-z]+[ _-][a-z _-]+>|\[(insert|your)\b[^\]]*\]",
    "an invented address": r"\bexample\.(com|org|net)\b|\b[\w.+-]+@[\w-]+\.[a-z]{2,}\b",
    "an invented repository": r"\b(github|gitlab)\.com/",
    "an invented identifier": r"\b0000-000\d-\d{4}-\d{3}[\dX]\b|\b10\.(5281|21105)/|zenodo\.[x\d]",
}
# Commands of a job beside make: they install what make needs.
SETUP = ("sudo apt-get update && sudo apt-get install --yes ", "choco install make ")


def find_placeholders(text):
    """Return what looks as if it had to be filled in, or had been invented."""
    return [
        f"{kind}: {match[0]}"
        for kind, pattern in PLACEHOLDERS.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_has_a_placeholder(path):
    assert not find_placeholders(path.read_text())


@pytest.mark.parametrize(
    "text",
    [
        "TODO: contact",
        "write to security@limes.dev",
        "orcid: 0000-0002-1825-0097",
        "[INSERT CONTACT METHOD]",
        "https://github.com/limes/limes",
        "name: Your Name",
        "see <project url>",
        "doi: 10.5281/zenodo.1234567",
        "https://example.org",
    ],
)
def test_a_placeholder_is_found(text):
    assert find_placeholders(text)


@pytest.mark.parametrize(
    "text", ["${{ matrix.target }}", "uses: actions/checkout@v4", "@mills2018"]
)
def test_ordinary_text_is_no_placeholder(text):
    assert not find_placeholders(text)


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert limes.__version__ == project["version"] == str(citation["version"])
    assert citation["license"] == project["license"]
    assert citation["authors"] == project["authors"]


def test_the_citation_has_the_paper_of_the_method():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "type"} <= set(citation)
    (paper,) = citation["references"]
    assert paper["doi"] == "10.1007/s11554-018-0769-9"
    assert paper["doi"] in (ROOT / "paper" / "paper.bib").read_text()


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_asks_for_something(path):
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    names = [field["id"] for field in fields]
    assert len(names) == len(set(names))
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def make_targets():
    """Return the targets of the Makefile that are commands."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    return set(re.search(r"^\.PHONY:(.*)$", text, re.MULTILINE)[1].split())


def commands_of(path):
    """Yield what the steps of a workflow run, once for each target of a matrix."""
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        entries = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
        for step in job["steps"]:
            for entry in entries if "run" in step else ():
                yield step["run"].replace("${{ matrix.target }}", entry.get("target", ""))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_of_make(path):
    commands = [run for run in commands_of(path) if not run.startswith(SETUP)]
    assert commands
    # The site has its own target.
    known = make_targets() | {"docs"}
    wrong = [
        run for run in commands if not re.fullmatch(r"make [\w-]+( PYTHON=python)?", run.strip())
    ]
    assert not wrong
    assert not {run.split()[1] for run in commands} - known


def test_only_publishing_has_a_permission_beyond_reading():
    granted = {}
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {"contents": "read"}
        for name, job in workflow["jobs"].items():
            if "permissions" in job:
                granted[path.stem, name] = job["permissions"]
    assert granted == {("wheels", "publish"): {"id-token": "write"}}


def test_the_paper_cites_what_its_bibliography_has():
    cited = set(re.findall(r"@(\w+)", PAPER.read_text()))
    entries = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(), re.M))
    assert cited == entries


def test_the_paper_has_the_length_and_the_sections_of_the_journal():
    text = PAPER.read_text().split("---\n", 2)[2]
    assert 250 <= len(text.split()) <= 1000
    headings = re.findall(r"^# (.+)$", text, re.MULTILINE)
    assert {"Summary", "Statement of need", "State of the field", "References"} <= set(headings)


def test_figures_of_the_paper_are_those_of_the_committed_rows():
    with (ROOT / "docs" / "benchmarks" / "results.csv").open() as stream:
        rows = {(row["dataset"], row["method"]): row for row in csv.DictReader(stream)}
    lines = re.findall(
        r"^\| (\w+) \| ([\w-]+) \| ([\d.]+) \| ([\d.]+) \|$", PAPER.read_text(), re.M
    )
    assert len(lines) == 6
    for dataset, method, accuracy, microseconds in lines:
        row = rows[dataset, method]
        assert accuracy == f"{float(row['accuracy']):.3f}"
        digits = len(microseconds.partition(".")[2])
        assert microseconds == f"{float(row['microseconds_per_row']):.{digits}f}"
