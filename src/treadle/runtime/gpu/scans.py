"""Scans along an axis whose positions the threads of a team take together, neighbours at once.

Where there are few points, blocks scan parts of the axis: a first launch finds the totals of the
parts, and each block of the second one begins with those of the parts before its own. The order in
which values are combined depends on the extents alone, but is not that of a loop: sums of floats
differ from those of the processor in their last bits.
"""

from __future__ import annotations

from treadle.core.shapes import Dim
from treadle.kernel.ir import Expr, Scan
from treadle.kernel.reference import scan_start
from treadle.runtime.gpu.mapping import TOTALS, scans_of
from treadle.runtime.gpu.scalars import constant, dim_text, value_size, value_type
from treadle.runtime.gpu.stages import total
from treadle.runtime.gpu.writer import COMBINING, Names, Writer


class ScanWriter(Writer):
    """Writes a stage of a kernel with scans along one axis."""

    def _team(self) -> None:
        (axis,), team = self.mapping.inner, self.mapping.team
        parts: Dim = self.parts
        size = dim_text(axis.extent)
        first, last = "0", size
        if parts != 1:
            self.line(f"const td_index whole = ({size} + parts - 1) / parts;")
            self.line(f"const td_index chunk = (whole + {team - 1}) / {team} * {team};")
            self.line("const td_index begin = part * chunk;")
            self.line(f"const td_index end = td_min<td_index>(begin + chunk, {size});")
            first, last = "begin", "end"
        known: Names = {}
        stores = self.kernel.stores
        self.evaluate(self.results or self.kernel.roots, frozenset(self.mapping.grid), known, False)
        accumulators = {r: self._accumulator(r) for r in self.results}
        if not self.results:
            self._begin(known)
        self.open(f"for (td_index base = {first}; base < {last}; base += {team})")
        # Threads beyond the end do the last position again.
        self.line(f"const bool inside = TD_ACTIVE(active && base + lane < {last});")
        self.line(f"const td_index place = td_min<td_index>(base + lane, {last} - 1);")
        reverse = scans_of(self.kernel)[0].reverse
        self.variables[axis] = f"({size} - 1 - place)" if reverse else "place"
        along = [s for s in stores if axis in s.axes]
        roots: list[Expr] = [r.value for r in self.results]
        roots = roots or [e for s in along for e in s.roots]
        inner = dict(known)
        self.evaluate(roots, frozenset(self.variables), inner, shared_out=True)
        if self.results or along:
            self.open("if (inside)")
            self._accumulate(accumulators, inner)
            if not self.results:
                self._store_all(along, inner)
            self.close()
        del self.variables[axis]
        self.close()
        for reduce, name in accumulators.items():
            self.line(f"{name} = {self._combined(reduce, name)};")
            self._put_partial(reduce, name)
        alone = [s for s in stores if axis not in s.axes]
        if alone and not self.results:
            self._share([], alone, known)

    def _begin(self, known: Names) -> None:
        """What scans begin with: what they found in the parts before."""
        scans = scans_of(self.kernel)
        before: dict[Scan, str] = {}
        if self.parts != 1:
            reductions = list(dict.fromkeys(map(total, scans)))
            names = self._combined_parts(reductions, "part")
            before = {scan: names[total(scan)] for scan in scans}
        for scan in scans:
            name = self.states[scan] = self.fresh("s")
            start = constant(scan_start(scan), scan.dtype)
            if scan in before:
                start = f"{self._operation(scan)}::of({start}, {before[scan]})"
            self.line(f"{value_type(scan.dtype)} {name} = {start};")

    def _operation(self, scan: Scan) -> str:
        return COMBINING[TOTALS[scan.op]] if scan.op in TOTALS else f"td_{scan.op}_all"

    def _scan(self, scan: Scan, known: Names) -> None:
        state, kind, name = self.states[scan], value_type(scan.dtype), self.fresh()
        operation, nothing = self._operation(scan), constant(scan_start(scan), scan.dtype)
        given = f"inside ? {known[scan.value]} : {nothing}"
        team, warp = self.mapping.team, self.gpu.warp
        where, rest = "warp", f"{given}, {nothing}, lane, {team}"
        if team > warp:
            row = self._shared_row(kind, value_size(scan.dtype), team // warp)
            where, rest = "block", f"{rest}, {warp}, {row}"
        call = f"td_scan_in_{where}<{operation}, {kind}>({rest})"
        found = self.fresh("x")
        self.line(f"const td_scanned<{kind}> {found} = {call};")
        part = "before" if scan.exclusive else "upto"
        self.line(f"const {kind} {name} = {operation}::of({state}, {found}.{part});")
        self.line(f"{state} = {operation}::of({state}, {found}.all);")
        known[scan] = name
