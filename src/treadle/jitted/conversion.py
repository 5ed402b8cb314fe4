"""From Python functions to the converted ones that run while a jitted function is traced.

AutoGraph's generated code runs with this package's operators and with `Globals` for its names. A
function that AutoGraph leaves as it is gets the names alone.
"""

from __future__ import annotations

import collections
import dis
import functools
import types
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from treadle.autograph import config
from treadle.autograph.generated import AG
from treadle.autograph.twins import template_of
from treadle.core.origin import LINE_MAPS
from treadle.jitted.arrays import is_traced
from treadle.jitted.later import later
from treadle.jitted.namespace import Globals, add_stand_in, stand_in
from treadle.jitted.python_lists import list_method, tuple_method
from treadle.jitted.recursion import note_source, stacked
from treadle.jitted.run_texts import text_method
from treadle.jitted.tables import method_of

_METHODS: dict[type, Callable[..., Any]] = {
    dict: method_of, set: method_of, list: list_method, collections.Counter: method_of,
    collections.defaultdict: method_of, str: text_method, tuple: tuple_method,
}  # fmt: skip
_GENERATORS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_converted: WeakKeyDictionary[types.FunctionType, types.FunctionType] = WeakKeyDictionary()
_with_stack: WeakKeyDictionary[types.FunctionType, types.FunctionType] = WeakKeyDictionary()


def call(target: Any) -> Any:
    """The function that is called in place of `target`: the user's are converted, too."""
    target = stand_in(target)
    inner = getattr(target, "__treadle_jitted__", None) or config.numba_function(target)
    if inner is not None:
        return call(inner)
    if isinstance(target, types.FunctionType):
        return convert(target)
    if isinstance(target, types.MethodType):
        function, owner = target.__func__, target.__self__
        if isinstance(owner, type) and stand_in(owner) is not owner:
            return getattr(stand_in(owner), target.__name__)
        if not isinstance(function, types.FunctionType):
            return target
        return types.MethodType(convert(function), target.__self__)
    if isinstance(target, functools._lru_cache_wrapper):
        return _looking(target)
    if isinstance(target, functools.partial):
        return functools.partial(call(target.func), *target.args, **target.keywords)
    if isinstance(target, type | types.BuiltinFunctionType):
        owner = getattr(target, "__self__", None)
        of_owner = _METHODS.get(type(owner)) if not isinstance(target, type) else None
        return of_owner(owner, target.__name__, target) if of_owner is not None else target
    method = getattr(type(target), "__call__", None)  # noqa: B004
    if isinstance(method, types.FunctionType) and not config.is_library_object(method):
        return types.MethodType(convert(method), target)
    return target


later.convert = call


def _looking(target: Any) -> Callable[..., Any]:
    """A function under `functools.cache`: Python knows the results of arguments that it knows. Of a
    function that is made during the trace they may be of the branch that is traced."""
    function = target.__wrapped__
    is_own = function.__code__.co_filename in LINE_MAPS
    known = vars(target).setdefault("__treadle_known__", {}) if is_own else {}

    def called(*args: Any, **options: Any) -> Any:
        if is_traced([*args, *options.values()]):
            return call(function)(*args, **options)
        if not is_own:
            return target(*args, **options)
        key = args, tuple(sorted(options.items()))
        if key in known:
            return known[key]
        found = function(*args, **options)
        if not is_traced(found):
            known[key] = found
        return found

    return called


def convert(function: types.FunctionType) -> Callable[..., Any]:
    """The converted form of a function of the user's; a library's function as it is."""
    code = function.__code__
    if (
        config.is_library_object(function)
        or code.co_filename in LINE_MAPS  # defined inside a converted function
        or code.co_flags & _GENERATORS
    ):
        return function
    has_stack = code in stacked.codes
    known = _with_stack if has_stack else _converted
    made = known.get(function)
    if made is None or made.__globals__.real is not function.__globals__:  # type: ignore[attr-defined]
        made = known[function] = _instantiated(function, has_stack)
    return made


def _instantiated(function: types.FunctionType, has_stack: bool) -> types.FunctionType:
    _check_globals(function.__code__)
    template = template_of(function, optional=True, stacked=has_stack)
    code = template.code or function.__code__
    original = function.__code__
    note_source(code, original)
    cells = {
        name: _cell(cell)
        for name, cell in zip(original.co_freevars, function.__closure__ or (), strict=True)
    }
    cells[AG] = types.CellType(later.operators)
    made = types.FunctionType(
        code,
        Globals(function.__globals__),
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def _reduce(function: Any, iterable: Any, *initial: Any) -> Any:
    """``functools.reduce``, which calls the function from C."""
    return functools.reduce(call(function), iterable, *initial)


add_stand_in(functools.reduce, _reduce)


def _check_globals(code: types.CodeType) -> None:
    """Refuse code that assigns a global variable: only the trace would do it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            line = instruction.positions and instruction.positions.lineno
            raise TypeError(
                f"{code.co_qualname} assigns the global variable {instruction.argval!r}, which "
                "td.jit would do once for many calls: return the value instead\n"
                f"  at {code.co_filename}:{line}"
            )
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _check_globals(constant)


def _cell(cell: types.CellType) -> types.CellType:
    """The variable of an outer function; one that holds NumPy's own things holds stand-ins."""
    try:
        held = cell.cell_contents
    except ValueError:  # not assigned yet
        return cell
    if isinstance(held, np.ndarray):
        return cell
    made = stand_in(held)
    return cell if made is held else types.CellType(made)
