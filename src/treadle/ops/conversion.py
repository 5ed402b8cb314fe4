"""From Python and NumPy values to tensors, under TensorFlow's dtype rules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.arrays import own_copy
from treadle.core.context import context
from treadle.core.dimension import Dimension
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.refusals import NotYetKnown
from treadle.core.shapes import TensorShape, shape_text
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor, from_array, placed_array
from treadle.ops.lowering import Structure
from treadle.ops.registry import Op, register, run

MOST_AXES = 64  # NumPy's arrays have no more
# Types that convert themselves: type -> fn(value, dtype) -> Tensor. Variables add theirs.
_converters: list[tuple[type, Callable[[Any, DType | None], Any]]] = []
_typed: tuple[type, ...] = (Tensor,)  # Tensor and the types with converters
# The same for types without a dtype of their own, as Python's numbers have none.
_weak: dict[type, Callable[[Any, DType | None], Tensor]] = {}
_pack: Callable[[list[Tensor], DType | None], Tensor]
# Conversion functions of users, with their priorities.
_users: list[tuple[int, type, Callable[..., Any]]] = []


def register_converter(kind: type, fn: Callable[[Any, DType | None], Any]) -> None:
    """`convert_to_tensor` calls ``fn(value, dtype)`` for instances of `kind`."""
    global _typed
    _converters.append((kind, fn))
    _typed = (*_typed, kind)


def register_tensor_conversion_function(
    base_type: Any, conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Let tensors be made of objects of a class.

    Args:
        base_type: the class, or a tuple of classes.
        conversion_func: ``conversion_func(value, dtype=..., name=..., as_ref=False)`` gives a
            tensor of that dtype, or of any where it is None; NotImplemented for a value or dtype
            that it has none for.
        priority: functions of smaller numbers are asked first; those of equal ones in the order of
            their registration.

    Raises:
        TypeError: no class or function, or one of Python's numbers or NumPy's scalars and arrays.
    """
    kinds = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(kind, type) for kind in kinds):
        raise TypeError(f"base_type must be a type or a tuple of types, got {base_type!r}")
    if not callable(conversion_func):
        raise TypeError(f"conversion_func must be callable, got {conversion_func!r}")
    if any(issubclass(kind, int | float | complex | np.generic | np.ndarray) for kind in kinds):
        raise TypeError(f"{base_type!r} is converted already")
    for kind in kinds:
        _users.append((priority, kind, conversion_func))
        if not any(known is kind for known, _ in _converters):
            register_converter(kind, functools.partial(_by_users, kind))
    _users.sort(key=lambda entry: entry[0])


def _by_users(kind: type, value: Any, dtype: DType | None) -> Tensor:
    """A tensor of an object of the user's class `kind`."""
    for _, base, convert in _users:
        if isinstance(value, base):
            found = convert(value, dtype=dtype, name=None, as_ref=False)
            if found is not NotImplemented:
                return _checked(found, dtype)
    raise TypeError(f"no conversion function makes a tensor of {value!r}{at(user_origin())}")


def has_users_conversions() -> bool:
    """Whether there are conversion functions of users."""
    return bool(_users)


def is_converted_by_user(value: Any) -> bool:
    """Whether a user's function makes tensors of objects such as this."""
    return not isinstance(value, Tensor) and any(isinstance(value, kind) for _, kind, _ in _users)


def register_weak(kind: type, fn: Callable[[Any, DType | None], Tensor]) -> None:
    """`convert_to_tensor` calls ``fn(value, dtype)`` for values of exactly the type `kind`, which
    take the dtype of what they are combined with."""
    _weak[kind] = fn


def register_stack(fn: Callable[[list[Tensor], DType | None], Tensor]) -> None:
    """`convert_to_tensor` packs a list that holds tensors with ``fn(parts, dtype)``, which casts
    them where a dtype is given."""
    global _pack
    _pack = fn


def _known_size(value: Dimension, dtype: DType | None) -> Tensor:
    return convert_to_tensor(_size_of(value), dtype)


def _size_of(value: Any) -> Any:
    """The size that a `Dimension` is; anything else as it is."""
    if not isinstance(value, Dimension):
        return value
    if value.value is None:
        raise errors.DtypeError(
            None, None,
            f"Cannot convert an unknown {value!r} to a tensor: td.shape(x) gives the sizes when "
            f"the function runs{at(user_origin())}",
        )  # fmt: skip
    return value.value


