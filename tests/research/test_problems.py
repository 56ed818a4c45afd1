"""Problems: datasets, files, and those that the paper does not have."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from limes.research.problems import FURTHER_PROBLEMS, Problem, load_problem, split_at_random


@pytest.fixture
def problem(moons):
    X, y = moons
    return Problem("moons", X[:200], y[:200], X[200:], y[200:], C=10.0, gamma=1.0)


def test_a_file_without_labels_is_refused(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, X=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="must have labels to learn from"):
        load_problem(str(path))


def test_a_file_with_parts_is_not_split(problem, tmp_path):
    path = tmp_path / "parts.npz"
    names = ("X_train", "y_train", "X_test", "y_test")
    np.savez(path, **{name: getattr(problem, name) for name in names})
    loaded = load_problem(str(path), C=3.0)
    assert_array_equal(loaded.X_test, problem.X_test)
    assert_array_equal(loaded.y_train, problem.y_train)
    assert (loaded.name, loaded.C, loaded.gamma) == ("parts", 3.0, "scale")


def test_an_unknown_dataset_is_named():
    with pytest.raises(ValueError, match="'mnits'"):
        load_problem("mnits")


@pytest.mark.data
def test_a_dataset_comes_with_the_parameters_of_the_paper():
    problem = load_problem("sat", gamma=0.3)
    assert (problem.C, problem.gamma) == (50.0, 0.3)
    assert problem.sizes == {"n_train": 4435, "n_test": 2000, "n_features": 36, "n_classes": 6}


def test_a_random_split_has_the_same_rows_in_parts_of_the_same_size(problem):
    mixed = split_at_random(problem, 3)
    assert mixed.sizes == problem.sizes
    assert not np.array_equal(mixed.X_train, problem.X_train)
    before, after = (
        np.column_stack([np.concatenate([p.X_train, p.X_test]), [*p.y_train, *p.y_test]])
        for p in (problem, mixed)
    )
    assert_array_equal(np.unique(before, axis=0), np.unique(after, axis=0))


@pytest.mark.parametrize("name", FURTHER_PROBLEMS)
def test_a_further_problem_depends_on_its_seed_alone(name):
    first, again, other = (FURTHER_PROBLEMS[name](seed) for seed in (0, 0, 1))
    assert first.name == name
    assert first.fingerprint == again.fingerprint != other.fingerprint
    sizes = first.sizes
    assert sizes["n_test"] == pytest.approx(0.5 * sizes["n_train"], abs=1)
    assert_array_equal(np.unique(first.y_train), np.unique(first.y_test))
