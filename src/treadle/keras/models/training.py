"""compile, fit, evaluate and predict."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

import treadle as td
from treadle.keras import callbacks as cb
from treadle.keras import config, optimizers, replicas, serialization, stateless
from treadle.keras import metrics as keras_metrics
from treadle.keras.callbacks.base import as_numbers, in_order
from treadle.keras.models.batches import (
    RAN_OUT,
    Arrays,
    Continued,
    are_arguments,
    as_arguments,
    as_tensors,
    batches,
    first_of,
    number_of,
    pack,
    unpack,
    with_class_weight,
)
from treadle.keras.models.compiled import Compiled, CompiledLoss, CompiledMetrics
from treadle.keras.models.outputs import output_names

Logs = dict[str, Any]
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _in_scope(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """A method of a model whose strategy is at work in it."""

    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        strategy: Any = args[0].distribute_strategy  # type: ignore[attr-defined]
        if strategy.extended.is_default:
            return method(*args, **kwargs)
        with strategy.scope():
            return method(*args, **kwargs)

    return call


# What stands behind the loss in Keras 2's order of the arguments of `compile`. Keras 3 has the
# weights of losses before the metrics.
_BEHIND_LOSS = (
    "metrics", "loss_weights", "weighted_metrics", "run_eagerly", "steps_per_execution",
    "jit_compile",
)  # fmt: skip


def _in_either_order(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """`compile`, which takes arguments by position in Keras 2's order, too: metrics in the place of
    the weights of losses are known by what they are."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> _R:
        behind = args[3:]
        if behind and _has_metrics(behind[0]) and len(behind) <= len(_BEHIND_LOSS):
            return method(*args[:3], **dict(zip(_BEHIND_LOSS, behind, strict=False)), **kwargs)
        return method(*args, **kwargs)

    return call


def _has_metrics(given: Any) -> bool:
    """Whether metrics or their names are among the elements of a structure."""
    return any(isinstance(part, str) or callable(part) for part in td.nest.flatten(given))


