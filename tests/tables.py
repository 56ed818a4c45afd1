"""Tables with text, categories and missing values, and pipelines that take them."""

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

EDUCATION = ["none", "primary", "secondary", "some-college", "bachelor", "master", "doctor"]
WORK = {"private": 0.68, "self-employed": 0.12, "government": 0.14, "without-pay": 0.06}
OCCUPATION = {
    "clerical": 0.16,
    "craft": 0.15,
    "professional": 0.17,
    "sales": 0.14,
    "service": 0.15,
    "transport": 0.08,
    "management": 0.11,
    "farming": 0.03,
    "armed-forces": 0.01,
}
REGION = {f"region-{number:02d}": 1.0 / (number + 1) for number in range(24)}
MARRIED = ["married", "never-married", "divorced", "widowed"]
NUMBERS = ["age", "hours", "capital_gain"]
CATEGORIES = ["work", "occupation", "marital", "region", "citizen"]


def census_table(n_rows, *, random_state=0):
    """Return a table like a census, and whether each person earns much: (data frame, labels).

    Numbers of different scales, one of them mostly 0; an ordered and four unordered categories, one
    of them with 24 values; a truth value. Of ``age``, ``work`` and ``occupation``, 3 to 6 % are
    missing. Income depends on age by a curve, and on hours differently for each kind of work.
    """
    rng = np.random.default_rng(random_state)
    age = 17 + rng.gamma(3.0, 8.0, n_rows)
    school = np.clip(np.round(rng.normal(2.6 + 0.02 * (age - 35), 1.3)), 0, 6).astype(int)
    work = _draw(WORK, n_rows, rng)
    occupation = _draw(OCCUPATION, n_rows, rng)
    is_married = rng.random(n_rows) < 1 / (1 + np.exp(-(age - 30) / 6))
    marital = np.where(is_married, "married", rng.choice(MARRIED[1:], n_rows, p=[0.7, 0.25, 0.05]))
    hours = np.clip(rng.normal(np.where(work == "self-employed", 45, 40), 10), 1, 99).round()
    gain = np.where(rng.random(n_rows) < 0.08, rng.lognormal(8.0, 1.2, n_rows), 0.0).round()
    skill = np.isin(occupation, ["professional", "management"]) * 1.2
    skill -= np.isin(occupation, ["service", "farming"]) * 0.8
    pay = (hours - 40) * np.where(work == "government", 0.01, 0.05)
    score = 0.55 * (school - 3) + skill + pay - ((age - 50) / 16) ** 2 + 1.1 * is_married
    score += 2.5 * (gain > 5000) - 2.0 * (work == "without-pay")
    y = np.where(score + rng.logistic(0, 0.4, n_rows) > 0.4, "high", "low")
    table = pd.DataFrame(
        {
            "age": age.round(),
            "work": work,
            "education": np.array(EDUCATION, dtype=object)[school],
            "occupation": occupation,
            "marital": marital.astype(object),
            "hours": hours,
            "capital_gain": gain,
            "region": _draw(REGION, n_rows, rng),
            "citizen": rng.random(n_rows) < 0.9,
        }
    )
    for name, share in (("age", 0.03), ("work", 0.06), ("occupation", 0.06)):
        table.loc[rng.random(n_rows) < share, name] = None
    return table, y


def _draw(shares, n_rows, rng):
    """Draw categories by their shares."""
    weights = np.array([*shares.values()])
    return rng.choice(np.array([*shares], dtype=object), n_rows, p=weights / weights.sum())


def census_columns(**options):
    """Return the untrained step that turns the table into numbers."""
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
            ("grades", OrdinalEncoder(categories=[EDUCATION]), ["education"]),
            ("categories", OneHotEncoder(handle_unknown="ignore"), CATEGORIES),
        ],
        **options,
    )
