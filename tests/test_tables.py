"""Tables with text, categories and missing values, and rows of different weight."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC, OneClassSVM

import limes
from limes.export.c import to_c
from limes.export.libagf import to_libagf
from limes.export.onnx import to_onnx
from limes.html_report import html_report
from limes.model import load_model, save_model
from tests.conftest import quick_training
from tests.tables import CATEGORIES, EDUCATION, NUMBERS, census_columns, census_table

polars = pytest.importorskip("polars")
N_TRAIN = 600
ALL_CATEGORIES = [*CATEGORIES, "education"]


@pytest.fixture(scope="module")
def census():
    """Training rows, their labels and rows to predict."""
    table, y = census_table(1200)
    return table[:N_TRAIN], y[:N_TRAIN], table[N_TRAIN:]


@pytest.fixture(scope="module")
def source(census):
    return make_pipeline(census_columns(), SVC(C=2)).fit(*census[:2])


@pytest.fixture(scope="module")
def fast(census, source):
    with quick_training():
        return limes.accelerate(source, census[0])


def encoded_numbers():
    return make_pipeline(SimpleImputer(), StandardScaler())


FIRST_STEPS = {
    "one-hot": census_columns(),
    "sparse": census_columns(sparse_threshold=1.0),
    "target": make_column_transformer(
        (encoded_numbers(), NUMBERS), (TargetEncoder(), ALL_CATEGORIES)
    ),
    "codes": make_column_transformer(
        (encoded_numbers(), NUMBERS),
        (
            OrdinalEncoder(encoded_missing_value=-1),
            ["occupation", "marital", "region", "citizen"],
        ),
    ),
    "passthrough": ColumnTransformer(
        [("categories", OneHotEncoder(handle_unknown="ignore"), ALL_CATEGORIES)],
        remainder=SimpleImputer(),
    ),
    "kept-hours": ColumnTransformer(
        [("work", OneHotEncoder(), ["work"]), ("drop", "drop", [*ALL_CATEGORIES[1:], "age"])],
        remainder="passthrough",
    ),
    "selectors": ColumnTransformer(
        [
            ("n", encoded_numbers(), make_column_selector(dtype_include=np.number)),
            (
                "c",
                OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5),
                make_column_selector(dtype_exclude=np.number),
            ),
        ]
    ),
    "nested": make_pipeline(
        ColumnTransformer(
            [
                ("n", make_pipeline(KNNImputer(), KBinsDiscretizer(4)), ["age", "hours"]),
                (
                    "c",
                    make_pipeline(
                        FunctionTransformer(lambda X: X.fillna("unknown").astype(str)),
                        FeatureUnion([("one", OneHotEncoder(handle_unknown="ignore"))]),
                    ),
                    ["work", "occupation"],
                ),
            ]
        ),
        StandardScaler(with_mean=False),
    ),
    "function": make_pipeline(
        FunctionTransformer(lambda X: X.assign(rate=X["hours"] / 40)),
        make_column_transformer(
            (IterativeImputer(), [*NUMBERS, "rate"]), (OneHotEncoder(), ["marital"])
        ),
    ),
    "components": make_pipeline(census_columns(), TruncatedSVD(6, random_state=0)),
}


@pytest.mark.parametrize("name", FIRST_STEPS)
def test_any_steps_before_the_classifier_take_a_table(name, census, quick_fit):
    rows, y, new = census
    source = make_pipeline(FIRST_STEPS[name], SVC()).fit(rows, y)
    fast = limes.accelerate(source, rows)
    assert np.mean(fast.predict(new) == source.predict(new)) > 0.9
    assert_array_equal(fast.predict(new[new.columns[::-1]]), fast.predict(new))
    assert fast.predict_proba(new).shape == (len(new), 2)
    assert_array_equal(fast.classes_[(fast.decision_function(new) > 0) * 1], fast.predict(new))


def test_output_as_a_frame_is_taken(census, quick_fit):
    rows, y, new = census
    columns = census_columns(sparse_threshold=0.0)
    columns.set_params(categories__sparse_output=False)
    source = make_pipeline(columns, StandardScaler(), RandomForestClassifier(5, random_state=0))
    source.set_output(transform="pandas").fit(rows, y)
    fast = limes.accelerate(source, rows, scheme="shared", n_borders=8)
    assert np.mean(fast.predict(new) == source.predict(new)) > 0.8


@pytest.mark.slow
def test_an_svm_of_a_census_is_followed_on_new_rows():
    table, y = census_table(12_000)
    rows, new = table[:6000], table[6000:]
    for steps in ([], [StandardScaler(with_mean=False)]):
        source = make_pipeline(census_columns(), *steps, SVC(C=2)).fit(rows, y[:6000])
        fast = limes.accelerate(source, rows)
        assert np.mean(fast.predict(new) == source.predict(new)) >= 0.98


def test_frames_of_polars_get_the_labels_of_frames_of_pandas(census, source, fast, quick_fit):
    rows, y, new = census
    # None, not NaN, is missing there: without one, all encoders return the same.
    new = new.dropna()
    assert_array_equal(fast.predict(polars.from_pandas(new)), fast.predict(new))
    polars_rows = polars.from_pandas(rows)
    polars_source = make_pipeline(census_columns(), SVC(C=2)).fit(polars_rows, y)
    other = limes.accelerate(polars_source, polars_rows)
    shuffled = polars.from_pandas(new).select(sorted(new.columns))
    assert np.mean(other.predict(shuffled) == polars_source.predict(shuffled)) > 0.9
    assert other.predictor()(new.iloc[0].tolist()) == other.predict(shuffled)[0]


def test_an_array_of_objects_is_a_table_without_names(census, quick_fit):
    rows, y, new = census
    places = {name: place for place, name in enumerate(rows.columns)}
    columns = make_column_transformer(
        (encoded_numbers(), [places[name] for name in NUMBERS]),
        (OneHotEncoder(handle_unknown="ignore"), [places[name] for name in CATEGORIES]),
    )
    source = make_pipeline(columns, SVC(C=2)).fit(rows.to_numpy(dtype=object), y)
    fast = limes.accelerate(source, rows.to_numpy(dtype=object))
    expected = source.predict(new.to_numpy(dtype=object))
    assert np.mean(fast.predict(new.to_numpy(dtype=object)) == expected) > 0.9
    assert fast.predictor()(new.to_numpy(dtype=object)[0]) in ("low", "high")


def test_nullable_and_categorical_types_are_taken(census, quick_fit):
    rows, y, new = census

    def typed(table):
        return table.astype(
            {"age": "Int64", "hours": "Float64", "work": "category", "citizen": "boolean"}
        )

    source = make_pipeline(
        make_column_transformer(
            (encoded_numbers(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), ["work"])
        ),
        SVC(),
    ).fit(typed(rows), y)
    fast = limes.accelerate(source, typed(rows))
    assert np.mean(fast.predict(typed(new)) == source.predict(typed(new))) > 0.9
    row = typed(new).iloc[0]
    assert fast.predictor()(row.tolist()) == fast.predict(typed(new)[:1])[0]


def test_missing_values_alone_keep_the_imputer(census, quick_fit):
    rows, y, new = census
    source = make_pipeline(SimpleImputer(), StandardScaler(), SVC()).fit(rows[NUMBERS], y)
    fast = limes.accelerate(source, rows[NUMBERS])
    assert str(fast.encoder_) == "SimpleImputer"
    assert np.mean(fast.predict(new[NUMBERS]) == source.predict(new[NUMBERS])) > 0.9
    # Where the first step does not select by name, the order counts, as for the source.
    with pytest.raises(ValueError, match="feature names should match"):
        fast.predict(new[NUMBERS[::-1]])


def test_texts_are_taken(quick_fit):
    rng = np.random.default_rng(0)
    words = {"spam": ["win", "cash", "now", "free"], "ham": ["meet", "lunch", "notes", "paper"]}
    y = rng.choice([*words], 200)
    texts = [" ".join([*rng.choice(words[label], 4), "the", str(rng.integers(9))]) for label in y]
    source = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(texts, y)
    fast = limes.accelerate(source, texts)
    assert_array_equal(fast.predict(texts), source.predict(texts))
    assert fast.predictor()("win cash now") == "spam"
    table = pd.DataFrame({"text": texts, "length": [len(text) for text in texts]})
    columns = ColumnTransformer(
        [("words", CountVectorizer(), "text"), ("n", StandardScaler(), ["length"])]
    )
    mixed = make_pipeline(columns, SVC()).fit(table, y)
    assert_array_equal(limes.accelerate(mixed, table).predict(table), mixed.predict(table))


def test_a_search_and_a_frozen_pipeline_are_taken(census, quick_fit):
    rows, y, new = census
    search = GridSearchCV(make_pipeline(census_columns(), SVC()), {"svc__C": [1, 2]}, cv=2)
    search.fit(rows, y)
    for source in (search, FrozenEstimator(search)):
        fast = limes.accelerate(source, rows)
        assert np.mean(fast.predict(new) == source.predict(new)) > 0.9


def test_the_classifier_is_fitted_to_a_table(census, quick_fit):
    rows, y, new = census
    pipeline = make_pipeline(census_columns(), SVC(C=2))
    fast = limes.BordersClassifier(pipeline).fit(rows, y)
    assert_array_equal(fast.feature_names_in_, rows.columns)
    assert fast.n_features_in_ == rows.shape[1]
    assert np.mean(fast.predict(new) == fast.estimator_.predict(new)) > 0.9
    copy = clone(fast)
    assert not hasattr(copy, "model_")
    assert copy.get_params()["estimator__svc__C"] == 2
    assert cross_val_score(copy, rows, y, cv=2).mean() > 0.6


@pytest.mark.parametrize("scheme", ["auto", "shared"])
def test_an_outlier_detector_takes_a_table(census, scheme, quick_fit, tmp_path):
    rows, _, new = census
    source = make_pipeline(census_columns(), OneClassSVM(nu=0.1)).fit(rows)
    fast = limes.accelerate(source, rows[rows.columns[::-1]], scheme=scheme)
    assert np.mean(fast.predict(new) == source.predict(new)) >= (1.0 if scheme == "auto" else 0.9)
    assert_array_equal(fast.predict(new[new.columns[::-1]]), fast.predict(new))
    assert_array_equal(fast.feature_names_in_, rows.columns)
    assert fast.predictor()(new.iloc[0].to_dict()) == fast.predict(new)[0]
    with pytest.raises(ValueError, match="ColumnTransformer"):
        fast.save(tmp_path / "table.limes")
    maps = limes.BordersOutlierDetector.from_model(fast.model_)
    maps.save(tmp_path / "maps.limes")
    encoded = fast.encoder_.transform(new)
    again = load_model(tmp_path / "maps.limes")
    assert_array_equal(again.decision_function(encoded), fast.decision_function(new))


def test_an_outlier_detector_is_fitted_to_a_table(census):
    rows, _, new = census
    fast = limes.BordersOutlierDetector(make_pipeline(census_columns(), OneClassSVM(nu=0.1)))
    assert_array_equal(fast.fit(rows).predict(new), fast.estimator_.predict(new))
    exact = limes.accelerate(fast.estimator_)
    assert_array_equal(exact.predict(new), fast.predict(new))
    numbers = make_pipeline(SimpleImputer(), StandardScaler(), OneClassSVM(nu=0.1))
    fast = limes.BordersOutlierDetector(numbers).fit(rows[NUMBERS])
    assert_array_equal(fast.predict(new[NUMBERS]), fast.estimator_.predict(new[NUMBERS]))
    columns = make_column_transformer((StandardScaler(), NUMBERS))
    source = make_pipeline(columns, OneClassSVM(nu=0.1)).fit(rows[NUMBERS].fillna(30))
    shuffled = limes.accelerate(source, rows[NUMBERS[::-1]].fillna(30))
    expected = source.predict(new[NUMBERS].fillna(30))
    assert_array_equal(shuffled.predict(new[NUMBERS[::-1]].fillna(30)), expected)


def test_a_pickled_model_predicts_the_same(census, fast):
    again = pickle.loads(pickle.dumps(fast))
    assert_array_equal(again.predict_proba(census[2]), fast.predict_proba(census[2]))
    assert again.predictor()(census[2].iloc[0]) == fast.predict(census[2])[0]


def test_one_row_is_a_sequence_a_mapping_or_a_table(census, fast):
    new = census[2][:4]
    predict_one = fast.predictor()
    expected = fast.predict(new).tolist()
    assert [predict_one(row) for row in new.to_dict("records")] == expected
    assert [predict_one(list(row)) for row in new.itertuples(index=False)] == expected
    assert predict_one(new) == expected
    with pytest.raises(ValueError, match="must have 9 values"):
        predict_one([1.0, 2.0])
    with pytest.raises(ValueError, match="must have a value of 'work'"):
        predict_one({"age": 30})


def test_the_steps_of_the_source_raise_their_own_errors(census, source, fast):
    new = census[2]
    with pytest.raises(ValueError, match=r"columns are missing: \{'age'\}"):
        fast.predict(new.drop(columns="age"))
    with pytest.raises(ValueError, match="only supported for dataframes"):
        fast.predict(new.to_numpy(dtype=object))
    unknown = new.assign(education="kindergarten")
    with pytest.raises(ValueError, match="unknown categories"):
        fast.predict(unknown)
    ignored = new.assign(region="nowhere", extra=1)
    assert np.mean(fast.predict(ignored) == source.predict(ignored)) > 0.9
    assert len(fast.predict(new[:0])) == 0


def test_exact_sums_of_a_table_need_no_rows(census, source):
    exact = limes.accelerate(source, scheme="exact")
    assert_array_equal(exact.predict(census[2]), source.predict(census[2]))
    assert exact.predictor()(census[2].iloc[0].tolist()) == source.predict(census[2][:1])[0]
    with pytest.raises(ValueError, match="X is needed"):
        limes.accelerate(source)


def test_a_file_and_exports_refuse_the_steps_and_take_the_maps(census, fast, tmp_path):
    path = tmp_path / "census.limes"
    for refused in (lambda: fast.save(path), *(lambda f=f: f(fast) for f in (to_c, to_onnx))):
        with pytest.raises(ValueError, match=r"ColumnTransformer.*from_model\(fast.model_\)"):
            refused()
    for refused in (lambda: to_libagf(fast), lambda: html_report(fast, census[2])):
        with pytest.raises(ValueError, match="ColumnTransformer"):
            refused()
    assert not path.exists()
    maps = limes.BordersClassifier.from_model(fast.model_)
    encoded = fast.encoder_.transform(census[2])
    names = fast.encoder_.get_feature_names_out()
    assert "categories__work_private" in names
    frame = pd.DataFrame(encoded.toarray() if hasattr(encoded, "toarray") else encoded)
    frame.columns = names
    maps.save(path)
    assert_array_equal(limes.load(path).predict(frame), fast.predict(census[2]))
    save_model(fast.model_, path)
    assert_array_equal(load_model(path).predict(encoded), fast.predict(census[2]))
    assert "limes_model_predict" in to_c(maps)


def test_the_report_compares_the_whole_pipelines(census, fast):
    report = fast.report(census[2])
    assert report.source.name == "SVC"
    assert report.agreement > 0.9


def test_a_classifier_that_gets_text_itself_is_refused(census):
    rows, y, _ = census
    source = make_pipeline(FunctionTransformer(), SVC())
    with pytest.raises(ValueError, match="could not convert string"):
        limes.BordersClassifier(source).fit(rows, y)


def test_columns_by_name_are_taken_in_any_order_where_all_steps_are_folded(census, quick_fit):
    rows, y, new = census[0].fillna({"age": 30}), census[1], census[2].fillna({"age": 30})
    columns = make_column_transformer((StandardScaler(), NUMBERS))
    source = make_pipeline(columns, SVC()).fit(rows[NUMBERS], y)
    fast = limes.accelerate(source, rows[NUMBERS[::-1]])
    assert fast.encoder_ is None
    assert_array_equal(fast.feature_names_in_, NUMBERS)
    assert_array_equal(fast.predict(new[NUMBERS[::-1]]), fast.predict(new[NUMBERS]))
    assert_array_equal(fast.predict(new[[*NUMBERS[::-1], "region"]]), fast.predict(new[NUMBERS]))
    with pytest.raises(ValueError, match="feature names"):
        fast.predict(new[["age", "hours"]])


def test_a_pipeline_of_numbers_is_folded_as_before(quick_fit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (np.square(X).sum(axis=1) > 2) * 1
    source = make_pipeline(StandardScaler(), PCA(2), SVC()).fit(X, y)
    fast = limes.accelerate(source, X)
    assert fast.encoder_ is None
    assert fast.model_.n_features == 3


def test_education_is_ordered_as_its_codes():
    codes = census_columns().fit(census_table(200)[0]).named_transformers_["grades"]
    assert codes.categories_[0].tolist() == EDUCATION
