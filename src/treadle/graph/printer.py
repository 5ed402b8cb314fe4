"""Graphs as text.

    graph step(%x: f32[50, 784]) captures (%w: ref f32[784, 10]) {
      %0: f32[784, 10] = read_variable(%w)  # train.py:12 step
      %1: f32[50, 10] = matmul(%x, %0) {transpose_b=False}  # train.py:12 step
      return %1
    }
    # train.py = /home/me/train.py

A graph for another device than the host has `` on 'GPU:0'`` before the brace.
`treadle.graph.parser` reads it back. Every region has its own names, as nothing is captured
implicitly; numbers are unique in the whole graph.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from treadle.core.devices import HOST
from treadle.core.origin import Origin
from treadle.core.spec import spec_text
from treadle.graph.ir import Graph, NamedRegion, Node, Region, Value
from treadle.graph.literals import DataSection, literal_text
from treadle.ops.registry import Op


def has_automatic_name(value: Value) -> bool:
    """True where the value was not named by the user or a parameter; it prints as a number."""
    return _is_number(value.name)


def _is_number(name: str) -> bool:
    return name.removeprefix("v").isdecimal()


def region_name(op: Op, index: int) -> str:
    """The word that introduces a node's region number `index`."""
    return op.regions[index] if index < len(op.regions) else f"region{index}"


def kept_regions(attrs: Mapping[str, Any]) -> Iterator[tuple[str, Region]]:
    """The regions that are attributes, by the names of these."""
    for name, value in attrs.items():
        if isinstance(value, NamedRegion) and value.region is not None:
            yield name, value.region


def print_graph(
    graph: Graph, *, origins: bool = True, data: bool | DataSection = True, paths: bool = True
) -> str:
    """The graph as text.

    Args:
        origins: end each node with the user's line it comes from.
        data: append the bytes of arrays too large to print inline, so that the text parses; or
            what collects these arrays.
        paths: append where the files of the user's lines are.
    """
    section = data if isinstance(data, DataSection) else DataSection()
    lines = _Printer(origins, section).graph(graph, paths)
    if data is True:
        lines += section.lines()
    return "\n".join(lines) + "\n"


Graph.text = print_graph


def print_node(node: Node) -> str:
    """One node in the text format, without its regions, for messages."""
    printer = _Printer(False, DataSection())
    names = {v: v.name for v in (*node.inputs, *node.outputs)}
    return printer.node_head(node, names)


class _Printer:
    def __init__(self, origins: bool, data: DataSection) -> None:
        self.origins = origins
        self.data = data
        self.files: dict[str, str] = {}  # path -> short name
        self.lines: list[str] = []
        self.count = 0

    def graph(self, graph: Graph, paths: bool) -> list[str]:
        names: dict[Value, str] = {}
        head = f"graph {_clean(graph.name) or '_'}({self.params(graph.arguments, names)})"
        captures = graph.params[len(graph.arguments) :]
        if captures:
            head += f" captures ({self.params(captures, names)})"
        if graph.device is not HOST:
            head += f" on {str(graph.device)!r}"
        self.lines.append(head + " {")
        self.body(graph, names, "  ")
        self.lines.append("}")
        if paths:
            self.lines += [f"# {name} = {path}" for path, name in self.files.items()]
        return self.lines

    def params(self, params: Sequence[Value], names: dict[Value, str]) -> str:
        return ", ".join(self.define(p, names) for p in params)

    def define(self, value: Value, names: dict[Value, str]) -> str:
        """``%name: spec`` with a name that is new in the region."""
        name = _clean(value.name)
        if not name or _is_number(name):
            name = str(self.count)
            self.count += 1
        elif name in names.values():
            taken = set(names.values())
            name = next(n for i in range(2, len(taken) + 3) if (n := f"{name}.{i}") not in taken)
        names[value] = name
        return f"%{name}: {spec_text(value.spec)}"

    def body(self, region: Region, names: dict[Value, str], indent: str) -> None:
        for node in region.nodes:
            self.node(node, names, indent)
        results = ", ".join(f"%{names[v]}" for v in region.results)
        self.lines.append(f"{indent}return {results}".rstrip())

    def node(self, node: Node, names: dict[Value, str], indent: str) -> None:
        regions = [(region_name(node.op, i), region) for i, region in enumerate(node.regions)]
        regions += kept_regions(node.attrs)
        if not regions:  # outputs of nodes with regions are numbered after the nodes inside
            for value in node.outputs:
                self.define(value, names)
            self.lines.append(f"{indent}{self.node_head(node, names)}{self.origin(node.origin)}")
            return
        place = len(self.lines)
        self.lines.append("")
        for name, region in regions:
            inner: dict[Value, str] = {}
            params = self.params(region.params, inner)
            self.lines.append(f"{indent}  {name}({params}) {{")
            self.body(region, inner, indent + "    ")
            self.lines.append(f"{indent}  }}")
        for value in node.outputs:
            self.define(value, names)
        head = self.node_head(node, names)
        self.lines[place] = f"{indent}{head}{self.origin(node.origin)}"

    def node_head(self, node: Node, names: dict[Value, str]) -> str:
        outputs = ", ".join(f"%{names[v]}: {spec_text(v.spec)}" for v in node.outputs)
        inputs = ", ".join(f"%{names.get(v, '?')}" for v in node.inputs)
        text = f"{outputs} = " if outputs else ""
        text += f"{node.op.name}({inputs})"
        if node.attrs:
            attrs = [f"{k}={literal_text(v, self.data)}" for k, v in node.attrs.items()]
            text += " {" + ", ".join(attrs) + "}"
        return text

    def origin(self, origin: Origin | None) -> str:
        if origin is None or not self.origins:
            return ""
        return f"  # {self.short_file(origin.file)}:{origin.line} {origin.function}"

    def short_file(self, path: str) -> str:
        """The file's base name, made unique; the footer gives the path."""
        if path not in self.files:
            base = os.path.basename(path).replace(" ", "_") or path
            taken = set(self.files.values())
            name, number = base, 2
            while name in taken:
                name, number = f"{base}~{number}", number + 1
            self.files[path] = name
        return self.files[path]


def _clean(name: str) -> str:
    return re.sub(r"[^\w.]", "_", name)
