"""Every public estimator is an ordinary scikit-learn citizen."""

from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from limes import BordersClassifier


@parametrize_with_checks(
    [
        BordersClassifier(random_state=0),
        BordersClassifier(scheme="pairwise", random_state=0),
        BordersClassifier(SVC(), scheme="one-vs-rest", n_borders=20, random_state=0),
        BordersClassifier(LogisticRegression(), n_borders=4, dtype="float64", random_state=0),
    ]
)
def test_estimator_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
