"""`limes subsample`: every class is represented."""

import json

import numpy as np
import pytest

from limes.files import read_rows
from tests.cli.commands import output_of

pytest.importorskip("pyarrow")


@pytest.mark.parametrize(("method", "most"), [("proportional", 40), ("power", 400)])
def test_a_subsample_has_every_class(method, most, folder, tmp_path, capsys):
    words = ("subsample", folder / "train.svm", "0.1", "--method", method)
    result = json.loads(output_of(capsys, *words, "-o", tmp_path / "o.csv", "--json"))
    X, y, _ = read_rows(tmp_path / "o.csv")
    assert len(y) == result["n_rows"]
    assert 30 < len(y) <= most
    assert len(np.unique(y)) == 4
    everything = {tuple(row) for row in read_rows(folder / "train.svm")[0].tolist()}
    assert {tuple(row) for row in X.tolist()} <= everything
