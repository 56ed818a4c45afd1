"""Prediction needs NumPy alone, and importing it is quick."""

import subprocess
import sys
import textwrap
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
# Refuses everything but NumPy that the package could import.
WITHOUT_OTHERS = """
    import sys

    class Refuse:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in {"scipy", "sklearn", "joblib", "pandas", "threadpoolctl"}:
                raise ImportError(name)

    sys.meta_path.insert(0, Refuse())
"""


def run(code):
    """Run code in a process without SciPy and scikit-learn; return what it prints."""
    program = textwrap.dedent(WITHOUT_OTHERS) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_models_load_predict_and_are_written_with_numpy_alone(tmp_path):
    code = f"""
        import numpy as np
        from limes.model import load_model, save_model
        rows = np.random.default_rng(0).normal(size=(5000, 3))
        for version in (1, 2):
            model = load_model({str(DATA)!r} + f"/version_{{version}}.limes")
            labels = model.predict(rows, n_jobs=-1)
            probabilities = model.predict_proba(rows)
            assert (labels == model.classes[probabilities.argmax(axis=1)]).all()
            assert model.predictor()(rows[0]) == labels[0]
            assert model.decision_function(rows).shape == (5000, 3)
            save_model(model, {str(tmp_path)!r} + "/again.limes")
            assert (load_model({str(tmp_path)!r} + "/again.limes").predict(rows) == labels).all()
            print(len(set(labels)))
    """
    assert run(code) == ["3", "3"]


def test_exact_sums_need_numpy_alone(tmp_path):
    code = f"""
        import numpy as np
        from limes.model import ExactScheme, Model, load_model, save_model
        from limes.model.svm import Kernel, TrainedSvm
        svm = TrainedSvm(Kernel("rbf"), [[0.0], [2.0]], [[1.0, -1.0]], [0.0], [1, 1])
        save_model(Model(ExactScheme(svm), np.array([3, 5]), 1), {str(tmp_path)!r} + "/m.limes")
        model = load_model({str(tmp_path)!r} + "/m.limes")
        print(*model.predict([[0.5], [1.5]]), model.predictor()([3.0]))
    """
    assert run(code) == ["3", "5", "5"]


def test_importing_the_model_takes_little_beyond_numpy():
    code = """
        import time, numpy
        start = time.process_time()
        import limes.model
        print(time.process_time() - start)
    """
    assert min(float(run(code)[0]) for _ in range(3)) < 0.15


def test_the_wrong_shape_of_rows_is_named():
    code = f"""
        from limes.model import load_model
        model = load_model({str(DATA / "version_2.limes")!r})
        try:
            model.predict([[1.0, 2.0]])
        except ValueError as error:
            print(str(error).replace(" ", "_"))
    """
    assert run(code) == ["X_must_have_the_shape_(n_rows,_3),_got_(1,_2)."]
