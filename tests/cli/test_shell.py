"""Every job in a shell, with files of the paper's data, as a new user would try it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

# One job after the other; a job that fails ends the script.
SCRIPT = r"""
set -eu
limes() { "$PYTHON" -m limes "$@"; }

limes --help > help.txt
limes datasets > datasets.txt
limes datasets heart --train heart.svm --test heart.t --scale
limes datasets heart --train heart.csv

# as svm-train, svm-predict
limes train -c 0.5 -g 0.01 -b 1 heart.svm heart.model 2> /dev/null && exit 9  # -o is missing
limes train -c 0.5 -g 0.01 -b 1 heart.svm -o heart.model
limes predict heart.model heart.t -o slow.txt
limes predict heart.model heart.t -o - > slow2.txt
cmp slow.txt slow2.txt

# as svm_accelerate, classify_m
limes accelerate heart.model heart.svm -o heart.limes
limes predict heart.limes heart.t -o fast.txt --proba
gzip -k heart.t && limes predict heart.limes heart.t.gz -o fast.gz.txt --proba --format libsvm
cmp fast.txt fast.gz.txt
limes score heart.limes heart.t --source heart.model
limes score heart.limes heart.t --source heart.model --html report.html --json > score.json

limes info heart.limes > info.txt
limes info heart.svm --json > rows.json
limes export heart.limes --to c -o heart.h
limes subsample heart.svm 0.5 -o half.svm

for to in csv parquet vec; do
    limes convert heart.t "rows.$to"
    limes predict heart.limes "rows.$to" -o "out.$to.txt"
done
cut -d ' ' -f 1 fast.txt | tail -n +2 > labels.txt
cmp out.csv.txt labels.txt
cmp out.parquet.txt labels.txt
test "$(wc -l < out.vec.txt)" -eq "$(wc -l < labels.txt)"

# other sources, from a table
limes train --model agf heart.csv --scale -o agf.model
limes accelerate agf.model heart.csv -o agf.limes
limes predict agf.limes heart.csv -o agf.parquet --keep --proba

# mistakes
limes predict heart.limes no.svm -o no.txt 2> error.txt && exit 9
test "$(wc -l < error.txt)" -eq 1
test ! -e no.txt
echo done
"""


@pytest.mark.data
def test_every_job_works_from_a_shell_script(tmp_path):
    (tmp_path / "all.sh").write_text(SCRIPT)
    found = subprocess.run(
        ["sh", "all.sh"],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.endswith("done\n")
    score = json.loads((tmp_path / "score.json").read_text())
    assert score["source"]["accuracy"] > 0.75
    assert score["agreement"] > 0.9
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert "no.svm: No such file or directory" in (tmp_path / "error.txt").read_text()


def test_the_command_is_on_the_path_of_its_environment():
    found = Path(sys.executable).with_name("limes")
    if not found.exists():
        pytest.skip("limes is not installed in this environment")
    text = subprocess.run([found, "--help"], capture_output=True, text=True, check=True).stdout
    assert "Make a slow kernel classifier fast" in text
