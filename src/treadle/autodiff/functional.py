"""Gradients as functions of functions, as in the first TensorFlow Eager (``tfe``)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from treadle.autodiff.tape import GradientTape
from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.state import Variable


def value_and_gradients_function(
    f: Callable[..., Any], params: Sequence[str | int] | None = None
) -> Callable[..., tuple[Any, list[Any]]]:
    """A function that gives ``f(*args)`` and its gradients with respect to the arguments.

    Args:
        f: returns a tensor or a structure of them; the gradient is that of their sum.
        params: names or positions of the arguments to differentiate by; all when omitted.

    Returns:
        ``g(*args, dy=None, **kwargs)``; `dy` weights the elements of the result. Gradients are in
        the order of `params`.
    """

    with_vjp = make_vjp(f, params)

    @functools.wraps(f)
    def decorated(*args: Any, dy: Any = None, **kwargs: Any) -> tuple[Any, list[Any]]:
        value, vjp = with_vjp(*args, **kwargs)
        return value, vjp(dy)

    return decorated


def gradients_function(
    f: Callable[..., Any], params: Sequence[str | int] | None = None
) -> Callable[..., list[Any]]:
    """A function that gives the gradients of `f` with respect to its arguments, as a list.

    See `value_and_gradients_function`. It may be applied again for higher derivatives.
    """
    both = value_and_gradients_function(f, params)

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> list[Any]:
        return both(*args, **kwargs)[1]

    return decorated


def make_vjp(
    f: Callable[..., Any], params: Sequence[str | int] | None = None, persistent: bool = True
) -> Callable[..., tuple[Any, Callable[..., list[Any]]]]:
    """A function that gives ``f(*args)`` and its vector-Jacobian product.

    Returns:
        ``g(*args)`` giving ``(value, vjp)``, where ``vjp(dy=None)`` gives the gradients for the
        arguments in `params`.
    """
    positions = _positions(f, params)

    def decorated(*args: Any, **kwargs: Any) -> tuple[Any, Callable[..., list[Any]]]:
        tensors = [x if isinstance(x, Variable) else _tensors(x) for x in args]
        chosen = range(len(args)) if positions is None else positions
        sources = [tensors[i] for i in chosen]
        with GradientTape(persistent=persistent) as tape:
            tape.watch(sources)
            value = f(*tensors, **kwargs)
        if value is None:
            raise ValueError(
                f"Cannot differentiate a function that returns None; did you forget to return a "
                f"value from {getattr(f, '__name__', f)}?{at(user_origin())}"
            )

        def vjp(dy: Any = None) -> list[Any]:
            result: list[Any] = tape.gradient(value, sources, output_gradients=dy)
            return result

        return value, vjp

    return decorated


def _tensors(value: Any) -> Any:
    return nest.map_structure(
        lambda x: x if isinstance(x, Tensor | Variable) else convert_to_tensor(x), value
    )


def _positions(f: Callable[..., Any], params: Sequence[str | int] | None) -> list[int] | None:
    """The argument positions that `params` names.

    Raises:
        ValueError: an argument of that name does not exist, or one is given twice.
    """
    if params is None:
        return None
    names = list(inspect.signature(f).parameters)
    positions = []
    for param in params:
        if isinstance(param, str):
            if param not in names:
                raise ValueError(f"{param!r} is not an argument of the function: {names}")
            param = names.index(param)
        positions.append(param)
    if len(set(positions)) != len(positions):
        raise ValueError(f"params {list(params)} name an argument twice")
    return positions


def implicit_value_and_gradients(f: Callable[..., Any]) -> Callable[..., tuple[Any, list[Any]]]:
    """A function that gives ``f(*args)`` and (gradient, variable) pairs for the trainable
    variables that f reads, ready for an optimizer's ``apply_gradients``.

    Raises (from the returned function):
        ValueError: f returns None, or reads no trainable variable.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        with GradientTape() as tape:
            value = f(*args, **kwargs)
        name = getattr(f, "__name__", f)
        if value is None:
            raise ValueError(f"{name} returned None: there is nothing to differentiate")
        variables = tape.watched_variables()
        if not variables:
            raise ValueError(
                f"No trainable variables were accessed while {name} was computed, so there is "
                f"nothing to differentiate by{at(user_origin())}"
            )
        gradients = tape.gradient(value, list(variables))
        return value, list(zip(gradients, variables, strict=True))

    return decorated


def implicit_gradients(f: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A function that gives (gradient, variable) pairs for the variables that `f` reads."""
    both = implicit_value_and_gradients(f)

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> list[Any]:
        return both(*args, **kwargs)[1]

    return decorated
