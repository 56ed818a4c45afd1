"""Run the README's lines of Python with the installed package; keep the model and its labels."""

import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np

import limes

if not Path(limes.__file__).is_relative_to(sys.prefix):
    sys.exit(f"limes must be the installed one, got {limes.__file__}.")
blocks = re.findall(
    r"^```python\n(.*?)^```", Path(sys.argv[1]).read_text("utf-8"), re.DOTALL | re.M
)
names: dict = {}
with redirect_stdout(StringIO()):
    for block in blocks:
        exec(block, names)
fast, X_test = names["fast"], names["X_test"]
fast.save("kept.limes")
np.savez("kept.npz", rows=X_test, labels=fast.predict(X_test), p=fast.predict_proba(X_test))
print(f"{len(blocks)} blocks of the README ran, limes {limes.__version__}")
