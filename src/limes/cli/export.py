"""`limes export`."""

import argparse
from pathlib import Path
from typing import Any

from limes.cli.main import add_command, add_output
from limes.cli.terminal import show

TARGETS = ("onnx", "c", "libagf")


def add_parser(jobs: Any) -> None:
    """Describe the job."""
    parser = add_command(
        jobs,
        "export",
        help="write a fast classifier as ONNX, C or a libAGF model",
        description="Write a fast classifier in another form, with the same labels: an ONNX model, "
        "one C99 header\nwithout dependencies, or a text model for libAGF's classify_m.",
        example="limes export sat.limes --to c -o sat.h",
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="fast classifier, a .limes file")
    parser.add_argument("--to", choices=TARGETS, required=True, help="form to write")
    add_output(parser, help="file to write")
    parser.add_argument("--dtype", choices=("float32", "float64"), help="precision, of onnx and c")
    parser.add_argument(
        "--name", help="first part of the names in C; the model's name if not given"
    )
    parser.add_argument("--max-bytes", type=int, metavar="N", help="refuse larger constants in C")
    parser.add_argument(
        "--scaled", action="store_true", help="libagf: for rows that are scaled as in training"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the other form."""
    from limes.atomic import atomic_write
    from limes.cli.models import open_model

    opened = open_model(args.model)
    if opened.kind != "borders":
        raise ValueError(
            f"{args.model}: expected a fast classifier: make one with limes accelerate."
        )
    data = WRITERS[args.to](opened.model, args)
    with atomic_write(args.output) as stream:
        stream.write(data)
    result = {"output": str(args.output), "to": args.to, "n_bytes": len(data)}
    text = f"{args.output}: {len(data):,} bytes"
    if args.to == "c":
        result["n_constant_bytes"] = n_constants = _constants(opened.model, args)
        text += f" of text; in a program {n_constants:,} bytes of constants"
    show(result, text, as_json=args.json)
    return 0


def _onnx(fast: Any, args: argparse.Namespace) -> bytes:
    """Return an ONNX model."""
    from limes.export.onnx import to_onnx

    return to_onnx(fast, **_precision(args)).SerializeToString()


def _c(fast: Any, args: argparse.Namespace) -> bytes:
    """Return a C header."""
    from limes.export.c import to_c

    name = args.name or _identifier(args.model)
    return to_c(fast, name=name, max_bytes=args.max_bytes, **_precision(args)).encode()


def _constants(fast: Any, args: argparse.Namespace) -> int:
    """Return the bytes that a C header takes in a program."""
    from limes.export.c import constant_bytes

    return constant_bytes(fast, **_precision(args))


def _libagf(fast: Any, args: argparse.Namespace) -> bytes:
    """Return a libAGF model."""
    from limes.export.libagf import to_libagf

    return to_libagf(fast, scaled=args.scaled).encode()


WRITERS = {"onnx": _onnx, "c": _c, "libagf": _libagf}


def _precision(args: argparse.Namespace) -> dict[str, str]:
    """Return the precision where the user asked for one."""
    return {} if args.dtype is None else {"dtype": args.dtype}


def _identifier(path: Path) -> str:
    """Return a file's name as C can have it."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in path.stem)
    return name if name and not name[0].isdigit() else f"model_{name}"
