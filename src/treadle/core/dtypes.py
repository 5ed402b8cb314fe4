"""The element types of tensors, named and behaving as TensorFlow's."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np


class DType:
    """An element type. There is one object per type, so dtypes compare by identity or ``==``.

    ``==`` also accepts anything `as_dtype` does (``"float32"``, ``np.float32``).
    """

    __slots__ = ("as_numpy_dtype", "kind", "name", "np_dtype", "short", "size")

    as_numpy_dtype: Any
    np_dtype: np.dtype[Any]

    def __init__(self, name: str, numpy_type: Any, short: str, kind: str) -> None:
        """`numpy_type`: of a type of `ml_dtypes` its size in bytes."""
        self.name = name
        self.short = short
        # 'f' float, 'i' signed, 'u' unsigned, 'b' bool, 'c' complex, 's' string
        self.kind = kind
        if isinstance(numpy_type, int):
            self.size = numpy_type
        else:
            self._is(numpy_type)

    def _is(self, numpy_type: Any) -> None:
        self.as_numpy_dtype = numpy_type
        self.np_dtype = np.dtype(numpy_type)
        self.size = self.np_dtype.itemsize

    def __getattr__(self, name: str) -> Any:
        """NumPy's type where nobody asked for it before: to import `ml_dtypes` takes a quarter of
        what importing treadle does."""
        if name not in ("as_numpy_dtype", "np_dtype"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        import ml_dtypes

        self._is(getattr(ml_dtypes, self.name))
        _BY_NUMPY[self.np_dtype] = self
        return getattr(self, name)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype. NumPy asks for this attribute where it is given a `DType` as a dtype."""
        return self.np_dtype

    @property
    def is_floating(self) -> builtins.bool:
        return self.kind == "f"

    @property
    def is_integer(self) -> builtins.bool:
        """True for signed and unsigned integers, not for bool."""
        return self.kind in "iu"

    @property
    def is_unsigned(self) -> builtins.bool:
        return self.kind == "u"

    @property
    def is_bool(self) -> builtins.bool:
        return self.kind == "b"

    @property
    def is_complex(self) -> builtins.bool:
        return self.kind == "c"

    @property
    def is_numeric(self) -> builtins.bool:
        return self.kind not in "bs"

    @property
    def is_differentiable(self) -> builtins.bool:
        return self.kind in "fc"

    @property
    def is_quantized(self) -> builtins.bool:
        """False: there are no quantized dtypes."""
        return False

    @property
    def is_numpy_compatible(self) -> builtins.bool:
        """True: arrays have all dtypes."""
        return True

    @property
    def base_dtype(self) -> DType:
        """The dtype itself: reference dtypes of TensorFlow 1, whose base it would be, are none."""
        return self

    @property
    def real_dtype(self) -> DType:
        """The dtype of the real part: float32 for complex64, itself for real dtypes."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def complex_dtype(self) -> DType:
        """The dtype of complex numbers with parts of this dtype: complex128 for float64, complex64
        for float32 and narrower ones; itself for complex dtypes."""
        if self.is_complex:
            return self
        return complex128 if self.size == 8 else complex64

    @property
    def as_datatype_enum(self) -> int:
        """The number of the dtype in TensorFlow's DataType enumeration."""
        return _ENUM[self]

    @property
    def limits(self) -> tuple[Any, Any]:
        """(0, 1) for floats, (0, the largest) for integers and bools: the values of pixels.

        Raises:
            ValueError: other dtypes have none.
        """
        if self.kind in "iub":
            return 0, self.max
        if self.size >= 4 and self.is_floating:
            return 0, 1
        raise ValueError(f"{self} does not have defined limits.")

    def is_compatible_with(self, other: Any) -> builtins.bool:
        """Whether `other`, or what it names, is this dtype."""
        return as_dtype(other) is self

    def is_subtype_of(self, other: Any) -> builtins.bool:
        """Whether `other` is this dtype."""
        return other is self

    def most_specific_common_supertype(self, types: Sequence[Any]) -> DType | None:
        """This dtype where the others are it, too, else None."""
        return self if all(other is self for other in types) else None

    @property
    def min(self) -> Any:
        return self._limits()[0]

    @property
    def max(self) -> Any:
        return self._limits()[1]

    def _limits(self) -> tuple[Any, Any]:
        if self.is_bool:
            return False, True
        if self.is_integer:
            integer = np.iinfo(self.np_dtype)
            return integer.min, integer.max
        if self.is_floating:
            import ml_dtypes

            info = ml_dtypes.finfo(self.np_dtype)  # type: ignore[no-untyped-call]
            return info.min, info.max
        raise TypeError(f"{self.name} has no smallest or largest value")

    def __repr__(self) -> str:
        return f"td.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> builtins.bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


