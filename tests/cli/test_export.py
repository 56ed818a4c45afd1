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
    assert f"{result['n_constant_bytes']:,} bytes of tables" in output_of(capsys, *words)


def test_an_exported_libagf_model_can_be_scored(folder, tmp_path, capsys):
    pytest.importorskip("limes.export.libagf")
    run("export", folder / "fast.limes", "--to", "libagf", "-o", tmp_path / "f.agf")
    assert (tmp_path / "f.agf").read_text().startswith("1v1\n4\n")
    result = json.loads(
        output_of(capsys, "score", tmp_path / "f.agf", folder / "test.csv", "--json")
    )
    assert result["model"]["accuracy"] > 0.6


class TestFallback:
    @pytest.fixture
    def model(self, tmp_path):
        """A pairwise map of two classes with fallback, in a file."""
        import numpy as np

        from limes.model import BorderMap, Model, PairwiseScheme, save_model
        from limes.model.exact import ExactScheme, FallbackScheme
        from limes.model.svm import Kernel, TrainedSvm

        line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
        svm = TrainedSvm(Kernel("rbf"), [[0.0, 0.0], [0.0, 2.0]], [[1, -1]], [0.0], [1, 1])
        scheme = FallbackScheme(PairwiseScheme((line,), 2), ExactScheme(svm), margin=0.5)
        save_model(Model(scheme, np.array([3, 7]), 2), tmp_path / "both.limes")
        return tmp_path / "both.limes"

    @pytest.mark.parametrize("target", ["c", "onnx", "libagf"])
    def test_it_is_left_out_with_a_note(self, model, target, tmp_path, capsys):
        run("export", model, "--to", target, "-o", tmp_path / "out")
        note = capsys.readouterr().err
        assert note.startswith("limes: written without the fallback to exact sums")
        assert ("--fallback" in note) == (target != "libagf")
        assert note.count("\n") == 1

    @pytest.mark.parametrize("target", ["c", "onnx"])
    def test_it_is_included_on_request(self, model, target, tmp_path, capsys):
        run("export", model, "--to", target, "-o", tmp_path / "alone")
        capsys.readouterr()
        run("export", model, "--to", target, "-o", tmp_path / "both", "--fallback")
        assert not capsys.readouterr().err
        assert (tmp_path / "both").stat().st_size > (tmp_path / "alone").stat().st_size

    def test_libagf_has_none(self, model, tmp_path, capsys):
        words = ("export", model, "--to", "libagf", "-o", tmp_path / "out", "--fallback")
        assert "libAGF has no exact sums" in error_of(capsys, *words)


class TestMicrocontrollers:
    def test_whole_numbers_state_their_agreement(self, folder, tmp_path, capsys):
        words = ("export", folder / "fast.limes", "--to", "c", "-o", tmp_path / "m.h")
        rows = ("--dtype", "int16", "--rows", folder / "test.csv", "--label", "label")
        result = json.loads(output_of(capsys, *words, *rows, "--json"))
        assert result["agreement"] > 0.99
        assert f"{result['agreement']:.2%} of" in (tmp_path / "m.h").read_text()
        assert "agreement with the float model" in output_of(capsys, *words, *rows)

    def test_a_library_is_written_whole_into_a_new_folder(self, folder, tmp_path, capsys):
        words = ("export", folder / "fast.limes", "--to", "arduino", "--dtype", "int8")
        run(*words, "-o", tmp_path / "Fast", "--name", "fast")
        files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
        assert files == {
            "Fast/library.properties",
            "Fast/src/fast.h",
            "Fast/examples/Classify/Classify.ino",
        }
        assert "fast_quantize" in (tmp_path / "Fast/examples/Classify/Classify.ino").read_text()
        capsys.readouterr()
        assert "expected a new or an empty folder" in error_of(
            capsys, *words, "-o", tmp_path / "Fast"
        )

    def test_sizes_need_no_output(self, folder, capsys):
        words = ("export", folder / "fast.limes", "--size", "--dtype", "int16", "--json")
        sizes = json.loads(output_of(capsys, *words))["sizes"]
        assert [size["processor"] for size in sizes] == ["AVR", "Cortex-M0"]
        for size in sizes:
            assert size["multiply_adds"] > 0
            assert (size["flash"] is None) == bool(size["reason"])
            if size["flash"] is not None:
                # Three features, and values of four classes.
                assert size["flash"] > 500
                assert size["ram"] > 16

    def test_float64_is_refused_for_avr(self, folder, capsys):
        words = ("export", folder / "fast.limes", "--size", "--dtype", "float64")
        assert "AVR has no float64: export with dtype float32" in output_of(capsys, *words)

    def test_the_size_is_compared_with_that_of_the_source(self, folder, capsys):
        words = ("export", folder / "fast.limes", "--source", folder / "svm.model", "--json")
        result = json.loads(output_of(capsys, *words))
        text = output_of(capsys, *words[:-1])
        is_smaller = result["source_bytes"] < result["n_constant_bytes"]
        smaller = "exact sums are smaller" if is_smaller else "fast model is smaller"
        assert smaller in text
        assert "it is a fast classifier" in error_of(capsys, *words[:-2], folder / "fast.limes")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--to", "onnx", "-o", "x", "--dtype", "int16"), "--dtype int16 is for --to c"),
            (("--to", "onnx", "-o", "x", "--size"), "--size is for --to c"),
            (("--to", "c"), "give -o OUT, or --size alone"),
            (("-o", "x"), "--to must be one of"),
            (("--to", "c", "-o", "x", "--dtype", "int8", "--max-bytes", "50"), "max_bytes=50"),
        ],
    )
    def test_options_that_do_not_fit_are_refused(self, folder, words, message, capsys):
        assert message in error_of(capsys, "export", folder / "fast.limes", *words)
