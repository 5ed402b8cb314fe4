"""Native operators of eager tensors: small arrays of one dtype, or an array and a number.

``operator_add(self, args, count)`` is a METH_FASTCALL method of `Tensor`. What it does not take
(other types and dtypes, broadcasts, large arrays, traces and tapes at work) it passes on to the
operator written in Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from treadle.runtime.cpu.builder.function import Callee, Function, Target
from treadle.runtime.cpu.builder.types import (
    F32,
    F64,
    I1,
    I32,
    I64,
    PTR,
    Type,
    pointer,
    words,
)  # fmt: skip
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.dispatch.call_code.call import rank_of, require_equal
from treadle.runtime.cpu.dispatch.layout import CallLayout
from treadle.runtime.cpu.dispatch.structs import Structs
from treadle.runtime.cpu.dispatch.table import DTYPES, OPERATORS, RECORD
from treadle.runtime.cpu.target import Target as Machine

_KINDS = dict(zip(DTYPES, (F32, F64, I32, I64), strict=True))
MOST_ELEMENTS = 256  # NumPy's loops are better from there
_FLOAT32, _FLOAT64, _INT32, _INT64 = range(len(DTYPES))  # their numbers
_EXACT = 1 << 24  # a float32 holds every integer up to this size
_INFINITY = float("inf")

_COMPUTE: dict[str, Callable[[Value, Value], Value]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
}  # fmt: skip


def eager_text(layout: CallLayout, target: Machine) -> str:
    """The module: the operators, and ``void @set_word(i64 place, i64 value)`` for their record."""
    unit = Unit()
    unit.variable("record", f"internal global [{len(RECORD)} x i64] zeroinitializer")

    @unit.function(internal=False, place=I64, value=I64)
    def set_word(f: Function, place: Value, value: Value) -> None:
        f.global_("record", I64)[place] = value
        f.ret()

    operators = _Operators(unit, Structs(layout))
    loops = {
        name: [
            _add_loop(unit, f"{name}_{dtype}", kind, compute)
            for dtype, kind in _KINDS.items()
            if name != "truediv" or kind.family == "f"
        ]
        for name, compute in _COMPUTE.items()
    }
    for name in OPERATORS:
        operators.add(name, loops[name.removeprefix("r")])
    return unit.text(target)


def _add_loop(
    unit: Unit, name: str, kind: Type, compute: Callable[[Value, Value], Value]
) -> Callee:
    """``out[i] = a[i * sa] op b[i * sb]``; the strides are 0 or 1."""
    numbers = pointer(kind)

    def loop(f: Function, a: Value, sa: Value, b: Value, sb: Value, out: Value, n: Value) -> None:
        with f.loop("each", i=0) as each:
            i = each["i"]
            each.run_while(i.ult(n))
            first, second = i * sa, i * sb
            out[i] = compute(a[first], b[second])
            each.again(i + 1)
        f.ret()

    parameters = {"a": numbers, "sa": I64, "b": numbers, "sb": I64, "out": numbers, "n": I64}
    return unit.add(name, loop, parameters)


class _Operators:
    """Writes the operators, and the functions that they call."""

    def __init__(self, unit: Unit, structs: Structs) -> None:
        self.unit, self.structs = unit, structs
        self.object = structs.of_object
        table = {name: kind for name, (_, kind) in structs.table.fields.items()}
        self.record = words("Record", {name: table.get(name, self.object) for name in RECORD})
        self.dtype_number = self._add_dtype_number()
        self.elements = self._add_elements()
        self.same_dims = self._add_same_dims()
        self.number = self._add_number()

    def record_of(self, f: Function) -> Value:
        return Value(f, "@record", self.record.pointer)

    def _add_dtype_number(self) -> Callee:
        @self.unit.function(I64, dtype=self.object)
        def dtype_number(f: Function, dtype: Value) -> None:
            """The place of a dtype among `DTYPES`, or their number."""
            known = [self.record_of(f)[f"dtype_{name}"] for name in DTYPES]
            same = [dtype.eq(each) for each in known]
            number = f.const(len(DTYPES))
            for place in reversed(range(len(DTYPES))):
                number = same[place].select(place, number)
            f.ret(number)

        return dtype_number

    def _add_elements(self) -> Callee:
        @self.unit.function(I64, array=self.object)
        def elements(f: Function, array: Value) -> None:
            """The elements of an array, -1 where there are more than `MOST_ELEMENTS`."""
            rank, dims, many = rank_of(array), array["array_dims"], f.block("many")
            with f.loop("axes", i=0, n=1) as axes:
                i, n = axes["i"], axes["n"]
                axes.run_while(i.ult(rank))
                dim = dims[i]
                f.refuse(dim.ugt(MOST_ELEMENTS), many, "times")
                product, following = n * dim, i + 1
                f.refuse(product.ugt(MOST_ELEMENTS), many)
                axes.again(following, product)
                f.begin(many)
                f.ret(-1)
            f.ret(n)

        return elements

    def _add_same_dims(self) -> Callee:
        @self.unit.function(I1, a=self.object, b=self.object, rank=I64)
        def same_dims(f: Function, a: Value, b: Value, rank: Value) -> None:
            first, second, different = a["array_dims"], b["array_dims"], f.block("different")
            require_equal(f, first, second, rank, different)
            f.ret(True)
            f.begin(different)
            f.ret(False)

        return same_dims

    def _add_number(self) -> Callee:
        @self.unit.function(I1, x=self.object, type=self.object, dtype=I64, to=PTR)
        def number(f: Function, x: Value, type: Value, dtype: Value, to: Value) -> None:
            """Write a Python int or float to `to` in the dtype; false where it does not fit."""
            overflow = f.alloca(I32, align=4)
            float_type, int_type = self.record_of(f)["float"], self.record_of(f)["int"]
            integer, no = f.block("integer"), f.block("no")
            real = f.block("real", value=F64)
            maybe = f.block("maybe_int")
            f.require(type.eq(float_type), maybe, "float")
            f.jump(real(x["float_value"]))
            f.begin(maybe)
            f.branch(type.eq(int_type), integer, no)
            f.begin(integer)
            convert = self.record_of(f)["PyLong_AsLongLongAndOverflow"]
            long = f.call(convert, x, overflow)
            f.require(overflow.load().eq(0), no, "int_kind")
            inexact, int_32, int_64 = f.block("int_real"), f.block("int_32"), f.block("int_64")
            ways: dict[int, Target] = {
                _FLOAT32: inexact, _FLOAT64: inexact, _INT32: int_32, _INT64: int_64,
            }  # fmt: skip
            f.switch(dtype, ways, no)
            f.begin(inexact)
            exact = long.sgt(-_EXACT - 1) & long.slt(_EXACT + 1)
            double = long.to_float(F64)
            f.branch(exact, real(double), no)
            f.begin(int_32)
            low = long.trunc(I32)
            whole = low.sext(I64).eq(long)
            to.as_pointer(I32).store(low)
            f.ret(whole)
            f.begin(int_64)
            to.as_pointer(I64).store(long)
            f.ret(True)
            f.begin(real)
            self._write_real(f, real["value"], dtype, to, no)
            f.begin(no)
            f.ret(False)

        return number

    def _write_real(self, f: Function, value: Value, dtype: Value, to: Value, no: Target) -> None:
        """A double in a dtype of floats; no finite number becomes infinite."""
        single, double = f.block("real_32"), f.block("real_64")
        f.switch(dtype, {_FLOAT32: single, _FLOAT64: double}, no)
        f.begin(single)
        narrow = value.narrow()
        infinite = _size(f, narrow.widen()).eq(_INFINITY)
        was_infinite = _size(f, value).eq(_INFINITY)
        lost = infinite & ~was_infinite
        to.as_pointer(F32).store(narrow)
        f.ret(~lost)
        f.begin(double)
        to.as_pointer(F64).store(value)
        f.ret(True)

    def add(self, name: str, loops: list[Callee]) -> None:
        """The method: convert the other operand, compute, wrap; or call the Python operator.

        Args:
            loops: what computes, for the first dtypes; the others are Python's.
        """

        def body(f: Function, self_: Value, args: Value, count: Value) -> None:
            _Operator(self, f, name, loops).write(self_, args, count)

        parameters = {"self": self.object, "args": pointer(self.object), "count": I64}
        self.unit.add(f"operator_{name}", body, parameters, self.object, internal=False)


def _size(f: Function, x: Value) -> Value:
    return f.intrinsic("llvm.fabs.f64", F64, x)


class _Operator:
    """Writes one operator.

    Args:
        shared: what all operators call.
        loops: what computes, for the first dtypes.
    """

    def __init__(self, shared: _Operators, f: Function, name: str, loops: list[Callee]) -> None:
        self.shared, self.f, self.name, self.loops = shared, f, name, loops
        self.python, self.fail = f.block("python"), f.block("fail")

    def _record(self) -> Value:
        return self.shared.record_of(self.f)

    def write(self, given: Value, args: Value, count: Value) -> None:
        f, shared, python = self.f, self.shared, self.python
        self.slot = f.alloca(I64)  # room for a number
        other = args.load()
        quiet = self._record()["modes"].load().eq(0)  # no traces or tapes at work
        usual = quiet & count.eq(1)
        tensor_type = self._record()["Tensor"]
        f.require(usual & given["type"].eq(tensor_type), python, "begin")
        array = given["tensor_array"]
        array_dtype = array["array_dtype"]
        dtype = f.call(shared.dtype_number, array_dtype)
        known = dtype.ult(len(DTYPES))
        computed = dtype.ult(len(self.loops))
        f.require(known, python, "operand")
        like, shape, *operands = self._operands(
            given, array, array_dtype, dtype, other, tensor_type
        )
        n = f.call(shared.elements, shape)
        f.require(n.sge(0), python, "make")
        if len(self.loops) < len(DTYPES):
            f.require(computed, python, "computed")
        incref, decref = self._record()["Py_IncRef"], self._record()["Py_DecRef"]
        out = self._new_array(shape, array_dtype, incref)
        self._compute(dtype, operands, out, n)
        self._wrap(out, like, tensor_type, incref, decref)
        f.begin(python)
        self._call_python(given, other)

    def _operands(
        self, given: Value, array: Value, array_dtype: Value, dtype: Value, other: Value,
        tensor_type: Value,
    ) -> tuple[Value, ...]:  # fmt: skip
        """Which tensor and array the result is like, then the operands: where each has its
        elements, and how far they are apart."""
        f, shared, python = self.f, self.shared, self.python
        shaped = f.block(
            "shaped", like=shared.object, shape=shared.object, a=PTR, b=PTR, sa=I64, sb=I64
        )
        data, rank = array["array_data"], rank_of(array)
        other_type = other["type"]
        tensor, kind = f.block("tensor"), f.block("other_kind")
        f.branch(other_type.eq(tensor_type), tensor, kind)
        f.begin(kind)
        converted = f.call(shared.number, other, other_type, dtype, self.slot)
        f.branch(converted, shaped(given, array, data, self.slot, 1, 0), python)
        f.begin(tensor)
        second = other["tensor_array"]
        f.require(array_dtype.eq(second["array_dtype"]), python, "ranks")
        second_data, second_rank = second["array_data"], rank_of(second)
        scalar = shaped(given, array, data, second_data, 1, 0)
        f.refuse(second_rank.eq(0), scalar, "not_scalar")
        f.refuse(rank.eq(0), shaped(other, second, data, second_data, 0, 1), "compare")
        f.require(rank.eq(second_rank), python, "dims")
        same = f.call(shared.same_dims, array, second, rank)
        f.branch(same, shaped(given, array, data, second_data, 1, 1), python)
        f.begin(shaped)
        return tuple(shaped.parameters.values())

    def _new_array(self, shape: Value, dtype: Value, incref: Value) -> Value:
        f, record = self.f, self._record()
        array_type, new = record["ndarray"], record["new_array"]
        rank, dims = rank_of(shape).trunc(I32), shape["array_dims"]
        f.call(incref, dtype)
        out = f.call(new, array_type, dtype, rank, dims, None, None, 0, None)
        f.require(out.ne(None), self.fail, "compute")
        return out

    def _compute(self, dtype: Value, operands: list[Value], out: Value, n: Value) -> None:
        f, to, computed = self.f, out["array_data"], self.f.block("wrap")
        a, b, sa, sb = operands
        given = (b, sb, a, sa) if self.name.startswith("r") else (a, sa, b, sb)
        blocks = [f.block(loop.name) for loop in self.loops]
        f.switch(dtype, dict(enumerate(blocks)), self.python)
        for block, loop in zip(blocks, self.loops, strict=True):
            f.begin(block)
            f.call(loop, *given, to, n)
            f.jump(computed)
        f.begin(computed)

    def _wrap(
        self, out: Value, like: Value, tensor_type: Value, incref: Value, decref: Value
    ) -> None:
        """Return the array as a tensor with the spec of another."""
        f, drop = self.f, self.f.block("drop")
        result = f.call(self._record()["PyType_GenericAlloc"], tensor_type, 0)
        f.require(result.ne(None), drop, "fill")
        spec = like["tensor_spec"]
        f.call(incref, spec)
        result["tensor_array"] = out
        result["tensor_spec"] = spec
        f.ret(result)
        f.begin(drop)
        f.call(decref, out)
        f.jump(self.fail)
        f.begin(self.fail)
        f.ret(None)

    def _call_python(self, given: Value, other: Value) -> None:
        f = self.f
        both = f.alloca(self.shared.object, 2)
        both[0] = given
        both[1] = other
        function = self._record()[f"python_{self.name}"]
        f.ret(f.call(self._record()["PyObject_Vectorcall"], function, both, 2, None))
