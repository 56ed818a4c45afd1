"""`limes export`: write a fast classifier as ONNX, C, an Arduino library or a libAGF model."""

import argparse
import sys
from pathlib import Path
from typing import Any

from limes.cli.main import add_command, add_output, add_row_format, row_options
from limes.cli.terminal import show, table

TARGETS = ("onnx", "c", "arduino", "libagf", "libagf-borders")
C_TARGETS = ("c", "arduino")
LIBAGF_TARGETS = ("libagf", "libagf-borders")
DTYPES = ("float32", "float64", "int16", "int8")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "export",
        help="write a fast classifier as ONNX, C, an Arduino library or a libAGF model",
        description="Write a fast classifier in another form, with the same labels: an ONNX model, "
        "a header for C99\nand C++11 without dependencies, a library for Arduino, or for "
        "libAGF a text model\nor OUT.brd and OUT.bgd, with more than two classes several and the "
        "control file OUT.txt.",
        example="limes export sat.limes --to c -o sat.h\n"
        "limes export sat.limes --to c --dtype int16 --rows sat.svm -o sat.h --size\n"
        "limes export sat.limes --dtype int8 --size --source sat.model",
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="fast classifier, a .limes file")
    parser.add_argument("--to", choices=TARGETS, help="form of the output")
    add_output(parser, help="output file, or the folder of the library", required=False)
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        help="precision of onnx and c; int16 and int8, for c and arduino, compute in whole numbers",
    )
    parser.add_argument("--name", help="prefix of the names in C, default: the name of the model")
    parser.add_argument(
        "--max-bytes",
        type=int,
        metavar="N",
        help="largest size of the tables in C, labels included",
    )
    parser.add_argument(
        "--rows",
        type=Path,
        metavar="FILE",
        help="c and arduino: rows whose ranges replace those of the fit; with int16 and int8, "
        "agreement with the float model is measured on them",
    )
    parser.add_argument(
        "--size",
        action="store_true",
        help="report flash, RAM and multiply-adds on AVR and Cortex-M0; needs no output",
    )
    parser.add_argument(
        "--source",
        type=Path,
        metavar="SOURCE",
        help="c and arduino: compare with the size of the exact sums of this trained classifier",
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
    add_row_format(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Export the classifier."""
    from limes.cli.models import open_model
    from limes.model.exact import FallbackScheme

    _check(args)
    opened = open_model(args.model)
    if opened.kind != "borders":
        raise ValueError(
            f"{args.model}: expected a fast classifier, found another: use limes accelerate first."
        )
    if args.to in C_TARGETS:
        result, text = _export_c(opened, args)
    elif args.to == "libagf-borders":
        result, text = _export_borders(opened.model, args)
    else:
        result, text = _export_bytes(opened.model, args)
    show(result, text, as_json=args.json)
    if isinstance(opened.model.scheme_, FallbackScheme) and not args.fallback:
        print(_without_fallback(args), file=sys.stderr)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Raise for options that do not fit each other; a size alone is that of C."""
    is_size_alone = args.output is None and (args.size or args.source is not None)
    if args.to is None:
        if not is_size_alone:
            raise ValueError(f"--to must be one of {', '.join(TARGETS)}, got none.")
        args.to = "c"
    if args.output is None and not is_size_alone:
        raise ValueError("an export needs an output: give -o OUT, or --size alone.")
    if args.fallback and args.to in LIBAGF_TARGETS:
        raise ValueError("libAGF has no exact sums: use --fallback with --to c or --to onnx.")
    if args.to in C_TARGETS:
        return
    if args.dtype in ("int16", "int8"):
        raise ValueError(f"--dtype {args.dtype} is for --to c and --to arduino, got {args.to!r}.")
    for name in ("rows", "size", "source", "max_bytes"):
        if getattr(args, name):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is for --to c and --to arduino, got {args.to!r}.")


def _export_bytes(fast: Any, args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Write an ONNX or libAGF model."""
    from limes.atomic import atomic_write

    data = WRITERS[args.to](fast, args)
    with atomic_write(args.output) as stream:
        stream.write(data)
    result = {"output": str(args.output), "to": args.to, "n_bytes": len(data)}
    return result, f"{args.output}: {len(data):,} bytes"


def _export_borders(fast: Any, args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Write libAGF's files of borders."""
    from limes.atomic import refuse_inputs_as_outputs
    from limes.export.libagf_files import write_libagf_borders

    endings = (".brd", ".bgd", ".txt")
    written = [args.output.with_name(f"{args.output.name}{ending}") for ending in endings]
    refuse_inputs_as_outputs(written, [args.model])
    paths = write_libagf_borders(fast, args.output, scaled=args.scaled)
    result = {"output": [str(path) for path in paths], "to": args.to}
    return result, f"{len(paths)} files, {paths[-1]} the last"


def _export_c(opened: Any, args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Write a C header or an Arduino library; report its sizes."""
    from limes.export.c import c_header

    header = c_header(
        opened.model,
        name=args.name or _identifier(args.model),
        max_bytes=args.max_bytes,
        rows=_read_rows(opened, args),
        **_options(args),
    )
    result: dict[str, Any] = {"to": args.to, "dtype": header.dtype}
    shown = []
    if args.output is not None:
        n_bytes = _write_c(opened, header, args)
        result |= {"output": str(args.output), "n_bytes": n_bytes}
        shown.append(f"{args.output}: {n_bytes:,} bytes of text")
    result["n_constant_bytes"] = header.sizes.total
    shown.append(f"{header.dtype}: in a program {header.sizes.total:,} bytes of tables")
    if header.agreement is not None:
        result["agreement"] = header.agreement
        shown.append(f"agreement with the float model: {header.agreement:.2%} of rows")
    if header.avr_reason:
        result["avr"] = header.avr_reason
        shown.append(f"not for AVR: {header.avr_reason}")
    if args.size:
        result["sizes"], text = _report_sizes(opened.model, header, args)
        shown.append(text)
    if args.source is not None:
        result["source_bytes"] = n_source = _source_bytes(args.source)
        own = header.sizes.total
        smaller = "the exact sums are smaller" if n_source < own else "the fast model is smaller"
        smaller = "both have the same size" if n_source == own else smaller
        shown.append(f"exact sums of {args.source}: {n_source:,} bytes as float32; {smaller}")
    return result, "\n".join(shown)


def _write_c(opened: Any, header: Any, args: argparse.Namespace) -> int:
    """Write a header or a library; return the bytes of text."""
    from limes.atomic import atomic_write

    if args.to == "c":
        with atomic_write(args.output) as stream:
            stream.write(header.text.encode())
        return len(header.text.encode())
    from limes.export.arduino import write_arduino

    files = write_arduino(
        header, args.output, n_features=opened.n_features, n_classes=len(opened.classes)
    )
    return sum(path.stat().st_size for path in files)


def _read_rows(opened: Any, args: argparse.Namespace) -> Any:
    """Return the rows of a file; None where none was given."""
    from limes.files import read_rows

    if args.rows is None:
        return None
    n_features = opened.n_features_of_text(args.features)
    X = read_rows(args.rows, row_options(args, n_features=n_features, expected=opened.names))[0]
    return opened.align(X, args.rows)[1]


def _report_sizes(
    fast: Any, header: Any, args: argparse.Namespace
) -> tuple[list[dict[str, Any]], str]:
    """Return flash, RAM and multiply-adds on each processor."""
    from limes.export.rounding import scheme_to_export
    from limes.export.size import measure_sizes

    cost = scheme_to_export(fast, fallback=args.fallback).cost
    sizes = measure_sizes(header, cost)
    rows = [["processor", "flash", "RAM", "multiply-adds"]]
    rows += [
        [
            size.processor,
            "-" if size.flash is None else f"{size.flash:,}",
            "-" if size.ram is None else f"{size.ram:,}",
            f"{size.multiply_adds:,}",
        ]
        for size in sizes
    ]
    reasons = [f"{size.processor}: {size.reason}" for size in sizes if size.reason]
    return [vars(size) for size in sizes], "\n".join([table(rows), *reasons])


def _source_bytes(path: Path) -> int:
    """Return the bytes of the tables of a source's exact sums as a float32 C header."""
    from limes.cli.models import open_model
    from limes.model.packed import table_bytes
    from limes.sources.exact import exact_scheme_of, labels_of, no_exact_sums_reason

    source = open_model(path)
    exact = None if source.kind == "borders" else exact_scheme_of(source.model)
    if exact is None:
        reason = "it is a fast classifier"
        if source.kind != "borders":
            reason = no_exact_sums_reason(source.model)
        raise ValueError(f"{path}: expected a classifier with sums of kernels, but {reason}.")
    return table_bytes(exact, labels_of(source.model))


def _without_fallback(args: argparse.Namespace) -> str:
    """Return the note on a model that was written without its exact sums."""
    note = "limes: written without the fallback to exact sums, so that some labels may differ"
    can_have = args.to != "libagf" and args.dtype not in ("int16", "int8")
    return f"{note}: use --fallback to include it." if can_have else f"{note}."


def _onnx(fast: Any, args: argparse.Namespace) -> bytes:
    """Return an ONNX model."""
    from limes.export.onnx import to_onnx

    return to_onnx(fast, **_options(args)).SerializeToString()


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


WRITERS = {"onnx": _onnx, "libagf": _libagf}
