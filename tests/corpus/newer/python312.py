"""Syntax of Python 3.12: type parameters, type aliases, nested quotes in f-strings."""

from tests.corpus.registry import case, python


@case(3, -3)
def function_with_type_parameter(x):
    def larger[T](a: T, b: T) -> T:
        if a > b:
            return a
        return b

    return larger(x, x * 2)


def scaled[T: (int, float), *Ts, **P](x: T, *others: *Ts) -> T:
    if x > 0:
        return x * 2
    return x


@case(3, -3)
def calls_generic_function(x):
    return scaled(x, 1, 2)


@case(3, -3)
def type_alias_inside(x):
    type Number = int | float
    type Pair[T] = tuple[T, T]
    y: Number = x
    pair: Pair[Number] = (y, y)
    if y > 0:
        y = y + 1
    return y + pair[0]


class Box[T]:
    def __init__(self, value: T) -> None:
        self.value = value

    def clipped(self, limit: T) -> T:
        if self.value > limit:
            return limit
        return self.value


@case((3, 2), (1, 2))
def method_of_generic_class(x, y):
    return Box(x).clipped(y)


@case(3, -3)
def generic_class_inside(x):
    class Local[T]:
        kind: type

        def twice(self, v: T) -> T:
            if v > 0:
                return v * 2
            return v

    return Local[int]().twice(x)


@python(3, 12)
def nested_quotes(a):
    d = {"k": a}
    return f"{d["k"]:>{d["k"]}} {f"{"big" if a > 5 else "small"}"} {'\n'.join(["x", "y"])}"


@case(3, -3)
def f_string_message(x):
    assert x > -9, f"{"negative"}: {x}"
    return x


@case(([3, 1, 2],))
def comprehension_in_class_scope(xs):
    class Local:
        k = 2
        values = [k for k in (1, 2, 3)]

    return sum(x * Local.k for x in xs) + len(Local.values)
