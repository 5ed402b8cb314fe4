"""How a variable's value crosses the border of a branch or loop that is traced.

Inside the graph there are tensors; the user's code sees Python numbers, NumPy scalars and arrays. A
`Form` says which of these a tensor stands for. Where two paths give a variable different forms, it
gets the form in which NumPy would compute with both: an int and a float become a float, a Python
number and a scalar of float32 a scalar of float32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treadle.autograph.operators.undefined import Undefined
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.spec import Spec
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import Array, Indirect, Scalar, TracedSequence
from treadle.jitted.errors import NoForm, NotStaged
from treadle.jitted.storage import Storage
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.numbers.python_numbers import SymbolicNumber, symbolic_number
from treadle.ops.shaping.creation import zeros

NUMBER, SCALAR, ARRAY, LIST = "Python number", "NumPy scalar", "array", "list"
_PYTHON = {bool: dtypes.bool, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
_WEAK: dict[DType, Any] = {dtypes.int64: 0, dtypes.float64: 0.0, dtypes.complex128: 0j}


class ListPart:
    """A list value of the graph: all elements of a list, or one leaf of each."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class Form(NamedTuple):
    """The Python value that a tensor of the graph stands for.

    Attributes:
        kind: NUMBER, SCALAR, ARRAY or LIST.
        dtype: of the tensor.
        rank: of an array.
    """

    kind: str
    dtype: DType
    rank: int = 0

    def tensor(self, value: Any) -> Tensor:
        """A value as a tensor of this form."""
        if type(value) is SymbolicNumber:
            tensor = value.tensor()
        elif isinstance(value, Array | Scalar):
            tensor = value.tensor
        elif isinstance(value, ListPart):
            return value.tensor
        else:
            return convert_to_tensor(self._array(value))
        return self.of(tensor)

    def _array(self, value: Any) -> Any:
        """A number that is known while tracing."""
        try:
            return np.asarray(value).astype(self.dtype.np_dtype)
        except OverflowError:
            raise NotStaged(
                f"{value} has more than the 64 bits that ints have in a jitted function: use a "
                f"float{at(user_origin())}"
            ) from None

    def of(self, tensor: Tensor) -> Tensor:
        """A tensor in this form's dtype."""
        return tensor if tensor.dtype is self.dtype else cast(tensor, self.dtype)

    def value(self, tensor: Tensor) -> Any:
        """The value that the user's code sees in place of a tensor."""
        if self.kind == LIST:
            return ListPart(tensor)
        if self.kind == NUMBER:
            return symbolic_number(tensor)
        return Scalar(tensor) if self.kind == SCALAR else Array(Storage(tensor))

    def blank(self, spec: Spec) -> Tensor:
        """Zeros for a variable without a value, of the shape that `spec` has."""
        return zeros([d if isinstance(d, int) else 0 for d in spec.dims], self.dtype)


def form_of(value: Any) -> Form | None:
    """The form of a value; None for a value that stays in Python."""
    kind = type(value)
    if kind in _PYTHON:
        return Form(NUMBER, _PYTHON[kind])
    if kind is SymbolicNumber:
        return Form(NUMBER if value.kind in _PYTHON else SCALAR, value.tensor().dtype)
    if isinstance(value, Scalar):
        return Form(SCALAR, value.tensor.dtype)
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return Form(SCALAR, dtypes.as_dtype(value.dtype))
    if isinstance(value, Array):
        return Form(ARRAY, value.tensor.dtype, value.ndim)
    if isinstance(value, ListPart):
        return Form(LIST, value.tensor.dtype)
    return None


def joined(a: Form, b: Form) -> Form:
    """The form that holds the values of both.

    Raises:
        NoForm: an array of one rank and an array of another, or a number.
    """
    if a == b:
        return a
    if ARRAY in (a.kind, b.kind):
        if a.rank != b.rank:
            raise NoForm(f"{_text(a)} in one case, {_text(b)} in the other")
        return Form(ARRAY, _dtype(a, b), a.rank)
    if a.kind == b.kind == NUMBER:
        order = list(_PYTHON.values())
        return Form(NUMBER, max(a.dtype, b.dtype, key=order.index))
    return Form(SCALAR, _dtype(a, b))


def _dtype(a: Form, b: Form) -> DType:
    kinds = [_WEAK.get(f.dtype, f.dtype.np_dtype) if f.kind == NUMBER else f.dtype.np_dtype
             for f in (a, b)]  # fmt: skip
    return dtypes.as_dtype(np.result_type(*kinds))


def _text(form: Form) -> str:
    if form.kind == ARRAY:
        return f"an array of rank {form.rank}"
    return f"a {form.kind} ({form.dtype.name})"


def is_static(value: Any) -> bool:
    """Whether a value is Python's own, the same in every call of the program."""
    return form_of(value) is None and not isinstance(value, Undefined)


def same(a: Any, b: Any) -> bool:
    """Whether two values of a variable are one, so that nothing has to be merged."""
    if a is b:
        return True
    if isinstance(a, Array | Scalar) or isinstance(b, Array | Scalar):
        return _same_tensor(a, b)
    if isinstance(a, Indirect | TracedSequence) or isinstance(b, Indirect | TracedSequence):
        return False
    if type(a) is SymbolicNumber or type(b) is SymbolicNumber:
        return type(a) is type(b) and a.key == b.key
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return isinstance(a, Undefined) and isinstance(b, Undefined)
    if type(a) is not type(b):
        return False
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is dict:
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    try:
        return bool(a == b)
    except Exception:  # a comparison of the user's
        return False


def _same_tensor(a: Any, b: Any) -> bool:
    """Two objects for one unchangeable value, or for one view of one storage."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Array):
        return a.storage is b.storage and a.views == b.views
    return a.tensor is b.tensor
