"""Maps of scenes: the labels of ``predict``, whatever the kind, chunks and blocks of the scene."""

import hashlib
import math

import dask
import numpy as np
import pandas as pd
import pytest
import rasterio
import rioxarray
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp, MaskFlags
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC

import limes
from limes import accelerate, predict_raster
from limes.raster import predict as predict_module
from limes.raster.labels import PixelClassifier
from limes.raster.scene import Scene, block_places, split_shape
from tests.conftest import quick_training
from tests.raster.conftest import GRID, NAMES, NODATA, write_tif


def fail_on_compute(*args, **options):
    raise AssertionError("computed")


def as_array(pixels, **options):
    """Return bands as rioxarray opens them."""
    n_bands, height, width = pixels.shape
    coords = {"band": np.arange(n_bands) + 1, "y": np.arange(height)[::-1] * 30.0}
    coords["x"] = np.arange(width) * 30.0
    attrs = {"_FillValue": NODATA, **options}
    array = xarray.DataArray(pixels, dims=("band", "y", "x"), coords=coords, attrs=attrs)
    return array.rio.write_crs("EPSG:32621")


class TestArrays:
    def test_a_map_has_the_labels_of_predict(self, fast, pixels, labels):
        found = fast.predict(as_array(pixels))
        assert_array_equal(found.values, labels)
        assert found.dtype == np.uint8
        assert found.dims == ("y", "x")

    def test_a_chunked_scene_stays_lazy(self, fast, pixels, labels):
        scene = as_array(pixels).chunk({"band": 2, "y": 33, "x": 40})
        with dask.config.set(scheduler=fail_on_compute):
            found = fast.predict(scene)
            proba = fast.predict_proba(scene)
        assert found.chunks == ((33, 33, 4), (40, 40, 10))
        assert found.dtype == np.uint8
        assert proba.dims == ("class", "y", "x")
        assert_array_equal(found.compute(scheduler="threads").values, labels)

    def test_coordinates_and_the_crs_are_kept(self, fast, pixels):
        scene = as_array(pixels)
        found = fast.predict(scene)
        assert_array_equal(found.x, scene.x)
        assert_array_equal(found.y, scene.y)
        assert found.rio.crs == scene.rio.crs
        assert "band" not in found.coords

    def test_attributes_follow_the_cf_conventions(self, text_fast, pixels, tmp_path):
        found = text_fast.predict(as_array(pixels))
        assert found.attrs["flag_values"].tolist() == [1, 2, 3]
        assert found.attrs["flag_meanings"] == "crop tree water"
        assert found.rio.nodata == 0
        assert "_FillValue" not in found.encoding

    def test_attributes_of_the_values_of_bands_are_left_out(self, fast, pixels):
        scene = as_array(
            pixels, scale_factor=1e-4, add_offset=-0.2, units="1", AREA_OR_POINT="Area"
        )
        found = predict_raster(fast, scene)
        assert found.attrs["AREA_OR_POINT"] == "Area"
        assert not {"scale_factor", "add_offset", "units"} & set(found.attrs)
        assert found.attrs["_FillValue"] == 0
        both = predict_raster(fast, scene, confidence=True)
        assert "scale_factor" not in both.confidence.attrs
        assert "_FillValue" not in both.confidence.attrs

    def test_time_is_kept(self, fast, pixels, labels):
        scene = xarray.concat([as_array(pixels), as_array(pixels[:, ::-1])], dim="time")
        found = fast.predict(scene)
        assert found.dims == ("time", "y", "x")
        assert_array_equal(found.values, [labels, labels[::-1]])

    def test_a_dataset_has_variables_as_bands(self, fast, pixels, labels):
        scene = as_array(pixels).assign_coords(band=NAMES).to_dataset("band")
        assert_array_equal(fast.predict(scene).values, labels)

    def test_bands_of_several_types_are_promoted(self, fast, pixels, labels):
        scene = as_array(pixels).assign_coords(band=NAMES).to_dataset("band")
        scene["red"] = scene["red"].astype("f4")
        scene["nir"] = scene["nir"].astype("i2")
        assert_array_equal(fast.predict(scene).values, labels)

    def test_several_outputs_are_a_dataset(self, fast, pixels, labels):
        found = predict_raster(fast, as_array(pixels), proba=True, confidence=True)
        is_valid = labels != 0
        rows = pixels[:, is_valid].T.astype("f4")
        expected = fast.predict_proba(rows).astype("f4")
        assert list(found) == ["label", "probability", "confidence"]
        assert found.probability.dims == ("class", "y", "x")
        assert found.probability.dtype == found.confidence.dtype == np.float32
        assert_array_equal(found.probability.values[:, is_valid].T, expected)
        assert np.isnan(found.probability.values[:, ~is_valid]).all()
        assert found["class"].values.tolist() == [3, 7, 9]
        two = np.sort(fast.predict_proba(rows), axis=1)[:, -2:]
        assert_array_equal(found.confidence.values[is_valid], (two[:, 1] - two[:, 0]).astype("f4"))

    def test_rows_in_a_data_array_stay_rows(self, fast, pixels):
        rows = pixels.reshape(4, -1).T
        found = fast.predict(xarray.DataArray(rows, dims=("pixel", "feature")))
        assert_array_equal(found, fast.predict(rows))

    def test_a_mask_leaves_out_pixels(self, fast, pixels, labels):
        mask = np.ones(labels.shape)
        mask[60:] = 0
        mask[0, 89] = np.nan
        expected = np.where((mask != 0) & ~np.isnan(mask), labels, 0)
        scene = as_array(pixels)
        for given_mask in (mask, scene[0].copy(data=mask)):
            assert_array_equal(predict_raster(fast, scene, mask=given_mask).values, expected)

    @pytest.mark.parametrize("nodata", [None, 5, [5, 5, 5, 5], {"red": 5}])
    def test_nodata_values_can_be_given(self, fast, pixels, nodata):
        scene = as_array(pixels).assign_coords(band=NAMES)
        found = predict_raster(fast, scene, nodata_input=nodata)
        is_nodata = np.zeros(found.shape, dtype=bool)
        if nodata is not None:
            is_nodata = (pixels[2] == 5) if isinstance(nodata, dict) else (pixels == 5).any(axis=0)
        assert_array_equal(found.values == 0, is_nodata)

    @pytest.mark.parametrize("kind", ["array", "file", "written"])
    def test_the_dimensions_of_a_mask_are_found_by_name(self, fast, pixels, kind, tmp_path):
        square = pixels[:, :70, :70]
        scene = write_tif(tmp_path / "s.tif", square) if kind == "file" else as_array(square)
        mask = xarray.DataArray(np.tri(70), dims=("y", "x"))
        output = tmp_path / "map.tif" if kind == "written" else None
        found = []
        for each in (mask, mask.transpose("x", "y")):
            map_ = predict_raster(fast, scene, mask=each, output=output)
            found.append(rioxarray.open_rasterio(map_).values[0] if output else map_.values)
        assert_array_equal(*found)
        assert (found[0][np.tri(70) == 0] == 0).all()

    def test_a_mask_of_one_line(self, fast, pixels, labels, tmp_path):
        path = write_tif(tmp_path / "line.tif", pixels[:, 50:51])
        mask = np.ones((1, 90))
        mask[0, 3] = 0
        expected = np.where(mask, labels[50:51], 0)
        assert_array_equal(predict_raster(fast, path, mask=mask).values, expected)

    def test_a_mask_of_another_place_is_refused(self, fast, pixels):
        scene = as_array(pixels)
        mask = scene[0].drop_vars("band")[::-1]
        with pytest.raises(ValueError, match="mask must have the coordinates of the scene along"):
            predict_raster(fast, scene, mask=mask)
        aligned = predict_raster(fast, scene, mask=mask.reindex_like(scene[0]))
        assert_array_equal(aligned.values, predict_raster(fast, scene).values)

    def test_scaled_values_are_used_on_request(self, fast, pixels, labels):
        stored = as_array((pixels * 2).astype("u2"), scale_factor=0.5, add_offset=0.0)
        assert_array_equal(predict_raster(fast, stored, scaled=True).values, labels)
        assert (predict_raster(fast, stored).values != labels).any()

    def test_it_works_in_a_frozen_estimator(self, fast, pixels, labels):
        assert_array_equal(FrozenEstimator(fast).predict(as_array(pixels)).values, labels)

    @pytest.mark.filterwarnings("ignore:Wrapping estimator that has already been fit")
    @pytest.mark.filterwarnings("ignore:X has feature names, but")
    def test_it_works_in_sklearn_raster(self, fast, pixels, labels):
        raster = pytest.importorskip("sklearn_raster")
        wrapped = raster.FeatureArrayEstimator(FrozenEstimator(fast))
        rows = pixels[:, labels != 0].T.astype("f4")
        wrapped = wrapped.fit(rows, fast.predict(rows))
        found = wrapped.predict(as_array(pixels), nodata_output=0)
        assert_array_equal(np.squeeze(found.values), labels)


