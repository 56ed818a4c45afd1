"""Steps that stay before the maps: which they are, and which of their outputs belong together."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC

from limes.sources.table_encoder import (
    column_groups,
    has_encoder,
    source_after,
    split_encoder,
    takes_columns_by_name,
    takes_table,
)

N_ROWS = 300
RARE = N_ROWS - 1


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], N_ROWS).astype(object)
    kind[RARE] = "rare"
    return pd.DataFrame(
        {
            "size": rng.normal(size=N_ROWS),
            "kind": kind,
            "code": rng.integers(10, 20, N_ROWS),
            "note": [f"{rng.choice(['red', 'green'])} number {row}" for row in range(N_ROWS)],
        }
    )


def groups_of(columns, table):
    y = np.arange(N_ROWS) % 2
    source = make_pipeline(columns, SVC()).fit(table, y)
    encoder, _, rows = split_encoder(source, table)
    assert rows.shape == (N_ROWS, encoder.n_outputs)
    return column_groups(encoder, table, np.random.default_rng(0)).tolist()


def test_the_one_hot_columns_of_a_category_are_one_group_however_rare(table):
    columns = make_column_transformer((OneHotEncoder(), ["kind"]), ("passthrough", ["size"]))
    *kinds, size = groups_of(columns, table)
    assert len(kinds) == 4
    assert len(set(kinds)) == 1
    assert kinds[0] >= 0
    assert size == -1


@pytest.mark.parametrize("column", ["kind", "code"])
def test_a_code_is_a_category_even_of_a_number(column, table):
    columns = make_column_transformer((OrdinalEncoder(), [column]), ("passthrough", ["size"]))
    code, size = groups_of(columns, table)
    assert code >= 0
    assert size == -1


def test_intervals_of_a_number_are_a_group_and_words_are_none(table):
    columns = ColumnTransformer(
        [("bins", KBinsDiscretizer(3), ["size"]), ("words", CountVectorizer(), "note")]
    )
    groups = groups_of(columns, table)
    assert len(set(groups[:3])) == 1
    assert groups[0] >= 0
    assert set(groups[3:]) == {-1}


def test_scaled_indicators_of_two_columns_are_two_groups(table):
    holes = table.assign(kind=table["kind"].where(table["kind"] != "a"))
    columns = make_column_transformer(
        (make_pipeline(OneHotEncoder(sparse_output=False), StandardScaler()), ["kind", "code"])
    )
    groups = groups_of(columns, holes)
    assert len(set(groups)) == 2
    assert min(groups) >= 0


def test_encoders_stay_before_the_map_and_the_rest_follows(table):
    y = np.arange(N_ROWS) % 2
    columns = make_column_transformer((OneHotEncoder(), ["kind"]), ("passthrough", ["size"]))
    source = make_pipeline(make_pipeline(columns, StandardScaler(with_mean=False)), SVC())
    source.fit(table, y)
    encoder, inner, rows = split_encoder(source, table)
    assert str(encoder) == "ColumnTransformer"
    assert [type(step) for _, step in inner.steps] == [StandardScaler, SVC]
    assert_array_equal(inner.predict(rows), source.predict(table))
    assert_array_equal(source_after(encoder, source).predict(rows), source.predict(table))


def test_numbers_need_no_encoder():
    rows = np.arange(12.0).reshape(6, 2)
    for step in (PolynomialFeatures(), SimpleImputer(), StandardScaler()):
        assert not takes_table(make_pipeline(step, LogisticRegression()), rows)
    holes = np.where(rows == 3, np.nan, rows)
    assert takes_table(make_pipeline(SimpleImputer(), LogisticRegression()), holes)
    assert not takes_table(LogisticRegression(), holes)
    assert has_encoder(make_pipeline(OneHotEncoder(), LogisticRegression()))


def test_columns_are_selected_by_name_where_the_first_step_does(table):
    y, numbers = np.arange(N_ROWS) % 2, table[["size", "code"]]
    by_name = make_column_transformer((StandardScaler(), ["size", "code"]))
    assert takes_columns_by_name(make_pipeline(by_name, SVC()).fit(numbers, y))
    assert not takes_columns_by_name(make_pipeline(StandardScaler(), SVC()).fit(numbers, y))
    by_place = make_column_transformer((StandardScaler(), [0, 1]))
    assert not takes_columns_by_name(make_pipeline(by_place, SVC()).fit(numbers.to_numpy(), y))
