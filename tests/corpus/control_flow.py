"""if, while and for, with break, continue, return and else."""

from __future__ import annotations

from tests.corpus.registry import case, python


@case(3, -3, 0)
def if_else(x):
    if x > 0:
        y = x * x
    else:
        y = -x
    return y


@case(3, -3, 0)
def if_without_else(x):
    if x > 0:
        x = x + 1
    return x


@case(3, -3, 0)
def elif_chain(x):
    if x > 2:
        y = 1
    elif x > 0:
        y = 2
    elif x == 0:
        y = 3
    else:
        y = 4
    return y


@case((1, 2), (2, 1), (5, 5))
def two_outputs(a, b):
    if a > b:
        a, b = b, a
    return a * 10 + b


@case((1, 2), (2, 1), (-1, -1))
def nested_if(a, b):
    r = 0
    if a > 0:
        if b > 1:
            r = 1
        else:
            r = 2
        r = r + 10
    return r


@case(3, -3)
def early_return(x):
    if x > 0:
        return x * 2
    x = x - 1
    return x


@case(3, -3, 20)
def returns_everywhere(x):
    if x > 10:
        return 1
    if x > 0:
        return 2
    return 3


@case((3, 1), (3, -1), (-3, 1), (-3, -1))
def return_in_nested_if(x, y):
    if x > 0:
        if y > 0:
            return 1
        x = x + 5
    x = x * 2
    return x


@case(0, 5, 10)
def while_simple(n):
    i = 0
    s = 0
    while i < n:
        s += i
        i += 1
    return s


@case(0, 5, 50)
def while_break(n):
    i = 0
    while i < n:
        if i * i > 20:
            break
        i += 1
    return i


@case(0, 5, 10)
def while_continue(n):
    i = 0
    s = 0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        s += i
    return s


@case(0, 5, 30)
def while_both(n):
    i = 0
    s = 0
    while i < n:
        i += 1
        if i % 3 == 0:
            continue
        if s > 40:
            break
        s += i
    return s * 100 + i


@case(0, 5, 30)
def while_true(n):
    i = 0
    while True:
        if i >= n:
            break
        i += 2
    return i


@case(0, 5, 30)
def while_return(n):
    i = 0
    while i < 100:
        if i * i >= n:
            return i
        i += 1
    return -1


@case(3, 7, 30)
def while_else(n):
    i = 2
    while i * i <= n:
        if n % i == 0:
            r = i
            break
        i += 1
    else:
        r = -1
    return r


@case(3, 7)
def while_else_without_break(n):
    i = 0
    while i < n:
        i += 2
    else:
        i += 100
    return i


@case(0, 4, 7)
def for_range(n):
    s = 0
    for i in range(n):
        s += i * i
    return s


@case((1, 9), (4, 2))
def for_range_two(a, b):
    s = 0
    for i in range(a, b):
        s += i
    return s


@case((1, 20), (4, 2))
def for_range_three(a, b):
    s = 0
    for i in range(a, b, 3):
        s = s * 2 + i
    return s


@case(0, 4, 12)
def for_break(n):
    s = 0
    for i in range(n):
        if s > 10:
            break
        s += i
    return s


@case(0, 4, 12)
def for_continue(n):
    s = 0
    for i in range(n):
        if i % 2 == 1:
            continue
        s += i
    return s


@case(0, 4, 12)
def for_return(n):
    s = 0
    for i in range(n):
        s += i
        if s > 5:
            return s * 100
    return s


@case(3, 6)
def nested_for(n):
    s = 0
    for i in range(n):
        for j in range(i):
            if j == 2:
                continue
            s += i * j
    return s


@case(3, 6)
def nested_break(n):
    s = 0
    for i in range(n):
        for j in range(n):
            if j > i:
                break
            s += 1
        if s > 10:
            break
    return s


@case(3, 9)
def nested_return(n):
    s = 0
    for i in range(n):
        for j in range(n):
            s += 1
            if i * j > 5:
                return s
        s += 10
    return -s


@case(3, 9)
def for_else(n):
    r = 0
    for i in range(2, n):
        if i * i == n:
            r = i
            break
    else:
        r = -5
    return r


