"""Run the command in this process or in another, and look at its output."""

import io
import os
import sys
import time

import pytest

from limes.cli.main import main

# The command in a process of its own.
PROGRAM = (sys.executable, "-m", "limes")
# Options of a fast fit, for tests of files and messages.
QUICK = ("--scheme", "pairwise", "-n", "20", "--no-refine", "--blend", "1")


def run(*words):
    """Run the command, which must succeed."""
    assert main([str(word) for word in words]) == 0


def output_of(capsys, *words):
    """Run the command and return its standard output."""
    capsys.readouterr()
    run(*words)
    return capsys.readouterr().out


def error_of(capsys, *words):
    """Run a command that must fail, and return its error message of one line."""
    capsys.readouterr()
    try:
        status = main([str(word) for word in words])
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


def environment():
    """Return the environment for a process that starts in another folder."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    absolute = os.pathsep.join(os.path.abspath(path) for path in paths if path)
    return {**os.environ, "PYTHONPATH": absolute, "NO_COLOR": "1"}


def wait_for(is_true):
    """Wait up to a minute until a condition holds."""
    for _ in range(6000):
        if is_true():
            return
        time.sleep(0.01)
    pytest.fail("the condition did not hold within a minute")


class Terminal(io.StringIO):
    """A stream that reports to be a terminal."""

    def isatty(self):
        return True
