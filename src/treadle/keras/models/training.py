"""compile, fit, evaluate and predict."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import callbacks as cb
from treadle.keras import config, losses, metrics, optimizers, serialization
from treadle.keras.models.batches import Arrays, Continued, batches, pack, unpack, with_class_weight

Logs = dict[str, Any]


class _Compiled:
    """What `compile` was given."""

    def __init__(
        self, loss: Any, given: Any, eager: bool, factor: Any, weighted: Any
    ) -> None:
        self.loss = None if loss is None else losses.as_loss(loss)
        self.factor = _loss_factor(factor)
        self.given = [*(given or ()), *(weighted or ())]
        self.unweighted = len(given or ())
        self.run_eagerly = eager
        self.tracker = metrics.Mean(name="loss")
        self.arguments: dict[str, Any] = {}  # as they were given
        self.metrics: list[metrics.Metric] | None = None

    def ready_metrics(self, y: Any, pred: Any) -> list[metrics.Metric]:
        """The metrics; "accuracy" is chosen by the shapes of the first batch."""
        if self.metrics is None:
            self.metrics = [
                _named(m, metrics.for_accuracy(td.convert_to_tensor(y), pred))
                if m in _BY_SHAPE else _named(m, metrics.get(m))
                for m in self.given
            ]  # fmt: skip
        return self.metrics

    def known_metrics(self) -> list[metrics.Metric]:
        """The metrics, where none waits for the first batch."""
        if self.metrics is None and not any(m in _BY_SHAPE for m in self.given):
            self.metrics = [_named(m, metrics.get(m)) for m in self.given]
        return self.metrics or []


_BY_SHAPE = ("accuracy", "acc")  # the labels' and predictions' shapes say which one is meant


def _named(given: Any, metric: metrics.Metric) -> metrics.Metric:
    """A metric that `compile` was given by name has that name, as in ``val_mae``."""
    if isinstance(given, str):
        metric.name = given
    return metric


def _loss_factor(given: Any) -> float | None:
    """The weight of the only loss, from what `compile` was given."""
    values = [given] if isinstance(given, int | float) or given is None else list(given)
    if len(values) != 1 or isinstance(given, Mapping):
        raise ValueError(
            f"compile: loss_weights is one number, since a model has one loss, not {given!r}"
        )
    return None if values[0] is None else float(values[0])


class Trainer:
    """The training methods of Model. Subclasses may override `train_step`, `test_step` and
    `predict_step`, which work on one batch and are traced once per batch shape."""

    _compiled: _Compiled | None
    _functions: dict[str, Any]
    stop_training: bool = False
    _initial_epoch: int | None = None  # where a callback lets `fit` begin
    optimizer: Any = None
    loss: Any = None
    name: Any

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Sequence[Any] | None = None,
        run_eagerly: bool = False,
        jit_compile: Any = "auto",
        loss_weights: Any = None,
        weighted_metrics: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Set how the model is trained.

        Args:
            optimizer: an optimizer or its name.
            loss: a loss, its name or a function of (y_true, y_pred).
            metrics: metrics, names ("accuracy" fits itself to the labels) or functions.
            loss_weights: a factor of the loss, or a list of one.
            weighted_metrics: metrics that take sample weights and class weights into account.
            run_eagerly: run batches op by op, for debugging.
            jit_compile: accepted for Keras programs; functions are always compiled.
        """
        if kwargs:
            raise TypeError(f"compile: unsupported arguments {', '.join(sorted(kwargs))}")
        self._compiled = _Compiled(loss, metrics, run_eagerly, loss_weights, weighted_metrics)
        self._compiled.arguments = {
            "loss": loss, "metrics": metrics, "run_eagerly": run_eagerly,
            "jit_compile": jit_compile, "loss_weights": loss_weights,
            "weighted_metrics": weighted_metrics,
        }  # fmt: skip
        self.optimizer = optimizers.get(optimizer)
        self.loss = self._compiled.loss

    def get_compile_config(self) -> dict[str, Any] | None:
        """What `compile` was given, as plain data; None before."""
        if self._compiled is None:
            return None
        given = {"optimizer": self.optimizer} | self._compiled.arguments
        found: dict[str, Any] = serialization.serialize_keras_object(given)
        return found

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compile as `get_compile_config` says.

        Raises:
            ValueError: an argument of Keras that is not supported.
        """
        if not config.get("optimizer"):
            return
        given = serialization.deserialize_keras_object(config)
        taken = inspect.signature(Trainer.compile).parameters
        self.compile(**serialization.supported(given, taken.__contains__, "compile"))

    def _setup(self) -> _Compiled:
        if self._compiled is None:
            raise RuntimeError(
                f'Model "{self.name}" must be compiled first: call model.compile(...)'
            )
        return self._compiled

    @property
    def metrics(self) -> list[Any]:
        """The loss tracker and the metrics that `compile` was given; none before."""
        setup = self._compiled
        return [] if setup is None else [setup.tracker, *setup.known_metrics()]

    @property
    def metrics_names(self) -> list[str]:
        return [m.name for m in self.metrics]

    # -- one batch -------------------------------------------------------------------------------

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None,
        training: bool = True,
    ) -> td.Tensor:  # fmt: skip
        """The loss of a batch, weight penalties included."""
        setup = self._setup()
        penalties = list(self.losses)  # type: ignore[attr-defined]
        if setup.loss is None and not penalties:
            raise ValueError(f'Model "{self.name}": compile it with a loss, or add_loss in call()')
        total = [] if setup.loss is None else [setup.loss(y, y_pred, sample_weight)]
        if setup.factor is not None:
            total = [value * setup.factor for value in total]
        return td.add_n([*total, *penalties])

    def _loss_of(self, x: Any, y: Any, pred: Any, weight: Any, training: bool) -> Any:
        """`compute_loss`, which may be the user's and take no `training`."""
        given: dict[str, Any] = {"x": x, "y": y, "y_pred": pred, "sample_weight": weight}
        taken = inspect.signature(self.compute_loss).parameters
        if "training" in taken or any(p.kind is p.VAR_KEYWORD for p in taken.values()):
            given["training"] = training
        return self.compute_loss(**given)

    def train_step(self, data: Any) -> Logs:
        """One update of the weights from a batch."""
        x, y, weight = unpack(data)
        self._setup()
        with td.GradientTape() as tape:
            pred = self(x, training=True)  # type: ignore[operator]
            loss = self._loss_of(x, y, pred, weight, True)
        variables = self.trainable_variables  # type: ignore[attr-defined]
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return self._update_metrics(x, y, pred, weight, loss)

    def test_step(self, data: Any) -> Logs:
        """The metrics of a batch."""
        x, y, weight = unpack(data)
        pred = self(x, training=False)  # type: ignore[operator]
        loss = self._loss_of(x, y, pred, weight, False)
        return self._update_metrics(x, y, pred, weight, loss)

    def predict_step(self, data: Any) -> Any:
        """The model's outputs for a batch."""
        return self(unpack(data)[0], training=False)  # type: ignore[operator]

    def _update_metrics(self, x: Any, y: Any, pred: Any, weight: Any, loss: Any) -> Logs:
        setup = self._setup()
        count = td.cast(td.shape(td.nest.flatten(x)[0])[0], td.float32)
        setup.tracker.update_state(loss, sample_weight=count)
        for number, metric in enumerate(setup.ready_metrics(y, pred)):
            if number < setup.unweighted or weight is None:
                metric.update_state(y, pred)
            else:
                metric.update_state(y, pred, weight)
        return {m.name: m.result() for m in self.metrics}

    def _function(self, name: str) -> Callable[[Any], Any]:
        """`train_step` or another step as a traced function."""
        step = getattr(self, name)
        if self._compiled is not None and self._compiled.run_eagerly:
            return step  # type: ignore[no-any-return]
        optimizer, found = self._functions.get(name, (None, None))
        if found is None or optimizer is not self.optimizer:  # a program may assign another one
            own = not getattr(type(self), name).__module__.startswith("treadle.")
            found = td.function(step, reduce_retracing=True, autograph=own)
            self._functions[name] = self.optimizer, found
        return found  # type: ignore[no-any-return]

    # -- whole data ------------------------------------------------------------------------------

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Sequence[cb.Callback] | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int = 1,
        class_weight: Mapping[int, float] | None = None,
    ) -> cb.History:
        """Train for a number of epochs.

        Args:
            x, y, sample_weight: arrays (or nested structures of them) with one example a row; or
                x alone: a Dataset or iterable of (x, y) or (x, y, sample_weight) batches.
            batch_size: 32 when omitted.
            verbose: 0 is silent; otherwise one line an epoch.
            validation_split: the last fraction of the arrays is kept for validation.
            validation_data: (x, y) or an iterable of batches.
            shuffle: a new order of the examples each epoch (arrays only).
            class_weight: what the examples of a class weigh, 1 for classes that are not there.
            steps_per_epoch: batches an epoch; all when omitted. The next epoch goes on where
                a Dataset was left.
            validation_steps: batches of each validation, from the first one on; all when omitted.

        Returns:
            A History: ``history.history["loss"]`` and so on, one value an epoch.
        """
        self._setup()
        data = batches(x, y, sample_weight, batch_size, shuffle)
        if class_weight is not None and sample_weight is not None:
            raise ValueError("fit: give class_weight or sample_weight, not both")
        if validation_split:
            if not isinstance(data, Arrays):
                raise ValueError("validation_split needs arrays")
            data, validation_data = data.split(validation_split)
        if steps_per_epoch is not None and isinstance(data, td.data.Dataset):
            data = Continued(data, steps_per_epoch)
        history = cb.History()
        given = [callbacks] if isinstance(callbacks, cb.Callback) else callbacks or ()
        hooks = [*given, history]  # the history has what the others add
        for hook in hooks:
            hook.set_model(self)
            hook.set_params({"epochs": epochs, "steps": steps_per_epoch, "verbose": verbose})
            hook.on_train_begin({})
        self.stop_training = False
        first, self._initial_epoch = self._initial_epoch or initial_epoch, None
        for epoch in range(first, epochs):
            started = time.perf_counter()
            logs = self._run_epoch(epoch, data, steps_per_epoch, hooks, class_weight)
            if validation_data is not None and (epoch + 1) % validation_freq == 0:
                size = validation_batch_size or batch_size
                values = self._validate(validation_data, size, validation_steps)
                logs |= {f"val_{name}": value for name, value in values.items()}
            if verbose:
                print(_line(f"Epoch {epoch + 1}/{epochs}", time.perf_counter() - started, logs))
            for hook in hooks:
                hook.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        for hook in hooks:
            hook.on_train_end(logs if history.epoch else {})
        return history

    def _run_epoch(
        self, epoch: int, data: Any, steps: int | None, hooks: Sequence[cb.Callback],
        class_weight: Mapping[int, float] | None = None,
    ) -> Logs:  # fmt: skip
        self._reset_metrics()
        for hook in hooks:
            hook.on_epoch_begin(epoch, {})
        step, logs = self._function("train_step"), {}
        for number, batch in enumerate(data):
            if number == steps:
                break
            for hook in hooks:
                hook.on_train_batch_begin(number, {})
            if class_weight is not None:
                batch = with_class_weight(batch, class_weight)
            logs = step(_as_tensors(batch))
            for hook in hooks:
                hook.on_train_batch_end(number, logs)
        if not logs:
            raise ValueError("fit: the data has no batches")
        return _floats(logs)

    def _validate(self, data: Any, batch_size: int | None, steps: int | None) -> Logs:
        x, y, weight = unpack(data) if isinstance(data, tuple) else (data, None, None)
        if isinstance(data, td.data.Dataset):
            batch_size = None
        result: Logs = self.evaluate(
            x, y, batch_size, sample_weight=weight, verbose=0, steps=steps, return_dict=True
        )
        return result

    def _reset_metrics(self) -> None:
        for metric in self.metrics:
            metric.reset_state()

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        return_dict: bool = False,
    ) -> Any:
        """The loss and metrics over the data: a list (the loss alone when there are no metrics),
        or a dict by name."""
        self._setup()
        data = x if isinstance(x, Arrays) else batches(x, y, sample_weight, batch_size, False)
        self._reset_metrics()
        step, logs, started = self._function("test_step"), {}, time.perf_counter()
        for number, batch in enumerate(data):
            if number == steps:
                break
            logs = step(_as_tensors(batch))
        if not logs:
            raise ValueError("evaluate: the data has no batches")
        values = _floats(logs)
        if verbose:
            print(_line("Evaluation", time.perf_counter() - started, values))
        if return_dict:
            return values
        listed = list(values.values())
        return listed[0] if len(listed) == 1 else listed

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = "auto", steps: int | None = None
    ) -> Any:
        """The model's outputs for all examples, as arrays."""
        step, parts = self._function("predict_step"), []
        for number, batch in enumerate(batches(x, None, None, batch_size, False)):
            if number == steps:
                break
            parts.append(td.nest.map_structure(np.asarray, step(_as_tensors(batch))))
        if not parts:
            raise ValueError("predict: the data has no batches")
        return td.nest.map_structure(lambda *p: np.concatenate(p), *parts)

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """One update from one batch; gives the metrics so far."""
        return self._on_batch("train_step", x, y, sample_weight, return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """The metrics after one batch."""
        return self._on_batch("test_step", x, y, sample_weight, return_dict)

    def _on_batch(self, step: str, x: Any, y: Any, weight: Any, return_dict: bool) -> Any:
        self._setup()
        logs = _floats(self._function(step)(_as_tensors(pack(x, y, weight))))
        if return_dict:
            return logs
        values = list(logs.values())
        return values[0] if len(values) == 1 else values

    def predict_on_batch(self, x: Any) -> Any:
        """The model's outputs for one batch, as arrays."""
        outputs = self._function("predict_step")(_as_tensors(pack(x)))
        return td.nest.map_structure(np.asarray, outputs)


def _as_tensors(batch: Any) -> Any:
    """A batch with its arrays as tensors; float64 examples take the dtype of layers."""
    return td.nest.map_structure(_as_tensor, batch)


def _as_tensor(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype == np.float64:
        leaf = np.asarray(leaf, config.floatx())
    return td.convert_to_tensor(leaf)


def _floats(logs: Logs) -> Logs:
    return {name: float(np.asarray(value)) for name, value in logs.items()}


def _line(title: str, seconds: float, logs: Logs) -> str:
    values = " - ".join(f"{name}: {value:.4f}" for name, value in logs.items())
    return f"{title} - {seconds:.1f}s - {values}"
