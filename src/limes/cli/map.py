"""`limes map`: classify the pixels of rasters."""

import argparse
import csv
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from limes.cli.main import add_command, add_output, add_threads
from limes.cli.terminal import Progress, show, table

# Endings of files that are scenes in a folder.
ENDINGS = (".tif", ".tiff", ".vrt", ".img", ".jp2")
# Pixels of a scene that --check compares.
CHECKED_PIXELS = 20_000


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "map",
        help="classify the pixels of rasters",
        description="Write a map of classes of a scene: a raster of several bands, or several "
        "files that are a stack of bands.\nIn a folder, each raster is a scene, and each "
        "sub-folder of single bands that --bands selects; -o is then a folder,\nand a second run "
        "skips the maps that are complete.",
        example="limes map sat.limes scene.tif -o map.tif --nodata 0\n"
        "limes map sat.limes B2.tif B3.tif B4.tif -o map.tif --confidence margin.tif\n"
        "limes map sat.limes scenes -o maps --bands '*_B2.tif,*_B3.tif,*_B4.tif'",
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="fast classifier")
    parser.add_argument(
        "scenes", metavar="SCENE", type=Path, nargs="+", help="raster, stack of rasters, or folder"
    )
    add_output(parser, help="output: a GeoTIFF, or a folder for a folder of scenes")
    parser.add_argument(
        "--proba", type=Path, metavar="FILE", help="write the probabilities of the classes too"
    )
    parser.add_argument(
        "--confidence",
        type=Path,
        metavar="FILE",
        help="write the difference between the two largest probabilities too",
    )
    _add_meanings(parser)
    parser.add_argument(
        "--ram", type=int, default=256, metavar="MB", help="memory, default: %(default)s MB"
    )
    parser.add_argument(
        "--check",
        type=Path,
        metavar="SOURCE",
        help="trained classifier to compare with on a sample of the scene",
    )
    again = parser.add_mutually_exclusive_group()
    again.add_argument(
        "--resume", action="store_true", help="skip maps that are complete; default in a folder"
    )
    again.add_argument("--overwrite", action="store_true", help="write all maps of a folder again")
    add_threads(parser)
    parser.set_defaults(run=run)


def _add_meanings(parser: Any) -> None:
    """Add the options that say what bands, values and classes mean."""
    parser.add_argument(
        "--mask", type=Path, metavar="FILE", help="raster that is 0 where pixels are left out"
    )
    parser.add_argument(
        "--nodata",
        metavar="VALUES",
        help="value of invalid pixels, one for all bands or separated by commas, or none; default: "
        "that of the file",
    )
    parser.add_argument(
        "--nodata-label",
        type=int,
        metavar="N",
        help="label of invalid pixels; default: 0, or the largest of the type where 0 is a class",
    )
    parser.add_argument(
        "--classes", type=Path, metavar="CSV", help="file with value, name and colour of classes"
    )
    parser.add_argument(
        "--bands",
        metavar="PATTERNS",
        help="patterns of the files in a folder that are the bands, in order, separated by commas",
    )


def run(args: argparse.Namespace) -> int:
    """Write the map of a scene, or of each scene in a folder."""
    from limes.cli.models import open_model

    model = open_model(args.model)
    if model.kind != "borders":
        raise ValueError(
            f"{args.model}: expected a fast classifier, found a slow one: run limes accelerate "
            f"{args.model} {args.scenes[0]} first."
        )
    options = _options(args)
    scenes = _find_scenes(args)
    is_folder = args.scenes[0].is_dir() and not (len(scenes) == 1 and scenes[0][0] == "")
    if is_folder or args.resume:
        if args.check:
            raise ValueError(
                "--check compares one map with a source: give one scene, without --resume."
            )
        return _map_folder(args, model.model, scenes, options, is_folder=is_folder)
    files = scenes[0][1]
    check_rasters(files)
    with Progress("mapping", unit="pixels") as progress:
        _map_scene(
            model.model.set_params(n_jobs=args.jobs),
            files,
            _outputs(args, ""),
            options,
            lambda n_done, n_all: progress.update("mapping", n_done, n_all),
        )
    checked = _check(args, model.model, files, options) if args.check else {}
    result = {"map": str(args.output), **checked}
    show(result, _text(args, checked), as_json=args.json)
    return 0


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of ``predict_raster``."""
    from limes.raster.predict import MIN_MEMORY_MB

    if args.ram < MIN_MEMORY_MB:
        raise ValueError(f"--ram must be {MIN_MEMORY_MB} or more, got {args.ram}.")
    names, colours = _read_classes(args.classes) if args.classes else (None, None)
    options: dict[str, Any] = {
        "mask": args.mask,
        "nodata_output": args.nodata_label,
        "class_names": names,
        "colors": colours,
    }
    if args.nodata is not None:
        options["nodata_input"] = parse_nodata(args.nodata)
    return options | {"max_memory_mb": args.ram}


def parse_nodata(text: str) -> Any:
    """Return the nodata values that a user gave: None, a number or a list.

    Examples
    --------
    >>> parse_nodata("none"), parse_nodata("0"), parse_nodata("-99999,0")
    (None, 0.0, [-99999.0, 0.0])
    """
    if text.strip().lower() == "none":
        return None
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--nodata must be numbers or none, got {text!r}.") from None
    return values if len(values) > 1 else values[0]


def _read_classes(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names and colours of classes by value; a first line of titles is left out."""
    names: dict[str, str] = {}
    colours: dict[str, str] = {}
    with path.open(newline="", encoding="utf-8-sig") as stream:
        for number, row in enumerate(csv.reader(stream), start=1):
            words = [word.strip() for word in row]
            if not any(words) or (number == 1 and words[0].lower() in ("value", "label", "class")):
                continue
            if len(words) not in (2, 3):
                raise ValueError(
                    f"{path}, line {number}: expected value, name and perhaps colour, found "
                    f"{','.join(row)!r:.60}."
                )
            if words[0] in names:
                raise ValueError(f"{path}, line {number}: expected each value once, found {row!r}.")
            names[words[0]] = words[1]
            if len(words) == 3 and words[2]:
                colours[words[0]] = words[2]
    return names, colours


