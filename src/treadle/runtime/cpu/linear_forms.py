"""The integers that a loop computes from its counter, as polynomials.

A polynomial has a symbol for the counter, one for each number that is known before the loop, and
the symbols of the program's dims. Its value is right modulo 2**64. Where the loop uses sums or
products of 32 bits (`is_narrow`), the polynomial computes them with 64: its value is right modulo
2**32 then, and equal to the loop's number where that is a position below 2**31.
"""

from __future__ import annotations

from collections.abc import Iterator

from treadle.core import dtypes
from treadle.core.shapes import Dim, SymbolicDim, substitute
from treadle.graph.ir import Value
from treadle.kernel.ir import Affine, Apply, Const, Expr, Extent, Index, Load, postorder
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_poll import MOST_ITERATIONS
from treadle.runtime.schedule.steps import Block, Branch, Evaluate, Loop, Position

_COUNTER = "%counter"
_ARITHMETIC = (dtypes.int32, dtypes.int64)
_WIDE = (dtypes.int64, dtypes.uint64)
_MOST_TERMS = 32


class LinearForms:
    """The integers of a light loop that counts.

    Args:
        step: the loop, before anything of it is emitted.
        most_pace: the most that an iteration changes the counter by.

    Attributes:
        most_step: what a linear form may change by when the counter changes by 1, so that it does
            not wrap around within a strip of the loop.
    """

    def __init__(self, emitter: Emitter, step: Loop, most_pace: int = 1) -> None:
        counting = step.counted or step.paced
        assert counting is not None
        self.emitter, self.counter = emitter, counting.counter
        self.most_step = (1 << 62) // (MOST_ITERATIONS * most_pace)
        blocks = (step.condition, step.body)
        self._made = {s.value: s for block in blocks for s in evaluated(block)}
        self._positions = {s.value: s for block in blocks for s in positions(block)}
        self._changing = {c.param for c in step.carried if c.place is None}
        self._before = dict(emitter.registers)
        self._names: dict[str, Value] = {}
        self._forms: dict[Value, Dim | None] = {}
        self._narrow: dict[Value, bool] = {}

    def of(self, value: Value) -> Dim | None:
        """The polynomial of an integer; None where there is none."""
        if value not in self._forms:
            self._forms[value] = self._find(value)
        return self._forms[value]

    def linear(self, value: Value) -> Dim | None:
        """As `of`, but None also where there are higher powers of the counter."""
        form = self.of(value)
        return form if form is not None and self.is_linear(form) else None

    @staticmethod
    def is_linear(form: Dim) -> bool:
        return isinstance(form, int) or all(mono.count(_COUNTER) <= 1 for mono, _ in form.terms)

    @staticmethod
    def step(form: Dim) -> Dim:
        """The number that one iteration adds to a linear form."""
        counter = SymbolicDim.symbol(_COUNTER)
        return substitute(form, {_COUNTER: counter + 1}) - form

    @staticmethod
    def ends(form: Dim, least: int, most: int) -> tuple[int, int] | None:
        """The values of a linear form at two values of the counter, the lesser one first; None
        where they depend on anything else."""
        found = [substitute(form, {_COUNTER: counter}) for counter in (least, most)]
        numbers = [value for value in found if isinstance(value, int)]
        return (min(numbers), max(numbers)) if len(numbers) == 2 else None

    def is_narrow(self, value: Value) -> bool:
        """Whether the loop computes an integer with sums or products of 32 bits."""
        if value not in self._narrow:
            made = self._made.get(value)
            if value in self._positions:
                self._narrow[value] = self.is_narrow(self._positions[value].source.value)
            else:
                self._narrow[value] = made is not None and self._has_narrow(made, made.expr)
        return self._narrow[value]

    def _has_narrow(self, step: Evaluate, expr: Expr) -> bool:
        for part in postorder([expr]):
            if isinstance(part, Apply) and part.fn != "cast" and part.dtype is dtypes.int32:
                return True
            if isinstance(part, Load) and self.is_narrow(step.inputs[part.buffer.name].value):
                return True
        return False

    def index(self, step: Evaluate, index: Index) -> tuple[Dim | None, bool]:
        """The form of a load's position, if it is linear in the counter, and whether it is narrow.
        The position was checked, or is known to be inside the array."""
        if isinstance(index, Affine):
            return (index.offset if not index.terms else None), False
        form = self._of_expr(step, index)
        known = form is not None and self.is_linear(form)
        return (form, self._has_narrow(step, index)) if known else (None, False)

    def _find(self, value: Value) -> Dim | None:
        if value is self.counter:
            return SymbolicDim.symbol(_COUNTER)
        if value in self._positions:
            return self.of(self._positions[value].source.value)
        if value.spec.dtype not in (*_ARITHMETIC, *_WIDE):
            return None
        made = self._made.get(value)
        if made is not None:
            return self._of_expr(made, made.expr)
        if value in self._changing or value not in self._before:
            return None
        name = f"%{len(self._names)}"
        self._names[name] = value
        return SymbolicDim.symbol(name)

    def _of_expr(self, step: Evaluate, expr: Expr) -> Dim | None:
        match expr:
            case Const() if expr.dtype.is_integer:
                return int(expr.value)
            case Extent():
                return expr.dim
            case Load() if not expr.index and step.inputs[expr.buffer.name].place is None:
                return self.of(step.inputs[expr.buffer.name].value)
            case Apply(fn="cast"):
                return self._of_cast(step, expr)
            case Apply() if expr.dtype in _ARITHMETIC and expr.fn in ("add", "sub", "mul"):
                if expr.dtype is dtypes.int64 and self._has_narrow(step, expr):
                    return None  # more than 32 bits of it may be needed
                forms = [self._of_expr(step, a) for a in expr.args]
                return self._combined(expr.fn, forms)
        return None

    def _of_cast(self, step: Evaluate, cast: Apply) -> Dim | None:
        """The form of a cast to a type that is at least as wide."""
        (given,) = cast.args
        kinds = (*_ARITHMETIC, *_WIDE)
        if cast.dtype not in kinds or not given.dtype.is_integer:
            return None
        if given.dtype in kinds and given.dtype.size <= cast.dtype.size:
            return self._of_expr(step, given)
        if not isinstance(given, Load) or given.index or given.dtype.size > cast.dtype.size:
            return None
        operand = step.inputs[given.buffer.name]
        known = operand.place is None and operand.value not in self._made
        return self.of(operand.value) if known else None

    @staticmethod
    def _combined(function: str, forms: list[Dim | None]) -> Dim | None:
        a, b = forms
        if a is None or b is None:
            return None
        if function == "mul":
            terms = [1 if isinstance(x, int) else len(x.terms) for x in (a, b)]
            return a * b if terms[0] * terms[1] <= _MOST_TERMS else None
        return a + b if function == "add" else a - b

    # -- values

    def at(self, form: Dim, counter: str) -> str:
        """Write the value of a form, of 64 bits, for a value of the counter."""
        fn = self.emitter.fn
        if isinstance(form, int):
            return _constant(form)
        total = ""
        for mono, coefficient in form.terms:
            factors = [self._atom(atom, counter) for atom in mono]
            if coefficient != 1 or not factors:
                factors.append(_constant(coefficient))
            term = factors[0]
            for factor in factors[1:]:
                term = fn.value(f"mul i64 {term}, {factor}")
            total = fn.value(f"add i64 {total}, {term}") if total else term
        return total or "0"

    def _atom(self, atom: object, counter: str) -> str:
        if atom == _COUNTER:
            return counter
        if isinstance(atom, str) and atom in self._names:
            value = self._names[atom]
            return self.wide(self._before[value], value)
        return str(self.emitter.dim(SymbolicDim({(atom,): 1})))  # type: ignore[dict-item]

    def wide(self, register: str, value: Value) -> str:
        """The register of an integer, extended to 64 bits."""
        return self.emitter.elements.apply("cast", [register], [value.spec.dtype], dtypes.int64)


def _constant(number: int) -> str:
    return str((number + (1 << 63)) % (1 << 64) - (1 << 63))


def evaluated(block: Block) -> Iterator[Evaluate]:
    """The registers that a block computes, also in branches."""
    for step in block.steps:
        if isinstance(step, Evaluate):
            yield step
        elif isinstance(step, Branch):
            yield from (*evaluated(step.then), *evaluated(step.otherwise))


def positions(block: Block) -> Iterator[Position]:
    """The positions that a block checks, also in branches."""
    for step in block.steps:
        if isinstance(step, Position):
            yield step
        elif isinstance(step, Branch):
            yield from (*positions(step.then), *positions(step.otherwise))
