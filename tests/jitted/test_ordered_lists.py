"""`heapq` and `bisect` in jitted functions, against Python's."""

import bisect
import heapq
from heapq import heappop, heappush

import numpy as np
import pytest

import treadle as td


def check(function, *arguments):
    jitted = td.jit(function)
    for _ in range(2):
        assert repr(jitted(*arguments)) == repr(function(*arguments))


def heap_sort(x):
    heap, out = [], []
    for v in x:
        heapq.heappush(heap, v)
    while len(heap) > 0:
        out.append(heapq.heappop(heap))
    return out


def largest(x):
    heap = []
    for v in x:
        if len(heap) < 5:
            heapq.heappush(heap, v)
        else:
            heapq.heappushpop(heap, v)
    return heap


def of_a_list(x):
    heap = list(x)
    heapq.heapify(heap)
    first = heapq.heappop(heap)
    return first, heapq.heapreplace(heap, x[0]), len(heap), heap


def places(x):
    ordered, v = np.sort(x), x[3]
    return bisect.bisect_left(ordered, v), bisect.bisect_right(ordered, v), bisect.bisect(x, v, 2)


def inserts(x):
    out = []
    for v in x:
        bisect.insort(out, v)
    return out


@pytest.mark.parametrize("function", [heap_sort, largest, of_a_list, places, inserts])
@pytest.mark.parametrize("count", [7, 60])
def test_ordered(function, count):
    random = np.random.RandomState(0)
    check(function, random.rand(count))
    check(function, random.randint(0, 9, count))


def test_shortest_paths():
    def distances(weights, start):
        n = weights.shape[0]
        found = np.full(n, np.inf)
        found[start] = 0.0
        heap = [(0.0, start)]
        while heap:
            far, u = heappop(heap)
            if far > found[u]:
                continue
            for v in range(n):
                if weights[u, v] > 0 and far + weights[u, v] < found[v]:
                    found[v] = far + weights[u, v]
                    heappush(heap, (found[v], v))
        return found

    random = np.random.RandomState(1)
    weights = random.rand(15, 15) * (random.rand(15, 15) > 0.7)
    check(distances, weights, 0)


def test_a_heap_that_is_known_before_the_loop():
    def walk(weights):
        steps, heap = 0, [(0.0, 0)]
        while heap:
            far, u = heappop(heap)
            steps += 1
            for v in range(2):
                if weights[u, v] > 0 and steps < 4:
                    heappush(heap, (far + weights[u, v], v))
        return steps

    check(walk, np.array([[0.0, 1.0], [1.0, 1.0]]))


def test_the_largest_and_smallest_of_a_list():
    def ends(a, b, c):
        values = [a, b, c, a + b, b - c]
        largest, smallest = heapq.nlargest(2, values), heapq.nsmallest(3, values)
        return largest, smallest, sorted(values), sorted(values, reverse=True)

    check(ends, 0.5, -2.0, 3.25)
