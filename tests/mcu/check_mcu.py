"""Headers on small processors, with real compilers and emulators: `make check-mcu`.

Not part of `make test`. Without one of the programs it fails.
"""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import limes
from limes.datasets import load
from limes.export.c import c_header, to_c
from tests.export import curved_cases
from tests.export.cases import binary, fitted, shared, shortlist, tree_projected, votes_scaled
from tests.mcu.toolchains import compile_main, count_wrong, missing_tools, run, run_on_avr

DATASETS = ("sat", "pendigits", "segment", "heart")
CASES = (binary, votes_scaled, shared, shortlist, tree_projected)
DTYPES = ("float32", "int16", "int8")
MIN_AGREEMENT = {"int16": 0.995, "int8": 0.98}
MAX_RAM = 512
# Enough of the Arduino core for a sketch to compile.
ARDUINO = """
#include <stdint.h>
#include <avr/pgmspace.h>
class __FlashStringHelper;
#define F(text) ((const __FlashStringHelper *)PSTR(text))
struct Printer {
    void begin(long) {}
    template <class T> void print(T) {}
    template <class T> void println(T) {}
};
static Printer Serial;
static inline void delay(unsigned long) {}
"""


def test_all_programs_are_installed():
    assert not missing_tools()


@cache
def dataset(name):
    """Return a dataset, an SVM of it and its replacement by a map of at most 16 kB."""
    data = load(name)
    source = make_pipeline(StandardScaler(), SVC(C=10)).fit(data.X_train, data.y_train)
    options = {"scheme": "shared", "fallback": False, "random_state": 0}
    return data, source, limes.accelerate(source, data.X_train, max_bytes=16384, **options)


def test_agreement_with_the_float_model():
    """Int16 on all datasets, int8 on at least three, on test rows, with the ranges of the fit."""
    found = {}
    for name in DATASETS:
        data, _, fast = dataset(name)
        rows = data.X_test.astype(np.float32)
        for dtype in MIN_AGREEMENT:
            from limes.export.c_fixed import agreement_with_float, fixed_scheme

            fixed = fixed_scheme(fast, fast.scheme_, dtype, None)
            found[name, dtype] = agreement_with_float(fixed, rows)
            print(f"{name} {dtype}: {found[name, dtype]:.2%} of {len(rows)} test rows")
    assert all(found[name, "int16"] >= MIN_AGREEMENT["int16"] for name in DATASETS)
    assert sum(found[name, "int8"] >= MIN_AGREEMENT["int8"] for name in DATASETS) >= 3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["heart", "segment"])
def test_a_model_of_16_kb_runs_on_an_atmega328p(name, dtype, tmp_path):
    header = c_header(dataset(name)[2], name="model", dtype=dtype, max_bytes=16384)
    for compiler in ("avr-gcc", "avr-g++"):
        found = run_on_avr(tmp_path, header.text, compiler)
        print(f"{name} {dtype} {compiler}: {found}")
        assert found.n_rows >= 20
        assert found.n_wrong == 0
        assert found.ram < MAX_RAM


def test_the_exact_sums_of_heart_run_on_an_atmega328p(tmp_path):
    """What `accelerate` selects by default: the SVM itself is small."""
    data, source, _ = dataset("heart")
    fast = limes.accelerate(source, data.X_train, max_bytes=16384, random_state=0)
    found = run_on_avr(tmp_path, to_c(fast, name="model"))
    print(f"heart by default, scheme {fast.scheme_.name}: {found}")
    assert found.n_wrong == 0
    assert found.ram < MAX_RAM


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_headers_compile_and_run_on_all_processors(case, dtype, tmp_path):
    header = to_c(fitted(case), name="model", dtype=dtype)
    for compiler in ("gcc", "g++"):
        assert count_wrong(tmp_path, header, compiler, "-O2") == 0
        arm = f"arm-linux-gnueabihf-{compiler}"
        assert count_wrong(tmp_path, header, arm, "-O2", "-static", emulator=("qemu-arm",)) == 0
    for compiler in ("avr-gcc", "avr-g++"):
        found = run_on_avr(tmp_path, header, compiler)
        assert found.n_wrong == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", curved_cases.CASES[::4], ids=str)
def test_curved_bases_compile_for_avr(case, dtype, tmp_path):
    fast = curved_cases.classifier(curved_cases.scheme_of(curved_cases.curved_map(case)))
    rows = curved_cases.rows_around()[:500]
    header = to_c(fast, name="model", dtype=dtype, rows=rows)
    assert run_on_avr(tmp_path, header).n_wrong == 0


def test_the_arduino_example_compiles(tmp_path):
    from limes.export.arduino import write_arduino

    for case, dtype in ((binary, "int16"), (shared, "int8"), (votes_scaled, "float32")):
        header = c_header(fitted(case), name="model", dtype=dtype)
        library = tmp_path / f"{case.__name__}"
        write_arduino(header, library, n_features=2, n_classes=2)
        sketch = (library / "examples/Classify/Classify.ino").read_text()
        main = f"{ARDUINO}\n{sketch}\nint main() {{ setup(); for (;;) loop(); }}\n"
        folder = library / "src"
        main = main.replace("<model.h>", '"model.h"')
        compile_main(folder, header.text, main, "avr-g++", "-mmcu=atmega328p", "-Os")


def test_avr_refuses_float64_and_large_tables(tmp_path):
    fast = fitted(binary)
    (tmp_path / "main.c").write_text('#include "model.h"\nint main(void) { return 0; }\n')
    big = limes.BorderMap.from_borders(
        points=np.random.default_rng(0).normal(size=(1100, 8)), normals=np.ones((1100, 8))
    )
    large = limes.BordersClassifier.from_model(
        limes.model.Model(limes.model.PairwiseScheme((big,), 2), np.arange(2), 8)
    )
    for header, reason in (
        (to_c(fast, name="model", dtype="float64"), "AVR has no float64"),
        (to_c(large, name="model"), "AVR takes tables of 32767 bytes"),
    ):
        (tmp_path / "model.h").write_text(header)
        with pytest.raises(AssertionError, match=reason):
            run("avr-gcc", "-mmcu=atmega328p", "-c", "main.c", folder=tmp_path)
        # Elsewhere it compiles.
        run("gcc", "-c", "main.c", folder=tmp_path)


def test_the_datasets_are_there():
    assert Path(os.environ["LIMES_DATA"]).is_dir()
