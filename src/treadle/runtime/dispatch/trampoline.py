"""The trampoline: a vectorcall function that tries plans and otherwise calls the portable path.

    checks -> result arrays -> program -> tensors, numbers -> container

The plan is in use from the checks on. Python code may run while objects are made, by a collection,
and in a program that lets it (`hold`): then the inputs are held, as they are where the caller's
lists hold them. A call that no plan takes, or whose program asks
for help, is passed on to the Python method with all its arguments.
"""

from __future__ import annotations

from treadle.runtime.cpu.program_entry import DONE, EXHAUSTED, INTERRUPTED, RAISED
from treadle.runtime.cpu.program_variables import ARRAY as CELL_ARRAY
from treadle.runtime.cpu.program_variables import DATA
from treadle.runtime.cpu.target import Target
from treadle.runtime.dispatch import plans
from treadle.runtime.dispatch.call_text.checks import CHECKS
from treadle.runtime.dispatch.call_text.entry import ENTRY, FIELDS
from treadle.runtime.dispatch.call_text.failure import DROP, FAILURE
from treadle.runtime.dispatch.call_text.outputs import HANDLERS, OUTPUTS
from treadle.runtime.dispatch.call_text.portable import PORTABLE
from treadle.runtime.dispatch.call_text.probe import PROBE
from treadle.runtime.dispatch.call_text.program import DONE_WITH, PROGRAM
from treadle.runtime.dispatch.call_text.results import RESULTS
from treadle.runtime.dispatch.call_text.spares import SPARES
from treadle.runtime.dispatch.layout import CallLayout
from treadle.runtime.dispatch.plans import CHECK, ITEM, OUTPUT, PLAN, SHAPE
from treadle.runtime.dispatch.spares import EACH
from treadle.runtime.dispatch.table import WORDS, position

_CONTIGUOUS_ALIGNED, _WRITABLE = 0x0101, 0x0400  # NumPy's flags of arrays
_KINDS = (
    "TENSOR", "ARRAY", "SAME", "DISTINCT", "WRITTEN", "CAPTURED", "BOXED", "INTEGER", "FLOAT",
    "VALUE", "LIST", "TUPLE", "DICT", "HELD", "SINGLE", "LIST_RESULT", "TUPLE_RESULT",
    "DICT_RESULT", "PACKED_RESULT", "WRAPPED", "PLAIN", "SCALAR", "INT", "REAL", "COMPLEX", "BOOL",
    "RESULT", "AGAIN", "INPUT", "VIEW",
)  # fmt: skip


def trampoline_text(layout: CallLayout, tail: int, target: Target) -> str:
    """The module with ``ptr @trampoline(self, args, count, names)``, and ``@probe`` to try it with.

    Args:
        tail: offset in the function object of its words: vectorcall, first plan, table, room.
    """
    blocks = [ENTRY, CHECKS, OUTPUTS, PROGRAM, RESULTS, FAILURE, PORTABLE]
    text = "\n".join([FIELDS, *blocks, HANDLERS, SPARES, DONE_WITH, DROP, PROBE])
    for name, value in _constants(layout, tail).items():
        text = text.replace(f"${name}$", str(value))
    assert "$" not in text, text[text.index("$") :][:40]
    return text + target.attributes


def _constants(layout: CallLayout, tail: int) -> dict[str, int]:
    """What the text leaves open: offsets, sizes, numbers of kinds."""
    found = {f"at.{name}": value for name, value in layout._asdict().items()}
    found |= {f"plan.{name}": 8 * i for i, name in enumerate(PLAN)}
    found |= {f"check.{name}": 8 * i for i, name in enumerate(CHECK)}
    found |= {f"output.{name}": 8 * i for i, name in enumerate(OUTPUT)}
    found |= {f"table.{name}": 8 * position(name) for name in WORDS}
    found |= {f"item.{name}": 8 * i for i, name in enumerate(ITEM)}
    found |= {f"shape.{name}": 8 * i for i, name in enumerate(SHAPE)}
    found |= {name: getattr(plans, name) for name in _KINDS}
    return found | {
        "self.plan": tail + 8, "self.table": tail + 16, "self.room": tail + 24,
        "size.check": 8 * len(CHECK), "size.output": 8 * len(OUTPUT), "size.item": 8 * len(ITEM),
        "flags": _CONTIGUOUS_ALIGNED, "writable": _WRITABLE, "cell.data": DATA,
        "cell.array": CELL_ARRAY, "DONE": DONE, "RAISED": RAISED, "EXHAUSTED": EXHAUSTED,
        "INTERRUPTED": INTERRUPTED, "EACH": EACH,
    }  # fmt: skip
