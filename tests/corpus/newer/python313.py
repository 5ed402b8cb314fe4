"""Syntax of Python 3.13: defaults of type parameters."""

from tests.corpus.registry import case


@case(3, -3)
def type_parameter_with_default(x):
    def absolute[T = int](v: T) -> T:
        if v > 0:
            return v
        return -v

    return absolute(x)


@case((3, 1), (1, 3))
def generic_class_with_defaults(x, y):
    class Pair[T = int, **P = [int]]:
        def __init__(self, a: T, b: T) -> None:
            self.a, self.b = a, b

        def least(self) -> T:
            return self.a if self.a < self.b else self.b

    return Pair(x, y).least()


@case(3, -3)
def alias_with_default(x):
    type Numbers[T = int] = list[T]
    y: Numbers = [x if x > 0 else -x]
    return y[0]


@case(3, -3)
def variadic_class_with_default(x):
    class Row[*Ts = *tuple[int, ...]]:
        def sign(self, v):
            return 1 if v > 0 else -1

    return Row().sign(x)
