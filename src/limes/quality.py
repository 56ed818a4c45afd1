"""The warning of a model that may predict worse than it seems."""


class QualityWarning(UserWarning):
    """A fitted model agrees with its source less than was asked, or less where it may be used.

    The message is one sentence with the number and what to do. Turn it into an error with
    ``warnings.simplefilter("error", limes.QualityWarning)``.
    """
