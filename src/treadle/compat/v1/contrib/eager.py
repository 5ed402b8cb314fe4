"""``td.compat.v1.contrib.eager``: the first release of eager execution.

    import treadle.compat.v1.contrib.eager as tfe
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from collections.abc import Iterator as PythonIterator
from typing import Any

import treadle as td
from treadle.compat.v1 import app, scopes
from treadle.compat.v1.contrib import summary
from treadle.compat.v1.custom_gradients import custom_gradient as custom_gradient
from treadle.compat.v1.functions import enable_eager_execution as enable_eager_execution
from treadle.compat.v1.functions import executing_eagerly as executing_eagerly
from treadle.compat.v1.train.saver import Saver as _Saver
from treadle.names import missing_in

Variable = td.Variable
in_eager_mode = executing_eagerly
defun = td.function
py_func = td.py_function


def num_gpus() -> int:
    """How many GPUs there are."""
    return len(td.config.list_logical_devices("GPU"))


def list_devices() -> list[str]:
    """The names of devices."""
    return [d.name for d in td.config.list_logical_devices()]


def seterr(inf_or_nan: str | None = None) -> None:
    """Accepted: errors are raised where they happen."""


def _positions(function: Callable[..., Any], params: Any, count: int) -> list[int]:
    """The numbers of the arguments to differentiate by."""
    if params is None:
        return list(range(count))
    names = list(inspect.signature(function).parameters)
    return [names.index(p) if isinstance(p, str) else int(p) for p in params]


def value_and_gradients_function(f: Callable[..., Any], params: Any = None) -> Callable[..., Any]:
    """A function that gives the value of `f` and its gradients by its arguments, or by some of
    them (names or positions). Its argument `dy` weighs the elements of the value."""

    @functools.wraps(f)
    def compute(*args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        dy = kwargs.pop("dy", None)
        chosen = _positions(f, params, len(args))
        given = [td.convert_to_tensor(x) if i in chosen else x for i, x in enumerate(args)]
        sources = [given[i] for i in chosen]
        with td.GradientTape() as tape:
            for x in sources:
                tape.watch(x)
            value = f(*given, **kwargs)
        found = tape.gradient(
            value, sources, dy, unconnected_gradients=td.UnconnectedGradients.ZERO
        )
        return value, list(found)

    return compute


def gradients_function(f: Callable[..., Any], params: Any = None) -> Callable[..., Any]:
    """A function that gives the gradients of `f` by its arguments, or by some of them."""
    both = value_and_gradients_function(f, params)

    @functools.wraps(f)
    def compute(*args: Any, **kwargs: Any) -> list[Any]:
        return both(*args, **kwargs)[1]  # type: ignore[no-any-return]

    return compute


def implicit_value_and_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives the value of `f`, and pairs of a gradient and a variable for the
    trainable variables that it uses.

    Raises:
        ValueError: it uses none.
    """

    @functools.wraps(f)
    def compute(*args: Any, **kwargs: Any) -> tuple[Any, list[tuple[Any, Any]]]:
        with td.GradientTape() as tape:
            value = f(*args, **kwargs)
        if value is None:
            raise ValueError(
                f"Cannot differentiate a function that returns None; did you forget to return a "
                f"value from {getattr(f, '__name__', f)}?"
            )
        variables = list(tape.watched_variables())
        if not variables:
            raise ValueError(
                "No trainable variables were accessed while the function was being computed."
            )
        return value, list(zip(tape.gradient(value, variables), variables, strict=True))

    return compute


