"""What a node is to the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from treadle.core.shapes import ANY, Dim, product
from treadle.core.spec import ListSpec, TensorSpec
from treadle.graph.ir import Node, Value
from treadle.ops.conversion import CONST
from treadle.ops.lowering import (
    Compaction,
    Compute,
    Library,
    ListForm,
    ProgramLoops,
    Rows,
    Slice,
    Structure,
)
from treadle.ops.properties import PartKind


class Role(Enum):
    """How a node is implemented."""

    CONSTANT = "constant"  # a literal
    ALIAS = "alias"  # its output is its input under other dims
    SCALAR = "scalar"  # rank-0 arithmetic in registers
    ARRAY = "array"  # part of a kernel
    VIEW = "view"  # only moves elements: evaluated inside its consumers
    LIBRARY = "library"
    READ = "read"
    ASSIGN = "assign"
    COND = "cond"
    WHILE = "while"
    CALL = "call"  # a callback into Python
    LIST = "list"
    UPDATE = "update"  # writes a part of an array, in its memory or in a copy
    APPEND = "append"  # puts rows at the end of an array that grows
    SIZE = "size"  # gives a symbol its value
    COMPACTION = "compaction"  # takes what a mask selects
    SLICE = "slice"  # a part whose bounds are data is read, or placed among zeros
    LOOPS = "loops"  # plain loops written out in the program


def role_of(node: Node) -> Role:
    """The node's role; `Role.CALL` for whatever the compiler has no form of."""
    lower = node.op.lower
    if isinstance(lower, Structure):
        return _OF_STRUCTURE[lower]
    if isinstance(lower, ListForm) and _has_list(node):
        return Role.LIST
    if is_alias(node):
        element = node.outputs[0].spec.rank == 0 and node.inputs[0].spec.rank > 0
        return Role.SCALAR if element else Role.ALIAS
    if isinstance(lower, Library | Rows):
        return Role.LIBRARY
    if isinstance(lower, Compaction) and _has_kernel_form(node) and _is_compaction(node, lower):
        return Role.COMPACTION
    if isinstance(lower, Compute) and node.op.effect is None and _has_kernel_form(node):
        if _is_scalar(node):
            return Role.SCALAR
        return Role.VIEW if lower.kind == "view" else Role.ARRAY
    if changes_part(node) and _has_kernel_form(node):
        return Role.UPDATE
    if isinstance(lower, Slice) and _has_kernel_form(node):
        return Role.SLICE
    if isinstance(lower, ProgramLoops) and _has_kernel_form(node) and _has_loops(node, lower):
        return Role.LOOPS
    return Role.CALL


_OF_STRUCTURE = {
    Structure.CONSTANT: Role.CONSTANT,
    Structure.SIZE: Role.SIZE,
    Structure.READ: Role.READ,
    Structure.ASSIGN: Role.ASSIGN,
    Structure.COND: Role.COND,
    Structure.WHILE: Role.WHILE,
}


def role_in_memory(node: Node) -> Role:
    """The role of a node of rank-0 arithmetic whose results are in memory, as arrays are."""
    if is_alias(node):
        return Role.ALIAS
    return Role.VIEW if kind_of(node) == "view" else Role.ARRAY


def is_number(value: Value) -> bool:
    """Whether a value is a tensor of rank 0."""
    return isinstance(value.spec, TensorSpec) and value.spec.rank == 0


def changes_part(node: Node) -> bool:
    """Whether a node gives input 0 back with a part of it changed. It does so in place where nobody
    needs the old array."""
    return node.op.part is not None and node.op.part.changes


def bounds_in_data(node: Node) -> Sequence[Value]:
    """The numbers that tell a node where the part of an array begins and ends, and its step; none
    where these are no data."""
    part = node.op.part
    if part is None or part.kind is not PartKind.DYNAMIC_SLICE:
        return ()
    return node.inputs[1 : 1 + sum(node.attrs["given"])]


def _has_list(node: Node) -> bool:
    return any(isinstance(v.spec, ListSpec) for v in (*node.inputs, *node.outputs))


def is_alias(node: Node) -> bool:
    """Whether the only output is the first input's memory under other dims."""
    if "alias" not in node.op.tags:
        return False
    source, out = node.inputs[0].spec, node.outputs[0].spec
    return (
        isinstance(source, TensorSpec)
        and source.dtype is out.dtype
        and _same_size(source.dims, out.dims)
    )


def squeezed(node: Node) -> tuple[int | None, ...] | None:
    """For an alias that only adds or drops dims of 1: the output position of every input dim."""
    if not is_alias(node):
        return None
    source, out = node.inputs[0].spec.dims, node.outputs[0].spec.dims
    kept = [p for p, d in enumerate(out) if d != 1]
    if [d for d in source if d != 1] != [out[p] for p in kept]:
        return None
    places = iter(kept)
    return tuple(None if d == 1 else next(places) for d in source)


def through_squeezes(value: Value) -> Value:
    """The value before aliases that only added or dropped dims of 1."""
    while value.node is not None and squeezed(value.node) is not None:
        value = value.node.inputs[0]
    return value


def _same_size(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> bool:
    return product(a) == product(b)


def _has_kernel_form(node: Node) -> bool:
    """Tensors of known rank whose dims are expressions over named symbols; real ones, unless the
    node joins complex numbers, takes them apart or moves them."""
    specs = [v.spec for v in (*node.inputs, *node.outputs)]
    parts = "complex_parts" in node.op.tags
    return bool(node.outputs) and all(
        isinstance(s, TensorSpec) and (parts or not s.dtype.is_complex) and ANY not in s.dims
        for s in specs
    )


def _is_compaction(node: Node, lower: Compaction) -> bool:
    """Whether the mask is one: of bools, with axes."""
    mask = node.inputs[lower.mask].spec
    return mask.dtype.is_bool and mask.rank > 0


def _has_loops(node: Node, lower: ProgramLoops) -> bool:
    """Whether the loops of an op serve its dtype and ranks."""
    out = node.outputs[0].spec
    ranked = bool(out.rank) and all(v.spec.rank for v in node.inputs[:1])
    half = out.dtype.is_floating and out.dtype.size == 2
    served = (lower.bools or not out.dtype.is_bool) and (lower.halves or not half)
    return (lower.numbers or ranked) and served


def _is_scalar(node: Node) -> bool:
    """Whether the outputs are numbers that no reduction is needed for."""
    if any(v.spec.rank for v in node.outputs):
        return False
    return kind_of(node) != "reduce" or not any(v.spec.rank for v in node.inputs)


def kind_of(node: Node) -> str:
    """The fusion kind of an array or view node."""
    lower = node.op.lower
    return lower.kind if isinstance(lower, Compute) else ""


def literal(value: Value) -> np.ndarray[Any, Any] | None:
    """The array of a constant, or None."""
    node = value.node
    return node.attrs["value"] if node is not None and node.op is CONST else None


def splat(value: Value) -> Any:
    """The one number that a constant repeats, or None."""
    array = literal(value)
    if array is None or array.dtype.kind == "c" or not array.size:
        return None
    first = array.reshape(-1)[0]
    if array.size == 1 or (array.size < 1 << 20 and _all_bits_equal(array, first)):
        return first
    return None


def _all_bits_equal(array: np.ndarray[Any, Any], first: Any) -> bool:
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    return bool((raw == raw[0]).all())
