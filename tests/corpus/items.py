"""Assignment to items: one position or several, in branches and loops, of variables and attributes.

NumPy's keys (slices, masks, arrays of positions) are compared with NumPy in
`tests/autograph/test_items.py`.
"""

from __future__ import annotations

from tests.corpus.registry import case, python, smooth

XS = [3, 1, 4, 1, 5]
ROWS = [[1, 2], [3, 4]]


def code(xs):
    """One number for the elements of a list or vector of five."""
    total = 0
    for i in range(5):
        total = total * 31 + xs[i]
    return total


@case((XS, 7))
def set_one_item(xs, v):
    xs[1] = v
    return code(xs)


@case((XS, 7))
def set_last_item(xs, v):
    xs[-1] = v + xs[0]
    return code(xs)


@case((XS, 2))
def update_items(xs, v):
    xs[0] += v
    xs[1] -= v
    xs[2] *= v
    xs[3] //= v
    xs[4] %= v
    return code(xs)


@case((XS,))
def swap_items(xs):
    xs[0], xs[2] = xs[2], xs[0]
    return code(xs)


@case((XS,))
def rotate_items(xs):
    xs[0], xs[1], xs[2] = xs[1], xs[2], xs[0]
    return code(xs)


@case((XS, 4))
def chained_assignment_to_items(xs, v):
    xs[0] = y = xs[1] = v
    return code(xs), y


@case((XS, 3), (XS, 9))
def item_in_branch(xs, limit):
    if xs[0] >= limit:
        xs[0] = 0
    else:
        xs[1] = limit
    return code(xs)


@case((XS, 2))
def items_in_nested_branches(xs, limit):
    if xs[0] > limit:
        xs[0] = 1
        if xs[2] > limit:
            xs[2] = xs[0] + 10
    return code(xs)


@case((XS, 2), (XS, 5))
def items_in_loop(xs, n):
    for i in range(n):
        xs[i] = xs[i] * 2 + i
    return code(xs)


@case((XS, 3))
def prefix_sums_in_place(xs, n):
    i = 1
    while i <= n:
        xs[i] += xs[i - 1]
        i += 1
    return code(xs)


@case((XS,))
def bubble_sort(xs):
    for i in range(4):
        for j in range(4 - i):
            if xs[j] > xs[j + 1]:
                xs[j], xs[j + 1] = xs[j + 1], xs[j]
    return code(xs)


@case((XS, 5))
def bubble_sort_of_tensor_length(xs, n):
    for i in range(n - 1):
        for j in range(n - 1 - i):
            if xs[j] > xs[j + 1]:
                xs[j], xs[j + 1] = xs[j + 1], xs[j]
    return code(xs)


@case((XS, 4))
def item_before_break(xs, wanted):
    i = 0
    while i < 5:
        if xs[i] == wanted:
            xs[i] = -1
            break
        xs[i] += 10
        i += 1
    return code(xs), i


@case((XS, 4))
def item_before_continue(xs, wanted):
    for i in range(5):
        if xs[i] == wanted:
            xs[i] = 0
            continue
        xs[i] += 1
    return code(xs)


@case((XS, 2))
def item_and_early_return(xs, i):
    xs[0] = 8
    if i > 3:
        return code(xs)
    xs[i] = 9
    return code(xs)


@case((XS, 3))
def loop_target_is_an_item(xs, n):
    total = 0
    for xs[0] in range(n):
        total += xs[0]
    return code(xs), total


@case((ROWS, 1))
def item_of_row(rows, i):
    rows[0][1] = 9
    rows[1][0] += i
    return rows[0][0] * 1000 + rows[0][1] * 100 + rows[1][0] * 10 + rows[1][1]


@case((5, 2))
def items_of_a_list_of_results(n, x):
    found = [0, 0, 0]
    for i in range(n):
        found[0] += x
        found[1] += i * x
        if i % 2 == 0:
            found[2] += 1
    return found


@case((5, 2))
def items_of_a_dict_of_results(n, x):
    found = {"sum": 0, 1: x}
    for i in range(n):
        found["sum"] += x * i
        if found["sum"] > 5:
            found[1] += 1
    return found["sum"], found[1]


@case((3, 2), (1, 2))
def new_keys_in_both_branches(n, x):
    d = {}
    if n > 2:
        d[0] = x
        d["a"] = n
    else:
        d[0] = n
        d["a"] = x
    return d[0], d["a"]


@case((4, 2))
def other_name_of_a_list(n, x):
    a = [0, x]
    b = a
    for i in range(n):
        a[0] += i
    return b[0] + b[1]


@case((XS, 2))
def items_of_an_attribute(xs, n):
    class Holder:
        pass

    holder = Holder()
    holder.xs = xs
    for i in range(n):
        holder.xs[i] += 1
    holder.xs[4] = 0
    return code(holder.xs)


@case((XS, 3))
def helper_that_returns_what_it_changed(xs, v):
    def put(values, i, value):
        values[i] = value
        return values

    xs = put(xs, 0, v)
    xs = put(xs, 2, v + 1)
    return code(xs)


@python(([1, 2, 3],))
def slices_of_lists(xs):
    xs[1:] = [7, 8, 9, 10]
    xs[::2] = [0, 0, 0]
    del xs[0]
    return xs


@python((2,))
def item_keys_of_many_kinds(x):
    d = {}
    d[x] = d[None] = d[1.5] = x
    d[(x, 1)] = d[True] = x + 1
    d[f"k{x}"] = 0
    d[x] += 5
    return sorted(d.items(), key=str)


@smooth((0.5, 1.5, -0.7))
def updates_of_a_list(a, b, c):
    xs = [a, b, c]
    xs[0] = xs[1] * xs[2]
    xs[1] *= xs[0]
    for _ in range(3):
        xs[2] += xs[0] * xs[1]
    return xs[0] + xs[1] * xs[2]


@smooth((0.5, 1.5))
def updates_in_branches(a, b):
    xs = [a, b]
    if a < b:
        xs[0] = xs[0] * b
        xs[1] -= a * a
    else:
        xs[1] = a
    return xs[0] * xs[1]
