"""`limes export`: C and libAGF."""

import json

import pytest

from tests.cli.commands import error_of, output_of, run

pytest.importorskip("pyarrow")


def test_a_c_header_is_written(folder, tmp_path, capsys):
    pytest.importorskip("limes.export.c")
    result = json.loads(
        output_of(
            capsys, "export", folder / "fast.limes", "--to", "c", "-o", tmp_path / "m.h", "--json"
        )
    )
    assert result["n_bytes"] == (tmp_path / "m.h").stat().st_size
    assert "fast_predict" in (tmp_path / "m.h").read_text()
    words = ("export", folder / "svm.model", "--to", "c", "-o", tmp_path / "x.h")
    assert "use limes accelerate first" in error_of(capsys, *words)


def test_the_size_of_a_c_header_in_a_program_is_printed(folder, tmp_path, capsys):
    words = ("export", folder / "fast.limes", "--to", "c", "-o", tmp_path / "fast.h")
    result = json.loads(output_of(capsys, *words, "--json"))
    assert f"#define FAST_BYTES {result['n_constant_bytes']}\n" in (tmp_path / "fast.h").read_text()
    assert f"{result['n_constant_bytes']:,} bytes of constants" in output_of(capsys, *words)


def test_an_exported_libagf_model_can_be_scored(folder, tmp_path, capsys):
    pytest.importorskip("limes.export.libagf")
    run("export", folder / "fast.limes", "--to", "libagf", "-o", tmp_path / "f.agf")
    assert (tmp_path / "f.agf").read_text().startswith("1v1\n4\n")
    result = json.loads(
        output_of(capsys, "score", tmp_path / "f.agf", folder / "test.csv", "--json")
    )
    assert result["model"]["accuracy"] > 0.6
