"""What is said where a public function does not take its arguments.

The functions check what users get wrong every day, and say so in words of their own. Of everything
else Python or NumPy complains somewhere inside, in words about the inside: `explained` adds the
function, its arguments and the user's line, and gives exceptions that say something about the
library the type of a wrong argument.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
from types import FunctionType, TracebackType
from typing import Any, TypeAlias

import numpy as np

from treadle.core.context import context
from treadle.core.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from treadle.core.origin import at, is_internal, user_origin

# Packages of functions of tensors: what they export under a public name is explained.
_EXPLAINED = (
    "treadle.ops.", "treadle.numpy_staging.", "treadle.signal.", "treadle.image.",
    "treadle.ragged.", "treadle.sparse.", "treadle.debugging", "treadle.graph.vectorized",
    "treadle.core.tensor", "treadle.core.dtypes", "treadle.io.", "treadle.train.",
    "treadle.summary.", "treadle.profiler.", "treadle.autodiff.graph_gradients",
)  # fmt: skip
_LOCATED = re.compile(r"\n  at .+:\d+")
_BELOW = tuple(os.path.dirname(str(module.__file__)) + os.sep for module in (np, os))
_MOST = 4  # arguments that a message shows
_explained: dict[Any, Any] = {}  # function -> the one that explains its errors
# Gives what is to be called instead of a function for these arguments, or None.
Target: TypeAlias = "Callable[[tuple[Any, ...], dict[str, Any]], Callable[[], Any] | None]"
_targets: dict[Any, list[Target]] = {}  # function that explains errors -> its targets
_targets_of_all: list[Callable[[Any], Target | None]] = []  # see `hand_over`


class Claimed(TypeError):
    """What a value raises that is not to be converted here: the call of the public function belongs
    to ``take(function, args, kwargs)``. Elsewhere it is a TypeError as others are."""

    def __init__(self, message: str, take: Callable[[Any, Any, Any], Any]) -> None:
        super().__init__(message)
        self.take = take


class NotYetKnown(ValueError):
    """What a trace raises where a number that decides how many axes a result has is known to a run
    only: the rank of a tensor, an axis, or the length of a vector of sizes, axes or positions.

    The public function whose call it ends may be called by the run instead (`take`).

    Attributes:
        dim: the length, if it is one.
        axis: the symbolic tensor that tells the axis, if it is one.
    """

    # Gives the result of a call that the run makes; raises the exception where there is none.
    run_later: Callable[[NotYetKnown, Any, Any, Any], Any]

    def __init__(self, message: str, dim: Any = None, axis: Any = None) -> None:
        super().__init__(message)
        self.dim, self.axis = dim, axis

    def take(self, function: Any, args: Any, kwargs: Any) -> Any:
        """The result of a call of `function` that this exception has ended."""
        return NotYetKnown.run_later(self, function, args, kwargs)


def explain_errors(module: str) -> None:
    """Replace the functions that a public module exports by ones whose errors are explained."""
    names = vars(sys.modules[module])
    for name, value in list(names.items()):
        if name[:1] != "_":
            names[name] = explaining(value, module)


def explain_methods(*classes: type) -> None:
    """The same for the methods of classes, but for operators."""
    for kind in classes:
        for name, value in list(vars(kind).items()):
            if name[:1] != "_" and type(value) is FunctionType:
                setattr(kind, name, explaining(value, value.__module__))


def explaining(function: Any, module: str) -> Any:
    """`function` with its errors explained, which `module` exports; other values are given back."""
    if type(function) is not FunctionType or not function.__module__.startswith(_EXPLAINED):
        return function
    if function in _explained:
        return _explained[function]
    targets: list[Target] = []

    @functools.wraps(function)
    def _call(*args: Any, **kwargs: Any) -> Any:
        try:
            if targets:
                found = dispatched(targets, args, kwargs)
                if found is not NotImplemented:
                    return found
            if kwargs and context.recorder is not None and type(kwargs.get("name")) is str:
                call = functools.partial(function, *args, **kwargs)
                return context.recorder.call_named(call, kwargs["name"])
            return function(*args, **kwargs)
        except Exception as error:
            if isinstance(error, Claimed | NotYetKnown):
                return error.take(_call, args, kwargs)
            told = explained(error, function.__name__, args, kwargs)
            if told is error:
                raise
            raise told.with_traceback(error.__traceback__) from None

    _call.__module__ = module
    _explained[function] = _call
    _targets[_call] = targets
    for target_of in _targets_of_all:
        targets += filter(None, [target_of(_call)])
    return _call


def hand_over(target_of: Callable[[Any], Target | None]) -> None:
    """Hand calls of public functions, of those too that are explained later, to targets first.

    Args:
        target_of: gives the target of a function, or None.
    """
    _targets_of_all.append(target_of)
    for function, targets in list(_targets.items()):
        targets += filter(None, [target_of(function)])


def targets_of(function: Any) -> list[Target] | None:
    """What calls of a public function are handed to first; None for another function."""
    try:
        return _targets.get(function)
    except TypeError:  # it has no hash
        return None


def dispatched(targets: list[Target], args: Any, kwargs: Any) -> Any:
    """The result of the target that takes the arguments; NotImplemented where there is none.

    Raises:
        ValueError: more than one takes them.
    """
    calls = [call for target in targets if (call := target(args, kwargs)) is not None]
    if len(calls) > 1:
        raise ValueError(f"Multiple dispatch targets take these arguments{at(user_origin())}")
    return calls[0]() if calls else NotImplemented


def explained(error: Exception, name: str, args: Any, kwargs: Any) -> Exception:
    """`error` where it tells the user's line or is an exception of the user's own code; else one of
    a documented type that names the function, its arguments and the line."""
    text = str(error)
    if _LOCATED.search(text) or not _is_ours(error.__traceback__):
        return error
    kind = _documented(error)
    if kind is None:
        return error
    shown = [_shown(x) for x in args] + [f"{k}={_shown(v)}" for k, v in kwargs.items()]
    if len(shown) > _MOST:
        shown[_MOST:] = ["..."]
    head = "" if text.startswith(f"{name}(") else f"{name}({', '.join(shown)}): "
    message = f"{head}{text or type(error).__name__}{at(user_origin())}"
    if issubclass(kind, OpError):
        node, op = getattr(error, "node_def", None), getattr(error, "op", None)
        return kind(node, op, message)  # type: ignore[no-any-return]
    return kind(message)  # type: ignore[no-any-return]


def _documented(error: Exception) -> Any:
    """The type that an exception about arguments has; None for one that says something else."""
    if isinstance(error, OpError):
        return type(error)
    match error:
        case NotImplementedError():
            return NotImplementedError
        case TypeError() | AttributeError():
            return TypeError
        case ValueError() | IndexError() | KeyError() | ArithmeticError() | RecursionError():
            return type(error) if type(error) is ValueError else InvalidArgumentError
        case MemoryError():
            return ResourceExhaustedError
        case AssertionError() | RuntimeError():
            return InvalidArgumentError
    return InvalidArgumentError if type(error).__module__.startswith("numpy.") else None


def _is_ours(traceback: TracebackType | None) -> bool:
    """Whether only treadle, NumPy and Python's library ran where an exception was raised: below
    the first frame, no code of the user's, such as the function that td.map_fn calls."""
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if not (is_internal(filename) or filename.startswith((*_BELOW, "<frozen", "<__array"))):
            return False
        traceback = traceback.tb_next
    return True


def _shown(x: Any) -> str:
    """An argument in a few words."""
    spec = getattr(x, "spec", None)
    if spec is not None:
        return str(spec)
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)}"
    try:
        text = repr(x)
    except Exception:  # of an object of the user's, or a list of a thousand levels
        text = f"<{type(x).__name__}>"
    return text if len(text) <= 60 else f"{text[:57]}..."
