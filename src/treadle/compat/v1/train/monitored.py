"""Sessions that initialize, restore and save by themselves, and what hooks do meanwhile."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.compat.v1 import variables
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.session import Session, get_default_session
from treadle.compat.v1.summary import FileWriter, FileWriterCache, merge_all
from treadle.compat.v1.train.coordinator import LooperThread
from treadle.compat.v1.train.saver import Saver, latest_checkpoint
from treadle.compat.v1.train.schedules import get_global_step
from treadle.compat.v1.train.writing import write_graph
from treadle.train import Coordinator

_log = logging.getLogger("treadle")


class SessionRunArgs(NamedTuple):
    """What a hook wants a run to do besides."""

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """What a hook is told after a run: the values of its fetches."""

    results: Any
    options: Any = None
    run_metadata: Any = None


class SessionRunContext:
    """A run as hooks see it.

    Attributes:
        original_args: what the program runs.
        session: the session.
        stop_requested: whether a hook asked to stop.
    """

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self.original_args, self.session, self.stop_requested = original_args, session, False

    def request_stop(self) -> None:
        """No more runs after this one."""
        self.stop_requested = True


class SessionRunHook:
    """What is called around the runs of a `MonitoredSession`."""

    def begin(self) -> None:
        """Called once, when the graph may still be changed."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when the session was made."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; what it gives is run, too."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run."""

    def end(self, session: Any) -> None:
        """Called at the end, unless an error ended it."""


class SecondOrStepTimer:
    """Which steps it is time for something.

    Args:
        every_secs, every_steps: how many seconds or steps lie between.

    Raises:
        ValueError: not exactly one of them is given.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if (every_steps is None) == (every_secs is None):
            raise ValueError("exactly one of every_steps and every_secs should be given")
        self._steps, self._seconds = every_steps, every_secs
        self.reset()

    def reset(self) -> None:
        """Forget when it was done last."""
        self._last: int | None = None
        self._time: float | None = None

    def last_triggered_step(self) -> int | None:
        """The step at which it was done last."""
        return self._last

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is time at a step."""
        if self._last is None or self._time is None:
            return True
        if self._last == step:
            return False
        if self._steps is not None:
            return step >= self._last + self._steps
        return time.time() >= self._time + (self._seconds or 0)

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Note that it was done; the seconds and steps since the last time, or None and None."""
        now, time_before, before = time.time(), self._time, self._last
        self._time, self._last = now, step
        if before is None or time_before is None:
            return None, None
        return now - time_before, step - before


class LoggingTensorHook(SessionRunHook):
    """Logs tensors every few steps or seconds.

    Args:
        tensors: a list of tensors or names, or a mapping from labels to them.
    """

    def __init__(self, tensors: Any, every_n_iter: int | None = None,
                 every_n_secs: float | None = None, at_end: bool = False,
                 formatter: Callable[[Any], str] | None = None) -> None:  # fmt: skip
        self._tensors = tensors if isinstance(tensors, dict) else {
            t if isinstance(t, str) else t.name: t for t in tensors
        }  # fmt: skip
        self._timer = SecondOrStepTimer(every_n_secs, every_n_iter)
        self._formatter, self._count, self._wanted = formatter, 0, False

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._wanted = self._timer.should_trigger_for_step(self._count)
        return SessionRunArgs(self._tensors) if self._wanted else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._wanted:
            seconds, _ = self._timer.update_last_triggered_step(self._count)
            shown = run_values.results
            text = (
                self._formatter(shown) if self._formatter
                else ", ".join(f"{k} = {v}" for k, v in shown.items())
            )  # fmt: skip
            _log.info("%s%s", text, "" if seconds is None else f" ({seconds:.3f} sec)")
        self._count += 1


class StopAtStepHook(SessionRunHook):
    """Stops after some steps, or at one."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise ValueError("exactly one of num_steps and last_step should be given")
        self._num, self._last = num_steps, last_step

    def begin(self) -> None:
        self._step = get_global_step()
        if self._step is None:
            raise RuntimeError("Global step should be created to use StopAtStepHook.")

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._last is None:
            self._last = int(session.run(self._step)) + (self._num or 0)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        assert self._last is not None
        if int(run_context.session.run(self._step)) >= self._last:
            run_context.request_stop()


