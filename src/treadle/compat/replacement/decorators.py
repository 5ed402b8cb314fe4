"""Decorators of TensorFlow that only speak to people, which change nothing here, those of its own
tests, and functions that look below decorators."""

from __future__ import annotations

import contextlib
import functools
import inspect
import unittest
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import treadle as td
from treadle.core.origin import at, user_origin


def same(decorated: Any) -> Any:
    """A decorator that leaves functions as they are."""
    return decorated


def unchanged(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """The same, with arguments."""
    return same


def unchanged_test(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The same, with arguments or without."""
    return function if callable(function) else same


def graph_test(decorated: Any = None) -> Any:
    """A decorator of tests, and of classes of tests, that TensorFlow runs in graphs only: each test
    has a graph of its own."""
    if decorated is None:
        return graph_test
    if not isinstance(decorated, type):
        return _in_graph(decorated)
    for name in dir(decorated):
        test = getattr(decorated, name)
        if name.startswith(unittest.TestLoader.testMethodPrefix) and name != "test_session":
            setattr(decorated, name, _in_graph(test))
    return decorated


def _in_graph(test: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> Any:
        with td.Graph().as_default():
            return test(*args, **kwargs)

    return run


def skipped_test(reason: str, decorated: Any = None) -> Any:
    """A decorator of tests that TensorFlow 2 leaves out."""
    skip = unittest.skip(reason)
    return skip if decorated is None else skip(decorated)


@contextlib.contextmanager
def nothing(*args: Any, **kwargs: Any) -> Iterator[None]:
    """A block in which nothing is different."""
    yield


def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, **kwargs: Any) -> Any:
    """What has an older name, without the warning."""
    return func_or_class


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that has two names, of which one may be given.

    Raises:
        ValueError: both are.
    """
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.{at(user_origin())}")
    return old_value


def make_decorator(target: Any, decorator_func: Any, *args: Any, **kwargs: Any) -> Any:
    """A wrapper that passes for what it wraps."""
    made = functools.wraps(target)(decorator_func)
    made._tf_decorator = made  # type: ignore[attr-defined]  # by it `full_arg_spec` knows it
    return made


def _is_transparent(wrapper: Any) -> bool:
    """Whether a wrapper has the arguments of what it wraps: those of treadle's and of
    `make_decorator` have. Others may have fewer, such as a test whose parameters are filled in."""
    if vars(wrapper).get("_tf_decorator") is wrapper:
        return True
    defined = getattr(wrapper, "__globals__", {}).get("__name__") or type(wrapper).__module__
    return str(defined).startswith("treadle.")


def full_arg_spec(function: Any) -> Any:
    """`inspect.getfullargspec` of what is below the wrappers that have its arguments. TensorFlow's
    functions say nothing of types, and libraries compare theirs with them: nor do treadle's here.
    """
    wrapped = getattr(function, "__func__", function)
    while hasattr(wrapped, "__wrapped__") and _is_transparent(wrapped):
        wrapped = wrapped.__wrapped__
    found = inspect.getfullargspec(wrapped)
    own = (getattr(wrapped, "__module__", None) or "").split(".")[0] == "treadle"
    return found._replace(annotations={}) if own else found


class ArgSpec(NamedTuple):
    """Python 2's description of a function's arguments."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def arg_spec(function: Any) -> ArgSpec:
    """The arguments of a function; those that only a name gives are the last of them."""
    found = full_arg_spec(function)
    defaults = (*(found.defaults or ()), *(found.kwonlydefaults or {}).values())
    return ArgSpec(found.args + found.kwonlyargs, found.varargs, found.varkw, defaults or None)


def call_args(function: Any, /, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The arguments of a call by their names, with defaults. Other than with `inspect.getcallargs`
    those of ``**kwargs`` are among the others, and nothing is checked."""
    spec, given = full_arg_spec(function), dict(kwargs)
    own = getattr(function, "__self__", None)
    places = (name for name in spec.args if name not in given)
    given.update(zip(places, args if own is None else (own, *args), strict=False))
    with_default = spec.args[len(spec.args) - len(spec.defaults or ()) :]
    defaults = dict(zip(with_default, spec.defaults or (), strict=True))
    return defaults | (spec.kwonlydefaults or {}) | given


def fn_args(fn: Any) -> tuple[str, ...]:
    """The names of the arguments that a call gives: those that a partial has, and the object of a
    method, are none of them."""
    if isinstance(fn, functools.partial):
        return tuple(name for name in fn_args(fn.func)[len(fn.args) :] if name not in fn.keywords)
    if not inspect.isroutine(fn) and not isinstance(fn, type):
        fn = fn.__call__
    names = full_arg_spec(fn).args
    return tuple(names[1:] if inspect.ismethod(fn) else names)
