"""The names that `import limes` offers, and that offering them costs nothing."""

import subprocess
import sys
from importlib import import_module

import pytest

import limes


def test_every_public_name_has_a_place():
    assert sorted(limes.__all__) == sorted(limes.PLACES)


@pytest.mark.parametrize("name", limes.PLACES)
def test_a_public_name_is_what_its_module_calls_so(name):
    assert getattr(limes, name).__name__ == name


def test_public_names_are_listed_before_they_are_imported():
    assert set(limes.__all__) <= set(dir(limes))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = limes.nothing


def test_importing_the_package_does_not_import_scikit_learn():
    code = "import limes, sys; print(sorted({'sklearn', 'scipy', 'numpy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


RENAMED = [
    (limes.BorderMap.from_borders(points=[[0.0]], normals=[[1.0]]), "normals", "slopes"),
    (limes.BorderMap.from_borders(points=[[0.0]], normals=[[1.0]]), "before", "preprocessing"),
    (limes.BorderMap.from_borders(points=[[0.0]], normals=[[1.0]]), "after", "with_preprocessing"),
    (limes.Candidate("shared", 1, 1, 1, 1.0, 0.0), "lost", "skill_loss"),
    (limes.Candidate("shared", 1, 1, 1, 1.0, 0.0), "error", "agreement_error"),
    (limes.Candidate("shared", 1, 1, 1, 1.0, 0.0), "is_chosen", "is_selected"),
    (limes.BordersClassifier(), "tradeoff_", "candidates_"),
    (import_module("limes.plotting"), "draw_tradeoff", "draw_candidates"),
    (import_module("limes.files"), "create_answers", "create_predictions"),
]


@pytest.mark.parametrize(("owner", "old", "new"), RENAMED, ids=[old for _, old, _ in RENAMED])
def test_an_old_name_raises_an_error_that_gives_the_new_one(owner, old, new):
    with pytest.raises(AttributeError, match=f"no attribute '{old}': it is now called '{new}'"):
        getattr(owner, old)
