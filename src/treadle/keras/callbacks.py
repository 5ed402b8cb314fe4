"""Callbacks of fit."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.names import missing_in
from treadle.train.state_file import exists, remove


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


class _Frequency:
    """Says after which batches something is saved.

    Args:
        every: "epoch", after no batch; or a number of batches, counted on through epochs.
    """

    def __init__(self, every: Any, name: str) -> None:
        if every != "epoch" and not isinstance(every, int):
            raise ValueError(
                f"{name}: save_freq is 'epoch' or a number of batches, not {every!r}"
            )
        self.every, self.seen = every, 0

    @property
    def is_epoch(self) -> bool:
        return bool(self.every == "epoch")

    def is_due(self) -> bool:
        """Count a batch, and say whether to save now."""
        self.seen += 1
        due = not self.is_epoch and self.seen >= self.every
        if due:
            self.seen = 0
        return due


class ModelCheckpoint(Callback):
    """Saves the model, or its weights, as it is trained.

    Args:
        filepath: where; ``{epoch}`` (from 1 on), ``{batch}`` and the names of values in it are
            filled in: ``"{epoch:02d}-{val_loss:.2f}.keras"``. `Model.save` and, with
            `save_weights_only`, `Model.save_weights` say which endings there are.
        monitor: the name of the value that tells which model is best.
        save_best_only: save only when that value is better than all before.
        mode: "min", "max", or "auto": max for accuracies.
        save_freq: "epoch", or the number of batches between two savings.
        initial_value_threshold: only better values than this one count.
    """

    def __init__(
        self, filepath: Any, monitor: str = "val_loss", verbose: int = 0,
        save_best_only: bool = False, save_weights_only: bool = False, mode: str = "auto",
        save_freq: Any = "epoch", initial_value_threshold: float | None = None,
    ) -> None:  # fmt: skip
        if mode == "auto":
            mode = "max" if "acc" in monitor else "min"
        self.filepath, self.monitor, self.verbose = os.fspath(filepath), monitor, verbose
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only
        self.sign = 1.0 if mode == "max" else -1.0
        self.best = initial_value_threshold
        self._frequency = _Frequency(save_freq, "ModelCheckpoint")
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if self._frequency.is_due():
            self._save(self._epoch, logs or {}, batch=batch + 1)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self._frequency.is_epoch:
            self._save(epoch, logs or {})

    def _save(self, epoch: int, logs: dict[str, Any], **more: Any) -> None:
        values = {name: float(np.asarray(value)) for name, value in logs.items()}
        try:
            path = self.filepath.format(**{"epoch": epoch + 1, **more, **values})
        except KeyError as error:
            raise KeyError(
                f"ModelCheckpoint: {self.filepath!r} has {error}, known are epoch and "
                f"{sorted(values)}"
            ) from None
        if not self._is_due(values):
            return
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: saving model to {path}")
        save = self.model.save_weights if self.save_weights_only else self.model.save
        save(path, overwrite=True)

    def _is_due(self, values: dict[str, float]) -> bool:
        if not self.save_best_only:
            return True
        value = values.get(self.monitor)
        if value is None:
            warnings.warn(
                f"ModelCheckpoint: no {self.monitor!r} among {sorted(values)}, so every model is "
                "saved", stacklevel=2,
            )  # fmt: skip
            return True
        if self.best is not None and self.sign * value <= self.sign * self.best:
            return False
        self.best = value
        return True


class BackupAndRestore(Callback):
    """Lets `fit` go on where it was interrupted: saves the model and its optimizer as it goes, and
    restores them when the same `fit` begins again. An interrupted epoch begins anew.

    Args:
        backup_dir: a directory for this alone.
        save_freq: "epoch", or the number of batches between two savings.
        double_checkpoint: taken for Keras's programs; a backup is replaced when the next one is
            whole.
        delete_checkpoint: whether the backup is deleted when `fit` is done.
    """

    def __init__(
        self, backup_dir: Any, save_freq: Any = "epoch", double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
    ) -> None:  # fmt: skip
        if not backup_dir:
            raise ValueError("BackupAndRestore: backup_dir is empty")
        self.backup_dir, self.delete_checkpoint = os.fspath(backup_dir), delete_checkpoint
        self._prefix = os.path.join(self.backup_dir, "latest")
        self._frequency = _Frequency(save_freq, "BackupAndRestore")
        self._epoch = td.Variable(np.int64(0), trainable=False, name="epoch")

    def _checkpoint(self) -> Any:
        return td.train.Checkpoint(
            model=self.model, optimizer=self.model.optimizer, epoch=self._epoch
        )

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if exists(self._prefix):
            self._checkpoint().read(self._prefix)  # what is not made yet is restored when it is
            self.model._initial_epoch = int(self._epoch.numpy())

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if self._frequency.is_due():
            self._checkpoint().write(self._prefix)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch.assign(epoch + 1)
        if self._frequency.is_epoch:
            self._checkpoint().write(self._prefix)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self.delete_checkpoint:
            remove(self._prefix)


__getattr__ = missing_in(__name__)
