"""`limes export`: write a fast classifier as ONNX, C or a libAGF model."""

import argparse
import sys
from pathlib import Path
from typing import Any

from limes.cli.main import add_command, add_output
from limes.cli.terminal import show

TARGETS = ("onnx", "c", "libagf")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "export",
        help="write a fast classifier as ONNX, C or a libAGF model",
        description="Write a fast classifier in another form, with the same labels: an ONNX model, "
        "a C99 header\nwithout dependencies, or a text model for libAGF's classify_m.",
        example="limes export sat.limes --to c -o sat.h",
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="fast classifier, a .limes file")
    parser.add_argument("--to", choices=TARGETS, required=True, help="form of the output")
    add_output(parser, help="output file")
    parser.add_argument("--dtype", choices=("float32", "float64"), help="precision of onnx and c")
    parser.add_argument("--name", help="prefix of the names in C, default: the name of the model")
    parser.add_argument(
        "--max-bytes", type=int, metavar="N", help="largest size of the constants in C"
    )
    parser.add_argument(
        "--scaled",
        action="store_true",
        help="libagf: write the model for rows that are already scaled as in training",
    )
    parser.add_argument(
        "--fallback",
        action="store_true",
        help="onnx and c: include the exact sums of a map with fallback, which hold training rows",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Export the classifier."""
    from limes.atomic import atomic_write
    from limes.cli.models import open_model
    from limes.model.exact import FallbackScheme

    opened = open_model(args.model)
    if opened.kind != "borders":
        raise ValueError(
            f"{args.model}: expected a fast classifier, found another: use limes accelerate first."
        )
    if args.fallback and args.to == "libagf":
        raise ValueError("libAGF has no exact sums: use --fallback with --to c or --to onnx.")
    data = WRITERS[args.to](opened.model, args)
    with atomic_write(args.output) as stream:
        stream.write(data)
    result = {"output": str(args.output), "to": args.to, "n_bytes": len(data)}
    text = f"{args.output}: {len(data):,} bytes"
    if args.to == "c":
        result["n_constant_bytes"] = n_constants = _constant_bytes(opened.model, args)
        text += f" of text; in a program {n_constants:,} bytes of constants"
    show(result, text, as_json=args.json)
    if isinstance(opened.model.scheme_, FallbackScheme) and not args.fallback:
        print(_without_fallback(args.to), file=sys.stderr)
    return 0


def _without_fallback(target: str) -> str:
    """Return the note on a model that was written without its exact sums."""
    note = "limes: written without the fallback to exact sums, so that some labels may differ"
    return f"{note}." if target == "libagf" else f"{note}: use --fallback to include it."


def _onnx(fast: Any, args: argparse.Namespace) -> bytes:
    """Return an ONNX model."""
    from limes.export.onnx import to_onnx

    return to_onnx(fast, **_options(args)).SerializeToString()


def _c(fast: Any, args: argparse.Namespace) -> bytes:
    """Return a C header."""
    from limes.export.c import to_c

    name = args.name or _identifier(args.model)
    return to_c(fast, name=name, max_bytes=args.max_bytes, **_options(args)).encode()


def _identifier(path: Path) -> str:
    """Return the name of a file as an identifier of C."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in path.stem)
    return name if name and not name[0].isdigit() else f"model_{name}"


def _libagf(fast: Any, args: argparse.Namespace) -> bytes:
    """Return a libAGF model."""
    from limes.export.libagf import to_libagf

    return to_libagf(fast, scaled=args.scaled).encode()


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Return precision and fallback as the exports take them."""
    return {"dtype": args.dtype, "fallback": args.fallback}


WRITERS = {"onnx": _onnx, "c": _c, "libagf": _libagf}


def _constant_bytes(fast: Any, args: argparse.Namespace) -> int:
    """Return the size of the constants of a C header in a program."""
    from limes.export.c import constant_bytes

    return constant_bytes(fast, **_options(args))
