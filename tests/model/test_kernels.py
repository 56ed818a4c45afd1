"""Kernels: values against scikit-learn's, gradients against central differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel

from limes.model.svm import Kernel, KernelVectors

REFERENCES = [
    (Kernel("linear"), linear_kernel),
    (
        Kernel("poly", gamma=0.3, degree=3, coef0=0.7),
        lambda X, S: polynomial_kernel(X, S, gamma=0.3, degree=3, coef0=0.7),
    ),
    (Kernel("rbf", gamma=0.2), lambda X, S: rbf_kernel(X, S, gamma=0.2)),
    (
        Kernel("sigmoid", gamma=0.1, coef0=-0.2),
        lambda X, S: sigmoid_kernel(X, S, gamma=0.1, coef0=-0.2),
    ),
]
KERNELS = [
    *(kernel for kernel, _ in REFERENCES),
    Kernel("poly", gamma=0.3, degree=0, coef0=0.7),
    Kernel("poly", gamma=0.3, degree=1, coef0=0.7),
    Kernel("poly", gamma=0.3, degree=6, coef0=-0.1),
    Kernel("rbf", gamma=0.0),
]


def kernel_id(kernel):
    return f"{kernel.name}-{kernel.degree}" if isinstance(kernel, Kernel) else ""


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(7, 4))


@pytest.fixture
def vectors():
    return np.random.default_rng(1).normal(size=(9, 4))


@pytest.fixture
def weights():
    return np.random.default_rng(2).normal(size=9)


@pytest.mark.parametrize(("kernel", "reference"), REFERENCES, ids=kernel_id)
def test_values_are_those_of_scikit_learn(kernel, reference, rows, vectors):
    assert_allclose(kernel.values(rows, vectors), reference(rows, vectors), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)
def test_gradients_agree_with_central_differences(kernel, rows, vectors, weights):
    expected = np.empty_like(rows)
    for feature, step in enumerate(1e-5 * np.eye(rows.shape[1])):
        change = kernel.values(rows + step, vectors) - kernel.values(rows - step, vectors)
        expected[:, feature] = change @ weights / 2e-5
    assert_allclose(kernel.gradients(rows, vectors, weights), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)
def test_sums_are_products_with_the_block_of_values(kernel, rows, vectors, weights):
    prepared = KernelVectors(kernel, vectors)
    expected = prepared.values(rows) @ weights
    assert_allclose(prepared.sums(rows, weights[:, None])[:, 0], expected, rtol=1e-12, atol=1e-12)
    sums, _ = prepared.sums_and_gradients(rows, weights)
    assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=kernel_id)
def test_a_part_has_the_kernel_values_of_its_vectors(kernel, rows, vectors):
    prepared = KernelVectors(kernel, vectors)
    expected = prepared.values(rows)[:, 2:5]
    assert_allclose(prepared.part(slice(2, 5)).values(rows), expected, rtol=1e-12)


def test_rbf_of_a_vector_with_itself_is_never_above_one(vectors):
    values = Kernel("rbf", gamma=3.0).values(vectors, vectors)
    assert values.max() <= 1.0
    assert_allclose(values.diagonal(), 1.0, rtol=1e-13)


def test_rbf_keeps_its_digits_far_from_the_origin(rows, vectors):
    kernel = Kernel("rbf", gamma=0.2)
    offset = 2.0**20
    rows, vectors = np.round(rows * 1024) / 1024, np.round(vectors * 1024) / 1024
    far = kernel.values(rows + offset, vectors + offset)
    assert_allclose(far, kernel.values(rows, vectors), rtol=1e-9)


def test_whole_powers_of_negative_numbers_keep_their_sign():
    kernel = Kernel("poly", gamma=1.0, degree=5)
    assert_array_equal(kernel.values([[-2.0]], [[1.0], [-1.0]]), [[-32.0, 32.0]])


def test_no_vectors_give_no_columns_and_zero_gradients(rows):
    kernel = Kernel("rbf")
    assert kernel.values(rows, np.empty((0, 4))).shape == (7, 0)
    assert_array_equal(kernel.gradients(rows, np.empty((0, 4)), np.empty(0)), np.zeros((7, 4)))


@pytest.mark.parametrize("bad", ["precomputed", "cosine", linear_kernel, None])
def test_a_kernel_without_gradient_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="refit the source on the features"):
        Kernel(bad)


@pytest.mark.parametrize(
    "bad", [{"degree": -1}, {"degree": 2.5}, {"gamma": np.nan}, {"gamma": -1.0}, {"coef0": np.inf}]
)
def test_impossible_constants_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Kernel("poly", **bad)