@pytest.fixture(scope="module")
def named(pixels):
    """A classifier whose features have the names of bands."""
    X = pd.DataFrame(pixels[:, 30:, :].reshape(4, -1).T[:300].astype(float), columns=NAMES)
    svc = SVC(gamma=1e-4, C=10).fit(X, (X["blue"] > 90).to_numpy() + 1)
    with quick_training():
        return accelerate(svc, X, scheme="shared", n_borders=4)


class TestNames:
    @pytest.mark.parametrize("kind", ["coordinate", "long_name", "dataset", "file"])
    def test_bands_are_found_by_name(self, named, pixels, kind, tmp_path):
        plain = predict_raster(named, as_array(pixels)).values
        order = [2, 0, 3, 1]
        names = [NAMES[k] for k in order]
        scene = as_array(pixels[order])
        if kind == "file":
            scene = write_tif(tmp_path / "named.tif", pixels[order], names=names)
        elif kind == "long_name":
            scene = scene.assign_attrs(long_name=tuple(names))
        else:
            scene = scene.assign_coords(band=names)
            scene = scene.to_dataset("band") if kind == "dataset" else scene
        assert_array_equal(predict_raster(named, scene).values, plain)

    def test_other_names_are_refused(self, named, pixels):
        scene = as_array(pixels).assign_coords(band=["a", "b", "c", "d"])
        with pytest.raises(ValueError, match=r"expected bands named \['blue'.*got \['a', 'b'"):
            named.predict(scene)
        assert predict_raster(named, scene, match_by_name=False).dtype == np.uint8

    def test_accelerate_finds_bands_by_name(self, named, pixels, tmp_path):
        names = [NAMES[k] for k in (2, 0, 3, 1)]
        path = write_tif(tmp_path / "named.tif", pixels[[2, 0, 3, 1]], names=names)
        with quick_training():
            fast = accelerate(named.estimator_, path, scheme="shared", n_borders=4)
        assert fast.feature_names_in_.tolist() == NAMES
        assert fast.agreement_ > 0.9


