"""Keras 2's arguments: by position they stand in other orders than Keras 3's, and some are gone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.older_arguments import OlderArguments
from treadle.compat.replacement.members import have_members
from treadle.core.origin import at, user_origin
from treadle.keras.layers import MultiHeadAttention
from treadle.keras.models import Model

_WEIGHTS = "kernel recurrent bias"
_INITIALIZERS = " ".join(f"{w}_initializer" for w in _WEIGHTS.split())
_REGULARIZERS = " ".join(f"{w}_regularizer" for w in _WEIGHTS.split())
_CONSTRAINTS = " ".join(f"{w}_constraint" for w in _WEIGHTS.split())
_WALK = "return_sequences return_state go_backwards stateful"
_CELL = f"{_REGULARIZERS} {_CONSTRAINTS} dropout recurrent_dropout"
_LAYER = (
    f"{_REGULARIZERS} activity_regularizer {_CONSTRAINTS} dropout recurrent_dropout {_WALK}"
)

# The orders of constructors that are not those of Keras 3, by the class.
_CONSTRUCTORS = {
    "losses.Loss": "reduction name",
    "layers.Embedding": "input_dim output_dim embeddings_initializer embeddings_regularizer "
    "activity_regularizer embeddings_constraint mask_zero input_length sparse",
    "layers.BatchNormalization": "axis momentum epsilon center scale beta_initializer "
    "gamma_initializer moving_mean_initializer moving_variance_initializer beta_regularizer "
    "gamma_regularizer beta_constraint gamma_constraint synchronized",
    "layers.EinsumDense": "equation output_shape activation bias_axes kernel_initializer "
    "bias_initializer kernel_regularizer bias_regularizer activity_regularizer "
    "kernel_constraint bias_constraint",
    "layers.InputLayer": "input_shape batch_size dtype input_tensor sparse name ragged type_spec",
    "layers.LSTM": f"units activation recurrent_activation use_bias {_INITIALIZERS} "
    f"unit_forget_bias {_LAYER} time_major unroll",
    "layers.GRU": f"units activation recurrent_activation use_bias {_INITIALIZERS} "
    f"{_LAYER} unroll time_major reset_after",
    "layers.SimpleRNN": f"units activation use_bias {_INITIALIZERS} {_LAYER} unroll",
    "layers.LSTMCell": f"units activation recurrent_activation use_bias {_INITIALIZERS} "
    f"unit_forget_bias {_CELL}",
    "layers.GRUCell": f"units activation recurrent_activation use_bias {_INITIALIZERS} "
    f"{_CELL} reset_after",
    "layers.RandomContrast": "factor seed",
    "callbacks.LambdaCallback": "on_epoch_begin on_epoch_end on_batch_begin on_batch_end "
    "on_train_begin on_train_end",
}
# What is said to the threads of a generator, which here is asked by the process itself.
_SOURCES = "max_queue_size= workers= use_multiprocessing="
# The orders of methods of models.
_METHODS = {
    "compile": "optimizer loss metrics loss_weights weighted_metrics run_eagerly "
    "steps_per_execution jit_compile",
    "fit": "x y batch_size epochs verbose callbacks validation_split validation_data shuffle "
    "class_weight sample_weight initial_epoch steps_per_epoch validation_steps "
    f"validation_batch_size validation_freq {_SOURCES}",
    "evaluate": f"x y batch_size verbose sample_weight steps callbacks {_SOURCES} return_dict",
    "predict": f"x batch_size verbose steps callbacks {_SOURCES}",
    "train_on_batch": "x y sample_weight class_weight reset_metrics return_dict",
    "test_on_batch": "x y sample_weight reset_metrics return_dict",
}
_FUNCTIONS = {
    "losses.sparse_categorical_crossentropy": "y_true y_pred from_logits axis ignore_class",
    "Input": "shape batch_size name dtype sparse tensor ragged type_spec",
}


def _constructor(kind: Any, order: str) -> Callable[..., None]:
    """The constructor of a class, taking arguments by position in Keras 2's order."""
    older, init = OlderArguments(kind.__name__, order), kind.__init__

    @functools.wraps(init)
    def ordered(self: Any, *args: Any, **kwargs: Any) -> None:
        if older.fit(args, kwargs):
            init(self, **older.by_name(args, kwargs))
        else:
            init(self, *args, **kwargs)  # of this package itself, in Keras 3's order, or refused

    return ordered


