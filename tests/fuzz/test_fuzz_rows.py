"""A short run over each reader of rows; `python tests/fuzz/fuzz_rows.py 1000000` is a long one."""

import fuzz_rows
import pytest

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("kind", fuzz_rows.ENDINGS)
def test_changed_files_are_refused_in_one_line_or_read(kind):
    counts = fuzz_rows.run(500, kind=kind)
    assert counts.n_read > 5
    assert counts.n_refused > 50
