"""Algebraic simplification: what is done, and what IEEE 754 forbids."""

import numpy as np
import pytest

from tests.graph.passes.helpers import check, check_unchanged, graph_of
from treadle.graph.ir import Graph
from treadle.graph.passes import optimize
from treadle.graph.passes.algebra import simplify_algebra
from treadle.graph.passes.powers import reduce_powers
from treadle.runtime import interpreter


def body(spec: str, lines: str, result: str = "%r") -> str:
    return f"(%x: {spec}, %y: {spec}, %c: bool[]) {{\n{lines}\nreturn {result}\n}}"


def becomes(spec: str, lines: str, result: str) -> None:
    check(simplify_algebra, body(spec, lines), body(spec, "", result))


@pytest.mark.parametrize(
    ("op", "constant"),
    [
        ("multiply(%x, %k)", "1.0"), ("multiply(%k, %x)", "1.0"), ("divide(%x, %k)", "1.0"),
        ("add(%x, %k)", "-0.0"), ("add(%k, %x)", "-0.0"), ("subtract(%x, %k)", "0.0"),
        ("pow(%x, %k)", "1.0"),
    ],
)  # fmt: skip
def test_neutral_operands_of_floats(op: str, constant: str) -> None:
    for shape in ("", "2, n"):
        lines = f"%k: f32[] = const() {{value=f32[]({constant})}}\n%r: f32[{shape}] = {op}"
        becomes(f"f32[{shape}]", lines, "%x")


@pytest.mark.parametrize(
    ("op", "constant"),
    [
        ("add(%x, %k)", "0.0"), ("subtract(%x, %k)", "-0.0"), ("multiply(%x, %k)", "0.0"),
        ("subtract(%k, %x)", "0.0"), ("divide(%k, %x)", "1.0"), ("divide(%x, %k)", "3.0"),
        ("subtract(%x, %x)", "1.0"), ("divide(%x, %x)", "1.0"), ("divide(%x, %k)", "0.0"),
        ("divide(%x, %k)", "inf"), ("divide(%x, %k)", "1e-42"), ("add(%x, %k)", "nan"),
    ],
)  # fmt: skip
def test_what_would_change_floats_stays(op: str, constant: str) -> None:
    lines = f"%k: f32[] = const() {{value=f32[]({constant})}}\n%r: f32[] = {op}"
    check_unchanged(simplify_algebra, body("f32[]", lines))


def test_integers_have_one_zero() -> None:
    for op in ("add(%x, %k)", "subtract(%x, %k)"):
        becomes("i32[]", f"%k: i32[] = const() {{value=i32[](0)}}\n%r: i32[] = {op}", "%x")


def test_a_neutral_operand_that_grows_the_shape_stays() -> None:
    lines = "%k: f32[2] = const() {value=f32[2](1.0, 1.0)}\n%r: f32[2] = multiply(%x, %k)"
    check_unchanged(simplify_algebra, body("f32[]", lines))


@pytest.mark.parametrize(
    "lines",
    [
        "%0: f32[2, 3] = identity(%x)\n%r: f32[2, 3] = stop_gradient(%0)",
        "%0: f32[2, 3] = negative(%x)\n%r: f32[2, 3] = negative(%0)",
        "%0: f32[3, 2] = transpose(%x) {perm=(1, 0)}\n%r: f32[2, 3] = transpose(%0) {perm=(1, 0)}",
        "%r: f32[2, 3] = transpose(%x) {perm=(0, 1)}",
        "%0: f32[6] = reshape(%x) {shape=(6,)}\n%r: f32[2, 3] = reshape(%0) {shape=(2, 3)}",
        "%0: f64[2, 3] = cast(%x) {dtype=f64}\n%r: f32[2, 3] = cast(%0) {dtype=f32}",
        "%r: f32[2, 3] = cast(%x) {dtype=f32}",
        "%r: f32[2, 3] = maximum(%x, %x)",
        "%r: f32[2, 3] = where(%c, %x, %x)",
        "%k: bool[] = const() {value=bool[](True)}\n%r: f32[2, 3] = where(%k, %x, %y)",
        "%r: f32[2, 3] = concat(%x) {axis=0}",
        "%r: f32[2, 3] = reduce_sum(%x) {axis=(), keepdims=False}",
        "%r: f32[2, 3] = broadcast_to(%x) {shape=(2, 3)}",
        "%r: f32[2, 3] = strided_slice(%x) {begin=(0, 0), size=(2, 3), strides=(1, 1)}",
    ],
)
def test_what_undoes_itself_is_removed(lines: str) -> None:
    becomes("f32[2, 3]", lines, "%x")


