"""Printer and parser: the text holds the whole graph."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.random_graphs import RandomGraph
from treadle.core import dtypes
from treadle.core.origin import Origin
from treadle.core.shapes import (
    UNKNOWN_RANK,
    UNKNOWN_SHAPE,
    SymbolicDim,
    TensorShape,
    compound,
)
from treadle.core.spec import ListSpec, ResourceSpec, TensorSpec
from treadle.graph.ir import Graph, Node
from treadle.graph.literals import DataSection, LiteralParser, literal_text
from treadle.graph.parser import GraphSyntaxError, MissingCapture, parse_graph
from treadle.graph.printer import print_graph
from treadle.graph.tokens import Reader, tokenize
from treadle.graph.verifier import verify
from treadle.ops.conversion import CONST
from treadle.ops.elementwise import arithmetic  # noqa: F401

B = SymbolicDim.symbol("B")

STEP = """\
graph step(%x: f32[B, 784]) captures (%w: ref f32[784, 10]) {
  %0: f32[784, 10] = read_variable(%w)  # train.py:11 step
  %total: f32[B, 784] = add(%x, %x)  # train.py:12 step
  %9: f32[] = cond(%5, %total)  # train.py:13 step
    then(%total: f32[B, 784]) {
      %6: f32[] = const() {value=f32[](1.5)}
      return %6
    }
    else(%total: f32[B, 784]) {
      %7: f32[] = const() {value=f32[](-0.0)}
      return %7
    }
  return %9
}
# train.py = /home/me/train.py
"""


def literal(text: str, data: DataSection) -> object:
    stored = {digest: array.tobytes() for digest, array in data.arrays.items()}
    return LiteralParser(Reader(tokenize(text)), stored).literal()


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_round_trip(seed: int) -> None:
    graph = RandomGraph(seed).graph
    text = print_graph(graph)
    parsed = parse_graph(text)
    assert print_graph(parsed) == text
    verify(parsed)
    origins = [node.origin for node in graph.walk()]
    assert [node.origin for node in parsed.walk()] == origins


def test_text_holds_names_origins_captures_and_regions() -> None:
    text = STEP.replace("%5, ", "%0, ")
    graph = parse_graph(text)
    assert [p.name for p in graph.arguments] == ["x"]
    assert graph.captures == [MissingCapture("w", ResourceSpec((784, 10), "float32"))]
    assert graph.params[0].spec.dims == (B, 784)
    read, add, cond = graph.nodes
    assert read.origin == Origin("/home/me/train.py", 11, "step")
    assert add.outputs[0].name == "total"
    assert [r.nodes[0].attrs["value"].tobytes() for r in cond.regions] == [
        np.float32(1.5).tobytes(), np.float32(-0.0).tobytes(),
    ]  # fmt: skip
    assert str(graph).splitlines()[0] == text.splitlines()[0]


def test_captures_can_be_given() -> None:
    text = "graph f() captures (%w: ref f32[]) {\n  return\n}\n"
    assert parse_graph(text, ["mine"]).captures == ["mine"]
    with pytest.raises(ValueError, match="1 captures"):
        parse_graph(text, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STEP, "line 4: %5 is not defined"),
        ("graph f() { return %x }", "line 1: %x is not defined"),
        ("graph f() {\n  frobnicate()\n  return }", "line 2: unknown op 'frobnicate'"),
        ("graph f(%x: f31[]) { return }", "unknown dtype 'f31'"),
        ("graph f(%x: f32[], %x: f32[]) { return }", "defined twice"),
        ("graph f(%x: f32[) { return }", "line 1"),
        ("graph f() { return } trailing", "expected a end"),
        ("graph f() {\n %0: f32[] = const() {value=f32[99](#0123)}\n return }", "no data line"),
        ("graph f() {\n %0: f32[] = const() {value=object 'x'}\n return }", "no text form"),
        ("graph f() { $ }", "line 1: unexpected '\\$"),
    ],
)
def test_malformed_text_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(GraphSyntaxError, match=message):
        parse_graph(text)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats() | st.binary()
    | st.sampled_from([dtypes.float32, dtypes.bool, B, B * 10 + 1, compound("floordiv", B, 2),
                       -B, compound("max", B * B, SymbolicDim.symbol("n")), ...,
                       TensorSpec((B, 2)), ListSpec((), "int32"), ResourceSpec((None,), "bool"),
                       TensorShape((B, None, 2)), UNKNOWN_SHAPE, UNKNOWN_RANK]),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)  # fmt: skip


def equal(a: object, b: object) -> bool:
    return type(a) is type(b) and (repr(a) == repr(b))


@settings(max_examples=150, deadline=None)
@given(PLAIN)
def test_literals_round_trip(value: object) -> None:
    data = DataSection()
    assert equal(literal(literal_text(value, data), data), value)


def test_special_literals_round_trip() -> None:
    for value in (complex(1, -2), slice(1, None, 2), float("-inf"), -0.0, float("nan")):
        data = DataSection()
        assert equal(literal(literal_text(value, data), data), value)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2), (40,)])
def test_arrays_round_trip_bit_by_bit(dtype: dtypes.DType, shape: tuple[int, ...]) -> None:
    raw = np.random.default_rng(len(shape)).integers(0, 256, (*shape, dtype.size), np.uint8)
    if dtype.is_bool:
        raw &= 1
    array = raw.view(dtype.np_dtype).reshape(shape)
    data = DataSection()
    back = literal(literal_text(array, data), data)
    assert isinstance(back, np.ndarray)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, shape, array.tobytes())


def test_small_arrays_print_as_numbers_and_large_ones_by_digest() -> None:
    data = DataSection()
    values = np.array([0.1, -np.inf, np.nan, 1e-45], np.float32)
    assert literal_text(values, data) == "f32[4](0.1, -inf, nan, 1e-45)"
    large = np.arange(100, dtype=np.int64)
    assert literal_text(large, data).startswith("i64[100](#")
    graph = Graph("f")
    node = graph.append(Node(CONST, (), {"value": large}, [TensorSpec((100,), dtypes.int64)]))
    graph.results = list(node.outputs)
    assert (parse_graph(print_graph(graph)).nodes[0].attrs["value"] == large).all()
    assert "data #" not in print_graph(graph, data=False)


def test_equal_names_are_told_apart() -> None:
    graph = Graph("f")
    for _ in range(3):
        graph.add_param(TensorSpec(()), "x y")
    assert str(graph).splitlines()[0] == "graph f(%x_y: f32[], %x_y.2: f32[], %x_y.3: f32[]) {"
    assert print_graph(parse_graph(str(graph))) == str(graph)


def test_files_of_one_name_are_told_apart() -> None:
    graph = Graph("f")
    for folder in ("a", "b"):
        origin = Origin(f"/{folder}/m.py", 7, "g")
        graph.append(Node(CONST, (), {"value": np.float32(1)}, [TensorSpec(())], (), origin))
    parsed = parse_graph(str(graph))
    assert [n.origin.file for n in parsed.nodes] == ["/a/m.py", "/b/m.py"]


EVERY_OP = """
import importlib, pkgutil
import treadle
from treadle.ops.registry import OPS

for module in pkgutil.walk_packages(treadle.__path__, "treadle."):
    if not module.name.startswith("treadle.cli") and "__main__" not in module.name:
        importlib.import_module(module.name)
print(*OPS)
"""
KNOWN_OPS = """
import sys
import treadle
from treadle.ops.loading import load_op
from treadle.ops.registry import OPS

for name in sys.argv[1:]:
    if name not in OPS:
        load_op(name)
print(*(set(sys.argv[1:]) - set(OPS)))
"""


@pytest.mark.thorough
def test_text_may_name_ops_whose_modules_are_not_imported_yet() -> None:
    def said(*command: str) -> list[str]:
        call = [sys.executable, "-c", *command]
        return subprocess.run(call, check=True, capture_output=True, text=True).stdout.split()

    ops = said(EVERY_OP)
    assert "custom_gradient" in ops
    assert said(KNOWN_OPS, *ops) == []
