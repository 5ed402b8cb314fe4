"""From the text that `treadle.graph.printer` writes back to graphs."""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from treadle.core.devices import Device, find_device
from treadle.core.origin import Origin
from treadle.core.spec import Spec
from treadle.graph.ir import Graph, NamedRegion, Node, Region, Value
from treadle.graph.literals import LiteralParser
from treadle.graph.printer import region_name
from treadle.graph.tokens import GraphSyntaxError, Reader, tokenize
from treadle.ops.loading import load_op
from treadle.ops.registry import OPS, Op

_DATA = re.compile(r"^data #([0-9a-f]+) '([A-Za-z0-9+/=]*)'$", re.MULTILINE)
_FILE = re.compile(r"^# (\S+) = (.*)$", re.MULTILINE)
_ORIGIN = re.compile(r"(\S+):(\d+) (\S+)$")


class MissingCapture(NamedTuple):
    """Stands for a capture of a parsed graph: text does not hold variables or their values."""

    name: str
    spec: Spec


def parse_graph(
    text: str,
    captures: Sequence[Any] | None = None,
    data: Mapping[str, bytes] | None = None,
    fresh_symbols: bool = False,
) -> Graph:
    """The graph that `text` describes.

    Args:
        captures: the tensors and variables behind the graph's captures; left out, each is a
            `MissingCapture`.
        data: the bytes of large arrays by their digests, where the text does not end with them.
        fresh_symbols: symbolic dims are new symbols, which no other graph of the process has.

    Raises:
        GraphSyntaxError: the text is malformed or names an unknown op, dtype or value.
    """
    if data is None:
        data = {digest: base64.b64decode(code) for digest, code in _DATA.findall(text)}
    files = dict(_FILE.findall(text))
    code = _FILE.sub("", _DATA.sub("", text))
    reader = Reader(tokenize(code))
    return _Parser(reader, LiteralParser(reader, data, fresh_symbols), files).graph(captures)


class _Parser:
    def __init__(self, reader: Reader, literals: LiteralParser, files: dict[str, str]) -> None:
        self.reader = reader
        self.literals = literals
        self.files = files

    def graph(self, captures: Sequence[Any] | None) -> Graph:
        reader = self.reader
        reader.expect("graph")
        graph = Graph(reader.expect_kind("word").text)
        names: dict[str, Value] = {}
        self.params(graph, names)
        if reader.accept("captures"):
            first = len(graph.params)
            self.params(graph, names)
            missing = [MissingCapture(p.name, p.spec) for p in graph.params[first:]]
            graph.captures = list(missing if captures is None else captures)
            if len(graph.captures) != len(missing):
                raise ValueError(f"{len(missing)} captures are needed, got {len(graph.captures)}")
        if reader.accept("on"):
            graph.device = self.device()
        self.body(graph, names)
        reader.expect_kind("end")
        return graph

    def device(self) -> Device:
        name = ast.literal_eval(self.reader.expect_kind("string").text)
        try:
            return find_device(name)
        except ValueError as error:
            self.reader.fail(str(error))

    def params(self, region: Region, names: dict[str, Value]) -> None:
        reader = self.reader
        reader.expect("(")
        while not reader.accept(")"):
            name = self.new_name(names)
            reader.expect(":")
            names[name] = region.add_param(self.literals.spec(), _kept(name))
            if not reader.at(")"):
                reader.expect(",")

    def new_name(self, names: dict[str, Value]) -> str:
        name = self.reader.expect_kind("value").text[1:]
        if name in names:
            self.reader.fail(f"%{name} is defined twice in one region")
        return name

    def body(self, region: Region, names: dict[str, Value]) -> None:
        reader = self.reader
        reader.expect("{")
        while not reader.accept("return"):
            region.append(self.node(names))
        while not reader.at("}"):
            region.results.append(self.use(names))
            if not reader.at("}"):
                reader.expect(",")
        reader.expect("}")

    def use(self, names: dict[str, Value]) -> Value:
        name = self.reader.expect_kind("value").text[1:]
        if name not in names:
            self.reader.fail(f"%{name} is not defined in this region")
        return names[name]

    def node(self, names: dict[str, Value]) -> Node:
        outputs = self.outputs(names)
        op_name = self.reader.expect_kind("word").text
        if op_name not in OPS:  # its module may not be loaded yet
            load_op(op_name)
        if op_name not in OPS:
            self.reader.fail(f"unknown op {op_name!r}")
        inputs = self.inputs(names)
        attrs = self.attrs()
        origin = self.origin()
        op = OPS[op_name]
        regions = self.regions(op)
        for name, value in attrs.items():
            if isinstance(value, NamedRegion) and self.reader.accept(name):
                value.region = self.region()
        specs = [spec for _, spec in outputs]
        node = Node(op, inputs, attrs, specs, regions, origin)
        for (name, _), value in zip(outputs, node.outputs, strict=True):
            value.name = _kept(name) or value.name
            names[name] = value
        return node

    def outputs(self, names: dict[str, Value]) -> list[tuple[str, Spec]]:
        reader, found = self.reader, []
        while reader.peek().kind == "value":
            name = self.new_name(names)
            reader.expect(":")
            found.append((name, self.literals.spec()))
            if not reader.accept(","):
                reader.expect("=")
                break
        return found

    def inputs(self, names: dict[str, Value]) -> list[Value]:
        reader = self.reader
        reader.expect("(")
        inputs = []
        while not reader.accept(")"):
            inputs.append(self.use(names))
            if not reader.at(")"):
                reader.expect(",")
        return inputs

    def attrs(self) -> dict[str, Any]:
        reader, attrs = self.reader, {}
        if reader.accept("{"):
            while not reader.accept("}"):
                name = reader.expect_kind("word").text
                reader.expect("=")
                attrs[name] = self.literals.literal()
                if not reader.at("}"):
                    reader.expect(",")
        return attrs

    def origin(self) -> Origin | None:
        comment = self.reader.comment()
        match = _ORIGIN.match(comment) if comment else None
        if match is None:
            return None
        file, line, function = match.groups()
        return Origin(self.files.get(file, file), int(line), function)

    def regions(self, op: Op) -> list[Region]:
        regions: list[Region] = []
        while self.reader.at(region_name(op, len(regions))):
            self.reader.next()
            regions.append(self.region())
        return regions

    def region(self) -> Region:
        region = Region()
        names: dict[str, Value] = {}
        self.params(region, names)
        self.body(region, names)
        return region


def _kept(name: str) -> str:
    """Numbers are the printer's; other names stay with their values."""
    return "" if name.isdigit() else name


__all__ = ["GraphSyntaxError", "MissingCapture", "parse_graph"]
