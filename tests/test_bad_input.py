"""Wrong programs: each gives one clear error with the user's file and line, and nothing is left
half done: the function object works afterwards."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
import pytest

import treadle as td

C = td.constant
Invalid = td.errors.InvalidArgumentError
Leaked = td.errors.InaccessibleTensorError
NotAllowed = td.errors.OperatorNotAllowedInGraphError


def error_of(wrong: Callable[[], Any], kind: type[Exception], *words: str) -> str:
    """The message of the error that `wrong` raises, with all `words` in it, and no other error
    shown before it."""
    with pytest.raises(kind) as found:
        wrong()
    text = str(found.value)
    assert not [w for w in words if w not in text], text
    shown = "".join(traceback.format_exception(found.value))
    assert "During handling of the above exception" not in shown, shown
    return text


def marked(function: Any, mark: str = "HERE") -> str:
    """``file:line`` of the line of the function's source that carries the comment `mark`."""
    python = getattr(function, "python_function", function)
    lines, first = inspect.getsourcelines(python)
    (line,) = (first + i for i, text in enumerate(lines) if f"# {mark}" in text)
    return f"{__file__}:{line}"


# -- wrong dtype, wrong shape --------------------------------------------------------------------


@td.function
def product(x, y):
    return x * y  # HERE


@td.function
def layer(x, w):
    h = td.matmul(x, w)  # HERE
    return td.nn.relu(h)


def helper(y):
    return td.reshape(y, [7])  # HERE


@td.function
def through_helper(y):
    return helper(y)


def test_wrong_dtype():
    text = error_of(lambda: product(C(1), C(1.0)), TypeError, "multiply", "int32", "float32")
    assert marked(product) in text
    assert int(product(C(3), C(2))) == 6
    eager = lambda: product.python_function(C(1), C(1.0))
    assert marked(product) in error_of(eager, Invalid, "multiply", "int32", "float32")


@pytest.mark.parametrize("run", [product, product.python_function], ids=["graph", "eager"])
def test_wrong_shape(run):
    wrong = lambda: run(td.ones([2]), td.ones([3]))
    assert marked(product) in error_of(wrong, Invalid, "multiply", "(2,)", "(3,)", "broadcast")
    assert int(run(C(3), C(2))) == 6


@pytest.mark.parametrize("run", [layer, layer.python_function], ids=["graph", "eager"])
def test_wrong_inner_dims(run):
    wrong = lambda: run(td.ones([2, 3]), td.ones([2, 3]))
    assert marked(layer) in error_of(wrong, Invalid, "matmul", "(2, 3)")
    assert run(td.ones([2, 3]), td.ones([3, 2])).shape == (2, 2)


def test_an_error_in_a_helper_names_its_line():
    assert marked(helper) in error_of(lambda: through_helper(td.ones([3])), Invalid, "reshape")
    assert through_helper(td.ones([7])).shape == (7,)


def test_a_shape_that_only_the_call_knows():
    @td.function(input_signature=[td.TensorSpec([None, 3]), td.TensorSpec([None])])
    def f(x, y):
        return x + td.expand_dims(y, 1)  # HERE

    assert marked(f) in error_of(lambda: f(td.ones([3, 3]), td.ones([2])), Invalid, "(3,3)")
    assert f(td.ones([2, 3]), td.ones([2])).shape == (2, 3)
    error_of(lambda: f(td.ones([3]), td.ones([2])), TypeError, "input_signature", "f32[3]")
    error_of(lambda: f(td.ones([2, 3], td.int32), td.ones([2])), TypeError, "i32[2, 3]")
    assert f(td.ones([4, 3]), td.ones([1])).shape == (4, 3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda f: f(C([1.0, 2.0]), C(5)), ("index 5", "out of range")),
        (lambda f: f(C([1.0, 2.0]), 5), ("index 5", "out of range", "(2,)")),
    ],
)
def test_index_out_of_range(wrong, words):
    @td.function
    def f(x, i):
        return x[i]  # HERE

    assert marked(f) in error_of(lambda: wrong(f), Invalid, *words)
    assert float(f(C([1.0, 2.0]), C(1))) == 2.0


