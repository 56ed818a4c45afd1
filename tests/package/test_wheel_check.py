"""The checks of `make wheel-check` find what is wrong with a wheel or a source archive."""

import pytest

from tests.package.wheel_check import (
    NEEDED_SOURCES,
    environ,
    package_files,
    sdist_problems,
    tag_problems,
    wheel_problems,
)

EXPECTED = {"limes/__init__.py", "limes/export/model.h.in"}
GOOD = [*sorted(EXPECTED), "limes/_core/_native.abi3.so", "limes-0.1.0.dist-info/licenses/LICENSE"]


@pytest.mark.parametrize("module", ["_native.abi3.so", "_native.cpython-311-x.so", "_native.pyd"])
def test_a_wheel_has_the_package_and_one_module(module):
    names = [*GOOD[:2], f"limes/_core/{module}", GOOD[3]]
    assert wheel_problems(names, EXPECTED) == []


@pytest.mark.parametrize(
    "name",
    [
        "limes/core/predict.cpp",
        "limes/include/simd.hpp",
        "core/CMakeLists.txt",
        "tests/conftest.py",
        "limes/tests/test_a.py",
        "build/cp311/x.o",
        "lib/libnanobind-static.a",
    ],
)
def test_other_files_in_a_wheel_are_found(name):
    assert wheel_problems([*GOOD, name], EXPECTED) == [f"not of the package: {name}"]


@pytest.mark.parametrize("name", GOOD)
def test_files_that_a_wheel_lacks_are_found(name):
    assert len(wheel_problems([other for other in GOOD if other != name], EXPECTED)) == 1


def test_the_package_in_the_tree_has_no_compiled_files():
    files = package_files()
    assert {"limes/__init__.py", "limes/py.typed", "limes/_core/_native.pyi"} <= files
    assert not [name for name in files if name.endswith((".so", ".pyd", ".pyc", ".cpp", ".hpp"))]


def test_the_tag_of_a_wheel_is_that_of_this_python():
    assert tag_problems("limes-0.1.0-py3-none-any.whl")


@pytest.mark.parametrize("name", ["build/a/b.o", ".git/config", "src/limes/_core/_native.so"])
def test_files_that_are_not_sources_are_found(name):
    assert sdist_problems(NEEDED_SOURCES) == []
    assert sdist_problems(NEEDED_SOURCES | {name}) == [f"not a source: {name}"]


def test_a_missing_source_is_found():
    assert sdist_problems(NEEDED_SOURCES - {"core/predict.cpp"}) == ["missing: core/predict.cpp"]


def test_only_the_programs_of_the_environment_are_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "clang++")
    variables = environ(tmp_path)
    assert variables["PATH"] == str(tmp_path)
    assert "CXX" not in variables
