"""Programs to try calls with: their frame has addresses, their state's first word is the status."""

from __future__ import annotations

from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import F32, F64, I8, I64, PTR, pointer, vector
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value


def add_probes(unit: Unit) -> None:
    @unit.function(I64, internal=False, state=pointer(I64), frame=pointer(PTR))
    def probe(f: Function, state: Value, frame: Value) -> None:
        """Two float arrays of 4 elements: b = a + a."""
        four = vector(F32, 4)
        a, b = (frame[i].as_pointer(four) for i in range(2))
        v = a.load()
        b.store(v + v)
        f.ret(state.load())

    @unit.function(I64, internal=False, state=pointer(I64), frame=pointer(PTR))
    def probe_numbers(f: Function, state: Value, frame: Value) -> None:
        """For a double x, an int n and a variable v of 2 doubles: v[0] += x; gives n, x, x + n,
        n > 0, x + n*1j and an array of 1 double x."""
        x_at, n_at, cell = frame[0].as_pointer(F64), frame[1].as_pointer(I64), frame[2]
        v = cell.as_pointer(pointer(F64)).load()
        x, n = x_at.load(), n_at.load()
        real = n.to_float(F64)
        total = x + real
        v.store(v.load() + x)
        frame[3].as_pointer(I64).store(n)
        frame[4].as_pointer(F64).store(x)
        frame[5].as_pointer(F64).store(total)
        frame[6].as_pointer(I8).store(n.sgt(0).zext(I8))
        complex_ = frame[7].as_pointer(F64)
        complex_[0] = x
        complex_[1] = real
        frame[8].as_pointer(F64).store(x)
        f.ret(state.load())