def _known_sizes(array: NDArray) -> NDArray:
    """An array of objects with the sizes that its `Dimension` elements are."""
    return np.array([_size_of(x) for x in array.flat]).reshape(array.shape)


register_weak(Dimension, _known_size)


def pack(parts: list[Tensor], dtype: DType | None = None) -> Tensor:
    """Tensors of one shape as the parts of a new first axis, cast where a dtype is given."""
    return _pack(parts, dtype)


def _const_infer(*, value: NDArray) -> TensorSpec:
    return TensorSpec(value.shape, dtypes.from_numpy(value.dtype))


CONST = register(
    Op(
        "const", _const_infer, eager=lambda *, value: value, lower=Structure.CONSTANT,
        tags=frozenset({"any_elements", "cheap"}),
    )
)  # fmt: skip


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor with the given value.

    Args:
        value: a number or string, nested lists of them, an array, or a tensor.
        dtype: the element type; without it floats of Python become float32 and ints int32, also
            NumPy's integers in lists, and arrays and NumPy's floats keep their dtype. Texts become
            strings of their bytes in UTF-8.
        shape: a scalar is repeated to fill it; otherwise the elements are reshaped to it.
        name: accepted for TensorFlow programs.

    Raises:
        TypeError: the value does not convert to the dtype.
        ValueError: nested lists of uneven lengths; elements that do not fit `shape`.
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(value, Tensor):
        tensor = convert_to_tensor(value, wanted)
        if shape is None:
            return tensor
        value = tensor.numpy()
    array = to_array(value, wanted)
    if array is value:
        array = own_copy(array)  # the caller may change its array later
    if shape is not None:
        array = _fill_shape(array, tuple(int(d) for d in shape))
    return _emit(array)


def _fill_shape(array: NDArray, shape: tuple[int, ...]) -> NDArray:
    if array.size == 1:
        return np.full(shape, array.reshape(()))
    if array.size != int(np.prod(shape)):
        raise ValueError(
            f"{array.size} elements do not fill the shape {shape_text(shape)}{at(user_origin())}"
        )
    return array.reshape(shape)


def _emit(array: NDArray) -> Tensor:
    """A literal: an eager tensor, or a constant node of the graph being traced."""
    if not context.counted:
        return from_array(array)
    if context.recorder is None:
        return placed_array(array)
    return run(CONST, value=array)  # type: ignore[no-any-return]


