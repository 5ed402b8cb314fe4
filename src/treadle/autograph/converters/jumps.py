"""break, continue and return become structured control flow.

Before::

    for x in xs:
        if x > limit:
            return x
        total += x
    return limit

After (`returned` also stops the loop)::

    for x in xs:                      # until returned
        if x > limit:
            result = x
            returned = True
        else:
            total += x
    if returned:
        return result
    else:
        return limit

Statements behind an ``if`` that always jumps move into its other branch; only where that is not
possible is the rest guarded by the flag. A block with very many statements that jump would nest as
deep as it is long: it is cut into parts, each behind the flags of those before it. Jumps that stay
in statements left to Python are kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gast

from treadle.autograph.analysis.activity import LOOPS, TRIES
from treadle.autograph.analysis.jumps import NONE, always_jumps, blocks, converted_jumps, jumps
from treadle.autograph.build import assign, constant, load, place
from treadle.autograph.converters.chains import MOST_NESTED
from treadle.autograph.names import Names
from treadle.core.records import record


@record
class _Loop:
    """The flags of a converted loop."""

    done: str
    skip: str | None = None


@record(frozen=True)
class _Where:
    """The loop and function around a block.

    Attributes:
        tail: falling off its end ends the function.
        loop: the converted loop around it; None when there is none or it is Python's.
        loop_tail: falling off its end ends the loop's iteration.
        returned, result: variables that stand for `return`; empty where `return` itself may stay.
    """

    tail: bool = True
    loop: _Loop | None = None
    loop_tail: bool = False
    returned: str = ""
    result: str = ""


def lower_jumps(body: list[Any], names: Names) -> list[Any]:
    """A function body whose converted statements contain no jumps but returns at their ends."""
    return _Lowering(names).block(body, _Where())


class _Lowering:
    def __init__(self, names: Names) -> None:
        self.names = names

    def block(self, body: list[Any], where: _Where) -> list[Any]:
        parts = self.parts(body, where)
        if len(parts) > 1:
            return self.in_parts(parts, where)
        out: list[Any] = []
        for i, node in enumerate(body):
            rest = body[i + 1 :]
            if isinstance(node, LOOPS) and node.orelse and not node.in_python:
                rest = self.after_loop(node, rest)
                return out + self.block([node, *rest], where)
            if isinstance(node, gast.Return | gast.Break | gast.Continue):
                return out + self.jump(node, where)
            if self.to_lower(node, where):
                return out + self.compound(node, rest, where)
            out.append(self.plain(node, replace(where, tail=where.tail and not rest)))
        return out

    def parts(self, body: list[Any], where: _Where) -> list[list[Any]]:
        """The statements of a block in parts, of which none has too many that jump."""
        if len(body) <= MOST_NESTED or not (where.tail or where.returned or where.loop):
            return [body]
        found: list[list[Any]] = [[]]
        count = 0
        for node in body:
            is_jump = isinstance(node, gast.Return | gast.Break | gast.Continue)
            if not is_jump and self.to_lower(node, where):
                if count == MOST_NESTED:
                    found.append([])
                    count = 0
                count += 1
            found[-1].append(node)
        return found

    def in_parts(self, parts: list[list[Any]], where: _Where) -> list[Any]:
        """Parts of a block, each behind the flags of those before it."""
        first = parts[0][0]
        everything = [node for part in parts for node in part]
        by_return = "return" in jumps(everything) and not where.returned
        if by_return and not where.tail:
            return [n for part in parts for n in self.block(part, where)]
        inner = replace(where, tail=False, loop_tail=False)
        out: list[Any] = []
        if by_return:
            returned, result = self.names.fresh("returned"), self.names.fresh("result")
            inner = replace(inner, returned=returned, result=result)
            out = [assign([returned], constant(False), first)]
            out[0].leading, first.leading = getattr(first, "leading", []), []
        ends = always_jumps(everything)
        leaving = [jumps(part) for part in parts]  # as they are before they are lowered
        for number, part in enumerate(parts):
            flags = self.flags(frozenset().union(*leaving[:number]), inner)
            at, lowered = part[0], self.block(part, inner)
            out += [_guard(flags, lowered, at)] if flags else lowered
        if not by_return:
            return out
        final = place(gast.Return(load(result)), everything[-1])
        if not ends:
            final = place(gast.If(load(returned), [final], []), everything[-1])
            final.in_python = False
        return out + self.block([final], where)

    def to_lower(self, node: Any, where: _Where) -> bool:
        """Whether jumps out of `node` cannot stay as they are."""
        leaving = jumps([node])
        if where.loop is not None and leaving & {"break", "continue"}:
            return True
        return "return" in (leaving if where.returned else converted_jumps([node]))

    def jump(self, node: Any, where: _Where) -> list[Any]:
        if isinstance(node, gast.Return):
            if not where.returned:
                return [node]
            value = node.value if node.value is not None else constant(None)
            flag = self._flag(where.returned, node)  # last: an exception of the value may be caught
            return [place(assign([where.result], value, node), node), flag]
        if where.loop is None:
            return [node]
        if isinstance(node, gast.Break):
            return [self._flag(where.loop.done, node)]
        if where.loop_tail:
            return [_like(gast.Pass(), node)]
        if where.loop.skip is None:
            where.loop.skip = self.names.fresh("skip")
        return [self._flag(where.loop.skip, node)]

    def _flag(self, name: str, node: Any) -> Any:
        return _like(assign([name], constant(True), node), node)

    def plain(self, node: Any, where: _Where) -> Any:
        """A statement whose own jumps may stay; loops inside may still have jumps to lower."""
        if isinstance(node, LOOPS):
            return self.loop(node, where)
        for block in blocks(node):
            block[:] = self.block(block, where)
        return node

    def compound(self, node: Any, rest: list[Any], where: _Where) -> list[Any]:
        """`node`, which jumps, and all that follows it in its block."""
        if isinstance(node, gast.If):
            rest = _absorb(node, rest)
        by_return = "return" in jumps([node]) and not where.returned
        stays = isinstance(node, gast.If | gast.With | gast.Match) and not rest and where.tail
        if by_return and not stays and "return" in converted_jumps([node]):
            return self.with_return_flag(node, rest, where)
        inner = replace(where, tail=stays and by_return, loop_tail=where.loop_tail and not rest)
        return self.lowered(node, rest, where, inner)

    def lowered(self, node: Any, rest: list[Any], where: _Where, inner: _Where) -> list[Any]:
        leaving = jumps([node])
        if isinstance(node, LOOPS):
            self.loop(node, inner)
        else:
            if self._is_final_break(node, inner):
                return [self._break_condition(node, inner)]
            skipping = jumps(node.body) if isinstance(node, TRIES) else NONE
            for block in blocks(node):
                block[:] = self.block(block, inner)
            if skipping and node.orelse and (flags := self.flags(skipping, inner)):
                node.orelse = [_guard(flags, node.orelse, node.orelse[0])]
            if isinstance(node, gast.If) and inner.tail:
                node.returns = not node.in_python
        flags = self.flags(leaving, where)
        if not rest or not flags:
            return [node, *self.block(rest, where)]
        return [node, _guard(flags, self.block(rest, where), rest[0])]

    def _is_final_break(self, node: Any, where: _Where) -> bool:
        return (
            isinstance(node, gast.If)
            and where.loop is not None
            and not node.in_python
            and not node.orelse
            and len(node.body) == 1
            and isinstance(node.body[0], gast.Break)
            and isinstance(node.test, gast.Compare)
            and len(node.test.ops) == 1
            and not getattr(node.body[0], "leading", None)
        )

    def _break_condition(self, node: Any, where: _Where) -> Any:
        """``if test: break`` at the end of an iteration: ``done = test  # break``."""
        assert where.loop is not None
        made = _like(assign([where.loop.done], node.test, node), node)
        made.trailing = getattr(node, "trailing", "") or "# break"
        return made

    def flags(self, leaving: frozenset[str], where: _Where) -> list[str]:
        found = []
        if where.loop is not None and "break" in leaving:
            found.append(where.loop.done)
        if where.loop is not None and "continue" in leaving and where.loop.skip is not None:
            found.append(where.loop.skip)
        if where.returned and "return" in leaving:
            found.append(where.returned)
        return found

    def with_return_flag(self, node: Any, rest: list[Any], where: _Where) -> list[Any]:
        """``return`` inside something that others follow: flags here, the real return after it."""
        returned, result = self.names.fresh("returned"), self.names.fresh("result")
        inner = replace(where, tail=False, loop_tail=False, returned=returned, result=result)
        before = []
        if not (isinstance(node, LOOPS) and not node.in_python):
            before = [assign([returned], constant(False), node)]
            before[0].leading, node.leading = getattr(node, "leading", []), []
        endless = _is_endless(node)
        out = before + self.lowered(node, [], inner, inner)
        if endless:  # only a return ends it
            return out + self.block([place(gast.Return(load(result)), node)], where)
        at = rest[0] if rest else node
        final = place(gast.If(load(returned), [place(gast.Return(load(result)), at)], rest), at)
        final.in_python = False
        if rest:
            final.leading, rest[0].leading = getattr(rest[0], "leading", []), []
        return out + self.block([final], where)

    def after_loop(self, node: Any, rest: list[Any]) -> list[Any]:
        """The statements after a loop, its ``else`` among them."""
        orelse: list[Any] = node.orelse
        node.orelse = []
        if "break" not in jumps(node.body):
            return orelse + rest
        node.done = self.names.fresh("done")
        return [_guard([node.done], orelse, orelse[0]), *rest]

    def loop(self, node: Any, where: _Where) -> Any:
        """A loop's body; a converted one gets `stops`, the flags that end it."""
        if node.in_python:
            inside = replace(where, tail=False, loop=None, loop_tail=False)
            node.body = self.block(node.body, inside)
            node.orelse = self.block(node.orelse, where)  # its jumps belong to the loop around
            return node
        leaving = jumps(node.body)
        flags = _Loop(getattr(node, "done", None) or "")
        if "break" in leaving and not flags.done:
            flags.done = self.names.fresh("done")
        inside = replace(where, tail=False, loop=flags, loop_tail=True)
        node.body = self.block(node.body, inside)
        if flags.skip is not None:
            node.body.insert(0, assign([flags.skip], constant(False), node.body[0]))
        node.stops = [flags.done] if "break" in leaving else []
        node.stops += [where.returned] if "return" in leaving else []
        return node


