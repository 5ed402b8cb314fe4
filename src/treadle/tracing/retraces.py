"""Why a function was traced again: records of its traces and the differences between them."""

from __future__ import annotations

import itertools
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from treadle.core import nest
from treadle.core.context import placed
from treadle.core.interrupts import during, is_mode
from treadle.core.origin import Origin, user_origin
from treadle.core.records import record
from treadle.core.spec import Spec, TensorSpec
from treadle.tracing.python_effects import PythonEffect, python_effects
from treadle.tracing.signature import Arguments, is_tensor_leaf, leaf_key, leaf_spec, weakly

MOST_RECORDS = 1000  # that `explain` shows
WARN_AFTER = 10  # traces, most of them caused by one argument


class RetraceError(RuntimeError):
    """A function would have been traced again inside `no_retrace`."""


@record(frozen=True)
class Difference:
    """One leaf that differs between two signatures.

    Attributes:
        argument: how Python would name it: ``x``, ``batch['image']``.
        old, new: the values or specs, as text; "(absent)" where there is none.
        advice: how to avoid a trace for it.
    """

    argument: str
    old: str
    new: str
    advice: str

    def __str__(self) -> str:
        return f"{self.argument}: {self.old} -> {self.new} ({self.advice})"


SHOWN = 5  # traces at either end of a long report, arguments alike, differences of a trace


def _grouped(leaves: Sequence[tuple[str, str, Any]]) -> Iterator[str]:
    """The arguments; of many parts of one that are alike the first and the last."""

    def kind(leaf: tuple[str, str, Any]) -> tuple[str, str]:
        return re.split(r"[.\[]|_\d+$", leaf[0])[0], leaf[1]

    for (_, text), group in itertools.groupby(leaves, key=kind):
        names = [name for name, _, _ in group]
        if len(names) > SHOWN:
            yield f"{names[0]} ... {names[-1]}: {len(names)} times {text}"
        else:
            yield from (f"{name}: {text}" for name in names)


@record(frozen=True)
class TraceRecord:
    """One trace.

    Attributes:
        number: counted from 1.
        origin: the user's line that called the function.
        leaves: (argument, text, key) for every leaf of the arguments.
        nearest: the number of the earlier trace with the fewest differences; None for the first.
        differences: the arguments that differ from that one's.
        same: the reason where nothing differs.
    """

    number: int
    origin: Origin | None
    leaves: tuple[tuple[str, str, Any], ...]
    nearest: int | None
    differences: tuple[Difference, ...]
    same: str = ""

    def __str__(self) -> str:
        where = f" at {self.origin}" if self.origin else ""
        if self.nearest is None:
            shown = ", ".join(_grouped(self.leaves)) or "no arguments"
            return f"trace {self.number}{where}: {shown}"
        lines = [f"trace {self.number}{where}, nearest to trace {self.nearest}:"]
        lines += [f"    {d}" for d in self.differences[:SHOWN]] or [f"    {self.same}"]
        more = len(self.differences) - SHOWN
        if more > 0:
            lines.append(f"    and {more} more")
        return "\n".join(lines)


class Explanation:
    """All traces of a function; prints as a report.

    Attributes:
        count: how many there were; `traces` has the newest.
        programs: by trace number how it shares a program with others, or why it does not.
        freed: by trace number why it was freed.
        operations: by trace number how many its graph has.
        effects: side effects in plain Python, which happen once a trace.
        loops: which loops over Python values the newest trace rolled, and why not the others.
    """

    def __init__(
        self,
        history: History,
        programs: Mapping[int, str],
        effects: Sequence[PythonEffect],
        loops: Sequence[Any] = (),
    ) -> None:
        self.name = history.name
        self.count = history.count
        self.traces = tuple(history.records)
        self.programs = dict(programs)
        self.freed = dict(history.freed)
        self.operations = dict(history.operations)
        self.effects = tuple(effects)
        self.loops = tuple(loops)

    def __str__(self) -> str:
        head = f"{self.name} was traced {self.count} time{'' if self.count == 1 else 's'}"
        if len(self.traces) < self.count:
            head += f", of which these are the last {len(self.traces)}"
        body = [f"  {line}" for line in self._all_lines()]
        if self.effects and self.count:
            body.append("  once a trace, not at every call, ran the Python code")
            body += [f"    {effect.text} (line {effect.line})" for effect in self.effects]
        body += [f"  {note}" for note in self.loops]
        return "\n".join([head + (":" if body else ""), *body])

    def _all_lines(self) -> list[str]:
        """The traces; of many the first and the last, and the reasons for the others."""
        if len(self.traces) <= 2 * SHOWN + 1:
            return [line for t in self.traces for line in self._lines(t)]
        left_out = self.traces[SHOWN:-SHOWN]
        causes = Counter(d.argument for t in left_out for d in t.differences)
        most = ", ".join(f"{name} ({count} times)" for name, count in causes.most_common(5))
        why = f"; what differed from the nearest earlier trace: {most}" if most else ""
        return [
            *(line for t in self.traces[:SHOWN] for line in self._lines(t)),
            f"... {len(left_out)} more traces{why}; .traces has them all",
            *(line for t in self.traces[-SHOWN:] for line in self._lines(t)),
        ]

    def _lines(self, trace: TraceRecord) -> list[str]:
        notes = [self.programs.get(trace.number), self.freed.get(trace.number)]
        first, *more = str(trace).split("\n")
        count = self.operations.get(trace.number)
        if count is not None:
            start = f"trace {trace.number}"
            size = f" ({count} operation{'' if count == 1 else 's'})"
            first = start + size + first.removeprefix(start)
        return [first, *more, *(f"    {note}" for note in notes if note)]

    __repr__ = __str__