def _sizes(shape: TensorShape) -> list[int]:
    """The dims of a shape; ValueError where one is not known."""
    if not shape.is_fully_defined():
        raise NotYetKnown(
            f"Cannot convert the shape {shape} to a tensor: it is not fully known while tracing; "
            f"td.shape(x) gives the sizes when the function runs{at(user_origin())}"
        )
    return [d for d in shape if d is not None]


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> Tensor:
    """`value` as a tensor; tensors pass through.

    Args:
        value: a tensor, variable, array, number or nested lists.
        dtype: required dtype: a tensor of another one is refused (use `cast`), those in lists are
            cast.
        dtype_hint: preferred dtype for values without one of their own; ignored where it fails.
        name: accepted for TensorFlow programs.

    An object whose class has a method ``__tf_tensor__(dtype, name)`` is what that returns.
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(value, Tensor):
        return _checked(value, wanted)
    weak = _weak.get(type(value))
    if weak is not None:
        return weak(value, wanted or (dtype_hint and dtypes.as_dtype(dtype_hint)))
    if type(value) in _SCALAR_KINDS:
        array = _scalar(value, wanted or (dtype_hint and dtypes.as_dtype(dtype_hint)))
        if array is not None:
            return _emit(array)
    if isinstance(value, TensorShape):
        value, dtype_hint = _sizes(value), dtype_hint or dtypes.int32
    elif isinstance(value, range):  # one without numbers has integers, too
        dtype_hint = dtype_hint or dtypes.int32
    converted = getattr(value, "__tf_tensor__", None)
    if converted is not None:
        return _checked(converted(wanted, name), wanted)
    for kind, convert in _converters:
        if isinstance(value, kind):
            return _checked(convert(value, wanted), wanted)
    if isinstance(value, list | tuple) and _holds_tensor(value):
        return _stack(value, wanted, dtype_hint)
    if wanted is None and dtype_hint is not None:
        try:
            return _emit(_owned(value, to_array(value, dtypes.as_dtype(dtype_hint))))
        except (TypeError, ValueError):
            pass
    return _emit(_owned(value, to_array(value, wanted)))


# The dtype kinds that a Python number converts to without further questions.
_SCALAR_KINDS = {float: "fc", int: "iufc"}
_SCALAR_DEFAULTS = {float: dtypes.float32, int: dtypes.int32}


def _scalar(value: float | int, dtype: DType | None) -> NDArray | None:
    """A Python number as a rank-0 array; None where the general path must judge."""
    dtype = dtype or _SCALAR_DEFAULTS[type(value)]
    if dtype.kind not in _SCALAR_KINDS[type(value)]:
        return None
    try:
        return np.array(value, dtype.np_dtype)
    except OverflowError:
        return None


def _owned(value: Any, array: NDArray) -> NDArray:
    shared = isinstance(value, np.ndarray) and np.shares_memory(array, value)
    return own_copy(array) if shared else array


def _checked(tensor: Any, wanted: DType | None) -> Tensor:
    if wanted is not None and tensor.dtype is not wanted:
        raise errors.DtypeError(
            None, None,
            f"Tensor of dtype {tensor.dtype.name} given where {wanted.name} is required; "
            f"{_advice(tensor.dtype, wanted)}: {tensor!r}{at(user_origin())}",
        )  # fmt: skip
    return tensor  # type: ignore[no-any-return]


def _advice(given: DType, wanted: DType) -> str:
    """How a tensor of a dtype becomes one of another."""
    if wanted is dtypes.string:
        return "use td.as_string(x)"
    function = "strings.to_number" if given is dtypes.string else "cast"
    return f"use td.{function}(x, td.{wanted.name})"


def _holds_tensor(value: Any, axes: int = 0) -> bool:
    """Whether a tensor is somewhere in nested lists.

    Raises:
        ValueError: the lists are nested deeper than an array can have axes.
    """
    if not isinstance(value, list | tuple):
        return isinstance(value, _typed) or type(value) in _weak
    if axes == MOST_AXES:
        raise ValueError(
            f"Lists nested more than {MOST_AXES} deep, or that contain themselves, are no tensor"
            f"{at(user_origin())}"
        )
    for part in value:  # noqa: SIM110 (a generator would double the depth of the recursion)
        if _holds_tensor(part, axes + 1):
            return True
    return False


def _stack(values: Any, dtype: DType | None, hint: Any) -> Tensor:
    """Nested lists that contain tensors: packed with `stack`, in the tensors' dtype or cast."""
    found = dtype or _dtype_of(values) or _dtype_of_numbers(values)
    parts = [convert_to_tensor(v, None if _has_strong(v) else found, hint) for v in values]
    return pack(parts, dtype)


def _has_strong(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_strong, value))
    return has_dtype(value)


def _dtype_of_numbers(values: Any) -> DType | None:
    """float32 for lists of ints and floats, some of which only the running program knows."""
    found = [_dtype_of_numbers(v) if isinstance(v, list | tuple) else _NUMBERS.get(v.__class__)
             for v in values]  # fmt: skip
    return dtypes.float32 if dtypes.float32 in found else None


_NUMBERS = {float: dtypes.float32}


def _dtype_of(values: Any) -> DType | None:
    for value in values:
        if isinstance(value, list | tuple):
            found = _dtype_of(value)
            if found is not None:
                return found
        elif has_dtype(value):
            return value.dtype  # type: ignore[no-any-return]
    return None


def to_array(value: Any, dtype: DType | None = None) -> NDArray:
    """A NumPy array of a supported dtype in C order, from anything but tensors.

    Raises:
        TypeError: the elements do not convert to `dtype`, or to any dtype.
        ValueError: ragged nested lists.
    """
    if isinstance(value, TensorShape):
        value = value.as_list()
    if isinstance(value, np.ndarray | np.generic) or hasattr(type(value), "__array__"):
        array = np.asarray(value)
        if array.dtype.kind in "SUO":
            return _strings(value, array, dtype)
        if dtype is not None and array.dtype.kind in "mM":
            array = array.view(np.int64)  # dates and spans of time are counts of their unit
        result = _cast_array(array, dtype) if dtype else _native(array)
    else:
        result = _from_python(value, dtype)
    return result if result.flags.c_contiguous else np.ascontiguousarray(result)