@case(0, 3)
def static_range_with_break(n):
    s = 0
    for i in range(5):
        if i > n:
            break
        s += i
    return s


@case(0, 3)
def static_list(n):
    s = 0
    for i in [1, 2, 3]:
        if i == n:
            continue
        s += i
    return s


@case((1, 2), (-1, 2), (1, -2))
def logical_and(a, b):
    if a > 0 and b > 0:
        return 1
    return 0


@case((1, 2), (-1, 2), (-1, -2))
def logical_or(a, b):
    if a > 0 or b > 0:
        return 1
    return 0


@case(1, -1)
def logical_not(a):
    if not a > 0:
        return 1
    return 0


@case(1, 5, 9)
def chained(a):
    if 2 < a < 7:
        return 1
    return 0


@case(1, 5, 9)
def chained_with_call(a):
    if 2 < a + 1 <= 7 != a:
        return 1
    return 0


@case(1, -5)
def conditional_expression(a):
    return a if a > 0 else -a


@case(1, -5, 0)
def nested_conditional_expression(a):
    return 1 if a > 0 else 2 if a < 0 else 3


def helper(x):
    if x > 2:
        return x * 10
    return x


@case(1, 5)
def calls_helper(a):
    return helper(a) + helper(a + 2)


@case(1, 5)
def nested_function(a):
    def inner(v):
        if v > 2:
            return v + 1
        return v - 1

    return inner(a) * 2


@case(1, 5)
def closure_reads(a):
    b = a + 1

    def inner(v):
        return v * b if v > 2 else b

    return inner(a)


@case(1, 5)
def lambda_inside(a):
    f = lambda v: v + 1 if v > 2 else v
    return f(a)


@case(2, 5)
def unused_after(n):
    i = 0
    t = 0
    while i < n:
        t = t + i * 2
        i += 1
    return i


@case(2, 5)
def temporary_in_branch(n):
    if n > 3:
        t = n * 2
        r = t + 1
    else:
        r = n
    return r


@case(2, 5)
def reassigned_target(n):
    s = 0
    for i in range(n):
        i = i * 2
        s += i
    return s


@case(2, 5)
def target_used_after(n):
    i = 100
    for i in range(n):
        pass
    return i


@case(2, 5)
def enumerate_range(n):
    s = 0
    for k, v in enumerate(range(n)):
        s += k * v
    return s


@case(2, 5)
def zipped(n):
    s = 0
    for a, b in zip(range(n), range(n)):
        s += a * b
    return s


@case((2, 3), (5, 1))
def min_max(a, b):
    return max(a, b) * 10 + min(a, b)


@case(5, -5)
def absolute(a):
    return abs(a)


@case(4, 9)
def early_continue_absorbs(n):
    s = 0
    for i in range(n):
        if i > 2:
            s += 1
            continue
        if i == 1:
            s += 10
        else:
            s += 100
    return s


@case(4, 9)
def break_in_nested_if(n):
    s = 0
    for i in range(n):
        if i > 2:
            if s > 5:
                break
            s += 3
        s += i
    return s


@case(4, 9)
def continue_in_nested_if(n):
    s = 0
    for i in range(n):
        if i > 2:
            if i % 2 == 0:
                continue
            s += 3
        s += i
    return s


@case(4, 9)
def return_after_loop_in_if(n):
    if n > 5:
        for i in range(n):
            if i * i > n:
                return i
    return n


@case(4, 9)
def with_block(n):
    import contextlib

    with contextlib.nullcontext():
        if n > 5:
            return 1
        n = n + 1
    return n


@case(3, 0)
def state_of_two_loops(n):
    a = 0
    for i in range(n):
        a += i
    while a > 2:
        a -= 2
    return a


@case((12, 18), (7, 3))
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@case(1, 6, 27)
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps > 50:
            break
    return steps


@case(10, 1)
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@case(2, 30)
def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


@case(5, -5)
def default_arguments(x, scale=2, *, offset=1):
    if x > 0:
        return x * scale + offset
    return offset


@python(None, 3)
def is_none(x):
    if x is None:
        return "none"
    return x


@python("a", 3)
def by_type(x):
    if isinstance(x, str):
        r = x + "!"
    else:
        r = x
    return r


