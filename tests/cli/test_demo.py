"""`limes demo`: the picture."""

import json
from types import SimpleNamespace

import pytest

from tests.cli.commands import output_of

pytest.importorskip("pyarrow")


def test_the_demo_draws_a_picture(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    # The digits are fitted in the same way, and take the most time.
    nothing = SimpleNamespace(to_dict=dict)
    monkeypatch.setattr("limes.cli.demo._show_digits", lambda: nothing)
    result = json.loads(
        output_of(capsys, "demo", "--rows", "200", "-o", tmp_path / "demo.png", "--json")
    )
    assert result["sample_classes"]["n_rows"] == 20_000
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
