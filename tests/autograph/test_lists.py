"""Lists that grow in loops and branches over tensors: plain Python = traced and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("TREADLE_STRICT", "1")


def same(found, expected):
    td.nest.assert_same_structure(expected, found)
    for a, b in zip(td.nest.flatten(expected), td.nest.flatten(found), strict=True):
        np.testing.assert_allclose(np.asarray(b), np.asarray(a), rtol=1e-6)


def check(fn, n, x=2):
    """`fn` of a number of iterations and an int gives with tensors what it gives in Python."""
    expected = fn(n, x)
    same(td.autograph.to_graph(fn)(n, td.constant(x)), expected)
    same(td.function(fn)(td.constant(n), td.constant(x)), expected)


def appended(n, x):
    out = []
    for i in range(n):
        out.append(x * i)
    return td.stack(out)


def appended_while(n, x):
    out = [x]
    i = 0
    while i < n:
        out.append(out[-1] * 2 + i)
        i += 1
    return td.stack(out)


def initial_elements(n, x):
    out = [x, x + 1, 7]
    for _ in range(n):
        out.append(out[0] + out[len(out) - 1])
    return td.stack(out), len(out)


def in_branch(n, x):
    out = [x]
    if n > 2:
        out.append(x * 2)
        out.append(x * 3)
    return td.stack(out)


def in_branches_of_loop(n, x):
    even, odd = [x], []
    for i in range(n):
        if i % 2 == 0:
            even.append(x * i)
        else:
            odd.append(x - i)
            odd.append(x)
    return td.stack(even), td.stack(odd)


def with_break(n, x):
    out = []
    for i in range(n):
        if i == 3:
            break
        if i == 1:
            continue
        out.append(x + i)
    return td.stack(out)


def nested(n, x):
    out = []
    for i in range(n):
        for j in range(i + 1):
            out.append(x * i + j)
    return td.stack(out)


def inner_list(n, x):
    rows = []
    for i in range(n):
        row = []
        for j in range(3):
            row.append(x * i + j)
        rows.append(td.stack(row))
    return td.stack(rows)


def inner_graph_list(n, x):
    sums = []
    for i in range(n):
        row = []
        for j in range(i + 1):
            row.append(x + j)
        sums.append(td.reduce_sum(td.stack(row)))
    return td.stack(sums)


def popped(n, x):
    out = [x, x * 2]
    for i in range(n):
        out.append(x + i)
    last = out.pop()
    out.pop()
    return td.stack(out), last


def used_as_stack(n, x):
    stack = [x]
    total = x * 0
    for i in range(n):
        if i % 3 == 2:
            total += stack.pop()
        else:
            stack.append(x * i)
    while len(stack) > 1:
        total += 10 * stack.pop()
    return total


def extended(n, x):
    out = []
    for i in range(n):
        out.extend([x, x + i])
        out += [x * 2]
    return td.stack(out)


def concatenated_lists(n, x):
    out = [x]
    for i in range(n):
        out = out + [x * i]
    return td.stack(out)


def assigned(n, x):
    out = [x * 0, x]
    for i in range(n):
        out.append(x)
        out[i] = out[i] + 5
        out[-1] += 1
    return td.stack(out)


def fixed_list_at_positions(n, x):
    out = [x * 0] * 6
    for i in range(n):
        out[i] = x + i
    return td.stack(out)


def of_vectors(n, x):
    out = []
    for i in range(n):
        out.append(td.stack([x, x * i]))
    return td.stack(out), td.concat(out, 0), td.stack(out, axis=1), td.concat(out, axis=-1)


def two_lists(n, x):
    a, b = [], []
    for i in range(n):
        a.append(x * i)
        b.append(i)
    return td.stack(a), td.stack(b)


def after_the_loop(n, x):
    out = []
    for i in range(n):
        out.append(x + i)
    total = x * 0
    for v in out:
        total += v
    for k, v in enumerate(out):
        total += k * v
    return total + out[1] * 100 + out[-1] + len(out)


def mutated_in_helper(n, x):
    def add(values, v):
        values.append(v)

    out = []
    for i in range(n):
        out.append(x)
        add(out, x * i)
    return td.stack(out)


def cleared(n, x):
    out = [x]
    for i in range(n):
        out.clear()
        out.append(x * i)
    return td.stack(out)


def deleted_items(n, x):
    out = [x, x + 1, x + 2]
    if n > 2:
        del out[0]
        del out[-1]
    else:
        del out[1]
    return out


def deleted_in_loop(n, x):
    out = [x]
    for i in range(n):
        out.append(i)
        out.append(x)
        del out[-1]
    return out


def returned_early(n, x):
    out = []
    for i in range(n):
        if i == 3:
            return td.stack(out)
        out.append(x * i)
    return td.stack(out) + 1


def read_before_first(n, x):
    out = []
    for i in range(n):
        if i * x > 3:
            out.append(out[-1] + out[0] * x)
        else:
            out.append(i)
    return td.stack(out)


def dict_of_results(n, x):
    d = {"a": x, "b": [x]}
    for i in range(n):
        d.update(a=d["a"] + i)
        d["b"][0] += 2
    if n > 2:
        d.update({"a": n, "c": x})
    else:
        d["c"] = n
    return d


FUNCTIONS = [
    appended, appended_while, initial_elements, in_branch, in_branches_of_loop, with_break, nested,
    inner_list, inner_graph_list, popped, used_as_stack, extended, concatenated_lists, assigned,
    fixed_list_at_positions, of_vectors, two_lists, after_the_loop, mutated_in_helper, cleared,
    dict_of_results, returned_early, read_before_first,
]  # fmt: skip
LISTS = [deleted_items, deleted_in_loop]


@pytest.mark.parametrize("fn", FUNCTIONS)
@pytest.mark.parametrize("n", [2, 5])
def test_same_as_python(fn, n):
    check(fn, n)


@pytest.mark.parametrize("fn", LISTS)
@pytest.mark.parametrize("n", [2, 5])
def test_lists_as_results(fn, n):
    check(fn, n)


def test_range_of_tensors():
    @td.function
    def f(xs):
        out = []
        for x in xs:
            out.append(x[::-1] * 2)
        return td.stack(out)

    xs = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(f(td.constant(xs)), xs[:, ::-1] * 2)


def test_no_iteration():
    @td.function
    def f(n):
        out = []
        for i in td.range(n):
            out.append(td.zeros([3]) + td.cast(i, td.float32))
        return td.stack(out)

    assert f(td.constant(0)).shape == (0, 3)
    assert f(td.constant(2)).shape == (2, 3)


def test_returned_list():
    @td.function
    def f(n, x):
        out = []
        for i in td.range(n):
            out.append((x * 2.0, {"i": i}))
        return out

    found = f(td.constant(2), td.constant(3.0))
    assert isinstance(found, list) and len(found) == 2
    assert found[1][0].numpy() == 6.0 and found[1][1]["i"].numpy() == 1
    assert f(td.constant(0), td.constant(3.0)) == []


def test_list_of_tuples():
    @td.function
    def f(n, x):
        out = []
        for i in td.range(n):
            out.append((x, i))
        first, number = out[1]
        out[0] = (first * 2.0, number)
        return out[0], out.pop()

    (a, i), (b, j) = f(td.constant(3), td.constant(4.0))
    assert (a.numpy(), i.numpy(), b.numpy(), j.numpy()) == (8.0, 1, 4.0, 2)


def test_from_one_function_to_another():
    @td.function
    def inner(n, x):
        out = []
        for i in td.range(n):
            out.append(x + td.cast(i, td.float32))
        return out

    @td.function
    def f(n, x):
        out = inner(n, x)
        out.append(x)
        return td.stack(out)

    np.testing.assert_array_equal(f(td.constant(2), td.constant(5.0)), [5, 6, 5])


def test_element_type():
    @td.function
    def f(n):
        out = []
        td.autograph.experimental.set_element_type(out, td.int64, shape=[])
        if n > 0:
            out = out
        for i in td.range(n):
            if len(out) > 1:
                out.append(out[-1] + out[-2])
            else:
                out.append(1)
        return td.stack(out)

    found = f(td.constant(6))
    assert found.dtype is td.int64
    np.testing.assert_array_equal(found, [1, 1, 2, 3, 5, 8])


def test_elements_of_different_sizes():
    @td.function
    def f(n):
        out = []
        for i in td.range(n):
            out.append(td.range(i))
        return td.concat(out, 0), out[2]

    joined, third = f(td.constant(4))
    np.testing.assert_array_equal(joined, [0, 0, 1, 0, 1, 2])
    np.testing.assert_array_equal(third, [0, 1])


def powers(n, x):
    out = [x]
    for _ in range(n):
        out.append(out[-1] * x + 1.0)
        out[0] = out[0] * td.sin(x)
    return td.stack(out)


def by_sign(n, x):
    small, large = [], [x]
    y = x
    for i in range(n):
        y = -1.3 * y * x
        if y > 0.2:
            large.append(y)
            large[i // 4] *= 2.0
        else:
            small.append(y * large[-1])
    return td.stack(small), td.stack(large)


def last_of_stack(n, x):
    stack = [x, x * x]
    for i in range(n):
        if i % 2 == 0:
            stack.append(stack[-1] * x)
        else:
            stack.append(stack.pop() * stack.pop() + x)
    return td.stack(stack), stack[0]


def of_pairs(n, x):
    out = []
    y = x
    for _ in range(n):
        y = y * x
        out.append((y, td.stack([x, y])))
    total = x
    for a, b in out:
        total += a * td.reduce_sum(b**2)
    return total


@pytest.mark.parametrize("fn", [powers, by_sign, last_of_stack, of_pairs])
def test_gradients(fn):
    def total(n, x):
        return td.add_n([td.reduce_sum(v**2) for v in td.nest.flatten(fn(n, x))])

    x = td.constant(0.7, td.float64)
    with td.GradientTape() as tape:
        tape.watch(x)
        loss = td.function(total)(td.constant(5), x)
    np.testing.assert_allclose(loss, total(5, x))
    step = 1e-6
    expected = (total(5, x + step) - total(5, x - step)) / (2 * step)
    np.testing.assert_allclose(tape.gradient(loss, x), expected, rtol=1e-5)


def test_python_lists_stay_pythons():
    def f(xs, kept):
        out = []
        for x in xs:
            out.append(x)
            kept.append(x)
        if len(out) > 2:
            out.pop(0)
            out.insert(0, "a")
            out.sort(key=str)
        return out, out is kept

    given, expected = [], []
    assert td.autograph.to_graph(f)([3, 1, 2], given) == f([3, 1, 2], expected)
    assert given == expected == [3, 1, 2]


def test_python_list_keeps_its_identity_in_branches():
    @td.function
    def f(x):
        out = [x]
        same = out
        if x > 0:
            out[0] = x * 2
            out.append(x)
        else:
            out.append(x - 1)
        assert out is same
        return out

    assert [float(v) for v in f(td.constant(3.0))] == [6, 3]
    assert [float(v) for v in f(td.constant(-3.0))] == [-3, -4]


def test_generated_code():
    def f(xs):
        out = []
        for x in xs:
            out.append(x * 2)
        return td.stack(out)

    assert td.autograph.to_code(f).splitlines()[1:] == [
        "    out = []",
        "",
        "    def body(x, out):",
        "        out.append(x * 2)",
        "        return out",
        "",
        "    out = ag__.for_stmt(xs, body, out)",
        "    return td.stack(out)",
    ]


# -- refused -------------------------------------------------------------------------------------


def refused(body, match, *args):
    def f(n, x):
        out = []
        for i in td.range(n):
            out.append(x)
        return body(out, x)

    with pytest.raises((TypeError, ValueError), match=match) as e:
        td.function(f)(td.constant(3), td.constant(1.0))
    assert "test_lists.py:" in str(e.value)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda out, x: out[1:], "slice of td.stack"),
        (lambda out, x: list(iter(out)), "td.stack"),
        (lambda out, x: out.insert(0, x), r"insert.*td.stack"),
        (lambda out, x: out.sort(), r"sort.*td.stack"),
        (lambda out, x: out.pop(0), "than the last"),
        (lambda out, x: bool(out), "compare len"),
        (lambda out, x: out.append("text"), "does not fit"),
        (lambda out, x: out.append((x, x)), "does not fit"),
        (lambda out, x: out.append(td.constant(1)), "does not fit"),
    ],
)
def test_what_only_python_lists_can_do(body, match):
    refused(body, match)


def test_elements_of_different_types():
    def dtypes(n):
        out = []
        for i in td.range(n):
            out.append(i)
            out.append(td.constant(1.0))

    def objects(n):
        out = []
        for _ in td.range(n):
            out.append(object)
        return out

    with pytest.raises(TypeError, match=r"one dtype and rank(.|\n)*test_lists.py:"):
        td.function(dtypes)(td.constant(2))
    with pytest.raises(TypeError, match=r"tensors and numbers, not <class(.|\n)*test_lists.py:"):
        td.function(objects)(td.constant(2))


def test_other_names_of_a_list_that_grew():
    def f(n, x):
        out = []
        other = out
        for _ in td.range(n):
            out.append(x)
        return td.stack(out) + other[0]

    with pytest.raises(UnboundLocalError, match="list that grew(.|\n)*test_lists.py:"):
        td.function(f)(td.constant(2), td.constant(1.0))


def test_a_list_that_stays_empty():
    @td.function
    def f(n):
        out = []
        for _ in td.range(n):
            if len(out) > 5:
                out.append(out[0])
        return td.stack(out)

    assert f(td.constant(2)).shape == (0,)  # as in Python: nothing is ever appended
