"""Lists in lists and dicts whose lengths only the run knows."""

from __future__ import annotations

import copy
import heapq
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import treadle as td

X = np.array([3, 1, 3, 2, 1])
EDGES = np.array([[0, 1], [0, 2], [1, 3], [2, 3], [0, 3], [1, 2]])


def grouped(x: Any) -> Any:
    found: dict[Any, Any] = {}
    for i in range(len(x)):
        if x[i] not in found:
            found[x[i]] = []
        found[x[i]].append(i)
    total = 0
    for k in found:
        total += len(found[k]) * int(k)
    return total, len(found)


def grouped_by_default(x: Any) -> Any:
    found = defaultdict(list)
    for i in range(len(x)):
        found[int(x[i])].append(i)
    total = 0
    for k, v in found.items():
        total += sum(v) * k + v[0] + v[-1]
    return total, dict(found)


def begun_with_one(x: Any) -> Any:
    found: dict[int, list[int]] = {}
    for v in x:
        if int(v) not in found:
            found[int(v)] = [0]
        else:
            found[int(v)].append(1)
    return found


def pieces(x: Any) -> Any:
    found, piece = [], []
    for v in x:
        if v > 1:
            piece.append(int(v))
        else:
            found.append(piece)
            piece = []
    return found


def buckets(x: Any) -> Any:
    found: list[list[int]] = [[] for _ in range(5)]
    for v in x:
        found[int(v)].append(int(v) * (len(found[int(v)]) + 1))
    for row in found:
        row.sort(reverse=True)
    last = found[3].pop()
    joined = []
    for row in found:
        joined.extend(row)
    found[1] += [7, 8]
    found[2][0] = 50
    return joined, last, found


def by_two_names(x: Any) -> Any:
    found = [[i] for i in range(5)]
    for v in x:
        found[int(v)].append(int(v))
    row = found[1]
    row.append(77)
    return found, row


def by_name(x: Any) -> Any:
    found: dict[str, list[Any]] = {"low": [], "high": []}
    for v in x:
        if v < 2:
            found["low"].append(v)
        else:
            found["high"].append(v * 2)
    return len(found["low"]), sum(found["high"]), found


def by_name_in_each_iteration(x: Any) -> Any:
    total = 0
    for i in range(len(x)):
        found: dict[str, list[int]] = {"a": [], "b": [0]}
        for j in range(int(x[i])):
            if j % 2 == 0:
                found["a"].append(j)
            else:
                found["b"].append(-j)
        total += len(found["a"]) * 100 + sum(found["b"])
    return total


def in_a_closure_of_each_iteration(x: Any) -> Any:
    total = 0
    for i in range(len(x)):
        taken: list[int] = []

        def take(v: Any) -> None:
            if v % 2 == 0:
                taken.append(v)

        for j in range(int(x[i])):
            take(j)
        total += 10 * len(taken) + sum(taken)
    return total


class Sides:
    def __init__(self) -> None:
        self.low: list[int] = []
        self.high: list[int] = []

    def put(self, v: Any) -> None:
        if v > 1:
            self.high.append(v)
        else:
            self.low.append(v)


def in_an_object_of_each_iteration(x: Any) -> Any:
    total = 0
    for i in range(len(x)):
        sides = Sides()
        for j in range(int(x[i])):
            sides.put(j)
        total += 10 * len(sides.low) + len(sides.high)
    return total


@pytest.mark.parametrize(
    "function",
    [
        grouped, grouped_by_default, begun_with_one, pieces, buckets, by_two_names, by_name,
        by_name_in_each_iteration, in_a_closure_of_each_iteration, in_an_object_of_each_iteration,
    ],
)
def test_lists_that_grow_in_others(function):
    assert td.jit(function)(X) == function(X)


def test_many_lists_that_grow():
    x = np.arange(70) % 5
    assert td.jit(pieces)(x) == pieces(x)


