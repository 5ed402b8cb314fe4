"""A type of functions that CPython calls through the trampoline, derived from a Python class."""

from __future__ import annotations

import ctypes
import functools
import gc
from collections.abc import Callable, Collection, Hashable
from typing import Any

from treadle.core import locks
from treadle.core.context import modes
from treadle.runtime.cpu.abi import c_function
from treadle.runtime.cpu.dispatch.call_plan import CallPlan
from treadle.runtime.cpu.dispatch.layout import CallLayout, call_layout
from treadle.runtime.cpu.dispatch.table import table

_WORDS = 4  # behind the Python part of an object: vectorcall, first plan, table, room
_TP_CALL, _TP_MEMBERS = 50, 72
_SSIZE, _READONLY = 19, 1
_HAVE_VECTORCALL, _BASETYPE = 1 << 11, 1 << 10


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_Slot)),
    )  # fmt: skip


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


_keep: list[Any] = []
_types: dict[type, type] = {}
_making = locks.lock()


def native_type(base: type) -> type:
    """`base`, with room for a vectorcall pointer in its instances; `base` itself where that is
    not possible.

    Without a pointer CPython calls ``base.__call__``, as before.
    """
    with _making:
        found = _types.get(base)
        if found is None:
            found = _types[base] = base if call_layout() is None else _derive(base)
    return found


def is_native(value: object) -> bool:
    """Whether the object's type is a `native_type`."""
    base = type(value).__base__
    return base is not None and _types.get(base) is type(value)


def _derive(base: type) -> type:
    members = (_Member * 2)(
        _Member(b"__vectorcalloffset__", _SSIZE, base.__basicsize__, _READONLY, None)
    )
    slots = (_Slot * 3)(
        _Slot(_TP_MEMBERS, ctypes.addressof(members)),
        _Slot(_TP_CALL, _slot(base, _TP_CALL)),  # a type with vectorcall must have its own
    )
    name = f"{base.__module__}.{base.__qualname__}".encode()
    size = base.__basicsize__ + 8 * _WORDS
    spec = _Spec(name, size, 0, _HAVE_VECTORCALL | _BASETYPE, slots)
    _keep.extend((members, slots, name, spec))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)(
        c_function("PyType_FromSpecWithBases")
    )
    made: type = make(ctypes.addressof(spec), (base,))
    made.__doc__ = base.__doc__
    _inherit_call(made)
    return made


def _inherit_call(made: type) -> None:
    """Let ``made.__call__`` be the base's again: CPython wrapped the slot, which looks for the
    method, as a method. Assigning or deleting it as an attribute would end vectorcall."""
    (attributes,) = gc.get_referents(made.__dict__)
    del attributes["__call__"]
    ctypes.PYFUNCTYPE(None, ctypes.py_object)(c_function("PyType_Modified"))(made)


def _slot(type_: type, number: int) -> int:
    """The function in a slot of a heap type."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)
    found: int | None = get(c_function("PyType_GetSlot"))(type_, number)
    assert found, (type_, number)
    return found


class Calls:
    """The native plans of one function object, for which `is_native` holds.

    Args:
        modes: plans take calls while this count is 0.
    """

    def __init__(self, function: Any, modes: ctypes.c_int64 = modes) -> None:
        assert is_native(function)
        self._modes = modes
        self._address = id(function)  # not the object: it owns this
        self._base: Any = type(function).__base__
        self._plans: list[tuple[int, CallPlan]] = []  # each with the identity of its owner
        self._forms: set[tuple[int, Hashable]] = set()  # of owners, for which there was an attempt
        self._asked: dict[int, int] = {}  # hits of an owner's plans when last asked for

    @property
    def plans(self) -> list[CallPlan]:
        """In the order in which they are tried."""
        return [plan for _, plan in self._plans]

    def wants(self, owner: object, form: Hashable) -> bool:
        """Whether there is room for a plan for such calls of an owner, and was no attempt yet."""
        return len(self._plans) < MOST_PLANS and (id(owner), form) not in self._forms

    def add(self, owner: object, plan: CallPlan | None, form: Hashable = None) -> bool:
        """Let calls try `plan` after those that are there; there may be none for such calls.

        Returns:
            Whether there is one more plan now.
        """
        self._forms.add((id(owner), form))
        if plan is None:
            return False
        self._plans.append((id(owner), plan))
        self._link()
        return True

    def remove(self, owners: Collection[object]) -> None:
        """Forget the plans of the owners. One whose program is running is freed later."""
        addresses = {id(owner) for owner in owners}
        gone = [plan for address, plan in self._plans if address in addresses]
        self._forms = {entry for entry in self._forms if entry[0] not in addresses}
        if not gone:
            return
        self._plans = [entry for entry in self._plans if entry[0] not in addresses]
        for address in addresses:
            self._asked.pop(address, None)
        self._link()
        for plan in gone:  # a call that has begun to check it goes no further along the chain
            plan.follow_with(None)
        retired[:] = [plan for plan in (*retired, *gone) if plan.is_active]

    def were_called(self, owner: object) -> bool:
        """Whether a plan of the owner took a call since this was asked last."""
        hits = sum(plan.hits for address, plan in self._plans if address == id(owner))
        before, self._asked[id(owner)] = self._asked.get(id(owner), 0), hits
        return hits > before

    def _link(self) -> None:
        """Chain the plans up, the last first: a call may be on its way through the chain."""
        following: CallPlan | None = None
        for _, plan in reversed(self._plans):
            plan.follow_with(following)
            following = plan
        tail = self._base.__basicsize__
        words = (ctypes.c_int64 * _WORDS).from_address(self._address + tail)
        words[2] = ctypes.addressof(table(self._base.__call__, ctypes.addressof(self._modes)))
        words[3] = max((plan.room for plan in self.plans), default=0)
        words[1] = 0 if following is None else following.address
        words[0] = trampoline(tail)


MOST_PLANS = 64  # further signatures are found by the portable path
retired: list[CallPlan] = []


@functools.cache
def trampoline(tail: int) -> int:
    """The address of the trampoline for objects with their words at `tail`."""
    return _code(tail).address("trampoline")  # type: ignore[no-any-return]


@locks.made_once
def _code(tail: int) -> Any:
    from treadle.runtime.cpu.jit import process_jit

    return process_jit().load(*_module(tail))


def _module(tail: int) -> tuple[Callable[[], str], bool, str]:
    """What writes the module, that it stays, and its name."""

    def text() -> str:
        from treadle.runtime.cpu.dispatch.trampoline import trampoline_text
        from treadle.runtime.cpu.target import process_host

        assert layout is not None
        return trampoline_text(layout, tail, process_host())

    layout: CallLayout | None = call_layout()
    assert layout is not None
    return text, True, f"trampoline {tail} {layout.offsets}"


def probe_address(tail: int, name: str = "probe") -> int:
    """A program to try the trampoline with (`call_code.probe`)."""
    return _code(tail).address(name)  # type: ignore[no-any-return]
