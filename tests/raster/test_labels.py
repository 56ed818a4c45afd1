"""Values, names and colours of classes, and pixels without a value."""

import numpy as np
import pytest

from limes.raster.labels import ValidPixels, code_classes
from limes.raster.scene import Band


@pytest.mark.parametrize(
    ("classes", "values", "dtype", "nodata"),
    [
        ([1, 2, 7], [1, 2, 7], np.uint8, 0),
        ([0, 1], [0, 1], np.uint8, 255),
        ([-1, 1], [-1, 1], np.int8, 0),
        ([-1, 0, 1], [-1, 0, 1], np.int8, 127),
        ([False, True], [0, 1], np.uint8, 255),
        ([1.0, 2.0], [1, 2], np.uint8, 0),
        (range(256), range(256), np.uint16, 65535),
        ([1, 300], [1, 300], np.uint16, 0),
        (["crop", "tree"], [1, 2], np.uint8, 0),
        (["2", "1"], [1, 2], np.uint8, 0),
        ([0, 70000], [0, 70000], np.uint32, 2**32 - 1),
    ],
)
def test_classes_keep_whole_numbers_in_the_smallest_type(classes, values, dtype, nodata):
    codes = code_classes(np.array(list(classes)))
    assert codes.values.tolist() == list(values)
    assert codes.values.dtype == dtype
    assert codes.nodata == nodata


def test_classes_that_are_no_whole_numbers_stay_and_others_are_nan():
    codes = code_classes(np.array([0.5, 1.5]))
    assert codes.values.tolist() == [0.5, 1.5]
    assert np.isnan(codes.nodata)


def test_a_nodata_value_that_is_given_widens_the_type():
    assert code_classes(np.array([1, 2]), nodata=-1).values.dtype == np.int8
    assert code_classes(np.array([1, 2]), nodata=65535).values.dtype == np.uint16


def test_a_nodata_value_that_is_a_class_is_refused():
    with pytest.raises(ValueError, match=r"got 2, the value of 'tree'"):
        code_classes(np.array(["crop", "tree"]), nodata=2)


def test_names_and_colours_are_given_by_label_or_in_order():
    classes = np.array([3, 7])
    codes = code_classes(classes, names={7: "dry land"}, colours=["#ff0000", (1, 2, 3, 4)])
    assert codes.names == ["3", "dry land"]
    assert codes.colours == [(255, 0, 0, 255), (1, 2, 3, 4)]
    assert codes.attributes["flag_meanings"] == "3 dry_land"


@pytest.mark.parametrize("colour", ["#ff", "red", (1, 2), (1, 2, 300), 5])
def test_what_is_no_colour_is_quoted(colour):
    with pytest.raises(ValueError, match="a colour must be '#rrggbb'"):
        code_classes(np.array([1, 2]), colours=[colour, "#000000"])


def test_too_few_names_are_refused():
    with pytest.raises(ValueError, match="one entry for each of 2 classes, got 1"):
        code_classes(np.array([1, 2]), names=["one"])


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["u1", "u1"], "u1"),
        (["u2", "u1"], "u2"),
        (["u2", "i2"], "f4"),
        (["i1"], "f4"),
        (["f4", "i2"], "f4"),
        (["i4"], "f8"),
        (["f4", "i4"], "f8"),
    ],
)
def test_mixed_bands_are_promoted_to_a_type_that_holds_all(dtypes, expected):
    bands = [Band(None, np.dtype(dtype)) for dtype in dtypes]
    assert ValidPixels(bands).row_type == np.dtype(expected)


def test_a_pixel_is_invalid_where_any_band_is_nodata_or_not_finite():
    bands = [Band(None, np.dtype("f4"), nodata=-99999.0), Band(None, np.dtype("i2"), nodata=-1.0)]
    blocks = [np.array([[1, np.nan, -99999, 4, np.inf]], dtype="f4"), np.array([[1, 1, 1, -1, 1]])]
    assert ValidPixels(bands).find(blocks).tolist() == [[True, False, False, False, False]]


def test_a_nodata_value_that_a_band_cannot_hold_is_nowhere():
    band = Band(None, np.dtype("u1"), nodata=-99999.0)
    assert ValidPixels([band]).find([np.zeros((2, 2), dtype="u1")]).all()
