"""The words through which the trampoline reaches the interpreter: its code holds no address."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from treadle.core import locks
from treadle.core.context import modes
from treadle.core.tensor import Tensor
from treadle.runtime.cpu.abi import c_function
from treadle.runtime.cpu.dispatch.layout import call_layout
from treadle.runtime.cpu.kept_arrays import handler, set_handler_address

# `new_array` and `new_scalar` are NumPy's functions, `handler` is what allocates large results, and
# `set_handler` NumPy's function that lets it. `modes` points to the count of traces and tapes at
# work: plans are for calls without them.
OBJECTS = {
    "Tensor": Tensor, "ndarray": np.ndarray, "list": list, "tuple": tuple, "dict": dict,
    "float": float, "int": int, "None": None,
}  # fmt: skip
FUNCTIONS = (
    "Py_IncRef", "Py_DecRef", "PyType_GenericAlloc", "PyList_New", "PyTuple_New", "PyDict_New",
    "PyDict_SetItem", "PyDict_GetItemWithError", "PyObject_RichCompareBool", "PyObject_Vectorcall",
    "PyObject_CallNoArgs", "PyObject_CallOneArg", "PyErr_Occurred", "PyErr_Clear",
    "PyErr_SetObject",
    "PyLong_AsLongLongAndOverflow", "PyLong_FromLongLong", "PyFloat_FromDouble",
    "PyComplex_FromDoubles", "PyBool_FromLong",
)  # fmt: skip
WORDS = (
    "modes", "new_array", "new_scalar", "portable", "set_handler", "handler", *OBJECTS, *FUNCTIONS,
)  # fmt: skip

# The native operators of eager tensors, and for which dtypes they are. Their record has the words
# of the table, the operators in Python, and the dtypes.
OPERATORS = ("add", "sub", "mul", "truediv", "radd", "rsub", "rmul", "rtruediv")
DTYPES = ("f4", "f8", "i4", "i8")
RECORD = (
    *WORDS, *(f"python_{name}" for name in OPERATORS), *(f"dtype_{name}" for name in DTYPES),
)  # fmt: skip


def position(name: str) -> int:
    return WORDS.index(name)


@locks.made_once
def table(portable: Any, count: int = ctypes.addressof(modes)) -> Any:
    """The table for a type of functions.

    Args:
        portable: the function that takes calls that no plan takes.
        count: the address of a count of modes; plans take calls while it is 0.
    """
    found = call_layout()
    assert found is not None
    words = (ctypes.c_int64 * len(WORDS))()
    words[position("modes")] = count
    words[position("new_array")] = found.new_array
    words[position("new_scalar")] = found.new_scalar
    words[position("portable")] = id(portable)
    kept = handler()
    if kept is not None:
        words[position("set_handler")] = set_handler_address()
        words[position("handler")] = id(kept[1])
    for name, value in OBJECTS.items():
        words[position(name)] = id(value)
    for name in FUNCTIONS:
        words[position(name)] = c_function(name)
    return words