class TestFiles:
    def test_a_file_gives_the_map_of_its_array(self, fast, tif, labels):
        found = predict_raster(fast, tif)
        assert_array_equal(found.values, labels)
        assert found.rio.crs == rasterio.open(tif).crs

    def test_the_output_has_place_colours_names_and_tags(self, text_fast, tif, tmp_path):
        path = tmp_path / "map.tif"
        predict_raster(
            text_fast,
            tif,
            output=path,
            class_names={"tree": "dry & wet"},
            colors={"water": "#0000ff"},
        )
        model = tmp_path / "model.limes"
        text_fast.save(model)
        with rasterio.open(path) as file:
            assert file.crs == rasterio.open(tif).crs
            assert file.transform == GRID["transform"]
            assert (file.nodata, file.dtypes) == (0, ("uint8",))
            assert file.colormap(1)[3] == (0, 0, 255, 255)
            assert file.colormap(1)[0] == (0, 0, 0, 0)
            assert file.profile["compress"] == "deflate"
            assert file.profile["tiled"]
            tags = file.tags()
        assert float(tags["LIMES_AGREEMENT"]) == round(text_fast.agreement_, 4)
        assert len(tags["LIMES_MODEL_SHA256"]) == len(hashlib.sha256().hexdigest())
        sidecar = (tmp_path / "map.tif.aux.xml").read_text()
        assert "<Category>dry &amp; wet</Category>" in sidecar
        assert sorted(p.name for p in tmp_path.glob(".*")) == []

    def test_an_array_is_written_as_its_file(self, fast, tif, labels, tmp_path):
        scene = rioxarray.open_rasterio(tif, chunks={"y": 32, "x": 32})
        predict_raster(fast, scene, output=tmp_path / "map.tif")
        with rasterio.open(tmp_path / "map.tif") as file:
            assert_array_equal(file.read(1), labels)
            assert file.transform == GRID["transform"]

    def test_an_array_in_another_order_is_written_upright(self, fast, pixels, labels, tmp_path):
        scene = as_array(pixels).transpose("x", "band", "y")
        predict_raster(fast, scene, output=tmp_path / "map.tif")
        with rasterio.open(tmp_path / "map.tif") as file:
            assert_array_equal(file.read(1), labels)

    def test_a_band_of_opacity_beyond_the_model_is_a_mask(self, fast, pixels, labels, tmp_path):
        opacity = np.where(labels != 0, 255, 0)[None]
        bands = np.concatenate([pixels, opacity]).astype(np.uint8)
        path = write_tif(tmp_path / "scene.tif", bands, nodata=None)
        with rasterio.open(path, "r+") as file:
            file.colorinterp = [*file.colorinterp[:3], ColorInterp.undefined, ColorInterp.alpha]
        assert_array_equal(predict_raster(fast, path).values, labels)

    def test_a_fourth_band_that_is_called_opacity_is_a_band(self, fast, pixels, tmp_path):
        """GDAL calls the fourth band of bytes so by default."""
        path = write_tif(tmp_path / "scene.tif", pixels.astype(np.uint8), nodata=None)
        with rasterio.open(path) as file:
            assert file.colorinterp[3] == ColorInterp.alpha
        expected = predict_raster(fast, as_array(pixels), nodata_input=None)
        assert_array_equal(predict_raster(fast, path).values, expected.values)

    def test_all_outputs_are_written(self, fast, tif, pixels, tmp_path):
        paths = {name: tmp_path / f"{name}.tif" for name in predict_module.OUTPUTS}
        assert predict_raster(fast, tif, output=paths, proba=True, confidence=True) == paths
        expected = predict_raster(fast, tif, proba=True, confidence=True)
        for name, path in paths.items():
            with rasterio.open(path) as file:
                found = np.squeeze(file.read())
                assert math.isnan(file.nodata) or name == "label"
            assert_array_equal(found, expected[name].values)
        with rasterio.open(paths["probability"]) as file:
            assert file.descriptions == ("3", "7", "9")

    def test_a_stack_of_files_is_a_scene(self, fast, pixels, labels, tmp_path):
        types = ["u2", "f4", "i2", "u1"]
        paths = [
            write_tif(tmp_path / f"{k}.tif", pixels[k : k + 1].astype(types[k])) for k in range(4)
        ]
        assert_array_equal(predict_raster(fast, paths).values, labels)

    def test_a_mask_file_leaves_out_pixels(self, fast, tif, labels, tmp_path):
        mask = np.ones((1, 70, 90), dtype="u1")
        mask[:, 50:] = 0
        path = write_tif(tmp_path / "mask.tif", mask, nodata=None)
        found = predict_raster(fast, tif, mask=path)
        assert_array_equal(found.values, np.where(mask[0], labels, 0))

    def test_a_dimension_of_one_place_is_left_out_of_a_file(self, fast, pixels, labels, tmp_path):
        scene = as_array(pixels).expand_dims(time=[np.datetime64("2020-05-18", "ns")])
        predict_raster(fast, scene, output=tmp_path / "map.tif", mask=np.ones((70, 90)))
        with rasterio.open(tmp_path / "map.tif") as file:
            assert_array_equal(file.read(1), labels)
        two = xarray.concat([scene, scene], "time")
        with pytest.raises(ValueError, match="two dimensions and bands to be written, got"):
            predict_raster(fast, two, output=tmp_path / "two.tif")

    def test_the_mask_of_a_file_leaves_out_pixels(self, fast, pixels, labels, tmp_path):
        path = write_tif(tmp_path / "masked.tif", pixels, nodata=None)
        with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "r+") as file:
            file.write_mask(labels != 0)
        with rasterio.open(path) as file:
            assert MaskFlags.per_dataset in file.mask_flag_enums[0]
        assert_array_equal(predict_raster(fast, path).values, labels)

    def test_a_file_without_a_place_is_mapped(self, fast, pixels, labels, tmp_path):
        path = write_tif(tmp_path / "scene.tif", pixels, crs=None, transform=None)
        predict_raster(fast, path, output=tmp_path / "map.tif")
        with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
            file = rasterio.open(tmp_path / "map.tif")
        with file:
            assert_array_equal(file.read(1), labels)

    @pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
    def test_control_points_are_copied(self, fast, pixels, tmp_path):
        points = [
            GroundControlPoint(r, c, c * 30.0, -r * 30.0) for r, c in [(0, 0), (0, 9), (9, 0)]
        ]
        path = write_tif(tmp_path / "scene.tif", pixels, crs=None, transform=None)
        with rasterio.open(path, "r+") as file:
            file.gcps = (points, rasterio.CRS.from_epsg(4326))
        predict_raster(fast, path, output=tmp_path / "map.tif")
        with rasterio.open(tmp_path / "map.tif") as file:
            assert [(p.row, p.col, p.x) for p in file.gcps[0]] == [
                (p.row, p.col, p.x) for p in points
            ]
            assert file.gcps[1].to_epsg() == 4326

    def test_bands_beyond_the_model_that_are_empty_can_be_dropped(
        self, fast, pixels, labels, tmp_path
    ):
        bands = np.insert(pixels, 1, NODATA, axis=0)
        path = write_tif(tmp_path / "scene.tif", bands)
        with pytest.raises(ValueError, match=r"expected 4 bands.*got 5 \(nodata everywhere: 2\)"):
            predict_raster(fast, path)
        assert_array_equal(predict_raster(fast, path, bad_bands="drop").values, labels)

    def test_an_empty_band_of_the_model_is_named(self, fast, pixels, tmp_path):
        bands = pixels.copy()
        bands[3] = NODATA
        path = write_tif(tmp_path / "scene.tif", bands, names=NAMES)
        with pytest.raises(ValueError, match="only nodata in band 'nir'"):
            predict_raster(fast, path, output=tmp_path / "map.tif")
        assert [p.name for p in tmp_path.iterdir()] == ["scene.tif"]

    def test_accelerate_samples_a_scene(self, fast, tif, pixels, labels):
        with quick_training():
            again = accelerate(fast.estimator_, tif, scheme="shared", n_borders=16)
        found = predict_raster(again, tif).values
        rows = pixels[:, labels != 0].T.astype(float)
        assert np.mean(found[labels != 0] == fast.estimator_.predict(rows)) > 0.9

    def test_progress_counts_pixels(self, fast, tif, monkeypatch):
        monkeypatch.setattr(predict_module, "MAX_BLOCK_PIXELS", 1000)
        calls = []
        predict_raster(fast, tif, progress=lambda *numbers: calls.append(numbers))
        assert len(calls) > 3
        assert calls[-1] == (6300, 6300)


