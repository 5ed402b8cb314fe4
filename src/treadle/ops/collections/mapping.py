"""``map_fn``, ``scan``, ``foldl`` and ``foldr``: a function applied to element after element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core import dtypes, errors, nest
from treadle.core.context import context
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.collections.columns import column_of, slices_of
from treadle.ops.collections.tensor_array import TensorArray
from treadle.ops.control.control_flow import traceable, while_loop, without_gradient
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import subtract


class _Elements:
    """The values of a structure, taken apart along their first axes.

    Attributes:
        fn: the function of an element, in the form to call.
        size, count: how many elements there are, as a dim and as an int32 scalar.
    """

    def __init__(self, what: str, fn: Any, elems: Any) -> None:
        self.fn = traceable(what, fn=fn)
        self.structure = elems
        columns = [slices_of(what, x) for x in nest.flatten(elems, expand_composites=False)]
        if not columns:
            raise ValueError(f"{what}: elems holds no tensor{at(user_origin())}")
        first = columns[0].size
        for column in columns[1:]:
            if isinstance(first, int) and isinstance(column.size, int) and first != column.size:
                raise ValueError(
                    f"{what}: first dimensions {first} and {column.size} of elems are not "
                    f"compatible{at(user_origin())}"
                )
        text = f"{what}: the tensors of elems have different numbers of elements"
        self.columns = [column.checked(first, text) for column in columns]
        self.size = first
        self.count = dims_tensor(first, dtypes.int32)

    def at(self, index: Any) -> Any:
        """The structure of the elements at a position."""
        rows = [column.at(index) for column in self.columns]
        return nest.pack(self.structure, rows, expand_composites=False)

    def signature(self) -> Any:
        """The types of the structure of an element."""
        specs = [column.row_spec() for column in self.columns]
        return nest.pack(self.structure, specs, expand_composites=False)

    @property
    def is_empty(self) -> bool:
        """Whether it is known that there are none."""
        return isinstance(self.size, int) and self.size == 0


def _tensors_only(elems: Any) -> None:
    """An error where values are not taken apart by a function: it has forms for tensors only."""
    for leaf in nest.flatten(elems, expand_composites=False):
        convert_to_tensor(leaf)


def _check_options(what: str, parallel_iterations: Any) -> None:
    if parallel_iterations is not None and parallel_iterations <= 0:
        raise ValueError(
            f"{what}: parallel_iterations must be a positive integer{at(user_origin())}"
        )


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """``fn(elems[0]), fn(elems[1]), ...`` along a new first axis.

    Args:
        fn: takes one element, in the structure of `elems`, and returns a tensor or a structure.
        elems: a tensor, a ragged or sparse tensor, a `BatchableExtensionType`, or a structure of
            these with one first dim.
        fn_output_signature, dtype: dtypes or specs in the structure that `fn` returns; that of
            `elems` when omitted. With a `RaggedTensorSpec` the rows may differ in length.
        infer_shape: whether all results of `fn` have one shape.
        back_prop: as for `while_loop`.
        parallel_iterations, swap_memory, name: accepted for TensorFlow programs.

    Returns:
        The structure that `fn` returns: tensors of shape ``[n, *result.shape]``; ragged tensors,
        sparse tensors and extension types with one axis more.

    Raises:
        TypeError: `fn` is no function, or an extension type is not batchable.
        ValueError: a tensor of `elems` is a scalar, or the first dims differ, or the results have
            another structure than the signature.
        InvalidArgumentError: a result has another dtype than the signature.
    """
    _check_options("map_fn", parallel_iterations)
    elements = _Elements("map_fn", fn, elems)
    given = dtype if fn_output_signature is None else fn_output_signature
    if given is None:
        given = elements.signature()
    size, count = elements.size, elements.count
    specs = nest.flatten(given, expand_composites=False)
    columns = [column_of("map_fn", spec, size, count, infer_shape) for spec in specs]
    arrays = [array for column in columns for array in column.arrays]

    def body(i: Any, arrays: list[TensorArray]) -> tuple[Any, ...]:
        result = elements.fn(elements.at(i))
        nest.assert_same_structure(given, result, expand_composites=False)
        values = nest.flatten(result, expand_composites=False)
        pairs = zip(columns, values, strict=True)
        parts = [part for column, value in pairs for part in column.parts(value)]
        return i + 1, [a.write(i, v) for a, v in zip(arrays, parts, strict=True)]

    if not (elements.is_empty and context.recorder is None):
        _, arrays = while_loop(lambda i, _: i < count, body, (constant(0), arrays))
    left = iter(arrays)
    found = [column.batch([next(left) for _ in column.arrays]) for column in columns]
    return without_gradient(nest.pack(given, found, expand_composites=False), back_prop)


def _array(spec: TensorSpec | DType, size: Tensor, infer_shape: bool = True) -> TensorArray:
    """An array for results of a spec, or of a dtype and a shape that the first one tells."""
    if isinstance(spec, TensorSpec):
        return TensorArray(spec.dtype, size, infer_shape=infer_shape, element_shape=spec.shape)
    return TensorArray(spec, size, infer_shape=infer_shape)


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All states of ``state = fn(state, element)`` along a new first axis.

    Args:
        fn: takes the state and one element, in the structure of `elems`; returns the next state.
        elems: a tensor, or a structure of tensors with one first dim.
        initializer: the first state, a tensor or a structure; without it the first element is
            the first state, which is then the first result, too.
        reverse: begin with the last element; result ``i`` is still that of element ``i``.
        back_prop: as for `while_loop`.
        parallel_iterations, swap_memory, infer_shape, name: accepted for TensorFlow programs.

    Returns:
        The structure of the state: tensors of shape ``[n, *state.shape]``.

    Raises:
        TypeError: `fn` is no function, or gives a state of another dtype.
        ValueError: a tensor of `elems` is a scalar, or the first dims differ, or `fn` gives a state
            of another structure or shape.
        OutOfRangeError: there are neither elements nor an initializer.
    """
    _check_options("scan", parallel_iterations)
    _tensors_only(elems)
    elements = _Elements("scan", fn, elems)
    state, start = _first_state(elements, initializer, reverse)
    structure = state
    arrays = [_array(TensorSpec(x.shape, x.dtype), elements.count) for x in nest.flatten(state)]
    last = subtract(elements.count, 1)
    if initializer is None:
        first = last if reverse else constant(0)
        arrays = [a.write(first, x) for a, x in zip(arrays, nest.flatten(state), strict=True)]

    def body(i: Any, state: Any, arrays: list[TensorArray]) -> tuple[Any, ...]:
        position = last - i if reverse else i
        state = _next_state(elements.fn, state, elements.at(position), structure)
        values = nest.flatten(state)
        return i + 1, state, [a.write(position, v) for a, v in zip(arrays, values, strict=True)]

    loop_vars = (start, state, arrays)
    _, _, arrays = while_loop(lambda i, *_: i < elements.count, body, loop_vars)
    return without_gradient(nest.pack(structure, [a.stack() for a in arrays]), back_prop)


