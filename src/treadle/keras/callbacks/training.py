"""Callbacks that change how training goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.keras.callbacks.base import Callback, Logs
from treadle.keras.progress import message


def sign_of(mode: str, monitor: str) -> float:
    """1 where a value is to rise, -1 where it is to fall; "auto" takes the name for it."""
    if mode not in ("auto", "min", "max"):
        raise ValueError(f"mode must be auto, min or max, not {mode!r}")
    rises = ("acc", "auc", "precision", "recall", "sensitivity", "specificity", "score", "iou")
    if mode == "auto":
        name = monitor.lower()
        mode = "max" if any(part in name for part in (*rises, "cosine", "positives")) else "min"
        mode = "min" if "false" in name else mode
    return 1.0 if mode == "max" else -1.0


class EarlyStopping(Callback):
    """Stops fit when a value has not improved for `patience` epochs.

    Args:
        monitor: the value's name.
        min_delta: the least change that counts as an improvement.
        mode: "min", "max", or "auto": max for accuracies and other scores.
        baseline: improvements count only beyond this value.
        restore_best_weights: put the weights of the best epoch back when fit ends.
        start_from_epoch: epochs before it are left out.
    """

    def __init__(
        self, monitor: str = "val_loss", min_delta: float = 0.0, patience: int = 0,
        verbose: int = 0, mode: str = "auto", baseline: float | None = None,
        restore_best_weights: bool = False, start_from_epoch: int = 0,
    ) -> None:  # fmt: skip
        self.monitor, self.min_delta, self.patience = monitor, abs(min_delta), patience
        self.sign, self.verbose, self.baseline = sign_of(mode, monitor), verbose, baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        self.best, self.best_epoch, self.wait, self.stopped_epoch = 0.0, 0, 0, 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.best, self.best_epoch = -self.sign * np.inf, 0
        self.wait = self.stopped_epoch = 0
        self.best_weights: list[Any] | None = None

    def _improves(self, value: float, before: float) -> bool:
        return bool(self.sign * value - self.min_delta > self.sign * before)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.monitor not in (logs or {}):
            raise ValueError(f"EarlyStopping: no {self.monitor!r} among {sorted(logs or {})}")
        if epoch < self.start_from_epoch:
            return
        value = (logs or {})[self.monitor]
        if self.restore_best_weights and self.best_weights is None:
            self.best_weights = self.model.get_weights()
        self.wait += 1
        if self._improves(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self._improves(value, self.baseline):
                self.wait = 0
            return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch, self.model.stop_training = epoch, True

    def on_train_end(self, logs: Logs | None = None) -> None:
        if self.stopped_epoch and self.verbose:
            message(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.best_weights is not None:
            if self.verbose:
                epoch = self.best_epoch + 1
                message(f"Restoring model weights from the end of the best epoch: {epoch}.")
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
        if self.verbose:
            message(
                f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}."
            )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["learning_rate"] = float(np.asarray(self.model.optimizer.learning_rate))


class ReduceLROnPlateau(Callback):
    """Lowers the rate where a value has not improved for `patience` epochs.

    Args:
        monitor: the value's name.
        factor: what the rate is multiplied by.
        patience: epochs without improvement.
        mode: "min", "max", or "auto": max for accuracies and other scores.
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
        self.monitor, self.factor, self.patience = monitor, factor, patience
        self.sign, self.verbose = sign_of(mode, monitor), verbose
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
                lower = max(rate * self.factor, self.min_lr)
                self.model.optimizer.learning_rate = lower
                if self.verbose:
                    message(
                        f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {lower}."
                    )
                self.cooling, self.wait = self.cooldown, 0


class TerminateOnNaN(Callback):
    """Stops fit when the loss is no longer a finite number."""

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(np.asarray(loss)):
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
        optimizer = self.model.optimizer
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        if not getattr(optimizer, "use_ema", False):
            raise ValueError("SwapEMAWeights: give the optimizer use_ema=True")
        return optimizer.averages()  # type: ignore[no-any-return]

    def _swap(self, swapped: bool) -> None:
        if self._swapped is swapped:
            return
        for variable, average in self._pairs():
            value = variable.numpy()
            variable.assign(average.value())
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
                average.assign(variable.value())
            self._swapped = False

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._swap(True)

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._swap(False)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._swap(True)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._swap(False)
