"""Installs the native operators on `Tensor`, keeping those in Python for what they do not take."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from treadle.core import locks
from treadle.core.context import eager_modes
from treadle.core.tensor import Tensor
from treadle.runtime.cpu.abi import FASTCALL, MethodDef, c_function
from treadle.runtime.cpu.dispatch.layout import call_layout
from treadle.runtime.cpu.dispatch.self_check import works
from treadle.runtime.cpu.dispatch.table import DTYPES, OPERATORS, RECORD, WORDS, table

_installing = locks.lock()
_installed: dict[str, Any] = {}  # the Python operators
_keep: list[Any] = []


def install() -> bool:
    """Give `Tensor` the native operators, once. Whether it has them."""
    with _installing:
        if not _installed and works():
            _install()
    return bool(_installed)


def uninstall() -> None:
    """Give `Tensor` its Python operators back."""
    with _installing:
        for name, operator in _installed.items():
            setattr(Tensor, name, operator)
        _installed.clear()


def _install() -> None:
    code = _code()
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
        c_function("PyDescr_NewMethod")
    )
    python = {f"__{name}__": Tensor.__dict__[f"__{name}__"] for name in OPERATORS}
    _fill_record(code, python)
    for name in OPERATORS:
        method = f"__{name}__"
        address = code.address(f"operator_{name}")
        definition = MethodDef(method.encode(), address, FASTCALL, None)
        _keep.append(definition)
        setattr(Tensor, method, make(Tensor, ctypes.addressof(definition)))
    _installed.update(python)


@locks.made_once
def _code() -> Any:
    from treadle.runtime.cpu.dispatch.eager_code import eager_text
    from treadle.runtime.cpu.jit import process_jit
    from treadle.runtime.cpu.target import process_host

    layout = call_layout()
    assert layout is not None
    name = f"eager {layout.offsets}"
    return process_jit().load(lambda: eager_text(layout, process_host()), name=name)


_count = ctypes.addressof(eager_modes)


def _fill_record(code: Any, python: dict[str, Any]) -> None:
    words: dict[str, int] = dict(zip(WORDS, table(None, _count), strict=True))
    words |= {f"python{name.strip('_').join(('_', ''))}": id(f) for name, f in python.items()}
    words |= {f"dtype_{name}": id(np.dtype(name)) for name in DTYPES}
    _keep.append(python)
    set_word = ctypes.PYFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(code.address("set_word"))
    for i, name in enumerate(RECORD):
        set_word(i, words[name])