@pytest.mark.parametrize(
    "lines",
    [
        "%0: f16[2, 3] = cast(%x) {dtype=f16}\n%r: f32[2, 3] = cast(%0) {dtype=f32}",
        "%0: i32[2, 3] = cast(%x) {dtype=i32}\n%r: f32[2, 3] = cast(%0) {dtype=f32}",
        "%k: bool[2, 1] = const() {value=bool[2, 1](True, False)}\n"
        "%r: f32[2, 3] = where(%k, %x, %y)",
        "%r: f32[2, 3] = minimum(%x, %y)",
        "%r: f32[2, 3] = strided_slice(%x) {begin=(1, 2), size=(2, 3), strides=(-1, -1)}",
        "%0: f32[6] = reshape(%x) {shape=(6,)}\n%r: f32[n, m] = reshape(%0) {shape=(<n>, <m>)}",
    ],
)
def test_what_loses_something_stays(lines: str) -> None:
    check_unchanged(simplify_algebra, body("f32[2, 3]", lines))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "%0: f32[4, 2, 3] = transpose(%x) {perm=(2, 0, 1)}\n"
            "%r: f32[3, 4, 2] = transpose(%0) {perm=(2, 0, 1)}",
            "%r: f32[3, 4, 2] = transpose(%x) {perm=(1, 2, 0)}",
        ),
        (
            "%0: f32[24] = reshape(%x) {shape=(24,)}\n%r: f32[6, 4] = reshape(%0) {shape=(6, 4)}",
            "%r: f32[6, 4] = reshape(%x) {shape=(6, 4)}",
        ),
        (
            "%0: f64[2, 3, 4] = cast(%x) {dtype=f64}\n%r: f16[2, 3, 4] = cast(%0) {dtype=f16}",
            "%r: f16[2, 3, 4] = cast(%x) {dtype=f16}",
        ),
        (
            "%k: f32[] = const() {value=f32[](8.0)}\n%r: f32[2, 3, 4] = divide(%x, %k)",
            "%0: f32[] = const() {value=f32[](0.125)}\n%r: f32[2, 3, 4] = multiply(%x, %0)",
        ),
        (
            "%0: f32[2, 4, 3] = transpose(%x) {perm=(0, 2, 1)}\n"
            "%r: f32[2, 4, 4] = matmul(%0, %y) {transpose_a=False, transpose_b=False}",
            "%r: f32[2, 4, 4] = matmul(%x, %y) {transpose_a=True, transpose_b=False}",
        ),
        (
            "%0: f32[2, 4, 3] = transpose(%y) {perm=(0, 2, 1)}\n"
            "%r: f32[2, 3, 3] = matmul(%x, %0) {transpose_a=False, transpose_b=False}",
            "%r: f32[2, 3, 3] = matmul(%x, %y) {transpose_a=False, transpose_b=True}",
        ),
        (
            "%k: f32[] = const() {value=f32[](3.0)}\n"
            "%0: f32[2, 3, 4] = fill(%k) {shape=(2, 3, 4)}\n"
            "%r: f32[2, 3, 4] = multiply(%x, %0)",
            "%k: f32[] = const() {value=f32[](3.0)}\n%r: f32[2, 3, 4] = multiply(%x, %k)",
        ),
    ],
)
def test_rewritten_ops(before: str, after: str) -> None:
    check(simplify_algebra, body("f32[2, 3, 4]", before), body("f32[2, 3, 4]", after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "%0: f32[B, 3] = fill(%x) {shape=(<B>, 3)}\n%1: f32[B, 3] = multiply(%0, %y)\n"
            "%r: f32[B*3] = reshape(%1) {shape=(<B*3>,)}",
            "%1: f32[] = multiply(%x, %y)\n%r: f32[B*3] = fill(%1) {shape=(<B*3>,)}",
        ),
        (
            "%0: f32[2, 3] = fill(%x) {shape=(2, 3)}\n%1: f32[3] = fill(%y) {shape=(3,)}\n"
            "%2: f32[2, 3] = add(%0, %1)\n%3: f32[3, 2] = transpose(%2) {perm=(1, 0)}\n"
            "%r: f32[3, 2] = tanh(%3)",
            "%1: f32[] = add(%x, %y)\n%2: f32[] = tanh(%1)\n"
            "%r: f32[3, 2] = fill(%2) {shape=(3, 2)}",
        ),
    ],
)
def test_what_is_one_number_is_computed_once(before: str, after: str) -> None:
    """Broadcasts sink through everything; %z keeps the symbol B known."""
    head = "(%x: f32[], %y: f32[], %z: f32[B]) {\n"

    def run(graph: Graph) -> bool:
        changes = [simplify_algebra(graph) for _ in range(3)]
        return changes[0]

    check(run, head + before + "\nreturn %r\n}", head + after + "\nreturn %r\n}")


