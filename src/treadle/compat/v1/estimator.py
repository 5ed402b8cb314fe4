"""``td.compat.v1.estimator``: models as functions, trained, evaluated and used from checkpoints."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.compat.v1 import feature_column, functions, layers, losses, metrics, nn, summary
from treadle.compat.v1 import train as training
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.data import Dataset
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.session import Session
from treadle.compat.v1.values import element
from treadle.compat.v1.variables import (
    group,
    local_variables_initializer,
)

_log = logging.getLogger("treadle")


class ModeKeys:
    """What a model function is called for."""

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


class EstimatorSpec(NamedTuple):
    """What a model function gives.

    Attributes:
        mode: a `ModeKeys`.
        predictions: a tensor, or a dict of them.
        loss, train_op: for training.
        eval_metric_ops: pairs of a value and an update operation, by their names.
    """

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Any = None
    export_outputs: Any = None
    training_chief_hooks: Any = None
    training_hooks: Any = None
    scaffold: Any = None
    evaluation_hooks: Any = None
    prediction_hooks: Any = None


class RunConfig:
    """Settings of an `Estimator`.

    Args:
        model_dir: where checkpoints are.
        tf_random_seed: the seed of graphs.
        save_checkpoints_steps, save_checkpoints_secs: the steps or seconds between checkpoints.
        keep_checkpoint_max: how many are kept.
        log_step_count_steps: the steps between two messages.
    """

    def __init__(self, model_dir: Any = None, tf_random_seed: int | None = None,
                 save_summary_steps: int = 100, save_checkpoints_steps: Any = None,
                 save_checkpoints_secs: Any = None, session_config: Any = None,
                 keep_checkpoint_max: int = 5, keep_checkpoint_every_n_hours: float = 10000,
                 log_step_count_steps: int = 100, train_distribute: Any = None,
                 **more: Any) -> None:  # fmt: skip
        self.model_dir, self.tf_random_seed = model_dir, tf_random_seed
        self.save_summary_steps, self.session_config = save_summary_steps, session_config
        if save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise ValueError(
                "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set."
            )
        self.save_checkpoints_steps = save_checkpoints_steps
        self.save_checkpoints_secs = save_checkpoints_secs if save_checkpoints_steps else (
            save_checkpoints_secs or 600)  # fmt: skip
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self.log_step_count_steps = log_step_count_steps
        self.is_chief, self.num_worker_replicas, self.num_ps_replicas = True, 1, 0
        self.task_type, self.task_id, self.master = "worker", 0, ""

    def replace(self, **changes: Any) -> RunConfig:
        """A copy with other settings."""
        new = copy.copy(self)
        for name, value in changes.items():
            if not hasattr(new, name):
                raise ValueError(f"Replacing {name} is not supported.")
            setattr(new, name, value)
        return new


def _given(function: Callable[..., Any], **offered: Any) -> Any:
    """The result of a function that takes some of the arguments."""
    parameters = inspect.signature(function).parameters
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return function(**{k: v for k, v in offered.items() if takes_all or k in parameters})


def _has_messages() -> bool:
    """Whether the package is there that has the messages of summaries."""
    return importlib.util.find_spec("tensorboard") is not None


class Estimator:
    """A model: ``model_fn(features, labels, mode, params, config)`` gives an `EstimatorSpec`.

    Training goes on from the latest checkpoint of the model's folder.

    Args:
        model_dir: the folder; a temporary one where omitted.
        config: a `RunConfig`.
        params: handed to the model function.
        warm_start_from: a checkpoint whose variables a new model begins with.
    """

    def __init__(self, model_fn: Callable[..., Any], model_dir: Any = None, config: Any = None,
                 params: Any = None, warm_start_from: Any = None) -> None:  # fmt: skip
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        taken = inspect.signature(model_fn).parameters
        if "features" not in taken:
            raise ValueError(f"model_fn ({model_fn}) must include features argument.")
        if params is not None and "params" not in taken:
            raise ValueError(
                f"model_fn ({model_fn}) does not include params argument, but params is passed."
            )
        self._model_fn = model_fn
        self._config = config or RunConfig()
        folder = model_dir or self._config.model_dir or tempfile.mkdtemp()
        self._dir = os.fspath(folder)
        self._params, self._warm = params, warm_start_from

    @property
    def model_dir(self) -> str:
        return self._dir

    @property
    def config(self) -> RunConfig:
        return self._config

    @property
    def params(self) -> Any:
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., Any]:
        return lambda features, labels, mode, config: self._call(features, labels, mode)

    # -- making the graph --------------------------------------------------------------------

    def _inputs(self, input_fn: Callable[..., Any], mode: str) -> tuple[Any, Any, Any]:
        """Features, labels and the operation that opens their pipeline."""
        offered = {"mode": mode, "params": self.params, "config": self._config}
        found = _given(input_fn, **offered)
        opening = None
        if isinstance(found, Dataset):
            iterator = found.make_initializable_iterator()
            opening = iterator.initializer
            found = iterator.get_next()
        if isinstance(found, tuple):
            if len(found) != 2:
                raise ValueError(
                    f"input_fn should return (features, labels) as a len 2 tuple: {found}"
                )
            return (*found, opening)
        return found, None, opening

    def _call(self, features: Any, labels: Any, mode: str) -> Any:
        taken = inspect.signature(self._model_fn).parameters
        offered = {"labels": labels, "mode": mode, "config": self._config}
        if "params" in taken:
            offered["params"] = self.params
        if "labels" not in taken and labels is not None:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        found = self._model_fn(
            features, **{k: v for k, v in offered.items() if k in taken or _takes_more(taken)}
        )
        if not isinstance(found, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return found

    def _graph(self) -> Graph:
        graph = Graph()
        if self._config.tf_random_seed is not None:
            graph.seed = self._config.tf_random_seed
            td.random.set_seed(graph.seed)
        return graph

    # -- using it ----------------------------------------------------------------------------

    def train(self, input_fn: Callable[..., Any], hooks: Any = None, steps: int | None = None,
              max_steps: int | None = None, saving_listeners: Any = None) -> Estimator:  # fmt: skip
        """Train for some steps, or up to a step, or until the inputs end.

        Raises:
            ValueError: both `steps` and `max_steps` are given, or one is not positive.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        for name, value in (("steps", steps), ("max_steps", max_steps)):
            if value is not None and value <= 0:
                raise ValueError(f"Must specify {name} > 0, given: {value}")
        if max_steps is not None and self._step() >= max_steps:
            _log.info("Skipping training since max_steps has already saved.")
            return self
        with self._graph().as_default():
            training.get_or_create_global_step()
            features, labels, opening = self._inputs(input_fn, ModeKeys.TRAIN)
            spec = self._call(features, labels, ModeKeys.TRAIN)
            if spec.loss is None or spec.train_op is None:
                raise ValueError("Missing loss or train_op.")
            chosen = [
                *(hooks or ()), *(spec.training_hooks or ()), *(spec.training_chief_hooks or ())
            ]
            if steps is not None or max_steps is not None:
                chosen.append(training.StopAtStepHook(steps, max_steps))
            chosen.append(training.NanTensorHook(spec.loss))
            settings = self._config
            os.makedirs(self._dir, exist_ok=True)
            saver = training.Saver(
                max_to_keep=settings.keep_checkpoint_max,
                keep_checkpoint_every_n_hours=settings.keep_checkpoint_every_n_hours,
            )
            scaffold = spec.scaffold or training.Scaffold(saver=saver)
            scaffold.local_init_op = scaffold.local_init_op or _both(opening)
            if settings.save_checkpoints_steps or settings.save_checkpoints_secs:
                chosen.append(training.CheckpointSaverHook(
                    self._dir,
                    None if settings.save_checkpoints_steps else settings.save_checkpoints_secs,
                    settings.save_checkpoints_steps, scaffold=scaffold, listeners=saving_listeners,
                ))  # fmt: skip
            if settings.save_summary_steps and _has_messages():
                summary.scalar("loss", spec.loss)
                chosen.append(training.SummarySaverHook(
                    settings.save_summary_steps, output_dir=self._dir, scaffold=scaffold
                ))  # fmt: skip
            if self._warm and not training.latest_checkpoint(self._dir):
                scaffold._init_fn = scaffold._init_fn or self._warm_start()
            creator = training.ChiefSessionCreator(
                scaffold, config=settings.session_config, checkpoint_dir=self._dir
            )
            with training.MonitoredSession(creator, chosen) as session:
                loss = None
                while not session.should_stop():
                    _, loss = session.run([spec.train_op, spec.loss])
            _log.info("Loss for final step: %s.", loss)
        return self

    def _warm_start(self) -> Callable[..., None]:
        found = self._warm
        path = training.latest_checkpoint(found) if os.path.isdir(found) else found
        there = dict(td.train.list_variables(path))

        def start(scaffold: Any, session: Any) -> None:
            names = {
                v.op.name: v for v in get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
                if v.op.name in there and v.op.name != "global_step"
            }  # fmt: skip
            training.Saver(names).restore(session, path)

        return start

    def _step(self) -> int:
        found = training.latest_checkpoint(self._dir) if os.path.isdir(self._dir) else None
        return int(td.train.load_variable(found, "global_step")) if found else 0

    def _path(self, given: Any) -> str:
        path = given or (
            training.latest_checkpoint(self._dir) if os.path.isdir(self._dir) else None
        )
        if not path:
            raise ValueError(f"Could not find trained model in model_dir: {self._dir}.")
        return os.fspath(path)

    def evaluate(self, input_fn: Callable[..., Any], steps: int | None = None, hooks: Any = None,
                 checkpoint_path: Any = None, name: str | None = None) -> dict[str, Any]:
        """The metrics of the latest checkpoint, or of another one.

        Raises:
            ValueError: there is no checkpoint.
        """
        path = self._path(checkpoint_path)
        with self._graph().as_default():
            step = training.get_or_create_global_step()
            features, labels, opening = self._inputs(input_fn, ModeKeys.EVAL)
            spec = self._call(features, labels, ModeKeys.EVAL)
            if spec.loss is None:
                raise ValueError("Missing loss.")
            pairs = dict(spec.eval_metric_ops or {})
            if GraphKeys.LOSSES not in pairs and "loss" not in pairs:
                pairs["loss"] = metrics.mean(spec.loss)
            updates = [u for _, u in pairs.values()]
            with Session(config=self._config.session_config) as session:
                self._open(session, path, opening)
                done = 0
                while steps is None or done < steps:
                    try:
                        session.run(updates)
                    except td.errors.OutOfRangeError:
                        break
                    done += 1
                found = session.run({k: v for k, (v, _) in pairs.items()})
                found["global_step"] = int(session.run(step))
        _log.info("Saving dict for global step %s: %s", found["global_step"], found)
        if _has_messages():
            self._write(os.path.join(self._dir, f"eval_{name}" if name else "eval"), found)
        return dict(found)

    def _write(self, folder: str, metrics: dict[str, Any]) -> None:
        """Write the numbers among metrics as summaries."""
        writer = summary.FileWriterCache.get(folder)
        kind = summary.message("Summary")
        values = [
            kind.Value(tag=k, simple_value=float(v)) for k, v in metrics.items()
            if k != GraphKeys.GLOBAL_STEP and np.ndim(v) == 0 and np.isreal(v)
        ]  # fmt: skip
        writer.add_summary(kind(value=values), metrics[GraphKeys.GLOBAL_STEP])
        writer.flush()

    def _open(self, session: Any, path: str, opening: Any) -> None:
        """Restore variables and open the pipeline."""
        session.run(local_variables_initializer())
        missing = training.Saver(allow_empty=True)
        missing.restore(session, path)
        if opening is not None:
            session.run(opening)

    def predict(self, input_fn: Callable[..., Any], predict_keys: Any = None, hooks: Any = None,
                checkpoint_path: Any = None, yield_single_examples: bool = True) -> Iterator[Any]:
        """The predictions, example by example.

        Raises:
            ValueError: there is no checkpoint.
        """
        path = self._path(checkpoint_path)
        with self._graph().as_default():
            training.get_or_create_global_step()
            features, _, opening = self._inputs(input_fn, ModeKeys.PREDICT)
            spec = self._call(features, None, ModeKeys.PREDICT)
            wanted = spec.predictions
            if predict_keys is not None:
                wanted = {k: v for k, v in wanted.items() if k in _listed(predict_keys)}
                if not wanted:
                    raise ValueError(
                        f"Expected to run at least one output from {list(spec.predictions)}"
                    )
            with Session(config=self._config.session_config) as session:
                self._open(session, path, opening)
                waits = opening is not None
                while True:
                    try:
                        found = session.run(wanted)
                    except td.errors.OutOfRangeError:
                        return
                    if not yield_single_examples:
                        yield found
                    elif isinstance(found, dict):
                        count = len(next(iter(found.values())))
                        for index in range(count):
                            yield {k: v[index] for k, v in found.items()}
                    else:
                        yield from found
                    if not waits and not _has_source(wanted):
                        return

    def latest_checkpoint(self) -> str | None:
        """The latest checkpoint."""
        return training.latest_checkpoint(self._dir)

    def get_variable_names(self) -> list[str]:
        """The names of the variables of the latest checkpoint."""
        return [n for n, _ in td.train.list_variables(self._path(None))]

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable of the latest checkpoint."""
        return td.train.load_variable(self._path(None), name)


def _has_source(wanted: Any) -> bool:
    """Whether tensors come from a pipeline or function that ends."""
    seen, waiting = set(), [t.op for v in td.nest.flatten(wanted) if (t := element(v)) is not None]
    while waiting:
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.attributes.get("of_session"):
            return True
        waiting += [t.op for t in op.inputs]
    return False


def _listed(keys: Any) -> list[Any]:
    return [keys] if isinstance(keys, str) else list(keys)


def _takes_more(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def _both(opening: Any) -> Any:
    return group(local_variables_initializer(), *([] if opening is None else [opening]))


class TrainSpec(NamedTuple):
    """How `train_and_evaluate` trains."""

    input_fn: Callable[..., Any]
    max_steps: int | None = None
    hooks: Sequence[Any] = ()
    saving_listeners: Any = None


class EvalSpec(NamedTuple):
    """How `train_and_evaluate` evaluates: every `throttle_secs` seconds, and at the end."""

    input_fn: Callable[..., Any]
    steps: int | None = 100
    name: str | None = None
    hooks: Sequence[Any] = ()
    exporters: Any = None
    start_delay_secs: float = 120
    throttle_secs: float = 600


class _Evaluating(training.CheckpointSaverListener):
    """Evaluates when a checkpoint was written."""

    def __init__(self, estimator: Estimator, spec: EvalSpec) -> None:
        self._estimator, self._spec, self._at = estimator, spec, time.time()
        self.found: Any = None
        self._first = True

    def after_save(self, session: Any, global_step_value: int) -> None:
        if self._first:
            self._first = False
            return
        if time.time() - self._at >= self._spec.throttle_secs:
            self.evaluate()
            self._at = time.time()

    def evaluate(self) -> None:
        spec = self._spec
        self.found = self._estimator.evaluate(spec.input_fn, spec.steps, spec.hooks, name=spec.name)


def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> Any:
    """Train, and evaluate now and then and at the end.

    Returns:
        The last metrics, and None for exports.
    """
    evaluating = _Evaluating(estimator, eval_spec)
    estimator.train(
        train_spec.input_fn, train_spec.hooks, max_steps=train_spec.max_steps,
        saving_listeners=[*(train_spec.saving_listeners or ()), evaluating],
    )  # fmt: skip
    evaluating.evaluate()
    return evaluating.found, []


# -- ready models --------------------------------------------------------------------------------


def _optimizer(given: Any, default: Any) -> Any:
    if given is None:
        return default()
    if isinstance(given, str):
        kinds: dict[str, Callable[[], Any]] = {
            "Adagrad": lambda: training.AdagradOptimizer(0.05), "Adam": training.AdamOptimizer,
            "Ftrl": lambda: training.FtrlOptimizer(0.2),
            "SGD": lambda: training.GradientDescentOptimizer(0.05),
            "RMSProp": lambda: training.RMSPropOptimizer(0.05),
        }  # fmt: skip
        return kinds[given]()
    return given() if callable(given) else given


def _head(logits: Any, labels: Any, mode: str, classes: int | None, optimizer: Any,
          weights: Any = 1.0) -> EstimatorSpec:  # fmt: skip
    """What a model gives for its logits; `classes` is None for numbers."""
    if classes is None:
        predictions: dict[str, Any] = {"predictions": logits}
    elif classes == 2:
        logistic = graph_function(td.sigmoid)(logits, name="logistic")
        both = graph_function(td.concat)([1.0 - logistic, logistic], 1)
        best = functions.expand_dims(functions.argmax(both, 1), -1)
        predictions = {
            "logits": logits, "logistic": logistic, "probabilities": both, "class_ids": best
        }
    else:
        best = functions.expand_dims(functions.argmax(logits, 1), -1)
        predictions = {"logits": logits, "probabilities": nn.softmax(logits), "class_ids": best}
    if mode == ModeKeys.PREDICT:
        return EstimatorSpec(mode, predictions)
    rank = element(labels).shape.rank  # type: ignore[union-attr]
    labels = labels if rank == 2 else functions.expand_dims(labels, -1)
    if classes is None:
        loss = losses.mean_squared_error(functions.to_float(labels), logits, weights)
        found = {"average_loss": metrics.mean_squared_error(functions.to_float(labels), logits)}
    elif classes == 2:
        numbers = functions.to_float(labels)
        loss = losses.sigmoid_cross_entropy(numbers, logits, weights)
        found = {
            "accuracy": metrics.accuracy(functions.to_int64(labels), predictions["class_ids"]),
            "auc": metrics.auc(labels, predictions["logistic"]),
        }
    else:
        loss = losses.sparse_softmax_cross_entropy(functions.to_int64(labels), logits, weights)
        found = {"accuracy": metrics.accuracy(functions.to_int64(labels), predictions["class_ids"])}
    if mode == ModeKeys.EVAL:
        return EstimatorSpec(mode, predictions, loss, eval_metric_ops=found)
    step = optimizer.minimize(loss, training.get_global_step())
    return EstimatorSpec(mode, predictions, loss, step)


class _Ready(Estimator):
    """What ready models have."""

    _classes: int | None = None
    _default: Callable[[], Any] = staticmethod(lambda: training.AdagradOptimizer(0.05))

    def __init__(self, model_dir: Any, config: Any, columns: Any, optimizer: Any, hidden: Any,
                 activation: Any, dropout: Any, outputs: int) -> None:  # fmt: skip
        chosen = list(columns)

        def model(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            if hidden is None:
                logits = feature_column.linear_model(features, chosen, outputs)
            else:
                net = feature_column.input_layer(features, chosen)
                for index, units in enumerate(hidden):
                    net = layers.dense(net, units, activation, name=f"dnn/hiddenlayer_{index}")
                    if dropout and mode == ModeKeys.TRAIN:
                        net = layers.dropout(net, dropout, training=True)
                logits = layers.dense(net, outputs, None, name="dnn/logits")
            made = _optimizer(optimizer, type(self)._default)
            return _head(logits, labels, mode, self._classes, made)

        super().__init__(model, model_dir, config)


class DNNClassifier(_Ready):
    """Dense layers that tell classes."""

    def __init__(self, hidden_units: Sequence[int], feature_columns: Any, model_dir: Any = None,
                 n_classes: int = 2, weight_column: Any = None, label_vocabulary: Any = None,
                 optimizer: Any = None, activation_fn: Any = None, dropout: Any = None,
                 config: Any = None, **more: Any) -> None:  # fmt: skip
        self._classes = n_classes
        super().__init__(
            model_dir, config, feature_columns, optimizer, list(hidden_units),
            activation_fn or graph_function(td.nn.relu), dropout,
            1 if n_classes == 2 else n_classes,
        )  # fmt: skip


class DNNRegressor(_Ready):
    """Dense layers that give numbers."""

    def __init__(self, hidden_units: Sequence[int], feature_columns: Any, model_dir: Any = None,
                 label_dimension: int = 1, weight_column: Any = None, optimizer: Any = None,
                 activation_fn: Any = None, dropout: Any = None, config: Any = None,
                 **more: Any) -> None:  # fmt: skip
        super().__init__(
            model_dir, config, feature_columns, optimizer, list(hidden_units),
            activation_fn or graph_function(td.nn.relu), dropout, label_dimension,
        )  # fmt: skip


class LinearClassifier(_Ready):
    """A linear model that tells classes."""

    _default = staticmethod(lambda: training.FtrlOptimizer(0.2))

    def __init__(self, feature_columns: Any, model_dir: Any = None, n_classes: int = 2,
                 weight_column: Any = None, label_vocabulary: Any = None, optimizer: Any = None,
                 config: Any = None, **more: Any) -> None:  # fmt: skip
        self._classes = n_classes
        outputs = 1 if n_classes == 2 else n_classes
        super().__init__(model_dir, config, feature_columns, optimizer, None, None, None, outputs)


class LinearRegressor(_Ready):
    """A linear model that gives numbers."""

    _default = staticmethod(lambda: training.FtrlOptimizer(0.2))

    def __init__(self, feature_columns: Any, model_dir: Any = None, label_dimension: int = 1,
                 weight_column: Any = None, optimizer: Any = None, config: Any = None,
                 **more: Any) -> None:  # fmt: skip
        super().__init__(
            model_dir, config, feature_columns, optimizer, None, None, None, label_dimension
        )


# -- inputs --------------------------------------------------------------------------------------


class inputs:
    """Functions that give batches of arrays."""

    @staticmethod
    def numpy_input_fn(x: Any, y: Any = None, batch_size: int = 128, num_epochs: int | None = 1,
                       shuffle: bool | None = None, queue_capacity: int = 1000,
                       num_threads: int = 1) -> Callable[[], Any]:  # fmt: skip
        """A function that gives batches of arrays, as `Estimator.train` takes it."""
        if shuffle is None:
            raise ValueError("shuffle must be provided and explicitly set as boolean")

        def input_fn() -> Any:
            given = (x,) if y is None else (x, y)
            dataset = Dataset.from_tensor_slices(given)
            count = len(next(iter(td.nest.flatten(x))))
            if shuffle:
                dataset = dataset.shuffle(max(count, queue_capacity))
            dataset = dataset.repeat(num_epochs).batch(batch_size)
            found = dataset.make_one_shot_iterator().get_next()
            return found[0] if y is None else found

        return input_fn

    @classmethod
    def pandas_input_fn(cls, x: Any, y: Any = None, batch_size: int = 128,
                        num_epochs: int | None = 1, shuffle: bool | None = None,
                        queue_capacity: int = 1000, num_threads: int = 1,
                        target_column: str = "target") -> Callable[[], Any]:  # fmt: skip
        """A function that gives batches of the columns of a DataFrame.

        Args:
            y: a Series, or a DataFrame of several columns; None for no labels.
        """
        columns = {str(name): np.asarray(x[name]) for name in x.columns}
        labels = y
        if y is not None:
            several = hasattr(y, "columns")
            labels = {n: np.asarray(y[n]) for n in y.columns} if several else np.asarray(y)
        return cls.numpy_input_fn(
            columns, labels, batch_size, num_epochs, shuffle, queue_capacity, num_threads
        )


CheckpointSaverHook, FeedFnHook = training.CheckpointSaverHook, training.FeedFnHook
FinalOpsHook, GlobalStepWaiterHook = training.FinalOpsHook, training.GlobalStepWaiterHook
LoggingTensorHook, NanTensorHook = training.LoggingTensorHook, training.NanTensorHook
SessionRunArgs, SessionRunContext = training.SessionRunArgs, training.SessionRunContext
SessionRunHook, SessionRunValues = training.SessionRunHook, training.SessionRunValues
StepCounterHook, StopAtStepHook = training.StepCounterHook, training.StopAtStepHook
SummarySaverHook = training.SummarySaverHook


