"""GraphList: a Python list that grows in a loop or branch of a graph.

AutoGraph puts one in place of a list whose length only a run can tell. Every tensor in its elements
is kept in a list value of its own (`ops/collections/lists.py`). As a Python list it is changed in
place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.context import context, recording, taping
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import ANY, Dim
from treadle.core.spec import ListSpec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.axes import normalize_axis
from treadle.ops.collections import lists
from treadle.ops.collections.tensor_array import is_argument
from treadle.ops.control.control_flow import while_loop
from treadle.ops.conversion import convert_to_tensor, has_dtype, register_converter
from treadle.ops.dims import shape
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.transposing import transpose
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.reshaping import reshape_to

Template = Any  # a structure like an element's, with TensorSpecs as its leaves


class GraphList:
    """A list of tensors, or of equal structures of tensors, of any length.

    Attributes:
        template: an element with TensorSpecs for its tensors; None while nothing is known.
        parts: for each tensor of an element the list of all of them.
    """

    def __init__(self, template: Template, parts: Sequence[Tensor]) -> None:
        self.template = template
        self.parts = list(parts)
        self.gone = False

    # -- changing --------------------------------------------------------------------------------

    def append(self, value: Any) -> None:
        """Add an element.

        Raises:
            TypeError, ValueError: it has another structure, dtype or shape than the others.
        """
        self._learn([value])
        leaves = self._leaves(value)
        self.parts = [lists.list_push(p, x) for p, x in zip(self.parts, leaves, strict=True)]

    def extend(self, values: Any) -> None:
        """Add each element of a list, of another list of the graph, or of a tensor."""
        tensor = isinstance(values, Tensor)
        if isinstance(values, GraphList) or (tensor and not isinstance(values.dims[0], int)):
            count = shape(values)[0] if tensor else values.length()
            if tensor:
                self._learn([TensorSpec(values.dims[1:], values.dtype)])
            else:
                self._learn([values.template])

            def push(i: Any, *parts: Tensor) -> Any:
                inner = GraphList(self.template, parts)
                inner.append(values[i])
                return (i + 1, *inner.parts)

            start = (convert_to_tensor(0, count.dtype), *self.parts)
            self.parts = list(while_loop(lambda i, *_: i < count, push, start)[1:])
        else:
            for value in values:
                self.append(value)

    def pop(self, index: int = -1) -> Any:
        """Take the last element off.

        Raises:
            OutOfRangeError: when the graph runs, for an empty list.
        """
        if not isinstance(index, int) or index != -1:
            self._refuse("taking off another element than the last", "keep a position instead")
        last = self[-1]
        size = self.length() - 1
        self.parts = [lists.list_truncate(p, size) for p in self.parts]
        return last

    def clear(self) -> None:
        self.parts = [lists.list_truncate(p, 0) for p in self.parts]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._learn([value])
        position = self._position(index)
        leaves = self._leaves(value)
        self.parts = [
            lists.list_set(p, position, x) for p, x in zip(self.parts, leaves, strict=True)
        ]

    def __delitem__(self, index: Any) -> None:
        self.pop(index)

    def __iadd__(self, values: Any) -> GraphList:
        self.extend(values)
        return self

    # -- reading ---------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        position = self._position(index)
        found = [lists.list_get(p, position) for p in self._known("read")]
        return nest.pack(self.template, found)

    def __add__(self, values: Any) -> GraphList:
        made = self.copy()
        made.extend(values)
        return made

    def __radd__(self, values: Any) -> GraphList:
        made = graph_list(values)
        made.extend(self)
        return made

    def copy(self) -> GraphList:
        """A list of its own with the same elements."""
        return GraphList(self.template, self.parts)

    def moved(self, template: Template) -> GraphList:
        """The list under another identity; this one becomes unusable."""
        made = self.copy()
        if template is not None and made.template is None:
            made.template, made.parts = template, [_new(s) for s in nest.flatten(template)]
        self.gone = True
        return made

    def length(self) -> Tensor:
        """The number of elements, an int32 scalar."""
        self._check_current()
        return lists.list_length(self.parts[0]) if self.parts else convert_to_tensor(0)

    def stacked(self, axis: int = 0) -> Tensor:
        """All elements along a new axis, as ``td.stack``."""
        tensors = [lists.list_stack(p) for p in self._known("stacked")]
        whole = tensors[0] if not nest.is_nested(self.template) else stack(tensors, 1)
        return _moved(whole, normalize_axis(axis, whole.ndim))

    def joined(self, axis: int = 0) -> Tensor:
        """The elements joined along an axis that they have, as ``td.concat``."""
        if nest.is_nested(self.template):
            self._refuse("joining structures", "collect the tensors in lists of their own")
        (part,) = self._known("joined")
        axis = normalize_axis(axis, len(part.dims))
        if axis == 0:
            return lists.list_concat(part)[0]
        whole = lists.list_stack(part)  # [n, before..., axis, after...]
        order = [*range(1, axis + 1), 0, *range(axis + 1, whole.ndim)]
        moved = transpose(whole, order)
        dims = moved.dims
        return reshape_to(moved, (*dims[:axis], dims[axis] * dims[axis + 1], *dims[axis + 2 :]))

    def __iter__(self) -> Iterator[Any]:
        self._refuse("iteration", "iterate over td.stack(...) of it")

    def __len__(self) -> int:
        self._refuse(
            "its length as a Python number", "len(...) in a converted function is a tensor"
        )

    def __bool__(self) -> bool:
        self._refuse("its truth value", "compare len(...) with 0")

    def __contains__(self, value: Any) -> bool:
        self._refuse("`in`", "use td.reduce_any(td.stack(...) == value)")

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(list, name):
            self._refuse(f"{name}()", "use td.stack(...) of it")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<a list that grows in the graph, of {self.template}>"

    # -- inside ----------------------------------------------------------------------------------

    def _refuse(self, what: str, advice: str) -> NoReturn:
        raise TypeError(
            f"This list has a length that only the running graph knows, and does not allow {what}: "
            f"{advice}{at(user_origin())}"
        )

    def _known(self, use: str) -> list[Tensor]:
        self._check_current()
        if self.template is None:
            raise ValueError(
                f"The list is {use} before its elements' type is known: append first, or tell with "
                f"td.autograph.experimental.set_element_type(list, dtype, shape){at(user_origin())}"
            )
        return self.parts

    def _position(self, index: Any) -> Any:
        if isinstance(index, slice):
            self._refuse("slices", "take a slice of td.stack(...)")
        if isinstance(index, int | np.integer):
            return int(index) if index >= 0 else self.length() + int(index)

        given = convert_to_tensor(index)
        if given.dtype.is_unsigned:
            return given
        size = convert_to_tensor(self.length())

        return where(given < 0, given + cast(size, given.dtype), given)

    def _check_current(self) -> None:
        if self.gone:
            raise ValueError(
                "This list grew in a loop over tensors, and is only known under the name that was "
                f"used there{at(user_origin())}"
            )

    def _learn(self, values: list[Any]) -> None:
        self._check_current()
        if self.template is not None:
            return
        self.template = template_of(values)
        self.parts = [_new(spec) for spec in nest.flatten(self.template)]

    def _leaves(self, value: Any) -> list[Tensor]:
        specs = nest.flatten(self.template)
        try:
            nest.assert_same_structure(self.template, value)
            leaves = zip(nest.flatten(value), specs, strict=True)
            return [convert_to_tensor(x, spec.dtype) for x, spec in leaves]
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"An element does not fit the others of the list, which are {self.template}: "
                f"{error}{at(user_origin())}"
            ) from None


def graph_list(values: Iterable[Any], template: Template = None) -> GraphList:
    """A Python list's elements as a list of the graph."""
    values = list(values)
    if template is None and values:
        template = template_of(values)
    specs = [] if template is None else nest.flatten(template)
    made = GraphList(template, [_new(spec) for spec in specs])
    for value in values:
        made.append(value)
    return made


