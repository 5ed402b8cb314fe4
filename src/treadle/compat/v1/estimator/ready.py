"""Ready models: dense layers, weighted sums of columns, and both together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import treadle as td
from treadle.compat.v1 import feature_column, functions, initializers, layers, losses, scopes
from treadle.compat.v1 import train as training
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.estimator.base import Estimator, EstimatorSpec, ModeKeys
from treadle.compat.v1.estimator.heads import Head
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.variables import assign_add, group
from treadle.core.origin import at, user_origin

_SUM = losses.Reduction.SUM
_OPTIMIZERS: dict[str, Callable[[float], Any]] = {
    "Adagrad": training.AdagradOptimizer, "Adam": training.AdamOptimizer,
    "Ftrl": training.FtrlOptimizer, "RMSProp": training.RMSPropOptimizer,
    "SGD": training.GradientDescentOptimizer,
}  # fmt: skip


class _Part:
    """A part of a model: columns, what makes logits of them, and how they are trained.

    Args:
        optimizer: an optimizer, a function that gives one, or the name of one.
        rate: the learning rate of an optimizer that is named.
        make: ``make(features, columns, mode, width, **parameters)`` gives the logits.
    """

    def __init__(
        self, scope: str, make: Callable[..., Any], columns: Any, optimizer: Any, rate: float,
        **parameters: Any,
    ) -> None:  # fmt: skip
        columns = [columns] if hasattr(columns, "name") else list(columns or ())
        self.scope, self.columns, self.rate, self._make = scope, columns, rate, make
        self._optimizer, self._parameters = optimizer, parameters
        if isinstance(optimizer, str) and optimizer not in _OPTIMIZERS:
            raise ValueError(
                f"Unsupported optimizer name: {optimizer}. Supported names are: "
                f"{tuple(sorted(_OPTIMIZERS))}{at(user_origin())}"
            )

    def optimizer(self) -> Any:
        given = self._optimizer
        if isinstance(given, str):
            return _OPTIMIZERS[given](self.rate)
        return given() if callable(given) else given

    def logits(self, features: Any, mode: str, width: int) -> Any:
        """The logits of a batch."""
        with scopes.variable_scope(self.scope):
            return self._make(features, self.columns, mode, width, **self._parameters)

    def variables(self) -> list[Any]:
        graph = get_default_graph()
        return graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, f"{self.scope}/")


def _layers(
    features: Any, columns: Any, mode: str, width: int, *, hidden: Sequence[int], activation: Any,
    dropout: float | None, batch_norm: bool,
) -> Any:  # fmt: skip
    """The logits of dense layers on the columns."""
    start = initializers.glorot_uniform_initializer()
    is_training = mode == ModeKeys.TRAIN
    with scopes.variable_scope("input_from_feature_columns"):
        net = feature_column.input_layer(features, columns)
    for index, units in enumerate(hidden):
        net = layers.dense(
            net, units, activation, kernel_initializer=start, name=f"hiddenlayer_{index}"
        )
        if dropout is not None and is_training:
            net = layers.dropout(net, dropout, training=True)
        if batch_norm:
            net = layers.batch_normalization(
                net, momentum=0.999, training=is_training, name=f"batchnorm_{index}"
            )
    return layers.dense(net, width, None, kernel_initializer=start, name="logits")


def _sums(features: Any, columns: Any, mode: str, width: int, *, combiner: str) -> Any:
    """The weighted sums of the columns."""
    return feature_column.linear_model(features, columns, width, combiner)


def _linear(columns: Any, optimizer: Any, combiner: str) -> _Part:
    count = 1 if hasattr(columns, "name") else len(list(columns or ()))
    rate = min(0.2, 1.0 / max(count, 1) ** 0.5)
    return _Part("linear", _sums, columns, optimizer, rate, combiner=combiner)


def _dense(columns: Any, optimizer: Any, hidden: Any, activation: Any, dropout: Any,
           batch_norm: bool) -> _Part:  # fmt: skip
    return _Part(
        "dnn", _layers, columns, optimizer, 0.05, hidden=list(hidden or ()), batch_norm=batch_norm,
        activation=activation or graph_function(td.nn.relu), dropout=dropout,
    )  # fmt: skip


def _bias(features: Any, columns: Any, mode: str, width: int) -> Any:
    """The same logits for all examples."""
    bias = scopes.get_variable("bias", [width], initializer=initializers.zeros_initializer())
    first = td.nest.flatten(features)[0]
    shape = getattr(first, "dense_shape", None)  # of a sparse tensor
    batch = (graph_function(td.shape)(first) if shape is None else functions.to_int32(shape))[0]
    return graph_function(td.tile)(functions.expand_dims(bias, 0), [batch, 1])


def _baseline(optimizer: Any) -> _Part:
    return _Part("baseline", _bias, ["bias"], optimizer, 0.3)


class _Ready(Estimator):
    """A model of parts, whose logits are added, with a head."""

    def __init__(self, head: Head, parts: Sequence[_Part], model_dir: Any, config: Any,
                 warm_start_from: Any, partitioner: Any) -> None:  # fmt: skip
        scopes.VariableScope._check(partitioner)
        used = [p for p in parts if p.columns]
        if not used:
            raise ValueError(f"feature_columns must not be empty{at(user_origin())}")

        def model(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            if not isinstance(features, dict):
                raise ValueError(
                    f"features should be a dictionary of `Tensor`s. Given type: {type(features)}"
                )
            logits: Any = None
            for part in used:
                found = part.logits(features, mode, head.width)
                logits = found if logits is None else logits + found
            return head.spec(features, labels, mode, logits, lambda loss: _trained(used, loss))

        super().__init__(model, model_dir, config, warm_start_from=warm_start_from)


def _trained(parts: Sequence[_Part], loss: Any) -> Any:
    """The training operation: the variables of each part are trained by its optimizer."""
    graph = get_default_graph()
    steps = [part.optimizer().minimize(loss, var_list=part.variables()) for part in parts]
    updates = graph.get_collection(GraphKeys.UPDATE_OPS)
    with functions.control_dependencies([group(*steps, *updates)]):
        return assign_add(training.get_global_step(), 1).op


class DNNClassifier(_Ready):
    """Dense layers that tell classes."""

    def __init__(self, hidden_units: Sequence[int], feature_columns: Any, model_dir: Any = None,
                 n_classes: int = 2, weight_column: Any = None, label_vocabulary: Any = None,
                 optimizer: Any = "Adagrad", activation_fn: Any = None, dropout: Any = None,
                 input_layer_partitioner: Any = None, config: Any = None,
                 warm_start_from: Any = None, loss_reduction: str = _SUM,
                 batch_norm: bool = False) -> None:  # fmt: skip
        head = Head(n_classes, 1, weight_column, label_vocabulary, loss_reduction)
        part = _dense(feature_columns, optimizer, hidden_units, activation_fn, dropout, batch_norm)
        super().__init__(head, [part], model_dir, config, warm_start_from, input_layer_partitioner)


class DNNRegressor(_Ready):
    """Dense layers that give numbers."""

    def __init__(self, hidden_units: Sequence[int], feature_columns: Any, model_dir: Any = None,
                 label_dimension: int = 1, weight_column: Any = None, optimizer: Any = "Adagrad",
                 activation_fn: Any = None, dropout: Any = None,
                 input_layer_partitioner: Any = None, config: Any = None,
                 warm_start_from: Any = None, loss_reduction: str = _SUM,
                 batch_norm: bool = False) -> None:  # fmt: skip
        head = Head(None, label_dimension, weight_column, None, loss_reduction)
        part = _dense(feature_columns, optimizer, hidden_units, activation_fn, dropout, batch_norm)
        super().__init__(head, [part], model_dir, config, warm_start_from, input_layer_partitioner)


class LinearClassifier(_Ready):
    """A weighted sum of columns that tells classes."""

    def __init__(self, feature_columns: Any, model_dir: Any = None, n_classes: int = 2,
                 weight_column: Any = None, label_vocabulary: Any = None, optimizer: Any = "Ftrl",
                 config: Any = None, partitioner: Any = None, warm_start_from: Any = None,
                 loss_reduction: str = _SUM, sparse_combiner: str = "sum") -> None:  # fmt: skip
        head = Head(n_classes, 1, weight_column, label_vocabulary, loss_reduction)
        part = _linear(feature_columns, optimizer, sparse_combiner)
        super().__init__(head, [part], model_dir, config, warm_start_from, partitioner)


class LinearRegressor(_Ready):
    """A weighted sum of columns that gives numbers."""

    def __init__(self, feature_columns: Any, model_dir: Any = None, label_dimension: int = 1,
                 weight_column: Any = None, optimizer: Any = "Ftrl", config: Any = None,
                 partitioner: Any = None, warm_start_from: Any = None, loss_reduction: str = _SUM,
                 sparse_combiner: str = "sum") -> None:  # fmt: skip
        head = Head(None, label_dimension, weight_column, None, loss_reduction)
        part = _linear(feature_columns, optimizer, sparse_combiner)
        super().__init__(head, [part], model_dir, config, warm_start_from, partitioner)


class BaselineClassifier(_Ready):
    """How frequent each class is, whatever the features: what other models are compared with."""

    def __init__(self, model_dir: Any = None, n_classes: int = 2, weight_column: Any = None,
                 label_vocabulary: Any = None, optimizer: Any = "Ftrl", config: Any = None,
                 loss_reduction: str = _SUM) -> None:  # fmt: skip
        head = Head(n_classes, 1, weight_column, label_vocabulary, loss_reduction)
        super().__init__(head, [_baseline(optimizer)], model_dir, config, None, None)


class BaselineRegressor(_Ready):
    """The mean of the labels, whatever the features: what other models are compared with."""

    def __init__(self, model_dir: Any = None, label_dimension: int = 1, weight_column: Any = None,
                 optimizer: Any = "Ftrl", config: Any = None,
                 loss_reduction: str = _SUM) -> None:  # fmt: skip
        head = Head(None, label_dimension, weight_column, None, loss_reduction)
        super().__init__(head, [_baseline(optimizer)], model_dir, config, None, None)


class _Combined(_Ready):
    """Dense layers and a weighted sum, each with an optimizer of its own."""

    def __init__(self, head: Head, linear: _Part, dense: _Part, model_dir: Any, config: Any,
                 warm_start_from: Any, partitioner: Any) -> None:  # fmt: skip
        if not linear.columns and not dense.columns:
            raise ValueError(
                "Either linear_feature_columns or dnn_feature_columns must be defined."
                f"{at(user_origin())}"
            )
        if dense.columns and not dense._parameters["hidden"]:
            raise ValueError(
                "dnn_hidden_units must be defined when dnn_feature_columns is specified."
                f"{at(user_origin())}"
            )
        super().__init__(head, [dense, linear], model_dir, config, warm_start_from, partitioner)


class DNNLinearCombinedClassifier(_Combined):
    """Dense layers and a weighted sum of columns that tell classes together."""

    def __init__(self, model_dir: Any = None, linear_feature_columns: Any = None,
                 linear_optimizer: Any = "Ftrl", dnn_feature_columns: Any = None,
                 dnn_optimizer: Any = "Adagrad", dnn_hidden_units: Any = None,
                 dnn_activation_fn: Any = None, dnn_dropout: Any = None, n_classes: int = 2,
                 weight_column: Any = None, label_vocabulary: Any = None,
                 input_layer_partitioner: Any = None, config: Any = None,
                 warm_start_from: Any = None, loss_reduction: str = _SUM, batch_norm: bool = False,
                 linear_sparse_combiner: str = "sum") -> None:  # fmt: skip
        super().__init__(
            Head(n_classes, 1, weight_column, label_vocabulary, loss_reduction),
            _linear(linear_feature_columns, linear_optimizer, linear_sparse_combiner),
            _dense(dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn,
                   dnn_dropout, batch_norm),
            model_dir, config, warm_start_from, input_layer_partitioner,
        )  # fmt: skip


class DNNLinearCombinedRegressor(_Combined):
    """Dense layers and a weighted sum of columns that give numbers together."""

    def __init__(self, model_dir: Any = None, linear_feature_columns: Any = None,
                 linear_optimizer: Any = "Ftrl", dnn_feature_columns: Any = None,
                 dnn_optimizer: Any = "Adagrad", dnn_hidden_units: Any = None,
                 dnn_activation_fn: Any = None, dnn_dropout: Any = None, label_dimension: int = 1,
                 weight_column: Any = None, input_layer_partitioner: Any = None,
                 config: Any = None, warm_start_from: Any = None, loss_reduction: str = _SUM,
                 batch_norm: bool = False, linear_sparse_combiner: str = "sum") -> None:
        super().__init__(
            Head(None, label_dimension, weight_column, None, loss_reduction),
            _linear(linear_feature_columns, linear_optimizer, linear_sparse_combiner),
            _dense(dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn,
                   dnn_dropout, batch_norm),
            model_dir, config, warm_start_from, input_layer_partitioner,
        )  # fmt: skip
