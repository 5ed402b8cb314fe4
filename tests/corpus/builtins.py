"""Built-in functions over tensors and over Python values that hold tensors."""

from __future__ import annotations

from tests.corpus.registry import case, python, smooth

XS = [3, 1, 4, 1, 5]
YS = [2, 7, 1, 8, 2]
FLOATS = [0.5, -1.5, 2.5]


@case((XS,))
def sorted_elements(xs):
    ys = sorted(xs)
    return ys[0] * 100 + ys[2] * 10 + ys[-1]


@case((XS,))
def sorted_descending(xs):
    ys = sorted(xs, reverse=True)
    return ys[0] * 100 + ys[2] * 10 + ys[-1]


@case((XS,))
def sorted_by_key(xs):
    s = 0
    for x in sorted(xs, key=lambda x: (x - 3) * (x - 3)):
        s = s * 10 + x
    return s


@case((3, 1, 2), (1, 1, 0))
def sorted_list_of_values(a, b, c):
    low, middle, high = sorted([a, b, c])
    return low * 100 + middle * 10 + high


@case((13, 21, 2), (12, 31, 0))
def sorted_list_by_key(a, b, c):
    x, y, z = sorted((a, b, c), key=lambda v: v % 10, reverse=True)
    return x * 10000 + y * 100 + z


@case((XS,))
def least_and_largest_element(xs):
    return min(xs) * 10 + max(xs)


@case((XS,))
def least_by_key(xs):
    return min(xs, key=lambda x: -x) * 10 + max(xs, key=lambda x: abs(x - 4))


@case((XS,))
def largest_or_default(xs):
    return max(xs, default=9)


@case((3, 1), (1, 8))
def least_of_list(a, b):
    return min([a, b, 2]) * 10 + max((a, b, 5))


@case((3, 1), (1, 8))
def least_of_arguments_by_key(a, b):
    return min(a, b, key=lambda v: -v) * 10 + max(a, b, key=lambda v: v % 3)


@case((XS,))
def sum_with_start(xs):
    return sum(xs) * 100 + sum(xs, 5) + sum(xs, start=7)


@case((3, 1), (1, 8))
def sum_of_list(a, b):
    return sum([a, b]) + sum((a, b), 10)


@case(([True, False],), ([True, True],), ([False, False],))
def any_and_all_elements(xs):
    return any(xs), all(xs)


@case((3, 0), (3, 3), (0, 0))
def any_and_all_of_list(a, b):
    return any([a > 1, b > 1]), all((a > 1, b > 1))


@case((XS,), ([1, 1],))
def any_of_generator(xs):
    return any(x > 3 for x in xs), all(x < 5 for x in xs)


@case((XS,), ([1, 1],))
def any_of_list_comprehension(xs):
    return any([x > 3 for x in xs]), all([x < 5 for x in xs])


@case((XS,))
def map_in_loop(xs):
    s = 0
    for x in map(lambda v: v * 2 if v > 2 else v, xs):
        s = s * 3 + x
    return s


@case((XS, YS))
def map_of_two(xs, ys):
    s = 0
    for x in map(lambda a, b: a * b + 1, xs, ys):
        s = s * 3 + x
    return s


@case((XS,))
def sum_of_map(xs):
    return sum(map(lambda v: v * v, xs))


@case((XS,))
def list_of_map(xs):
    return list(map(lambda v: v * v, xs))[2]


@case((XS,))
def filter_in_loop(xs):
    s = 0
    for x in filter(lambda v: v > 1, xs):
        s = s * 10 + x
    return s


@case((XS,))
def filter_with_break(xs):
    s = 0
    for x in filter(lambda v: v > 1, xs):
        if x == 5:
            break
        s = s * 10 + x
    return s


@case(([0, 3, 0, 2],))
def filter_of_true_values(xs):
    return sum(filter(None, xs))


@case((XS,))
def enumerated_filter(xs):
    s = 0
    for i, x in enumerate(filter(lambda v: v != 1, xs)):
        s += i * x
    return s


@case((XS,))
def list_and_tuple_of_elements(xs):
    return list(xs)[2] * 10 + tuple(xs)[4]


@case((XS,))
def iterator_over_elements(xs):
    it = iter(xs)
    return next(it) * 10 + next(it)


@case((XS,))
def reversed_enumerated(xs):
    s = 0
    for i, x in enumerate(reversed(xs)):
        s = s * 3 + x * i
    return s


@case((XS, 4))
def enumerated_from_value(xs, k):
    s = 0
    for i, x in enumerate(xs, start=k):
        s = s * 3 + x * i
    return s


@case((XS,))
def zip_with_range(xs):
    s = 0
    for x, i in zip(xs, range(1, 100, 2)):
        s = s * 3 + x * i
    return s


@case((XS,))
def zip_with_list(xs):
    s = 0
    for x, k in zip(xs, [10, 20, 30]):
        s = s * 3 + x * k
    return s