def test_an_assertion_of_the_user():
    @td.function
    def f(x):
        assert x > 0, "x must be positive"  # HERE
        return x

    assert marked(f) in error_of(lambda: f(C(-1)), Invalid, "x must be positive")
    assert int(f(C(1))) == 1


def test_wrong_arguments():
    error_of(lambda: product(C(1)), TypeError, "product()", "'y'")
    error_of(lambda: product(C(1), C(1), C(1)), TypeError, "product()")
    assert int(product(C(3), C(3))) == 9


def test_assignments_that_do_not_fit():
    v = td.Variable([1.0])
    error_of(lambda: v.assign([1.0, 2.0]), ValueError, "(1,)", "(2,)", __file__)
    error_of(lambda: v.assign(C([1])), TypeError, "float32", "int32", __file__)
    assert v.numpy().tolist() == [1.0]


# -- conditionals and loops ----------------------------------------------------------------------


def test_undefined_in_one_branch():
    @td.function
    def f(x, read):
        if x > 0:  # HERE
            z = x * 2
        if read:
            return z  # READ
        return x

    text = error_of(lambda: f(C(1.0), True), UnboundLocalError, "'z'")
    assert marked(f) in text and marked(f, "READ") in text
    assert float(f(C(1.0), False)) == 1.0  # never read: no error


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (C(1), ("float32", "int32")),
        ("text", ("float32", "str")),
        (None, ("float32", "None")),
    ],
    ids=["dtype", "str", "None"],
)
def test_branches_of_different_types(other, words):
    @td.function
    def f(x, y):
        if x > 0:  # HERE
            z = x
        else:
            z = y
        return z

    kind = ValueError if other is None else TypeError
    assert marked(f) in error_of(lambda: f(C(1.0), other), kind, "'z'", *words)
    assert float(f(C(-1.0), C(2.0))) == 2.0


def test_branches_of_different_ranks():
    """As in TensorFlow the value has an unknown rank, which Python may need."""

    @td.function
    def f(x, y, counted):
        if x > 0:
            z = x
        else:
            z = y
        return len(z) if counted else z + 1.0  # USE

    assert float(f(C(1.0), C([1.0, 2.0]), False)) == 2.0
    assert f(C(-1.0), C([1.0, 2.0]), False).numpy().tolist() == [2.0, 3.0]
    text = error_of(lambda: f(C(1.0), C([1.0, 2.0]), True), ValueError, "rank", "ensure_shape")
    assert marked(f, "USE") in text
    assert int(f(C(-1.0), C([1.0, 2.0]), True)) == 2


def test_a_return_in_one_branch_only():
    @td.function
    def f(x, only):
        if x > 0:  # HERE
            return x
        if not only:
            return -x

    assert marked(f) in error_of(lambda: f(C(1.0), True), ValueError, "return value", "None")
    assert float(f(C(-1.0), False)) == 1.0


@pytest.mark.parametrize(
    ("step", "kind", "words"),
    [
        (lambda s, x: td.stack([s, s]), ValueError, ("'s'", "(1,)", "(2, 1)")),
        (lambda s, x: td.cast(s, td.int32), TypeError, ("'s'", "float32", "int32")),
    ],
    ids=["rank", "dtype"],
)
def test_loop_variables_that_change_type(step, kind, words):
    @td.function
    def f(x, step):
        s = x
        for _ in td.range(3):  # HERE
            s = step(s, x)
        return s

    assert marked(f) in error_of(lambda: f(C([1.0]), step), kind, *words)
    assert f(C([1.0]), lambda s, x: s + x).numpy().tolist() == [4.0]