def template_of(values: Sequence[Any]) -> Template:
    """What elements have in common: one structure and dtypes, with dims that differ left open.

    Raises:
        TypeError: they cannot be elements of one list.
    """
    first = values[0]
    for value in values[1:]:
        try:
            nest.assert_same_structure(first, value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                "A list that changes its length in a conditional or loop on tensors must have "
                f"elements of one structure: {error}{at(user_origin())}"
            ) from None
    columns = zip(*map(nest.flatten, values), strict=True)
    return nest.pack(first, [_common(column) for column in columns])


def _common(column: Sequence[Any]) -> TensorSpec:
    typed = [x for x in column if has_dtype(x) or isinstance(x, TensorSpec)]
    dtype: DType | None = dtypes.as_dtype(typed[0].dtype) if typed else None
    specs = [x if isinstance(x, TensorSpec) else _spec(x, dtype) for x in column]
    for spec in specs[1:]:
        if spec.dtype is not specs[0].dtype or spec.rank != specs[0].rank:
            raise TypeError(
                "A list that changes its length in a conditional or loop on tensors must have "
                f"elements of one dtype and rank, not {specs[0]!r} and {spec!r}{at(user_origin())}"
            )
    pairs = zip(*(s.dims for s in specs), strict=True)
    return TensorSpec([_dim(d) for d in pairs], specs[0].dtype)


def _dim(found: Sequence[Dim]) -> Dim:
    first = found[0]
    same = all(d == first for d in found)
    return first if same and (isinstance(first, int) or is_argument(first)) else ANY


def _spec(value: Any, dtype: DType | None) -> TensorSpec:
    if isinstance(value, Tensor):
        return value.spec
    try:
        with recording(None), taping(()):
            return convert_to_tensor(value, None if has_dtype(value) else dtype).spec
    except (TypeError, ValueError):
        raise TypeError(
            "A list that changes its length in a conditional or loop on tensors can only hold "
            f"tensors and numbers, not {value!r}{at(user_origin())}"
        ) from None


def _new(spec: TensorSpec) -> Tensor:
    return lists.list_new(ListSpec(spec.dims, spec.dtype))


def _moved(x: Tensor, axis: int) -> Tensor:
    order = list(range(1, x.ndim))
    order.insert(axis, 0)
    return transpose(x, order) if axis else x


def _rebuilt(like: GraphList, parts: list[Any]) -> Any:
    """A function's result as a Python list of its elements; otherwise a list of the graph."""
    if context.recorder is not None or any(type(p) is not Tensor for p in parts):
        return GraphList(like.template, parts)
    if not parts:
        return []
    columns = [lists.elements(p) for p in parts]
    if not nest.is_nested(like.template):
        return columns[0]
    return [nest.pack(like.template, row) for row in zip(*columns, strict=True)]


nest.register_node(GraphList, lambda items: items.parts, _rebuilt, composite=False)
register_converter(GraphList, lambda items, dtype: items.stacked())
__all__ = ["GraphList", "graph_list", "template_of"]