def test_a_transpose_that_moves_only_ones_is_a_reshape() -> None:
    check(
        simplify_algebra,
        body("f32[B, 1, 3]", "%r: f32[1, B, 3] = transpose(%x) {perm=(1, 0, 2)}"),
        body("f32[B, 1, 3]", "%r: f32[1, B, 3] = reshape(%x) {shape=(1, <B>, 3)}"),
    )


def test_a_broadcast_stays_where_it_gives_the_shape() -> None:
    lines = (
        "%0: f32[2, 3] = broadcast_to(%x) {shape=(2, 3)}\n"
        "%1: f32[2, 3] = broadcast_to(%y) {shape=(2, 3)}\n%r: f32[2, 3] = add(%0, %1)"
    )
    graph = graph_of(body("f32[3]", lines))
    simplify_algebra(graph)
    assert graph.results[0].spec.dims == (2, 3)
    x = np.arange(3, dtype=np.float32)
    assert interpreter.run(graph, [x, x, np.bool_(True)])[0].tolist() == [[0, 2, 4]] * 2


def test_a_broadcast_stays_for_an_op_that_wants_equal_shapes() -> None:
    lines = (
        "%0: f32[2, 3] = broadcast_to(%x) {shape=(2, 3)}\n"
        "%1: f32[2, 3] = exp(%0)\n%r: f32[2, 3] = add_n(%1, %0)"
    )
    check(simplify_algebra, body("f32[1, 3]", lines), body("f32[1, 3]", lines))


def test_division_by_powers_of_two_is_exact() -> None:
    values = np.array([1e-45, -3e-39, 7.7, 3.4e38, np.inf, -0.0, np.nan], np.float32)
    for power in (2.0**-120, 0.5, 4.0, 2.0**126):
        lines = f"%k: f32[] = const() {{value=f32[]({power})}}\n%r: f32[7] = divide(%x, %k)"
        graph = graph_of(body("f32[7]", lines))
        assert simplify_algebra(graph)
        with np.errstate(all="ignore"):
            expected = values / np.float32(power)
        (result,) = interpreter.run(graph, [values, values, np.bool_(True)])
        assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("exponent", [2.0, 3.0, 4.0, -1.0])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_powers_become_products_close_to_pow(exponent: float, dtype: str) -> None:
    lines = f"%k: {dtype}[] = const() {{value={dtype}[]({exponent})}}\n%r: {dtype}[8] = pow(%x, %k)"
    graph = graph_of(body(f"{dtype}[8]", lines))
    kind = {"f32": np.float32, "f64": np.float64}[dtype]
    values = np.array([0.0, -0.0, 1.5, -2.7, 1e-3, 1e6, np.inf, np.nan], kind)
    args = [values, values, np.bool_(True)]
    (expected,) = interpreter.run(graph, args)
    optimize(graph)
    assert "pow" not in [n.op.name for n in graph.nodes]
    (result,) = interpreter.run(graph, args)
    np.testing.assert_array_max_ulp(result, expected, 2)


@pytest.mark.parametrize("exponent", ["0.5", "5.0", "-2.0", "nan"])
def test_other_powers_stay(exponent: str) -> None:
    lines = f"%k: f32[] = const() {{value=f32[]({exponent})}}\n%r: f32[] = pow(%x, %k)"
    check_unchanged(reduce_powers, body("f32[]", lines))


@pytest.mark.parametrize(
    ("rows", "flag", "kept"),
    [("2, 1, 4", False, False), ("1, 1, 4", True, False), ("3, 4", False, False),
     ("1, 4", True, False), ("2, 3, 1", False, True)],
)  # fmt: skip
def test_repeated_rows_are_multiplied_once(rows: str, flag: bool, kept: bool) -> None:
    weights = "5, 4" if flag else "4, 5"
    graph = graph_of(
        f"""(%x: f32[{rows}], %w: f32[{weights}]) {{
          %0: f32[2, 3, 4] = broadcast_to(%x) {{shape=(2, 3, 4)}}
          %r: f32[2, 3, 5] = matmul(%0, %w) {{transpose_a=False, transpose_b={flag}}}
          return %r
        }}"""
    )
    simplify_algebra(graph)
    (result,) = graph.results
    assert result.node is not None and result.spec.dims == (2, 3, 5)
    assert result.node.op.name == ("matmul" if kept else "broadcast_to")
    if not kept:
        few = result.node.inputs[0]
        assert few.node is not None and few.node.op.name == "matmul"
        assert few.node.inputs == graph.params