def test_a_vector_as_condition():
    @td.function
    def f(x):
        if x > 0:  # HERE
            return x
        return -x

    assert marked(f) in error_of(lambda: f(C([1.0, 2.0])), TypeError, "bool[2]", "reduce_any")
    assert float(f(C(-1.0))) == 1.0


# -- symbolic tensors where Python needs values --------------------------------------------------


def test_a_tensor_as_python_bool_outside_autograph():
    @td.function(autograph=False)
    def f(x, always):
        if always or x > 0:  # HERE
            return x
        return -x

    text = error_of(lambda: f(C(1.0), False), NotAllowed, "Python bool", "td.cond")
    assert marked(f) in text
    assert float(f(C(-1.0), True)) == -1.0
    error_of(lambda: bool(C([1.0, 2.0])), ValueError, "reduce_any", __file__)


@pytest.mark.parametrize(
    "read", [methodcaller("numpy"), np.asarray, np.array], ids=["numpy", "asarray", "array"]
)
def test_reading_a_tensor_while_tracing(read):
    @td.function
    def f(x, read):
        return read(x) if read else x  # HERE

    text = error_of(lambda: f(C(1.0), read), NotImplementedError, "symbolic", "'f'")
    assert marked(f) in text
    assert float(f(C(1.0), None)) == 1.0


READS = {
    "op": lambda x: x + 1,
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "float": float,
    "bool": bool,
    "list": list,
    "captured": lambda x: td.function(lambda: x + 1)(),
    "returned": lambda x: td.function(lambda: x)(),
    "argument": lambda x: td.function(lambda y: y)(x),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_a_tensor_after_its_trace(read):
    leaked = []

    @td.function
    def leak(x):
        leaked.append(x * 2)  # HERE
        return x

    assert float(leak(C(1.0))) == 1.0
    text = error_of(lambda: read(leaked[0]), Leaked, "'leak'", "has ended")
    assert marked(leak) in text
    assert float(leak(C(2.0))) == 2.0
    assert "shape=()" in str(leaked[0])  # it can still be shown


# -- variables -----------------------------------------------------------------------------------


def test_a_variable_on_every_call():
    @td.function
    def f(x):
        v = td.Variable(1.0)  # HERE
        return x + v

    for _ in range(2):
        assert marked(f) in error_of(lambda: f(C(1.0)), ValueError, "'f'", "Variable", "first")


def test_a_variable_on_a_later_call():
    made = []

    @td.function
    def f(x, count):
        while len(made) < count:
            made.append(td.Variable(1.0))  # HERE
        return x + made[0]

    assert float(f(C(1.0), 1)) == 2.0
    assert marked(f) in error_of(lambda: f(C(1.0), 2), ValueError, "'f'", "Variable", "first")
    assert len(made) == 1
    assert float(f(C(2.0), 1)) == 3.0


# -- statements that cannot become a graph -------------------------------------------------------


def test_generators_and_coroutines():
    @td.function
    def generator(x):  # HERE
        yield x

    @td.function
    async def coroutine(x):  # HERE
        return x

    for f in (generator, coroutine):
        text = error_of(lambda f=f: f(C(1.0)), NotImplementedError, f.__name__)
        assert __file__ in text


def test_a_variable_deleted_in_a_branch_and_read_later():
    @td.function
    def f(x, delete):
        y = x
        if delete:
            del y
        return x + y  # HERE

    assert marked(f) in error_of(lambda: f(C(1.0), C(True)), UnboundLocalError, "'y'", "`if`")
    assert float(f(C(1.0), False)) == 2.0


def test_endless_recursion():
    @td.function
    def f(x, n):
        return f(x, n) if n else x  # HERE

    assert __file__ in error_of(lambda: f(C(1.0), 1), RecursionError, "'f'", "same signature")
    assert float(f(C(1.0), 0)) == 1.0


def test_errors_of_the_users_own_code_come_through():
    @td.function
    def f(x, wrong):
        if wrong:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine"):
        f(C(1.0), True)
    assert float(f(C(1.0), False)) == 1.0
