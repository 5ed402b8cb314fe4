"""Callbacks of fit."""

from __future__ import annotations

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
    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None: ...


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
    """Stops fit when a value has not improved for `patience` epochs."""

    def __init__(
        self, monitor: str = "val_loss", min_delta: float = 0.0, patience: int = 0,
        mode: str = "auto", restore_best_weights: bool = False,
    ) -> None:  # fmt: skip
        if mode == "auto":
            mode = "max" if "acc" in monitor else "min"
        self.monitor, self.min_delta, self.patience = monitor, abs(min_delta), patience
        self.sign = 1.0 if mode == "max" else -1.0
        self.restore_best_weights = restore_best_weights

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.best, self.wait = -np.inf, 0
        self.best_weights: list[Any] | None = None
        self.stopped_epoch = 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.monitor not in (logs or {}):
            raise ValueError(f"EarlyStopping: no {self.monitor!r} among {sorted(logs or {})}")
        value = self.sign * (logs or {})[self.monitor]
        if value > self.best + self.min_delta:
            self.best, self.wait = value, 0
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= max(self.patience, 1):
            self.stopped_epoch, self.model.stop_training = epoch, True
            if self.best_weights is not None:
                self.model.set_weights(self.best_weights)


class LambdaCallback(Callback):
    """A callback made of functions."""

    def __init__(self, **functions: Any) -> None:
        for name, function in functions.items():
            if not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback: no hook {name!r}")
            setattr(self, name, function)


__getattr__ = missing_in(__name__)