def _native(array: NDArray) -> NDArray:
    return array.astype(_dtype_of_array(array).np_dtype, copy=False)


def _dtype_of_array(array: NDArray) -> DType:
    try:
        return dtypes.from_numpy(array.dtype)
    except TypeError as error:
        raise errors.DtypeError(None, None, f"{error}{at(user_origin())}") from None


def _cast_array(array: NDArray, dtype: DType) -> NDArray:
    """An array given where `dtype` is asked for: numbers that are not zero are True, and floats
    narrow silently, as in TensorFlow. Fractions and imaginary parts are not dropped.

    Raises:
        TypeError: the dtype does not hold the numbers.
    """
    source = _dtype_of_array(array)
    if source is dtype:
        return array.astype(dtype.np_dtype, copy=False)
    if dtype is dtypes.string:
        raise _refusal(array, dtype)
    if source.is_complex and not (dtype.is_complex or dtype.is_bool):
        if (array.imag != 0).any():
            raise _refusal(array, dtype)
        array, source = array.real, _dtype_of_array(array.real)
    if source.is_floating and dtype.is_integer:
        with np.errstate(invalid="ignore"):
            whole = array.astype(dtype.np_dtype)
        if (whole != array).any():
            raise _refusal(array, dtype)
        return whole
    return array.astype(dtype.np_dtype)


def _from_python(value: Any, dtype: DType | None) -> NDArray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"Cannot convert nested lists to a tensor: {error}{at(user_origin())}"
        ) from None
    if array.dtype.kind == "O" and any(isinstance(x, Dimension) for x in array.flat):
        array = _known_sizes(array)
    if array.dtype.kind in "SUO":
        return _strings(value, array, dtype)
    if array.dtype.kind in "MmV":
        if array.dtype != dtypes.bfloat16.np_dtype:  # of a list of such numbers
            raise _no_tensor(value)
        return array if dtype is None else _cast_array(array, dtype)
    if dtype is None:
        return _default_dtype(array, value)
    kind = array.dtype.kind
    if array.size and (
        dtype is dtypes.string
        or (kind == "f" and not (dtype.is_floating or dtype.is_complex))
        or (kind == "c" and not dtype.is_complex)
        or (dtype.is_bool and kind != "b")
    ):
        raise _refusal(value, dtype)
    if kind in "iu" and dtype.is_integer and array.size:
        low, high = array.min(), array.max()
        if low < dtype.min or high > dtype.max:
            raise ValueError(
                f"{_brief(value)} is out of the range of {dtype.name}{at(user_origin())}"
            )
    return array.astype(dtype.np_dtype)


def _no_tensor(value: Any) -> errors.DtypeError:
    text = f"Cannot convert {_brief(value)} to a tensor{at(user_origin())}"
    return errors.DtypeError(None, None, text)


def _strings(value: Any, array: NDArray, dtype: DType | None) -> NDArray:
    """An array of bytes objects from what NumPy holds as strings or objects; texts as UTF-8."""
    if dtype is not None and dtype is not dtypes.string:
        raise _refusal(value, dtype)
    is_array = isinstance(value, np.ndarray)
    # NumPy's own strings lose zeros at their ends, and numbers among them become texts.
    leaves = array.reshape(-1).tolist() if is_array else _leaves(value, array.ndim)
    found = [x.encode() if isinstance(x, str) else x for x in leaves]
    if not all(isinstance(x, bytes) for x in found):
        raise _no_tensor(value)
    found = [bytes(x) for x in found]  # NumPy's own are of a class derived from bytes
    strings = np.empty(len(found), object)
    strings[:] = found
    return strings.reshape(array.shape)


def _leaves(value: Any, depth: int) -> list[Any]:
    """The elements of nested lists, row by row."""
    if depth == 0:
        return [value]
    return [leaf for part in value for leaf in _leaves(part, depth - 1)]


