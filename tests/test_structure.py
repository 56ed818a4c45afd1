"""The shape of the code base: what is where, and how large it may become."""

import ast
import re
from pathlib import Path

import pytest

import limes

ROOT = Path(__file__).parents[1]
PACKAGE = Path(limes.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
CPP = sorted([*ROOT.glob("core/*.?pp"), *ROOT.glob("bindings/*.?pp")])
MAX_FUNCTION_LINES = 60
MAX_MODULE_LINES = 790


def functions(path):
    """Yield the functions of a file with their lines of code, docstrings left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            start = (
                node.body[1].lineno if ast.get_docstring(node) and node.body[1:] else node.lineno
            )
            yield node.name, node.end_lineno - start + 1


def lines_without_examples(path):
    """Return the number of lines of a file, without the examples in its docstrings."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
    docstrings = [ast.get_docstring(node) or "" for node in nodes]
    examples = [text.partition("Examples\n--------\n")[2] for text in docstrings]
    return len(path.read_text().splitlines()) - sum(
        text.count("\n") + 1 for text in examples if text
    )


def test_the_number_of_files_is_limited():
    # A new source is one file, and counts for nothing.
    others = [path for path in MODULES if path.parent.name != "sources"]
    assert len(others) <= 150
    assert len(CPP) <= 33


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_functions_and_modules_are_short(path):
    assert lines_without_examples(path) <= MAX_MODULE_LINES
    long = {name: lines for name, lines in functions(path) if lines > MAX_FUNCTION_LINES}
    assert not long


def test_only_the_bindings_know_nanobind():
    files = [*ROOT.glob("core/**/*.?pp"), *PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]
    assert not [path for path in files if "nanobind" in path.read_text()]


def test_no_stage_of_the_fit_names_a_class_of_source():
    classes = set()
    for path in (PACKAGE / "sources").glob("*.py"):
        tree = ast.parse(path.read_text())
        names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        classes |= names | {"SVC", "NuSVC", "GaussianProcessClassifier", "LibsvmClassifier"}
    # What every source is, and what wraps any of them.
    classes -= {"Source", "MulticlassSource", "SourceContext", "Shifted"}
    classes -= {"RescaledSource", "TableEncoder"}
    pattern = re.compile(rf"\b({'|'.join(sorted(classes))})\b")
    for path in (PACKAGE / "fit").glob("*.py"):
        assert not pattern.findall(path.read_text()), path.name
