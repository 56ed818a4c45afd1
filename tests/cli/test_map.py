"""`limes map`, and `limes accelerate` with a scene."""

import json
import sys

import numpy as np
import pytest
import rasterio
from numpy.testing import assert_array_equal
from rasterio.shutil import copy as copy_raster
from sklearn.svm import SVC

from limes import load
from limes.cli.main import main
from limes.libsvm import write_libsvm_model
from tests.cli.commands import QUICK, error_of, output_of, run
from tests.cli.test_folder import killed_at_random, run_crashes
from tests.raster.conftest import fast, labels, pixels, write_tif  # noqa: F401 - fixtures


@pytest.fixture
def scene(tmp_path, fast, pixels):  # noqa: F811
    """A folder with a model and a scene; it is also the current one."""
    fast.save(tmp_path / "m.limes")
    write_tif(tmp_path / "scene.tif", pixels)
    return tmp_path


def read(path):
    with rasterio.open(path) as file:
        return file.read(1)


def test_a_map_has_the_labels_of_predict(scene, labels, capsys):  # noqa: F811
    text = output_of(capsys, "map", scene / "m.limes", scene / "scene.tif", "-o", scene / "map.tif")
    assert "map written to" in text
    assert_array_equal(read(scene / "map.tif"), labels)


def test_all_outputs_are_written(scene, labels):  # noqa: F811
    words = ["map", scene / "m.limes", scene / "scene.tif", "-o", scene / "map.tif"]
    run(*words, "--proba", scene / "p.tif", "--confidence", scene / "c.tif", "--ram", "32")
    with rasterio.open(scene / "p.tif") as file:
        assert file.count == 3
    assert_array_equal(np.isnan(read(scene / "c.tif")), labels == 0)


def test_several_files_are_a_stack(scene, pixels, labels):  # noqa: F811
    files = [write_tif(scene / f"b{k}.tif", pixels[k : k + 1]) for k in range(4)]
    run("map", scene / "m.limes", *files, "-o", scene / "map.tif")
    assert_array_equal(read(scene / "map.tif"), labels)
    names = "*b0.tif,*b1.tif,*b2.tif,*b3.tif"
    run("map", scene / "m.limes", *files[::-1], "--bands", names, "-o", scene / "again.tif")
    assert_array_equal(read(scene / "again.tif"), labels)


def test_nodata_mask_and_labels_are_options(scene, pixels, labels):  # noqa: F811
    write_tif(scene / "untagged.tif", pixels, nodata=None)
    mask = np.ones((1, 70, 90), "u1")
    mask[0, :, 80:] = 0
    write_tif(scene / "mask.tif", mask, nodata=None)
    words = ["map", scene / "m.limes", scene / "untagged.tif", "-o", scene / "map.tif"]
    run(*words, "--nodata", "0", "--nodata-label", "255", "--mask", scene / "mask.tif")
    is_valid = (labels != 0) & (mask[0] != 0)
    assert_array_equal(read(scene / "map.tif"), np.where(is_valid, labels, 255))


def test_classes_have_names_and_colours(scene):
    (scene / "classes.csv").write_text(
        "value,name,colour\n3,crop,#ff0000\n7,dry tree\n9,water,#0000ff\n"
    )
    words = ["map", scene / "m.limes", scene / "scene.tif", "-o", scene / "map.tif"]
    run(*words, "--classes", scene / "classes.csv")
    with rasterio.open(scene / "map.tif") as file:
        assert file.colormap(1)[3] == (255, 0, 0, 255)
    assert "<Category>dry tree</Category>" in (scene / "map.tif.aux.xml").read_text()


def test_the_map_is_checked_against_its_source(scene, fast, capsys):  # noqa: F811
    write_libsvm_model(fast.estimator_, scene / "svm.model")
    words = ["map", scene / "m.limes", scene / "scene.tif", "-o", scene / "map.tif"]
    words += ["--check", scene / "svm.model"]
    found = json.loads(output_of(capsys, *words, "--json"))
    assert found["agreement"] > 0.8
    assert [row["class"] for row in found["classes"]] == [3, 7, 9]
    assert sum(row["n_pixels"] for row in found["classes"]) == found["n_checked"]
    assert "all" in output_of(capsys, *words)


def test_accelerate_samples_a_scene(scene, fast, capsys):  # noqa: F811
    write_libsvm_model(fast.estimator_, scene / "svm.model")
    run("accelerate", scene / "svm.model", scene / "scene.tif", "-o", scene / "new.limes", *QUICK)
    run("map", scene / "new.limes", scene / "scene.tif", "-o", scene / "map.tif")
    assert load(scene / "new.limes").n_features_in_ == 4


