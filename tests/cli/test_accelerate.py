"""Targets on the command line."""

import json

import numpy as np
from sklearn.datasets import make_moons

from limes.cli.main import main
from limes.files import create_rows


def test_a_limit_of_size_is_kept(tmp_path, capsys):
    X, y = make_moons(600, noise=0.2, random_state=0)
    rows, model, fast = (str(tmp_path / name) for name in ("rows.csv", "svm.model", "fast.limes"))
    with create_rows(rows) as writer:
        writer.write(X, y.astype(np.int64))
    assert main(["train", "-g", "2", rows, "-o", model]) == 0
    capsys.readouterr()
    assert main(["accelerate", model, rows, "-o", fast, "--max-cost", "40", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cost"] <= 40
    assert main(["accelerate", model, rows, "-o", fast, "--max-cost", "1"]) == 2
    assert "max_cost=1" in capsys.readouterr().err
