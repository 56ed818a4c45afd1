"""scikit-learn's checks of every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from limes.agf import (
    AGFClassifier,
    AGFDensity,
    AGFRegressor,
    KernelDensityClassifier,
    NeighborsDensity,
)


@parametrize_with_checks(
    [
        AGFClassifier(),
        AGFClassifier(total_weight=2, n_neighbors=5),
        AGFDensity(),
        AGFRegressor(),
        AGFRegressor(total_weight=2, n_neighbors=5),
        KernelDensityClassifier(),
        KernelDensityClassifier(bandwidth=0.5),
        NeighborsDensity(),
    ]
)
def test_estimators_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
