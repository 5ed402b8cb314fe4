"""Python's operators on Tensor and Variable. Importing this module completes both classes."""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.refusals import NotYetKnown
from treadle.core.shapes import broadcast, surely_broadcast
from treadle.core.spec import spec_text
from treadle.core.tensor import SymbolicTensor, Tensor, UnrankedTensor, from_array
from treadle.ops import printing
from treadle.ops.conversion import common_dtype, convert_to_tensor, has_dtype
from treadle.ops.elementwise import arithmetic, comparison, logic, powers, unary
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing import variable_parts
from treadle.ops.indexing.subscripts import getitem
from treadle.ops.indexing.updates import refuse_assignment, refuse_deletion
from treadle.ops.linalg.matrices import array_product
from treadle.ops.quiet import quiet
from treadle.ops.reductions import unbroadcasting  # noqa: F401  (registers itself)
from treadle.ops.reductions.reduction import reduce_any
from treadle.ops.registry import Op, large, run
from treadle.ops.shaping.unknown_rank import set_shape
from treadle.ops.state import Variable

Operator = Callable[[Any, Any], Any]
_ndarray = np.ndarray
# What operators convert themselves; other types are asked for their reflected operator first.
_OPERANDS = (int, float, complex, str, bytes, list, tuple, np.ndarray, np.generic, type(None))

# NumPy dtypes with which a Python number of a type computes in that dtype, as TensorFlow does.
_WEAK = {
    float: frozenset({np.dtype("f4"), np.dtype("f8")}),
    int: frozenset({np.dtype("f4"), np.dtype("f8"), np.dtype("i4"), np.dtype("i8")}),
}
_NONE: frozenset[Any] = frozenset()


