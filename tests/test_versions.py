"""What runs here can be told."""

import os
import subprocess
import sys

import pytest

from limes._core import simd_levels
from limes.versions import show_versions, versions


def test_the_path_of_the_core_is_told(capsys):
    show_versions()
    assert f"SIMD level: {versions()['SIMD level']}" in capsys.readouterr().out


@pytest.mark.parametrize("path", simd_levels())
def test_the_path_can_be_forced(path):
    program = "from limes.versions import versions; print(versions()['SIMD level'])"
    environment = {**os.environ, "LIMES_SIMD": path}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == path