class TestAnySplit:
    @settings(max_examples=25, deadline=None)
    @given(
        pixels_a_block=st.integers(1, 3000),
        tile=st.sampled_from([None, 16, 32, 64]),
        chunks=st.tuples(st.integers(1, 4), st.integers(9, 70), st.integers(9, 90)),
        n_jobs=st.sampled_from([None, 2]),
    )
    def test_blocks_chunks_and_threads_change_nothing(
        self, fast, pixels, labels, tmp_path_factory, pixels_a_block, tile, chunks, n_jobs
    ):
        options = {} if tile is None else {"tiled": True, "blockxsize": tile, "blockysize": tile}
        path = write_tif(tmp_path_factory.mktemp("any") / "s.tif", pixels, **options)
        fast = limes.BordersClassifier.from_model(fast.model_).set_params(n_jobs=n_jobs)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(predict_module, "MAX_BLOCK_PIXELS", pixels_a_block)
            predict_raster(fast, path, output=path.with_name("map.tif"))
            lazy = fast.predict(
                as_array(pixels).chunk(dict(zip(("band", "y", "x"), chunks, strict=True)))
            )
            assert_array_equal(lazy.compute(scheduler="threads").values, labels)
        with rasterio.open(path.with_name("map.tif")) as file:
            assert_array_equal(file.read(1), labels)

    @settings(deadline=None)
    @given(
        shape=st.tuples(st.integers(1, 600), st.integers(1, 600)),
        block=st.tuples(
            st.sampled_from([1, 4, 128, 256, 512]), st.sampled_from([64, 256, 512, 600])
        ),
        max_pixels=st.integers(256, 300_000),
    )
    def test_blocks_cover_each_pixel_once(self, shape, block, max_pixels):
        count = np.zeros(shape, dtype=int)
        for place in block_places(Scene("s", (), shape, block), max_pixels, 256):
            count[place] += 1
        assert (count == 1).all()

    @given(st.lists(st.integers(0, 6), max_size=4), st.integers(1, 50))
    def test_parts_cover_each_pixel_once(self, shape, max_pixels):
        count = np.zeros(shape, dtype=int)
        for place in split_shape(shape, max_pixels):
            assert count[place].size <= max_pixels
            count[place] += 1
        assert (count == 1).all()

    def test_a_block_without_a_valid_pixel_does_not_call_the_model(self, fast, tif, monkeypatch):
        monkeypatch.setattr(predict_module, "MAX_BLOCK_PIXELS", 90)
        calls = []
        predict = PixelClassifier._predict

        def count(self, rows):
            calls.append(len(rows))
            return predict(self, rows)

        monkeypatch.setattr(PixelClassifier, "_predict", count)
        monkeypatch.setattr(
            "limes.raster.labels.scheme_labels",
            lambda *args, **options: calls.append("model") or np.zeros(len(args[1]), "u1"),
        )
        mask = np.zeros((70, 90))
        mask[0, 50] = 1
        predict_raster(fast, tif, mask=mask)
        assert calls.count("model") == 1
        assert calls.count(0) == len([n for n in calls if n != "model"]) - 1


