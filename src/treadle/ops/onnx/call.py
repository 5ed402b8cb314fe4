"""What a form of ONNX sees and writes: a call of an op, and the nodes of a block.

A form is a function ``form(call)`` that appends nodes of ONNX to ``call.block`` and returns the
names of the op's results, one or a sequence of them. Nothing here needs the package onnx:
`treadle.onnx` makes messages of what is written down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType, int64
from treadle.core.names import unused_name
from treadle.core.shapes import Dim, dim_symbols, symbol_name
from treadle.core.spec import Spec, TensorSpec
from treadle.ops.registry import Op

# The version of ONNX's operators that the forms are written for.
OPSET = 20
_NAMED = 4  # elements of constants that are named after them

Form: TypeAlias = "Callable[[OnnxCall], str | Sequence[str]]"
Translate: TypeAlias = "Callable[[Any, Sequence[str], Block, str], list[str]]"


class NoForm(Exception):
    """A form says why ONNX has no counterpart for this call of its op."""


FORMS: dict[str, Form] = {}  # by the names of ops; `treadle.ops.onnx.forms` puts them on records


def form(*names: str) -> Callable[[Form], Form]:
    """Give ops of these names a form."""

    def give(rule: Form) -> Form:
        FORMS.update(dict.fromkeys(names, rule))
        return rule

    return give


@dataclass
class OnnxNode:
    """A node of ONNX; blocks among its attributes are branches and bodies."""

    kind: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any]
    name: str
    doc: str


@dataclass
class Constants:
    """What all blocks of a model share: names, each used once, and constants."""

    values: dict[str, Any] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _known: dict[Any, str] = field(default_factory=dict)

    def unique(self, name: str) -> str:
        """`name`, with a number behind it where it is taken."""
        return unused_name(name, self._names)

    def constant(self, array: Any, name: str, merged: bool = True) -> str:
        """The name of a constant; equal ones are one if they may be `merged`."""
        array = np.asarray(array)
        key = None
        if merged and not array.dtype.hasobject:
            key = (array.dtype.str, array.dtype.name, array.shape, array.tobytes())
        if key in self._known:
            return self._known[key]
        if key is not None and array.size <= _NAMED:  # after its elements, as several nodes read it
            name = "_".join(map(str, (array.dtype, *array.reshape(-1).tolist())))
        found = self.unique(name)
        self.values[found] = array
        if key is not None:
            self._known[key] = found
        return found


class Block:
    """The nodes of a graph, branch or body.

    Attributes:
        params: the names and specs of what a body is given.
        results: the names and specs of what it gives.
    """

    def __init__(self, constants: Constants, parent: Block | None = None) -> None:
        self.constants, self.parent = constants, parent
        self.nodes: list[OnnxNode] = []
        self.params: list[tuple[str, Spec]] = []
        self.results: list[tuple[str, Spec]] = []
        self._made: set[str] = set()
        self._sizes: dict[str, str] = {}  # symbol -> a vector of one int64
        self._learned: dict[str, tuple[str, int]] = {}  # symbol -> a tensor, and which of its dims
        self._transposed: dict[str, tuple[str, tuple[int, ...]]] = {}

    def param(self, name: str, spec: Spec) -> str:
        """A parameter that nodes read by the name that this gives."""
        found = self.constants.unique(name)
        self.params.append((found, spec))
        self.learn(found, spec)
        return found

    def add(
        self, kind: str, inputs: Sequence[str], name: str, outputs: int = 1, doc: str = "",
        **attrs: Any,
    ) -> list[str]:  # fmt: skip
        """Append a node; the names of its outputs."""
        own = self.constants.unique(name)
        found = [own] + [self.constants.unique(f"{own}:{k}") for k in range(1, outputs)]
        self.nodes.append(OnnxNode(kind, list(inputs), found, attrs, own, doc))
        self._made.update(found)
        return found

    def rename_last(self, name: str) -> list[str]:
        """Name the last node, and its outputs, which no node reads yet."""
        node = self.nodes[-1]
        before, node.name = node.outputs, self.constants.unique(name)
        node.outputs = [node.name]
        node.outputs += [self.constants.unique(f"{name}:{k}") for k in range(1, len(before))]
        self._made.update(node.outputs)
        if before[0] in self._transposed:
            self._transposed[node.name] = self._transposed.pop(before[0])
        return node.outputs

    def learn(self, name: str, spec: Spec) -> None:
        """Note of which symbols a tensor tells the sizes."""
        for axis, dim in enumerate(spec.dims if isinstance(spec, TensorSpec) else ()):
            symbol = symbol_name(dim)
            if symbol is not None:
                self._learned.setdefault(symbol, (name, axis))

    def bind(self, symbol: str, vector: str) -> None:
        """Tell the size that a symbol stands for, a vector of one int64."""
        self._sizes[symbol] = vector

    def symbol(self, symbol: str) -> str | None:
        """The size that a symbol stands for; None where nothing here tells it."""
        if symbol in self._sizes:
            return self._sizes[symbol]
        if symbol in self._learned:
            name, axis = self._learned[symbol]
            (found,) = self.add("Shape", [name], f"{symbol}/Shape", start=axis, end=axis + 1)
            self._sizes[symbol] = found
            return found
        return None if self.parent is None else self.parent.symbol(symbol)

    def transpose(self, name: str, perm: tuple[int, ...], label: str) -> str:
        """A tensor with its axes in another order: constants are moved now, and moving back what
        was moved is nothing."""
        if name in self.constants.values:
            moved = np.transpose(self.constants.values[name], perm)
            return self.constants.constant(np.ascontiguousarray(moved), f"{name}/transposed")
        source, before = self._transposed.get(name, (name, tuple(range(len(perm)))))
        perm = tuple(before[k] for k in perm)
        if perm == tuple(range(len(perm))):
            return source
        (found,) = self.add("Transpose", [source], label, perm=perm)
        self._transposed[found] = (source, perm)
        return found

    def finish(
        self, names: Sequence[str], specs: Sequence[Spec], wanted: Sequence[str],
        exactly: bool = False,
    ) -> None:  # fmt: skip
        """End the block with these results: each is the output of a node here, and of no other
        result. Nodes that nothing needs are dropped.

        Args:
            wanted: what results are called that are not; with `exactly` all are so called.
        """
        given: set[str] = set()
        for name, spec, label in zip(names, specs, wanted, strict=True):
            if exactly:
                self.nodes.append(OnnxNode("Identity", [name], [label], {}, label, ""))
                name = label
            elif name not in self._made or name in given:
                (name,) = self.add("Identity", [name], label)
            given.add(name)
            self.results.append((name, spec))
        self.nodes = list(_needed(self.nodes, given))[::-1]

    def read(self) -> set[str]:
        """The names that nodes here, and in branches and bodies, read."""
        found: set[str] = set()
        for node in self.nodes:
            found |= _read(node)
        return found


def _read(node: OnnxNode) -> set[str]:
    inner = (v.read() for v in node.attrs.values() if isinstance(v, Block))
    return set(node.inputs).union(*inner)


def _needed(nodes: Sequence[OnnxNode], results: Iterable[str]) -> Iterable[OnnxNode]:
    """The nodes that some results need, the last one first."""
    wanted = set(results)
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            wanted |= _read(node)
            yield node


@dataclass
class OnnxCall:
    """One operation of a graph, for the form of its op.

    Attributes:
        inputs: the names of its operands in `block`; `specs`: their specs.
        outs: the specs of its results.
        regions: its branches, or the condition and body of a loop.
        name: what it is called; doc: where the user wrote it.
        translate: ``translate(region, inputs, block, name)`` writes a region's nodes into a block.
    """

    op: Op
    inputs: list[str]
    specs: list[Spec]
    outs: list[Spec]
    attrs: Mapping[str, Any]
    regions: Sequence[Any]
    block: Block
    name: str
    doc: str
    translate: Translate

    @property
    def dtype(self) -> DType:
        """Of the first result."""
        return self.outs[0].dtype

    def within(self, block: Block) -> OnnxCall:
        """The same call, whose nodes are appended to another block."""
        return OnnxCall(
            self.op, self.inputs, self.specs, self.outs, self.attrs, self.regions, block, self.name,
            self.doc, self.translate,
        )  # fmt: skip

    # -- nodes -----------------------------------------------------------------------------------

    def add(self, kind: str, *inputs: str, **attrs: Any) -> str:
        """Append a node of one output; its name."""
        return self.block.add(kind, inputs, f"{self.name}/{kind}", doc=self.doc, **attrs)[0]

    def several(self, outputs: int, kind: str, *inputs: str, **attrs: Any) -> list[str]:
        """Append a node of several outputs; their names."""
        return self.block.add(
            kind, inputs, f"{self.name}/{kind}", outputs=outputs, doc=self.doc, **attrs
        )

    def constant(self, value: Any, dtype: DType | None = None) -> str:
        """A constant, of the first result's dtype unless given."""
        array = np.asarray(value, (dtype or self.dtype).np_dtype)
        return self.block.constants.constant(array, f"{self.name}/const")

    def integers(self, *values: int) -> str:
        """A constant vector of int64."""
        return self.constant(np.array(values, np.int64), int64)

    def cast(self, name: str, dtype: DType) -> str:
        return self.add("Cast", name, to=dtype)

    def positions(self, index: int) -> str:
        """An operand of integers as int64."""
        is_wide = self.specs[index].dtype is int64
        return self.inputs[index] if is_wide else self.cast(self.inputs[index], int64)

    def transpose(self, name: str, perm: Iterable[int]) -> str:
        return self.block.transpose(name, tuple(perm), f"{self.name}/Transpose")

    def unsqueeze(self, name: str, *axes: int) -> str:
        return self.add("Unsqueeze", name, self.integers(*axes))

    def zeros(self, shape: str, dtype: DType) -> str:
        """Zeros of a shape that a vector tells."""
        return self.add("ConstantOfShape", shape, value=np.zeros(1, dtype.np_dtype))

    # -- sizes -----------------------------------------------------------------------------------

    def size(self, dim: Dim) -> str:
        """A dim as a vector of one int64."""
        if isinstance(dim, int):
            return self.integers(dim)
        total = ""
        for atoms, coefficient in dim.terms:
            parts = [self._atom(atom) for atom in atoms]
            if coefficient != 1 or not parts:
                parts.append(self.integers(coefficient))
            term = parts[0]
            for part in parts[1:]:
                term = self.add("Mul", term, part)
            total = self.add("Add", total, term) if total else term
        return total

    def scalar(self, dim: Dim) -> str:
        """A dim as a scalar int64."""
        if isinstance(dim, int):
            return self.constant(dim, int64)
        return self.add("Squeeze", self.size(dim), self.integers(0))

    def shape(self, dims: Sequence[Dim]) -> str:
        """Dims as a vector of int64."""
        if all(isinstance(d, int) for d in dims):
            return self.integers(*(int(str(d)) for d in dims))
        return self.add("Concat", *(self.size(d) for d in dims), axis=0)

    def _atom(self, atom: Any) -> str:
        if isinstance(atom, str):
            found = self.block.symbol(atom)
            if found is None:
                raise NoForm(f"no value tells the size {atom}")
            return found
        kind, left, right = atom
        a, b = self.size(left), self.size(right)
        match kind:
            case "max" | "min":
                return self.add(kind.capitalize(), a, b)
            case "mod":
                return self.add("Mod", a, b)
        return self.add("Div", self.add("Sub", a, self.add("Mod", a, b)), b)

    def is_told(self, dims: Iterable[Dim]) -> bool:
        """Whether the sizes of all symbols in some dims are known here."""
        symbols = frozenset().union(*map(dim_symbols, dims))
        return all(self.block.symbol(s) is not None for s in symbols)

    # -- branches and loops ----------------------------------------------------------------------

    def choose(
        self, pred: str, branches: Sequence[Callable[[OnnxCall], Sequence[str]]],
        specs: Sequence[Spec],
    ) -> list[str]:  # fmt: skip
        """Append a branch; the names of its results.

        Args:
            branches: give the results where `pred` is true, and where it is not, each by a call
                in its block.
        """
        blocks = []
        for branch, label in zip(branches, ("then", "else"), strict=True):
            inner = Block(self.block.constants, self.block)
            results = branch(self.within(inner))
            wanted = [f"{self.name}/{label}/result_{k}" for k in range(len(specs))]
            inner.finish(results, specs, wanted)
            blocks.append(inner)
        return self.several(
            len(specs), "If", pred, then_branch=blocks[0], else_branch=blocks[1]
        )

    def loop(
        self, count: str, condition: str, carried: Sequence[str], specs: Sequence[Spec],
        body: Callable[[OnnxCall, str, list[str]], tuple[str, Sequence[str]]],
        scans: Sequence[Spec] = (),
    ) -> list[str]:  # fmt: skip
        """Append a loop; the names of what it carries in the end, and of what it has collected.

        Args:
            count: the number of iterations, a scalar int64; "" for no bound.
            condition: whether there is a first iteration; "" for always.
            specs: of what it carries.
            body: gets a call in the body, the number of the iteration and what is carried; gives
                whether there is a next iteration ("" for always), and what is carried on, with an
                element for each of `scans` behind it.
        """
        inner = Block(self.block.constants, self.block)
        number = inner.param(f"{self.name}/i", TensorSpec((), int64))
        given = inner.param(f"{self.name}/goes_on", TensorSpec((), dtypes.bool))
        names = [inner.param(f"{self.name}/carried_{k}", s) for k, s in enumerate(specs)]
        call = self.within(inner)
        goes_on, results = body(call, number, names)
        kinds = [TensorSpec((), dtypes.bool), *specs, *scans]
        labels = [f"{self.name}/next_{k}" for k in range(len(results))]
        inner.finish([goes_on or given, *results], kinds, [f"{self.name}/condition", *labels])
        if not results:
            return []
        return self.several(len(results), "Loop", count, condition, *carried, body=inner)

    def times(
        self, count: str, carried: str, spec: Spec, body: Callable[[OnnxCall, str, str], str]
    ) -> str:
        """A loop of `count` iterations (a scalar int64) over one value."""

        def inner(call: OnnxCall, number: str, names: list[str]) -> tuple[str, Sequence[str]]:
            return "", [body(call, number, names[0])]

        return self.loop(count, "", [carried], [spec], inner)[0]
