"""``set_loop_options`` at the top of a loop becomes an argument of the loop's operator.

Before::

    while td.size(x) < n:
        td.autograph.experimental.set_loop_options(
            shape_invariants=[(x, td.TensorShape([None]))], maximum_iterations=9
        )
        x = td.concat([x, x], 0)

After::

    x = ag__.while_stmt(
        lambda x: td.size(x) < n, body, x,
        options={"shape_invariants": {"x": td.TensorShape([None])}, "maximum_iterations": 9},
    )
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gast

from treadle.autograph.analysis.activity import LOOPS
from treadle.autograph.analysis.jumps import statements
from treadle.autograph.build import constant, place
from treadle.autograph.resolution import Resolver

Refuse = Callable[[Any, str, str], Exception]


def take_options(body: list[Any], resolver: Resolver, refuse: Refuse) -> None:
    """Move the options of every loop from its body to its attribute `options`.

    Raises:
        the result of ``refuse(node, what, why)`` for options that cannot be read.
    """
    for loop in [n for n in statements(body) if isinstance(n, LOOPS)]:
        for statement in [s for s in loop.body if _sets_options(s, resolver)]:
            loop.options = _options(statement.value, refuse)
            loop.body.remove(statement)
            if not loop.body:
                loop.body.append(place(gast.Pass(), statement))


def _sets_options(statement: Any, resolver: Resolver) -> bool:
    return (
        isinstance(statement, gast.Expr)
        and isinstance(statement.value, gast.Call)
        and resolver.facts(statement.value.func).sets_options
    )


def _options(call: Any, refuse: Refuse) -> Any:
    """The options as a dict display."""
    found: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg == "shape_invariants":
            found[keyword.arg] = _invariants(keyword.value, refuse)
        elif keyword.arg in ("maximum_iterations", "checkpoint"):
            found[keyword.arg] = keyword.value
        elif keyword.arg not in ("parallel_iterations", "swap_memory"):
            raise refuse(call, "set_loop_options", f"it has no option {keyword.arg!r}")
    if call.args:
        raise refuse(call, "set_loop_options", "its options must be given by name")
    return gast.Dict([constant(k) for k in found], list(found.values()))


def _invariants(node: Any, refuse: Refuse) -> Any:
    pairs: list[Any] = node.elts if isinstance(node, gast.List | gast.Tuple) else [None]
    for pair in pairs:
        if not (
            isinstance(pair, gast.Tuple)
            and len(pair.elts) == 2
            and isinstance(pair.elts[0], gast.Name)
        ):
            why = "shape_invariants must be written as a list of (variable, shape)"
            raise refuse(node, "set_loop_options", why)
    names = [constant(pair.elts[0].id) for pair in pairs]
    return gast.Dict(names, [pair.elts[1] for pair in pairs])
