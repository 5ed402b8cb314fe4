"""Lists on a GPU: the host has the list, the device its elements, each in memory of its own.

An element is never written once it is in a list, so lists and programs share its buffer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core import errors
from treadle.core.list_value import ListValue
from treadle.core.origin import at, failed_at
from treadle.core.shapes import ANY, substitute
from treadle.core.spec import ListSpec, has_element_shape
from treadle.graph.ir import Node
from treadle.ops.lowering import ListAction, ListForm
from treadle.runtime.gpu.memory import Buffer
from treadle.runtime.schedule.steps import ListStep, Operand

if TYPE_CHECKING:
    from treadle.runtime.gpu.run import Run

ALIGNMENT = 256  # bytes: where memory of its own begins, as vectors of elements must


class Lists:
    """The list steps of one run."""

    def __init__(self, run: Run) -> None:
        self.run, self.storage, self.driver = run, run.storage, run.driver

    def step(self, step: ListStep) -> None:
        form = step.node.op.lower
        assert isinstance(form, ListForm)
        _ACTIONS[form.action](self, step)

    # -- operands --------------------------------------------------------------------------------

    def _list(self, operand: Operand) -> Any:
        return self.run.registers[operand.value]

    def _number(self, operand: Operand) -> int:
        return int(self.run.on_host(operand))

    def _give(self, step: ListStep, items: list[Any]) -> None:
        """The list that a step makes."""
        self.run.registers[step.outputs[0].value] = ListValue(items, _spec(step.node))

    def _item(self, step: ListStep) -> Buffer:
        """The element that a step puts into its list: memory that a later step fills, or a copy."""
        if step.slot is None:
            return self.storage.copy(self.run.buffer_of(step.inputs[-1]))
        made = self.run.buffers[step.slot] = self.run.empty(step.slot)
        return made

    def _zeros(self, shape: Sequence[int], node: Node) -> Buffer:
        made = self.storage.empty(node.inputs[0].spec.dtype.np_dtype, tuple(shape))
        if made.size:
            self.run.submitted += 1
            self.driver.clear(made.address, made.size)
        return made

    def _unwritten(self, items: ListValue, step: ListStep) -> Buffer:
        """An element that nobody has written, shaped as the list, the node or the others say."""
        node = step.node
        spec = node.inputs[0].spec
        known = spec.dims if has_element_shape(spec) else None
        for dims in (known, node.attrs.get("dims")):
            if dims is not None and ANY not in dims:
                shape = [substitute(d, self.run.symbols) for d in dims]
                if all(isinstance(d, int) for d in shape):
                    return self._zeros(shape, node)  # type: ignore[arg-type]
        for written in items.items():
            if written is not None:
                return self._zeros(written.shape, node)
        text = f"{items!r} is read before any of them was written: their shape is unknown"
        raise self._error(step, errors.InvalidArgumentError, text)

    def _full(self, items: ListValue, step: ListStep) -> list[Buffer]:
        found: list[Any] = list(items.items())
        return [self._unwritten(items, step) if x is None else x for x in found]

    def _position(self, step: ListStep, items: ListValue, grow: bool = False) -> int:
        position = self._number(step.inputs[1])
        if position < 0 or (position >= len(items) and not grow):
            text = f"index {position} is out of range for {items!r}"
            raise self._error(step, errors.OutOfRangeError, text)
        return position

    def _error(self, step: ListStep, kind: type[errors.OpError], text: str) -> Exception:
        node = step.node
        error = kind(None, node.op, f"{node.op.name}: {text}{at(node.origin)}")
        return failed_at(node.origin, error)

    def _hand_out(self, operand: Operand, parts: Sequence[Buffer], shape: Sequence[int]) -> None:
        """Put elements one after the other where a result is, which has this shape."""
        run = self.run
        run.learn(operand.value, shape)
        assert operand.place is not None
        target = run.address(operand.place)
        for part in parts:
            run.copy(target, part.address, part.size)
            target += part.size

    def _pieces(self, values: Buffer, shapes: Sequence[tuple[int, ...]]) -> list[Buffer]:
        """Consecutive parts of a buffer as elements: of one copy where each begins well."""
        sizes = [math.prod(s) * values.dtype.itemsize for s in shapes]
        if all(size % ALIGNMENT == 0 for size in sizes):
            whole = self.storage.copy(values)
            starts = itertools.accumulate(sizes, initial=whole.address)
            return [
                Buffer(whole.memory, start, values.dtype, shape)
                for start, shape in zip(starts, shapes, strict=False)
            ]
        made, start = [], values.address
        for shape, size in zip(shapes, sizes, strict=True):
            piece = self.storage.empty(values.dtype, shape)
            self.run.copy(piece.address, start, size)
            made.append(piece)
            start += size
        return made

    # -- actions ---------------------------------------------------------------------------------

    def new(self, step: ListStep) -> None:
        count = self._number(step.inputs[0]) if step.inputs else 0
        if count < 0:
            text = f"a list cannot have {count} elements"
            raise self._error(step, errors.InvalidArgumentError, text)
        self._give(step, [None] * count)

    def push(self, step: ListStep) -> None:
        items: ListValue = self._list(step.inputs[0])
        made = items.push(self._item(step), _spec(step.node))  # type: ignore[arg-type]
        self.run.registers[step.outputs[0].value] = made

    def get(self, step: ListStep) -> None:
        items: ListValue = self._list(step.inputs[0])
        found: Any = items.get(self._position(step, items))
        if found is None:
            found = self._unwritten(items, step)
        (output,) = step.outputs
        self.run.learn(output.value, found.shape)
        if output.place is None:
            self.run.registers[output.value] = self.storage.read(found.address, found.dtype, ())
        elif output.place.kind == "element":
            self.run.buffers[output.place] = found
        else:
            self.run.copy(self.run.address(output.place), found.address, found.size)

    def set(self, step: ListStep) -> None:
        items: ListValue = self._list(step.inputs[0])
        position = self._position(step, items, bool(step.node.attrs.get("grow")))
        grown = items.grown(position + 1)
        made = grown.set(position, self._item(step), _spec(step.node))  # type: ignore[arg-type]
        self.run.registers[step.outputs[0].value] = made

    def length(self, step: ListStep) -> None:
        items: ListValue = self._list(step.inputs[0])
        self.run.from_host(step.outputs[0], np.int32(len(items)))

    def truncate(self, step: ListStep) -> None:
        items: ListValue = self._list(step.inputs[0])
        self._give(step, list(items.items()[: self._number(step.inputs[1])]))

    def extend(self, step: ListStep) -> None:
        items: ListValue = self._list(step.inputs[0])
        self._give(step, list(items.grown(self._number(step.inputs[1])).items()))

    def stack(self, step: ListStep) -> None:
        items: ListValue = self._list(step.inputs[0])
        parts = self._full(items, step)
        shape = parts[0].shape if parts else self._unwritten(items, step).shape
        self._hand_out(step.outputs[0], parts, (len(parts), *shape))

    def unstack(self, step: ListStep) -> None:
        values = self.run.buffer_of(step.inputs[0])
        count, *shape = values.shape
        self._give(step, list(self._pieces(values, [tuple(shape)] * count)))

    def concat(self, step: ListStep) -> None:
        items: ListValue = self._list(step.inputs[0])
        parts = self._full(items, step)
        shape = parts[0].shape if parts else self._unwritten(items, step).shape
        rows = [part.shape[0] for part in parts]
        self._hand_out(step.outputs[0], parts, (sum(rows), *shape[1:]))
        self.run.from_host(step.outputs[1], np.array(rows, np.int32))

    def split(self, step: ListStep) -> None:
        values, lengths = self.run.buffer_of(step.inputs[0]), self.run.to_host(step.inputs[1])
        count = values.shape[0]
        if lengths.sum() != count:
            text = f"the lengths add up to {lengths.sum()}, not to the {count} values"
            raise self._error(step, errors.InvalidArgumentError, text)
        shapes = [(int(n), *values.shape[1:]) for n in lengths]
        self._give(step, list(self._pieces(values, shapes)))

    def pack(self, step: ListStep) -> None:
        items: ListValue = self._list(step.inputs[0])
        rank = step.node.inputs[0].spec.rank
        found: list[Any] = list(items.items())
        shapes = np.full((len(found), rank), -1, np.int64)
        written = [(n, x) for n, x in enumerate(found) if x is not None]
        for n, x in written:
            shapes[n] = x.shape
        total = sum(math.prod(x.shape) for _, x in written)
        self._hand_out(step.outputs[0], [x for _, x in written], (total,))
        self.run.from_host(step.outputs[1], shapes)

    def unpack(self, step: ListStep) -> None:
        values, shapes = self.run.buffer_of(step.inputs[0]), self.run.to_host(step.inputs[1])
        written = np.all(shapes >= 0, axis=1)
        dims = [tuple(map(int, s)) for s in shapes[written]]
        pieces = iter(self._pieces(values, dims))
        self._give(step, [next(pieces) if known else None for known in written])

    def add(self, step: ListStep) -> None:
        a, b = map(self._list, step.inputs)
        if len(a) != len(b):
            text = f"{a!r} cannot be added to {b!r}"
            raise self._error(step, errors.InvalidArgumentError, text)
        made: list[Any] = []
        for x, y in zip(a.items(), b.items(), strict=True):
            if x is None or y is None:
                made.append(y if x is None else x)
                continue
            total = self.storage.empty(x.dtype, x.shape)
            dtype = step.node.inputs[0].spec.dtype
            addresses = [[x.address], [y.address], [total.address]]
            self.run.small("add", dtype, addresses, x.count)
            made.append(total)
        self._give(step, made)


def _spec(node: Node) -> ListSpec:
    spec = node.outputs[0].spec
    assert isinstance(spec, ListSpec)
    return spec


_ACTIONS: dict[ListAction, Callable[[Lists, ListStep], None]] = {
    action: getattr(Lists, action.value)
    for action in ListAction
    if action not in (ListAction.JOIN, ListAction.SCATTER)  # Python's, with all lists of the graph
}