class History:
    """The traces of one function, in order.

    `describe` gives (argument, text, key) for every leaf of a call's arguments, and `advise` the
    reason why two keys of one leaf need different traces; `unchanged` is the reason where texts
    differ but no key does.

    Attributes:
        count: how many traces there were.
        records: the newest of them.
        freed: by number, why a trace is not kept any more.
        operations: by number, how many its graph had.
    """

    def __init__(
        self,
        name: str,
        describe: Callable[[Arguments], Iterable[tuple[str, str, Any]]] | None = None,
        advise: Callable[[Any, Any], str] | None = None,
        unchanged: str = "",
    ) -> None:
        self.name = name
        self._unchanged = unchanged
        self._describe = describe or _describe
        self._advise = advise or _advice
        self.count = 0
        self.records: list[TraceRecord] = []
        self.freed: dict[int, str] = {}
        self.operations: dict[int, int] = {}
        self._warned = False
        self._warned_of_eviction = False

    def next_record(self, arguments: Arguments) -> TraceRecord:
        """The record that a trace with these arguments would get."""
        leaves = tuple(self._describe(arguments))
        number = self.count + 1
        same = next((r for r in reversed(self.records) if r.leaves == leaves), None)
        if same is not None:
            freed = self.freed.get(same.number)
            other = "another enclosing function" if placed() is None else "another device scope"
            why = f"that trace was {freed}" if freed else other
            return TraceRecord(number, user_origin(), leaves, same.number, (), why)
        best: tuple[int, TraceRecord, tuple[Difference, ...]] | None = None
        for earlier in reversed(self.records):
            differences = tuple(_differences(earlier.leaves, leaves, self._advise))
            if best is None or len(differences) < best[0]:
                best = (len(differences), earlier, differences)
                if len(differences) <= 1:
                    break
        if best is None:
            return TraceRecord(number, user_origin(), leaves, None, ())
        why = "" if best[2] else self._unchanged
        return TraceRecord(number, user_origin(), leaves, best[1].number, best[2], why)

    def admit(self, record: TraceRecord) -> None:
        """Refuse the trace inside `no_retrace`.

        Raises:
            RetraceError: naming the argument that changed.
        """
        is_same = bool(self._unchanged) and record.same == self._unchanged  # not a call of its own
        again = record.nearest is not None and not is_same
        if _forbidden.depth and again:
            raise RetraceError(f"{self.name} would be traced again: {record}")

    def add(self, record: TraceRecord, operations: int) -> None:
        """Note a trace that was made, and how many operations its graph has; warn once where one
        argument keeps causing them."""
        self.count += 1
        self.operations[record.number] = operations
        self.records.append(record)
        if len(self.records) > MOST_RECORDS:
            oldest = self.records.pop(0).number
            self.freed.pop(oldest, None)
            self.operations.pop(oldest, None)
        if self._warned or len(self.records) < WARN_AFTER:
            return
        causes = [r.differences[0].argument for r in self.records if len(r.differences) == 1]
        if len(causes) < WARN_AFTER - 1:
            return
        cause = max(set(causes), key=causes.count)
        if causes.count(cause) < WARN_AFTER - 1:
            return
        self._warned = True
        last = next(d for r in reversed(self.records) for d in r.differences if d.argument == cause)
        message = (
            f"{self.name} was traced {self.count} times, {causes.count(cause)} of them "
            f"because of {last}. Each trace costs far more than a call; see {self.name}.explain()."
        )
        _warn(message, record.origin)

    def evicted(self, numbers: Sequence[int], bound: int) -> None:
        """Note traces that had to go because of the bound; warn the first time."""
        note = f"freed: at most {bound} traces are kept (max_traces)"
        self.freed.update(dict.fromkeys(numbers, note))
        if self._warned_of_eviction:
            return
        self._warned_of_eviction = True
        _warn(
            f"{self.name} has more than {bound} traces: those not used for longest are freed, and "
            "traced again when they are needed. Fewer are needed with input_signature or "
            "reduce_retracing=True; td.function(max_traces=...) and td.config.set_max_traces set "
            f"the bound; see {self.name}.explain().",
            self.records[-1].origin,
        )

    def unreachable(self, numbers: Sequence[int]) -> None:
        """Note traces for objects that do not exist any more."""
        note = "freed: an object that it was made for no longer exists"
        self.freed.update(dict.fromkeys(numbers, note))

    def cleared(self, numbers: Sequence[int]) -> None:
        """Note traces that were forgotten on demand."""
        self.freed.update(dict.fromkeys(numbers, "freed by clear_caches"))


