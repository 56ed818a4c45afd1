"""Pages name files that exist, and words that were retired do not return."""

import csv
import re
from pathlib import Path

import pytest

from limes.cli.main import make_parser
from tests.conftest import quick_training

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
HAND_WRITTEN = [
    README,
    ROOT / "ARCHITECTURE.md",
    ROOT / "CODE_OF_CONDUCT.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
]
GUIDE = sorted([*ROOT.glob("docs/guide/*.md"), *ROOT.glob("docs/runtimes/*.md")])
PAGES = [*HAND_WRITTEN, *sorted((ROOT / "docs").glob("*.md")), *GUIDE]
# Pages that the build of the site writes.
GENERATED = ROOT / "docs" / "generated"
# Folders whose files a page may name without their folder, as in a table of one package.
BASES = ("", "src/limes", "src/limes/fit", "docs")
# What is named that way, but is made by a command, or belongs to a user or to another program.
MADE = {
    ".venv",
    ".vec",
    ".cls",
    "limes-demo.png",
    "quadratic_discriminant.py",
    "report.html",
    "results.csv",
    "results.md",
    "subset.py",
}
# Endings of the project's own files. Data of users has others.
ENDINGS = ("py", "pyi", "cpp", "hpp", "cmake", "md", "html", "toml", "txt", "png")
NAMED_FILE = re.compile(rf"[\w.-]+(/[\w.-]+)*\.({'|'.join(ENDINGS)})|[\w.-]+(/[\w.-]+)*/")
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
DIAGRAM = re.compile(r"^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
PYTHON_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
WORDS = ROOT / "tests" / "retired_words.txt"
SEARCHED = ("src", "core", "bindings", "tests", "benchmarks", "examples", "docs")
# This test and its list name the words.
EXCEPTED = {WORDS, Path(__file__)}
TEXT_ENDINGS = {".py", ".pyi", ".cpp", ".hpp", ".txt", ".md", ".cmake", ".in", ".html"}
# Files that need a retired word: they translate old names, or check that these are refused.
ALLOWED = {
    "benchmarks/behaviour.py": {"tradeoff", "LIMES_CPU"},
    "docs/format.md": {"tradeoff"},
    "src/limes/_core/hardware.py": {"LIMES_CPU"},
    "src/limes/classifier.py": {"tradeoff", "one_sided_"},
    "src/limes/files/__init__.py": {"create_answers"},
    "src/limes/model/file.py": {"tradeoff"},
    "src/limes/old_names.py": {"tradeoff"},
    "src/limes/plotting.py": {"draw_tradeoff"},
    "src/limes/report.py": {"microseconds_a_row"},
    "src/limes/research/results.py": {"microseconds_a_row"},
    "tests/_core/test_arguments.py": {"LIMES_CPU"},
    "tests/model/test_file.py": {"tradeoff"},
    "tests/test_public_names.py": {"tradeoff", "draw_tradeoff", "create_answers"},
    "tests/test_report.py": {"microseconds_a_row"},
}


def page_name(path):
    return path.relative_to(ROOT).as_posix()


def named_files(page):
    """Return the files and folders of the project that a page names in backticks or links to."""
    text, diagrams = CODE.sub("", page.read_text()), DIAGRAM.findall(page.read_text())
    candidates = re.findall(r"`([^`\n]+)`", text) + " ".join(diagrams).split()
    names = {name for name in candidates if NAMED_FILE.fullmatch(name)}
    links = re.findall(r"\]\(([^)#:\s]+)\)", text)
    # Pages of the API and of the gallery are made by the site's build, which checks links to them.
    return names - MADE, {link for link in links if not link.startswith("generated/")}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_file_that_a_page_names_exists(page):
    names, links = named_files(page)
    missing = {name for name in names if not any((ROOT / base / name).exists() for base in BASES)}
    targets = {link: (page.parent / link).resolve() for link in links}
    missing |= {
        link
        for link, path in targets.items()
        if not path.exists() and not path.is_relative_to(GENERATED)
    }
    assert not missing


@pytest.mark.parametrize("folder", ["src/limes/fit", "core"])
def test_the_architecture_names_every_module_of_the_fit_and_of_the_core(folder):
    text = (ROOT / "ARCHITECTURE.md").read_text()
    modules = [*(ROOT / folder).glob("[!_]*.py"), *(ROOT / folder).glob("*.cpp")]
    assert modules
    assert not [path.name for path in modules if path.name not in text]


def test_options_in_the_page_of_commands_exist():
    text = (ROOT / "docs" / "commands.md").read_text()
    # Options of LIBSVM and libAGF have one dash.
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    commands = make_parser()._subparsers._group_actions[0].choices.values()
    known = {flag for command in commands for flag in command._option_string_actions}
    assert {"--fallback", "--no-training-rows", "--min-agreement"} <= named
    assert not named - known


def test_a_missing_file_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("See `core/nothing.hpp`, `a.limes`, `make` and [a page](docs/nothing.md).\n")
    assert named_files(page) == ({"core/nothing.hpp"}, {"docs/nothing.md"})


def test_the_code_in_the_readme_and_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {}
    with quick_training():
        for page in (README, *GUIDE):
            for code in PYTHON_CODE.findall(page.read_text()):
                exec(code, names)
    assert (tmp_path / "fast.limes").exists()
    assert len(names["labels"]) == len(names["X_test"])


def test_figures_in_the_readme_are_those_of_the_committed_rows():
    with (ROOT / "docs" / "benchmarks" / "results.csv").open() as stream:
        rows = {(row["dataset"], row["method"]): row for row in csv.DictReader(stream)}
    methods = {"scikit-learn `SVC`": "svc", "LightGBM, 100 trees": "lightgbm-100", "limes": "limes"}
    lines = re.findall(r"^\|([^|]*)\|([^|]*)\| (\**\.\d.*) \|$", README.read_text(), re.M)
    assert len(lines) == 6
    dataset = ""
    for name, method, figures in lines:
        dataset = name.strip().split(" ")[0] or dataset
        row = rows[dataset, methods[method.strip(" *")]]
        single = rows[dataset, "limes-predictor"] if "limes" in method else row
        values = [row["accuracy"], row["uncertainty_coefficient"], row["microseconds_per_row"]]
        found = figures.replace("*", "").split(" | ")
        for text, value in zip(found, [*values, single["microseconds_single_row"]], strict=True):
            digits = len(text.partition(".")[2])
            assert text == f"{float(value):.{digits}f}".removeprefix("0" if text[0] == "." else "")


def retired_words():
    lines = (line.strip() for line in WORDS.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def word_pattern(words):
    # Longest first, so that a phrase is found before a word in it.
    ordered = sorted(words, key=len, reverse=True)
    alternatives = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in ordered)
    return re.compile(rf"(?<![A-Za-z])({alternatives})(?![A-Za-z])", re.IGNORECASE)


def searched_files():
    files = [
        path
        for folder in SEARCHED
        for path in (ROOT / folder).rglob("*")
        if path.suffix in TEXT_ENDINGS and path not in EXCEPTED and "__pycache__" not in path.parts
    ]
    return sorted([*HAND_WRITTEN, *files])


def test_no_retired_word_returns():
    pattern, found = word_pattern(retired_words()), []
    for path in searched_files():
        name = page_name(path)
        allowed = {word.lower() for word in ALLOWED.get(name, ())}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            words = {" ".join(match[1].lower().split()) for match in pattern.finditer(line)}
            found += [f"{name}:{number}: {word}" for word in sorted(words - allowed)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ALLOWED)
def test_a_file_needs_the_words_that_it_is_allowed(name):
    found = {
        match[1] for match in word_pattern(retired_words()).finditer((ROOT / name).read_text())
    }
    assert found == ALLOWED[name]


@pytest.mark.parametrize(
    "line", ["a Judge of rows", "fit_sharpness(x)", "make_twins", "beyond  doubt", "x.tradeoff_"]
)
def test_a_retired_word_is_found_in_names_and_in_any_case(line):
    assert word_pattern(retired_words()).search(line)


@pytest.mark.parametrize("line", ["a trade-off", "judgement", "the surveyor", "twinned"])
def test_other_words_are_not_retired(line):
    assert not word_pattern(retired_words()).search(line)