class Trainer:
    """The training methods of Model. Subclasses may override `train_step`, `test_step` and
    `predict_step`, which work on one batch and are traced once per batch shape."""

    _compiled_setup: Compiled | None
    _step_functions: dict[str, Any]
    _added_metrics: dict[str, Any]
    stop_training: bool = False  # callbacks end `fit` by it, and the others by these two
    stop_evaluating: bool = False
    stop_predicting: bool = False
    steps_per_execution: int = 1
    _wants_eager: bool = False
    history: Any = None
    compiled_loss: Any = None
    compiled_metrics: Any = None
    _initial_epoch: int | None = None  # where a callback lets `fit` begin
    distribute_strategy: Any
    optimizer: Any = None
    loss: Any = None
    name: Any
    compute_dtype: Any

    @_in_scope
    @_in_either_order
    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Sequence[Any] | None = None,
        weighted_metrics: Sequence[Any] | None = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: Any = "auto",
        auto_scale_loss: bool = True,
        **kwargs: Any,
    ) -> None:
        """Set how the model is trained.

        Args:
            optimizer: an optimizer or its name.
            loss: a loss, its name or a function of (y_true, y_pred); of several outputs a list, or
                a dict by the names of the layers that give them.
            metrics: metrics, names ("accuracy" fits itself to the labels) or functions; of several
                outputs a list or dict of lists.
            loss_weights: a factor of the loss; of several outputs a list or dict. (Metrics by
                position in this place are taken for Keras 2's order, which is ``metrics,
                loss_weights``.)
            weighted_metrics: metrics that take sample weights and class weights into account.
            run_eagerly: run batches op by op, for debugging.
            jit_compile: accepted for Keras programs; functions are always compiled.
            steps_per_execution: of how many batches callbacks see the first and the last only.
            auto_scale_loss: scale the loss of models of the policy "mixed_float16".

        Raises:
            TypeError: there are other arguments.
            ValueError: the weights are no numbers, or `steps_per_execution` is no positive int.
        """
        if kwargs:
            raise TypeError(f"compile: unsupported arguments {', '.join(sorted(kwargs))}")
        if _has_metrics(loss_weights):
            raise ValueError(f"compile: loss_weights are numbers. Received: {loss_weights!r}")
        if not isinstance(steps_per_execution, int) or steps_per_execution < 1:
            raise ValueError(
                "compile: steps_per_execution is a positive int. Received: steps_per_execution="
                f"{steps_per_execution!r}"
            )
        self.steps_per_execution = steps_per_execution
        setup = Compiled(loss, metrics, weighted_metrics, loss_weights, run_eagerly)
        setup.arguments = {
            "loss": loss, "metrics": metrics, "run_eagerly": run_eagerly,
            "jit_compile": jit_compile, "loss_weights": loss_weights,
            "steps_per_execution": steps_per_execution,
            "weighted_metrics": weighted_metrics,
        }  # fmt: skip
        self._compiled_setup = setup
        self._step_functions = {}
        self.optimizer = optimizers.get(optimizer)
        scales = isinstance(self.optimizer, optimizers.LossScaleOptimizer)
        if auto_scale_loss and self.compute_dtype == "float16" and not scales:
            self.optimizer = optimizers.LossScaleOptimizer(self.optimizer)
        self.loss = loss
        self.compiled_loss = CompiledLoss.of(setup, self)
        self.compiled_metrics = CompiledMetrics(self)

    def get_compile_config(self) -> dict[str, Any] | None:
        """What `compile` was given, as plain data; None before."""
        if self._compiled_setup is None:
            return None
        given = {"optimizer": self.optimizer} | self._compiled_setup.arguments
        found: dict[str, Any] = serialization.serialize_keras_object(given)
        return found

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compile as `get_compile_config` says: a model whose `compile` is a program's, which may
        take anything, is left as it is.

        Raises:
            ValueError: an argument of Keras that is not supported.
        """
        if not config.get("optimizer"):
            return
        if inspect.unwrap(type(self).compile) is not inspect.unwrap(Trainer.compile):
            warnings.warn(
                "`compile()` was not called as part of model loading because the model's "
                "`compile()` method is custom. All subclassed Models that have `compile()` "
                "overridden should also override `get_compile_config()` and "
                "`compile_from_config(config)`. Alternatively, you can call `compile()` manually "
                "after loading.",
                stacklevel=2,
            )
            return
        given = serialization.deserialize_keras_object(config)
        taken = inspect.signature(Trainer.compile).parameters
        self.compile(**serialization.supported(given, taken.__contains__, "compile"))

    def _compile_setup(self) -> Compiled:
        if self._compiled_setup is None:
            raise ValueError(
                f'Model "{self.name}" must be compiled first: call model.compile(...)'
            )
        return self._compiled_setup

    @property
    def compiled(self) -> bool:
        """Whether `compile` was called."""
        return self._compiled_setup is not None

    @property
    def run_eagerly(self) -> bool:
        """Whether batches are run op by op."""
        setup = self._compiled_setup
        return self._wants_eager if setup is None else setup.run_eagerly

    @run_eagerly.setter
    def run_eagerly(self, value: bool) -> None:
        self._wants_eager = bool(value)  # of a model that only predicts
        if self._compiled_setup is not None:
            self._compiled_setup.run_eagerly = bool(value)

    @property
    def metrics(self) -> list[Any]:
        """The loss tracker and the metrics that `compile` was given, and those that attributes of
        the model and of its layers hold."""
        found = [] if self._compiled_setup is None else self._compiled_setup.metrics
        own = self._holdings.metrics  # type: ignore[attr-defined]
        held = [*own, *self._added_metrics.values()]
        known = {id(m) for m in found}
        return [*found, *(m for m in held if id(m) not in known)]

    @property
    def metrics_names(self) -> list[str]:
        return [m.name for m in self.metrics]

    def add_metric(self, value: Any, name: str | None = None, aggregation: str = "mean") -> None:
        """Follow the mean of a value of `call`, which `metrics` then have, as in Keras 2."""
        name = name or getattr(value, "name", None)
        if name is None:
            raise ValueError("add_metric: a value needs a name")
        if name not in self._added_metrics:
            self._added_metrics[name] = keras_metrics.Mean(name=name)
        self._added_metrics[name].update_state(value)

    def reset_metrics(self) -> None:
        """Let all metrics start anew."""
        for metric in self.metrics:
            metric.reset_state()

    def get_metrics_result(self) -> Logs:
        """The results of all metrics by their names, over what all replicas have seen."""
        found: Logs = replicas.results_of(self.metrics, self._metric_results)
        return found

    def _metric_results(self) -> Logs:
        found: Logs = {}
        for metric in self.metrics:
            result = metric.result()
            found |= result if isinstance(result, dict) else {metric.name: result}
        return found

    # -- one batch -------------------------------------------------------------------------------

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None,
        training: bool = True,
    ) -> td.Tensor:  # fmt: skip
        """The loss of a batch, weight penalties included."""
        setup = self._compile_setup()
        penalties = list(self.losses)  # type: ignore[attr-defined]
        if setup.given_loss is None and not penalties:
            raise ValueError(f'Model "{self.name}": compile it with a loss, or add_loss in call()')
        return setup.total(y, y_pred, sample_weight, penalties, output_names(self, y_pred))

    def stateless_compute_loss(
        self, trainable_variables: Sequence[Any], non_trainable_variables: Sequence[Any],
        metrics_variables: Sequence[Any], x: Any = None, y: Any = None, y_pred: Any = None,
        sample_weight: Any = None, training: bool = True,
    ) -> Any:  # fmt: skip
        """`compute_loss` with values that stand for those of the variables.

        Returns:
            The loss, and a tuple of the values that the three groups of variables would have.

        Raises:
            ValueError: there is not one value for each variable.
        """
        groups = {
            "trainable_variables": (self.trainable_variables, trainable_variables),  # type: ignore[attr-defined]
            "non_trainable_variables": (self.non_trainable_variables, non_trainable_variables),  # type: ignore[attr-defined]
            "metrics_variables": (self.metrics_variables, metrics_variables),  # type: ignore[attr-defined]
        }
        pairs = [
            pair
            for name, (variables, values) in groups.items()
            for pair in stateless.pairs_of(self, name, variables, values, name)
        ]
        with stateless.StatelessScope(pairs) as scope:
            loss = self.compute_loss(x, y, y_pred, sample_weight, training=training)
        found = (scope.values_of(variables) for variables, _ in groups.values())
        return loss, tuple(found)

    def _loss_of(self, x: Any, y: Any, pred: Any, weight: Any, training: bool) -> Any:
        """`compute_loss`, which may be the user's and take no `training`."""
        given: dict[str, Any] = {"x": x, "y": y, "y_pred": pred, "sample_weight": weight}
        taken = inspect.signature(self.compute_loss).parameters
        if "training" in taken or any(p.kind is p.VAR_KEYWORD for p in taken.values()):
            given["training"] = training
        loss = self.compute_loss(**given)
        first = next(leaf for leaf in td.nest.flatten(x) if leaf is not None)
        count = td.cast(td.shape(first)[0], td.float32)
        self._compile_setup().tracker.update_state(replicas.unscaled(loss), sample_weight=count)
        return loss

    def compute_metrics(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None
    ) -> Logs:
        """Add a batch to the metrics that `compile` was given; gives the results of all."""
        self._compile_setup().update(y, y_pred, sample_weight, output_names(self, y_pred))
        return self.get_metrics_result()

    def train_step(self, data: Any) -> Logs:
        """One update of the weights from a batch."""
        x, y, weight = unpack(data)
        self._compile_setup()
        with td.GradientTape() as tape:
            pred = self(x, training=True)  # type: ignore[operator]
            loss = self._loss_of(x, y, pred, weight, True)
            scaled = self.optimizer.scale_loss(loss)
        variables = self.trainable_variables  # type: ignore[attr-defined]
        if td.inside_function():  # once for each trace
            _tell_what_stays(self)
        if variables:
            grads = tape.gradient(scaled, variables)
            self.optimizer.apply_gradients(zip(grads, variables, strict=True))
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return self.compute_metrics(x, y, pred, weight)

    def test_step(self, data: Any) -> Logs:
        """The metrics of a batch."""
        x, y, weight = unpack(data)
        pred = self(x, training=False)  # type: ignore[operator]
        self._loss_of(x, y, pred, weight, False)
        return self.compute_metrics(x, y, pred, weight)

    def predict_step(self, data: Any) -> Any:
        """The model's outputs for a batch."""
        return self(unpack(data)[0], training=False)  # type: ignore[operator]

    def make_train_function(self, force: bool = False) -> Callable[[Any], Any]:
        """`train_step` as a function of a batch that is traced once per shape.

        Args:
            force: make it anew.
        """
        return self._made_function("train", force)

    def make_test_function(self, force: bool = False) -> Callable[[Any], Any]:
        """`test_step` as a function of a batch that is traced once per shape."""
        return self._made_function("test", force)

    def make_predict_function(self, force: bool = False) -> Callable[[Any], Any]:
        """`predict_step` as a function of a batch that is traced once per shape."""
        return self._made_function("predict", force)

    def _made_function(self, kind: str, force: bool) -> Callable[[Any], Any]:
        step = getattr(self, f"{kind}_step")
        own = not getattr(type(self), f"{kind}_step").__module__.startswith("treadle.")
        if self._is_distributed:
            step, own = replicas.step_of(self.distribute_strategy, step, kind), False
        if self.run_eagerly:
            return step  # type: ignore[no-any-return]
        optimizer, found = self._step_functions.get(kind, (None, None))
        # a program may assign another optimizer
        if found is None or optimizer is not self.optimizer or force:
            found = td.function(step, reduce_retracing=True, autograph=own)
            self._step_functions[kind] = self.optimizer, found
        return found  # type: ignore[no-any-return]

    @property
    def _is_distributed(self) -> bool:
        """Whether the model was made in the scope of a strategy."""
        return not self.distribute_strategy.extended.is_default

    def _shared_among_replicas(self, batch: Any) -> Any:
        """A batch as tensors: the parts of the replicas of this process."""
        return as_tensors(self.distribute_strategy.extended.share_batch(batch))

    def _told_verbosity(self, verbose: Any) -> Any:
        """How much is printed: of several workers the first one prints."""
        first = self.distribute_strategy.extended.should_save_summary
        return 0 if verbose == "auto" and not first else verbose

    def _as_arguments(self, step: Callable[[Any], Any], data: Any) -> Iterable[Any]:
        """The arguments of a step, made of batches. Tensors, unless a function that is compiled
        here takes a whole batch; where the batches are such arguments nothing is done to them."""
        compiled = any(step is found for _, found in self._step_functions.values())
        if not compiled or self._is_distributed:
            return map(self._shared_among_replicas, data)
        return data if are_arguments(data) else map(as_arguments, data)

    # -- whole data ------------------------------------------------------------------------------

    @_in_scope
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
    ) -> cb.History:
        """Train for a number of epochs.

        Args:
            x, y, sample_weight: arrays (or nested structures of them) with one example a row; or
                x alone: a Dataset or iterable of (x, y) or (x, y, sample_weight) batches.
            batch_size: 32 when omitted.
            verbose: 0 is silent, 1 a bar, 2 a line an epoch; "auto" is a bar on terminals and
                lines elsewhere.
            validation_split: the last fraction of the arrays is kept for validation.
            validation_data: (x, y) or an iterable of batches.
            shuffle: a new order of the examples each epoch (arrays only).
            class_weight: what the examples of a class weigh, 1 for classes that are not there.
            steps_per_epoch: batches an epoch; all when omitted. The next epoch goes on where
                the last one stopped.
            validation_steps: batches of each validation, from the first one on; all when omitted.

        Returns:
            A History: ``history.history["loss"]`` and so on, one value an epoch.
        """
        self._compile_setup()
        verbose = self._told_verbosity(verbose)
        if class_weight is not None and sample_weight is not None:
            raise ValueError("fit: give class_weight or sample_weight, not both")
        data = batches(x, y, sample_weight, batch_size, shuffle)
        if validation_split and validation_data is None:
            if not isinstance(data, Arrays):
                raise ValueError("validation_split needs arrays")
            data, validation_data = data.split(validation_split)
        epochs = config.least(epochs, config.max_epochs()) or 0
        steps_per_epoch = config.least(steps_per_epoch, config.max_steps_per_epoch())
        steps = number_of(data) if steps_per_epoch is None else steps_per_epoch
        if steps_per_epoch is not None:
            data = Continued(data, steps_per_epoch)
        hooks = cb.CallbackList(
            callbacks, add_history=True, add_progbar=verbose != 0, model=self, verbose=verbose,
            epochs=epochs, steps=steps,
        )  # fmt: skip
        history = hooks.history
        assert history is not None
        self.history, self.stop_training = history, False
        hooks.on_train_begin({})
        logs: Logs = {}
        first, self._initial_epoch = self._initial_epoch or initial_epoch, None
        for epoch in range(first, epochs):
            self.reset_metrics()
            hooks.on_epoch_begin(epoch, {})
            logs = self._run_epoch_of_fit(data, hooks, class_weight, epoch == first)
            if validation_data is not None and _is_due(epoch, validation_freq):
                size = validation_batch_size or batch_size
                values = self._validate_in_fit(validation_data, size, validation_steps, hooks)
                logs |= {f"val_{name}": value for name, value in values.items()}
            hooks.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        if logs:
            self.optimizer.finalize_variable_values(self.trainable_variables)  # type: ignore[attr-defined]
        hooks.on_train_end(logs)
        return history

    def _run_epoch_of_fit(
        self, data: Any, hooks: cb.CallbackList, class_weight: Mapping[int, float] | None,
        is_first: bool,
    ) -> Logs:  # fmt: skip
        step = self.make_train_function()
        if class_weight is not None:
            data = (with_class_weight(batch, class_weight) for batch in data)
        logs = self._run_steps_of_model(step, self._as_arguments(step, data), hooks, "train")
        if logs is None and is_first:
            raise ValueError("fit: the data has no batches")
        if logs is None:
            warnings.warn(RAN_OUT, stacklevel=4)
            logs = self.get_metrics_result()
        return as_numbers(logs)

    def _run_steps_of_model(
        self, step: Callable[[Any], Logs], data: Iterable[Any], hooks: cb.CallbackList, kind: str
    ) -> Logs | None:
        """Run a step for each batch, until there are no more or a callback says so.

        Args:
            kind: "train", "test" or "predict". Callbacks are called before the first and after the
                last of as many batches as `compile` was told to execute at once.

        Returns:
            What the last step gave; None where there was no batch.
        """
        begin, end = (getattr(hooks, f"on_{kind}_batch_{which}") for which in ("begin", "end"))
        begins, ends = (hooks.acts_in(f"on_{kind}_batch_{which}") for which in ("begin", "end"))
        stop, together = _STOPS[kind], self.steps_per_execution
        logs: Logs | None = None
        number = -1
        for number, batch in enumerate(data):
            if begins and not number % together:
                begin(number)
            logs = step(batch)
            if (number + 1) % together:
                continue
            if ends:
                end(number, logs)
            if getattr(self, stop):
                return logs
        if ends and (number + 1) % together:
            end(number // together * together + together - 1, logs)  # as if there were all
        return logs

    def _validate_in_fit(
        self, data: Any, batch_size: int | None, steps: int | None, hooks: cb.CallbackList
    ) -> Logs:
        x, y, weight = unpack(data) if isinstance(data, tuple) else (data, None, None)
        if isinstance(data, td.data.Dataset):
            batch_size = None
        result: Logs = self.evaluate(
            x, y, batch_size, sample_weight=weight, verbose=0, steps=steps, return_dict=True,
            callbacks=hooks,
        )  # fmt: skip
        return result

    @_in_scope
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """The loss and metrics over the data: a list (the loss alone when there are no metrics),
        or a dict by name."""
        self._compile_setup()
        data = x if isinstance(x, Arrays) else batches(x, y, sample_weight, batch_size, False)
        hooks = self._hooks_of_run(callbacks, verbose, number_of(data) if steps is None else steps)
        self.reset_metrics()
        step = self.make_test_function()
        self.stop_evaluating = False
        hooks.on_test_begin({})
        steps = config.least(steps, config.max_steps_per_epoch())
        taken = first_of(self._as_arguments(step, data), steps)
        logs = self._run_steps_of_model(step, taken, hooks, "test")
        if logs is None:
            raise ValueError("evaluate: the data has no batches")
        values = as_numbers(logs)
        hooks.on_test_end(values)
        if return_dict:
            return in_order(values)
        listed = list(values.values())
        return listed[0] if len(listed) == 1 else listed

    @_in_scope
    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = "auto",
        steps: int | None = None, callbacks: Any = None,
    ) -> Any:  # fmt: skip
        """The model's outputs for all examples, as arrays."""
        data = batches(x, None, None, batch_size, False)
        hooks = self._hooks_of_run(callbacks, verbose, number_of(data) if steps is None else steps)
        step = self.make_predict_function()
        parts: list[Any] = []
        together = self.steps_per_execution

        def kept(batch: Any) -> Logs:
            parts.append(td.nest.map_structure(_as_result, step(batch)))
            if together == 1:
                return {"outputs": parts[-1]}
            since = (len(parts) - 1) // together * together  # callbacks see what comes at once
            return {"outputs": td.nest.map_structure(_joined, *parts[since:])}

        self.stop_predicting = False
        steps = config.least(steps, config.max_steps_per_epoch())
        hooks.on_predict_begin({})
        taken = first_of(self._as_arguments(step, data), steps)
        self._run_steps_of_model(kept, taken, hooks, "predict")
        hooks.on_predict_end({})
        if not parts:
            raise ValueError("predict: the data has no batches")
        return td.nest.map_structure(_joined, *parts)

    def _hooks_of_run(self, callbacks: Any, verbose: Any, steps: int | None) -> cb.CallbackList:
        if isinstance(callbacks, cb.CallbackList):
            return callbacks
        verbose = self._told_verbosity(verbose)
        return cb.CallbackList(
            callbacks, add_progbar=verbose != 0, model=self, verbose=verbose, epochs=1, steps=steps
        )

    @_in_scope
    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None,
        class_weight: Mapping[int, float] | None = None, return_dict: bool = False,
    ) -> Any:  # fmt: skip
        """One update from one batch; gives its metrics."""
        batch = pack(x, y, sample_weight)
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError("train_on_batch: give class_weight or sample_weight, not both")
            batch = with_class_weight(batch, class_weight)
        return self._run_on_batch(self.make_train_function(), batch, return_dict)

    @_in_scope
    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """The metrics of one batch."""
        return self._run_on_batch(self.make_test_function(), pack(x, y, sample_weight), return_dict)

    def _run_on_batch(self, step: Callable[[Any], Any], batch: Any, return_dict: bool) -> Any:
        self._compile_setup()
        self.reset_metrics()
        logs = as_numbers(step(self._shared_among_replicas(batch)))
        if return_dict:
            return in_order(logs)
        values = list(logs.values())
        return values[0] if len(values) == 1 else values

    @_in_scope
    def predict_on_batch(self, x: Any) -> Any:
        """The model's outputs for one batch, as arrays."""
        outputs = self.make_predict_function()(as_tensors(pack(x)))
        return td.nest.map_structure(_as_result, outputs)