def neighbours(edges: Any) -> Any:
    found: list[list[int]] = [[] for _ in range(4)]
    for a, b in edges:
        found[a].append(int(b))
    return found


def in_order(edges: Any) -> Any:
    after: list[list[int]] = [[] for _ in range(4)]
    before = [0] * 4
    for a, b in edges:
        after[a].append(int(b))
        before[b] += 1
    ready = [i for i in range(4) if before[i] == 0]
    order = []
    while ready:
        node = ready.pop(0)
        order.append(int(node))
        for other in after[node]:
            before[other] -= 1
            if before[other] == 0:
                ready.append(other)
    return order


def depth_first(edges: Any) -> Any:
    near: dict[int, list[int]] = {i: [] for i in range(4)}
    for a, b in edges:
        near[int(a)].append(int(b))
        near[int(b)].append(int(a))
    seen, left, order = set(), [0], []
    while left:
        node = left.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        for other in near[node]:
            if other not in seen:
                left.append(other)
    return order


def shortest(edges: Any) -> Any:
    near = defaultdict(list)
    for a, b in edges:
        near[int(a)].append((int(b), 1.5))
    far = np.full(4, np.inf)
    far[0] = 0
    heap = [(0.0, 0)]
    while heap:
        d, node = heapq.heappop(heap)
        if d > far[node]:
            continue
        for other, weight in near[node]:
            if d + weight < far[other]:
                far[other] = d + weight
                heapq.heappush(heap, (d + weight, other))
    return far.tolist()


@pytest.mark.parametrize("function", [neighbours, in_order, depth_first, shortest])
def test_graphs(function):
    assert td.jit(function)(EDGES) == function(EDGES)


def test_a_list_of_lists_under_a_condition():
    def filled(e: Any) -> Any:
        found: list[list[int]] = [[] for _ in range(4)]
        for i in range(4):
            for j in range(4):
                if e[i // 2, j // 2] > 0:
                    found[i].append(j)
        return found

    assert td.jit(filled)(EDGES) == filled(EDGES)


def test_asking_for_keys_that_a_read_may_have_added_is_refused():
    @td.jit
    def asked(x):
        found = defaultdict(list)
        for v in x:
            found[int(v)].append(1)
        total = 0
        for i in range(50):
            total += len(found[x[0] + i])
        return total, len(found)

    with pytest.raises(TypeError, match="defaultdict"):
        asked(X)


def test_lists_of_the_caller():
    def filled(g: Any, x: Any) -> Any:
        for v in x:
            g[v].append(int(v))
        return len(g[0])

    given: list[list[int]] = [[] for _ in range(5)]
    own: list[list[int]] = [[] for _ in range(5)]
    first = own[1]
    assert td.jit(filled)(own, X) == filled(given, X)
    assert own == given
    assert own[1] is first


def test_rows_in_results():
    def some(x: Any) -> Any:
        found: dict[int, list[int]] = {}
        for i, v in enumerate(x):
            found.setdefault(int(v), []).append(i)
        return found[1], found, len(found)

    assert td.jit(some)(X) == some(X)


def test_copies():
    def copied(x: Any) -> Any:
        plain = [float(v) for v in x if v > 1]
        rows: list[list[float]] = [[] for _ in range(5)]
        for v in x:
            rows[int(v)].append(float(v))
        a, b, c, d = copy.copy(rows[1]), rows[1][:], list(rows[1]), copy.copy(plain)
        a.append(9.0)
        b.append(8.0)
        c.append(7.0)
        y = copy.copy(x)
        y[0] = 77
        return rows[1], a, b, c, copy.deepcopy(d), x[0] + y[0]

    assert td.jit(copied)(X) == copied(X)


def test_a_deep_copy_of_lists_in_a_list_is_refused():
    @td.jit
    def copied(x):
        rows: list[list[int]] = [[] for _ in range(5)]
        for v in x:
            rows[v].append(1)
        return copy.deepcopy(rows)

    with pytest.raises(TypeError, match="one by one"):
        copied(X)
