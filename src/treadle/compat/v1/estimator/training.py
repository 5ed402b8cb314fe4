"""Training with evaluations and exports in between."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treadle.compat.v1 import train as training
from treadle.compat.v1.estimator.base import Estimator
from treadle.compat.v1.estimator.exporting import Exporter
from treadle.core.origin import at, user_origin


class TrainSpec(NamedTuple):
    """How `train_and_evaluate` trains."""

    input_fn: Callable[..., Any]
    max_steps: int | None = None
    hooks: Sequence[Any] = ()
    saving_listeners: Any = None


class EvalSpec(NamedTuple):
    """How `train_and_evaluate` evaluates: every `throttle_secs` seconds, and at the end.

    Attributes:
        exporters: one or several `Exporter`, which export the models that were evaluated.
        start_delay_secs: accepted: the process that trains evaluates, and begins with training.
    """

    input_fn: Callable[..., Any]
    steps: int | None = 100
    name: str | None = None
    hooks: Sequence[Any] = ()
    exporters: Any = None
    start_delay_secs: float = 120
    throttle_secs: float = 600


def _exporters(spec: EvalSpec) -> list[Exporter]:
    """The exporters of a spec.

    Raises:
        TypeError: one is something else. ValueError: two have the same name.
    """
    given = spec.exporters
    found = [] if given is None else [given] if isinstance(given, Exporter) else list(given)
    for exporter in found:
        if not isinstance(exporter, Exporter):
            raise TypeError(
                f"`exporters` must be a list of Exporter. Given: {exporter}{at(user_origin())}"
            )
    names = [e.name for e in found]
    if len(set(names)) < len(names):
        raise ValueError(f"`exporters` must have unique names. Given: {names}{at(user_origin())}")
    return found


class _Evaluating(training.CheckpointSaverListener):
    """Evaluates when a checkpoint was written, but for the first one, of the untrained model, and
    for that of the last step (`max_steps`), after which `train_and_evaluate` does it."""

    def __init__(self, estimator: Estimator, spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator, self._spec = estimator, spec
        self._exporters, self._last_step = _exporters(spec), max_steps
        self._evaluated = time.time()  # when it was done last
        self._is_first = True

    def after_save(self, session: Any, global_step_value: int) -> None:
        if self._is_first:
            self._is_first = False
            return
        is_last = self._last_step is not None and global_step_value >= self._last_step
        if not is_last and time.time() - self._evaluated >= self._spec.throttle_secs:
            self.evaluate(False)
            self._evaluated = time.time()

    def evaluate(self, is_final: bool) -> tuple[Any, list[Any]]:
        """The metrics, and what the exporters gave."""
        spec, estimator = self._spec, self._estimator
        found = estimator.evaluate(spec.input_fn, spec.steps, spec.hooks, name=spec.name)
        path = estimator.latest_checkpoint()
        exports = [
            e.export(
                estimator, os.path.join(estimator.model_dir, "export", e.name), path, found,
                is_the_final_export=is_final,
            )
            for e in self._exporters
        ]  # fmt: skip
        return found, exports


def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> Any:
    """Train, and evaluate now and then and at the end.

    Returns:
        The last metrics, and the folders of the last exports.
    """
    evaluating = _Evaluating(estimator, eval_spec, train_spec.max_steps)
    estimator.train(
        train_spec.input_fn, train_spec.hooks, max_steps=train_spec.max_steps,
        saving_listeners=[*(train_spec.saving_listeners or ()), evaluating],
    )  # fmt: skip
    return evaluating.evaluate(True)