def _is_endless(node: Any) -> bool:
    """Whether `node` is a ``while True`` without break."""
    return (
        isinstance(node, gast.While)
        and isinstance(node.test, gast.Constant)
        and bool(node.test.value)
        and "break" not in jumps(node.body)
    )


def _absorb(node: Any, rest: list[Any]) -> list[Any]:
    """Move `rest` into the branch that falls through, where the other one always jumps."""
    if not rest:
        return rest
    if always_jumps(node.body):
        node.orelse = node.orelse if always_jumps(node.orelse) else node.orelse + rest
        return []
    if always_jumps(node.orelse):
        node.body = node.body + rest
        return []
    return rest


def _guard(flags: list[str], rest: list[Any], at: Any) -> Any:
    """``if not flag: rest``."""
    test = load(flags[0]) if len(flags) == 1 else gast.BoolOp(gast.Or(), [load(f) for f in flags])
    made = place(gast.If(test, [place(gast.Pass(), at)], rest), at)
    made.in_python = False
    if rest:
        made.leading, rest[0].leading = getattr(rest[0], "leading", []), []
    return made


def _like(made: Any, node: Any) -> Any:
    """`made` in the place of `node`, with its comments."""
    for name in ("leading", "trailing", "closing"):
        if getattr(node, name, None):
            setattr(made, name, getattr(node, name))
    return place(made, node)
