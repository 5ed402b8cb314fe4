"""Callbacks that change how training goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.keras.callbacks.base import Callback, Logs
from treadle.keras.callbacks.monitoring import MonitorCallback
from treadle.keras.progress import message


class EarlyStopping(MonitorCallback):
    """Stops fit when a value has not improved for `patience` epochs.

    Args:
        monitor: the value's name.
        min_delta: the least change that counts as an improvement.
        mode: "min", "max", or "auto": as the metric says.
        baseline: improvements count only beyond this value.
        restore_best_weights: put the weights of the best epoch back when fit ends.
        start_from_epoch: epochs before it are left out.
    """

    def __init__(
        self, monitor: str = "val_loss", min_delta: float = 0, patience: int = 0,
        verbose: int = 0, mode: str = "auto", baseline: float | None = None,
        restore_best_weights: bool = False, start_from_epoch: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(monitor, mode, min_delta=min_delta)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        self.best_epoch = self.wait = self.stopped_epoch = 0
        self.best_weights: list[Any] | None = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.best, self.best_weights = None, None
        self.best_epoch = self.wait = self.stopped_epoch = 0

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.monitor_op is None:
            self._set_monitor_op()
        value = self.get_monitor_value(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            self.best_weights, self.best_epoch = self.model.get_weights(), epoch
        self.wait += 1
        if self._is_improvement(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self._is_improvement(value, self.baseline):
                self.wait = 0
        elif self.wait >= self.patience and epoch > 0:
            self.stopped_epoch, self.model.stop_training = epoch, True

    def get_monitor_value(self, logs: Logs | None) -> Any:
        """The value among the logs; None, with a warning, where there is none."""
        return self._monitored(logs, "Early stopping conditioned on")

    def on_train_end(self, logs: Logs | None = None) -> None:
        if self.stopped_epoch and self.verbose:
            message(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.best_weights is not None:
            if self.verbose:
                epoch = self.best_epoch + 1
                message(f"Restoring model weights from the end of the best epoch: {epoch}.")
            self.model.set_weights(self.best_weights)


def rates_of(model: Any) -> dict[str, Any]:
    """The optimizers that have rates, by what these are called in logs; none where the model has
    no optimizer."""
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    several = getattr(optimizer, "optimizers", None)
    if several is None:
        return {} if optimizer is None else {"learning_rate": optimizer}
    found: dict[str, Any] = {}
    for each in several:
        used = sum(other.name == each.name for other in found.values())
        found[f"learning_rate_{each.name}{f'_{used}' if used else ''}"] = each
    return found


def rate_of(optimizer: Any) -> float:
    """The present rate of an optimizer."""
    return float(np.asarray(optimizer.learning_rate))


class LearningRateScheduler(Callback):
    """Sets the rate before each epoch.

    Args:
        schedule: a function of the epoch, or of the epoch and the present rate.

    Raises:
        ValueError: `schedule` gives something else than a float.
        TypeError: the optimizer's rate is a schedule already.
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        super().__init__()
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        for optimizer in rates_of(self.model).values():
            try:
                rate: Any = self.schedule(epoch, rate_of(optimizer))
            except TypeError:  # a schedule of the epoch alone
                rate = self.schedule(epoch)
            if not isinstance(rate, float | np.floating):
                raise ValueError(
                    f"The output of the `schedule` function should be a float. Got: {rate}"
                )
            optimizer.learning_rate = float(rate)
            if self.verbose:
                message(
                    f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}."
                )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs |= {name: rate_of(o) for name, o in rates_of(self.model).items()}


class ReduceLROnPlateau(MonitorCallback):
    """Lowers the rate where a value has not improved for `patience` epochs.

    Args:
        monitor: the value's name.
        factor: what the rate is multiplied by.
        patience: epochs without improvement.
        mode: "min", "max", or "auto": as the metric says.
        min_delta: the least change that counts as an improvement.
        cooldown: epochs after a change in which none are counted.
        min_lr: the lowest rate.
    """

    def __init__(
        self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, verbose: int = 0,
        mode: str = "auto", min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0.0,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(monitor, mode, min_delta=min_delta)
        if factor >= 1.0:
            raise ValueError(
                f"ReduceLROnPlateau does not support a factor >= 1.0. Received factor={factor}"
            )
        self.factor, self.patience, self.verbose = factor, patience, verbose
        self.cooldown, self.min_lr = cooldown, min_lr
        self.cooldown_counter = self.wait = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.best, self.cooldown_counter, self.wait = None, 0, 0

    def in_cooldown(self) -> bool:
        """Whether a change was so short a time ago that epochs are not counted."""
        return self.cooldown_counter > 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        logs = {} if logs is None else logs
        logs |= {name: rate_of(o) for name, o in rates_of(self.model).items()}
        value = self._monitored(logs, "Learning rate reduction is conditioned on")
        if value is None:
            return
        if self.in_cooldown():
            self.cooldown_counter, self.wait = self.cooldown_counter - 1, 0
        if self._is_improvement(value, self.best):
            self.best, self.wait = value, 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience and self._reduce(epoch):
                self.cooldown_counter, self.wait = self.cooldown, 0

    def _reduce(self, epoch: int) -> bool:
        """Lower the rates; False where all are lowest."""
        reduced = False
        for optimizer in rates_of(self.model).values():
            rate = rate_of(optimizer)
            if rate <= np.float32(self.min_lr):
                continue
            lower = max(rate * self.factor, self.min_lr)
            optimizer.learning_rate, reduced = lower, True
            if self.verbose:
                message(
                    f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {lower}."
                )
        return reduced


class TerminateOnNaN(Callback):
    """Stops fit when the loss is no longer a finite number.

    Args:
        raise_error: raise a RuntimeError instead, so that other callbacks' `on_train_end` are not
            called: a backup stays.
    """

    def __init__(self, raise_error: bool = False) -> None:
        super().__init__()
        self.raise_error = raise_error

    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is None or np.isfinite(np.asarray(loss)):
            return
        if self.raise_error:
            raise RuntimeError(
                f"NaN or Inf loss encountered at batch {batch}. Loss value: {loss}. Terminating "
                "training immediately."
            )
        message(f"Batch {batch}: Invalid loss, terminating training")
        self.model.stop_training = True


class SwapEMAWeights(Callback):
    """Evaluates and predicts with the running averages of the weights that the optimizer keeps
    (``use_ema=True``).

    Args:
        swap_on_epoch: put the averages in place at the end of each epoch, for callbacks that save
            the weights then, and take them out when the next one begins.
    """

    def __init__(self, swap_on_epoch: bool = False) -> None:
        self.swap_on_epoch, self._swapped = swap_on_epoch, False

    def _pairs(self) -> list[tuple[Any, Any]]:
        keeping = [each for each in rates_of(self.model).values() if each.use_ema]
        if not keeping:
            raise ValueError("SwapEMAWeights: give the optimizer use_ema=True")
        return [pair for each in keeping for pair in each.averages()]

    def _swap(self, swapped: bool) -> None:
        if self._swapped is swapped:
            return
        for variable, average in self._pairs():
            value = variable.numpy()
            variable.assign(average.read_value())
            average.assign(value)
        self._swapped = swapped

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        if self.swap_on_epoch:
            self._swap(False)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if not self.swap_on_epoch:
            return
        self._swap(True)
        if epoch == self.params["epochs"] - 1 or self.model.stop_training:
            for variable, average in self._pairs():  # which fit puts in place for good
                average.assign(variable.read_value())
            self._swapped = False

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._swap(True)

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._swap(False)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._swap(True)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._swap(False)
