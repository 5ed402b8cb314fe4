"""``td.keras.wrappers``: models as estimators of scikit-learn."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.keras.models.cloning import clone_model
from treadle.keras.models.model import Model
from treadle.names import missing_in

try:
    import sklearn
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.utils.metadata_routing import MetadataRequest
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:  # the estimators say so when they are made
    sklearn = None
    BaseEstimator = object
    ClassifierMixin = RegressorMixin = TransformerMixin = type("Mixin", (), {})


class _Estimator:
    """A model that scikit-learn trains and asks.

    Once fitted it has `model_`, the model; and `history_`, what its `fit` gave.

    Args:
        model: a compiled `Model`, of which clones are trained; or a function of ``X`` and ``y``,
            by these names, that gives one.
        warm_start: whether further calls of `fit` go on with the model of the last one; a given
            `Model` is trained itself, then.
        model_kwargs: further arguments of a function.
        fit_kwargs: arguments of `Model.fit`; those that `fit` is given count before them.

    Raises:
        ImportError: scikit-learn is not installed.
    """

    _own_tag: tuple[str, str, Any]  # what scikit-learn is told of the kind of estimator

    def __init__(
        self, model: Model | Callable[..., Model], warm_start: bool = False,
        model_kwargs: dict[str, Any] | None = None, fit_kwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if sklearn is None:
            raise ImportError(
                f"{type(self).__name__} requires `scikit-learn` to be installed. Run `pip install "
                "scikit-learn` to install it."
            )
        self.model, self.warm_start = model, warm_start
        self.model_kwargs, self.fit_kwargs = model_kwargs, fit_kwargs

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.non_deterministic = True
        of, name, value = self._own_tag
        setattr(getattr(tags, of), name, value)
        return tags

    def __sklearn_clone__(self) -> Any:
        """An estimator with the same arguments, which is not fitted."""
        model = copy.deepcopy(self.model) if isinstance(self.model, Model) else self.model
        return type(self)(model, self.warm_start, self.model_kwargs, self.fit_kwargs)

    @property
    def epoch_(self) -> int:
        """For how many epochs the last `fit` trained."""
        history = getattr(self, "history_", None)
        return 0 if history is None else len(history.epoch)

    def set_fit_request(self, **kwargs: bool | str | None) -> Any:
        """Say which metadata `fit` takes, of what a meta-estimator is given.

        Args:
            kwargs: by parameter: whether it is taken, or under which other name.

        Raises:
            RuntimeError: scikit-learn's ``enable_metadata_routing`` is off.
        """
        if not sklearn.get_config().get("enable_metadata_routing"):
            raise RuntimeError(
                "This method is only available when metadata routing is enabled. You can enable it "
                "using sklearn.set_config(enable_metadata_routing=True)."
            )
        self._metadata_request = MetadataRequest(owner=self)
        for param, alias in kwargs.items():
            self._metadata_request.fit.add_request(param=param, alias=alias)
        return self

    def _model_for(self, X: Any, y: Any) -> Model:
        if self.warm_start and hasattr(self, "model_"):
            found: Model = self.model_
            return found
        if isinstance(self.model, Model):
            if self.warm_start:
                return self.model
            clone: Model = clone_model(self.model)
            return clone
        return self.model(X=X, y=y, **(self.model_kwargs or {}))

    def fit(self, X: Any, y: Any, **kwargs: Any) -> Any:
        """Train the model.

        Args:
            X: numbers [examples, features].
            y: targets, [examples].
            kwargs: arguments of `Model.fit`.

        Raises:
            RuntimeError: the model is not compiled with an optimizer and a loss.
            ValueError: scikit-learn refuses the data.
        """
        X, y = validate_data(self, X, y)
        y = self._targets(y, fit=True)
        model = self._model_for(X, y)
        if not model.compiled or not model.loss or not model.optimizer:
            raise RuntimeError(
                "Given model needs to be compiled, and have a loss and an optimizer."
            )
        self.history_ = model.fit(X, y, **((self.fit_kwargs or {}) | kwargs))
        self.model_ = model
        return self

    def _outputs(self, X: Any) -> Any:
        """What the fitted model gives."""
        check_is_fitted(self)
        return self.model_.predict(validate_data(self, X, reset=False))

    def predict(self, X: Any) -> Any:
        """The targets that the fitted model gives.

        Args:
            X: numbers [examples, features].

        Raises:
            NotFittedError: `fit` was not called.
        """
        return self._as_targets(self._outputs(X))

    def _targets(self, y: Any, fit: bool) -> Any:
        """Targets as the model is trained with.

        Args:
            fit: remember what they are like, for `_as_targets`.
        """
        _kind_of(y)
        if fit:
            self._target_rank = y.ndim
        return _as_columns(y)

    def _as_targets(self, outputs: Any) -> Any:
        """What a model gives, as targets."""
        squeezed = self._target_rank == 1 and outputs.ndim == 2 and outputs.shape[1] == 1
        return outputs[:, 0] if squeezed else outputs


class SKLearnClassifier(_Estimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    __doc__ = _Estimator.__doc__
    _own_tag = "classifier_tags", "poor_score", True

    def decision_function(self, X: Any) -> Any:
        """What the fitted model gives for each class.

        Args:
            X: numbers [examples, features].

        Raises:
            NotFittedError: `fit` was not called.
        """
        return self._outputs(X)

    def _targets(self, y: Any, fit: bool) -> Any:
        kind = _kind_of(y)
        if kind not in ("binary", "multiclass"):
            raise ValueError(
                f"Only binary and multiclass target types are supported. Target type: {kind}"
            )
        if fit:
            self._target_rank = y.ndim
            self._encoder = OneHotEncoder(sparse_output=False).fit(_as_columns(y))
            self.classes_ = np.unique(y)
            if len(self.classes_) == 1:
                raise ValueError("Classifier can't train when only one class is present.")
        return self._encoder.transform(_as_columns(y))

    def _as_targets(self, outputs: Any) -> Any:
        return super()._as_targets(self._encoder.inverse_transform(outputs))


class SKLearnRegressor(_Estimator, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    __doc__ = _Estimator.__doc__
    _own_tag = "regressor_tags", "poor_score", True


class SKLearnTransformer(_Estimator, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    __doc__ = _Estimator.__doc__
    _own_tag = "transformer_tags", "preserves_dtype", []

    def transform(self, X: Any) -> Any:
        """What the fitted model gives.

        Args:
            X: numbers [examples, features].

        Raises:
            NotFittedError: `fit` was not called.
        """
        return self._outputs(X)


def _as_columns(y: Any) -> Any:
    return y.reshape(-1, 1) if y.ndim == 1 else y


def _kind_of(y: Any) -> str:
    """What scikit-learn takes targets for.

    Raises:
        ValueError: it is nothing that it knows.
    """
    kind = str(type_of_target(y))
    if kind == "unknown":
        raise ValueError(f"Unknown label type for data: {y!r}")
    return kind


__all__ = ["SKLearnClassifier", "SKLearnRegressor", "SKLearnTransformer"]

__getattr__ = missing_in(__name__)
