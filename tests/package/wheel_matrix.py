"""Compare the wheels of cibuildwheel with those that are promised: `make wheel-matrix`."""

import os
import subprocess
import sys

PYTHONS = ("cp311", "cp312")
# System and architectures of the builder, then the platforms of its wheels.
BUILDS = {
    "linux": (
        "manylinux_x86_64",
        "manylinux_aarch64",
        "musllinux_x86_64",
        "musllinux_aarch64",
    ),
    "macos": ("macosx_x86_64", "macosx_arm64"),
    "windows": ("win_amd64",),
}


def identifiers(system: str) -> set[str]:
    """Ask cibuildwheel what it builds on a system."""
    command = [sys.executable, "-m", "cibuildwheel", "--platform", system]
    # Set by workflows to build for one architecture alone.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CIBW_")}
    done = subprocess.run(
        [*command, "--print-build-identifiers"],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def main() -> None:
    """Print the wheels of each system; fail if they are not the expected ones."""
    for system, platforms in BUILDS.items():
        found = identifiers(system)
        expected = {f"{python}-{platform}" for python in PYTHONS for platform in platforms}
        if found != expected:
            sys.exit(f"{system}: expected {sorted(expected)}, got {sorted(found)}.")
        print(f"{system}: {' '.join(sorted(found))}")


if __name__ == "__main__":
    main()