def _prepare(name: str) -> Callable[[dict[str, Any]], None]:
    """What Keras 2's arguments of a method of models are changed to."""

    def prepare(given: dict[str, Any]) -> None:
        if not given.pop("reset_metrics", True):
            raise NotImplementedError(
                f"{name}: reset_metrics=False is not provided: update the metrics yourself, or "
                f"use fit{at(user_origin())}"
            )
        for setting in ("run_eagerly", "steps_per_execution", "jit_compile"):
            if given.get(setting, False) is None:  # as if it was left out
                del given[setting]

    return prepare


def _attention(
    self: MultiHeadAttention, query: Any, value: Any, key: Any = None, attention_mask: Any = None,
    return_attention_scores: bool = False, training: Any = None, use_causal_mask: bool = False,
    query_mask: Any = None, value_mask: Any = None, key_mask: Any = None,
) -> Any:  # fmt: skip
    """The call of `MultiHeadAttention`: in Keras 2 the mask stands behind the key."""
    return _call_attention(
        self, query, value, key, query_mask, value_mask, key_mask, attention_mask,
        return_attention_scores, training, use_causal_mask,
    )  # fmt: skip


_call_attention = MultiHeadAttention.call


_FIT_GENERATOR = (
    "generator steps_per_epoch epochs verbose callbacks validation_data validation_steps "
    f"validation_freq class_weight {_SOURCES} shuffle initial_epoch"
)
# Methods that took generators, what does so now, and their arguments.
_OF_GENERATORS = {
    "fit_generator": ("fit", _FIT_GENERATOR),
    "evaluate_generator": ("evaluate", f"generator steps callbacks {_SOURCES} verbose"),
    "predict_generator": ("predict", f"generator steps callbacks {_SOURCES} verbose"),
}


def _of_generator(name: str, now: str, order: str) -> Callable[..., Any]:
    older = OlderArguments(name, order)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = older.by_name(args, kwargs)
        given.setdefault("verbose", 1 if now == "fit" else 0)
        return getattr(self, now)(given.pop("generator"), **given)

    method.__name__, method.__doc__ = name, f"`{now}`, which takes generators, too."
    return method


def _with_kernels_of_keras_2(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor of `BatchNormalization`, which may be told how TensorFlow computes it."""

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        fused = kwargs.pop("fused", None)
        for name in ("virtual_batch_size", "adjustment"):
            if kwargs.pop(name, None) is not None:
                raise NotImplementedError(
                    f"BatchNormalization: {name} is not provided{at(user_origin())}"
                )
        init(self, *args, **kwargs)
        if fused is False:
            self.fused = False

    return __init__


def take_arguments_of_keras_2() -> None:
    """Let classes, methods of models and functions take them."""
    keras: Any = td.keras
    for path, order in _CONSTRUCTORS.items():
        kind = functools.reduce(getattr, path.split("."), keras)
        kind.__init__ = _constructor(kind, order)
    for name, order in _METHODS.items():
        older = OlderArguments(name, order)
        setattr(Model, name, older.taken_by(getattr(Model, name), _prepare(name)))
    for name, (now, order) in _OF_GENERATORS.items():
        setattr(Model, name, _of_generator(name, now, order))
    normalization = keras.layers.BatchNormalization
    normalization.__init__ = _with_kernels_of_keras_2(normalization.__init__)
    have_members({MultiHeadAttention: {"call": _attention}})
    for path, order in _FUNCTIONS.items():
        function = functools.reduce(getattr, path.split("."), keras)
        ordered = OlderArguments(function.__name__, order).taken_by(function)
        for module in (keras, keras.layers, keras.losses, keras.metrics):
            if vars(module).get(function.__name__) is function:
                setattr(module, function.__name__, ordered)
