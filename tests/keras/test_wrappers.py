"""Models as estimators of scikit-learn."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import treadle as td

keras = td.keras
X = np.random.default_rng(1).normal(size=(60, 4)).astype(np.float32)


def made(X, y, width=8, loss="mse", activation=None):
    keras.utils.set_random_seed(3)
    outputs = y.shape[1] if y.ndim > 1 else 1
    model = keras.Sequential([
        keras.Input((X.shape[1],)), keras.layers.Dense(width, "relu"),
        keras.layers.Dense(outputs, activation),
    ])  # fmt: skip
    model.compile(keras.optimizers.Adam(0.05), loss)
    return model


def test_estimators_in_pipelines_and_searches():
    labels = np.where(X[:, 0] > 0, "right", "left")
    given = {"loss": "categorical_crossentropy", "activation": "softmax"}
    one = keras.wrappers.SKLearnClassifier(
        made, model_kwargs=given, fit_kwargs={"epochs": 20, "verbose": 0}
    )
    pipeline = make_pipeline(StandardScaler(), one).fit(X, labels)
    assert pipeline.score(X, labels) > 0.9 and list(one.classes_) == ["left", "right"]
    assert pipeline.decision_function(X).shape == (60, 2) and one.epoch_ == 20
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
    assert clone(one).fit_kwargs == one.fit_kwargs and not hasattr(clone(one), "model_")
    sums = X.sum(1)
    regressor = keras.wrappers.SKLearnRegressor(made, fit_kwargs={"epochs": 15, "verbose": 0})
    widths = {"model_kwargs": [{"width": 1}, {"width": 16}]}
    search = GridSearchCV(regressor, widths, cv=2).fit(X, sums)
    assert search.best_params_ == {"model_kwargs": {"width": 16}}
    assert search.predict(X).shape == (60,)
    transformer = keras.wrappers.SKLearnTransformer(made).fit(X, sums, verbose=0)
    assert transformer.transform(X[:5]).shape == (5, 1)


def test_models_are_cloned_unless_they_are_trained_on():
    model = made(X, X[:, 0])
    before = model.get_weights()
    keras.wrappers.SKLearnRegressor(model).fit(X, X[:, 0], verbose=0)
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    warm = keras.wrappers.SKLearnRegressor(model, warm_start=True)
    for steps in (2, 4):
        warm.fit(X, X[:, 0], verbose=0)
        assert warm.model_ is model and int(model.optimizer.iterations) == steps
    with pytest.raises(RuntimeError, match="compiled"):
        keras.wrappers.SKLearnRegressor(lambda X, y: keras.Sequential()).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="only one class"):
        keras.wrappers.SKLearnClassifier(made).fit(X, np.zeros(60, int))
    with pytest.raises(RuntimeError, match="enable_metadata_routing"):
        warm.set_fit_request(sample_weight=True)
    with sklearn.config_context(enable_metadata_routing=True):
        request = warm.set_fit_request(sample_weight=True)._metadata_request
        assert request.fit.requests == {"sample_weight": True}
