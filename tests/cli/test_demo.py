"""`limes demo`: the picture."""

import json
from types import SimpleNamespace

import pytest

from tests.cli.commands import output_of

pytest.importorskip("pyarrow")

# Stands for a comparison.
NOTHING = SimpleNamespace(to_dict=dict)


def test_the_demo_draws_a_picture(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    # The digits are fitted in the same way, and take the most time.
    monkeypatch.setattr("limes.cli.demo._show_digits", lambda: NOTHING)
    result = json.loads(
        output_of(capsys, "demo", "--rows", "200", "-o", tmp_path / "demo.png", "--json")
    )
    assert result["sample_classes"]["n_rows"] == 20_000
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_advises_rows_as_they_occur_in_use(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("limes.cli.demo._show_two_classes", lambda n_rows, picture: NOTHING)
    monkeypatch.setattr("limes.cli.demo._show_digits", lambda: NOTHING)
    text = output_of(capsys, "demo", "-o", tmp_path / "demo.png")
    assert "rows as they occur in use; labels are not needed" in text
