"""Which variables of a running function are still read: liveness on its bytecode.

Works for every function, converted or not, and needs no source.
"""

from __future__ import annotations

import bisect
import dis
import types
from typing import Any

from treadle.autograph.memory import per_code

_ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
_NO_FALL_THROUGH = _ENDS | {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}

_OUTER_STORES = {"STORE_DEREF", "STORE_GLOBAL"}

Names = frozenset[str]


def live_after(code: types.CodeType, offset: int) -> Names:
    """The names read after the instruction at `offset`, before they are assigned again.

    Includes globals that the code reads, and the names of attributes, as ``.name``.
    """
    offsets, after, _ = _liveness(code)
    return after[bisect.bisect_right(offsets, offset) - 1]  # may point behind the instruction


def stored_after(code: types.CodeType, offset: int) -> tuple[str | None, bool]:
    """The variable that gets the result of the operator at `offset`, and whether it is read
    afterwards; None and True where the result goes elsewhere."""
    offsets, after, _ = _liveness(code)
    k = bisect.bisect_right(offsets, offset)
    here = offsets[k] if k < len(offsets) else None
    stores = [i for i in dis.get_instructions(code) if i.offset == here]
    if not stores or not stores[0].opname.startswith(("STORE_FAST", "STORE_DEREF", "STORE_NAME")):
        return None, True
    name = stores[0].argval
    if isinstance(name, tuple):  # STORE_FAST_LOAD_FAST, STORE_FAST_STORE_FAST
        return name[0], name[0] in after[k] or name[0] == name[-1]
    return name, stores[0].opname == "STORE_DEREF" or name in after[k]


def outer_target(code: types.CodeType, offset: int) -> str | None:
    """The variable of an enclosing scope that gets the value of the call at `offset`."""
    offsets, _, targets = _liveness(code)
    return targets[bisect.bisect_right(offsets, offset) - 1]


@per_code
def _liveness(code: types.CodeType) -> tuple[list[int], list[Names], list[str | None]]:
    """The offsets of the instructions, the names that are live after each, and the variable of an
    enclosing scope that the next one assigns."""
    instructions = list(dis.get_instructions(code))
    position = {i.offset: k for k, i in enumerate(instructions)}
    effects = [_effect(i) for i in instructions]
    successors = [_successors(k, i, position) for k, i in enumerate(instructions)]
    before: list[Names] = [frozenset()] * len(instructions)
    after: list[Names] = [frozenset()] * len(instructions)
    changed = True
    while changed:
        changed = False
        for k in range(len(instructions) - 1, -1, -1):
            after[k] = frozenset().union(*(before[s] for s in successors[k]))
            read, written = effects[k]
            now = read | (after[k] - written)
            changed = changed or now != before[k]
            before[k] = now
    outer = [i.argval if i.opname in _OUTER_STORES else None for i in instructions[1:]]
    return [i.offset for i in instructions], after, [*outer, None]


def _successors(k: int, instruction: Any, position: dict[int, int]) -> list[int]:
    found = []
    if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
        found.append(position[instruction.argval])
    if instruction.opname not in _NO_FALL_THROUGH and k + 1 < len(position):
        found.append(k + 1)
    return found


def _effect(instruction: Any) -> tuple[Names, Names]:
    """The names that an instruction reads, and those that it assigns."""
    name, value = instruction.opname, instruction.argval
    if name == "STORE_FAST_LOAD_FAST":
        stored, loaded = value
        return frozenset({loaded} - {stored}), frozenset({stored})
    if name.startswith("STORE_FAST") or name in ("STORE_DEREF", "DELETE_FAST", "DELETE_DEREF"):
        return frozenset(), frozenset(value if isinstance(value, tuple) else [value])
    if name.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_GLOBAL")) or name in (
        "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF",
    ):  # fmt: skip
        return frozenset(value if isinstance(value, tuple) else [value]), frozenset()
    if name in ("LOAD_ATTR", "LOAD_METHOD"):
        return frozenset({f".{value}"}), frozenset()
    if name == "STORE_ATTR":
        return frozenset(), frozenset({f".{value}"})
    return frozenset(), frozenset()
