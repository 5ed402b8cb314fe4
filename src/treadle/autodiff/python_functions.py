"""`py_function`: Python code on eager tensors as a differentiable operation of the graph."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.autodiff.tape import GradientTape, UnconnectedGradients
from treadle.core import dtypes, errors, nest
from treadle.core.composite_spec import CompositeSpec, CompositeTensor, CompositeTensorSpec
from treadle.core.context import context
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, SymbolicTensor, Tensor, from_array
from treadle.graph.literals import register_typed
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.indexing.gather import dense
from treadle.ops.python_functions import (
    USER_CODE,
    OnParts,
    StagedCall,
    _as_list,
    _name,
    _results_of,
    arrange,
    call_user,
    check_given,
    check_shapes,
    decorator,
    result_types,
)
from treadle.ops.registry import Op, OpCall, register, run

_MOST_RECORDS = 1000  # of calls whose gradient was prepared and not taken
_records: OrderedDict[int, tuple[GradientTape, list[Tensor], list[Tensor]]] = OrderedDict()
_numbers = itertools.count(1)


def py_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None,
    name: str | None = None, *, shape: Any = None,
) -> Any:  # fmt: skip
    """Run Python code on eager tensors when the function runs; gradients pass through it.

    Args:
        func: takes one eager tensor for each of `inp`, returns a tensor or a list of them. Without
            it, what is returned is a decorator, ``@td.py_function(Tout=td.float32)``.
        inp, Tout, shape: as for `numpy_function`: a result without a shape has an unknown rank
            while a function is traced. Ragged and sparse tensors are given to `func` as such, and
            may be results, whose types are the specs of such tensors.

    The gradient is that of the operations which `func` runs. A call is recorded for it, or, where
    that was not foreseen (inside loops), `func` is run again.

    Raises:
        InvalidArgumentError: a result does not fit its type; other exceptions of `func` become
            what TensorFlow maps them to.
    """
    check_given("py_function", func, inp, Tout)
    if func is None:
        return decorator(py_function, Tout=Tout, name=name, shape=shape)
    given = _as_list(inp)
    if any(isinstance(x, CompositeTensor | CompositeTensorSpec) for x in (*given, *_as_list(Tout))):
        return _of_composites(func, given, Tout, shape)
    arguments = [convert_to_tensor(x) for x in given]
    if context.recorder is None:
        wanted = [d for d, _ in result_types(Tout, shape)]
        found = _checked_tensors(func, call_user(func, *arguments), wanted)
        return arrange(found, Tout) if wanted else []
    call = StagedCall(func, arguments, result_types(Tout, shape), _checked_tensors)
    results = _run(call.func, call.operands, call.specs)
    return arrange(call.results(results), Tout) if results else []


def _of_composites(func: Any, given: Sequence[Any], tout: Any, shape: Any) -> Any:
    """`py_function` of the tensors that ragged and sparse ones among the arguments and results are
    made of."""
    if shape is not None:
        raise ValueError(
            "py_function: where an argument or result is ragged or sparse, a TensorSpec in Tout "
            f"gives the shape of another result{at(user_origin())}"
        )
    kinds = _as_list(tout)
    whole = _OnComposites(func, [getattr(x, "_type_spec", None) for x in given], kinds)
    leaves = [part for x in given for part in nest.flatten(x)]
    flat = py_function(whole, leaves, [part for kind in kinds for part in nest.flatten(kind)])
    return arrange(_packed(kinds, flat), tout)


def _packed(kinds: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
    """Values of these kinds, a part each but for those of composite tensors, from all parts."""
    left = iter(parts)
    return [
        nest.pack(kind, [next(left) for _ in nest.flatten(kind)])
        if isinstance(kind, CompositeSpec)
        else next(left)
        for kind in kinds
    ]


class _OnComposites:
    """A function of composite tensors as one from and to the tensors that these are made of.

    Args:
        func: the user's function.
        takes: for each argument its type, or None for a tensor.
        gives: the types of the results as the user wrote them.
    """

    def __init__(self, func: Any, takes: Sequence[Any], gives: Sequence[Any]) -> None:
        self.func, self.takes, self.gives = func, takes, gives
        self.__name__ = _name(func)

    def __call__(self, *parts: Any) -> list[Any]:
        results = self.func(*_packed(self.takes, parts))
        found: list[Any] = []
        for value, kind in zip(
            _results_of(self, results, len(self.gives)), self.gives, strict=True
        ):
            wanted = isinstance(kind, CompositeSpec)
            if wanted != isinstance(value, CompositeTensor) or (
                wanted and not kind.is_compatible_with(value)
            ):
                raise errors.InvalidArgumentError(
                    None, None, f"py_function: func={_name(self)} returned {value!r} which did not "
                    f"match Tout={kind!r}",
                )  # fmt: skip
            found += nest.flatten(value) if wanted else [value]
        return found


def call_later(
    func: Callable[..., list[Any]], arguments: Sequence[Tensor],
    types: Sequence[tuple[DType, TensorShape]], has_effects: bool,
) -> list[Tensor]:  # fmt: skip
    """Have the graph call a function of tensors that the library itself wrote.

    Args:
        types: (dtype, shape) of each result, as far as they are known.
        has_effects: whether it is called where its results are not used, too.
    """
    call = StagedCall(func, arguments, types, _checked_tensors)
    op = PY_FUNCTION if has_effects else LATE_CALL
    return call.results(_run(call.func, call.operands, call.specs, op))


def _run(
    func: Any, arguments: Sequence[Any], specs: tuple[TensorSpec, ...], op: Op | None = None
) -> list[Tensor]:
    """The op's results without the last one, the number of its record."""
    outputs = run(op or PY_FUNCTION, *arguments, func=func, out=specs, recorded=False)
    return list(outputs[:-1]) if specs else []


