"""The status of a program on a device that the host waits for: which check failed first.

A check there is a kernel (`Note`): where nothing has failed yet and something is bad, it writes its
number into the word of the status, and beside it what is bad. The program goes on, and its kernels
stay inside of their arrays: they clamp computed positions that they read at, and leave out those
that they write at. The last step (`Verdict`) reads the status, the only time that the host waits
for it, and the error is raised then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.shapes import substitute
from treadle.kernel.ir import Buffer, Kernel, apply, const, load, store
from treadle.ops.properties import Refusal
from treadle.runtime import interpreter
from treadle.runtime.schedule.steps import Note
from treadle.runtime.scope import Scope

WORD = dtypes.int32  # of the number of the check that failed first; 0: none did


def note_kernel(number: int, elements: Sequence[DType]) -> Kernel:
    """The kernel of a check. Its buffers are whether all is good, elements of these dtypes, and
    what it writes: where the elements are kept, and the word."""
    good, word = Buffer("good", dtypes.bool, ()), Buffer("status", WORD, ())
    given = [Buffer(f"x{n}", dtype, ()) for n, dtype in enumerate(elements)]
    kept = [Buffer(f"kept{n}", dtype, ()) for n, dtype in enumerate(elements)]
    nothing_yet = apply("eq", load(word), const(0, WORD))
    fails = apply("and", nothing_yet, apply("not", load(good)))
    pairs = [(load(x), k) for x, k in zip(given, kept, strict=True)]
    stores = [
        store(target, value=apply("select", fails, value, load(target)))
        for value, target in (*pairs, (const(number, WORD), word))
    ]
    return Kernel((), (good, *given, *kept, word), tuple(stores))


def raise_noted(note: Note, elements: Sequence[Any], symbols: Mapping[str, int]) -> None:
    """Raise the error of a check: run the NumPy implementation of its operation on operands that
    hold the bad elements at their places, and elsewhere what no operation refuses.

    Args:
        elements: what the check kept, in the order of its elements.
        symbols: the sizes that the program knows on entry.
    """
    node, kept, inputs = note.node, iter(elements), []
    harmless = 1 if node.op.refuses in (Refusal.DIVISOR, Refusal.EXPONENT) else 0
    for number, value in enumerate(node.inputs):
        shape = tuple(substitute(d, symbols) for d in value.spec.dims)
        if number not in note.numbers:
            array = np.broadcast_to(np.zeros((), value.spec.dtype.np_dtype), shape)  # type: ignore[arg-type]
        elif shape:
            array = np.full(shape, harmless, value.spec.dtype.np_dtype)  # type: ignore[arg-type]
            position = int(next(kept))
            array.reshape(-1)[position] = next(kept)
        else:
            array = np.asarray(next(kept))
        inputs.append(array)
    interpreter._Interpreter(False).node(node, inputs, Scope(symbols))
    raise errors.InternalError(
        None, node.op, f"{node.op.name} accepts what the check of it refused"
    )
