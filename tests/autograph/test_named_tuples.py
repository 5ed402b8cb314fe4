"""Variables that are named tuples keep their types through branches and loops of the graph."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import pytest

import treadle as td


class Typed(NamedTuple):
    a: Any
    b: Any


Plain = collections.namedtuple("Plain", "a b")


@pytest.mark.parametrize("kind", [Typed, Plain])
def test_a_variable_that_is_a_named_tuple(kind: Any) -> None:
    @td.function
    def branch(x: Any, i: Any) -> Any:
        if i > 1:
            x = kind(x.a * 2.0, x.b)
        return x

    @td.function
    def both(x: Any, i: Any) -> Any:
        if i > 1:
            x = x._replace(a=x.a + 1.0)
            y = kind(x, i)
        else:
            y = kind(x, 0)
        while i < 4:
            x = x._replace(b=x.b + x.a)
            i += 1
        return x, y

    for i, a in ((2, 2.0), (1, 1.0)):
        for b in (3.0, td.constant(3.0)):  # also where a part is the same in both branches
            found = branch(kind(td.constant(1.0), b), td.constant(i))
            assert type(found) is kind and (float(found.a), float(found.b)) == (a, 3.0)
        x, y = both(kind(td.constant(1.0), td.constant(3.0)), td.constant(i))
        assert type(x) is type(y) is type(y.a) is kind
        assert (float(x.a), float(x.b), float(y.a.a)) == (a, 3.0 + (4 - i) * a, a)
        assert int(y.b) == (2 if i == 2 else 0)
