"""Functions that call themselves, of which only the run knows how often.

A trace follows the calls of Python's functions. Where these would never end, the function is
converted again, as a loop with a stack (`autograph.converters.recursion`), and the trace begins
anew: `Stacked` has the functions of which this is known. Functions whose calls the trace can follow
are traced call by call: they may give and take what no stack holds.
"""

from __future__ import annotations

import threading
import types
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from treadle.autograph.operators.undefined import Undefined
from treadle.core import nest
from treadle.core.interrupts import during, is_mode
from treadle.core.origin import at, user_origin
from treadle.jitted.arrays import Array, Scalar, TracedSequence
from treadle.jitted.chosen_texts import ChosenText
from treadle.jitted.errors import CallsItself, NotReached, NotStaged
from treadle.jitted.grown_lists import GrownList
from treadle.jitted.left import current
from treadle.jitted.pools import Row
from treadle.jitted.run_texts import run_char, run_text
from treadle.jitted.stacked_lists import StackedList
from treadle.ops.numbers.python_numbers import SymbolicNumber

Codes = frozenset[types.CodeType]


MOST_TRIES = 8


class _Stacked(threading.local):
    """The functions that become loops with a stack in the trace of this thread.

    Attributes:
        codes: of the functions as they are written.
        tries: how many more loops of the graph in which one calls itself for ever are tried out in
            Python, which may find out when the calls end. Each of them has such loops inside.
        doubts: variables without a value, for which branches were left out.
    """

    codes: Codes = frozenset()
    tries = MOST_TRIES

    def __init__(self) -> None:
        self.doubts: list[Undefined] = []


stacked = is_mode(_Stacked())
# From the code of a converted function, or of one in it, to the code as it is written.
_sources: WeakKeyDictionary[types.CodeType, types.CodeType] = WeakKeyDictionary()


def stacking(codes: Codes, tries: int) -> tuple[during, during]:
    """While a function is traced in which some functions become loops with a stack."""
    return during(stacked, "codes", codes), during(stacked, "tries", tries)


def check_tries(problem: Exception) -> None:
    """Called where a loop cannot be one of the graph and may be tried out in Python.

    Raises:
        CallsItself: it is this problem, and there were enough tries.
    """
    if isinstance(problem, CallsItself):
        if stacked.tries <= 0:
            raise problem
        stacked.tries -= 1


def check_doubts(begun: int) -> None:
    """Called where a loop's variables have settled, which had so many doubts before.

    Raises:
        UndefinedVariableError: the last trace left a branch out for want of a variable's value.
    """
    if len(stacked.doubts) > begun:
        stacked.doubts[begun].fail()


def note_source(made: types.CodeType, source: types.CodeType) -> None:
    """Note from which code a converted function and those in it come."""
    _sources[made] = source
    for constant in made.co_consts:
        if isinstance(constant, types.CodeType):
            note_source(constant, source)


def source_of(problem: CallsItself) -> types.CodeType | None:
    """The code, as it is written, of the function that calls itself, or has it inside."""
    return None if problem.code is None else _sources.get(problem.code)


def most_frequent(error: BaseException) -> types.CodeType | None:
    """The converted function that is called most often where a trace was too deep."""
    trace, calls = error.__traceback__, dict[types.CodeType, int]()
    while trace is not None:
        code = trace.tb_frame.f_code
        if code in _sources and code.co_name == code.co_qualname.rpartition(".")[2]:
            calls[code] = calls.get(code, 0) + 1
        trace = trace.tb_next
    return max(calls, key=calls.__getitem__) if calls else None


# -- what the generated code calls -----------------------------------------------------------------


def returned(result: Any) -> Any:
    """What a call gave.

    Raises:
        NotReached: no trace has come to the end of one.
    """
    if isinstance(result, Undefined):
        raise NotReached
    return result


def frame(*values: Any) -> tuple[Any, ...]:
    """The variables of a call that calls the function again, as they are kept meanwhile.

    Raises:
        NotStaged: one of them can change meanwhile, which what is kept would miss.
        NotReached: one has no value, as far as the trace has come: the last trace of a loop is
            refused then (`check_doubts`).
    """
    values = tuple(map(_as_char, values))
    for leaf in nest.flatten(values):
        if isinstance(leaf, Undefined):
            stacked.doubts.append(leaf)
            raise NotReached
        if not isinstance(leaf, int | float | complex | np.generic | Scalar | SymbolicNumber):
            raise NotStaged(
                f"A function that calls itself keeps {leaf!r} in a variable meanwhile, and only "
                "the run knows how many calls there are: a stack holds numbers, and tuples of "
                f"numbers; pass lists and arrays on as they are{at(user_origin())}"
            )
    if any(isinstance(v, list | dict | set) for v in values):
        raise NotStaged(
            "A function that calls itself keeps a list or dict in a variable meanwhile, which what "
            f"the stack holds would not follow: pass it on as it is{at(user_origin())}"
        )
    return values


def _as_char(value: Any) -> Any:
    """A text of one character as one that a list of the graph holds."""
    if type(value) is str and len(value) == 1:
        return run_text(value)
    if isinstance(value, ChosenText) and all(len(option) == 1 for option in value.options):
        return run_char(value)
    return value


def reached(frames: Any) -> None:
    """Called where a call is over that has kept its variables.

    Raises:
        NotReached: no trace has come to that call.
    """
    if type(frames) is list and not frames:
        raise NotReached


_BY_POSITION = (list, tuple, str, range, np.ndarray, Array, GrownList, StackedList, Row)


def by_position(values: Any) -> Any:
    """What a loop goes through, whose positions are kept.

    Raises:
        NotStaged: it has none.
    """
    now = current(values)
    if not isinstance(now, _BY_POSITION) or (
        isinstance(now, TracedSequence) and not isinstance(now, GrownList | StackedList | Row)
    ):
        raise NotStaged(
            f"A function calls itself in a loop over a {type(now).__name__}, and only the run "
            f"knows how many calls there are: go through a list of it{at(user_origin())}"
        )
    return now
