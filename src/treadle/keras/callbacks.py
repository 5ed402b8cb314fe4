"""Callbacks of fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.names import missing_in


class Callback:
    """Base: override what is of interest. `model` and `params` are set by fit."""

    model: Any = None
    params: dict[str, Any]

    def set_model(self, model: Any) -> None:
        self.model = model

    def set_params(self, params: dict[str, Any]) -> None:
        self.params = params

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None: ...
    def on_train_end(self, logs: dict[str, Any] | None = None) -> None: ...
    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None: ...

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self.on_batch_end(batch, logs)


class History(Callback):
    """What fit returns: `history` has a list of values per metric, one value an epoch."""

    def __init__(self) -> None:
        self.history: dict[str, list[float]] = {}
        self.epoch: list[int] = []

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class EarlyStopping(Callback):
    """Stops fit when a value has not improved for `patience` epochs.

    Args:
        monitor: the value's name.
        min_delta: the least change that counts as an improvement.
        mode: "min", "max", or "auto": max for accuracies.
        baseline: improvements count only beyond this value.
        restore_best_weights: put the weights of the best epoch back when fit is stopped.
    """

    def __init__(
        self, monitor: str = "val_loss", min_delta: float = 0.0, patience: int = 0,
        verbose: int = 0, mode: str = "auto", baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:  # fmt: skip
        if mode == "auto":
            mode = "max" if "acc" in monitor else "min"
        self.monitor, self.min_delta, self.patience = monitor, abs(min_delta), patience
        self.sign = 1.0 if mode == "max" else -1.0
        self.restore_best_weights = restore_best_weights
        self.least = -np.inf if baseline is None else self.sign * baseline + self.min_delta

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.best, self.wait = -np.inf, 0
        self.best_weights: list[Any] | None = None
        self.stopped_epoch = 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.monitor not in (logs or {}):
            raise ValueError(f"EarlyStopping: no {self.monitor!r} among {sorted(logs or {})}")
        value = self.sign * (logs or {})[self.monitor]
        if value > self.best + self.min_delta:
            self.best = value
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if value > self.least:
                self.wait = 0
                return
        self.wait += 1
        if self.wait >= max(self.patience, 1):
            self.stopped_epoch, self.model.stop_training = epoch, True
            if self.best_weights is not None:
                self.model.set_weights(self.best_weights)


class LearningRateScheduler(Callback):
    """Sets the rate before each epoch.

    Args:
        schedule: a function of the epoch, or of the epoch and the present rate.
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        rate = float(np.asarray(self.model.optimizer.learning_rate))
        try:
            rate = self.schedule(epoch, rate)
        except TypeError:  # a schedule of the epoch alone
            rate = self.schedule(epoch)
        self.model.optimizer.learning_rate = float(rate)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["learning_rate"] = float(np.asarray(self.model.optimizer.learning_rate))


class ReduceLROnPlateau(Callback):
    """Lowers the rate where a value has not improved for `patience` epochs.

    Args:
        monitor: the value's name.
        factor: what the rate is multiplied by.
        patience: epochs without improvement.
        mode: "min", "max", or "auto": max for accuracies.
        min_delta: the least change that counts as an improvement.
        cooldown: epochs after a change in which none are counted.
        min_lr: the lowest rate.
    """

    def __init__(
        self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, verbose: int = 0,
        mode: str = "auto", min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0.0,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: the factor must be below 1, got {factor}")
        if mode == "auto":
            mode = "max" if "acc" in monitor else "min"
        self.monitor, self.factor, self.patience = monitor, factor, patience
        self.sign = 1.0 if mode == "max" else -1.0
        self.min_delta, self.cooldown, self.min_lr = min_delta, cooldown, min_lr

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.best, self.wait, self.cooling = -np.inf, 0, 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        logs = {} if logs is None else logs
        rate = float(np.asarray(self.model.optimizer.learning_rate))
        logs["learning_rate"] = rate
        if self.monitor not in logs:
            raise ValueError(f"ReduceLROnPlateau: no {self.monitor!r} among {sorted(logs)}")
        if self.cooling > 0:
            self.cooling, self.wait = self.cooling - 1, 0
        value = self.sign * logs[self.monitor]
        if value > self.best + self.min_delta:
            self.best, self.wait = value, 0
        elif self.cooling <= 0:
            self.wait += 1
            if self.wait >= self.patience and rate > self.min_lr:
                self.model.optimizer.learning_rate = max(rate * self.factor, self.min_lr)
                self.cooling, self.wait = self.cooldown, 0


class TerminateOnNaN(Callback):
    """Stops fit when the loss is no longer a finite number."""

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(np.asarray(loss)):
            self.model.stop_training = True


class LambdaCallback(Callback):
    """A callback made of functions."""

    def __init__(self, **functions: Any) -> None:
        for name, function in functions.items():
            if not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback: no hook {name!r}")
            setattr(self, name, function)


__getattr__ = missing_in(__name__)
