"""Models as functions, which are trained, evaluated and used from checkpoints."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.compat.graph_messages import message
from treadle.compat.v1 import metrics, summary
from treadle.compat.v1 import train as training
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.data import Dataset, make_initializable_iterator
from treadle.compat.v1.estimator.exporting import (
    ExportOutput,
    PredictOutput,
    export,
)
from treadle.compat.v1.graph import Graph
from treadle.compat.v1.session import Session
from treadle.compat.v1.values import element
from treadle.compat.v1.variables import (
    group,
    local_variables_initializer,
)
from treadle.core.origin import at, user_origin
from treadle.saved_model import DEFAULT_SERVING_SIGNATURE_DEF_KEY

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
        export_outputs: what signatures of exported models give, by their names.
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


class WarmStartSettings(NamedTuple):
    """What variables begin with: see `td.compat.v1.train.warm_start`."""

    ckpt_to_initialize_from: Any
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Any = None
    var_name_to_prev_var_name: Any = None


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
        warm_start_from: a checkpoint that variables which are trained begin with, or a
            `WarmStartSettings`.
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
        self._params = params
        is_whole = warm_start_from is None or isinstance(warm_start_from, WarmStartSettings)
        self._warm = warm_start_from if is_whole else WarmStartSettings(warm_start_from)

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
        if isinstance(found, Dataset | td.data.Dataset):
            iterator = make_initializable_iterator(found)
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
            if self._warm is not None:
                training.warm_start(*self._warm)
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
            creator = training.ChiefSessionCreator(
                scaffold, config=settings.session_config, checkpoint_dir=self._dir
            )
            with training.MonitoredSession(creator, chosen) as session:
                loss = None
                while not session.should_stop():
                    _, loss = session.run([spec.train_op, spec.loss])
            _log.info("Loss for final step: %s.", loss)
        return self

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
        kind = message("Summary")
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

    # -- exporting ---------------------------------------------------------------------------

    def export_saved_model(
        self, export_dir_base: Any, serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None, as_text: bool = False,
        checkpoint_path: Any = None, experimental_mode: str = ModeKeys.PREDICT,
        strip_default_attrs: bool = True,
    ) -> bytes:  # fmt: skip
        """Write a model that predicts, with the variables of the latest checkpoint or another one.

        Args:
            export_dir_base: the folder in which there will be a folder whose name is the time.
            serving_input_receiver_fn: gives a `ServingInputReceiver`, whose tensors are fed.
            assets_extra: further files: where they are copied to in ``assets.extra``, and from.
            as_text: accepted for TensorFlow programs.

        Returns:
            The new folder, which `td.saved_model.load` and `saved_model.loader.load` read.

        Raises:
            ValueError: there is no checkpoint, or none of the model's results can be exported.
        """
        if experimental_mode != ModeKeys.PREDICT:
            raise NotImplementedError(
                f"Models are exported to predict, not to {experimental_mode}: a checkpoint has what"
                f" training goes on with{at(user_origin())}"
            )
        found = checkpoint_path or training.latest_checkpoint(self._dir)
        if not found:
            raise ValueError(f"Couldn't find trained model at {self._dir}.{at(user_origin())}")
        with self._graph().as_default():
            training.get_or_create_global_step()
            receiver = serving_input_receiver_fn()
            spec = self._call(receiver.features, None, ModeKeys.PREDICT)
            with Session(config=self._config.session_config) as session:
                self._open(session, os.fspath(found), None)
                outputs = _outputs(spec)
                return export(session, receiver, outputs, os.fspath(export_dir_base), assets_extra)

    export_savedmodel = export_saved_model

    # -- its checkpoints ---------------------------------------------------------------------

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


def _outputs(spec: EstimatorSpec) -> dict[str, ExportOutput]:
    """What the signatures of a model give.

    Raises:
        ValueError: there is none that is the default one.
    """
    given = spec.export_outputs
    if given is None:
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(spec.predictions)}
    if not isinstance(given, Mapping) or not all(
        isinstance(v, ExportOutput) for v in given.values()
    ):
        raise TypeError(
            f"Values in export_outputs must be ExportOutput objects. Given: {given}"
            f"{at(user_origin())}"
        )
    found = dict(given)
    if DEFAULT_SERVING_SIGNATURE_DEF_KEY not in found:
        if len(found) > 1:
            raise ValueError(
                "Multiple `export_outputs` were provided, but none of them is specified as the "
                f"default: name one {DEFAULT_SERVING_SIGNATURE_DEF_KEY!r}{at(user_origin())}"
            )
        found[DEFAULT_SERVING_SIGNATURE_DEF_KEY] = next(iter(found.values()))
    return found