_STOPS = {"train": "stop_training", "test": "stop_evaluating", "predict": "stop_predicting"}


def _tell_what_stays(model: Any) -> None:
    """Warn of variables in attributes of layers that a program may mean to train."""
    for layer in model._flatten_layers():
        names = [repr(v.name) for v in layer._holdings.plain if v.trainable]
        if names:
            warnings.warn(
                f'Layer "{layer.name}": fit does not change {", ".join(names)}: a td.Variable in '
                "an attribute is no weight of a layer. Make it with add_weight or as a "
                "keras.Variable",
                stacklevel=2,
            )


def _as_result(leaf: Any) -> Any:
    """A result as an array; ragged and sparse ones as they are."""
    dense = isinstance(leaf, td.Tensor | td.Variable) or not td.is_tensor(leaf)
    return np.asarray(leaf) if dense else leaf


def _joined(*parts: Any) -> Any:
    """The results of batches, one after the other."""
    if isinstance(parts[0], np.ndarray):
        alike = len({part.shape[1:] for part in parts}) == 1
        return np.concatenate(parts) if alike else _of_several_shapes(parts)
    if hasattr(parts[0], "dense_shape"):
        return td.sparse.concat(0, parts)
    return td.concat(parts, 0)


def _of_several_shapes(parts: tuple[Any, ...]) -> Any:
    """Arrays whose shapes differ beyond the first axis, as one ragged tensor."""
    sizes = np.array([part.shape[1:] for part in parts])
    last = int(np.flatnonzero((sizes != sizes[0]).any(0))[-1]) + 1  # where the shapes are alike
    inner = parts[0].shape[last + 1 :]
    rows = [row.tolist() for part in parts for row in part]
    return td.ragged.constant(rows, dtype=parts[0].dtype, inner_shape=inner or None)


def _is_due(epoch: int, frequency: Any) -> bool:
    """Whether an epoch ends with a validation: each of a number, or those listed, from 1 on."""
    listed = isinstance(frequency, list | tuple | set | range)
    return epoch + 1 in frequency if listed else (epoch + 1) % frequency == 0