float16 = DType("float16", np.float16, "f16", "f")
bfloat16 = DType("bfloat16", 2, "bf16", "f")
float32 = DType("float32", np.float32, "f32", "f")
float64 = DType("float64", np.float64, "f64", "f")
int8 = DType("int8", np.int8, "i8", "i")
int16 = DType("int16", np.int16, "i16", "i")
int32 = DType("int32", np.int32, "i32", "i")
int64 = DType("int64", np.int64, "i64", "i")
uint8 = DType("uint8", np.uint8, "u8", "u")
uint16 = DType("uint16", np.uint16, "u16", "u")
uint32 = DType("uint32", np.uint32, "u32", "u")
uint64 = DType("uint64", np.uint64, "u64", "u")
bool = DType("bool", np.bool_, "bool", "b")
complex64 = DType("complex64", np.complex64, "c64", "c")
complex128 = DType("complex128", np.complex128, "c128", "c")
# Byte strings of any length: bytes objects in arrays on the host.
string = DType("string", np.object_, "str", "s")

ALL = (  # whose elements are numbers or bools
    float16, bfloat16, float32, float64, int8, int16, int32, int64,
    uint8, uint16, uint32, uint64, bool, complex64, complex128,
)  # fmt: skip
half, double = float16, float64

BY_SHORT: dict[str, DType] = {d.short: d for d in (*ALL, string)}
_BY_NUMPY: dict[np.dtype[Any], DType] = {  # with bfloat16 once NumPy's type is known
    d.np_dtype: d for d in (*ALL, string) if d is not bfloat16
}
_BY_NAME: dict[str, DType] = {d.name: d for d in (*ALL, string)} | {
    "half": float16, "float": float32, "double": float64,
}  # fmt: skip
_BY_PYTHON: dict[type, DType] = {
    builtins.float: float32,
    builtins.int: int32,
    builtins.bool: bool,
    builtins.complex: complex128,
}
# TensorFlow's DataType enumeration, by which protocol buffers and some programs name dtypes.
_BY_ENUM: dict[int, DType] = {
    1: float32, 2: float64, 3: int32, 4: uint8, 5: int16, 6: int8, 7: string, 8: complex64,
    9: int64, 10: bool, 14: bfloat16, 17: uint16, 18: complex128, 19: float16, 22: uint32,
    23: uint64,
}  # fmt: skip
_ENUM = {dtype: number for number, dtype in _BY_ENUM.items()}


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """The DType of a NumPy dtype; TypeError for one that tensors cannot hold.

    Arrays of objects and of NumPy's own strings (S, U) become string tensors.
    """
    found = string if dtype.kind in "SU" else _BY_NUMPY.get(dtype)
    if found is None:
        native = dtype.newbyteorder("=")  # a big-endian array is converted later
        if native.name == bfloat16.name:
            bfloat16.dtype  # noqa: B018  the table has it from now on
        found = _BY_NUMPY.get(native)
    if found is None:
        raise TypeError(f"NumPy dtype {dtype} has no treadle equivalent")
    return found


def array_dtype(value: Any) -> DType:
    """The DType that NumPy gives an array of ``dtype=value``: float is float64, int is int64."""
    return from_numpy(np.dtype(value)) if isinstance(value, type) else as_dtype(value)


def as_dtype(type_value: Any) -> DType:
    """A DType from a DType, a name, a NumPy dtype or type, Python's float/int/bool/complex, or a
    number of TensorFlow's DataType enumeration.

    Python types map as in TensorFlow: float is float32 and int is int32, and str is no dtype.
    """
    if isinstance(type_value, DType):
        return type_value
    if isinstance(type_value, str) and type_value in _BY_NAME:
        return _BY_NAME[type_value]
    if isinstance(type_value, type) and type_value in _BY_PYTHON:
        return _BY_PYTHON[type_value]
    if type(type_value) is int and type_value in _BY_ENUM:
        return _BY_ENUM[type_value]
    if type_value is None:
        raise TypeError("None is not a dtype")
    try:
        found = np.dtype(type_value)
        python = type_value is str or type_value is bytes  # NumPy's dtypes are equal to these
        if found.kind in "SUO" and (python or isinstance(type_value, str)):
            raise TypeError  # as in TensorFlow
        return from_numpy(found)
    except (TypeError, ValueError):  # ValueError: an object with an attribute `dtype`
        raise TypeError(f"Cannot convert {type_value!r} to a treadle dtype") from None
