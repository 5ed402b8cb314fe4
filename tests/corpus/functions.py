"""Functions: closures, lambdas, decorators, recursion, methods, super, properties, dataclasses."""

from __future__ import annotations

import dataclasses
import functools

from tests.corpus.registry import case, python


def twice(fn):
    @functools.wraps(fn)
    def wrapper(x):
        return fn(fn(x))

    return wrapper


def plus(number):
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs) + number

        return wrapper

    return decorate


@twice
def step(x):
    if x > 2:
        return x - 1
    return x + 3


@plus(100)
@twice
def step_decorated_twice(x):
    if x > 2:
        return x * 2
    return x


@twice
@plus(1)
def step_other_order(x):
    return x * 2 if x > 2 else x


@case(1, 5)
def decorated(x):
    return step(x)


@case(1, 5)
def decorated_twice(x):
    return step_decorated_twice(x)


@case(1, 5)
def decorated_in_other_order(x):
    return step_other_order(x)


@case(1, 5)
def calls_partial(x):
    def clip(low, high, v):
        if v < low:
            return low
        if v > high:
            return high
        return v

    return functools.partial(clip, 2, 4)(x)


@case(1, 5)
def function_as_argument(x):
    def apply(f, v):
        return f(f(v))

    return apply(lambda v: v * 2 if v < 6 else v, x)


@case(1, 5)
def function_as_result(x):
    def make(k):
        def add(v):
            return v + k if v > 2 else v

        return add

    return make(3)(x)


@case(1, 5)
def closure_over_tensor(x):
    k = x * 2

    def add(v):
        if k > 5:
            return v + k
        return v

    return add(1)


@case(1, 5)
def closure_assigned_in_branch(x):
    if x > 2:
        k = 10
    else:
        k = 20

    def add(v):
        return v + k

    return add(x)


@case(1, 5)
def nested_twice(x):
    def outer(v):
        def inner(w):
            while w < 10:
                w = w + 4
            return w

        return inner(v) - v

    return outer(x)


@case((1, 2), (5, 2))
def defaults_and_keywords(x, y):
    def f(a, b=3, *, c=4):
        if a > b:
            return a + c
        return b

    return f(x) + f(x, y, c=1)


@case((1, 2), (5, 2))
def star_arguments(x, y):
    def f(*parts, scale=1):
        total = 0
        for p in parts:
            if p > 1:
                total += p * scale
        return total

    return f(x, y) + f(x, scale=3)


@case(3, 6)
def static_recursion(x):
    def power(base, n):
        if n == 0:
            return 1
        return base * power(base, n - 1)

    return power(x, 3)


@case(3, 6)
def lambda_as_condition(x):
    big = lambda v: v > 4
    if big(x):
        x = x + 1
    return x


@case(3, 6)
def several_results(x):
    def split(v):
        if v > 4:
            return v, 1
        return 0, v

    a, b = split(x)
    return a * 10 + b


class Base:
    scale = 3

    def __init__(self, k):
        self.k = k

    def value(self, x):
        return x + self.k

    def __call__(self, x):
        if x > self.k:
            return x
        return self.k

    @property
    def double(self):
        return self.k * 2 if self.k > 1 else 0

    @staticmethod
    def clip(x):
        return x if x < 4 else 4

    @classmethod
    def scaled(cls, x):
        if x > 2:
            return x * cls.scale
        return x


class Child(Base):
    scale = 5

    def value(self, x):
        if x > 2:
            x = super().value(x)
        return x * 2

    @classmethod
    def scaled(cls, x):
        return super().scaled(x) + 1


@case(1, 5)
def method(x):
    return Base(2).value(x)


@case(1, 5)
def method_with_super(x):
    return Child(2).value(x)


@case(1, 5)
def callable_object(x):
    return Base(3)(x)


@case(1, 5)
def property_of_object(x):
    return x + Base(2).double


@case(1, 5)
def static_method(x):
    return Base.clip(x) + Base(1).clip(x)


@case(1, 5)
def class_method(x):
    return Base.scaled(x) + Child.scaled(x)


@dataclasses.dataclass
class Pair:
    a: object
    b: object

    def larger(self):
        if self.a > self.b:
            return self.a
        return self.b

    def __add__(self, other):
        return Pair(self.a + other.a, self.b + other.b)


@case((1, 5), (5, 1))
def dataclass_method(x, y):
    return Pair(x, y).larger()


@case((1, 5), (5, 1))
def dataclass_operator(x, y):
    return (Pair(x, y) + Pair(y, 1)).larger()


@case((1, 5), (5, 1))
def attribute_in_branch(x, y):
    p = Pair(x, y)
    if x > y:
        p.a = p.a * 10
    else:
        p.b = p.b * 10
    return p.a + p.b


@case(3, 6)
def attribute_in_loop(n):
    p = Pair(0, 1)
    i = 0
    while i < n:
        p.a = p.a + i
        i += 1
    return p.a + p.b


@case(3, 6)
def item_in_loop(n):
    d = {"sum": 0}
    for i in range(n):
        d["sum"] = d["sum"] + i
    return d["sum"]


@case((3, 1), (1, 3))
def item_in_branch(x, y):
    d = {"a": x}
    if x > y:
        d["a"] = y
    return d["a"]


@python(3)
def nonlocal_sum(n):
    total = 0

    def add(k):
        nonlocal total
        if k > 0:
            total += k

    for i in range(n):
        add(i)
    return total


@python(3)
def class_body(n):
    class Local:
        values = [i for i in range(3)]
        size = len(values) if n > 2 else 0

    return Local.size


@python(3)
def method_of_local_class(n):
    class Local(Base):
        def value(self, x):
            return super().value(x) if x > 1 else 0

    return Local(2).value(n)


@python(5)
def mutual_recursion(n):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    return even(n)


@python(5)
def private_names(n):
    class Local:
        def __init__(self):
            self.__value = n

        def get(self):
            if self.__value > 2:
                return self.__value
            return 0

    return Local().get()


@case(1, 5)
def methods_of_local_class(x):
    class Local(Base):
        def value(self, v):
            if v > 2:
                v = super().value(v)
            return v * 2

        @property
        def doubled(self):
            return self.k * 2 if self.k > 3 else self.k

        @staticmethod
        def clip(v):
            while v > 10:
                v -= 3
            return v

        class Inner:
            def __call__(self, v):
                return -v if v > 6 else v

    local = Local(x)
    return Local.Inner()(Local.clip(local.value(x) + local.doubled))
