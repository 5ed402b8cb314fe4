"""Which instructions multiply numbers of 8 bits, and in which form they take their operands.

A tile of such a product multiplies groups: the numbers of several steps of k that follow one
another, in 32 bits, of which one instruction adds all products to a sum of 32 bits. Sums wrap
around and their order does not matter, so all forms have the same bits.

| form | instruction | a group |
|---|---|---|
| matrices | TDPBSSD and the like of AMX | four numbers |
| quads | VPDPBUSD of AVX-512 VNNI or AVX-VNNI, of which one factor has signs | four numbers |
| dots | SDOT, UDOT or USDOT of Arm | four numbers |
| pairs | PMADDWD of every x86-64 | two numbers, as 16 bits each |

Where a machine has none of these, products are computed as those of 32 bits: an Arm processor
without SDOT widens four numbers in an instruction as it multiplies four of 32 bits in one.
"""

from __future__ import annotations

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, WHOLE_BYTES
from treadle.runtime.cpu.target import Target

MATRICES, QUADS, DOTS, PAIRS = "matrices", "quads", "dots", "pairs"
GROUP = 4  # bytes of a group, and of a sum
WHOLE = 16  # groups in a row of a matrix register
SHIFT = 0x80808080 - (1 << 32)  # 128 in each byte of a group
_LETTERS = {dtypes.int8: "s", dtypes.uint8: "u"}
_MATRIX_FEATURES = frozenset({"amx-tile", "amx-int8"})


def byte_element(a: DType, b: DType) -> str | None:
    """The type of elements of a product of two dtypes (`WHOLE_BYTES`); None for other dtypes."""
    if a in _LETTERS and b in _LETTERS:
        return f"{_LETTERS[a]}{_LETTERS[b]}8"
    return None


def is_whole_bytes(element: str) -> bool:
    """Whether operands are numbers of 8 bits."""
    return element in WHOLE_BYTES


def is_signed(element: str, operand: int) -> bool:
    """Whether the numbers of A (operand 0) or B (1) have signs."""
    return element[operand] == "s"


def swapped(element: str) -> str:
    """The type of elements of a product with its operands exchanged."""
    return f"{element[1]}{element[0]}8" if is_whole_bytes(element) else element


def operand_bytes(element: str) -> int:
    """Bytes of an element of an operand in memory."""
    return 1 if is_whole_bytes(element) else ELEMENT_BYTES[element]


def operand_type(element: str) -> str:
    """LLVM's type of an element of an operand in memory."""
    return "i8" if is_whole_bytes(element) else element


def byte_form(element: str, target: Target) -> str | None:
    """How the machine multiplies such numbers; None where it has no instruction for them."""
    features = target.features
    if target.avx512 and features >= _MATRIX_FEATURES:
        return MATRICES
    if target.is_x86:
        has_quads = ("avx512vnni" if target.avx512 else "avxvnni") in features
        return QUADS if has_quads and target.vector_bits >= 256 else PAIRS
    if target.arch == "aarch64" and "dotprod" in features:
        alike = is_signed(element, 0) == is_signed(element, 1)
        return DOTS if alike or "i8mm" in features else None
    return None


def multiplies_in_matrices(element: str, target: Target) -> bool:
    """Whether the machine multiplies such numbers in matrix registers."""
    return is_whole_bytes(element) and byte_form(element, target) == MATRICES


def steps_of_group(element: str, target: Target) -> int:
    """Steps of k in a group."""
    return 2 if byte_form(element, target) == PAIRS else 4


def groups_of(element: str, k: Dim, target: Target) -> Dim:
    """The groups of so many steps of k; the last one may be filled up with zeros."""
    steps = steps_of_group(element, target)
    return (k + (steps - 1)) // steps


def is_shifted(element: str, target: Target) -> bool:
    """Whether A's numbers are moved by 128 into the range of the other kind: the instruction
    multiplies numbers with a sign by numbers without one."""
    alike = is_signed(element, 0) == is_signed(element, 1)
    return byte_form(element, target) == QUADS and alike
