"""Expressions: logic, comparisons, conditional expressions, calls, comprehensions, f-strings."""

from __future__ import annotations

from tests.corpus.registry import case, python


@case((1, 2), (-1, 2), (-1, -2))
def and_value(a, b):
    return a > 0 and b > 0


@case((1, 2), (-1, 2), (-1, -2))
def or_value(a, b):
    return a > 0 or b > 0


@case((1, 2, 3), (3, 2, 1), (-1, 0, 9))
def mixed_logic(a, b, c):
    if (a < b and b < c) or not (a > -1):
        return 1
    return 2


@case((1, 2, 3), (3, 2, 1))
def three_operands(a, b, c):
    return a > 0 and b > 1 and c > 2


@case(1, -1)
def double_negation(a):
    return not (not a > 0)


@case((1, 5), (5, 1), (3, 3))
def chain_of_variables(a, b):
    return 0 < a <= b < 9


@case((1, 5), (5, 1))
def chain_with_middle_call(a, b):
    return 0 < max(a, b) < 4


@case((1, 5), (5, 1))
def chain_with_equality(a, b):
    return a == a < b


@case(4, -4)
def conditional_argument(a):
    return abs(a if a > 0 else a - 1)


@case(4, -4)
def conditional_in_arithmetic(a):
    return 3 * (a if a > 0 else -a) + 1


@case(4, -4)
def conditional_in_tuple(a):
    return (a if a > 0 else 0), 7


@case(4, -4)
def conditional_in_subscript(a):
    parts = (a, -a)
    return parts[0] if a > 0 else parts[1]


@case((4, 3), (-4, 3))
def conditional_of_logic(a, b):
    return 1 if a > 0 and b > 0 else 2


@case(3, 12)
def comprehension_of_values(a):
    return sum([a * k for k in range(4)])


@case(3, 12)
def comprehension_with_conditional(a):
    return sum([a if a > k else k for k in (2, 5, 20)])


@case(3, 12)
def dict_comprehension(a):
    d = {k: a + k for k in range(3)}
    return d[0] + d[2]


@case(3, 12)
def nested_comprehension(a):
    return sum([i * j + a for i in range(3) for j in range(i)])


@case(3, 12)
def generator_argument(a):
    return sum(a * i for i in (1, 2, 3))


@case((3, 12), (12, 3))
def starred_call(a, b):
    parts = [a, b]
    return max(*parts)


@case((3, 12), (12, 3))
def keyword_call(a, b):
    def difference(x, y):
        return x - y if x > y else y - x

    return difference(y=a, x=b)


@case((3, 12), (12, 3))
def double_starred_call(a, b):
    def difference(x, y):
        return x - y if x > y else 0

    return difference(**{"x": a, "y": b})


@case(3, 4)
def walrus_of_tensor(a):
    return (b := a * 2) + b


@case(3)
@case(-3)
@case(1)
def walrus_in_the_test_of_if(a):
    if (b := a + 1) > 1 and (c := b * 2) > 4:
        b = c + b
    return b


@case(3, -4)
def walrus_before_if(a):
    b = (c := a + 1) * 2
    if b > 0:
        c = c + b
    return c


@case((7, 2), (-7, 2))
def floor_division(a, b):
    return a // b * 10 + a % b


@case(3, -4)
def unary_operators(a):
    return -a + (+a) * 2 + abs(-a)


@case((3, 1), (3, 2))
def power_and_bits(a, b):
    return a**2 + (a ^ b) + (a & b) + (a | b)


@case(5, -5)
def int_of_value(a):
    return int(a) + 1


@case((5, 3), (2, 9))
def minimum_of_three(a, b):
    return min(a, b, 4)


@python(3, 12)
def f_string(a):
    return f"{a:>3}{'big' if a > 5 else 'small'}{a!r}"


@python(3, 12)
def nested_f_string(a):
    return f"{f'{a + 1}':>{4}}"


@python([1, 2, 3], [])
def any_and_all(xs):
    return any(x > 2 for x in xs), all(x > 0 for x in xs)


@python([3, 1, 2])
def map_and_filter(xs):
    return list(map(lambda x: x + 1 if x > 1 else x, filter(lambda x: x != 2, xs)))


@python([3, 1, 2])
def slices(xs):
    return xs[1:] + xs[:-1] + xs[::-1]


@python({"a": 1})
def get_or_default(d):
    return d.get("b") or d["a"]


@python(3, 0)
def short_circuit(n):
    return n and 6 // n


@python(3, None)
def none_or_value(x):
    return x is not None and x > 2


@python([1, [2, 3]])
def nested_unpacking(x):
    a, (b, *c) = x
    return a + b + sum(c)


@python((1, 2), (2, 1))
def set_comprehension(a, b):
    return {x if x > 1 else 0 for x in (a, b)}


@python("abc", "xyz")
def membership(s):
    return "found" if "b" in s else "missing"


@python(2)
def lambda_with_default(n):
    f = lambda x, k=n: x * k if x > 0 else k
    return f(3), f(-3)


@python(4)
def two_lambdas_on_a_line(n):
    f, g = (lambda x: x + 1 if x > 2 else x), (lambda x: x - 1 if x > 2 else x)
    return f(n), g(n)


@python(4)
def lambda_in_a_dict(n):
    table = {"up": lambda x: x + 1 if x > 0 else 0, "down": lambda x: x - 1}
    return table["up"](n), table["down"](n)


@python(4)
def lambda_returns_lambda(n):
    return (lambda x: lambda y: x if x > y else y)(n)(3)
