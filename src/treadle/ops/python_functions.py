"""`numpy_function`: Python code on NumPy arrays as an operation of the graph."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors, nest
from treadle.core.context import context, taping
from treadle.core.dtypes import DType
from treadle.core.origin import at, is_internal, user_origin
from treadle.core.shapes import TensorShape
from treadle.core.spec import Spec, TensorSpec, spec_text
from treadle.core.tensor import NDArray, Tensor, lacks_rank, placed_array
from treadle.ops.conversion import convert_to_tensor, to_array
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping.unknown_rank import of_parts, parts_of, specs_of_parts

# What stands for an exception of the user's function, as TensorFlow maps them.
_ERRORS: list[tuple[type[Exception], type[errors.OpError]]] = [
    (NotImplementedError, errors.UnimplementedError),
    (MemoryError, errors.ResourceExhaustedError),
    (StopIteration, errors.OutOfRangeError),
    (TypeError, errors.InvalidArgumentError),
    (ValueError, errors.InvalidArgumentError),
]


def numpy_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None,
    stateful: bool = True, name: str | None = None, *, shape: Any = None,
) -> Any:  # fmt: skip
    """Run Python code on ndarrays when the function runs. It has no gradient.

    Args:
        func: takes one ndarray for each of `inp`, returns an array or a list of them. Without
            it, what is returned is a decorator, ``@td.numpy_function(Tout=td.float32)``.
        inp: tensors, or what converts to tensors. Outside of functions None may be among them, as
            in TensorFlow: `func` gets an array of it, whose dtype is object.
        Tout: the types of the results, one or a list: a TensorSpec each, or a dtype each with
            their shapes given by `shape`; None is a dim that a run tells. Without a shape the
            result has an unknown rank while a function is traced; ``y.set_shape([...])``,
            `ensure_shape`, `reshape` or another Python function settles it, and it may be returned.
            Operations on it that need the rank are called by the run, one by one.
        stateful: False promises that equal arguments give equal results and that nothing else
            happens: the call may then be merged with another, moved or left out.
        shape: the shape of the result, or a list of shapes for a list of dtypes.

    Returns:
        A tensor, or a list of them where `Tout` is a list.

    Raises:
        InvalidArgumentError: a result does not fit its type; an exception of `func` inside a
            compiled function becomes the error TensorFlow maps it to.
        TypeError: `Tout` is missing, or `inp` is where `func` is given, or the other way round.
    """
    check_given("numpy_function", func, inp, Tout)
    if func is None:
        return decorator(numpy_function, Tout=Tout, stateful=stateful, name=name, shape=shape)
    given = _as_list(inp)
    if context.recorder is None:
        wanted = [d for d, _ in result_types(Tout, shape)]
        arrays = [np.array(x) if x is None else convert_to_tensor(x).numpy() for x in given]
        with taping(()):
            results = func(*arrays)
        made = [placed_array(a) for a in _checked_arrays(func, results, wanted)]
        return arrange(made, Tout)
    op = NUMPY_FUNCTION if stateful else PURE_NUMPY_FUNCTION
    arguments = [convert_to_tensor(x) for x in given]
    call = StagedCall(func, arguments, result_types(Tout, shape), _checked_arrays)
    outputs = run(op, *call.operands, func=call.func, out=call.specs)
    return arrange(call.results(outputs if isinstance(outputs, tuple) else (outputs,)), Tout)


def check_given(what: str, func: Any, inp: Any, tout: Any) -> None:
    """Refuse to be called with half of what a call, or a decorator, needs."""
    if tout is None:
        raise TypeError(f"{what}: give Tout, the types of the results{at(user_origin())}")
    if (func is None) != (inp is None):
        raise TypeError(
            f"{what}: give func and inp, or neither of them for a decorator{at(user_origin())}"
        )


def decorator(call: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """What makes a Python function one of tensors, by `call(function, arguments, **options)`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any) -> Any:
            return call(function, args, **options)

        return decorated

    return decorate


def _as_list(inp: Any) -> list[Any]:
    return list(inp) if isinstance(inp, list | tuple) else [inp]


def result_types(tout: Any, shape: Any) -> list[tuple[DType, Any]]:
    """(dtype, shape or None) of each result."""
    wanted = nest.flatten(tout)
    shapes = [None] * len(wanted)
    if shape is not None:
        shapes = list(shape) if isinstance(tout, list | tuple) else [shape]
    if len(shapes) != len(wanted):
        raise ValueError(f"{len(wanted)} dtypes with {len(shapes)} shapes{at(user_origin())}")
    return [
        (t.dtype, t.shape) if isinstance(t, TensorSpec) else (dtypes.as_dtype(t), TensorShape(s))
        for t, s in zip(wanted, shapes, strict=True)
    ]


class OnParts:
    """A function of tensors as one from and to the values of a graph.

    Args:
        func: takes and gives tensors.
        takes_ranked, ranked: which of its arguments and results are one value; others are two.
        dtypes: of the results.
        checked: makes tensors or arrays of these dtypes of what the function returns.
    """

    def __init__(
        self, func: Any, takes_ranked: Sequence[bool], ranked: Sequence[bool],
        dtypes: Sequence[DType], checked: Callable[..., Sequence[Any]],
    ) -> None:  # fmt: skip
        self.func, self.takes_ranked, self.ranked = func, takes_ranked, ranked
        self.dtypes, self.checked = dtypes, checked
        self.__name__ = _name(func)

    def __call__(self, *parts: Any) -> list[Any]:
        given = iter(parts)
        arguments = [
            next(given) if ranked else of_parts(next(given), next(given))
            for ranked in self.takes_ranked
        ]
        found = self.checked(self.func, self.func(*arguments), self.dtypes)
        values: list[Any] = []
        for value, ranked in zip(found, self.ranked, strict=True):
            if ranked:
                values.append(value)
            elif isinstance(value, Tensor):
                values += parts_of(value)
            else:
                values += [value.reshape(-1), np.array(value.shape, np.int64)]
        return values


