"""Which items must run before others, kept sorted while more edges are found.

The order is one of Pearce and Kelly ("A dynamic topological sort algorithm for directed acyclic
graphs", 2006): every item has a rank, and every edge leads to a higher one. A new edge that leads
down moves only the items between its ends, and whether one item follows another is looked for
between their ranks, so thousands of edges cost little where they agree with the program's order.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Precedence(Generic[T]):
    """A graph without cycles whose items stay sorted.

    Args:
        items: in the order to stay close to.
        edges: item -> the items that must follow it.

    Attributes:
        rank: the place of every item in an order that all edges agree with.
    """

    def __init__(self, items: Collection[T], edges: Mapping[T, Iterable[T]]) -> None:
        self.after: dict[T, dict[T, None]] = {i: dict.fromkeys(edges.get(i, ())) for i in items}
        self.before: dict[T, dict[T, None]] = {item: {} for item in items}
        for item, followers in self.after.items():
            for follower in followers:
                self.before[follower][item] = None
        self.rank = {item: rank for rank, item in enumerate(self.sorted(items))}

    def sorted(self, items: Collection[T]) -> list[T]:
        """The items in an order that all edges agree with, as close as possible to the given one.

        Raises:
            AssertionError: there is a cycle.
        """
        place = {item: number for number, item in enumerate(items)}
        given = list(items)
        waiting = {item: len(self.before[item]) for item in items}
        ready = [place[item] for item in items if not waiting[item]]
        found: list[T] = []
        while ready:  # sorted, so it is a heap from the start
            item = given[heapq.heappop(ready)]
            found.append(item)
            for follower in self.after[item]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    heapq.heappush(ready, place[follower])
        if len(found) != len(given):
            raise AssertionError("the schedule has a cycle")
        return found

    def follows_any(self, first: T, items: Iterable[T]) -> bool:
        """Whether one of the items can only run after `first`, or is `first`."""
        wanted = {item for item in items if self.rank[item] >= self.rank[first]}
        if not wanted:
            return False
        below = self._reached(first, self.after, max(self.rank[item] for item in wanted), 1)
        return not wanted.isdisjoint(below)

    def add(self, first: T, then: T) -> None:
        """Let `then` run after `first`, which must not follow it.

        Raises:
            AssertionError: it follows it.
        """
        if then in self.after[first]:
            return
        low, high = self.rank[then], self.rank[first]
        if high >= low:
            below = self._reached(then, self.after, high, 1)
            if first in below:
                raise AssertionError("the schedule has a cycle")
            above = self._reached(first, self.before, low, -1)
            self._sort_again([above, below])
        self.after[first][then] = None
        self.before[then][first] = None

    def _reached(
        self, start: T, edges: Mapping[T, Mapping[T, None]], limit: int, sign: int
    ) -> set[T]:
        """The items that edges lead to, as far as the rank `limit`."""
        seen, stack = {start}, [start]
        while stack:
            for item in edges[stack.pop()]:
                if item not in seen and sign * self.rank[item] <= sign * limit:
                    seen.add(item)
                    stack.append(item)
        return seen

    def _sort_again(self, parts: list[set[T]]) -> None:
        """Give the items of the first part lower ranks than the items of the second."""
        order = [item for part in parts for item in sorted(part, key=self.rank.__getitem__)]
        ranks = sorted(self.rank[item] for item in order)
        self.rank.update(zip(order, ranks, strict=True))
