"""Dicts and sets with keys that only the run knows, against plain Python."""

from collections import Counter, defaultdict

import numpy as np
import pytest

import treadle as td
from treadle.jitted.errors import NotStaged


def check(function, *arguments, ordered=True):
    jitted = td.jit(function)
    for _ in range(2):
        expected, found = function(*arguments), jitted(*arguments)
        assert found == expected
        assert repr(found) == repr(expected) or not ordered  # sets are equal in any order


def counts(x):
    found = {}
    for v in x:
        if v in found:
            found[v] += 1
        else:
            found[v] = 1
    return found, len(found)


def sums(x):
    found = {}
    for v in x:
        found[v] = found.get(v, 0) + 1
    total, apart = 0, 0
    for key in found:
        total += key * found[key]
    for key, value in found.items():
        apart += key - value
    return total, apart


def first_places(x):
    seen, found = set(), []
    for i in range(len(x)):
        if x[i] not in seen:
            seen.add(x[i])
            found.append(i)
    return found, len(seen)


def pairs(x):
    found = {}
    for i in range(x.shape[0] - 1):
        key = (x[i], x[i + 1])
        if key in found:
            found[key] += 0.5
        else:
            found[key] = 0.5
    return found


def comes_and_goes(x):
    found = {}
    for v in x:
        if v in found:
            del found[v]
        else:
            found[v] = 2 * v
    return found


def widens(x):
    found = {}
    for v in x:
        found[v] = 0
        found[v] += v * 0.5
    return found


def of_arrays(x):
    groups = {}
    for v in x:
        if v not in groups:
            groups[v] = np.zeros(2)
        groups[v] = groups[v] + np.array([1.0, v])
    total = np.zeros(2)
    for key in sorted(groups.keys()):
        total += groups[key]
    return total.tolist(), max(groups)


def methods(x):
    found = dict()
    for i, v in enumerate(x):
        found.setdefault(v, i)
    taken = found.pop(x[0])
    size = len(found)
    key, value = found.popitem()
    found.clear()
    return taken, size, key, value, len(found), list(found.values())


def outside_of_loops(x):
    found = {}
    found[x[0]] = 1
    found[x[1]] = 2
    found[x[0]] += 5
    return found, x[2] in found


def set_operations(x):
    a, b = set(), set()
    for v in x:
        a.add(v)
        b.add(v + 1)
    b.discard(3)
    return len(a & b), len(a | b), len(a - b), a


def in_a_helper(x):
    return counted(x, {})


def counted(x, found):
    for v in x:
        found[v] = found.get(v, 0) + 1
    return found


