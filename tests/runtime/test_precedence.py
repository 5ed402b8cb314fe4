"""The order that stays sorted: against plain searches, on random graphs."""

import random

import pytest

from treadle.runtime.precedence import Precedence


def reached(edges, start):
    seen, stack = {start}, [start]
    while stack:
        for item in edges.get(stack.pop(), ()):
            if item not in seen:
                seen.add(item)
                stack.append(item)
    return seen


@pytest.mark.parametrize("seed", range(40))
def test_agrees_with_plain_searches(seed):
    rng = random.Random(seed)
    count = rng.randint(2, 30)
    items = list(range(count))
    edges = {}
    for _ in range(rng.randint(0, count)):
        low, high = sorted(rng.sample(items, 2))
        edges.setdefault(low, []).append(high)
    order = Precedence(items, edges)
    for _ in range(3 * count):
        first, then, other = rng.choice(items), rng.choice(items), rng.choice(items)
        below = reached(edges, then)
        assert order.follows_any(then, [first, other]) == bool(below & {first, other})
        if first in below:
            with pytest.raises(AssertionError, match="cycle"):
                order.add(first, then)
            continue
        order.add(first, then)
        edges.setdefault(first, []).append(then)
        assert sorted(order.rank.values()) == items
        assert all(order.rank[a] < order.rank[b] for a, after in edges.items() for b in after)
    found = order.sorted(items)
    place = {item: number for number, item in enumerate(found)}
    assert all(place[a] < place[b] for a, after in edges.items() for b in after)


def test_stays_close_to_the_given_order():
    order = Precedence("abcde", {"d": ["b"]})
    assert order.sorted("abcde") == list("acdbe")


def test_edges_that_agree_with_the_order_are_not_searched_for(monkeypatch):
    order = Precedence(range(5000), {})
    searched = []
    search = order._reached
    monkeypatch.setattr(order, "_reached", lambda *a: searched.append(a) or search(*a))
    for item in range(4999):
        assert not order.follows_any(item + 1, [item])
        order.add(item, item + 1)
    assert not searched