def _find_scenes(args: argparse.Namespace) -> list[tuple[str, list[Path]]]:
    """Return the scenes by the names of their maps, "" for a single one."""
    first = args.scenes[0]
    patterns = _patterns(args)
    if len(args.scenes) > 1 or not first.is_dir():
        if patterns:
            return [("", _select_bands(args.scenes, patterns, "the files that are given"))]
        return [("", list(args.scenes))]
    if patterns and any(fnmatch(path.name, patterns[0]) for path in first.iterdir()):
        return [("", _select_bands(sorted(first.iterdir()), patterns, str(first)))]
    scenes = []
    for path in sorted(first.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir() and patterns:
            scenes.append((path.name, [path]))
        elif path.is_file() and path.suffix.lower() in ENDINGS:
            scenes.append((path.stem, [path]))
    if not scenes:
        raise ValueError(
            f"{first}: expected rasters ({', '.join(ENDINGS)}) or, with --bands, folders of bands, "
            "found none."
        )
    return scenes


def _patterns(args: argparse.Namespace) -> list[str]:
    """Return the patterns of --bands."""
    return [word.strip() for word in args.bands.split(",")] if args.bands else []


def _select_bands(paths: Sequence[Path], patterns: Sequence[str], place: str) -> list[Path]:
    """Return the one file that each pattern matches, in the order of patterns."""
    found = []
    for pattern in patterns:
        matches = [path for path in paths if fnmatch(path.name, pattern)]
        if len(matches) != 1:
            listed = ", ".join(path.name for path in matches[:3]) or "none"
            raise ValueError(
                f"{place}: expected one file that matches {pattern!r} of --bands, found {listed}."
            )
        found += matches
    return found


def check_rasters(files: Sequence[Path]) -> None:
    """Raise if a file is recognisably something else than a raster."""
    from limes.files.streams import recognise_file

    for path in files:
        if path.is_file() and (kind := recognise_file(path)) is not None and kind.name != "TIFF":
            raise ValueError(f"{path}: expected a raster, found {kind.title}: {kind.remedy}.")


def _outputs(args: argparse.Namespace, name: str) -> dict[str, Path]:
    """Return the files of the outputs of a scene; in a folder they have the name of the scene."""
    given = {"label": args.output, "probability": args.proba, "confidence": args.confidence}
    return {
        key: path / f"{name}.tif" if name else path
        for key, path in given.items()
        if path is not None
    }


def _map_scene(
    fast: Any,
    files: Sequence[Path],
    outputs: dict[str, Path],
    options: dict[str, Any],
    progress: Any = None,
) -> None:
    """Write the outputs of one scene."""
    from limes.raster import predict_raster

    predict_raster(
        fast,
        list(files),
        output=outputs,
        proba="probability" in outputs,
        confidence="confidence" in outputs,
        progress=progress,
        **options,
    )


def _map_folder(
    args: argparse.Namespace,
    fast: Any,
    scenes: list[tuple[str, list[Path]]],
    options: dict[str, Any],
    *,
    is_folder: bool,
) -> int:
    """Write the maps of many scenes, those that are not complete."""
    from limes._core import thread_count
    from limes.cli.folder import FileTask, hash_file, run_tasks
    from limes.raster.geotiff import sidecar_path
    from limes.raster.predict import MIN_MEMORY_MB
    from limes.raster.scene import with_sources

    folder = args.output if is_folder else args.output.absolute().parent
    if is_folder and folder.resolve() == args.scenes[0].resolve():
        raise ValueError(f"-o must not be the folder of the scenes, got {str(args.output)!r}.")
    for path in (args.proba, args.confidence) if is_folder else ():
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
    n_jobs = min(thread_count(args.jobs), len(scenes), args.ram // MIN_MEMORY_MB)
    fast.set_params(n_jobs=max(1, thread_count(args.jobs) // n_jobs))
    options = {**options, "max_memory_mb": args.ram // n_jobs}
    patterns = _patterns(args)
    tasks = []
    for name, files in scenes:
        outputs = _outputs(args, name)

        def work(files: list[Path] = files, outputs: dict[str, Path] = outputs) -> None:
            bands = _bands_of(files, patterns)
            check_rasters(bands)
            _map_scene(fast, bands, outputs, options)

        listed = _try_bands(files, patterns)
        inputs = tuple(with_sources([*listed, *([args.mask] if args.mask else [])]))
        written = (outputs["label"], sidecar_path(outputs["label"]), *list(outputs.values())[1:])
        tasks.append(FileTask(inputs, written, work))
    facts = {"model": hash_file(args.model), "options": _stated(args)}
    outcome = run_tasks(
        tasks, folder, facts, inputs=[args.model], n_jobs=n_jobs, overwrite=args.overwrite
    )
    return report_outcome(outcome, args.output, as_json=args.json)


def _bands_of(files: list[Path], patterns: Sequence[str]) -> list[Path]:
    """Return the files of a scene: those of a sub-folder that patterns select."""
    if len(files) == 1 and files[0].is_dir():
        return _select_bands(sorted(files[0].iterdir()), patterns, str(files[0]))
    return files


def _try_bands(files: list[Path], patterns: Sequence[str]) -> list[Path]:
    """Return the files of a scene, or its folder where a band is missing: the task will fail."""
    try:
        return _bands_of(files, patterns)
    except ValueError:
        return files


def _stated(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that change a map, for the manifest."""
    from limes.cli.folder import hash_file

    return {
        "proba": args.proba is not None,
        "confidence": args.confidence is not None,
        "nodata": args.nodata,
        "nodata_label": args.nodata_label,
        "classes": hash_file(args.classes) if args.classes else None,
        "bands": args.bands,
    }


def report_outcome(outcome: Any, output: Path, *, as_json: bool) -> int:
    """Print what became of the files of a folder, and return the exit status."""
    result = {
        "output": str(output),
        "n_written": outcome.n_done,
        "n_complete": outcome.n_complete,
        "failures": [{"input": name, "error": text} for name, text in outcome.failures],
    }
    show(result, outcome.text(output), as_json=as_json)
    for name, text in outcome.failures:
        message = text if name in text else f"{name}: {text}"
        print(f"limes: {message}", file=sys.stderr)
    return 1 if outcome.failures else 0


def _check(
    args: argparse.Namespace, fast: Any, files: list[Path], options: dict[str, Any]
) -> dict[str, Any]:
    """Return the agreement with a source on a sample of the scene, in all and by class."""
    import numpy as np

    from limes.cli.models import open_model
    from limes.raster import sample_rows

    source = open_model(args.check)
    names = getattr(fast, "feature_names_in_", None)
    rows = np.asarray(
        sample_rows(
            files,
            CHECKED_PIXELS,
            np.random.SeedSequence(0),
            names=names,
            nodata=options.get("nodata_input", ...),
        )
    )
    source, rows = source.align(rows.astype(np.float64), files[0])
    expected = source.model.predict(rows)
    is_equal = fast.model_.predict(rows) == expected
    by_class = [
        {
            "class": label,
            "n_pixels": int((expected == label).sum()),
            "agreement": float(is_equal[expected == label].mean()),
        }
        for label in np.unique(expected)
    ]
    return {"n_checked": len(rows), "agreement": float(is_equal.mean()), "classes": by_class}


def _text(args: argparse.Namespace, checked: dict[str, Any]) -> str:
    """Return the result for a person."""
    text = f"map written to {args.output}"
    if not checked:
        return text
    lines = [
        (str(row["class"]), str(row["n_pixels"]), f"{row['agreement']:.4f}")
        for row in checked["classes"]
    ]
    total = ("all", str(checked["n_checked"]), f"{checked['agreement']:.4f}")
    title = f"agreement with {args.check} on a sample of the scene:"
    body = table([("class", "pixels", "agreement"), *lines, total])
    return f"{text}\n\n{title}\n{body}"