FUNCTIONS = (
    counts, sums, first_places, pairs, comes_and_goes, widens, of_arrays, methods,
    outside_of_loops, set_operations, in_a_helper,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_tables(function):
    check(function, np.array([3, 1, 2, 1, 3, 3, -4]))
    check(function, np.random.RandomState(0).randint(-50, 300, 400))


def test_keys_that_are_floats():
    x = np.array([1.5, -0.0, 0.0, 2.0, 1.5])
    check(counts, x)


def test_a_loop_that_ends_when_a_state_comes_again():
    def cycle(n):
        seen, steps = {}, 0
        while n not in seen:
            seen[n] = steps
            steps += 1
            n = n // 2 if n % 2 == 0 else 3 * n + 1
        return steps, seen[n]

    jitted = td.jit(cycle)
    assert [jitted(n) for n in (27, 3, 97)] == [cycle(n) for n in (27, 3, 97)]


def test_a_dict_that_is_known_is_read():
    def looked_up(x):
        values = {1: 10.0, 2: 20.0, 3: 30.0, -4: 0.5}
        total = 0.0
        for v in x:
            total += values[v]
        return total, values.get(x[0], -1.0), values.get(x[1] + 7, -1.0), x[2] in values

    check(looked_up, np.array([3, 1, 2, 1, 3, 3, -4]))


def test_a_key_that_is_not_there():
    def looked_up(x):
        values = {1: 10.0}
        total = 0.0
        for v in x:
            total += values[v]
        return total

    jitted = td.jit(looked_up)
    assert jitted(np.array([1, 1])) == 20.0
    with pytest.raises(KeyError, match="3"):
        jitted(np.array([1, 3]))


def test_known_keys_of_each_kind():
    def looked_up(x, y):
        by_float = {0.5: 1, -0.0: 2, 1e-9: 3, 2.5e30: 4}
        by_pair = {(1, 2): 0.5, (2, 1): 1.5}
        allowed = {3, 5, 9}
        found, total = 0, 0.0
        for i in range(len(x)):
            found += by_float.get(y[i], 0)
            key = (x[i], x[i] + 1)
            if key in by_pair:
                total += by_pair[key]
            if x[i] in allowed:
                total += 100.0
        return found, total

    check(looked_up, np.array([1, 3, 4, 9]), np.array([0.0, 1e-9, 2.5e30, 7.0]))


def test_known_keys_in_traced_branches_and_loops():
    def known(x):
        seen, odd = set(), {7}
        for i in range(10):
            seen.add(len(seen) % 4)
            if x[i] > 1:
                odd.add(5)
        names = set()
        for name in ("a", "b", "a", "c", "b", "a"):
            names.add(name)
        return len(seen), len(odd), 5 in odd, len(names)

    check(known, np.arange(10))
    check(known, np.zeros(10))


@pytest.mark.thorough
def test_sets_of_arrays():
    def sets(x, y):
        a, b = set(x), set(y)
        both, either = a.intersection(b), a.union(y)
        alone = a.symmetric_difference(b)
        kept = a.copy()
        kept.difference_update(b)
        kept.update(y)
        told = (a.issubset(either), a.isdisjoint(b), either.issuperset(b), 3 in a, x[0] in b)
        c = set()
        for v in y:
            c.add(v)
        return a, both, either, alone, kept, len(a | b), told, len(set(x)) == len(x), len(c)

    def of_floats(x, y):
        a, b = set(x), set(y)
        return a, a.intersection(b), a.union(y), x[0] in b, len(b)

    check(sets, np.array([3, 1, 2, 1, 3, 3, -4]), np.array([7, 1, 9]), ordered=False)
    check(of_floats, np.array([0.5, 0.25]), np.array([0.5, 0.5]), ordered=False)


def test_entries_move_together_where_most_were_removed():
    """A dict that has few entries at a time, but many in the course of a run, stays small."""

    def recent(xs, kept):
        last = {}
        shown = 0
        for i in range(len(xs)):
            last[xs[i]] = last.get(xs[i], 0) + i
            if i >= kept and xs[i - kept] in last:
                shown += last[xs[i - kept]]
                del last[xs[i - kept]]
        order = 0
        for key in last:
            order = order * 7 + key + last[key]
        return shown, order, len(last)

    random = np.random.default_rng(0)
    for kept, keys in ((2, 5), (3, 40), (9, 1000)):
        for count in (10, 200):
            xs = random.integers(0, keys, count)
            assert td.jit(recent)(xs, kept) == recent(xs.tolist(), kept)


@pytest.mark.parametrize("x", [[3.0, 1.0, 2.0], [3.0, 4.0], [1.0, 0.0]])
def test_keys_that_are_known_in_branches_and_loops(x):
    """A branch or body that the program runs changes no set of the trace."""

    def kinds(x):
        seen = {5}
        for v in x:
            if v > 2:
                seen.add(1)
            else:
                seen.discard(5)
        own = 0
        for _ in range(10):
            seen.add(len(seen) % 4)
        for v in x:
            inner = set()
            inner.add(3)
            own += len(inner)
        return len(seen), own

    assert td.jit(kinds)(np.array(x)) == kinds(x)


def pops_from_what_may_be_empty(x):
    kept, total = {}, 0
    for v in x:
        total += kept.pop(v, 5)
        kept[v] = 1
    return total, len(kept)


def pops_from_nothing(x):
    kept = {}
    return kept.pop(x[0], 7)


@pytest.mark.parametrize("function", [pops_from_what_may_be_empty, pops_from_nothing])
def test_defaults_of_keys_that_an_empty_dict_does_not_have(function):
    check(function, np.array([3, 3, 4]))


@pytest.mark.parametrize("method", ["pop", "remove"])
def test_keys_that_have_to_be_there(method):
    def popped(x):
        kept = {}
        return kept.pop(x[0])

    def removed(x):
        kept = set()
        kept.remove(x[0])
        return len(kept)

    function = popped if method == "pop" else removed
    for run in (function, td.jit(function)):
        with pytest.raises(KeyError):
            run(np.array([1]))


def test_dicts_whose_keys_begin_with_a_value():
    def counted(x):
        counts, sums, doubled = defaultdict(int), defaultdict(float), Counter([1, 2])
        for v in x:
            counts[v] += 1
            doubled[v] += 2
            sums[v % 2] += v * 0.5
        counts[x[0]] += 1
        return counts, sums, doubled, counts.get(x[0], 0), doubled[x[1]]

    x = np.array([1, 2, 3, 2, 1, 5])
    assert td.jit(counted)(x) == counted(x)


def of_iterators(x):
    return (
        dict(zip("abc", (1, 2, 3), strict=True)), dict(zip("ab", [x[0], x[1]], strict=True)),
        dict(enumerate("ab")), Counter(iter("aab")), len(set(iter([1, 2]))), dict(iter([("a", 1)])),
        Counter(iter("ab"), a=2), dict(zip("a", [1], strict=True), b=x[0]),
    )  # fmt: skip


def test_iterators_that_give_their_elements_once():
    x = np.array([5, 6])
    assert td.jit(of_iterators)(x) == of_iterators(x)


def counters(x):
    a, b = Counter(), Counter({1: 2, 2: 1})
    for v in x:
        a[int(v)] += 1
    same = a
    c, d, e, f = a - b, a + b, a & b, a | b
    a -= Counter([1, 2, 3])
    a += b
    return dict(c), dict(d), dict(e), dict(f), dict(a), len(same)


def sets_in_place(x):
    a, same = set(), 0
    for v in x:
        a |= {int(v) % 5}
        a -= {3}
        a ^= {int(v) % 3}
    for v in x:
        same += int(v) in a
    return sorted(a), same, 2 in {int(x[0]), int(x[1])}


@pytest.mark.parametrize("function", [counters, sets_in_place])
def test_operators(function):
    for values in ([1, 1, 1, 2, 3], [3, 3, 3, 2, 5]):
        x = np.array(values)
        assert td.jit(function)(x) == function(x)


def compared(x):
    grown, seen, counts = [], set(), Counter()
    for v in x:
        if v > 1:
            grown.append(int(v))
        seen.add(int(v))
        counts[int(v)] += 1
    return (
        grown == [2, 3], grown != [2, 3], grown == [], [3, 3, 3] == grown, grown == list(grown),
        seen == {1, 2, 3}, {1, 2, 3} != seen, seen == set(), seen == {int(v) for v in x},
        counts == {1: 3, 2: 1, 3: 1}, counts == Counter([1, 1, 1, 3, 2]),
        set(str(int(x[0]))) == {"1"}, counts,
    )  # fmt: skip


def test_comparisons_and_a_counter_that_is_returned():
    jitted = td.jit(compared)
    for values in ([1, 1, 1, 2, 3], [3, 3, 3, 2, 5], [1, 1, 1, 1, 1]):
        x = np.array(values)
        found = jitted(x)
        assert found == compared(x) and type(found[-1]) is Counter
        assert all(type(f) is bool for f in found[:-1])


def test_texts_of_the_run_are_no_keys():
    """Of numbers that Python knows they are Python's texts; else the error names the line."""

    @td.jit
    def counted(n):
        found = {}
        for k in range(n):
            found[str(k % 3)] = found.get(str(k % 3), 0) + 1
        return found

    assert counted(7) == {"0": 3, "1": 2, "2": 2}

    @td.jit
    def looked_up(x):
        prices = {"0": 1.0, "1": 2.0}
        total = 0.0
        for v in x:
            total += prices[str(int(v))]
        return total

    with pytest.raises(NotStaged, match=r"text that only the run knows is a key[\s\S]*looked_up"):
        looked_up(np.array([0.0, 1.0]))
