"""Versions and SIMD level are reported for bug reports."""

from importlib import util

import pytest

from limes._core import hardware, simd_level, simd_levels
from limes.versions import computer, package_versions, show_versions, versions


def test_the_simd_level_is_printed(capsys):
    show_versions()
    assert versions()["SIMD level"] == simd_level()
    assert f"SIMD level: {simd_level()}\n" in capsys.readouterr().out
    assert computer().endswith(simd_level())


@pytest.mark.parametrize("level", simd_levels())
def test_the_environment_sets_the_level_at_import(level, monkeypatch):
    monkeypatch.setenv(hardware.VARIABLE, level)
    # The module executed once more beside the imported one, as a new process would import it.
    spec = util.spec_from_file_location("imported_again", hardware.__file__)
    imported_again = util.module_from_spec(spec)
    spec.loader.exec_module(imported_again)
    assert imported_again.simd_level() == level


def test_the_versions_of_a_result_name_the_packages_of_its_method():
    text = package_versions("sklearn.svm scipy")
    assert [part.split()[0] for part in text.split(", ")] == [
        *("python", "limes", "numpy", "scikit-learn", "scipy")
    ]
