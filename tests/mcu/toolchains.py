"""Compilers and emulators of small processors: build a header's test program, run it."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

WARNINGS = ("-Wall", "-Wextra", "-Werror")
MCU = "atmega328p"
TOOLS = (
    "gcc",
    "g++",
    "avr-gcc",
    "avr-g++",
    "simavr",
    "arm-none-eabi-gcc",
    "arm-linux-gnueabihf-gcc",
    "arm-linux-gnueabihf-g++",
    "qemu-arm",
)
# Counts wrong rows of the header's test vector.
HOST_MAIN = """
#include <stdio.h>
#define MODEL_TEST
#include "model.h"
int main(void) {
    printf("rows %d wrong %d\\n", MODEL_TEST_ROWS, model_test());
    return 0;
}
"""
# The same on AVR, which also finds out how much of its RAM was used. All of it above the variables
# is painted before main; what main leaves is the stack's high-water mark.
AVR_MAIN = """
#include <avr/io.h>
#include <avr/interrupt.h>
#include <avr/sleep.h>
#include <stdint.h>
#define MODEL_TEST
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif
extern uint8_t _end, __stack, __data_start;
void paint(void) __attribute__((naked, used, section(".init1")));
#ifdef __cplusplus
}
#endif

void paint(void) {
    __asm volatile(
        "ldi r30, lo8(_end)\\n ldi r31, hi8(_end)\\n ldi r24, 0xc5\\n ldi r25, hi8(__stack)\\n"
        "rjmp 2f\\n"
        "1: st Z+, r24\\n"
        "2: cpi r30, lo8(__stack)\\n cpc r31, r25\\n brlo 1b\\n breq 1b\\n");
}

static void put(char c) {
    while (!(UCSR0A & (1 << UDRE0))) {}
    UDR0 = (uint8_t)c;
}

static void put_number(uint16_t n) {
    if (n > 9) put_number(n / 10);
    put((char)('0' + n % 10));
}

int main(void) {
    const uint8_t *p = &_end;
    uint16_t wrong = (uint16_t)model_test(), n_free = 0;
    while (p <= &__stack && *p == 0xc5) {
        ++p;
        ++n_free;
    }
    UCSR0B = 1 << TXEN0;
    put_number(MODEL_TEST_ROWS);
    put(' ');
    put_number(wrong);
    put(' ');
    put_number((uint16_t)(&__stack - &__data_start) + 1 - n_free);
    put('\\n');
    cli();
    sleep_enable();
    sleep_cpu();
    return 0;
}
"""


def missing_tools() -> list[str]:
    """Return the programs that are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def run(*command: str | Path, folder: Path) -> str:
    """Run a program, and return what it printed."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stderr}"
    return done.stdout + done.stderr


def compile_main(folder: Path, header: str, main: str, *command: str) -> Path:
    """Compile a program with a header for C (or C++, by the name of the compiler)."""
    is_cpp = command[0].endswith("g++")
    name = "main.cpp" if is_cpp else "main.c"
    (folder / "model.h").write_text(header)
    (folder / name).write_text(main)
    standard = "-std=c++11" if is_cpp else "-std=c99"
    flags = [*command[1:], standard, *WARNINGS]
    # AVR's own headers need GNU's asm.
    flags = [flag.replace("-std=c", "-std=gnu") for flag in flags] if "avr" in command[0] else flags
    run(command[0], *flags, name, "-lm", "-o", "main", folder=folder)
    return folder / "main"


def count_wrong(folder: Path, header: str, *command: str, emulator: tuple[str, ...] = ()) -> int:
    """Compile and run a header's test vector; return the number of wrong rows."""
    program = compile_main(folder, header, HOST_MAIN, *command)
    found = re.search(r"rows (\d+) wrong (\d+)", run(*emulator, program, folder=folder))
    assert found is not None
    assert int(found[1]) > 1
    return int(found[2])


@dataclass(frozen=True)
class AvrRun:
    """What a program on an ATmega328P reported."""

    n_rows: int
    n_wrong: int
    # Bytes of variables and the stack together, at most.
    ram: int
    flash: int


def run_on_avr(folder: Path, header: str, compiler: str = "avr-gcc") -> AvrRun:
    """Link a header's test vector for an ATmega328P, and run it in simavr."""
    program = compile_main(folder, header, AVR_MAIN, compiler, f"-mmcu={MCU}", "-Os")
    sections = run("avr-size", "-A", program, folder=folder)
    flash = sum(int(size) for size in re.findall(r"^\.(?:text|data)\s+(\d+)", sections, re.M))
    assert flash <= 32 * 1024
    printed = run("simavr", "-m", MCU, "-f", "16000000", program, folder=folder)
    found = re.search(r"(\d+) (\d+) (\d+)\.", re.sub(r"\x1b\[[0-9;]*m", "", printed))
    assert found is not None, printed
    return AvrRun(*map(int, found.groups()), flash)