@python([1, 2, 3], [])
def over_list(xs):
    out = []
    for x in xs:
        if x > 1:
            out.append(x)
    return out


@python({"a": 1, "b": 2})
def over_dict(d):
    s = 0
    for k, v in d.items():
        if k != "a":
            s += v
    return s


@python(True, False)
def undefined_but_not_read(c):
    if c:
        y = 1
    else:
        z = 2
    if c:
        return y
    return z


@python(0, 3)
def undefined_after_loop(n):
    for i in range(n):
        last = i
    if n > 0:
        return last
    return -1


@python(0, 5)
def try_except(n):
    count = 0
    try:
        while count < 10:
            count += 1
            if count == n:
                raise ValueError
    except ValueError:
        return -count
    return count


@python(3)
def try_finally(n):
    log = []
    try:
        if n > 2:
            return log
    finally:
        log.append(n)
    return None


@python(4)
def closures_in_loop(n):
    fs = []
    for i in range(n):
        fs.append(lambda: i)
    return [f() for f in fs]


@python(4)
def closure_sees_changes(n):
    total = 0

    def show():
        return total

    seen = []
    for i in range(n):
        total += i
        seen.append(show())
    return seen


@python(4)
def nonlocal_counter(n):
    count = 0

    def bump():
        nonlocal count
        count += 1

    for i in range(n):
        if i % 2 == 0:
            bump()
    return count


@python(4, 0)
def comprehension(n):
    return [i * 2 if i > 1 else i for i in range(n) if i != 2]


@python(10, 3)
def walrus_while(n):
    out = []
    while (n := n - 2) > 0:
        out.append(n)
    return out, n


@python(10, 3)
def walrus_if(n):
    if (m := n * 2) > 10:
        return m
    return m + 1


@python(10, 3)
def walrus_in_and(n):
    if n > 5 and (m := n) > 7:
        return m
    return 0


@python([1, 2], (3,), 5)
def match_statement(x):
    match x:
        case [a, b]:
            r = a + b
        case (a,):
            r = a
        case _:
            r = 0
    return r


@python((1, 2, 3))
def starred(*args):
    first, *rest = args
    for r in rest:
        first += r
    return first


@python("ab")
def keyword(s, **kw):
    out = s
    for k in kw:
        out += k
    return f"{out}{len(s)!r:>4}"


@python(7)
def delete(n):
    t = n
    if n > 3:
        u = t
        del u
    return t


@python([3, 1, 2])
def sort_with_key(xs):
    return sorted(xs, key=lambda x: -x if x > 1 else x)


@python([1, 0, 2])
def falsy_values(xs):
    return [x or "zero" for x in xs], xs and xs[0], not xs


@python([1, 2])
def augmented_list(xs):
    ys = xs
    if len(xs) > 1:
        ys += [3]
    return xs, ys


@python(3)
def assertion(n):
    assert n > 2, "too small"
    return n


@python({"x": 1})
def item_state(d):
    if d["x"] > 0:
        d["x"] = d["x"] + 1
        d["y"] = 5
    return d


@python(5)
def multiline_string(n):
    text = """one
    two"""
    if n > 3:
        text = (
            text
            + """
  three"""
        )
    return text


@python(5)
def recursion(n):
    if n <= 1:
        return 1
    return n * recursion(n - 1)


@python(3)
def class_inside(n):
    class Point:
        def __init__(self, x):
            self.x = x

        def norm(self):
            return self.x if self.x > 0 else -self.x

    p = Point(-n)
    if p.norm() > 2:
        p.x = p.x + 1
    return p.x


@python(3)
def generator_expression(n):
    return sum(i for i in range(n) if i > 0)


@python(3)
def nested_generator(n):
    def gen():
        for i in range(n):
            if i > 0:
                yield i

    total = 0
    for v in gen():
        total += v
    return total


@python(6)
def shadowed_helper_names(n):
    then = 1
    body = 2
    for i in range(n):
        if i > then:
            body += i
    return then, body


@python((1, 2), (3, 2))
def compare_strings(a, b):
    kind = "big" if a > b else "small"
    if kind == "big":
        return 1
    return 0
