"""Trying out the forms that products and convolutions of a function may have, on purpose
(`treadle tune`).

Long-running programs do the same in the background for those that take most of their time
(`treadle.runtime.cpu.learning`). What wins is kept on disk for this processor, and programs of
later processes are made with it. No value depends on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from treadle.core.records import record
from treadle.runtime.cpu import winners
from treadle.runtime.cpu.alike import Form
from treadle.runtime.cpu.chosen import alike_of
from treadle.runtime.cpu.target import this_machine
from treadle.runtime.cpu.thread_count import planned_workers
from treadle.runtime.cpu.trials import Contest
from treadle.tracing.decorator import function as as_function

__all__ = ["Tuned", "routines_of", "tune"]


@record(frozen=True)
class Tuned:
    """What was found out for a product or a convolution.

    Attributes:
        text: its class.
        rule, winner: what is chosen without trying, and what is best.
        seconds, best: processor time of the thread that has most to do, with either.
        gain: how many times as fast the winner is: 1 where it is the rule's choice.
        tried: how many candidates there were.
    """

    text: str
    rule: Form
    winner: Form
    seconds: float
    best: float
    gain: float
    tried: int

    @property
    def title(self) -> str:
        """What is computed, for people to read."""
        return alike_of(self.text).title

    @property
    def change(self) -> str:
        """What the winner does otherwise than the rule."""
        names = [f.name for f in dataclasses.fields(self.rule)]
        pairs = ((n, getattr(self.rule, n), getattr(self.winner, n)) for n in names)
        return ", ".join(f"{name} {a} -> {b}" for name, a, b in pairs if a != b)


def routines_of(function: Any, *args: Any) -> list[str]:
    """The classes of the products and convolutions that a function's program computes, for
    arguments of these specs.

    Args:
        function: a Python function, or one of `td.function`.
        args: tensors, specs or Python values to trace it with.
    """
    before = set(winners.seen)
    traced = function if hasattr(function, "get_concrete_function") else as_function(function)
    traced.get_concrete_function(*args).executable  # noqa: B018  it is compiled now
    return [text for text in winners.seen if text not in before]


def tune(texts: list[str], keep: bool = True) -> Iterator[Tuned]:
    """Try out the candidates for classes of routines, one after another.

    Args:
        texts: of `routines_of`.
        keep: whether later processes shall use what wins.

    Raises:
        MemoryError: there is no memory for the operands.
    """
    for text in texts:
        contest = Contest(alike_of(text), this_machine(), planned_workers())
        for _ in contest.steps():
            pass
        if not contest.gains:
            continue
        rule, winner = contest.forms[0], contest.winner
        if keep:
            winners.keep(text, dataclasses.astuple(winner))
        seconds, best = contest.seconds[rule], contest.seconds[winner]
        gain = contest.gains[winner] if winner != rule else 1.0
        yield Tuned(text, rule, winner, seconds, best, gain, len(contest.forms))
