"""Colours, progress and JSON of the command."""

import io
import json
import os
import sys

import numpy as np
import pytest

from limes.cli import terminal
from tests.cli.commands import Terminal, wait_for


def test_colours_are_only_for_terminals_without_no_color(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert terminal.colour("x", "red", Terminal()) == "\033[31mx\033[0m"
    assert terminal.colour("x", "red", io.StringIO()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.colour("x", "red", Terminal()) == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.colour("x", "red", Terminal()) == "x"


def test_progress_is_drawn_on_a_terminal_after_a_while(monkeypatch):
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(terminal, "REFRESH_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with terminal.Progress("predicting", total=100) as progress:
        progress.advance(50)
        wait_for(lambda: "50%" in sys.stderr.getvalue())
    text = sys.stderr.getvalue()
    assert "[###############               ]  50%" in text
    assert text.endswith("\r\033[K")


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_progress_is_not_drawn_for_quick_steps_or_without_a_terminal(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream())
    with terminal.Progress("predicting"):
        pass
    assert sys.stderr.getvalue() == ""


def test_numbers_that_are_not_finite_are_null_in_json(capsys):
    terminal.show({"a": np.float64("nan"), "b": [np.int64(1)], "c": os}, "", as_json=True)
    result = json.loads(capsys.readouterr().out)
    assert result["a"] is None
    assert result["b"] == [1]
    assert isinstance(result["c"], str)
