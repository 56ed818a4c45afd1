"""Data flow in one direction: a module imports only from lower layers, without cycles."""

import ast
from pathlib import Path

import pytest

import limes
from limes.fast_estimator import ARRAY_MODULES, SCENES

PACKAGE = Path(limes.__file__).parent
LAYERS = {
    "_core": 0,
    "_typing": 0,
    "atomic": 0,
    "old_names": 0,
    "scores": 0,
    "subsample": 0,
    "timing": 0,
    "model": 1,
    "report": 1,
    "sources": 2,
    "fit": 3,
    "classifier": 4,
    "detector": 4,
    "fast_estimator": 4,
    "agf": 5,
    "dask_arrays": 5,
    "datasets": 5,
    "export": 5,
    "files": 5,
    "foreign": 5,
    "html_report": 5,
    "libsvm": 5,
    "plotting": 5,
    "raster": 5,
    "saved_source": 5,
    "spark": 5,
    "versions": 5,
    "cli": 6,
    "research": 6,
    "__main__": 7,
}
# The stages of a fit, in the order in which data flow.
STAGES = [
    "config",
    "data",
    "synthetic",
    "input",
    "transfer_set",
    "train",
    "validation",
    "evaluation",
    "search",
    "quality",
    "outliers",
    "borders",
    "parameters",
    "schemes",
    "pipeline",
]
# Layers whose parts may import each other.
OPEN_LAYERS = {0, 4, 5, 6}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def module_name(path: Path) -> str:
    """Return the dotted name below the package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path) for path in MODULES} | {"_core._native"}


def imported_modules(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("limes"):
            base = node.module.removeprefix("limes").removeprefix(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".removeprefix(".")
                found.add(full if full in NAMES else base)
        elif isinstance(node, ast.Import):
            found |= {alias.name[6:] for alias in node.names if alias.name.startswith("limes.")}
    return found - {""}


def part(name: str) -> str:
    """Return the first name: the part of the package that a module belongs to."""
    return name.split(".")[0]


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_a_module_imports_only_from_lower_layers(path):
    own = part(module_name(path))
    others = {part(name) for name in imported_modules(path)} - {own}
    upward = {
        name
        for name in others
        if LAYERS[name] > LAYERS[own]
        or (LAYERS[name] == LAYERS[own] and LAYERS[own] not in OPEN_LAYERS)
    }
    assert not upward


def test_arrays_of_other_libraries_are_the_only_upward_reference():
    tables = [*ARRAY_MODULES.values(), SCENES]
    assert {LAYERS[name.removeprefix("limes.")] for name in tables} == {5}
    users = {module_name(path) for path in MODULES if "import_module(" in path.read_text()}
    # The registry of sources imports the modules of its own folder.
    assert {name for name in users if LAYERS[part(name)] < 5} == {"fast_estimator", "sources"}


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: f"{stage}-stage")
def test_a_stage_of_the_fit_imports_only_earlier_stages(stage):
    used = imported_modules(PACKAGE / "fit" / f"{stage}.py")
    later = {name for name in used if part(name) == "fit" and name != "fit"} - {
        f"fit.{earlier}" for earlier in STAGES[: STAGES.index(stage)]
    }
    assert not later


def test_every_stage_of_the_fit_is_listed():
    found = {path.stem for path in (PACKAGE / "fit").glob("*.py")} - {"__init__"}
    assert found == set(STAGES)


def test_only_commands_import_commands_and_research():
    users = {
        module_name(path)
        for path in MODULES
        for name in imported_modules(path)
        if part(name) in ("cli", "research") and part(name) != part(module_name(path))
    }
    assert {part(name) for name in users} <= {"cli", "__main__"}


def test_no_two_modules_import_each_other():
    uses = {module_name(path): imported_modules(path) for path in MODULES}
    left = dict(uses)
    while free := {name for name, used in left.items() if not (used & set(left)) - {name}}:
        left = {name: used for name, used in left.items() if name not in free}
    assert not {name: used & set(left) for name, used in left.items()}
