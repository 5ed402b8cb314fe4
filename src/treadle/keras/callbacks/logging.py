"""Callbacks that write down how training goes."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import urllib.error
import urllib.parse
import urllib.request
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from treadle.keras import replicas
from treadle.keras.callbacks.base import Callback, CallbackList, Logs, in_order
from treadle.keras.progress import Progbar, level_of, message
from treadle.train.atomic import NewFile, file_error


class ProgbarLogger(Callback):
    """Prints the progress of epochs, of evaluations and of predictions."""

    takes_tensors = True

    def __init__(self) -> None:
        self.seen = 0
        self.progbar: Progbar | None = None
        self.target: int | None = None
        self.verbose, self.epochs, self._in_fit = 1, 1, False

    def set_params(self, params: Mapping[str, Any]) -> None:
        super().set_params(params)
        self.verbose = level_of(params.get("verbose", 1))
        self.epochs = params.get("epochs", 1)
        self.target = params.get("steps")

    def _start(self) -> None:
        self.seen = 0
        self.progbar = Progbar(self.target, verbose=self.verbose, stateless_metrics=())

    def _update(self, batch: int, logs: Mapping[str, Any] | None) -> None:
        self.seen = batch + 1
        assert self.progbar is not None
        if self.seen == 1 or self.progbar.is_due():
            self.progbar.update(self.seen, in_order(logs).items(), finalize=False)

    def _end(self, logs: Mapping[str, Any] | None) -> None:
        if self.progbar is None:
            return
        if self.target is None:
            self.target = self.progbar.target = self.seen
        self.progbar.update(self.target, (logs or {}).items(), finalize=True)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._in_fit = True  # whose validations are silent

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._in_fit = False

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._start()
        if self.verbose and self.epochs > 1:
            message(f"Epoch {epoch + 1}/{self.epochs}")

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._end(logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._update(batch, logs)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        if not self._in_fit:
            self._start()

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if not self._in_fit:
            self._update(batch, logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        if not self._in_fit:
            self._end(logs)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._start()

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._update(batch, None)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._end(None)


CallbackList.progbar = ProgbarLogger


class CSVLogger(Callback):
    """Writes a row of values into a file after each epoch; of several workers the first one does.

    A file that is there, and not appended to, stays until the first row of the new one is written.

    Args:
        filename: of the file.
        separator: between values.
        append: go on with a file that is there.
    """

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        self.filename, self.sep, self.append = Path(filename), separator, append
        self.keys: list[str] | None = None
        self._file: Any = None
        self._new: NewFile | None = None  # where the file is written from its beginning
        self._writer: Any = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        there = self.append and self.filename.exists()
        self._with_head = not (there and self.filename.stat().st_size)
        self._close()
        self.keys = None
        if replicas.is_chief():
            with self._errors():
                self._open()

    def _open(self) -> None:
        if self.append:
            self._file = self.filename.open("a", newline="")
            self._size = self.filename.stat().st_size  # up to the last row that is whole
        else:
            self._new = NewFile(str(self.filename))
            self._file = io.TextIOWrapper(self._new.file, newline="")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of the system as the others of files."""
        try:
            yield
        except OSError as error:
            if self._new is not None:
                self._new.discard()
            elif self._file is not None:  # no part of a row stays, behind which others would come
                with contextlib.suppress(OSError):
                    self._file.close()
                with contextlib.suppress(OSError):
                    os.truncate(self.filename, self._size)
            self._file = self._new = self._writer = None
            raise file_error(error, str(self.filename)) from None

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        logs = logs or {}
        if self._file is None:
            return
        if self.keys is None:
            self.keys = sorted(logs)
            if not any(key.startswith("val_") for key in self.keys):
                self.keys += [f"val_{key}" for key in self.keys]
            self._writer = csv.DictWriter(
                self._file, ["epoch", *self.keys], delimiter=self.sep, lineterminator="\n"
            )
        row = {key: _cell(logs.get(key, "NA")) for key in self.keys}
        with self._errors():
            if self._with_head:
                self._writer.writeheader()
                self._with_head = False
            self._writer.writerow({"epoch": epoch, **row})
            self._file.flush()
            if self._new is not None:
                self._new.publish()
            elif self.append:
                self._size = self._file.tell()

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._close()

    def _close(self) -> None:
        with self._errors():
            if self._file is not None:
                self._file.flush()
            if self._new is not None:
                self._new.close()
            elif self._file is not None:
                self._file.close()
        self._file = self._new = self._writer = None


def _cell(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim:
        return f'"[{", ".join(map(str, value))}]"'
    return value


class RemoteMonitor(Callback):
    """Sends the values of each epoch to a server, as a POST of JSON or of a form.

    A server that does not answer is warned of.

    Args:
        root, path: the address.
        field: the form's field that has the JSON.
        headers: of the request.
        send_as_json: send JSON itself instead of a form.
    """

    def __init__(
        self, root: str = "http://localhost:9000", path: str = "/publish/epoch/end/",
        field: str = "data", headers: Mapping[str, str] | None = None, send_as_json: bool = False,
    ) -> None:  # fmt: skip
        if urllib.parse.urlsplit(root).scheme not in ("http", "https"):
            raise ValueError(f"RemoteMonitor: root must be a http address, not {root!r}")
        self.root, self.path, self.field = root, path, field
        self.headers, self.send_as_json = dict(headers or {}), send_as_json

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        values = {name: np.asarray(value).tolist() for name, value in (logs or {}).items()}
        text = json.dumps({"epoch": epoch, **values})
        if self.send_as_json:
            body, kind = text, "application/json"
        else:
            body = urllib.parse.urlencode({self.field: text})
            kind = "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind, **self.headers}
        request = urllib.request.Request(self.root + self.path, body.encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=10):
                pass
        except (urllib.error.URLError, TimeoutError) as error:
            warnings.warn(
                f"Could not reach RemoteMonitor root server at {self.root}: {error}", stacklevel=2
            )
