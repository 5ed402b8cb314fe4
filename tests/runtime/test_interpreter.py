"""The reference interpreter."""

import numpy as np
import pytest

from treadle.core import errors
from treadle.graph.parser import parse_graph
from treadle.ops import dims  # noqa: F401
from treadle.ops.collections import lists  # noqa: F401
from treadle.ops.control import io  # noqa: F401
from treadle.ops.elementwise import arithmetic, comparison, unary  # noqa: F401
from treadle.ops.reductions import reduction  # noqa: F401
from treadle.ops.shaping import joining, reshaping  # noqa: F401
from treadle.ops.state import Variable
from treadle.runtime import interpreter


def run(text: str, *args: object, **options: bool) -> list[np.ndarray]:
    return interpreter.run(parse_graph(text), args, **options)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_ops_attributes_and_results() -> None:
    text = """\
graph f(%x: f32[2, 3], %y: f32[]) {
  %0: f32[2, 3] = multiply(%x, %y)
  %1: f32[2] = reduce_sum(%0) {axis=(1,), keepdims=False}
  return %1, %x, %1
}"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    total, same, again = run(text, x, np.float32(2))
    assert total.tolist() == [6, 24]
    assert same is x
    assert again is total


COLLATZ = """\
graph collatz(%n: i32[]) {
  %zero: i32[] = const() {value=i32[](0)}
  %0: i32[], %steps: i32[] = while(%n, %zero)
    condition(%m: i32[], %k: i32[]) {
      %1: i32[] = const() {value=i32[](1)}
      %p: bool[] = greater(%m, %1)
      return %p
    }
    body(%m: i32[], %k: i32[]) {
      %1: i32[] = const() {value=i32[](1)}
      %2: i32[] = const() {value=i32[](2)}
      %k1: i32[] = add(%k, %1)
      %r: i32[] = mod(%m, %2)
      %odd: bool[] = equal(%r, %1)
      %next: i32[] = cond(%odd, %m, %1, %2)
        then(%m: i32[], %1: i32[], %2: i32[]) {
          %3: i32[] = const() {value=i32[](3)}
          %4: i32[] = multiply(%m, %3)
          %5: i32[] = add(%4, %1)
          return %5
        }
        else(%m: i32[], %1: i32[], %2: i32[]) {
          %6: i32[] = floordiv(%m, %2)
          return %6
        }
      return %next, %k1
    }
  return %steps
}"""


@pytest.mark.parametrize(("n", "steps"), [(1, 0), (6, 8), (27, 111)])
def test_while_and_cond(n: int, steps: int) -> None:
    (result,) = run(COLLATZ, np.int32(n))
    assert result == steps
    assert result.dtype == np.int32


def test_symbolic_dims_bind_from_arguments_and_resolve_in_attributes() -> None:
    text = """\
graph f(%x: f32[B, 4]) {
  %0: f32[B*4] = reshape(%x) {shape=(<B*4>,)}
  %1: i32[] = dim() {dim=<B*4>, out_type=i32}
  return %0, %1
}"""
    for rows in (0, 1, 3):
        flat, size = run(text, np.zeros((rows, 4), np.float32))
        assert flat.shape == (rows * 4,)
        assert size == rows * 4


def test_a_loop_binds_its_symbols_anew_in_every_iteration() -> None:
    text = """\
graph f(%x: f32[n]) {
  %0: i32[] = const() {value=i32[](0)}
  %1: i32[], %2: f32[d] = while(%0, %x)
    condition(%i: i32[], %y: f32[d]) {
      %3: i32[] = const() {value=i32[](3)}
      %4: bool[] = less(%i, %3)
      return %4
    }
    body(%i: i32[], %y: f32[d]) {
      %5: i32[] = const() {value=i32[](1)}
      %6: i32[] = add(%i, %5)
      %7: f32[d*2] = concat(%y, %y) {axis=0}
      %8: f32[d*2, 1] = reshape(%7) {shape=(<d*2>, 1)}
      %9: f32[d*2] = reshape(%8) {shape=(<d*2>,)}
      return %6, %9
    }
  %3: i32[] = dim() {dim=<d>, out_type=i32}
  return %2, %3
}"""
    grown, size = run(text, f32(1, 2))
    assert grown.tolist() == [1, 2] * 8
    assert size == 16


def test_variables_are_read_and_assigned_in_order() -> None:
    text = """\