def _first_state(elements: _Elements, initializer: Any, reverse: bool) -> tuple[Any, Tensor]:
    """The state before the loop, and the number of the first element that the loop takes."""
    if initializer is None:
        if elements.is_empty:
            raise errors.OutOfRangeError(
                None, None, f"there is neither an element nor an initializer{at(user_origin())}"
            )
        state = elements.at(elements.count - 1 if reverse else 0)
        return state, constant(1)
    return nest.map_structure(convert_to_tensor, initializer), constant(0)


def _next_state(fn: Any, state: Any, element: Any, structure: Any) -> Any:
    """The state after an element.

    Raises:
        ValueError: it has another structure.
    """
    found = fn(state, element)
    nest.assert_same_structure(structure, found)
    return nest.map_structure(
        lambda old, new: convert_to_tensor(new, dtype_hint=old.dtype), structure, found
    )


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last state of ``state = fn(state, element)``, from the first element to the last.

    Arguments and errors are those of `scan`.

    Returns:
        The structure of the state.
    """
    found = _fold("foldl", fn, elems, initializer, parallel_iterations, reverse=False)
    return without_gradient(found, back_prop)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last state of ``state = fn(state, element)``, from the last element to the first.

    Arguments and errors are those of `scan`.

    Returns:
        The structure of the state.
    """
    found = _fold("foldr", fn, elems, initializer, parallel_iterations, reverse=True)
    return without_gradient(found, back_prop)


def _fold(
    what: str, fn: Any, elems: Any, initializer: Any, parallel_iterations: int, reverse: bool
) -> Any:
    _check_options(what, parallel_iterations)
    _tensors_only(elems)
    elements = _Elements(what, fn, elems)
    state, start = _first_state(elements, initializer, reverse)
    structure = state
    last = elements.count - 1

    def body(i: Any, state: Any) -> tuple[Any, ...]:
        element = elements.at(last - i if reverse else i)
        return i + 1, _next_state(elements.fn, state, element, structure)

    return while_loop(lambda i, _: i < elements.count, body, (start, state))[1]
