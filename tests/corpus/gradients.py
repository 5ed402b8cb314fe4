"""Differentiable functions: gradients through branches and loops equal finite differences."""

from __future__ import annotations

from tests.corpus.registry import smooth


@smooth(1.5, -1.5)
def cube_if_positive(x):
    if x > 0.0:
        return x * x * x
    return -x


@smooth(1.5, 3.5, -2.0)
def piecewise(x):
    if x > 3.0:
        y = x * 2.0
    elif x > 0.0:
        y = x * x
    else:
        y = 0.5 - x
    return y * y


@smooth((1.5, 2.0), (2.0, 1.5))
def larger_squared(x, y):
    z = x if x > y else y
    return z * z + x * y


@smooth(0.3, 2.2)
def doubled_until_large(x):
    while x < 10.0:
        x = x * 2.0
    return x * x


@smooth(2.0, 9.0)
def newton_root(a):
    y = a
    for _ in range(6):
        y = 0.5 * (y + a / y)
    return y


@smooth(0.4, 0.8)
def logistic_map(x):
    for _ in range(4):
        x = 3.1 * x * (1.0 - x)
    return x


@smooth((1.1, 0.7))
def loop_with_break(x, y):
    s = x
    for i in range(8):
        s = s * y + x
        if s > 2.0:
            break
    return s


@smooth((1.1, 0.7))
def loop_with_continue(x, y):
    s = x
    for i in range(5):
        if i % 2 == 0:
            continue
        s = s * y
    return s + y


@smooth(1.3, 40.0)
def return_in_loop(x):
    y = x
    for _ in range(5):
        y = y * x
        if y > 30.0:
            return y + x
    return y


@smooth(1.3)
def through_closure(x):
    def f(v):
        return v * x if v > 1.0 else v

    return f(f(x))


@smooth((0.5, 1.5))
def horner(x, a):
    s = 0.0 * x
    for k in range(4):
        s = s * x + a * (k + 1.0)
    return s


@smooth(0.7)
def nested_loops(x):
    s = x
    for i in range(3):
        for j in range(i):
            s = s + x * x
        s = s * 0.5
    return s


@smooth((0.7, 1.9), (1.9, 0.7))
def logic_in_condition(x, y):
    if x > 1.0 and y < 1.0:
        return x / y
    return y / x


@smooth(0.7)
def state_not_used(x):
    y = x * 3.0
    for _ in range(3):
        y = x * x
    return y


@smooth((0.7, 2.5))
def swap_in_loop(x, y):
    for _ in range(3):
        x, y = y * 0.5, x + y
    return x * y


@smooth(0.7)
def fixed_point(x):
    y = x
    i = 0
    while i < 5:
        y = y - (y * y - x) / (2.0 * y)
        i += 1
    return y


@smooth(2.3)
def while_true_with_return(x):
    while True:
        if x > 20.0:
            return x * x
        x = x * 2.0


@smooth((0.5, 2.0))
def conditional_expression_in_loop(x, y):
    s = 0.0 * x
    for k in range(4):
        s = s + (x if k > 1 else y) * s + x
    return s


@smooth((2.0, 0.5))
def while_of_two_conditions(x, y):
    while x < 9.0 and y > 0.1:
        x = x * 1.5
        y = y * 0.5
    return x * y


@smooth(0.8)
def recursion(x):
    def f(v, n):
        return v if n == 0 else f(v * x, n - 1) + v

    return f(x, 3)


@smooth((0.8, 0.3))
def tuple_state(x, y):
    pair = (x, y)
    for _ in range(3):
        pair = (pair[0] * pair[1] + 1.0, pair[0])
    return pair[0] - pair[1]


@smooth(0.8)
def attribute_state(x):
    class Box:
        pass

    box = Box()
    box.value = x
    for _ in range(3):
        box.value = box.value * x + 1.0
    return box.value


@smooth(1.2)
def loop_with_else(x):
    for _ in range(3):
        x = x * 1.5
        if x > 50.0:
            break
    else:
        x = x * x
    return x


@smooth((1.2, 0.4))
def branch_of_tuples(x, y):
    a, b = (x, y) if x > y else (y, x)
    return a * a - b


@smooth(1.2)
def early_return_in_branch(x):
    if x > 0.0:
        if x > 2.0:
            return x
        x = x * x
    return x * 3.0
