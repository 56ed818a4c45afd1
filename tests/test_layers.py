"""Data flow in one direction: a module imports only from lower steps, or from its own package."""

import ast
from pathlib import Path

import pytest

import limes

PACKAGE = Path(limes.__file__).parent
STEPS = {
    "_core": 0,
    "_typing": 0,
    "atomic": 0,
    "timing": 0,
    "affine": 0.5,
    "rows": 0.5,
    "kernels": 0.25,
    "coupling": 0,
    "platt": 0,
    "svm_machine": 0.5,
    "agf": 0,
    "libsvm": 1,
    "sources": 1.5,
    "placement": 2,
    "queries": 2,
    "remembered": 2.5,
    "roots": 2,
    "refine": 3,
    "border_map": 4,
    "schemes": 5,
    "checks": 5.5,
    "prediction": 5.5,
    "classifier": 6,
    "accelerating": 6.5,
    "scores": 5,
    "report": 5.5,
    "model_file": 5.5,
    "loading": 6.5,
    "versions": 7,
    "subsample": 7,
    "plotting": 7,
    "export": 7,
    "files": 7,
    "html_report": 7.5,
    "source_file": 7,
    "scale": 7,
    "datasets": 7,
    "linear": 7,
    "preprocessing": 7,
    "cli": 9,
    "__main__": 10,
    "paper": 8,
    "bench": 7.5,
}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def part(path: Path) -> str:
    """Return the first name below the package: the step that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    """Return the steps that a file imports from."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "limes":
            names |= {f"limes.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("limes.")}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_lower_steps(path):
    own = part(path)
    upward = {name for name in imported_parts(path) - {own} if STEPS[name] >= STEPS[own]}
    assert not upward
