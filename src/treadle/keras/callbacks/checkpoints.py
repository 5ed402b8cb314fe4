"""Callbacks that save the model as it is trained."""

from __future__ import annotations

import contextlib
import os
import warnings
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import replicas
from treadle.keras.callbacks.base import Callback, Logs
from treadle.keras.callbacks.monitoring import MonitorCallback
from treadle.keras.progress import message
from treadle.train.state_file import exists, remove


class _Frequency:
    """Says after which batches something is saved.

    Args:
        every: "epoch", after no batch; or a number of batches, counted on through epochs.
    """

    def __init__(self, every: Any, name: str) -> None:
        if every != "epoch" and not isinstance(every, int):
            raise ValueError(
                f"Invalid value for save_freq of {name}: {every!r}; it is 'epoch' or a number of "
                "batches"
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


def _numbers(logs: dict[str, Any]) -> dict[str, float]:
    return {name: float(np.asarray(value)) for name, value in logs.items()}


class ModelCheckpoint(MonitorCallback):
    """Saves the model, or its weights, as it is trained. Of several workers the first one saves.

    Args:
        filepath: where; ``{epoch}`` (from 1 on), ``{batch}`` and the names of values in it are
            filled in: ``"{epoch:02d}-{val_loss:.2f}.keras"``. `Model.save` and, with
            `save_weights_only`, `Model.save_weights` say which endings there are.
        monitor: the name of the value that tells which model is best.
        save_best_only: save only when that value is better than all before.
        mode: "min", "max", or "auto": as the metric says.
        save_freq: "epoch", or the number of batches between two savings.
        initial_value_threshold: only better values than this one count.
    """

    def __init__(
        self, filepath: Any, monitor: str = "val_loss", verbose: int = 0,
        save_best_only: bool = False, save_weights_only: bool = False, mode: str = "auto",
        save_freq: Any = "epoch", initial_value_threshold: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(monitor, mode, initial_value_threshold)
        self.filepath, self.verbose = os.fspath(filepath), verbose
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only
        self._frequency = _Frequency(save_freq, "ModelCheckpoint")
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if self._frequency.is_due():
            self._save_model(self._epoch, batch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self._frequency.is_epoch:
            self._save_model(epoch, None, logs or {})

    # Derived classes of users override and call the following ones by Keras's names.

    def _save_model(self, epoch: int, batch: int | None, logs: dict[str, Any]) -> None:
        path = self._get_file_path(epoch, batch, logs)
        if not self._is_due(_numbers(logs)):
            return
        if self.verbose and replicas.is_chief():
            message(f"\nEpoch {epoch + 1}: saving model to {path}")
        save = self.model.save_weights if self.save_weights_only else self.model.save
        with replicas.place_of(path) as place:
            save(place, overwrite=True)

    def _get_file_path(self, epoch: int, batch: int | None, logs: Logs | None) -> str:
        values = _numbers(logs or {})
        counts = {"epoch": epoch + 1} | ({} if batch is None else {"batch": batch + 1})
        try:
            path: str = self.filepath.format(**(counts | values))
        except KeyError as error:
            raise KeyError(
                f"ModelCheckpoint: {self.filepath!r} has {error}, known are epoch and "
                f"{sorted(values)}"
            ) from None
        return path

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
        if not self._is_improvement(value, self.best):
            return False
        self.best = value
        return True


class BackupAndRestore(Callback):
    """Lets `fit` go on where it was interrupted: saves the model and its optimizer as it goes, and
    restores them when the same `fit` begins again. An interrupted epoch begins anew. Of several
    workers the first one saves, and all of them restore. A backup that lacks weights of the model
    is an error; what it lacks of the optimizer begins anew, with a warning.

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
            raise ValueError("Empty `backup_dir` argument passed to BackupAndRestore")
        self.backup_dir, self.delete_checkpoint = os.fspath(backup_dir), delete_checkpoint
        self._prefix = os.path.join(self.backup_dir, "latest")
        self._frequency = _Frequency(save_freq, "BackupAndRestore")
        self._epoch = td.Variable(np.int64(0), trainable=False, name="epoch")
        self._restored: Any = None  # the status of a restoration whose optimizer is not compared

    def _checkpoint(self) -> Any:
        return td.train.Checkpoint(
            model=self.model, optimizer=self.model.optimizer, epoch=self._epoch
        )

    def _write(self) -> None:
        with replicas.place_of(self._prefix) as place:
            self._checkpoint().write(place)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        if exists(self._prefix):
            # What is not made yet is restored when it is.
            self._restored = self._checkpoint().read(self._prefix)
            missing = self._restored.missing_among(self.model.weights)
            if missing:
                raise ValueError(
                    f"The backup {self._prefix} is of another model: it has no values of "
                    f"{', '.join(missing)}. Delete it to begin anew"
                )
            self.model._initial_epoch = int(self._epoch.numpy())

    def _compare_optimizer(self) -> None:
        """Warn of the optimizer's variables that the backup lacks. The first step makes them."""
        status, self._restored = self._restored, None
        missing = status.missing_among(self.model.optimizer.variables)
        if missing:
            warnings.warn(
                f"The backup {self._prefix} is of another optimizer: it has no values of "
                f"{', '.join(missing)}, which begin anew", stacklevel=2,
            )  # fmt: skip

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if self._restored is not None:
            self._compare_optimizer()
        if self._frequency.is_due():
            self._write()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch.assign(epoch + 1)
        if self._frequency.is_epoch:
            self._write()

    def on_train_end(self, logs: Logs | None = None) -> None:
        if self.delete_checkpoint and replicas.is_chief():
            remove(self._prefix)
            with contextlib.suppress(OSError):  # other files are in it
                os.rmdir(self.backup_dir)