def _checked_tensors(func: Any, results: Any, wanted: Sequence[Any]) -> list[Tensor]:
    """The results as tensors of these dtypes; values without a dtype take them."""
    tensors = []
    for number, (value, dtype) in enumerate(
        zip(_results_of(func, results, len(wanted)), wanted, strict=True)
    ):
        given = value if has_dtype(value) else convert_to_tensor(value, dtype)
        tensor = convert_to_tensor(given)
        if tensor.dtype is not dtype:
            raise errors.InvalidArgumentError(
                None, None,
                f"result {number} of {_name(func)} is {tensor.dtype.name}, but Tout says "
                f"{dtype.name}",
            )  # fmt: skip
        tensors.append(tensor)
    return tensors


def _infer(
    *inputs: Spec, func: Any, out: tuple[TensorSpec, ...], recorded: bool
) -> tuple[Spec, ...]:
    number = TensorSpec((), dtypes.int64)
    return (*(spec.with_fresh_symbols("result") for spec in out), number)


def _call_now(
    *arrays: NDArray, func: Any, out: tuple[TensorSpec, ...], recorded: bool
) -> tuple[NDArray, ...]:
    inputs = [from_array(a.copy()) for a in arrays]
    if recorded:
        outputs, number = _record(func, inputs, out)
    else:
        outputs, number = _evaluate(func, inputs, out), 0
    found = [t._numpy() for t in outputs]
    check_shapes(func, found, out)
    return (*found, np.array(number, np.int64))


def _evaluate(func: Any, inputs: list[Tensor], out: Sequence[TensorSpec]) -> list[Tensor]:
    return _checked_tensors(func, call_user(func, *inputs), [s.dtype for s in out])


def _record(func: Any, inputs: list[Tensor], out: Sequence[TensorSpec]) -> tuple[list[Tensor], int]:
    with GradientTape() as tape:
        tape.watch([x for x in inputs if x.dtype.is_differentiable])
        outputs = _evaluate(func, inputs, out)
    number = next(_numbers)
    _records[number] = (tape, inputs, outputs)
    while len(_records) > _MOST_RECORDS:
        _records.popitem(last=False)
    return outputs, number


def _gradient(call: OpCall, *output_grads: Any) -> list[Any]:
    """A `py_function` of the inputs, the record's number and the outputs' gradients."""
    _ask_for_record(call.outputs[-1])
    places = [i for i, x in enumerate(call.inputs) if x.dtype.is_differentiable]
    specs = tuple(TensorSpec(call.inputs[i].dims, call.inputs[i].dtype) for i in places)
    used = [i for i, o in enumerate(call.outputs) if o.dtype.is_differentiable]
    backward = _Backward(call.attrs["func"], call.attrs["out"], len(call.inputs), places, used)
    grads = [output_grads[i] for i in used]
    found = _run(backward, [*call.inputs, call.outputs[-1], *grads], specs)
    by_place = dict(zip(places, found, strict=True))
    return [by_place.get(i) for i in range(len(call.inputs))]


def _ask_for_record(number: Tensor) -> None:
    """Have the forward call recorded, where its node is at hand and not yet compiled."""
    node = number.value.node if isinstance(number, SymbolicTensor) else None
    if node is not None and node.op in (PY_FUNCTION, LATE_CALL):
        node.attrs = {**node.attrs, "recorded": True}


class _Backward:
    """The gradient of a function at the place of one call."""

    def __init__(
        self, func: Any, out: tuple[TensorSpec, ...], count: int, places: list[int],
        used: list[int],
    ) -> None:  # fmt: skip
        self.func, self.out, self.count = func, out, count
        self.places, self.used = places, used
        self.__name__ = f"gradient of {_name(func)}"

    def __call__(self, *arguments: Tensor) -> list[Tensor]:
        inputs, number = list(arguments[: self.count]), int(arguments[self.count])
        found = _records.pop(number, None)
        if found is None or context.tapes:  # a tape around wants the gradient's own gradient
            with GradientTape() as tape:
                tape.watch([inputs[i] for i in self.places])
                outputs = _evaluate(self.func, inputs, self.out)
        else:
            tape, inputs, outputs = found
        gradients = tape.gradient(
            [outputs[i] for i in self.used],
            [inputs[i] for i in self.places],
            output_gradients=list(arguments[self.count + 1 :]),
            unconnected_gradients=UnconnectedGradients.ZERO,
        )
        return [dense(g) for g in gradients]


def _parts_of_staged(call: OnParts) -> dict[str, Any] | None:
    if call.checked is not _checked_tensors:  # NumPy's
        return None
    return {
        "func": call.func, "takes_ranked": list(call.takes_ranked), "ranked": list(call.ranked),
        "dtypes": list(call.dtypes),
    }  # fmt: skip


def _parts_of_gradient(gradient: _Backward) -> dict[str, Any]:
    return {name: getattr(gradient, name) for name in ("func", "out", "count", "places", "used")}


# Saved functions have those of a function that has a text itself.
register_typed(
    "call on parts", [OnParts], _parts_of_staged,
    lambda parts: OnParts(**parts, checked=_checked_tensors),
)  # fmt: skip
register_typed(
    "gradient of a call", [_Backward], _parts_of_gradient, lambda parts: _Backward(**parts)
)

PY_FUNCTION = register(
    Op(
        "py_function", _infer, _call_now, _gradient, effect="io", tags=frozenset({"strings"}),
        callback=USER_CODE,
    )
)  # fmt: skip
LATE_CALL = register(
    Op(
        "late_call", _infer, _call_now, _gradient, tags=frozenset({"strings"}),
        callback="only a run knows the rank of its operands",
    )
)  # fmt: skip
