"""Statements: match, with, try, assert, del, import, annotated and augmented assignments."""

from __future__ import annotations

import contextlib

from tests.corpus.registry import case, python


@case(3, -3)
def annotated(x):
    y: int = x + 1
    if y > 0:
        y: int = y * 2
    return y


@case(3, -3)
def chained_assignment(x):
    a = b = x
    if x > 0:
        a = b = a + b
    return a + b


@case((3, 1), (1, 3))
def swap_in_branch(a, b):
    if a > b:
        a, b = b, a
    return a - b


@case((3, 1), (1, 3))
def starred_target(a, b):
    first, *rest = a, b, a + b
    if first > 2:
        first = rest[-1]
    return first


@case(3, -3)
def augmented_of_all_kinds(x):
    y = 20
    if x > 0:
        y += x
        y *= 2
        y -= 1
        y //= 3
        y %= 100
    return y


@case(3, 0)
def assert_that_holds(x):
    assert x > -1, "negative"
    return x + 1


@case(3, 0)
def assert_in_branch(x):
    if x > 1:
        assert x > 2, "two"
        x = x * 2
    return x


@case(3, 0)
def delete_unused(x):
    y = x + 1
    z = y * 2
    del y
    return z


@case(3, -3)
def with_around_if(x):
    with contextlib.nullcontext(5) as k:
        if x > 0:
            x = x + k
    return x


@case(3, -3)
def two_contexts(x):
    with contextlib.nullcontext(1) as a, contextlib.nullcontext(2) as b:
        y = a + b if x > 0 else x
    return y


@case(3, -3)
def if_around_with(x):
    if x > 0:
        with contextlib.nullcontext():
            x = x * 3
    return x


@case(3, -3)
def try_around_straight_code(x):
    try:
        y = x * 2
    except ValueError:
        y = 0
    if y > 0:
        y = y + 1
    return y


@case(3, -3)
def try_finally_around_tensor_code(x):
    log = []
    try:
        y = x * 2 if x > 0 else x
    finally:
        log.append("done")
    return y + len(log)


@case(3, -3)
def import_inside(x):
    import math as m

    if x > 0:
        x = x + int(m.pi)
    return x


@case(3, -3)
def pass_and_ellipsis(x):
    if x > 0:
        pass
    else:
        ...
    return x


@case(3, -3)
def docstring_inside(x):
    """A docstring."""
    if x > 0:
        """A string by itself."""
        x = x + 1
    return x


@case((2, 3), (5, 3))
def match_python_value_tensor_inside(x, y):
    kind = "add"
    match kind:
        case "add":
            r = x + y if x > y else x - y
        case _:
            r = 0
    return r


@case(3, -3)
def match_structure_of_tensors(x):
    match (x, 1):
        case (a, 1):
            if a > 0:
                a = a * 2
        case _:
            a = 0
    return a


@python({"kind": "circle", "r": 2}, {"kind": "square", "a": 3, "x": 1}, {})
def match_mapping(d):
    match d:
        case {"kind": "circle", "r": r}:
            return r
        case {"kind": "square", **rest}:
            return len(rest)
        case _:
            return -1


@python(1, 5, "x", None, [1, 2, 3], [])
def match_many(v):
    match v:
        case None:
            return "none"
        case int(n) if n > 3:
            return "big"
        case 0 | 1:
            return "small"
        case str() as s:
            return s
        case [first, *_]:
            return first
    return "else"


@python(3)
def match_in_loop(n):
    out = []
    for i in range(n):
        match i:
            case 0:
                continue
            case 2:
                break
        out.append(i)
    return out


@python(0, 2)
def try_except_else_finally(n):
    log = []
    try:
        r = 6 // n
    except ZeroDivisionError as error:
        log.append(type(error).__name__)
        r = -1
    else:
        log.append("else")
    finally:
        log.append("finally")
    return r, log


@python(0, 2)
def nested_try(n):
    try:
        try:
            return [1, 2][n]
        finally:
            n += 1
    except IndexError:
        return -n


@python(3)
def try_in_loop(n):
    out = []
    for i in range(n):
        try:
            if i == 1:
                continue
            out.append(6 // i)
        except ZeroDivisionError:
            out.append(None)
    return out


@python(3)
def exception_group(n):
    try:
        raise ExceptionGroup("many", [ValueError(n), KeyError(n)])
    except* ValueError:
        r = 1
    except* KeyError:
        pass
    return r


@python(3, 0)
def raise_in_branch(n):
    try:
        if n > 2:
            raise KeyError(n)
    except KeyError as error:
        return error.args[0]
    return 0


@python(3)
def suppress(n):
    with contextlib.suppress(ZeroDivisionError):
        return n // 0
    return -1


@python(3)
def globals_are_read(n):
    return LIMIT if n > LIMIT else n


LIMIT = 2


@python(3)
def delete_items(n):
    d = {i: i for i in range(n)}
    del d[1]
    xs = list(d)
    del xs[0]
    return d, xs
