"""Calls of an exported function by ctypes, for the tests."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.spec import Spec


def struct_of(arguments: Sequence[Spec], results: Sequence[Spec]) -> type[ctypes.Structure]:
    """The struct of a function, as its header has it."""
    fields: list[tuple[str, Any]] = []
    for kind, specs in (("a", arguments), ("r", results)):
        for number, spec in enumerate(specs):
            name = f"{kind}{number}"
            if not spec.dims:
                fields.append((name, _scalar(spec)))
                continue
            members: list[tuple[str, Any]] = [("data", ctypes.c_void_p)]
            members += [("room", ctypes.c_int64)] if kind == "r" else []
            members.append(("shape", ctypes.c_int64 * len(spec.dims)))
            fields.append((name, type(f"Array_{name}", (ctypes.Structure,), {"_fields_": members})))
    return type("Call", (ctypes.Structure,), {"_fields_": fields or [("unused", ctypes.c_char)]})


def _scalar(spec: Spec) -> Any:
    """Bytes of the alignment that C gives the number."""
    size = spec.dtype.size
    return {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}[size]


class Caller:
    """An exported function of a loaded library; NULL is passed for all results."""

    def __init__(
        self, exported: Any, name: str, arguments: Sequence[Spec], results: Sequence[Spec]
    ) -> None:
        self.library = ctypes.CDLL(str(exported.library))
        self.prefix = exported.header.stem
        self.function = self.library[exported.functions[name]]
        self.arguments, self.results = arguments, results
        self.kind = struct_of(arguments, results)

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        call, kept = self.kind(), []
        for number, (array, spec) in enumerate(zip(arrays, self.arguments, strict=True)):
            data = np.ascontiguousarray(array, spec.dtype.np_dtype)
            kept.append(data)
            if spec.dims:
                place = getattr(call, f"a{number}")
                place.data = data.ctypes.data
                place.shape[:] = array.shape
            else:
                ctypes.memmove(self._address(call, f"a{number}"), data.ctypes.data, data.nbytes)
        status = self.function(ctypes.byref(call))
        if status:
            error = self.library[f"{self.prefix}_error"]
            error.restype = ctypes.c_char_p
            raise RuntimeError(f"status {status}: {error().decode()}")
        return [self._result(call, number, spec) for number, spec in enumerate(self.results)]

    def _address(self, call: Any, name: str) -> int:
        return ctypes.addressof(call) + getattr(self.kind, name).offset

    def _result(self, call: Any, number: int, spec: Spec) -> np.ndarray:
        kind = spec.dtype.np_dtype
        if not spec.dims:
            return np.frombuffer(
                ctypes.string_at(self._address(call, f"r{number}"), kind.itemsize), kind
            )[0]  # type: ignore[no-any-return]
        place = getattr(call, f"r{number}")
        shape = tuple(place.shape)
        data = ctypes.string_at(place.data, int(np.prod(shape)) * kind.itemsize)
        free = self.library[f"{self.prefix}_free"]
        free(ctypes.c_void_p(place.data))
        return np.frombuffer(data, kind).reshape(shape)
