"""Callbacks that watch a value: whether it is to rise or to fall, and when it is better."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from treadle.keras import ops
from treadle.keras.callbacks.base import Callback


class MonitorCallback(Callback):
    """Base of callbacks that watch a value.

    Args:
        monitor: the value's name.
        mode: "min" where it is to fall, "max" where it is to rise, or "auto": the metric of that
            name says it. Another mode is taken for "auto", with a warning.
        baseline: improvements count only beyond this value.
        min_delta: the least change that counts as an improvement.
    """

    def __init__(
        self, monitor: str = "val_loss", mode: str = "auto", baseline: float | None = None,
        min_delta: float = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        if mode not in ("auto", "min", "max"):
            warnings.warn(
                f"{type(self).__name__} mode {mode!r} is unknown, fallback to auto mode.",
                stacklevel=3,
            )
            mode = "auto"
        self.monitor, self.mode, self.best = monitor, mode, baseline
        self.min_delta = abs(min_delta)
        self.monitor_op: Any = None  # the comparison of a better value with a worse one

    def _set_monitor_op(self) -> None:
        """Find out what is better. Models know their metrics when they have been called."""
        rises = self.mode == "max" if self.mode != "auto" else self._rises()
        self.monitor_op = ops.greater if rises else ops.less
        self.min_delta = self.min_delta if rises else -self.min_delta

    def _rises(self) -> bool:
        name = self.monitor.removeprefix("val_")
        if name == "loss" or name.endswith("_loss"):
            return False
        for metric in getattr(self.model, "metrics", None) or ():
            named = name == metric.name or name.endswith(f"_{metric.name}")
            if named and metric._direction is not None:
                return bool(metric._direction == "up")
        raise ValueError(
            f"{type(self).__name__} callback received monitor={self.monitor}, but whether that "
            "metric should be maximized or minimized cannot be determined: pass mode='max' or "
            "mode='min'"
        )

    def _is_improvement(self, monitor_value: Any, reference_value: Any) -> bool:
        """Whether a value is better than another one; any is better than none."""
        if self.monitor_op is None:
            self._set_monitor_op()
        if reference_value is None:
            return True
        return bool(self.monitor_op(monitor_value - self.min_delta, reference_value))

    def _monitored(self, logs: Mapping[str, Any] | None, purpose: str) -> Any:
        """The value among the logs; None, with a warning, where there is none."""
        value = (logs or {}).get(self.monitor)
        if value is None:
            warnings.warn(
                f"{purpose} metric `{self.monitor}` which is not available. Available metrics "
                f"are: {','.join(logs or ())}",
                stacklevel=3,
            )
        return value