graph f(%x: f32[2]) captures (%v: ref f32[2]) {
  %before: f32[2] = read_variable(%v)
  %sum: f32[2] = add(%before, %x)
  assign_variable(%v, %sum)
  %after: f32[2] = read_variable(%v)
  return %before, %after
}"""
    variable = Variable([1.0, 2.0])
    before, after = run(text, f32(10, 10), variable)
    assert before.tolist() == [1, 2]
    assert after.tolist() == variable.numpy().tolist() == [11, 12]


def test_regions_have_symbols_of_their_own() -> None:
    text = """\
graph f(%p: bool[], %x: f32[2], %y: f32[3]) {
  %0: f32[2] = cond(%p, %x)
    then(%a: f32[n]) { return %a }
    else(%a: f32[n]) {
      %1: f32[n] = negative(%a)
      return %1
    }
  %2: f32[3] = cond(%p, %y)
    then(%b: f32[n]) { return %b }
    else(%b: f32[n]) {
      %3: f32[n] = negative(%b)
      return %3
    }
  return %0, %2
}"""
    for taken, sign in ((True, 1), (False, -1)):
        x, y = run(text, np.array(taken), f32(1, 2), f32(1, 2, 3))
        assert (x.tolist(), y.tolist()) == ([sign, 2 * sign], [sign, 2 * sign, 3 * sign])


ADD = """\
graph f(%x: f32[n], %y: f32[m]) {
  %0: f32[n] = add(%x, %y)  # user.py:3 f
  return %0
}"""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((f32(1, 2), f32(1, 2, 3)), r"(?s)add\(f32\[2\], f32\[3\]\).*user.py:3, in f"),
        ((f32(1), f32(1, 2, 3)), r"(?s)add\(f32\[1\], f32\[3\]\).*dim 0 is 3.*user.py:3"),
        ((f32(1), np.zeros(3)), r"%y takes f32\[m\], got an array of dtype float64"),
        ((f32(1), np.zeros((3, 1), np.float32)), "rank 2 instead of 1"),
        ((f32(1),), "takes 2 values, got 1"),
    ],
)
def test_errors_name_op_shapes_and_line(args: tuple[np.ndarray, ...], message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(ADD, *args)


def test_errors_inside_regions_keep_their_type_and_line() -> None:
    text = """\
graph f(%p: bool[], %x: i32[]) {
  %0: i32[] = cond(%p, %x)  # user.py:1 f
    then(%a: i32[]) {
      %z: i32[] = subtract(%a, %a)
      %1: i32[] = floordiv(%a, %z)  # user.py:2 f
      return %1
    }
    else(%a: i32[]) { return %a }
  return %0
}"""
    assert run(text, np.bool_(False), np.int32(4)) == [4]
    with pytest.raises(errors.InvalidArgumentError, match="(?s)division by zero.*user.py:2"):
        run(text, np.bool_(True), np.int32(4))


def test_a_handle_needs_a_variable_of_its_dtype() -> None:
    text = "graph f() captures (%v: ref f32[]) { return }"
    with pytest.raises(errors.InvalidArgumentError, match=r"%v takes ref f32\[\]"):
        run(text, Variable(1, dtype="int32"))


NUMERICS = """\
graph f(%x: f32[3]) {
  %inf: f32[] = const() {value=f32[](inf)}
  %0: f32[3] = log(%x)  # user.py:5 f
  %1: f32[3] = divide(%0, %0)  # user.py:6 f
  return %1
}"""


def test_check_numerics_names_the_first_op_that_fails() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"(?s)log.*infinity.*\[1\].*user.py:5"):
        run(NUMERICS, f32(2, 0, 0), check_numerics=True)
    with pytest.raises(errors.InvalidArgumentError, match=r"(?s)divide.*NaN.*\[0\].*1 of 3"):
        run(NUMERICS, f32(1, 2, 2), check_numerics=True)
    assert np.isnan(run(NUMERICS, f32(1, 2, 2))[0][0])
    assert run(NUMERICS, f32(2, 2, 2), check_numerics=True)[0].tolist() == [1, 1, 1]


def test_an_op_that_breaks_its_dtype_rule_is_an_internal_error() -> None:
    graph = parse_graph(ADD.replace("%0: f32[n]", "%0: f64[n]"))
    with pytest.raises(errors.InternalError, match="add gave dtype float32"):
        interpreter.run(graph, [f32(1), f32(1)])
