"""Long chains of branches, which would nest as deep as they are long, become several in a row.

Before, with more branches than are nested::

    if a: x = 1
    elif b: x = 2
    elif c: x = 3

After::

    other = False
    if a: x = 1
    elif b: x = 2
    else: other = True
    if other:
        if c: x = 3

Where all branches but the last jump, each ``elif`` becomes a statement of its own: ``if a: return
1`` and behind it ``if b: return 2``. Long rows of such statements are cut where jumps are lowered
(`jumps`).
"""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph.analysis.jumps import always_jumps, blocks
from treadle.autograph.build import assign, constant, load, place
from treadle.autograph.names import Names

MOST_NESTED = 24


def split_chains(body: list[Any], names: Names) -> None:
    """Rewrite a block, and those inside of it, in place."""
    out: list[Any] = []
    for node in body:
        found = [node]
        if isinstance(node, gast.If) and _length(node) > MOST_NESTED:
            found = _jumping(node) or _split(node, names)
        for statement in found:
            inner = statement
            while True:  # along the chain, whose branches are blocks of their own
                for block in blocks(inner):
                    if not _is_chain(inner, block):
                        split_chains(block, names)
                if not (isinstance(inner, gast.If) and _is_chain(inner, inner.orelse)):
                    break
                inner = inner.orelse[0]
        out += found
    body[:] = out


def _is_chain(node: Any, block: list[Any]) -> bool:
    return (
        isinstance(node, gast.If)
        and block is node.orelse
        and len(block) == 1
        and isinstance(block[0], gast.If)
    )


def _length(node: Any) -> int:
    count = 1
    while _is_chain(node, node.orelse):
        node, count = node.orelse[0], count + 1
    return count


def _jumping(node: Any) -> list[Any]:
    """The branches of a chain as statements in a row, where each but the last always jumps."""
    found = [node]
    while _is_chain(found[-1], found[-1].orelse):
        found.append(found[-1].orelse[0])
    if not all(always_jumps(one.body) for one in found[:-1]):
        return []
    for one in found[:-1]:
        one.orelse = []
    last = found[-1]
    rest = last.orelse if always_jumps(last.body) else []
    if rest:
        last.orelse = []
    return found + rest


def _split(node: Any, names: Names) -> list[Any]:
    """A chain of at most so many branches, and behind it what else there is, if none was taken."""
    last = node
    for _ in range(MOST_NESTED - 1):
        last = last.orelse[0]
    rest = last.orelse
    name = names.fresh("other")
    before = assign([name], constant(False), node)
    before.leading, node.leading = getattr(node, "leading", []), []
    last.orelse = [assign([name], constant(True), rest[0])]
    after = place(gast.If(load(name), rest, []), rest[0])
    return [before, node, after]
