"""Iteration: range, enumerate, zip, reversed, lists, dicts; over tensors and Python values."""

from __future__ import annotations

from tests.corpus.registry import case, python

XS = [3, 1, 4, 1, 5]
YS = [2, 7, 1, 8, 2]


@case((XS,))
def sum_of_elements(xs):
    s = 0
    for x in xs:
        s += x
    return s


@case((XS,))
def sum_of_large_elements(xs):
    s = 0
    for x in xs:
        if x > 2:
            s += x
    return s


@case((XS, 4), (XS, 9))
def position_of(xs, wanted):
    k = 0
    for x in xs:
        if x == wanted:
            break
        k += 1
    return k


@case((XS, 4), (XS, 9))
def found_or_else(xs, wanted):
    for x in xs:
        if x == wanted:
            r = 1
            break
    else:
        r = 0
    return r


@case((XS, 3), (XS, 9))
def first_larger(xs, limit):
    for x in xs:
        if x > limit:
            return x
    return -1


@case((XS,))
def largest(xs):
    best = xs[0]
    for x in xs:
        best = max(best, x)
    return best


@case((XS,))
def enumerated(xs):
    s = 0
    for i, x in enumerate(xs):
        s += i * x
    return s


@case((XS,))
def enumerated_from(xs):
    s = 0
    for i, x in enumerate(xs, 10):
        s = s * 2 + i + x
    return s


@case((XS, YS))
def zip_of_two(xs, ys):
    s = 0
    for x, y in zip(xs, ys):
        s += x * y
    return s


@case((XS, YS))
def enumerated_zip(xs, ys):
    s = 0
    for i, (x, y) in enumerate(zip(xs, ys)):
        if x > y:
            continue
        s += i * (y - x)
    return s


@case((XS,))
def in_reverse(xs):
    s = 0
    for x in reversed(xs):
        s = s * 3 + x
    return s


@case((XS,))
def by_length(xs):
    s = 0
    for i in range(len(xs)):
        s += xs[i] * i
    return s


@case((XS,))
def backwards_by_index(xs):
    s = 0
    for i in range(len(xs) - 1, -1, -1):
        s = s * 2 + xs[i]
    return s


@case((XS,))
def pairs_of_elements(xs):
    count = 0
    for x in xs:
        for y in xs:
            if x < y:
                count += 1
    return count


@case(5, 0)
def range_backwards(n):
    s = 0
    for i in range(n, 0, -1):
        s = s * 2 + i
    return s


@case((2, 9), (9, 2))
def while_over_two(a, b):
    count = 0
    while a < b:
        a += 2
        b -= 1
        count += 1
    return count * 100 + a + b


@case(7, 1)
def while_in_for(n):
    s = 0
    for i in range(n):
        j = i
        while j > 0:
            s += j
            j -= 2
    return s


@case(7, 1)
def for_in_while(n):
    s = 0
    while n > 0:
        for i in range(n):
            s += i
        n -= 2
    return s


@case(7, 2)
def continue_then_break(n):
    s = 0
    for i in range(20):
        if i % 2 == 0:
            continue
        if i > n:
            break
        s += i
    return s


@case(7, 2)
def python_loop_with_tensor_if(n):
    s = 0
    for k in (1, 5, 9):
        if k < n:
            s += k
        else:
            s -= 1
    return s


@case(7, 2)
def list_of_results(n):
    out = []
    for k in range(3):
        out.append(n * k)
    return out[0] + out[-1]


@case(7, 2)
def dict_of_results(n):
    d = {}
    for k in ("a", "b"):
        d[k] = n + len(d)
    return d["a"] * d["b"]


@case(7, 2)
def over_items_of_dict(n):
    s = 0
    for key, value in {"a": n, "b": 3}.items():
        if value > 2:
            s += value
    return s


@case(7, 2)
def return_from_while_true(n):
    while True:
        if n > 50:
            return n
        n = n * 3


@case(48, 17)
def digits_sum(n):
    s = 0
    while n > 0:
        s += n % 10
        n //= 10
    return s


@case(10, 100)
def integer_root(n):
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle * middle <= n:
            low = middle
        else:
            high = middle
    return low


@case(10, 30)
def count_primes(n):
    count = 0
    for k in range(2, n):
        prime = True
        for d in range(2, k):
            if k % d == 0:
                prime = False
                break
        if prime:
            count += 1
    return count


@case((3, 5), (7, 2))
def power_by_squaring(base, exponent):
    result = 1
    while exponent > 0:
        if exponent % 2 == 1:
            result *= base
        base *= base
        exponent //= 2
    return result


@python([[1, 2], [3], []])
def nested_lists(rows):
    out = []
    for row in rows:
        if not row:
            break
        for x in row:
            out.append(x)
    return out


@python("hello")
def over_string(s):
    out = ""
    for c in s:
        if c == "l":
            continue
        out += c
    return out


@python({3, 1, 2})
def over_sorted_set(s):
    out = []
    for x in sorted(s):
        out.insert(0, x)
    return out


@python([1, 2, 3, 4])
def while_pop(xs):
    s = 0
    while xs:
        s = s * 10 + xs.pop()
    return s


@python([(1, "a"), (2, "b")])
def unpack_in_header(pairs):
    return {name: number for number, name in pairs if number > 1}


@python(5)
def iterator_protocol(n):
    it = iter(range(n))
    s = next(it)
    for x in it:
        s += x
        if x > 2:
            break
    return s, list(it)