class _Patience:
    """Counts eager operators; after so many, those that are faster are worth loading."""

    def __init__(self) -> None:
        self.left = 500
        self.load: Callable[[], object] = lambda: None

    def lose(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.load()


patience = _Patience()


class _InPlace:
    """What is told of ``x += y`` and the like on symbolic tensors: NumPy would change the array."""

    def __init__(self) -> None:
        self.note: Callable[[Any, FrameType], None] = lambda target, frame: None


in_place = _InPlace()


def _fast(ufunc: Any, function: Operator) -> Operator:
    """`function`, with a shortcut for eager tensors of one dtype, or a tensor and a number."""

    def operator(self: Any, other: Any) -> Any:
        if type(self) is Tensor and not context.counted:
            if patience.left > 0:
                patience.lose()
            a = self._buffer
            if type(other) is Tensor:
                b = other._buffer
                same = a.dtype is b.dtype
            else:
                b, same = other, a.dtype in _WEAK.get(type(other), _NONE)
            if same and a.size < large.elements[0]:
                try:
                    result = quiet.run(ufunc, a, b)
                except (TypeError, ValueError, OverflowError, MemoryError):
                    return function(self, other)  # raises with the user's line
                return from_array(result if type(result) is _ndarray else np.asarray(result))
        return function(self, other)

    return operator


def _comparing(ufunc: Any, op: Op, of_any_shapes: Op, otherwise: bool) -> Operator:
    """Equality: None, strings and shapes that do not broadcast are unequal, not an error.

    Args:
        of_any_shapes: the op where a trace does not know whether they broadcast.
    """

    def compare(self: Any, other: Any) -> Any:
        if other is None or (isinstance(other, str) and self.dtype is not dtypes.string):
            return otherwise
        a, b = common_dtype(op.name, self, other)
        try:
            broadcast(a.dims, b.dims)
        except errors.InvalidArgumentError:
            return convert_to_tensor(otherwise)
        return run(op if surely_broadcast(a.dims, b.dims) else of_any_shapes, a, b)

    return _in_range(_fast(ufunc, compare), compare, "")


def _in_range(fast: Operator, function: Operator, kinds: str) -> Operator:
    """`fast` where NumPy means the same: it compares integers with numbers beyond their range, and
    orders complex numbers, which are of `kinds` that take the checked path."""

    def operator(self: Any, other: Any) -> Any:
        far = type(other) is int and not 0 <= other < 128
        if far or (type(self) is Tensor and self._buffer.dtype.kind in kinds):
            return function(self, other)
        return fast(self, other)

    return operator


def _arithmetic(name: str, function: Operator) -> Operator:
    """`function`, which asks operands of unknown types for their own reflected operator first."""
    reflected = f"__r{name}__"

    def operator(self: Any, other: Any) -> Any:
        if not isinstance(other, _OPERANDS) and (
            not has_dtype(other) or _wants_it(other) or _promotes(other, self)
        ):
            kind = next((k for k in type(other).__mro__ if reflected in vars(k)), None)
            found = NotImplemented if kind is None else getattr(kind, reflected)(other, self)
            if found is not NotImplemented:
                return found
        return function(self, other)

    return operator


def _wants_it(other: Any) -> bool:
    """Whether an operand says, as NumPy's operators ask, that the operation is its own."""
    return getattr(type(other), "__array_ufunc__", other) is None


def _promotes(variable: Any, other: Any) -> bool:
    """Whether it is a variable of Keras, whose operators take an operand of another dtype."""
    keras = isinstance(variable, Variable) and variable.path is not None
    return keras and variable.dtype is not other.dtype


def _leaving(function: Operator) -> Operator:
    """A comparison that is the other operand's where that says so."""

    def operator(self: Any, other: Any) -> Any:
        if not isinstance(other, _OPERANDS) and _wants_it(other):
            return NotImplemented
        return function(self, other)

    return operator


def _swap(function: Operator) -> Operator:
    return lambda self, other: function(other, self)


_ARITHMETIC: dict[str, tuple[Any, Operator]] = {
    "add": (np.add, arithmetic.add),
    "sub": (np.subtract, arithmetic.subtract),
    "mul": (np.multiply, arithmetic.multiply),
    "truediv": (None, arithmetic.divide),
    "floordiv": (None, arithmetic.floordiv),
    "mod": (None, arithmetic.mod),
    "pow": (None, powers.pow),
    "matmul": (None, array_product),
    "and": (None, logic.and_),
    "or": (None, logic.or_),
    "xor": (None, logic.xor_),
    "lshift": (None, logic.left_shift),
    "rshift": (None, logic.right_shift),
}
_KEYWORDS = frozenset({"and", "or"})
_ORDER: dict[str, tuple[Any, Operator]] = {
    "lt": (np.less, comparison.less),
    "le": (np.less_equal, comparison.less_equal),
    "gt": (np.greater, comparison.greater),
    "ge": (np.greater_equal, comparison.greater_equal),
}


def _bool_safe(ufunc: Any, function: Operator) -> Operator:
    """NumPy adds bools as `or`; TensorFlow refuses, so bools take the checked path."""
    if ufunc is None:
        return function
    fast = _fast(ufunc, function)
    boolean = np.dtype(np.bool_)

    def operator(self: Any, other: Any) -> Any:
        if type(self) is Tensor and self._buffer.dtype is boolean:
            return function(self, other)
        return fast(self, other)

    return operator


# -- conversions to Python values ----------------------------------------------------------------


def _value(x: Any, use: str) -> Any:
    """The NumPy value of a tensor of one element."""
    if x.is_symbolic:
        raise _not_in_graph(x, use)
    array = x._numpy()
    if array.size != 1:
        text = f"Only a tensor of one element can be {use}, not one of shape {x.shape}"
        raise errors.DtypeError(None, None, f"{text}{at(user_origin())}")
    return array.reshape(())[()]


def _not_in_graph(x: SymbolicTensor, use: str) -> Exception:
    if x.recorder.finished:
        return x.no_value(use)
    made = f"\n  the tensor was made at {x.origin.describe()}" if x.origin else ""
    return errors.OperatorNotAllowedInGraphError(
        f"A symbolic {spec_text(x.spec)} tensor cannot be {use}: {x!r} has no value while "
        f"{x.recorder.name!r} is traced. Decorate the function with td.function (AutoGraph then "
        "turns if, while and for into graph operations; check that it is not switched off for "
        f"this code), or use td.cond, td.while_loop or td.where.{made}{at(user_origin())}"
    )


def _bool(self: Any) -> bool:
    if self.is_symbolic:
        raise _not_in_graph(self, "used as a Python bool")
    array = self._numpy()
    if array.size != 1:
        raise ValueError(
            f"The truth value of a tensor of shape {self.shape} is ambiguous: use td.reduce_any "
            f"or td.reduce_all{at(user_origin())}"
        )
    return bool(array)


def _index(self: Any) -> int:
    if not self.dtype.is_integer:
        raise TypeError(
            f"Only integer tensors can be used as an index, not {self.dtype.name}"
            f"{at(user_origin())}"
        )
    if self.ndim:
        text = f"Only a scalar tensor can be used as an index, not one of shape {self.shape}"
        raise TypeError(f"{text}{at(user_origin())}")
    return int(_value(self, "used as a Python integer"))


class _NoLength(NotYetKnown, TypeError):
    """`len` of a tensor whose first size only a run knows."""


def _len(self: Any) -> int:
    if not self.dims:
        raise TypeError(f"A scalar tensor has no len(){at(user_origin())}")
    size = self.dims[0]
    if not isinstance(size, int):
        raise _NoLength(
            f"len() of {self!r} is not known while tracing: use td.shape(x)[0]{at(user_origin())}"
        )
    return size


def _iter(self: Any) -> Iterator[Tensor]:
    return _elements(self, sys._getframe(1))


def _iter_variable(self: Variable) -> Iterator[Tensor]:
    return _elements(self._operand(), sys._getframe(1))


def _elements(self: Any, frame: FrameType) -> Iterator[Tensor]:
    size = self.dims[0] if self.dims else None
    if self.is_symbolic and not (isinstance(size, int) and _is_unpacking(frame)):
        raise _not_in_graph(self, "iterated over")
    if size is None:
        raise TypeError(f"Cannot iterate over a scalar tensor{at(user_origin())}")
    return (getitem(self, i) for i in range(size))


_UNPACKING = frozenset({"UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND", "CALL_FUNCTION_EX"})


def _is_unpacking(frame: FrameType) -> bool:
    """Whether the frame runs ``a, b = x`` or ``f(*x)``: few elements, unlike in a loop."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] in _UNPACKING


def _contains(self: Any, item: Any) -> bool:
    return bool(reduce_any(comparison.equal(self, item)))


def _round(self: Any, ndigits: int | None = None) -> Any:
    if not ndigits:
        return unary.round(self)
    scale = 10.0 ** abs(ndigits)
    if ndigits > 0:
        return unary.round(self * scale) / scale
    return unary.round(self / scale) * scale


def _divmod(self: Any, other: Any) -> tuple[Tensor, Tensor]:
    return arithmetic.floordiv(self, other), arithmetic.mod(self, other)


def _rdivmod(self: Any, other: Any) -> tuple[Tensor, Tensor]:
    return _divmod(other, self)


def _item(self: Any, *args: Any) -> Any:
    if self.is_symbolic:
        raise self.no_value("read with .item()")
    return self._numpy().item(*args)


def _tolist(self: Any) -> Any:
    if self.is_symbolic:
        raise self.no_value("read with .tolist()")
    return self._numpy().tolist()


_PROTOCOLS: dict[str, Any] = {
    "__neg__": unary.negative,
    "__abs__": unary.abs,
    "__invert__": logic.not_,
    "__pos__": lambda self: self,
    "__getitem__": getitem,
    "__setitem__": refuse_assignment,
    "__delitem__": refuse_deletion,
    "__bool__": _bool,
    "__nonzero__": _bool,  # by the name of Python 2, which libraries copy
    "__int__": lambda self: int(_value(self, "converted to int")),
    "__float__": lambda self: float(_value(self, "converted to float")),
    "__complex__": lambda self: complex(_value(self, "converted to complex")),
    "__index__": _index,
    "__len__": _len,
    "__iter__": _iter,
    "__contains__": _contains,
    "__divmod__": _divmod,
    "__rdivmod__": _rdivmod,
    "__round__": _round,
    "item": _item,
    "tolist": _tolist,
    "set_shape": set_shape,
}


def _through_value(method: Callable[..., Any]) -> Callable[..., Any]:
    """A Variable's operators work on its value."""

    def operator(self: Variable, *args: Any) -> Any:
        return method(self._operand(), *args)

    return operator


def _of_variable(name: str, method: Operator) -> Operator:
    """A Variable's operator of two operands works on its value; that of a variable of Keras, with
    an operand of another dtype, is Keras's function. An operand whose operation it is gets the
    variable itself."""
    reflected = f"__r{name[2:]}"
    others = name.strip("_").endswith(("and", "or", "xor", "mod"))  # have rules of their own

    def operator(self: Variable, other: Any) -> Any:
        if hasattr(type(other), reflected) and _wants_it(other):
            return getattr(other, reflected)(self)
        value = self._operand()
        if self.path is not None and (others or _differs(value, other)):
            return Variable._promoted.get(name, method)(value, other)
        return method(value, other)

    return operator


def _differs(value: Tensor, other: Any) -> bool:
    """Whether a variable's value and another operand may have a common dtype that is not that of
    the value, or operators of their own beside floats."""
    if isinstance(other, Tensor | Variable | np.ndarray | np.generic):
        return not (value.dtype.is_floating and other.dtype == value.dtype)
    if type(other) in (int, float):
        return not value.dtype.is_floating
    return isinstance(other, bool | complex | list | tuple)


# What classes that stand for tensors forward to them, beside arithmetic and comparisons.
_ACCESS = {"__abs__", "__getitem__", "__invert__", "__neg__"}


def _overloadable() -> frozenset[str]:
    binary = {*_ARITHMETIC, *_ORDER, "eq", "ne"}
    reflected = {f"r{name}" for name in _ARITHMETIC}
    return frozenset({f"__{name}__" for name in binary | reflected} | _ACCESS)


def _methods() -> dict[str, Any]:
    found = dict(_PROTOCOLS)
    for name, (ufunc, function) in _ARITHMETIC.items():
        forward = _bool_safe(ufunc, _arithmetic(name, function))
        found[f"__{name}__"] = _named(f"__{name}__", forward)
        found[f"__r{name}__"] = _named(f"__r{name}__", _swap(function))
    for name, (ufunc, function) in _ORDER.items():
        function = _leaving(function)
        fast = _in_range(_fast(ufunc, function), function, "c")
        found[f"__{name}__"] = _named(f"__{name}__", fast)
    same = _comparing(np.equal, comparison.EQUAL, comparison.SAME, False)
    other = _comparing(np.not_equal, comparison.NOT_EQUAL, comparison.NOT_SAME, True)
    found |= {"__eq__": _named("__eq__", same), "__ne__": _named("__ne__", other)}
    return found


class Slice(NamedTuple):
    """A slice of a subscript, as a structure whose bounds may be tensors."""

    start: Any
    stop: Any
    step: Any


def opened(key: Any) -> Any:
    """A subscript with its slices as structures."""
    if isinstance(key, slice):
        return Slice(key.start, key.stop, key.step)
    return tuple(map(opened, key)) if type(key) is tuple else key


def closed(key: Any) -> Any:
    """The subscript of `opened`."""
    if isinstance(key, Slice):
        return slice(*key)
    return tuple(map(closed, key)) if type(key) is tuple else key


class OperatorCall:
    """An operator as a function of its operands, subscripts as structures."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, x: Any, *others: Any) -> Any:
        own = super(UnrankedTensor, x) if isinstance(x, UnrankedTensor) else x
        return getattr(own, self.__name__)(*map(closed, others))


def _of_any_rank(name: str) -> Operator:
    """The operator of tensors whose rank only a run knows: the run calls it where the rank counts.
    It takes part before that of another operand's class, as the class is a subclass."""

    call = OperatorCall(name)

    def operator(self: Any, *others: Any) -> Any:
        try:
            return getattr(super(UnrankedTensor, self), name)(*others)
        except NotYetKnown as error:
            return error.take(call, (self, *map(opened, others)), {})

    return _named(name, operator)  # type: ignore[no-any-return]


def _assigning(function: Operator) -> Operator:
    """``x += y`` on a symbolic tensor: a new tensor, as ``x + y``."""

    def operator(self: Any, other: Any) -> Any:
        in_place.note(self, sys._getframe(1))
        return function(self, other)

    return operator


def _named(name: str, function: Any) -> Any:
    function.__name__ = function.__qualname__ = name
    return function


def promote_as_numpy() -> None:
    """From now on operators of tensors take operands of different dtypes, in the one that NumPy
    computes them in: ``td.experimental.numpy.experimental_enable_numpy_behavior``."""
    for name in [*_ARITHMETIC, *_ORDER]:
        for method in (f"__{name}__", f"__r{name}__"):
            known = getattr(Tensor, method, None)
            if known is not None and not hasattr(known, "promotes"):
                promoting = _named(method, _promoting(known))
                promoting.promotes = True
                setattr(Tensor, method, promoting)
                setattr(Variable, method, _of_variable(method, promoting))


def _promoting(function: Operator) -> Operator:
    def operator(self: Any, other: Any) -> Any:
        own, theirs = self.dtype, _numpy_type(other)
        if theirs is not None and theirs is not own.np_dtype and own is not dtypes.string:
            wide = np.result_type(theirs, own.np_dtype) if isinstance(theirs, np.dtype) else (
                np.result_type(theirs(), np.zeros((), own.np_dtype)))  # fmt: skip
            if wide != own.np_dtype or isinstance(theirs, np.dtype):
                dtype = dtypes.from_numpy(wide)
                return function(cast(self, dtype), cast(other, dtype))
        return function(self, other)

    return operator


def _numpy_type(other: Any) -> Any:
    """The NumPy dtype of an operand, or the type of a Python number; None of another object."""
    if isinstance(other, Tensor | Variable):
        return None if other.dtype is dtypes.string else other.dtype.np_dtype
    if isinstance(other, np.ndarray | np.generic):
        return other.dtype
    return type(other) if type(other) in (float, complex) else None


def install() -> None:
    """Put operators and printing on Tensor and Variable."""
    printing.install()
    variable_parts.install()
    for name in _ARITHMETIC:
        assigning = _assigning(getattr(operator, name + "_" * (name in _KEYWORDS)))
        setattr(SymbolicTensor, f"__i{name}__", _named(f"__i{name}__", assigning))
    Tensor.OVERLOADABLE_OPERATORS = _overloadable()
    for name in {*_overloadable(), "__divmod__", "__rdivmod__", "__round__"}:
        setattr(UnrankedTensor, name, _of_any_rank(name))
    binary = _overloadable() - _ACCESS
    for name, method in _methods().items():
        setattr(Tensor, name, method)
        if name == "__setitem__":
            setattr(Variable, name, method)
        elif name == "__iter__":
            setattr(Variable, name, _iter_variable)
        elif name in binary:
            setattr(Variable, name, _of_variable(name, method))
        elif name not in ("__getitem__", "item", "tolist", "set_shape"):
            setattr(Variable, name, _through_value(method))


install()
