"""Rare forms: annotations, bare raise and return, shifts, matrix products, empty patterns."""

from __future__ import annotations

from tests.corpus.registry import case, python


@case(3, -3)
def annotated_function(x: object) -> object:
    def clipped(v: object, limit: int = 2, *more: int, **options: int) -> object:
        if v > limit:
            return limit
        return v

    return clipped(x)


@case(3, -3)
def assert_without_message(x):
    if x > 0:
        assert x > 1
    return x


@case((3, 4), (4, 3))
def matrix_product(x, y):
    class Scale:
        def __init__(self, k):
            self.k = k

        def __matmul__(self, v):
            return self.k * v

    left = Scale(x) if isinstance(x, int) else x[None, None]
    right = y if isinstance(y, int) else y[None, None]
    product = left @ right
    return product if isinstance(product, int) else product[0, 0]


@case((True, False), (False, False))
def inverted(a, b):
    return not (a and b) if isinstance(a, bool) else ~(a & b)


@case(3, -3)
def empty_tuple(x):
    parts = ()
    if x > 0:
        parts = parts + (x,)
    else:
        parts = parts + (-x,)
    return parts[0]


@case(3, -3)
def bytes_and_complex(x):
    y = len(b"ab") + int(abs(2j))
    return x + y if x > 0 else y


@case(3)
def effects_without_result(x):
    seen = []

    def note(v):
        if len(seen) > 5:
            return
        seen.append(v)

    note(x)
    note(x)
    return seen[0] + len(seen)


@case(3, -3)
def try_with_finally_around_if(x):
    log = []
    try:
        if x > 0:
            y = x
        else:
            y = -x
    finally:
        log.append(1)
    return y + len(log)


@case(3, -3)
def return_inside_try(x):
    try:
        if x > 0:
            return x
    finally:
        pass
    return -x


@case(4)
def try_inside_tensor_loop(n):
    s = 0
    for i in range(n):
        try:
            if i > 1:
                s += i
        except ValueError:
            s = -1
    return s


@case(4)
def with_inside_tensor_loop(n):
    import contextlib

    s = 0
    for i in range(n):
        with contextlib.nullcontext(i) as k:
            if k == 1:
                continue
            s += k
    return s


@case((3, 5), (5, 3))
def dict_and_set_displays(a, b):
    d = {"a": a, **{"b": b}}
    return d["a"] if a > b else d["b"]


@case(3, -3)
def ellipsis_as_value(x):
    marker = ...
    y = x + 1 if x > 0 else x - 1
    return y if marker is ... else x


@python(1, 9)
def shifts(n):
    n <<= 2
    return n >> 1 if n > 20 else n << 3


@python(0, 1)
def bare_except_and_raise(n):
    try:
        try:
            return 1 // n
        except:
            raise
    except ZeroDivisionError as error:
        return type(error).__name__


@python(0, 1)
def raise_from(n):
    try:
        try:
            return 1 // n
        except ZeroDivisionError as error:
            raise ValueError("wrong") from error
    except ValueError as error:
        return type(error.__cause__).__name__


@python(0, 1)
def groups_with_else_and_finally(n):
    log = []
    try:
        if n:
            raise ExceptionGroup("one", [ValueError(n)])
    except* ValueError as group:
        log.append(len(group.exceptions))
    else:
        log.append("else")
    finally:
        log.append("finally")
    return log


@python({}, {"a": 1}, 3)
def empty_mapping_pattern(v):
    match v:
        case {}:
            return "mapping"
        case _:
            return "other"


@python(3)
def relative_import(n):
    from . import registry

    return n if registry.CASES else 0


@python(3)
def class_with_keywords(n):
    class Base:
        def __init_subclass__(cls, step=0):
            cls.step = step

    class Child(Base, step=n):
        pass

    return Child.step


@python(3)
def assignments_of_all_kinds(n):
    class Box:
        value: int = 0

    box, xs = Box(), [0, 1, 2, 3]
    box.value, xs[0], (xs[1], *xs[2:]) = n, n + 1, (5, 6, 7)
    xs[1:3] = [box.value]
    box.value += (total := sum(xs))
    total: int
    (xs[0]): int = 4
    return box.value, xs, total