class StagedCall:
    """A call of Python code in a graph. Operands and results of unknown rank go through the graph
    as two values: elements and shape.

    Args:
        func: the user's function.
        arguments: the tensors that it takes.
        types: (dtype, shape) of each result.
        checked: makes tensors or arrays of these dtypes of what the function returns.

    Attributes:
        func: the function of the operands that gives the graph's values.
        operands, specs: the operands of the node, and the specs of its results.
    """

    def __init__(
        self, func: Any, arguments: Sequence[Tensor], types: Sequence[tuple[DType, TensorShape]],
        checked: Callable[..., Sequence[Any]],
    ) -> None:  # fmt: skip
        self.dtypes = [d for d, _ in types]
        self.ranked = [s.rank is not None for _, s in types]
        self.takes_ranked = [not lacks_rank(x) for x in arguments]
        self.operands: list[Tensor] = []
        for x, ranked in zip(arguments, self.takes_ranked, strict=True):
            self.operands += [x] if ranked else parts_of(x)
        specs: list[TensorSpec] = []
        for dtype, shape in types:
            ranked = shape.rank is not None
            specs += [TensorSpec(shape, dtype)] if ranked else specs_of_parts(dtype)
        self.specs = tuple(specs)
        same = all(self.ranked) and all(self.takes_ranked)
        self.func = func if same else OnParts(
            func, self.takes_ranked, self.ranked, self.dtypes, checked
        )  # fmt: skip

    def results(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """The tensors of the results."""
        values = iter(outputs)
        return [
            next(values) if ranked else of_parts(next(values), next(values))
            for ranked in self.ranked
        ]


def arrange(results: Any, tout: Any) -> Any:
    """The results as `Tout` asks for them: one tensor, or a list."""
    tensors = list(results) if isinstance(results, list | tuple) else [results]
    return tensors if isinstance(tout, list | tuple) else tensors[0]


def call_user(func: Callable[..., Any], *args: Any) -> Any:
    """``func(*args)``; its exception becomes an OpError that names type, message and line."""
    try:
        return func(*args)
    except errors.OpError:
        raise
    except Exception as error:
        kind = next((k for t, k in _ERRORS if isinstance(error, t)), errors.UnknownError)
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if not is_internal(f.filename)
        ]
        place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        text = f"{type(error).__name__}: {error}{place}"
        raise kind(None, None, text) from error


def _results_of(func: Any, results: Any, count: int) -> list[Any]:
    found = list(results) if isinstance(results, list | tuple) and count != 1 else [results]
    if count == 0:
        return []
    if count == 1 and isinstance(results, list | tuple) and len(results) == 1:
        found = list(results)
    if len(found) != count:
        raise errors.InvalidArgumentError(
            None, None, f"{_name(func)} returned {len(found)} values where Tout has {count}"
        )
    return found


def _checked_arrays(func: Any, results: Any, wanted: Sequence[DType]) -> list[NDArray]:
    """The results as arrays of these dtypes; Python numbers take them."""
    arrays = []
    for number, (value, dtype) in enumerate(
        zip(_results_of(func, results, len(wanted)), wanted, strict=True)
    ):
        typed = hasattr(value, "dtype")
        array = np.asarray(value) if typed else to_array(value, dtype)
        if array.dtype != dtype.np_dtype:
            raise errors.InvalidArgumentError(
                None, None,
                f"result {number} of {_name(func)} is {array.dtype}, but Tout says {dtype.name}",
            )  # fmt: skip
        arrays.append(np.array(array))
    return arrays


def check_shapes(func: Any, arrays: Sequence[NDArray], specs: Sequence[TensorSpec]) -> None:
    """InvalidArgumentError for a result whose shape is not what its spec says."""
    for number, (array, spec) in enumerate(zip(arrays, specs, strict=True)):
        if not spec.shape.is_compatible_with(array.shape):
            raise errors.InvalidArgumentError(
                None, None,
                f"result {number} of {_name(func)} has shape {array.shape}, but Tout says "
                f"{spec_text(spec)}",
            )  # fmt: skip


def _name(func: Any) -> str:
    return str(getattr(func, "__name__", type(func).__name__))


def _infer(*inputs: Spec, func: Any, out: tuple[TensorSpec, ...]) -> tuple[Spec, ...]:
    return tuple(spec.with_fresh_symbols("result") for spec in out)


def _call_now(*arrays: NDArray, func: Any, out: tuple[TensorSpec, ...]) -> tuple[NDArray, ...]:
    copies = [a.copy() if a.ndim else a[()] for a in arrays]
    found = _checked_arrays(func, call_user(func, *copies), [spec.dtype for spec in out])
    check_shapes(func, found, out)
    return tuple(found)


USER_CODE = "it runs Python code of the user"
NUMPY_FUNCTION = register(
    Op(
        "numpy_function", _infer, _call_now, effect="io", callback=USER_CODE,
        tags=frozenset({"strings"}),
    )
)  # fmt: skip
PURE_NUMPY_FUNCTION = register(
    Op("pure_numpy_function", _infer, _call_now, callback=USER_CODE, tags=frozenset({"strings"}))
)
