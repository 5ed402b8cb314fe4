"""Callback, what calls several of them, and the history that fit returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import treadle as td

Logs = dict[str, Any]


class Callback:
    """Base: override what is of interest. `model` and `params` are set by fit, evaluate and
    predict.

    `params` has "epochs", "steps" (None where it is not known) and "verbose". The logs of batches
    and epochs are floats by the names of metrics.
    """

    model: Any = None
    params: Mapping[str, Any] = {}
    # Whether the hooks for batches take logs as the step gave them, tensors, and read them if need
    # be.
    takes_tensors = False

    def set_model(self, model: Any) -> None:
        self.model = model

    def set_params(self, params: Mapping[str, Any]) -> None:
        self.params = params

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None: ...
    def on_train_begin(self, logs: Logs | None = None) -> None: ...
    def on_train_end(self, logs: Logs | None = None) -> None: ...
    def on_test_begin(self, logs: Logs | None = None) -> None: ...
    def on_test_end(self, logs: Logs | None = None) -> None: ...
    def on_predict_begin(self, logs: Logs | None = None) -> None: ...
    def on_predict_end(self, logs: Logs | None = None) -> None: ...
    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None: ...
    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None: ...
    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None: ...
    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None: ...
    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None: ...
    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None: ...

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self.on_batch_end(batch, logs)


_TRAIN_BATCH = {"on_train_batch_begin": "on_batch_begin", "on_train_batch_end": "on_batch_end"}


def _overrides(callback: Any, hook: str) -> bool:
    """Whether a callback does something in a hook."""
    own = getattr(callback, hook, None)
    return own is not None and getattr(own, "__func__", own) is not getattr(Callback, hook)


def as_numbers(logs: Mapping[str, Any] | None) -> Logs:
    """Scalars as floats, other results as arrays; the entries of a result that is a dict by their
    own names."""
    found: Logs = {}
    for name, value in (logs or {}).items():
        if isinstance(value, Mapping):
            found |= as_numbers(value)
        else:
            array = np.asarray(value)
            found[name] = array if array.ndim else float(array)
    return found


def in_order(logs: Mapping[str, Any] | None) -> Logs:
    """The logs as numbers, by name, as Keras gives them to callbacks."""
    return dict(sorted(as_numbers(logs).items()))


class History(Callback):
    """What fit returns: `history` has a list of values per metric, one value an epoch."""

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class CallbackList(Callback):
    """Several callbacks as one.

    Args:
        callbacks: a callback, or nested lists of them.
        add_history: add a `History` where there is none.
        add_progbar: add a `ProgbarLogger` where there is none; `ProgbarLogger` says how.
        model: what the callbacks' `model` is.
        params: what their `params` are.
    """

    def __init__(
        self, callbacks: Any = None, add_history: bool = False, add_progbar: bool = False,
        model: Any = None, **params: Any,
    ) -> None:  # fmt: skip
        given = td.nest.flatten(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
        self.callbacks: list[Any] = [c for c in given if c is not None]
        if add_progbar and not any(isinstance(c, self.progbar) for c in self.callbacks):
            self.callbacks.append(self.progbar())
        if add_history and not any(isinstance(c, History) for c in self.callbacks):
            self.callbacks.append(History())  # the history has what the others add
        self._hooks: dict[str, list[Any]] = {}
        self.set_model(model)
        self.set_params(params)

    progbar: Any = None  # the class of the bar, which `logging` sets

    @property
    def history(self) -> History | None:
        """The `History` among the callbacks."""
        return next((c for c in self.callbacks if isinstance(c, History)), None)

    def append(self, callback: Any) -> None:
        """Add a callback."""
        self.callbacks.append(callback)
        self._hooks = {}

    def __iter__(self) -> Any:
        return iter(self.callbacks)

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        for callback in self.callbacks if model is not None else ():
            callback.set_model(model)

    def set_params(self, params: Mapping[str, Any]) -> None:
        super().set_params(params)
        for callback in self.callbacks if params else ():
            callback.set_params(params)

    def _of(self, hook: str) -> Iterable[Any]:
        """The callbacks that do something in a hook."""
        found = self._hooks.get(hook)
        if found is None:
            general = _TRAIN_BATCH.get(hook, hook)
            found = [c for c in self.callbacks if _overrides(c, hook) or _overrides(c, general)]
            self._hooks[hook] = found
        return found

    def acts_in(self, hook: str) -> bool:
        """Whether a callback does something in a hook."""
        return bool(self._of(hook))

    def _batch(self, hook: str, batch: int, logs: Mapping[str, Any] | None) -> None:
        numbers: Logs | None = None
        for callback in self._of(hook):
            if getattr(callback, "takes_tensors", False):
                getattr(callback, hook)(batch, logs)
                continue
            if numbers is None:
                numbers = in_order(logs) if isinstance(logs, Mapping) else {}
            getattr(callback, hook)(batch, numbers)

    def _whole(self, hook: str, logs: Logs | None) -> None:
        for callback in self._of(hook):
            getattr(callback, hook)(logs)

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._batch("on_train_batch_begin", batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._batch("on_train_batch_end", batch, logs)

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._batch("on_batch_begin", batch, logs)

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._batch("on_batch_end", batch, logs)

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._batch("on_test_batch_begin", batch, logs)

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._batch("on_test_batch_end", batch, logs)

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._batch("on_predict_batch_begin", batch, logs)

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        for callback in self._of("on_predict_batch_end"):
            callback.on_predict_batch_end(batch, logs)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        for callback in self._of("on_epoch_begin"):
            callback.on_epoch_begin(epoch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        logs = in_order(logs)  # callbacks may add to them
        for callback in self._of("on_epoch_end"):
            callback.on_epoch_end(epoch, logs)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._whole("on_train_begin", logs)

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._whole("on_train_end", logs)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._whole("on_test_begin", logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._whole("on_test_end", in_order(logs))

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._whole("on_predict_begin", logs)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._whole("on_predict_end", logs)


class LambdaCallback(Callback):
    """A callback made of functions, and of what else it is to have as attributes."""

    def __init__(
        self, on_epoch_begin: Any = None, on_epoch_end: Any = None, on_train_begin: Any = None,
        on_train_end: Any = None, on_train_batch_begin: Any = None, on_train_batch_end: Any = None,
        **functions: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        functions |= {
            "on_epoch_begin": on_epoch_begin, "on_epoch_end": on_epoch_end,
            "on_train_begin": on_train_begin, "on_train_end": on_train_end,
            "on_train_batch_begin": on_train_batch_begin, "on_train_batch_end": on_train_batch_end,
        }  # fmt: skip
        vars(self).update((name, each) for name, each in functions.items() if each is not None)
