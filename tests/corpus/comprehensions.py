"""Comprehensions and generator expressions over tensors."""

from __future__ import annotations

from tests.corpus.registry import case, python, smooth

XS = [3, 1, 4, 1, 5]


@case((XS,))
def list_over_elements(xs):
    return [x * 2 for x in xs]


@case((XS,))
def list_of_chosen_elements(xs):
    ys = [x * 2 for x in xs if x > 1]
    return len(ys) * 100 + ys[0] + ys[-1]


@case((XS,))
def list_with_two_conditions(xs):
    return sum([x for x in xs if x > 1 if x < 5])


@case(6, 1)
def list_over_range(n):
    return sum([i * i for i in range(n)])


@case((2, 7), (5, 1))
def list_over_python_values_filtered(a, b):
    return sum([k * a for k in (1, 2, 3, 4) if k < b])


@case((XS,))
def list_over_two(xs):
    return sum([x * y for x in xs for y in xs if x > y])


@case((XS,))
def list_of_pairs(xs):
    return sum([i * x for i, x in enumerate(xs)])


@case((XS,))
def list_of_nested_pairs(xs):
    return sum([i * (x - y) for i, (x, y) in enumerate(zip(xs, reversed(xs)))])


@case((XS,))
def list_of_lists(xs):
    rows = [[x + y for y in (1, 2)] for x in xs]
    return rows[2][1]


@case(([[1, 2], [3, 4]],))
def list_over_rows(rows):
    return [sum(row) for row in rows]


@case((XS,))
def list_calls_function(xs):
    def clip(v):
        if v > 3:
            return 3
        return v

    return sum([clip(x) for x in xs])


@case((XS,))
def dict_over_elements(xs):
    d = {i: x * x for i, x in enumerate(xs)}
    return d[0] + d[4]


@case((XS,))
def list_of_lambdas(xs):
    fs = [lambda k: k + x for x in xs]
    return fs[0](1)


@case((XS,))
def list_with_walrus(xs):
    ys = [(last := x) + 1 for x in xs]
    return ys[0] * 10 + last


@case((XS,))
def generator_in_sum(xs):
    return sum(x * x for x in xs)


@case((XS,))
def filtered_generator_in_sum(xs):
    return sum(x * x for x in xs if x > 1)


@case((XS,))
def generator_in_for(xs):
    s = 0
    for x in (y + 1 for y in xs if y > 1):
        s = s * 10 + x
    return s


@case((XS,))
def generator_in_for_with_break(xs):
    s = 0
    for x in (y * z for y in xs for z in (1, 2)):
        if x > 5:
            break
        s = s * 10 + x
    return s


@case((XS,))
def generator_of_generator(xs):
    evens = (x + 1 for x in xs if x != 4)
    return sum(e * 2 for e in evens)


@case((XS,))
def generator_in_extremes(xs):
    return max(x * x for x in xs) * 100 + min((x + 1 for x in xs if x > 2), default=0)


@case((XS,))
def generator_in_list(xs):
    return list(x + 1 for x in xs)


@case((XS,))
def generator_over_zip(xs):
    return sum(a * b for a, b in zip(xs, xs))


@case((XS,), ([1, 2],))
def generator_in_all(xs):
    return all(x < 4 and x != 3 for x in xs)


@case(6, 0)
def generator_over_range(n):
    return sum(i for i in range(n) if i % 2 == 0)


@smooth(([0.5, 1.5, -2.0],))
def gradient_of_list(xs):
    ys = [x * x for x in xs]
    return ys[0] * ys[1] + ys[2]


@smooth(([0.5, 1.5, -2.0],))
def gradient_of_nested_generator(xs):
    return sum(x * y for x in xs for y in xs if x > 0.0)


@python(3)
def late_binding(n):
    fs = [lambda: i for i in range(n)]
    return [f() for f in fs]


@python(4)
def lazy_generator(n):
    seen = []
    values = (seen.append(i) or i for i in range(n))
    first = next(values)
    return first, list(seen), list(values)


@python({"a": 1, "b": 2})
def over_dict_items(d):
    return {v: k for k, v in d.items() if v > 1}, {k for k in d}, [k for k in d if k in "a"]


@python("abc")
def joined(s):
    return "-".join(c.upper() for c in s if c != "b")
