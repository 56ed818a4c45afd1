"""A short run of each fuzz target; `python tests/fuzz/fuzz_limes.py 1000000` is a long one."""

import fuzz_limes


def test_changed_model_files_are_refused_in_one_line_or_read():
    tally = fuzz_limes.run(1000)
    assert tally.n_read > 50
    assert tally.n_refused > 500