def _warn(message: str, place: Origin | None) -> None:
    if place is None:
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    else:
        warnings.warn_explicit(message, RuntimeWarning, place.file, place.line)


def _describe(arguments: Arguments) -> Iterator[tuple[str, str, Any]]:
    kwargs = sorted(arguments.kwargs.items())
    labelled = [*zip(arguments.names, arguments.args, strict=True), *kwargs]
    for label, value in labelled:
        static = nest.static_part(value)
        if static is not None:  # a dataset or iterator, whose leaf is a handle
            shown = [str(part) for part in nest.flatten(static) if not isinstance(part, type)]
            yield label, _shortened(" ".join(shown)), static
    paths = [p for label, value in labelled for p, _ in nest.flatten_with_paths(value, label)]
    aliases: dict[int, int] = {}
    for path, leaf in zip(paths, arguments.types, strict=True):
        if is_tensor_leaf(leaf):
            spec = leaf_spec(leaf)
            yield path, str(spec), spec
        else:
            yield path, _text(leaf), leaf_key(leaf, aliases)


def _text(leaf: Any) -> str:
    return _shortened(repr(weakly(leaf)))


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _differences(
    old: Sequence[Any], new: Sequence[Any], advise: Callable[[Any, Any], str]
) -> Iterator[Difference]:
    before = {name: (text, key) for name, text, key in old}
    after = {name: (text, key) for name, text, key in new}
    for name in [*before, *(n for n in after if n not in before)]:
        absent = ("(absent)", None)
        (old_text, old_key), (new_text, new_key) = before.get(name, absent), after.get(name, absent)
        if old_key != new_key or (name in before) != (name in after):
            yield Difference(name, old_text, new_text, advise(old_key, new_key))


def _advice(old: Any, new: Any) -> str:
    if isinstance(old, TensorSpec) and isinstance(new, TensorSpec):
        if old.dtype is not new.dtype:
            return "another dtype: cast it before the call"
        if old.rank != new.rank:
            return "another rank"
        if old.dims == new.dims:
            return "another device: a function has a trace for each"
        return "another shape: use None in an input_signature, or reduce_retracing=True"
    if isinstance(old, Spec) != isinstance(new, Spec):
        return "a tensor in one call and a Python value in the other"
    if old is None or new is None:
        return "another structure of the arguments"
    if isinstance(new, tuple) and new and new[0] in ("dataset", "iterator"):
        return "elements of another type"
    if isinstance(new, tuple) and new and new[0] in (int, float, bool, complex):
        return "a Python number is part of the signature: pass td.constant(value)"
    return "another Python value, which is part of the signature"


class _Forbidden(threading.local):
    depth = 0


_forbidden = is_mode(_Forbidden())


def no_retrace() -> during:
    """Inside the block, a function that has been traced may not be traced again.

    Raises:
        RetraceError: from the call that would need a new trace, naming the argument, its old and
            new value and the nearest earlier trace.
    """
    return during(_forbidden, "depth", _forbidden.depth + 1)


def explain_retraces(function: Any) -> Explanation:
    """Every trace of a function, with the argument that made each one necessary.

    Raises:
        TypeError: the argument was made neither by `td.function` nor by `td.jit`.
    """
    history = getattr(function, "_history", None)
    if not isinstance(history, History):
        raise TypeError(f"explain_retraces() needs a td.function or td.jit, got {function!r}")
    notes = {c.number: c.program_note for c in function.concrete_functions}
    concrete = function.concrete_functions
    loops = max(concrete, key=lambda c: c.number).loops if concrete else ()
    return Explanation(history, notes, python_effects(function.python_function), loops)
