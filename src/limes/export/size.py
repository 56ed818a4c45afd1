"""Flash and RAM of a C header on small processors, measured with their compilers."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from limes.export.c_header import CHeader

# Classifies a row that the compiler cannot foresee.
PROGRAM = """
#include "model.h"
volatile {name}_real row[{NAME}_FEATURES];
int main(void) {{
    return {name}_predict((const {name}_real *)row);
}}
"""
# The same from floats to whole numbers.
FIXED_PROGRAM = """
#include "model.h"
volatile float x[{NAME}_FEATURES];
static int16_t row[{NAME}_FEATURES];
int main(void) {{
    {name}_quantize((const float *)x, row);
    return {name}_predict(row);
}}
"""
EMPTY = "volatile int row[1];\nint main(void) { return row[0]; }\n"


@dataclass(frozen=True)
class Processor:
    """A processor with its compiler."""

    name: str
    compiler: str
    size_tool: str
    package: str
    flags: tuple[str, ...]


PROCESSORS = (
    Processor("AVR", "avr-gcc", "avr-size", "gcc-avr and avr-libc", ("-mmcu=atmega328p",)),
    Processor(
        "Cortex-M0",
        "arm-none-eabi-gcc",
        "arm-none-eabi-size",
        "gcc-arm-none-eabi",
        ("-mcpu=cortex-m0", "-mthumb", "--specs=nano.specs", "--specs=nosys.specs"),
    ),
)


@dataclass(frozen=True)
class HeaderSize:
    """What a header takes on a processor."""

    processor: str
    # Bytes of tables and code, that of NAME_quantize included; None where it was not measured.
    flash: int | None
    # Bytes of the stack of a prediction, beside the row itself; None as above.
    ram: int | None
    multiply_adds: int
    # Why it was not measured, in one sentence; empty where it was.
    reason: str = ""


def measure_sizes(header: CHeader, multiply_adds: int) -> list[HeaderSize]:
    """Return what a header takes on each processor."""
    return [_measure(header, multiply_adds, processor) for processor in PROCESSORS]


def _measure(header: CHeader, multiply_adds: int, processor: Processor) -> HeaderSize:
    """Compile a program with a header; the startup code of an empty program does not count."""
    if processor.name == "AVR" and header.avr_reason:
        return HeaderSize(processor.name, None, None, multiply_adds, header.avr_reason)
    if shutil.which(processor.compiler) is None:
        reason = f"{processor.compiler} is not installed: install {processor.package}."
        return HeaderSize(processor.name, None, None, multiply_adds, reason)
    names = {"name": header.name, "NAME": header.name.upper()}
    program = FIXED_PROGRAM if header.dtype.startswith("int") else PROGRAM
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.h").write_text(header.text, encoding="utf-8")
        flash = _flash(folder, EMPTY, processor)
        whole = _flash(folder, program.format(**names), processor)
        if flash is None or whole is None:
            reason = f"{processor.compiler} cannot link it: it is larger than the processor."
            return HeaderSize(processor.name, None, None, multiply_adds, reason)
        usage = "".join(path.read_text() for path in Path(folder).glob("*.su"))
    # A function calls each other at most once, so that the sum is a bound.
    ram = sum(int(size) for size in re.findall(r"^\S+\t(\d+)\t", usage, re.M))
    return HeaderSize(processor.name, whole - flash, ram, multiply_adds)


def _flash(folder: str, program: str, processor: Processor) -> int | None:
    """Return the bytes of code and constants of a program; None if it cannot be linked."""
    Path(folder, "main.c").write_text(program, encoding="utf-8")
    flags = ["-std=c99", "-Os", "-fstack-usage", "-ffunction-sections", "-Wl,--gc-sections"]
    command = [processor.compiler, *processor.flags, *flags, "main.c", "-lm", "-o", "main"]
    if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
        return None
    done = subprocess.run(
        [processor.size_tool, "main"], cwd=folder, capture_output=True, text=True, check=True
    )
    code, data = done.stdout.splitlines()[1].split()[:2]
    return int(code) + int(data)
