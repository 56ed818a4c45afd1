"""`limes datasets`: the list, and files."""

import json
import sys

import pytest

from limes.cli import terminal
from limes.datasets import download
from tests.cli.commands import Terminal, error_of, output_of, run, wait_for
from tests.datasets.files import Response, heart, svmlight


def test_the_datasets_are_listed(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("LIMES_DATA", str(tmp_path))
    monkeypatch.setenv("LIMES_CACHE", str(tmp_path))
    assert len(output_of(capsys, "datasets").splitlines()) > 17
    result = json.loads(output_of(capsys, "datasets", "sat", "--json"))["datasets"]
    assert [listing["name"] for listing in result] == ["sat"]
    words = ("datasets", "sat", "--train", tmp_path / "sat.svm", "--offline")
    assert "not on this computer" in error_of(capsys, *words)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_download_draws_a_bar_on_a_terminal_only(is_terminal, tmp_path, monkeypatch):
    screen = Terminal()
    screen.isatty = lambda: is_terminal
    content = svmlight(*heart())

    class SlowResponse(Response):
        """A response whose end comes after the bar is drawn."""

        def read(self, size=-1):
            if is_terminal and self.tell():
                wait_for(lambda: "#" * 30 in screen.getvalue())
            return super().read(size)

    monkeypatch.delenv("LIMES_DATA", raising=False)
    monkeypatch.setenv("LIMES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        download, "urlopen", lambda url, timeout: SlowResponse(content, len(content))
    )
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(terminal, "REFRESH_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", screen)
    run("datasets", "heart", "--train", tmp_path / "heart.svm")
    if is_terminal:
        assert "datasets/binary/heart [" in screen.getvalue()
        assert screen.getvalue().endswith("\r\033[K")
    else:
        assert screen.getvalue() == ""
