"""The layout of what the trampoline and the native operators read and write, for the builder."""

from __future__ import annotations

from treadle.runtime.cpu.builder.types import (
    F64,
    I32,
    I64,
    PTR,
    VOID,
    Pointer,
    Struct,
    Type,
    function,
    pointer,
    words,
)  # fmt: skip
from treadle.runtime.cpu.dispatch.call_plan import CHECK, ITEM, OUTPUT, PLAN, SHAPE
from treadle.runtime.cpu.dispatch.layout import CallLayout
from treadle.runtime.cpu.dispatch.table import FUNCTIONS, WORDS


class Structs:
    """The structs of an interpreter.

    Args:
        layout: where its objects have their fields.

    Attributes:
        object: fields of objects of all types that are read; whose they are the names say.
        table: the words through which code reaches the interpreter (`table`).
        plan, check, output, item, shape: the records of a plan (`plans`).
    """

    def __init__(self, layout: CallLayout) -> None:
        self.object = Struct("Object")
        self.object.fields |= _object_fields(layout, self.object.pointer)
        self.of_object = self.object.pointer
        self.table = words("Table", _table_fields(self.of_object))
        self.shape = _words("Shape", SHAPE, {"scalar": self.of_object})
        self.check = _words("Check", CHECK, {"key": self.of_object, "c": self.shape.pointer})
        self.output = _words(
            "Output",
            OUTPUT,
            {"dtype": self.of_object, "dims": pointer(I64), "spec": self.of_object},
        )
        self.item = _words("Item", ITEM, {"object": self.of_object})
        self.plan = self._plan()

    def _plan(self) -> Struct:
        plan = Struct("Plan")
        kinds: dict[str, Type] = {
            "next": plan.pointer, "names": self.of_object, "check_table": self.check.pointer,
            "run": function(I64, PTR, PTR), "state": PTR, "frame": pointer(I64),
            "output_table": self.output.pointer, "item_table": self.item.pointer,
            "failed": self.of_object, "keys": pointer(self.of_object), "packer": self.of_object,
            "spares": pointer(self.of_object),
        }  # fmt: skip
        plan.fields |= _words("Plan", PLAN, kinds).fields
        return plan

    def function(self, tail: int) -> Struct:
        """An object of the functions that the trampoline is for: its words begin at `tail`."""
        return Struct(
            "Function",
            {
                "plan": (tail + 8, self.plan.pointer), "table": (tail + 16, self.table.pointer),
                "room": (tail + 24, I64), **self.object.fields,
            },
        )  # fmt: skip


def _words(name: str, fields: tuple[str, ...], kinds: dict[str, Type]) -> Struct:
    """A struct of words, integers where `kinds` does not say more."""
    return words(name, {field: kinds.get(field, I64) for field in fields})


def _object_fields(layout: CallLayout, of_object: Pointer) -> dict[str, tuple[int, Type]]:
    kinds: dict[str, Type] = {
        "refcount": I64, "type": of_object, "size": I64, "list_items": pointer(of_object),
        "tuple_items": of_object,  # the first one
        "float_value": F64, "array_data": PTR, "array_rank": I32, "array_dims": pointer(I64),
        "array_dtype": of_object, "array_flags": I32, "tensor_array": of_object,
        "tensor_spec": of_object, "tensor_weak": of_object, "array_weak": of_object,
    }  # fmt: skip
    return {name: (getattr(layout, name), kind) for name, kind in kinds.items()}


def _table_fields(obj: Pointer) -> dict[str, Type]:
    dims = pointer(I64)
    kinds: dict[str, Type] = {
        "modes": pointer(I64),
        "new_array": function(obj, obj, obj, I32, dims, dims, PTR, I32, obj),
        "new_scalar": function(obj, PTR, obj, obj),
        "set_handler": function(obj, obj),
        "Py_IncRef": function(VOID, obj),
        "Py_DecRef": function(VOID, obj),
        "PyType_GenericAlloc": function(obj, obj, I64),
        "PyList_New": function(obj, I64),
        "PyTuple_New": function(obj, I64),
        "PyDict_New": function(obj),
        "PyDict_SetItem": function(I32, obj, obj, obj),
        "PyDict_GetItemWithError": function(obj, obj, obj),
        "PyObject_RichCompareBool": function(I32, obj, obj, I32),
        "PyObject_Vectorcall": function(obj, obj, pointer(obj), I64, obj),
        "PyObject_CallNoArgs": function(obj, obj),
        "PyObject_CallOneArg": function(obj, obj, obj),
        "PyErr_Occurred": function(obj),
        "PyErr_Clear": function(VOID),
        "PyErr_SetObject": function(VOID, obj, obj),
        "PyLong_AsLongLongAndOverflow": function(I64, obj, pointer(I32)),
        "PyLong_FromLongLong": function(obj, I64),
        "PyFloat_FromDouble": function(obj, F64),
        "PyComplex_FromDoubles": function(obj, F64, F64),
        "PyBool_FromLong": function(obj, I64),
    }
    assert set(FUNCTIONS) <= set(kinds)
    return {name: kinds.get(name, obj) for name in WORDS}