def test_accelerate_samples_a_stack(scene, fast, pixels, capsys):  # noqa: F811
    write_libsvm_model(fast.estimator_, scene / "svm.model")
    files = [write_tif(scene / f"b{k}.tif", pixels[k : k + 1]) for k in range(4)]
    words = ["accelerate", scene / "svm.model", *files, "-o", scene / "new.limes", *QUICK]
    run(*words)
    assert load(scene / "new.limes").n_features_in_ == 4
    run(*words[:2], *words[6:], *files)
    np.save(scene / "rows.npy", np.zeros((3, 4)))
    assert "got 3" in error_of(capsys, *words[:5], "-o", scene / "x.limes")
    mixed = [*words[:5], scene / "rows.npy"]
    assert "expected a raster, found a NumPy array" in error_of(capsys, *mixed, "-o", "x.limes")
    mixed = [*words[:2], scene / "rows.npy", files[0]]
    assert "give one file of rows" in error_of(capsys, *mixed, "-o", scene / "x.limes")
    assert "an input as well as an output" in error_of(capsys, *words[:6], "-o", files[2])
    assert not (scene / "x.limes").exists()


class TestFolder:
    @pytest.fixture
    def scenes(self, scene, pixels):  # noqa: F811
        folder = scene / "scenes"
        folder.mkdir()
        for number in range(3):
            write_tif(folder / f"s{number}.tif", np.roll(pixels, number, axis=2))
        (folder / "readme.txt").write_text("no scene")
        return ["map", scene / "m.limes", folder, "-o", scene / "maps"]

    def test_each_raster_is_a_scene(self, scene, scenes, labels, capsys):  # noqa: F811
        assert "3 files written" in output_of(capsys, *scenes)
        assert_array_equal(read(scene / "maps" / "s1.tif"), np.roll(labels, 1, axis=1))
        assert "3 were complete already" in output_of(capsys, *scenes)
        assert "3 files written" in output_of(capsys, *scenes, "--overwrite")
        (scene / "maps" / "s2.tif.aux.xml").unlink()
        assert "1 files written" in output_of(capsys, *scenes, "--jobs", "1")

    def test_a_truncated_scene_is_listed(self, scene, scenes, capsys):
        path = scene / "scenes" / "s1.tif"
        path.write_bytes(path.read_bytes()[:20_000])
        capsys.readouterr()
        assert main([str(word) for word in scenes]) == 1
        captured = capsys.readouterr()
        assert "2 files written" in captured.out
        assert "s1.tif: expected a complete raster" in captured.err
        assert captured.err.count("\n") == 1
        assert not list((scene / "maps").glob("*s1*"))

    def test_sub_folders_of_bands_are_scenes(self, scene, pixels, labels, capsys):  # noqa: F811
        for name in ("one", "two"):
            folder = scene / "scenes" / name
            folder.mkdir(parents=True)
            for k in range(4):
                write_tif(folder / f"x_B{k}.tif", pixels[k : k + 1])
        words = ["map", scene / "m.limes", scene / "scenes", "-o", scene / "maps"]
        words += ["--bands", "*_B0.tif, *_B1.tif,*_B2.tif,*_B3.tif"]
        assert "2 files written" in output_of(capsys, *words)
        assert_array_equal(read(scene / "maps" / "two.tif"), labels)
        (scene / "scenes" / "two" / "x_B1.tif").unlink()
        assert main([str(word) for word in words]) == 1
        assert "expected one file that matches '*_B1.tif'" in capsys.readouterr().err

    def test_a_folder_of_bands_is_a_scene(self, scene, pixels, labels):  # noqa: F811
        folder = scene / "bands"
        folder.mkdir()
        for k in range(4):
            write_tif(folder / f"x_B{k}.tif", pixels[k : k + 1])
        words = ["map", scene / "m.limes", folder, "-o", scene / "map.tif"]
        run(*words, "--bands", "*_B0.tif,*_B1.tif,*_B2.tif,*_B3.tif")
        assert_array_equal(read(scene / "map.tif"), labels)

    @pytest.mark.skipif(sys.platform == "win32", reason="forks")
    def test_a_crash_at_some_steps_is_repaired_by_the_next_run(self, scenes):
        """Every write, fsync and rename of forty maps: `make test-slow`."""
        run_crashes([*map(str, scenes)], 6)

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform == "win32", reason="forks")
    def test_a_crash_at_any_step_of_forty_maps_is_repaired(self, scene, scenes, pixels):  # noqa: F811
        for number in range(40):
            part = np.roll(pixels, number, axis=2)[:, 20:40, :30]
            write_tif(scene / "scenes" / f"s{number}.tif", part)
        run_crashes([*map(str, scenes)], 10**9)

    @pytest.mark.slow
    def test_kills_at_random_moments_are_repaired(self, scene, scenes, pixels):  # noqa: F811
        for number in range(3, 40):
            write_tif(scene / "scenes" / f"s{number}.tif", np.roll(pixels, number, axis=2))
        words = [*map(str, scenes), "--jobs", "1"]
        run(*words)
        killed_at_random(words, scene / "maps", 20)

    def test_a_change_behind_a_virtual_raster_is_seen(self, scene, pixels, labels, capsys):  # noqa: F811
        (scene / "scenes").mkdir()
        copy_raster(scene / "scene.tif", scene / "inner.vrt", driver="VRT")
        copy_raster(scene / "inner.vrt", scene / "scenes" / "s.vrt", driver="VRT")
        words = ["map", scene / "m.limes", scene / "scenes", "-o", scene / "maps"]
        assert "1 files written" in output_of(capsys, *words)
        assert "1 were complete already" in output_of(capsys, *words)
        write_tif(scene / "scene.tif", np.roll(pixels, 1, axis=2))
        assert "1 files written" in output_of(capsys, *words)
        assert_array_equal(read(scene / "maps" / "s.tif"), np.roll(labels, 1, axis=1))

    def test_many_maps_are_not_checked(self, scene, scenes, capsys):
        words = [*scenes, "--check", scene / "m.limes"]
        assert "--check compares one map" in error_of(capsys, *words)
        assert not (scene / "maps").exists()

    def test_one_map_can_be_resumed(self, scene, capsys):
        words = ["map", scene / "m.limes", scene / "scene.tif", "-o", scene / "map.tif", "--resume"]
        assert "1 files written" in output_of(capsys, *words)
        assert "1 were complete already" in output_of(capsys, *words)