class NanLossDuringTrainingError(RuntimeError):
    """The loss is no number any more."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Stops, or raises `NanLossDuringTrainingError`, where a loss is no number."""

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss, self._fails = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if np.isnan(run_values.results):
            if self._fails:
                raise NanLossDuringTrainingError
            run_context.request_stop()


class CheckpointSaverListener:
    """What is called around saving."""

    def begin(self) -> None:
        """Called once, when the graph may still be changed."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> Any:
        """Called after a checkpoint was written; True stops."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Called at the end."""


class CheckpointSaverHook(SessionRunHook):
    """Saves every few steps or seconds, and at the end."""

    def __init__(self, checkpoint_dir: Any, save_secs: float | None = None,
                 save_steps: int | None = None, saver: Any = None,
                 checkpoint_basename: str = "model.ckpt", scaffold: Any = None,
                 listeners: Sequence[Any] | None = None, save_graph_def: bool = True) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver, self._scaffold = saver, scaffold
        self._path = os.path.join(os.fspath(checkpoint_dir), checkpoint_basename)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._listeners, self._saves_graph = list(listeners or ()), save_graph_def

    def begin(self) -> None:
        self._step = get_global_step()
        if self._step is None:
            raise RuntimeError("Global step should be created to use CheckpointSaverHook.")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._saves_graph:
            write_graph(session.graph, os.path.dirname(self._path), "graph.pbtxt")
        self._save(session, int(session.run(self._step)))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_context.session.run(self._step))
        if self._timer.should_trigger_for_step(step) and self._save(run_context.session, step):
            run_context.request_stop()

    def end(self, session: Any) -> None:
        step = int(session.run(self._step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        self._timer.update_last_triggered_step(step)
        for listener in self._listeners:
            listener.before_save(session, step)
        saver = self._saver or (self._scaffold and self._scaffold.saver) or _saver()
        saver.save(session, self._path, global_step=step)
        answers = [listener.after_save(session, step) for listener in self._listeners]
        return any(answers)


class StepCounterHook(SessionRunHook):
    """Logs how many steps there are in a second."""

    def __init__(self, every_n_steps: int | None = 100, every_n_secs: float | None = None,
                 output_dir: Any = None, summary_writer: Any = None) -> None:  # fmt: skip
        self._timer = SecondOrStepTimer(
            every_n_secs, None if every_n_secs else every_n_steps
        )

    def begin(self) -> None:
        self._step = get_global_step()

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_context.session.run(self._step))
        if self._timer.should_trigger_for_step(step):
            seconds, steps = self._timer.update_last_triggered_step(step)
            if seconds and steps is not None:
                _log.info("global_step/sec: %g", steps / seconds)


class SummarySaverHook(SessionRunHook):
    """Writes summaries every few steps or seconds.

    Args:
        save_steps, save_secs: how many steps or seconds lie between.
        output_dir: the folder of the file; or else `summary_writer`.
        scaffold: whose `summary_op` is written; or else `summary_op`, one or several of them.
    """

    def __init__(self, save_steps: int | None = None, save_secs: float | None = None,
                 output_dir: Any = None, summary_writer: Any = None, scaffold: Any = None,
                 summary_op: Any = None) -> None:  # fmt: skip
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._folder, self._writer = output_dir, summary_writer
        self._scaffold, self._given = scaffold, summary_op
        self._is_due, self._next = False, 0

    def begin(self) -> None:
        self._step = get_global_step()
        if self._step is None:
            raise RuntimeError("Global step should be created to use SummarySaverHook.")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        wanted: dict[str, Any] = {"step": self._step}
        found = self._given if self._scaffold is None else self._scaffold.summary_op
        if found is None:
            return None
        self._is_due = self._timer.should_trigger_for_step(self._next)
        if self._is_due:
            wanted["summaries"] = list(found) if isinstance(found, list | tuple) else [found]
        return SessionRunArgs(wanted)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if run_values.results is None:
            return
        step = int(run_context.session.run(self._step))
        if self._is_due:
            self._timer.update_last_triggered_step(step)
            if self._writer is None:
                self._writer = FileWriterCache.get(self._folder)
            for summary in run_values.results["summaries"]:
                self._writer.add_summary(summary, step)
        self._next = step + 1

    def end(self, session: Any) -> None:
        if self._writer is not None:
            self._writer.flush()


class FinalOpsHook(SessionRunHook):
    """Runs something at the end.

    Attributes:
        final_ops_values: what it gave.
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._ops, self._feeds, self.final_ops_values = final_ops, final_ops_feed_dict, None

    def end(self, session: Any) -> None:
        if self._ops is not None:
            self.final_ops_values = session.run(self._ops, self._feeds)


class FeedFnHook(SessionRunHook):
    """Feeds what a function gives."""

    def __init__(self, feed_fn: Callable[[], Any]) -> None:
        self._feeds = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(None, self._feeds())


class GlobalStepWaiterHook(SessionRunHook):
    """Waits until a step: there is one worker, so it does not wait."""

    def __init__(self, wait_until_step: int) -> None:
        self._until = wait_until_step


def _once(key: str, make: Callable[[], Any]) -> Any:
    """What the default graph has in a collection, made where there is nothing: a graph that a
    session has finalized may be run by another one."""
    found = get_default_graph().get_collection_ref(key)
    if not found:
        found.append(make())
    return found[0]


def _saver() -> Saver:
    """The saver of the default graph."""
    return _once(GraphKeys.SAVERS, lambda: Saver(allow_empty=True))  # type: ignore[no-any-return]


class Scaffold:
    """What a `MonitoredSession` initializes and saves with.

    Args:
        init_op, local_init_op, ready_op: operations; those for all variables where omitted.
        init_feed_dict, init_fn: what `init_op` is fed, and a function ``f(scaffold, session)`` that
            is called after it.
        saver: what restores and saves.
    """

    def __init__(self, init_op: Any = None, init_feed_dict: Any = None, init_fn: Any = None,
                 ready_op: Any = None, ready_for_local_init_op: Any = None,
                 local_init_op: Any = None, summary_op: Any = None, saver: Any = None,
                 copy_from_scaffold: Any = None, local_init_feed_dict: Any = None) -> None:
        self.init_op, self.init_feed_dict, self._init_fn = init_op, init_feed_dict, init_fn
        self.ready_op, self.local_init_op, self.summary_op = ready_op, local_init_op, summary_op
        self.ready_for_local_init_op, self.saver = ready_for_local_init_op, saver
        self.local_init_feed_dict = local_init_feed_dict

    @property
    def init_fn(self) -> Any:
        given = self._init_fn
        return None if given is None else lambda sess: given(self, sess)

    def finalize(self) -> Scaffold:
        """Make what was not given, and finalize the graph."""
        if self.init_op is None:
            self.init_op = _once(GraphKeys.INIT_OP, variables.global_variables_initializer)
        if self.local_init_op is None:
            made = variables.local_variables_initializer
            self.local_init_op = _once(GraphKeys.LOCAL_INIT_OP, made)
        if self.saver is None:
            self.saver = _saver()
        if self.summary_op is None:
            self.summary_op = _once(GraphKeys.SUMMARY_OP, merge_all)
        get_default_graph().finalize()
        return self


class SessionCreator:
    """What makes a session."""

    def create_session(self) -> Session:
        raise NotImplementedError


class ChiefSessionCreator(SessionCreator):
    """Makes a session whose variables have the values of the latest checkpoint, or their initial
    values."""

    def __init__(self, scaffold: Any = None, master: str = "", config: Any = None,
                 checkpoint_dir: Any = None, checkpoint_filename_with_path: Any = None) -> None:
        self._scaffold, self._config = scaffold or Scaffold(), config
        self._folder, self._file = checkpoint_dir, checkpoint_filename_with_path

    def create_session(self) -> Session:
        scaffold = self._scaffold.finalize()
        session = Session(config=self._config)
        found = self._file or (self._folder and latest_checkpoint(self._folder))
        if found:
            scaffold.saver.restore(session, found)
        else:
            session.run(scaffold.init_op, scaffold.init_feed_dict)
            if scaffold.init_fn is not None:
                scaffold.init_fn(session)
        session.run(scaffold.local_init_op, scaffold.local_init_feed_dict)
        return session


WorkerSessionCreator = ChiefSessionCreator


class MonitoredSession:
    """A session that is initialized or restored, and calls hooks around its runs.

    Args:
        session_creator: what makes the session.
        hooks: `SessionRunHook`s.
    """

    def __init__(self, session_creator: Any = None, hooks: Any = None,
                 stop_grace_period_secs: float = 120) -> None:  # fmt: skip
        self._hooks = list(hooks or ())
        for hook in self._hooks:
            hook.begin()
        creator = session_creator or ChiefSessionCreator()
        self._coord = Coordinator()
        self._session: Any = creator.create_session()
        self._default = self._session.as_default()
        with self._default:
            self._threads = start_queue_runners(self._session, self._coord)
        for hook in self._hooks:
            hook.after_create_session(self._session, self._coord)

    @property
    def graph(self) -> Any:
        return self._session.graph

    def should_stop(self) -> bool:
        """Whether a hook asked to stop, or the session is closed."""
        return self._session is None or self._coord.should_stop()

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None,
            run_metadata: Any = None) -> Any:  # fmt: skip
        """See `Session.run`.

        Raises:
            RuntimeError: the session is closed.
        """
        if self._session is None:
            raise RuntimeError("Run called even after should_stop requested.")
        about = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._session)
        wanted, feeds = {}, dict(feed_dict or {})
        for hook in self._hooks:
            more = hook.before_run(about)
            if more is not None:
                if more.fetches is not None:
                    wanted[hook] = more.fetches
                feeds.update(more.feed_dict or {})
        if not self._hooks:
            return self._session.run(fetches, feed_dict)
        found = self._session.run({"caller": fetches, "hooks": list(wanted.values())}, feeds)
        given = dict(zip(wanted, found["hooks"], strict=True))
        for hook in self._hooks:
            hook.after_run(about, SessionRunValues(given.get(hook)))
        if about.stop_requested:
            self._coord.request_stop()
        return found["caller"]

    def run_step_fn(self, step_fn: Any) -> Any:
        """Call ``step_fn(step_context)``, which runs by its `session` or `run_with_hooks`."""
        return step_fn(_StepContext(self))

    def close(self) -> None:
        """The end: hooks are told, and the session is closed."""
        self._close(None)

    def _close(self, error: Any) -> None:
        if self._session is None:
            return
        session, self._session = self._session, None
        try:
            if error is None or issubclass(error, td.errors.OutOfRangeError | StopIteration):
                for hook in self._hooks:
                    hook.end(session)
        finally:
            self._coord.request_stop()
            session.close()
            session.graph._unsafe_unfinalize()
            if self._threads:
                self._coord.join(self._threads, ignore_live_threads=True)

    def __enter__(self) -> MonitoredSession:
        self._default.__enter__()
        return self

    def __exit__(self, kind: Any, *error: Any) -> bool:
        self._default.__exit__()
        self._close(kind)
        return kind is not None and issubclass(kind, td.errors.OutOfRangeError)


class _StepContext:
    def __init__(self, monitored: MonitoredSession) -> None:
        self.session = monitored._session
        self.run_with_hooks = monitored.run
        self.request_stop = monitored._coord.request_stop


class SingularMonitoredSession(MonitoredSession):
    """A `MonitoredSession` that makes its session itself: see `ChiefSessionCreator`."""

    def __init__(self, hooks: Any = None, scaffold: Any = None, master: str = "",
                 config: Any = None, checkpoint_dir: Any = None,
                 stop_grace_period_secs: float = 120,
                 checkpoint_filename_with_path: Any = None) -> None:  # fmt: skip
        creator = ChiefSessionCreator(
            scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path
        )
        super().__init__(creator, hooks, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The session, which calls no hooks; None when it is closed."""
        return self._session


def MonitoredTrainingSession(
    master: str = "", is_chief: bool = True, checkpoint_dir: Any = None, scaffold: Any = None,
    hooks: Any = None, chief_only_hooks: Any = None, save_checkpoint_secs: Any = None,
    save_summaries_steps: Any = None, save_summaries_secs: Any = None, config: Any = None,
    stop_grace_period_secs: float = 120, log_step_count_steps: Any = 100,
    max_wait_secs: float = 7200, save_checkpoint_steps: Any = None, summary_dir: Any = None,
    save_graph_def: bool = True,
) -> MonitoredSession:  # fmt: skip
    """A `MonitoredSession` that saves into a folder, and goes on from there."""
    if save_checkpoint_secs is None and save_checkpoint_steps is None:
        save_checkpoint_secs = 600
    scaffold = scaffold or Scaffold()
    chosen = [*(hooks or ()), *(chief_only_hooks or ())]
    if checkpoint_dir and (save_checkpoint_secs or save_checkpoint_steps):
        os.makedirs(checkpoint_dir, exist_ok=True)
        steps = save_checkpoint_steps or None
        chosen.append(
            CheckpointSaverHook(
                checkpoint_dir, None if steps else save_checkpoint_secs, steps, scaffold=scaffold
            )
        )
    folder = summary_dir or checkpoint_dir
    if save_summaries_steps is None and save_summaries_secs is None:
        save_summaries_steps = 100
    if folder and (save_summaries_steps or save_summaries_secs):
        steps = save_summaries_steps or None
        chosen.append(
            SummarySaverHook(
                steps, None if steps else save_summaries_secs, folder, scaffold=scaffold
            )
        )
    if log_step_count_steps and checkpoint_dir:
        chosen.append(StepCounterHook(log_step_count_steps))
    creator = ChiefSessionCreator(scaffold, config=config, checkpoint_dir=checkpoint_dir)
    return MonitoredSession(creator, chosen)


class Supervisor:
    """Makes a session that is initialized or restored, and saves now and then.

    Args:
        logdir: where checkpoints are.
        save_model_secs: the seconds between two of them; 0: none.
        init_op, saver, global_step, local_init_op, init_fn: see `Scaffold`.
    """

    USE_DEFAULT = object()

    def __init__(self, graph: Any = None, ready_op: Any = USE_DEFAULT,
                 ready_for_local_init_op: Any = USE_DEFAULT, is_chief: bool = True,
                 init_op: Any = USE_DEFAULT, init_feed_dict: Any = None,
                 local_init_op: Any = USE_DEFAULT, logdir: Any = None,
                 summary_op: Any = USE_DEFAULT,
                 saver: Any = USE_DEFAULT, global_step: Any = USE_DEFAULT,
                 save_summaries_secs: float = 120, save_model_secs: float = 600,
                 recovery_wait_secs: float = 30, stop_grace_secs: float = 120,
                 checkpoint_basename: str = "model.ckpt", session_manager: Any = None,
                 summary_writer: Any = USE_DEFAULT, init_fn: Any = None,
                 local_init_run_options: Any = None) -> None:  # fmt: skip
        unset = Supervisor.USE_DEFAULT
        self._graph = graph or get_default_graph()
        with self._graph.as_default():
            self.init_op = variables.global_variables_initializer() if init_op is unset else init_op
            self._local = (
                variables.local_variables_initializer() if local_init_op is unset else local_init_op
            )
            self.saver = _saver() if saver is unset else saver
            self.global_step = get_global_step() if global_step is unset else global_step
            self.summary_op = merge_all() if summary_op is unset else summary_op
        self._feeds, self._function, self._folder = init_feed_dict, init_fn, logdir
        self._summary_seconds, self._written = save_summaries_secs, time.time()
        self._writer = None if summary_writer is unset else summary_writer
        self._writes = summary_writer is not None and logdir is not None
        self._seconds, self._base = save_model_secs, checkpoint_basename
        self.coord = Coordinator()
        self._session: Any = None
        self._saved = time.time()

    @property
    def save_path(self) -> str | None:
        return os.path.join(self._folder, self._base) if self._folder else None

    def prepare_or_wait_for_session(self, master: str = "", config: Any = None, **more: Any) -> Any:
        """The session."""
        self.coord.clear_stop()
        self._session = session = Session(graph=self._graph, config=config)
        found = self._folder and latest_checkpoint(self._folder)
        if found:
            self.saver.restore(session, found)
        else:
            if self.init_op is not None:
                session.run(self.init_op, self._feeds)
            if self._function is not None:
                self._function(session)
        if self._local is not None:
            session.run(self._local)
        return session

    def managed_session(self, master: str = "", config: Any = None, **more: Any) -> _Managed:
        """A block with the session, which saves at its end."""
        return _Managed(self, config)

    @property
    def summary_writer(self) -> Any:
        """The writer of summaries, a `FileWriter` in `logdir` where none was given; or None."""
        if self._writer is None and self._writes:
            self._writer = FileWriter(self._folder)
        return self._writer

    def summary_computed(self, sess: Any, summary: Any, global_step: Any = None) -> None:
        """Write a summary that a run gave.

        Raises:
            RuntimeError: there is no writer of summaries.
        """
        if self.summary_writer is None:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self.global_step is not None:
            global_step = int(sess.run(self.global_step))
        self.summary_writer.add_summary(summary, global_step)

    def should_stop(self) -> bool:
        """Whether to stop. Programs ask it at each step: so it is also when it is saved, and when
        summaries are written."""
        now = time.time()
        is_due = self._summary_seconds and now - self._written >= self._summary_seconds
        if is_due and self.summary_op is not None and self.summary_writer is not None:
            self._written = now
            self.summary_computed(self._session, self._session.run(self.summary_op))
        if self._seconds and self.save_path and now - self._saved >= self._seconds:
            self._saved = now
            self._save()
        return self.coord.should_stop()

    def _save(self) -> None:
        if self.save_path and self.saver is not None and self._session is not None:
            os.makedirs(self._folder, exist_ok=True)
            self.saver.save(self._session, self.save_path, global_step=self.global_step)

    def request_stop(self, ex: Any = None) -> None:
        self.coord.request_stop(ex)

    def stop(self, threads: Any = None, close_summary_writer: bool = True,
             ignore_live_threads: bool = False) -> None:  # fmt: skip
        """The end."""
        self.coord.request_stop()
        if close_summary_writer and self._writer is not None:
            self._writer.close()

    def stop_on_exception(self) -> Any:
        return self.coord.stop_on_exception()

    def loop(
        self, timer_interval_secs: Any, target: Any, args: Any = None, kwargs: Any = None
    ) -> Any:
        """A thread that calls a function again and again."""
        return LooperThread.loop(self.coord, timer_interval_secs, target, args, kwargs)

    def start_queue_runners(self, sess: Any, queue_runners: Any = None) -> list[Any]:
        return start_queue_runners(sess, self.coord)


class _Managed:
    def __init__(self, supervisor: Supervisor, config: Any) -> None:
        self._supervisor, self._config = supervisor, config

    def __enter__(self) -> Any:
        self._session: Any = self._supervisor.prepare_or_wait_for_session(config=self._config)
        self._session.__enter__()
        return self._session

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None and self._supervisor._seconds:
                self._supervisor._save()
            self._supervisor.request_stop(error)
            if self._supervisor._writer is not None:
                self._supervisor._writer.close()
        finally:
            self._session.__exit__(kind, error, trace)


def start_queue_runners(sess: Any = None, coord: Any = None, daemon: bool = True,
                        start: bool = True, collection: Any = GraphKeys.QUEUE_RUNNERS) -> list[Any]:
    """Start the threads of the collection QUEUE_RUNNERS."""
    session = sess or get_default_session()
    runners = get_default_graph().get_collection(collection)
    return [t for r in runners for t in r.create_threads(session, coord, daemon, start)]


def add_queue_runner(qr: Any, collection: Any = GraphKeys.QUEUE_RUNNERS) -> None:
    """Add to the collection QUEUE_RUNNERS."""
    get_default_graph().add_to_collection(collection, qr)


def basic_train_loop(supervisor: Supervisor, train_step_fn: Any, args: Any = None,
                     kwargs: Any = None, master: str = "") -> None:  # fmt: skip
    """Call a function with the session again and again until the supervisor stops."""
    with supervisor.managed_session(master) as session:
        while not supervisor.should_stop():
            train_step_fn(session, *(args or ()), **(kwargs or {}))


