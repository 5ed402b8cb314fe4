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

from treadle.core import nest
from treadle.core.interrupts import during, is_mode
from treadle.core.origin import at, user_origin
from treadle.jitted.arrays import Array, Scalar, TracedSequence
from treadle.jitted.errors import CallsItself, NotStaged
from treadle.jitted.grown_lists import GrownList
from treadle.jitted.left import current
from treadle.jitted.pools import Row
from treadle.jitted.stacked_lists import StackedList
from treadle.ops.numbers.python_numbers import SymbolicNumber

Codes = frozenset[types.CodeType]


class _Stacked(threading.local):
    """The functions that become loops with a stack in the trace of this thread.

    Attributes:
        codes: of the functions as they are written.
        follows: whether a loop of the graph in which one calls itself for ever is tried out in
            Python, which may find out when the calls end.
    """

    codes: Codes = frozenset()
    follows = True


stacked = is_mode(_Stacked())
# From the code of a converted function, or of one in it, to the code as it is written.
_sources: WeakKeyDictionary[types.CodeType, types.CodeType] = WeakKeyDictionary()


def stacking(codes: Codes, follows: bool) -> tuple[during, during]:
    """While a function is traced in which some functions become loops with a stack."""
    return during(stacked, "codes", codes), during(stacked, "follows", follows)


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


def frame(*values: Any) -> tuple[Any, ...]:
    """The variables of a call that calls the function again, as they are kept meanwhile.

    Raises:
        NotStaged: one of them can change meanwhile, which what is kept would miss.
    """
    for leaf in nest.flatten(values):
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