def _default_dtype(array: NDArray, value: Any) -> NDArray:
    """Nested lists have the dtype that TensorFlow gives them: floats that of the first element
    where it is a float of NumPy's, else float32; integers int32, or int64 beyond its range."""
    if array.dtype.kind == "f" or not array.size:
        first = _first(value)
        is_own = isinstance(first, np.float16 | np.float32 | np.float64)
        return array.astype(first.dtype if is_own else np.float32)
    if array.dtype.kind in "iu":
        low, high = array.min(), array.max()
        for dtype in (np.int32, np.int64):
            if low >= np.iinfo(dtype).min and high <= np.iinfo(dtype).max:
                return array.astype(dtype)
    return _native(array)


def _first(value: Any) -> Any:
    """The first element of nested lists and arrays; None where there is none."""
    while isinstance(value, list | tuple):
        if not value:
            return None
        value = value[0]
    if isinstance(value, np.ndarray):
        return value.reshape(-1)[0] if value.size else None
    return value


def _refusal(value: Any, dtype: DType) -> errors.DtypeError:
    what = f"Cannot convert {_brief(value)} to a tensor of dtype {dtype.name}"
    return errors.DtypeError(None, None, f"{what}{at(user_origin())}")


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def common_dtype(op_name: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Both operands as tensors of one dtype: a Python or NumPy operand takes the tensor's dtype.

    Raises:
        TypeError: two tensors of different dtypes, or a number that the dtype cannot hold.
    """
    if type(x) is type(y) is Tensor and x.spec.dtype is y.spec.dtype:
        return x, y
    x_typed, y_typed = has_dtype(x), has_dtype(y)
    if x_typed or not y_typed:
        a = convert_to_tensor(x)
        b = convert_to_tensor(y) if y_typed else _operand(op_name, y, a.dtype)
    else:
        b = convert_to_tensor(y)
        a = _operand(op_name, x, b.dtype)
    if a.dtype is not b.dtype:
        raise errors.DtypeError(
            None, None,
            f"{op_name}: the operands have dtypes {a.dtype.name} and {b.dtype.name}; "
            f"{_widening(a.dtype, b.dtype)}{at(user_origin())}",
        )  # fmt: skip
    return a, b


def _widening(a: DType, b: DType) -> str:
    """Which of two operands to cast, so that nothing is lost that need not be."""
    if dtypes.string in (a, b):
        return "td.as_string and td.strings.to_number convert between them"

    def rank(d: DType) -> tuple[Any, ...]:
        return d.is_complex, d.is_floating, not d.is_bool, d.size, not d.is_unsigned

    if rank(a) < rank(b):
        return f"cast the first with td.cast(x, td.{b.name})"
    return f"cast the second with td.cast(y, td.{a.name})"


def _operand(op_name: str, value: Any, dtype: DType) -> Tensor:
    """A value without a dtype of its own, in the other operand's."""
    try:
        return convert_to_tensor(value, dtype=dtype)
    except (TypeError, ValueError) as error:
        cast = "" if dtype is dtypes.string else "; cast it with td.cast first"
        place = "" if "\n  at " in str(error) else at(user_origin())
        message = f"{op_name}: the other operand is {dtype.name}{cast}. {error}{place}"
        if isinstance(error, TypeError):
            raise errors.DtypeError(None, None, message) from None
        raise ValueError(message) from None


def has_dtype(value: Any) -> bool:
    """True for values with a dtype of their own that arithmetic must respect."""
    return isinstance(value, _typed)


def is_weak(value: Any) -> bool:
    """True for values that become tensors in the dtype of what they are combined with."""
    return type(value) in _weak


def is_tensor(x: Any) -> bool:
    """True for tensors, symbolic ones too, and variables."""
    return isinstance(x, _typed)


def is_symbolic_tensor(tensor: Any) -> bool:
    """True for a tensor of a function that is being traced: it has no value yet."""
    return is_symbolic(tensor)


def is_symbolic(value: Any) -> bool:
    """True for a tensor of the graph being traced."""
    return isinstance(value, Tensor) and value.is_symbolic


def truths(value: Any) -> Tensor:
    """A tensor that says what is true: numbers of NumPy's arrays are where they are not 0."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        value = value.astype(np.bool_)
    return convert_to_tensor(value, None if has_dtype(value) else dtypes.bool)


__all__ = [
    "common_dtype", "constant", "convert_to_tensor", "has_dtype", "is_symbolic",
    "is_symbolic_tensor", "is_tensor", "register_tensor_conversion_function", "to_array", "truths",
]  # fmt: skip
