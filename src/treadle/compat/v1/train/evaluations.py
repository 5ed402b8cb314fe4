"""Evaluations of a checkpoint: a number of runs of operations, counted by a variable."""

from __future__ import annotations

import logging
from typing import Any

import treadle as td
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.train.monitored import (
    ChiefSessionCreator,
    FinalOpsHook,
    MonitoredSession,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

_log = logging.getLogger("treadle")


def get_or_create_eval_step() -> Any:
    """The variable of the default graph that counts runs of an evaluation.

    Raises:
        ValueError: there are several.
    """
    found = get_default_graph().get_collection(GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    v1: Any = td.compat.v1
    return found[0] if found else v1.get_variable(
        "eval_step", shape=[], dtype=td.int64, initializer=v1.zeros_initializer(), trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
    )  # fmt: skip


class StopAfterNEvalsHook(SessionRunHook):
    """Stops after a number of runs.

    Args:
        num_evals: the number; None: until the inputs end.
        log_progress: log some tenths of the way.
    """

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._number, self._logs = num_evals, log_progress
        self._every = 1 if num_evals is None or num_evals < 20 else num_evals // 10
        self._count: Any = None

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        """Take the tensor of how many runs there were, which `evaluate_once` makes."""
        self._count = updated_eval_step

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs({"evals_completed": self._count})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        count = run_values.results["evals_completed"]
        if self._logs and (count % self._every == 0 or count == self._number):
            _log.info("Evaluation [%s/%s]", count, self._number or "all")
        if self._number is not None and count >= self._number:
            run_context.request_stop()


def evaluate_once(
    checkpoint_path: Any, master: str = "", scaffold: Any = None, eval_ops: Any = None,
    feed_dict: Any = None, final_ops: Any = None, final_ops_feed_dict: Any = None,
    hooks: Any = None, config: Any = None,
) -> Any:  # fmt: skip
    """Run operations with the values of a checkpoint until a hook asks to stop or inputs end.

    Args:
        checkpoint_path: the checkpoint; None: variables have their initial values.
        scaffold: see `Scaffold`.
        eval_ops, feed_dict: what is run each time: a tensor or operation, or a list or dict.
        final_ops, final_ops_feed_dict: what is run at the end.
        hooks: `SessionRunHook`s, `StopAfterNEvalsHook` among them.

    Returns:
        The values of `final_ops`.
    """
    step = get_or_create_eval_step()
    hooks = list(hooks or [])
    if eval_ops is not None:
        v1: Any = td.compat.v1
        counted = v1.assign_add(step, 1, use_locking=True)
        if isinstance(eval_ops, dict):
            eval_ops["update_eval_step"] = counted
        else:
            eval_ops = [*(eval_ops if isinstance(eval_ops, list | tuple) else [eval_ops]), counted]
        made = list(eval_ops.values()) if isinstance(eval_ops, dict) else eval_ops
        with v1.control_dependencies(made):
            count = v1.identity(step.read_value())
        for hook in hooks:
            if isinstance(hook, StopAfterNEvalsHook):
                hook._set_evals_completed_tensor(count)
    final = FinalOpsHook(final_ops, final_ops_feed_dict)
    creator = ChiefSessionCreator(
        scaffold, master, config, checkpoint_filename_with_path=checkpoint_path
    )
    with MonitoredSession(creator, [*hooks, final]) as session:
        while eval_ops is not None and not session.should_stop():
            session.run(eval_ops, feed_dict)
    return final.final_ops_values
