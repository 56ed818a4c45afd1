"""A short run of each fuzz target; `python tests/fuzz/fuzz_limes.py 1000000` is a long one."""

import fuzz_libagf
import fuzz_libagf_files
import fuzz_libsvm_model
import fuzz_limes
import fuzz_onnx
import fuzz_opencv
import fuzz_scaling
import fuzz_skops
import fuzz_source
import pytest

TARGETS = (
    fuzz_limes,
    fuzz_source,
    fuzz_libagf,
    fuzz_libagf_files,
    fuzz_libsvm_model,
    fuzz_opencv,
    fuzz_scaling,
    fuzz_onnx,
)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
def test_changed_files_are_refused_in_one_line_or_read(target):
    counts = target.run(1000)
    assert counts.n_read > 20
    assert counts.n_refused > 500


def test_changed_models_of_skops_are_refused_in_one_line_or_read():
    counts = fuzz_skops.run(60)
    assert counts.n_refused > 20
