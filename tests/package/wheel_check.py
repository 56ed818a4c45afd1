"""Build the package and use it where there is no compiler: `make wheel-check`.

`python -m tests.package.wheel_check wheel` builds a wheel from the tree, `... sdist` one from the
source archive. The wheel's files are compared with `src/limes`. It is then installed into two new
environments, with nothing else on PATH: in the first, with its dependencies, the README's lines
run; in the second, with NumPy alone, the model that they saved predicts the same labels.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "wheel-check"
HERE = Path(__file__).parent
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cl", "cmake", "ninja", "make")
NATIVE = re.compile(r"limes/_core/_native(\.[\w-]+)?\.(so|pyd)")
# What a build from the source archive reads, and what its users run.
NEEDED_SOURCES = {
    "CMakeLists.txt",
    "LICENSE",
    "Makefile",
    "README.md",
    "bindings/module.cpp",
    "core/CMakeLists.txt",
    "core/predict.cpp",
    "pyproject.toml",
    "src/limes/__init__.py",
    "tests/conftest.py",
}
UNWANTED_SOURCES = re.compile(
    r"(build|dist|\.venv[^/]*|\.git|\.github|\.ci|__pycache__)/|.*\.(so|pyd|o|whl)$"
)


def main(kind: str) -> None:
    """Build, compare the contents, install and run."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    origin = build_sdist() if kind == "sdist" else ROOT
    wheel = build_wheel(origin)
    names = zipfile.ZipFile(wheel).namelist()
    if problems := wheel_problems(names, package_files()) + tag_problems(wheel.name):
        sys.exit("\n".join([f"{wheel.name} is wrong:", *problems]))
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1e6:.2f} MB, no sources")
    use(wheel)


def build_sdist() -> Path:
    """Write the source archive, and check what is in it."""
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(FOLDER), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (archive,) = FOLDER.glob("limes-*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    if problems := sdist_problems(names):
        sys.exit("\n".join([f"{archive.name} is wrong:", *problems]))
    print(f"{archive.name}: {len(names)} files, {archive.stat().st_size / 1e6:.2f} MB")
    return archive


def build_wheel(origin: Path) -> Path:
    """Build a wheel as users would."""
    run_pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(FOLDER), str(origin))
    (wheel,) = FOLDER.glob("limes-*.whl")
    return wheel


def package_files() -> set[str]:
    """List the files of the package in the tree, as a wheel names them."""
    source = ROOT / "src"
    paths = (path for path in (source / "limes").rglob("*") if path.is_file())
    return {
        path.relative_to(source).as_posix()
        for path in paths
        if "__pycache__" not in path.parts and path.suffix not in (".so", ".pyd")
    }


def wheel_problems(names: list[str], expected: set[str]) -> list[str]:
    """Say what a wheel lacks, and what it has beyond the package, one module and its metadata."""
    files = {name for name in names if not name.endswith("/")}
    modules = {name for name in files if NATIVE.fullmatch(name)}
    metadata = {name for name in files if re.match(r"limes-[^/]+\.dist-info/", name)}
    problems = [f"missing: {name}" for name in sorted(expected - files)]
    unknown = files - modules - metadata - expected
    problems += [f"not of the package: {name}" for name in sorted(unknown)]
    if len(modules) != 1:
        problems.append(f"one compiled module was expected, got {sorted(modules)}")
    if not any(name.endswith("/LICENSE") for name in metadata):
        problems.append("missing: LICENSE")
    return problems


def tag_problems(name: str) -> list[str]:
    """Say if a wheel is not for this Python alone before 3.12, or for 3.12 and later."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    expected = "cp312-abi3" if sys.version_info >= (3, 12) else f"{version}-{version}"
    return [] if f"-{expected}-" in name else [f"the tag {expected} was expected, got {name}"]


def sdist_problems(names: set[str]) -> list[str]:
    """Say what a source archive lacks, and what should not be in it."""
    problems = [f"missing: {name}" for name in sorted(NEEDED_SOURCES - names)]
    unwanted = sorted(name for name in names if UNWANTED_SOURCES.match(name))
    return problems + [f"not a source: {name}" for name in unwanted]


def use(wheel: Path) -> None:
    """Install a wheel into two environments and run it in both."""
    full, small = make_environment("full"), make_environment("numpy-alone")
    install(full, f"{wheel}[plot]")
    install(small, "numpy")
    install(small, "--no-deps", str(wheel))
    run(full, HERE / "readme_lines.py", ROOT / "README.md")
    run(small, HERE / "numpy_alone.py")
    print("both environments work without a compiler")


def make_environment(name: str) -> Path:
    """Create a virtual environment; return its folder of programs."""
    folder = FOLDER / name
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def install(programs: Path, *what: str) -> None:
    """Install wheels only."""
    check_path(programs)
    run_pip(programs / "python", "install", "--only-binary", ":all:", *what, env=environ(programs))


def run(programs: Path, script: Path, *arguments: Path) -> None:
    """Run a script of this folder in an environment, away from the tree."""
    check_path(programs)
    folder = FOLDER / "run"
    folder.mkdir(exist_ok=True)
    command = [programs / "python", "-I", script, *arguments]
    subprocess.run(list(map(str, command)), cwd=folder, env=environ(programs), check=True)


def run_pip(python: str | Path, *arguments: str, env: dict[str, str] | None = None) -> None:
    """Run pip."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", arguments[0], "--quiet"]
    subprocess.run([*command, *arguments[1:]], check=True, env=env)


def environ(programs: Path) -> dict[str, str]:
    """Return the variables of an environment: nothing but its own programs is on PATH."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    # joblib counts processors with a program that is not there.
    own = {"PATH": str(programs), "MPLBACKEND": "agg", "LOKY_MAX_CPU_COUNT": "1"}
    return {**kept, **own}


def check_path(programs: Path) -> None:
    """Refuse to go on where a compiler could be found."""
    found = [name for name in COMPILERS if shutil.which(name, path=str(programs))]
    if found:
        sys.exit(f"{programs} must hold no compiler, got {found}.")


if __name__ == "__main__":
    main(sys.argv[1])
