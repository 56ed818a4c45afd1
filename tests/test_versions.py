"""What runs here can be told."""

import os
import subprocess
import sys

import pytest

from limes._core import cpu_paths
from limes.versions import show_versions, versions


def test_the_path_of_the_core_is_told(capsys):
    show_versions()
    assert f"cpu path: {versions()['cpu path']}" in capsys.readouterr().out


@pytest.mark.parametrize("path", cpu_paths())
def test_the_path_can_be_forced(path):
    program = "from limes.versions import versions; print(versions()['cpu path'])"
    environment = {**os.environ, "LIMES_CPU": path}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == path