class TestBadInput:
    """One sentence, and nothing is written."""

    @pytest.fixture
    def refuse(self, fast, tmp_path):
        def check(scene, match, error=ValueError, **options):
            before = sorted(p.name for p in tmp_path.rglob("*"))
            output = options.pop("output", tmp_path / "map.tif")
            with pytest.raises(error, match=match) as caught:
                predict_raster(fast, scene, output=output, **options)
            assert "\n" not in str(caught.value)
            assert sorted(p.name for p in tmp_path.rglob("*")) == before

        return check

    def test_a_wrong_number_of_bands(self, refuse, pixels, tmp_path):
        path = write_tif(tmp_path / "three.tif", pixels[:3])
        refuse(path, "three.tif: expected 4 bands, as the model has features, got 3")

    @pytest.mark.parametrize("is_array", [False, True])
    def test_a_mask_of_another_projection_or_place(
        self, refuse, tif, fast, pixels, labels, tmp_path, is_array
    ):
        scene = rioxarray.open_rasterio(tif) if is_array else tif
        ones = np.ones((1, 70, 90), "u1")
        other = write_tif(tmp_path / "crs.tif", ones, nodata=None, crs="EPSG:32622")
        refuse(scene, "CRS of the scene, EPSG:32621, got EPSG:32622: warp", mask=other)
        refuse(scene, "CRS of the scene", mask=rioxarray.open_rasterio(other), output=None)
        moved = write_tif(
            tmp_path / "moved.tif",
            ones,
            nodata=None,
            transform=rasterio.Affine(30, 0, 0, 0, -30, 9),
        )
        refuse(scene, "transform of the scene, .*: warp it", mask=moved)
        plain = write_tif(tmp_path / "plain.tif", ones, nodata=None, crs=None, transform=None)
        found = predict_raster(fast, scene, mask=plain, output=None)
        assert_array_equal(found, labels)

    def test_a_mask_of_another_shape(self, refuse, tif, pixels, tmp_path):
        mask = write_tif(tmp_path / "mask.tif", pixels[:1, :10])
        refuse(tif, r"shape of the scene, \(70, 90\), got \(10, 90\)", mask=mask)
        refuse(tif, r"shape of the scene, \(70, 90\), got \(3, 90\)", mask=np.ones((3, 90)))

    def test_a_missing_file_in_a_stack(self, refuse, pixels, tmp_path):
        paths = [write_tif(tmp_path / f"{k}.tif", pixels[k : k + 1]) for k in range(4)]
        paths[2] = tmp_path / "missing.tif"
        refuse(paths, "missing.tif", FileNotFoundError)

    @pytest.mark.parametrize(
        ("change", "match"),
        [
            ({"crs": "EPSG:32622"}, "expected the CRS of .*EPSG:32621, got EPSG:32622"),
            ({"transform": rasterio.Affine(30, 0, 0, 0, -30, 0)}, "expected the transform of"),
        ],
    )
    def test_a_stack_of_two_grids(self, refuse, pixels, tmp_path, change, match):
        paths = [write_tif(tmp_path / f"{k}.tif", pixels[k : k + 1]) for k in range(3)]
        paths.append(write_tif(tmp_path / "other.tif", pixels[3:], **change))
        refuse(paths, match)

    def test_a_stack_of_two_shapes(self, refuse, pixels, tmp_path):
        paths = [write_tif(tmp_path / f"{k}.tif", pixels[k : k + 1]) for k in range(3)]
        paths.append(write_tif(tmp_path / "other.tif", pixels[3:, :60]))
        refuse(paths, r"expected the shape of .*\(70, 90\), got \(60, 90\)")

    def test_a_truncated_file(self, refuse, tif):
        data = tif.read_bytes()
        tif.write_bytes(data[: len(data) // 2])
        refuse(tif, "scene.tif: expected a complete raster", OSError)

    def test_what_is_no_raster(self, refuse, tmp_path):
        path = tmp_path / "scene.tif"
        path.write_text("no raster")
        refuse(path, "scene.tif: expected a complete raster", OSError)

    def test_an_output_that_is_the_input(self, refuse, tif):
        refuse(tif, "output must not be a file that is read", output=tif)

    def test_an_output_in_no_folder(self, refuse, tif, tmp_path):
        refuse(tif, "nowhere", FileNotFoundError, output=tmp_path / "nowhere" / "map.tif")

    def test_outputs_that_are_missing(self, refuse, tif):
        refuse(tif, "output must be paths for 'label', 'confidence'", confidence=True)

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"nodata_output": 7}, "must not be the value of a class, got 7"),
            ({"nodata_input": [1, 2]}, "one value for each of 4 bands, got 2"),
            ({"nodata_input": {"swir": 1}}, "must have names of bands.*got 'swir'"),
            ({"bad_bands": "skip"}, "must be 'error' or 'drop', got 'skip'"),
            ({"max_memory_mb": 1}, "must be 32 or more, got 1"),
            ({"max_memory_mb": "256"}, "must be 32 or more, got '256'"),
            ({"max_memory_mb": np.inf}, "must be 32 or more, got inf"),
            ({"class_names": {"x": "crop"}}, r"classes of the model, \[3, 7, 9\], got \['x'\]"),
        ],
    )
    def test_wrong_options(self, refuse, tif, options, match):
        refuse(tif, match, **options)

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"nodata_input": "zero"}, "nodata_input must be numbers or None, got 'zero'"),
            ({"nodata_input": [0, 0, 0, "a"]}, "nodata_input must be numbers or None, got 'a'"),
            ({"nodata_output": "a"}, "nodata_output must be a number or None, got 'a'"),
            ({"class_names": "abc"}, "class_names must be a dict or a sequence, got 'abc'"),
            ({"progress": True}, "progress must be a function or None, got True"),
        ],
    )
    def test_options_of_a_wrong_kind(self, refuse, tif, options, match):
        refuse(tif, match, TypeError, **options)

    def test_names_of_other_classes_are_left_out_with_a_warning(self, fast, tif, tmp_path):
        with pytest.warns(UserWarning, match=r"got \['8'\], which are left out"):
            found = predict_raster(fast, tif, class_names={3: "crop", 8: "snow"})
        assert found.attrs["flag_meanings"] == "crop 7 9"

    def test_no_output_appears_before_all_are_complete(self, refuse, tif, tmp_path, monkeypatch):
        def write(self, data):
            if self._path.name == "map.tif":
                self._error = OSError(28, "No space left on device")
            return len(data)

        monkeypatch.setattr("limes.raster.geotiff.OutputFile.write", write)
        outputs = {"label": tmp_path / "map.tif", "confidence": tmp_path / "margin.tif"}
        refuse(tif, "map.tif: writing failed", OSError, output=outputs, confidence=True)

    def test_an_output_that_is_a_folder(self, refuse, tif, tmp_path):
        refuse(tif, "got a folder", IsADirectoryError, output=tmp_path)

    def test_a_stack_of_arrays(self, refuse, pixels):
        refuse([pixels[0], pixels[1]], "must be of paths, got ndarray", TypeError, output=None)

    @pytest.mark.parametrize("kind", ["complex64", "datetime64[ns]", "object"])
    def test_values_that_are_no_numbers(self, refuse, pixels, kind):
        refuse(as_array(pixels).astype(kind), "bands must be real numbers, got", TypeError)

    def test_a_failed_write_leaves_the_old_map(self, fast, tif, tmp_path, monkeypatch):
        path = tmp_path / "map.tif"
        predict_raster(fast, tif, output=path)
        before = path.read_bytes()

        def fail(*args):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            predict_raster(fast, tif, output=path, progress=fail)
        assert path.read_bytes() == before
        assert not list(tmp_path.glob(".*"))

    def test_probabilities_that_the_source_has_not(self, pixels, tif):
        X = pixels[:, 30:40].reshape(4, -1).T.astype(float)
        exact = accelerate(SVC(gamma=1e-4).fit(X, X[:, 0] > 90), scheme="exact")
        with pytest.raises(ValueError, match="predict_proba needs probabilities"):
            predict_raster(exact, tif, proba=True)

    def test_an_array_without_bands(self, fast, pixels):
        with pytest.raises(ValueError, match="must have the dimension band_dim='band'"):
            predict_raster(fast, as_array(pixels).rename(band="channel"))
        assert predict_raster(fast, as_array(pixels).rename(band="c"), band_dim="c").ndim == 2

    def test_a_time_series_is_not_written(self, fast, pixels, tmp_path):
        scene = xarray.concat([as_array(pixels)] * 2, dim="time")
        with pytest.raises(ValueError, match="must have two dimensions and bands"):
            predict_raster(fast, scene, output=tmp_path / "map.tif")
        assert not list(tmp_path.iterdir())

    def test_a_slow_classifier(self, fast, tif):
        with pytest.raises(TypeError, match="fitted BordersClassifier, got SVC"):
            predict_raster(fast.estimator_, tif)

    def test_what_is_no_scene(self, fast):
        with pytest.raises(TypeError, match=r"scene must be a path.*got ndarray"):
            predict_raster(fast, np.zeros((4, 3, 3)))