class TestBadInput:
    @pytest.mark.parametrize(
        ("more", "expected"),
        [
            (["--nodata", "x"], "--nodata must be numbers or none, got 'x'"),
            (["--ram", "1"], "--ram must be 32 or more, got 1"),
            (["--mask", "missing.tif"], "missing.tif"),
            (["--resume", "--overwrite"], "not allowed with argument"),
            (["--nodata-label", "7"], "must not be the value of a class, got 7"),
        ],
    )
    def test_wrong_options_are_one_line(self, scene, capsys, more, expected):
        words = ["map", scene / "m.limes", scene / "scene.tif", "-o", scene / "map.tif"]
        assert expected in error_of(capsys, *words, *more)
        assert not (scene / "map.tif").exists()

    def test_a_slow_model_is_refused(self, scene, pixels, capsys):  # noqa: F811
        X = pixels[:, 30:32].reshape(4, -1).T.astype(float)
        write_libsvm_model(SVC().fit(X, X[:, 0] > 90), scene / "svm.model")
        words = ["map", scene / "svm.model", scene / "scene.tif", "-o", scene / "map.tif"]
        assert "expected a fast classifier, found a slow one" in error_of(capsys, *words)

    def test_rows_are_no_scene(self, scene, capsys):
        np.save(scene / "rows.npy", np.zeros((3, 4)))
        words = ["map", scene / "m.limes", scene / "rows.npy", "-o", scene / "map.tif"]
        assert "expected a raster, found a NumPy array" in error_of(capsys, *words)

    def test_a_scene_is_no_rows(self, scene, capsys):
        words = ["predict", scene / "m.limes", scene / "scene.tif", "-o", scene / "out.csv"]
        message = error_of(capsys, *words)
        assert "expected rows, found a TIFF raster: use limes map" in message

    @pytest.mark.filterwarnings("default")
    def test_a_file_of_more_classes_is_remarked(self, scene, capsys):
        (scene / "classes.csv").write_text("3,crop\n7,tree\n8,snow\n9,water\n")
        words = ["map", scene / "m.limes", scene / "scene.tif", "-o", scene / "map.tif"]
        capsys.readouterr()
        assert main([str(word) for word in [*words, "--classes", scene / "classes.csv"]]) == 0
        assert "limes: warning: class_names must have" in (text := capsys.readouterr().err)
        assert "got ['8'], which are left out" in text
        (scene / "classes.csv").write_text("3,crop\n3,tree\n")
        message = error_of(capsys, *words, "--classes", scene / "classes.csv")
        assert "line 2: expected each value once" in message

    def test_wrong_lines_of_classes_are_quoted(self, scene, capsys):
        (scene / "classes.csv").write_text("3\n")
        words = ["map", scene / "m.limes", scene / "scene.tif", "-o", scene / "map.tif"]
        message = error_of(capsys, *words, "--classes", scene / "classes.csv")
        assert "line 1: expected value, name" in message
