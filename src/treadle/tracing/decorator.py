"""`function`: turns a Python function into one that runs cached, compiled graphs."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar, overload

from treadle.ops.composed import programs
from treadle.tracing.function import BoundFunction, Function
from treadle.tracing.methods import inside

_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def function(func: _F) -> Function: ...


@overload
def function(
    func: None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    max_traces: int | None = None,
) -> Callable[[Callable[..., Any]], Function]: ...


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    max_traces: int | None = None,
) -> Any:
    """Compile a Python function into graphs, one per signature; usable as a decorator.

    The first call with a new signature traces the function: it runs once in Python with symbolic
    tensors, its operations are recorded and compiled to native code. Later calls with that
    signature run the compiled program. Python side effects therefore happen once per trace.

    Args:
        func: the function; without it a decorator is returned.
        input_signature: nested `TensorSpec`s that every call is converted to: one trace. None in
            a shape stands for any size.
        autograph: whether Python `if`, `while`, `for` on tensors become graph control flow.
        jit_compile: accepted for TensorFlow programs; treadle always compiles.
        reduce_retracing: let dims that differ between calls become symbolic instead of retracing.
        experimental_attributes: TensorFlow's attributes of functions, of which those that choose
            among functions by device mean something (`treadle.tracing.implementations`).
        experimental_*: the others are accepted for TensorFlow programs.
        max_traces: how many traces are kept; beyond that the ones not used for longest are freed
            and traced again when needed. `td.config.set_max_traces` sets the default.

    Raises:
        TypeError: `func` is not callable or `input_signature` does not fit it.
    """
    reduce_retracing = bool(reduce_retracing or experimental_relax_shapes)

    def decorate(fn: Any) -> Any:
        wrapped = inside(fn, decorate)
        if wrapped is not None:
            return wrapped
        if isinstance(fn, Function):
            fn = fn.python_function
        elif isinstance(fn, MethodType) and isinstance(fn.__func__, BoundFunction):
            fn = MethodType(fn.__func__.python_function.__func__, fn.__self__)  # type: ignore[attr-defined]
        if not callable(fn):
            raise TypeError(f"function() needs a callable, got {fn!r}")
        return Function(
            fn, input_signature, autograph, jit_compile, reduce_retracing,
            max_traces=max_traces, attributes=experimental_attributes,
        )  # fmt: skip

    return decorate if func is None else decorate(func)


def _run_composed(called: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """See `treadle.tracing.composed_calls`."""
    from treadle.tracing.composed_calls import run_composed

    programs.run = run_composed
    return run_composed(called, args, kwargs)


programs.run = _run_composed
