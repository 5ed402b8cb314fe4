"""Lists that grow: in branches and loops over tensors they become lists of the graph."""

from __future__ import annotations

from tests.corpus.registry import case, python, smooth

XS = [3, 1, 4, 1, 5]


@case((3, 2), (1, 5))
def list_from_loop(n, x):
    out = []
    for i in range(n):
        out.append(x * i)
    return out


@case((XS,))
def list_of_changed_elements(xs):
    out = []
    for x in xs:
        out.append(x * x - 1)
    return out


@case((XS, 2))
def list_of_chosen_elements(xs, limit):
    out = [limit]
    for x in xs:
        if x > limit:
            out.append(x)
    return out


@case((40,))
def list_from_while(n):
    out = [n]
    while n > 1:
        n = n // 2
        out.append(n)
    return out


@case((7,))
def collatz_path(n):
    path = [n]
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        path.append(n)
    return path


@case((6,))
def fibonacci_list(n):
    f = [1, 1]
    for _ in range(n):
        f.append(f[-1] + f[-2])
    return f


@case((5, 2))
def list_with_break_and_continue(n, x):
    out = []
    for i in range(n):
        if i == 1:
            continue
        if i == 4:
            break
        out.append(x + i)
    return out


@case((3, 2), (1, 2))
def list_longer_in_one_branch(n, x):
    out = [x]
    if n > 2:
        out.append(n)
        out.append(x * n)
    return out


@case((5, 2))
def two_lists(n, x):
    even, odd = [x], [x]
    for i in range(n):
        if i % 2 == 0:
            even.append(i)
        else:
            odd.append(x * i)
    return even, odd


@case((4,))
def list_from_nested_loops(n):
    out = []
    for i in range(n):
        for j in range(i):
            out.append(10 * i + j)
    return out


@case((4, 2))
def list_of_pairs(n, x):
    out = []
    for i in range(n):
        out.append((i, x * i))
    return out


@case((5,))
def stack_of_numbers(n):
    stack = [n]
    total = 0
    for i in range(n):
        if i % 3 == 2:
            total += stack.pop()
        else:
            stack.append(i)
    return total, stack


@case((5, 2))
def items_of_a_growing_list(n, x):
    out = [x, x]
    for i in range(n):
        out.append(out[i] + i)
        out[i] = out[i] * 2
        out[-2] += 1
    return out


@case((3, 2))
def extended_in_loop(n, x):
    out = [n]
    for i in range(n):
        out.extend([x, i])
        out += [x + i]
    return out


@case((3, 2))
def joined_in_loop(n, x):
    out = [n]
    for i in range(n):
        out = out + [x * i]
    return out


@case((4, 2))
def length_of_a_growing_list(n, x):
    out = [x]
    while len(out) < n:
        out.append(out[len(out) - 1] * x)
    return out, len(out)


@case((4, 2))
def iteration_over_a_grown_list(n, x):
    out = []
    for i in range(n):
        out.append(x + i)
    total = 0
    for v in out:
        total += v
    for i, v in enumerate(out):
        total += i * v
    return total


@case((4, 2))
def grown_list_in_helper(n, x):
    def collect(count, step):
        values = []
        for i in range(count):
            values.append(i * step)
        return values

    values = collect(n, x)
    values.append(n)
    return values, values[0] + values[-1]


@case((6,))
def sieve(n):
    primes = [2]
    for k in range(3, 3 * n):
        prime = True
        for p in primes:
            if k % p == 0:
                prime = False
        if prime:
            primes.append(k)
    return primes


@python(([3, 1, 2],))
def list_methods(xs):
    xs.append(9)
    xs.insert(0, 7)
    xs.remove(1)
    xs.sort()
    xs.reverse()
    last = xs.pop(0)
    xs.extend("ab")
    copy = xs.copy()
    xs.clear()
    return xs, copy, last


@python((3,))
def stays_pythons_list(n):
    words = []
    for i in range(n):
        if i != 1:
            words.append(f"w{i}")
    return words


@smooth((0.7, 1.3))
def powers_in_a_list(a, b):
    out = [a]
    for _ in range(4):
        out.append(out[-1] * b + a)
    return out[1] * out[-1]


@smooth((0.7, 1.3))
def list_until_large(a, b):
    out = [a]
    y = a
    while y < 5.0:
        y = y * b + a
        out.append(y * a)
    total = a
    for v in out:
        total += v * v
    return total
