"""custom_gradient: a function together with its own gradient."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from treadle.autodiff.custom_node import with_gradient
from treadle.autodiff.tape import GradientTape
from treadle.autodiff.values import leaves, subject
from treadle.core import nest
from treadle.core.context import context, taping
from treadle.core.origin import at, user_origin
from treadle.core.refusals import Claimed
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.unary import identity
from treadle.ops.state import Variable


class _VariableWatcher:
    """A tape that only notes which trainable variables are read."""

    is_over = False

    def __init__(self) -> None:
        self.found: dict[int, Variable] = {}

    def record(self, op: Any, inputs: Sequence[Any], attrs: Any, outputs: Sequence[Tensor]) -> None:
        for x in map(subject, inputs):
            if isinstance(x, Variable) and x.trainable:
                self.found[id(x)] = x

    def watches(self, x: Any) -> bool:
        """Trainable variables are noted wherever they are read."""
        return isinstance(x, Variable) and x.trainable

    def extend(self, output: Tensor, more: Sequence[Tensor]) -> None:
        """Nothing is kept of operations."""

    def mark(self) -> int:
        """None of them."""
        return 0

    def forget_since(self, mark: int) -> None:
        """Variables that were read stay known."""


def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """Give a function a gradient of its own.

    Args:
        f: ``f(*args)`` returns ``(result, grad_fn)``. ``grad_fn(*result_grads)`` takes a gradient
            for each tensor of the result and returns one for each argument. Where f uses
            trainable variables, grad_fn is called with ``variables=[...]`` and returns
            ``(argument_grads, variable_grads)``.

    Returns:
        A function that returns `result`, with the gradient that grad_fn gives. The gradient of
        the gradient follows the operations that grad_fn runs. It may call the function itself: in
        a `td.function` it has three derivatives then.

    Raises (from the wrapped function):
        TypeError: variables are used and grad_fn takes no argument ``variables``.
        ValueError: grad_fn returns too few or too many gradients.
    """
    if f is None:
        return custom_gradient
    function = f

    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        inputs = nest.flatten(args)
        try:
            tensors = [convert_to_tensor(x) for x in inputs]
        except Claimed as claimed:  # tensors of graphs of TensorFlow 1
            return claimed.take(decorated, args, kwargs)
        watcher = _VariableWatcher()
        with taping((*context.tapes, watcher)):
            result, grad_fn = _call(function, args, kwargs)
        given = {id(x) for x in (*inputs, *nest.flatten(kwargs))}
        variables = [v for v in watcher.found.values() if id(v) not in given]
        if variables and not _takes_variables(grad_fn):
            names = ", ".join(v.name for v in variables)
            raise TypeError(
                "@td.custom_gradient grad_fn must accept keyword argument 'variables', since "
                f"{_name(function)} uses variables: {names}{at(user_origin())}"
            )
        results = [convert_to_tensor(x) for x in nest.flatten(result)]

        def gradient(*output_grads: Any) -> list[Any]:
            return _input_gradients(function, grad_fn, len(tensors), variables, output_grads)

        # Functions that are made again for each call have one code.
        code = getattr(inspect.unwrap(function), "__code__", function)
        sources = [*tensors, *variables]
        outputs = with_gradient(_name(function), results, sources, gradient, code)
        return nest.pack(result, outputs)

    return decorated


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _call(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    returned = function(*args, **kwargs)
    if not isinstance(returned, tuple) or len(returned) != 2 or not callable(returned[1]):
        raise TypeError(
            f"@td.custom_gradient: {_name(function)} must return (result, grad_fn), got "
            f"{type(returned).__name__}{at(user_origin())}"
        )
    return returned


def _takes_variables(grad_fn: Any) -> bool:
    parameters = inspect.signature(grad_fn).parameters
    return "variables" in parameters or any(
        p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()
    )


def _input_gradients(
    function: Any, grad_fn: Any, count: int, variables: list[Variable], output_grads: Any
) -> list[Any]:
    if variables:
        gradients, of_variables = grad_fn(*output_grads, variables=variables)
        of_variables = leaves(of_variables)
        if len(of_variables) != len(variables):
            raise ValueError(
                "Must return gradient for each variable from @custom_gradient grad_fn: "
                f"{_name(function)} uses {len(variables)} and {len(of_variables)} were returned."
            )
    else:
        gradients, of_variables = grad_fn(*output_grads), []
    flat = leaves(gradients)
    if len(flat) != count:
        raise ValueError(
            f"custom_gradient function expected to return {count} gradients, but returned "
            f"{len(flat)} instead ({_name(function)})."
        )
    return [None if g is None else convert_to_tensor(g) for g in (*flat, *of_variables)]


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with a gradient that runs f again instead of keeping its intermediate values.

    The arguments must be tensors (or nested structures of them); variables are handled too.
    """

    @functools.wraps(f)
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        try:
            tensors = [convert_to_tensor(x) for x in nest.flatten(args)]
        except Claimed as claimed:  # tensors of graphs of TensorFlow 1
            return claimed.take(recomputed, args, kwargs)

        @custom_gradient
        def inner(*flat: Any) -> Any:
            with taping(tuple(t for t in context.tapes if isinstance(t, _VariableWatcher))):
                result = f(*nest.pack(args, flat), **kwargs)

            def grad_fn(*output_grads: Any, variables: Sequence[Variable] = ()) -> Any:
                own = [identity(x) for x in flat]  # one tensor may be given twice
                with GradientTape() as tape:
                    tape.watch(own)
                    again = nest.flatten(f(*nest.pack(args, own), **kwargs))
                sources = [*own, *variables]
                gradients = tape.gradient(again, sources, output_gradients=list(output_grads))
                if not variables:
                    return gradients
                return gradients[: len(own)], gradients[len(own) :]

            return result, grad_fn

        return inner(*tensors)

    return recomputed


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with the gradient of the identity: the result's gradient is the argument's."""

    @custom_gradient
    @functools.wraps(f)
    def passing(*args: Any, **kwargs: Any) -> Any:
        def grad_fn(*output_grads: Any, variables: Sequence[Variable] | None = None) -> Any:
            if variables is not None:
                return output_grads, [None] * len(variables)
            return output_grads

        return f(*args, **kwargs), grad_fn

    return passing  # type: ignore[no-any-return]