@case((XS,))
def zip_with_functions(xs):
    s = 0
    for x, f in zip(xs, [lambda v: v + 1, lambda v: v * 2]):
        s = s * 3 + f(x)
    return s


@case((XS,))
def zip_with_a_generator(xs):
    s = 0
    for k, f in zip((n + 1 for n in (1, 2)), filter(None, [3, 0, 4])):
        s = s * 3 + xs[0] * k * f
    for k, x in zip((n + 1 for n in (1, 2)), [s, s + 1]):
        s = s * 3 + x * k
    return s + sum(map(lambda a, b: a * b, (n for n in (1, 2)), [3, 4]))


@case((XS, YS))
def zip_strict(xs, ys):
    s = 0
    for x, y in zip(xs, ys, strict=True):
        s += x * y
    return s


@case(9, 1)
def reversed_range(n):
    s = 0
    for i in reversed(range(n)):
        s = s * 2 + i
    return s


@case((2, 9, 3), (9, 2, -3), (9, 2, 3))
def range_of_three_values(a, b, c):
    s = 0
    for i in range(a, b, c):
        s = s * 10 + i
    return s


@case(5, 1)
def range_without_loop(n):
    return sum(range(n)) * 100 + len(range(n)) * 10 + max(range(n))


@case((2, 9, 3), (9, 2, 3))
def length_of_range(a, b, c):
    return len(range(a, b, c))


@case((XS,))
def length_of_elements(xs):
    return len(xs)


@case(-2.5, 3.5)
def conversions_of_numbers(x):
    return int(x), float(x), bool(x), abs(x), round(x)


@case(-2.25, 3.14159)
def rounded_to_digits(x):
    return round(x, 1), round(x * 100, -1)


@case((-7, 2), (7, 2), (7, -2))
def quotient_and_remainder(a, b):
    q, r = divmod(a, b)
    return q * 100 + r


@case((3, 2), (2, 5))
def powers(a, b):
    return pow(a, b) + pow(2, b) + pow(a, 2)


@case(3, 0)
def truth_of_number(x):
    if x:
        return 1
    return 2


@case(3, 0)
def negated_number(x):
    return 1 if not x else 2


@case((3, 0), (0, 0))
def bool_of_value(x, y):
    if bool(x) or bool(y):
        return 1
    return 2


@case(3)
def while_number(n):
    s = 0
    while n:
        s += n
        n -= 1
    return s


@case((2, 5), (7, 5))
def in_tuple(x, y):
    return (1 if x in (1, 2, 3) else 0) + (10 if y not in [1, x] else 20)


@case((XS, 4), (XS, 9))
def in_elements(xs, wanted):
    if wanted in xs:
        return 1
    return 2


@case((XS, 4), (XS, 9))
def not_in_elements(xs, wanted):
    return wanted not in xs


@case((5, 3), (5, 8))
def in_range(n, k):
    return k in range(n)


@case((XS,))
def unpacked_elements(xs):
    a, b, *rest = xs
    return a * 1000 + b * 100 + rest[0] * 10 + len(rest)


@case((XS,))
def elements_as_arguments(xs):
    def weigh(a, b, *others):
        return a * 100 + b * 10 + others[-1]

    return weigh(*xs) + max(*xs) + sum([*xs, 1])


@smooth((0.5, 1.5), (2.5, 1.0))
def gradient_of_extremes(x, y):
    return max(x, y) * min(x * x, y) + sum([x, y * y])


@smooth((0.5, 1.5), (2.5, 1.0))
def gradient_of_choice_by_key(x, y):
    return max(x, y, key=lambda v: v * v) * min([x, y], key=lambda v: -v)


@smooth((FLOATS,))
def gradient_of_sum_of_generator(xs):
    return sum(x * x for x in xs)


@smooth((FLOATS,))
def gradient_of_filtered_sum(xs):
    return sum(x * x * x for x in xs if x > 0.0)


@smooth((FLOATS,))
def gradient_of_sorted(xs):
    s = xs[0] * 0.0
    for x in sorted(xs):
        s = s * 0.5 + x
    return s


@smooth((FLOATS,))
def gradient_of_map(xs):
    s = xs[0] * 0.0
    for x in map(lambda v: v * v if v > 0.0 else v, xs):
        s = s * 0.5 + x
    return s


@python("b,a")
def sorted_strings(text):
    return sorted(text.split(","), key=str.upper, reverse=True), sorted({3, 1, 2})


@python([1, 2, 3], [])
def extremes_with_defaults(xs):
    return max(xs, default=None), min((x for x in xs), default=0), sum(xs, 0)


@python([["a"], ["b"]])
def sum_of_lists(xs):
    return sum(xs, [])


@python({"a": 1, "b": 2})
def builtins_of_dict(d):
    return sorted(d), max(d, key=d.get), list(d), tuple(d.values()), len(d), any(d)


@python("12", "0x1f")
def int_of_text(s):
    return int(s, 0), float("1.5"), bool(s), list(s), tuple(s)


@python(3)
def iter_with_sentinel(n):
    values = list(range(10))
    return list(iter(lambda: values.pop(), n))
