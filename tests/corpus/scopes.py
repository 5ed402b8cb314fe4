"""Scopes: walrus, del, global, nonlocal, functions that share variables with loops."""

from __future__ import annotations

from tests.corpus.registry import case, python, smooth

TOTAL = 0


@case(3, -3, 7)
def walrus_in_condition(x):
    if (y := x + 1) > 0 and y < 5:
        return y
    return -y


@case(3, -3, 1)
def walrus_in_second_operand(x):
    if x > 0 and (y := x * 2) > 3:
        return y
    return x


@case(3, -3)
def walrus_in_or(x):
    a = (y := x) > 0 or y < -5
    return a, y


@case(3, -3)
def walrus_in_conditional_expression(x):
    z = (y := x + 1) if x > 0 else (y := x - 1)
    return z + y


@case(3, -3, 30)
def walrus_in_chain(x):
    inside = 0 < (y := x + 1) < 10
    return inside, y


@case(30, 1)
def walrus_in_while(x):
    n = 0
    while (y := x // 2) > 0:
        x = y
        n += 1
    return n, x


@case(30, 1)
def walrus_in_while_logic(x):
    n = 0
    while (y := x // 2) > 0 and y != 3:
        x = y
        n += 1
    return n, x, y


@case((30, 1), (30, 2))
def walrus_in_second_operand_of_while(x, limit):
    n = 0
    while x > limit and (y := x // 2) > 0:
        x = y
        n += 1
    return n, x


@case((30, 3), (30, 4))
def walrus_in_while_else(x, stop):
    n = 0
    while (y := x // 2) > 0:
        x = y
        n += 1
        if y == stop:
            break
    else:
        n += 100
    return n, x


@case(3, -3)
def walrus_in_argument(x):
    return abs(y := x - 1) + y


@case(3, 12)
def delete_in_branch(x):
    y = x
    if x > 5:
        z = x * 2
        y = z
        del z
    return y


@case(3)
def delete_in_loop(n):
    s = 0
    for i in range(n):
        t = i * i
        s += t
        del t
    return s


@case(3, 12)
def delete_and_assign_again(x):
    y = x
    if x > 5:
        del y
        y = 1
    return y


@python(3, 12)
def delete_then_read(x):
    y = x
    if x > 5:
        del y
    try:
        return y
    except UnboundLocalError:
        return "gone"


@case(3, -3)
def nonlocal_in_branch(x):
    total = 1

    def add(k):
        nonlocal total
        if k > 0:
            total = total + k

    add(x)
    return total


@case(3, -3)
def nonlocal_function_called_in_branch(x):
    total = 1

    def add(k):
        nonlocal total
        total = total + k

    if x > 0:
        add(x)
    return total


@case(4, 0)
def nonlocal_function_called_in_loop(n):
    total = 0

    def add(k):
        nonlocal total
        total += k

    for i in range(n):
        add(i)
        if i > 1:
            add(100)
    return total


@case(4, 0)
def function_reads_what_a_loop_assigns(n):
    total = 0

    def doubled():
        return 2 * total

    seen = 0
    for i in range(n):
        total += i
        seen += doubled()
    return seen, doubled()


@case(3, -3)
def lambda_reads_what_a_branch_assigns(x):
    scale = 1
    scaled = lambda v: v * scale
    if x > 0:
        scale = x
    else:
        x = scaled(x)
        scale = 5
    return scaled(x)


@case(4, 0)
def nonlocal_loop(n):
    count = 0

    def run(k):
        nonlocal count
        while count < k:
            count += 2
        return count

    return run(n) * 100 + count


@case(3, -3)
def global_in_branch(x):
    global TOTAL
    TOTAL = 0
    if x > 0:
        TOTAL = x
    result, TOTAL = TOTAL, 0
    return result


@case(4, 0)
def global_in_loop(n):
    global TOTAL
    TOTAL = 0
    for i in range(n):
        TOTAL = TOTAL + i
    result, TOTAL = TOTAL, 0
    return result


@case(3, -3)
def nonlocal_and_return(x):
    calls = 0

    def sign(k):
        nonlocal calls
        if k > 0:
            calls = calls + 1
            return 1
        calls = calls + 10
        return -1

    return sign(x) * 100 + calls


@case((7, 3), (0, 3))
def found_in_first_iteration(n, last):
    i = 0
    while i < 5:
        if i == n:
            r = i
            break
        i += 1
    else:
        r = -last
    return r


@case(3)
def lambda_in_loop_header(n):
    s = 0
    for i in (lambda k: range(k))(n):
        s += i
    while (lambda v: v < n * 10)(s):
        s += 7
    return s


@case(3, -3)
def lambda_with_arguments(x):
    return (lambda *a, **k: a[0] + k["z"] if a[0] > 0 else a[0])(x, z=4)


@case((3, 1), (1, 3))
def parameters_of_all_kinds(a, b):
    def f(x, /, y=1, *others, z=3, **more):
        if x > y:
            return x + z + len(others)
        return y - more.get("w", 0)

    return f(a, b) + f(a, 2, 3, z=b) + f(*(b,), **{"y": a, "w": 1})


@case(3, -3)
def decorator_with_arguments(x):
    def plus(k):
        def decorate(fn):
            return lambda v: fn(v) + k if v > 0 else fn(v)

        return decorate

    @plus(10)
    @plus(100)
    def g(v):
        return v * 2 if v > 1 else v

    return g(x)


@case(3, 0)
def recursion_with_static_depth(n):
    def descend(k, depth):
        if depth == 0:
            return k
        if k > 1:
            return descend(k - 1, depth - 1)
        return descend(k + 1, depth - 1)

    return descend(n, 4)


@smooth(0.7, 1.7)
def gradient_through_nonlocal(x):
    total = x * 0.5

    def add(v):
        nonlocal total
        if v > 1.0:
            total = total * v

    add(x)
    return total + x


@smooth(0.7, 1.7)
def gradient_through_walrus(x):
    if (y := x * x) > 1.0 and y < 9.0:
        return y * x
    return y


@python(3)
def class_with_closure(n):
    class Counter:
        step = n

        def __init__(self):
            self.value = 0

        def add(self, k):
            if k > 1:
                self.value += k * self.step
            return self

    return Counter().add(1).add(2).value


@python(4)
def generator_function_inside(n):
    def values():
        for i in range(n):
            if i % 2:
                yield i

    return list(values()), sum(values())


@case((30, 3), (30, 9), (2, 9))
def walrus_in_while_with_jumps_in_else(x, limit):
    n = 0
    for i in range(4):
        k = 0
        while (y := (x + i) // 2) > limit and k < 3:
            x = y
            k += 1
        else:
            n += 10
            if n > 25:
                break
            continue
        n += 100
    return n, x
