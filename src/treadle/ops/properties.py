"""What passes and the compiler may know about an op, beside its rules.

Each type here is that of a field of `treadle.ops.registry.Op`. The op's own module fills it in;
whoever asks needs to know no names of ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

from treadle.core.records import record
from treadle.core.shapes import Dim

Dims: TypeAlias = tuple[Dim, ...]

# (dims of the first input, attributes) -> the dims of the result if its elements are those of the
# input in the same order, else None.
SameElements: TypeAlias = "Callable[[Dims, Mapping[str, Any]], Dims | None]"

# What an op on integers does to sizes: the dim of the result, from those of the inputs.
OnDims: TypeAlias = "Callable[[Dim, Dim], Dim]"

# The number that changes nothing as the left operand, and as the right one; None where none does.
Neutral: TypeAlias = "tuple[float | None, float | None]"

TAGS = {
    "adds": "gives the sum of its inputs",
    "alias": "gives its first input's elements in order: the result may be the same memory",
    "any_elements": "moves or compares elements, of any dtype: strings too, or their numbers",
    "as_is": "gives its only input",
    "asserts": "stops the program with an error; it reads and writes no variable",
    "cheap": "computing it again costs no more than loading its result would",
    "complex_parts": "kernels move its complex numbers, join them or take them apart",
    "control_flow": "runs its regions, and may read and write variables in them",
    "custom": "only on tapes: a call of a function with a gradient of its own",
    "draws": "elements do not depend on inputs at the same position, as of random numbers",
    "dynamic": "the shape of the result depends on the elements of the inputs",
    "exact": "its NumPy form gives the bits of its kernel",
    "formula": "its NumPy form is a formula of tens of calls",
    "gives_dim": "the first dim of its result is the number that it takes",
    "gives_own_arrays": "its NumPy implementation gives arrays that nobody else holds",
    "gradient_mark": "gives its first attrs['count'] inputs, whose gradient is attrs['gradient']",
    "idempotent": "f(x, x) is x",
    "involution": "f(f(x)) is x",
    "moves": "rearranges or repeats the elements of its only input: a filled array stays one",
    "numpy_view": "what NumPy does by a view of its first input's memory",
    "passes_on": "its gradient is that of its result, also where this is IndexedSlices",
    "quiet": "has an effect, but runs no code of the user and touches no variable",
    "raises": "raises an exception of the user's program",
    "blas": "NumPy calls its BLAS, whose products of floats are as fast as a program's",
    "reduces": "reduces its input along attrs['axis'], and keeps these axes if attrs['keepdims']",
    "ring": "a sum, difference or product: exact for integers that wrap around and come back",
    "selects": "takes a part of its first input, an array or a list",
    "speaks_for_caller": "its errors name the call that the user wrote",
    "takes_rows": "its gradient rule takes IndexedSlices, and gives what it computes of their rows",
    "strings": "its NumPy implementation takes or gives strings; programs call it for these",
}


class Relation(Enum):
    """What a comparison asks."""

    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    EQUAL = "=="
    NOT_EQUAL = "!="

    @property
    def mirrored(self) -> Relation:
        """The relation of the operands in the other order."""
        return _MIRRORED.get(self, self)

    @property
    def is_less(self) -> bool:
        """Whether it asks for a smaller left operand."""
        return self in (Relation.LESS, Relation.LESS_EQUAL)

    @property
    def is_greater(self) -> bool:
        """Whether it asks for a larger left operand."""
        return self in (Relation.GREATER, Relation.GREATER_EQUAL)

    @property
    def is_order(self) -> bool:
        """Whether it asks which operand is larger."""
        return self.is_less or self.is_greater

    @property
    def holds_of_equals(self) -> bool:
        return self in (Relation.LESS_EQUAL, Relation.GREATER_EQUAL, Relation.EQUAL)


_MIRRORED = {
    Relation.LESS: Relation.GREATER,
    Relation.LESS_EQUAL: Relation.GREATER_EQUAL,
    Relation.GREATER: Relation.LESS,
    Relation.GREATER_EQUAL: Relation.LESS_EQUAL,
}


class Refusal(Enum):
    """What an op refuses when it runs; a kernel would go on with anything.

    The compiler puts a check before the node (`treadle.runtime.passes.checks`).
    """

    DIVISOR = "integers divided by zero: input 1"
    EXPONENT = "integers to a negative power: input 1"
    INTERVAL = "an interval without numbers: inputs 1 and 2"
    POSITION = "input 1 outside the axis attrs['axis'] of input 0"
    WRAPPING_POSITION = "the same, where negative positions count from the end"
    ELEMENT_POSITIONS = "inputs 1, 2, ... outside the axes of input 0; negative ones wrap"
    ROW_OF_POSITIONS = "rows of input 1 outside the first axes of input 0"
    OWN_POSITION = "input 0 outside attrs['size']; negative ones wrap"

    @property
    def is_of_axes(self) -> bool:
        """Whether it is of inputs that are positions along single axes of input 0."""
        return self in _OF_AXES

    @property
    def wraps(self) -> bool:
        """Whether negative positions count from the end."""
        return self in _WRAPPING


_WRAPPING = frozenset({Refusal.WRAPPING_POSITION, Refusal.ELEMENT_POSITIONS, Refusal.OWN_POSITION})
_OF_AXES = frozenset({Refusal.POSITION, Refusal.WRAPPING_POSITION, Refusal.ELEMENT_POSITIONS})


class PartKind(Enum):
    """How a part of an array is named."""

    ELEMENT = "element"  # a position for every axis
    INDEX = "index"  # a position along attrs["axis"]
    SLICE = "slice"  # attrs["begin"] and attrs["strides"], for every axis
    DYNAMIC_SLICE = "dynamic slice"  # those of start, stop, step that attrs["given"], attrs["axis"]
    ROWS = "rows"  # rows of positions along the first axes
    SEGMENTS = "segments"  # rows, by the number of the segment that they belong to

    @property
    def is_checked_before(self) -> bool:
        """Whether a node before an update of the part checks positions that are not known."""
        return self in (PartKind.ELEMENT, PartKind.INDEX, PartKind.SLICE)

    @property
    def is_box(self) -> bool:
        """Whether the part is a range of positions along every axis, whose size is known."""
        return self in (PartKind.INDEX, PartKind.SLICE, PartKind.DYNAMIC_SLICE)


class PartUse(Enum):
    """What an op does with a part of an array."""

    READ = "read"  # gives the part
    PLACE = "place"  # gives zeros with the part in its place: the gradient of reading it
    SET = "set"  # gives its first input with another part
    ADD = "add"  # gives its first input with the part added
    MUL = "mul"  # the same, multiplied by the part
    DIV = "div"  # the same, divided by the part
    MAX = "max"  # the same, where the larger of two elements stays
    MIN = "min"  # the same, where the smaller one stays

    @property
    def combine(self) -> str:
        """How elements of the part are stored (`treadle.kernel.ir.COMBINES`). Those that are placed
        are added: several may have one place."""
        if self in (PartUse.SET, PartUse.READ):
            return "set"
        return "add" if self is PartUse.PLACE else self.value


@record(frozen=True)
class Part:
    """An op on a part of an array.

    Attributes:
        data: the number of the input that holds the part, -1 for the last one; None for ops that
            read it. The first input of ops that change an array is the array, all others are
            positions, in the same order for all uses of one kind.
    """

    kind: PartKind
    use: PartUse
    data: int | None = None

    @property
    def changes(self) -> bool:
        """Whether the op gives its first input back, changed: it may do so in its memory."""
        return self.use not in (PartUse.READ, PartUse.PLACE)