def implicit_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives pairs of a gradient of `f` and a variable, for `apply_gradients`."""
    both = implicit_value_and_gradients(f)

    @functools.wraps(f)
    def compute(*args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        return both(*args, **kwargs)[1]  # type: ignore[no-any-return]

    return compute


def make_template(name_: str, func_: Callable[..., Any], **kwargs: Any) -> Any:
    """See `treadle.compat.v1.make_template`."""


    return scopes.make_template(name_, func_, **kwargs)


class Iterator:
    """The elements of a pipeline, one after the other."""

    def __init__(self, dataset: Any) -> None:
        self._elements: PythonIterator[Any] = iter(dataset)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    next = __next__

    def get_next(self) -> Any:
        """The next element; OutOfRangeError at the end."""
        try:
            return next(self._elements)
        except StopIteration:
            raise td.errors.OutOfRangeError(None, None, "End of sequence") from None


class Saver:
    """Saves and restores variables by their names.

    Args:
        var_list: the variables.
    """

    def __init__(self, var_list: Any) -> None:
        self._saver = _Saver(var_list)

    def save(self, file_prefix: Any, global_step: Any = None) -> str:
        """Write the values; the name that `restore` takes."""
        return self._saver.save(None, file_prefix, global_step, write_meta_graph=False)

    def restore(self, file_prefix: Any) -> None:
        """Give the variables the values of a file."""
        self._saver.restore(None, file_prefix)


class Network:
    """A model whose layers are tracked: `variables` has those of all of them.

    A class makes layers in ``__init__`` by `track_layer`, and has `call`.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name or type(self).__name__.lower()
        self._layers: list[Any] = []

    def track_layer(self, layer: Any) -> Any:
        """Track a layer or network, and give it back."""
        self._layers.append(layer)
        return layer

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    @property
    def layers(self) -> tuple[Any, ...]:
        return tuple(self._layers)

    @property
    def variables(self) -> list[Any]:
        return [v for layer in self._layers for v in layer.variables]

    @property
    def trainable_variables(self) -> list[Any]:
        return [v for layer in self._layers for v in layer.trainable_variables]

    weights, trainable_weights = variables, trainable_variables

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """A layer by its name or number."""
        if index is not None:
            return self._layers[index]
        return next(layer for layer in self._layers if layer.name == name)


class Sequential(Network):
    """Layers one behind the other."""

    def __init__(self, layers_funcs: Any = None, name: str | None = None) -> None:
        super().__init__(name)
        self._calls = [
            self.track_layer(f) if hasattr(f, "variables") else f for f in layers_funcs or ()
        ]

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        for function in self._calls:
            inputs = function(inputs)
        return inputs


def save_network_checkpoint(network: Network, save_path: Any, global_step: Any = None) -> str:
    """Save the variables of a network."""
    return Saver(_named(network)).save(save_path, global_step)


def restore_network_checkpoint(network: Network, save_path: Any) -> None:
    """Restore the variables of a network."""
    Saver(_named(network)).restore(save_path)


def _named(network: Network) -> dict[str, Any]:
    return {v.name.removesuffix(":0"): v for v in network.variables}


class metrics:
    """Metrics that are called with batches."""

    class Metric:
        """``metric(...)`` takes a batch; `result` is the metric of all so far."""

        def __init__(self, name: str | None = None) -> None:
            self.name = name or type(self).__name__.lower()
            self.init_variables()

        def init_variables(self) -> None:
            """Begin anew."""
            self.numer, self.denom = td.Variable(0.0, False), td.Variable(0.0, False)

        def call(self, *args: Any, **kwargs: Any) -> Any:
            """Take a batch."""
            raise NotImplementedError

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self.call(*args, **kwargs)

        def result(self) -> Any:
            """The metric so far, which is also written as a summary of the metric's name."""
            found = self.numer.read_value() / self.denom.read_value()
            summary.scalar(self.name, found)
            return found

        @property
        def variables(self) -> list[Any]:
            return [self.numer, self.denom]

    class Mean(Metric):
        """The weighted mean."""

        def call(self, values: Any, weights: Any = None) -> Any:
            values = td.cast(values, td.float32)
            each = td.ones_like(values) if weights is None else td.cast(weights, td.float32)
            each = each * td.ones_like(values)
            self.numer.assign_add(td.reduce_sum(values * each))
            self.denom.assign_add(td.reduce_sum(each))
            return values

    class Accuracy(Mean):
        """How often predictions are labels."""

        def call(  # type: ignore[override]
            self, labels: Any, predictions: Any, weights: Any = None
        ) -> Any:
            same = td.equal(td.convert_to_tensor(labels), td.convert_to_tensor(predictions))
            super().call(td.cast(same, td.float32), weights)
            return labels, predictions


def run(main: Any = None, argv: Any = None) -> None:
    """Enable eager execution, and run the program: see `app.run`."""


    enable_eager_execution()
    app.run(main, argv)

__getattr__ = missing_in(__name__)
