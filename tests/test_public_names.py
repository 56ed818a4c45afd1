"""The names that `import limes` offers, and that offering them costs nothing."""

import subprocess
import sys

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
