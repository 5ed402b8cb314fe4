"""The trampoline: a vectorcall function that tries plans and otherwise calls the portable path.

    checks -> result arrays -> program -> tensors -> container

No Python code can run before the program has started, so the inputs need no references unless
the program itself lets other code run (`hold`). A call that no plan takes, or whose program asks
for help, is passed on to the Python method with all its arguments.
"""

from __future__ import annotations

from treadle.runtime.cpu.program_entry import DONE, INTERRUPTED, RAISED
from treadle.runtime.cpu.target import Target
from treadle.runtime.dispatch.layout import CallLayout
from treadle.runtime.dispatch.plans import (
    CHECK,
    DICT,
    DICT_RESULT,
    FLOAT,
    HELD,
    LIST,
    LIST_RESULT,
    MOST_BASES,
    MOST_FRAME,
    MOST_OUTPUTS,
    NOTHING,
    OUTPUT,
    PLAN,
    SINGLE,
    TENSOR,
    TUPLE,
    TUPLE_RESULT,
    VALUE,
)
from treadle.runtime.dispatch.table import WORDS, position

_CONTIGUOUS_ALIGNED = 0x0101


def trampoline_text(layout: CallLayout, tail: int, target: Target) -> str:
    """The module with ``ptr @trampoline(self, args, count, names)``, and ``@probe`` to try it with.

    Args:
        tail: offset in the function object of its words: vectorcall, first plan, table.
    """
    parts = [_HEAD, _CHECKS, _OUTPUTS, _RUN, _RESULTS, _FAILURE, _PORTABLE, _PROBE]
    text = "\n".join(parts)
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
    return found | {
        "self.plan": tail + 8, "self.table": tail + 16, "size.check": 8 * len(CHECK),
        "size.output": 8 * len(OUTPUT), "most.frame": MOST_FRAME, "most.bases": MOST_BASES,
        "most.outputs": MOST_OUTPUTS, "flags": _CONTIGUOUS_ALIGNED, "TENSOR": TENSOR,
        "FLOAT": FLOAT, "VALUE": VALUE, "LIST": LIST, "TUPLE": TUPLE, "DICT": DICT,
        "HELD": HELD,
        "SINGLE": SINGLE, "LIST_RESULT": LIST_RESULT, "TUPLE_RESULT": TUPLE_RESULT,
        "DICT_RESULT": DICT_RESULT, "NOTHING": NOTHING, "DONE": DONE, "RAISED": RAISED,
        "INTERRUPTED": INTERRUPTED,
    }  # fmt: skip


_HEAD = """
define internal ptr @field(ptr %object, i64 %offset) alwaysinline #0 {
  %p = getelementptr i8, ptr %object, i64 %offset
  %v = load ptr, ptr %p, align 8
  ret ptr %v
}

define internal i64 @word(ptr %object, i64 %offset) alwaysinline #0 {
  %p = getelementptr i8, ptr %object, i64 %offset
  %v = load i64, ptr %p, align 8
  ret i64 %v
}

define ptr @trampoline(ptr %self, ptr %args, i64 %counted, ptr %names) #0 {
entry:
  %bases = alloca [$most.bases$ x ptr], align 8
  %frame = alloca [$most.frame$ x i64], align 16
  %inputs = alloca [$most.frame$ x ptr], align 8
  %made = alloca [$most.outputs$ x ptr], align 8
  %count = and i64 %counted, 9223372036854775807
  %table = call ptr @field(ptr %self, i64 $self.table$)
  %modes.p = call ptr @field(ptr %table, i64 $table.modes$)
  %modes = load i64, ptr %modes.p, align 8
  %quiet = icmp eq i64 %modes, 0
  %positional = icmp eq ptr %names, null
  %usual = and i1 %quiet, %positional
  store ptr %args, ptr %bases
  br i1 %usual, label %first, label %portable
first:
  %plan0 = call ptr @field(ptr %self, i64 $self.plan$)
  br label %try
"""

_CHECKS = """
; ---- the plans one after another, their checks in order
try:
  %plan = phi ptr [%plan0, %first], [%plan.next, %miss]
  %none.left = icmp eq ptr %plan, null
  br i1 %none.left, label %portable, label %begin
miss:
  %plan.next = call ptr @field(ptr %plan, i64 $plan.next$)
  br label %try
begin:
  %plan.count = call i64 @word(ptr %plan, i64 $plan.count$)
  %count.ok = icmp eq i64 %plan.count, %count
  br i1 %count.ok, label %prepare, label %miss
prepare:
  %words = call i64 @word(ptr %plan, i64 $plan.words$)
  %template = call ptr @field(ptr %plan, i64 $plan.frame$)
  %bytes = shl i64 %words, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %frame, ptr align 8 %template, i64 %bytes, i1 false)
  %checks = call i64 @word(ptr %plan, i64 $plan.checks$)
  %check.table = call ptr @field(ptr %plan, i64 $plan.check_table$)
  br label %checking
checking:
  %i = phi i64 [0, %prepare], [%i.next, %passed]
  %held = phi i64 [0, %prepare], [%held.next, %passed]
  %opened = phi i64 [1, %prepare], [%opened.next, %passed]
  %more.checks = icmp ult i64 %i, %checks
  br i1 %more.checks, label %check, label %outputs
check:
  %check.offset = mul i64 %i, $size.check$
  %c = getelementptr i8, ptr %check.table, i64 %check.offset
  %kind = call i64 @word(ptr %c, i64 $check.kind$)
  %base.number = call i64 @word(ptr %c, i64 $check.base$)
  %index = call i64 @word(ptr %c, i64 $check.index$)
  %key = call ptr @field(ptr %c, i64 $check.key$)
  %a = call i64 @word(ptr %c, i64 $check.a$)
  %base.p = getelementptr ptr, ptr %bases, i64 %base.number
  %base = load ptr, ptr %base.p
  %is.held = icmp eq i64 %kind, $HELD$
  br i1 %is.held, label %hold.slot, label %look
hold.slot:
  %owner = inttoptr i64 %a to ptr
  %owner.at = call i64 @word(ptr %c, i64 $check.b$)
  %owned = call ptr @field(ptr %owner, i64 %owner.at)
  br label %keep
look:
  %keyed = icmp ne ptr %key, null
  br i1 %keyed, label %by.key, label %by.index
by.index:
  %item.p = getelementptr ptr, ptr %base, i64 %index
  %item = load ptr, ptr %item.p
  br label %found
by.key:
  %get = call ptr @field(ptr %table, i64 $table.PyDict_GetItemWithError$)
  %entry.v = call ptr %get(ptr %base, ptr %key)
  %lacks = icmp eq ptr %entry.v, null
  br i1 %lacks, label %miss, label %found
found:
  %x = phi ptr [%item, %by.index], [%entry.v, %by.key]
  %type = call ptr @field(ptr %x, i64 $at.type$)
  switch i64 %kind, label %portable [
    i64 $TENSOR$, label %is.tensor
    i64 $FLOAT$, label %is.float
    i64 $VALUE$, label %is.value
    i64 $LIST$, label %is.list
    i64 $TUPLE$, label %is.tuple
    i64 $DICT$, label %is.dict
  ]
is.tensor:
  %tensor.t = call ptr @field(ptr %table, i64 $table.Tensor$)
  %tensor.ok = icmp eq ptr %type, %tensor.t
  br i1 %tensor.ok, label %tensor, label %maybe.array
tensor:
  %array = call ptr @field(ptr %x, i64 $at.tensor_array$)
  %spec = call i64 @word(ptr %x, i64 $at.tensor_spec$)
  %spec.ok = icmp eq i64 %spec, %a
  br i1 %spec.ok, label %input, label %maybe.unnamed
maybe.unnamed:
  %none.o = call i64 @word(ptr %table, i64 $table.None$)
  %unnamed = icmp eq i64 %spec, %none.o
  br i1 %unnamed, label %described, label %miss
maybe.array:
  %array.t = call ptr @field(ptr %table, i64 $table.ndarray$)
  %array.ok = icmp eq ptr %type, %array.t
  br i1 %array.ok, label %described, label %miss
described:
  %y = phi ptr [%array, %maybe.unnamed], [%x, %maybe.array]
  %dtype = call i64 @word(ptr %y, i64 $at.array_dtype$)
  %wanted.dtype = call i64 @word(ptr %c, i64 $check.b$)
  %dtype.ok = icmp eq i64 %dtype, %wanted.dtype
  br i1 %dtype.ok, label %ranked, label %miss
ranked:
  %dims.record = call ptr @field(ptr %c, i64 $check.c$)
  %rank = load i64, ptr %dims.record, align 8
  %y.rank.p = getelementptr i8, ptr %y, i64 $at.array_rank$
  %y.rank.32 = load i32, ptr %y.rank.p, align 4
  %y.rank = sext i32 %y.rank.32 to i64
  %rank.ok = icmp eq i64 %rank, %y.rank
  %y.flags.p = getelementptr i8, ptr %y, i64 $at.array_flags$
  %y.flags = load i32, ptr %y.flags.p, align 4
  %y.layout = and i32 %y.flags, $flags$
  %flags.ok = icmp eq i32 %y.layout, $flags$
  %plain.ok = and i1 %rank.ok, %flags.ok
  br i1 %plain.ok, label %measure, label %miss
measure:
  %y.dims = call ptr @field(ptr %y, i64 $at.array_dims$)
  br label %dims
dims:
  %d = phi i64 [0, %measure], [%d.next, %dim]
  %more.dims = icmp ult i64 %d, %rank
  br i1 %more.dims, label %dim, label %input
dim:
  %d.next = add i64 %d, 1
  %dim.p = getelementptr i64, ptr %y.dims, i64 %d
  %wanted.p = getelementptr i64, ptr %dims.record, i64 %d.next
  %dim.v = load i64, ptr %dim.p, align 8
  %wanted = load i64, ptr %wanted.p, align 8
  %dim.ok = icmp eq i64 %dim.v, %wanted
  br i1 %dim.ok, label %dims, label %miss
input:
  %z = phi ptr [%array, %tensor], [%y, %dims]
  %data = call ptr @field(ptr %z, i64 $at.array_data$)
  %slot = call i64 @word(ptr %c, i64 $check.slot$)
  %slot.p = getelementptr i64, ptr %frame, i64 %slot
  store ptr %data, ptr %slot.p, align 8
  br label %keep
keep:
  %kept.o = phi ptr [%z, %input], [%owned, %hold.slot]
  %input.p = getelementptr ptr, ptr %inputs, i64 %held
  store ptr %kept.o, ptr %input.p
  %held.more = add i64 %held, 1
  br label %passed
is.float:
  %float.t = call ptr @field(ptr %table, i64 $table.float$)
  %float.ok = icmp eq ptr %type, %float.t
  br i1 %float.ok, label %float, label %miss
float:
  %bits = call i64 @word(ptr %x, i64 $at.float_value$)
  %bits.ok = icmp eq i64 %bits, %a
  br i1 %bits.ok, label %passed, label %miss
is.value:
  %wanted.o = inttoptr i64 %a to ptr
  %same = icmp eq ptr %x, %wanted.o
  br i1 %same, label %passed, label %equal.type
equal.type:
  %wanted.t = call ptr @field(ptr %c, i64 $check.b$)
  %type.ok = icmp eq ptr %type, %wanted.t
  br i1 %type.ok, label %equal, label %miss
equal:
  %compare = call ptr @field(ptr %table, i64 $table.PyObject_RichCompareBool$)
  %answer = call i32 %compare(ptr %x, ptr %wanted.o, i32 2)
  %equal.ok = icmp eq i32 %answer, 1
  br i1 %equal.ok, label %passed, label %miss
is.list:
  %list.t = call ptr @field(ptr %table, i64 $table.list$)
  %list.ok = icmp eq ptr %type, %list.t
  br i1 %list.ok, label %list, label %miss
list:
  %list.items = call ptr @field(ptr %x, i64 $at.list_items$)
  br label %sized
is.tuple:
  %tuple.t = call ptr @field(ptr %table, i64 $table.tuple$)
  %tuple.ok = icmp eq ptr %type, %tuple.t
  br i1 %tuple.ok, label %tuple, label %miss
tuple:
  %tuple.items = getelementptr i8, ptr %x, i64 $at.tuple_items$
  br label %sized
is.dict:                                  ; its length follows the header, as that of a list
  %dict.t = call ptr @field(ptr %table, i64 $table.dict$)
  %dict.ok = icmp eq ptr %type, %dict.t
  br i1 %dict.ok, label %sized, label %miss
sized:
  %items = phi ptr [%list.items, %list], [%tuple.items, %tuple], [%x, %is.dict]
  %length = call i64 @word(ptr %x, i64 $at.size$)
  %length.ok = icmp eq i64 %length, %a
  br i1 %length.ok, label %open, label %miss
open:
  %open.p = getelementptr ptr, ptr %bases, i64 %opened
  store ptr %items, ptr %open.p
  %opened.more = add i64 %opened, 1
  br label %passed
passed:
  %held.next = phi i64 [%held.more, %keep], [%held, %float], [%held, %is.value],
    [%held, %equal], [%held, %open]
  %opened.next = phi i64 [%opened, %keep], [%opened, %float], [%opened, %is.value],
    [%opened, %equal], [%opened.more, %open]
  %i.next = add i64 %i, 1
  br label %checking
"""

_OUTPUTS = """
; ---- arrays for the results
outputs:
  %output.count = call i64 @word(ptr %plan, i64 $plan.outputs$)
  %output.table = call ptr @field(ptr %plan, i64 $plan.output_table$)
  %incref = call ptr @field(ptr %table, i64 $table.Py_IncRef$)
  %decref = call ptr @field(ptr %table, i64 $table.Py_DecRef$)
  %array.type = call ptr @field(ptr %table, i64 $table.ndarray$)
  %new.array = call ptr @field(ptr %table, i64 $table.new_array$)
  %large = call i64 @word(ptr %plan, i64 $plan.large$)
  %handler.before = call ptr @own_handler(ptr %table, i64 %large)
  br label %making
making:
  %j = phi i64 [0, %outputs], [%j.next, %kept]
  %more.outputs = icmp ult i64 %j, %output.count
  br i1 %more.outputs, label %make, label %all.made
all.made:
  call void @other_handler(ptr %table, ptr %handler.before)
  br label %run
make:
  %o.offset = mul i64 %j, $size.output$
  %o = getelementptr i8, ptr %output.table, i64 %o.offset
  %o.dtype = call ptr @field(ptr %o, i64 $output.dtype$)
  %o.rank = call i64 @word(ptr %o, i64 $output.rank$)
  %o.rank.32 = trunc i64 %o.rank to i32
  %o.dims = call ptr @field(ptr %o, i64 $output.dims$)
  call void %incref(ptr %o.dtype)
  %new = call ptr %new.array(ptr %array.type, ptr %o.dtype, i32 %o.rank.32, ptr %o.dims,
    ptr null, ptr null, i32 0, ptr null)
  %new.ok = icmp ne ptr %new, null
  br i1 %new.ok, label %kept, label %fail.making
kept:
  %made.p = getelementptr ptr, ptr %made, i64 %j
  store ptr %new, ptr %made.p
  %o.slot = call i64 @word(ptr %o, i64 $output.slot$)
  %new.data = call ptr @field(ptr %new, i64 $at.array_data$)
  %o.slot.p = getelementptr i64, ptr %frame, i64 %o.slot
  store ptr %new.data, ptr %o.slot.p, align 8
  %j.next = add i64 %j, 1
  br label %making
"""

_RUN = """
; ---- the program; it keeps its inputs alive where other code may run meanwhile
run:
  %code = call ptr @field(ptr %plan, i64 $plan.run$)
  %state = call ptr @field(ptr %plan, i64 $plan.state$)
  %hold = call i64 @word(ptr %plan, i64 $plan.hold$)
  %hits.p = getelementptr i8, ptr %plan, i64 $plan.hits$
  %hits = load i64, ptr %hits.p, align 8
  %hits.more = add i64 %hits, 1
  store i64 %hits.more, ptr %hits.p, align 8
  %holds = icmp ne i64 %hold, 0
  br i1 %holds, label %holding, label %go
go:
  %status.1 = call i64 %code(ptr %state, ptr %frame)
  br label %ran
holding:
  %h = phi i64 [0, %run], [%h.next, %hold.one]
  %more.held = icmp ult i64 %h, %held
  br i1 %more.held, label %hold.one, label %go.held
hold.one:
  %h.p = getelementptr ptr, ptr %inputs, i64 %h
  %h.o = load ptr, ptr %h.p
  call void %incref(ptr %h.o)
  %h.next = add i64 %h, 1
  br label %holding
go.held:
  %active.p = getelementptr i8, ptr %plan, i64 $plan.active$
  %active = load i64, ptr %active.p, align 8
  %active.more = add i64 %active, 1
  store i64 %active.more, ptr %active.p, align 8
  %status.2 = call i64 %code(ptr %state, ptr %frame)
  br label %releasing
releasing:
  %r = phi i64 [0, %go.held], [%r.next, %release.one]
  %more.releases = icmp ult i64 %r, %held
  br i1 %more.releases, label %release.one, label %ran
release.one:
  %r.p = getelementptr ptr, ptr %inputs, i64 %r
  %r.o = load ptr, ptr %r.p
  call void %decref(ptr %r.o)
  %r.next = add i64 %r, 1
  br label %releasing
ran:
  %status = phi i64 [%status.1, %go], [%status.2, %releasing]
  %good = icmp eq i64 %status, $DONE$
  br i1 %good, label %wrapping, label %bad
"""

_RESULTS = """
; ---- arrays become tensors, tensors the result
wrapping:
  %w = phi i64 [0, %ran], [%w.next, %wrapped]
  %more.wraps = icmp ult i64 %w, %output.count
  br i1 %more.wraps, label %wrap, label %pack
wrap:
  %tensor.type = call ptr @field(ptr %table, i64 $table.Tensor$)
  %alloc = call ptr @field(ptr %table, i64 $table.PyType_GenericAlloc$)
  %t = call ptr %alloc(ptr %tensor.type, i64 0)
  %t.ok = icmp ne ptr %t, null
  br i1 %t.ok, label %wrapped, label %fail.late
wrapped:
  %w.offset = mul i64 %w, $size.output$
  %w.o = getelementptr i8, ptr %output.table, i64 %w.offset
  %w.spec = call ptr @field(ptr %w.o, i64 $output.spec$)
  call void %incref(ptr %w.spec)
  %w.p = getelementptr ptr, ptr %made, i64 %w
  %w.array = load ptr, ptr %w.p
  %t.array = getelementptr i8, ptr %t, i64 $at.tensor_array$
  store ptr %w.array, ptr %t.array, align 8
  %t.spec = getelementptr i8, ptr %t, i64 $at.tensor_spec$
  store ptr %w.spec, ptr %t.spec, align 8
  store ptr %t, ptr %w.p
  %w.next = add i64 %w, 1
  br label %wrapping
pack:
  %form = call i64 @word(ptr %plan, i64 $plan.kind$)
  call void @done(ptr %plan, i64 %hold)
  switch i64 %form, label %nothing [
    i64 $SINGLE$, label %single
    i64 $LIST_RESULT$, label %as.list
    i64 $TUPLE_RESULT$, label %as.tuple
    i64 $DICT_RESULT$, label %as.dict
  ]
single:
  %only = load ptr, ptr %made
  ret ptr %only
nothing:
  %none = call ptr @field(ptr %table, i64 $table.None$)
  call void %incref(ptr %none)
  ret ptr %none
as.list:
  %new.list = call ptr @field(ptr %table, i64 $table.PyList_New$)
  %l = call ptr %new.list(i64 %output.count)
  %l.ok = icmp ne ptr %l, null
  br i1 %l.ok, label %l.fill, label %fail.packing
l.fill:
  %l.items = call ptr @field(ptr %l, i64 $at.list_items$)
  br label %fill
as.tuple:
  %new.tuple = call ptr @field(ptr %table, i64 $table.PyTuple_New$)
  %u = call ptr %new.tuple(i64 %output.count)
  %u.ok = icmp ne ptr %u, null
  br i1 %u.ok, label %u.fill, label %fail.packing
u.fill:
  %u.items = getelementptr i8, ptr %u, i64 $at.tuple_items$
  br label %fill
fill:
  %sequence = phi ptr [%l, %l.fill], [%u, %u.fill]
  %places = phi ptr [%l.items, %l.fill], [%u.items, %u.fill]
  %fill.bytes = shl i64 %output.count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %places, ptr align 8 %made,
    i64 %fill.bytes, i1 false)
  ret ptr %sequence
as.dict:
  %new.dict = call ptr @field(ptr %table, i64 $table.PyDict_New$)
  %set = call ptr @field(ptr %table, i64 $table.PyDict_SetItem$)
  %keys = call ptr @field(ptr %plan, i64 $plan.keys$)
  %m = call ptr %new.dict()
  %m.ok = icmp ne ptr %m, null
  br i1 %m.ok, label %entries, label %fail.packing
entries:
  %e = phi i64 [0, %as.dict], [%e.next, %entry.set]
  %more.entries = icmp ult i64 %e, %output.count
  br i1 %more.entries, label %entry.one, label %dict.done
entry.one:
  %e.key.p = getelementptr ptr, ptr %keys, i64 %e
  %e.key = load ptr, ptr %e.key.p
  %e.value.p = getelementptr ptr, ptr %made, i64 %e
  %e.value = load ptr, ptr %e.value.p
  %set.status = call i32 %set(ptr %m, ptr %e.key, ptr %e.value)
  %set.ok = icmp eq i32 %set.status, 0
  br i1 %set.ok, label %entry.set, label %fail.dict
entry.set:
  call void %decref(ptr %e.value)
  %e.next = add i64 %e, 1
  br label %entries
dict.done:
  ret ptr %m
"""

_FAILURE = """
; ---- what was made is dropped; the exception is set, or another path takes the call
bad:
  call void @done(ptr %plan, i64 %hold)
  call void @drop(ptr %decref, ptr %made, i64 0, i64 %output.count)
  switch i64 %status, label %portable [
    i64 $RAISED$, label %raise
    i64 $INTERRUPTED$, label %raised
  ]
raise:
  %failed = call ptr @field(ptr %plan, i64 $plan.failed$)
  %call.none = call ptr @field(ptr %table, i64 $table.PyObject_CallNoArgs$)
  %never = call ptr %call.none(ptr %failed)
  ret ptr %never
raised:
  ret ptr null
fail.making:
  call void @other_handler(ptr %table, ptr %handler.before)
  call void @drop(ptr %decref, ptr %made, i64 0, i64 %j)
  ret ptr null
fail.late:
  call void @done(ptr %plan, i64 %hold)
  br label %fail.packing
fail.packing:
  call void @drop(ptr %decref, ptr %made, i64 0, i64 %output.count)
  ret ptr null
fail.dict:
  call void %decref(ptr %m)
  call void @drop(ptr %decref, ptr %made, i64 %e, i64 %output.count)
  ret ptr null
"""

_PORTABLE = """
; ---- Function.__call__(self, *args, **names)
portable:
  %named = icmp ne ptr %names, null
  br i1 %named, label %with.names, label %counted.all
with.names:
  %names.count = call i64 @word(ptr %names, i64 $at.size$)
  br label %counted.all
counted.all:
  %extra = phi i64 [0, %portable], [%names.count, %with.names]
  %given = add i64 %count, %extra
  %all = add i64 %given, 1
  %all.args = alloca ptr, i64 %all, align 8
  store ptr %self, ptr %all.args
  %rest = getelementptr ptr, ptr %all.args, i64 1
  %given.bytes = shl i64 %given, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %rest, ptr align 8 %args, i64 %given.bytes, i1 false)
  %function = call ptr @field(ptr %table, i64 $table.portable$)
  %vectorcall = call ptr @field(ptr %table, i64 $table.PyObject_Vectorcall$)
  %positionals = add i64 %count, 1
  %result = call ptr %vectorcall(ptr %function, ptr %all.args, i64 %positionals, ptr %names)
  ret ptr %result
}

; large results come from memory that is kept: the allocator before, or null where it stays
define internal ptr @own_handler(ptr %table, i64 %large) #0 {
entry:
  %wanted = icmp ne i64 %large, 0
  br i1 %wanted, label %set, label %stay
set:
  %function = call ptr @field(ptr %table, i64 $table.set_handler$)
  %own = call ptr @field(ptr %table, i64 $table.handler$)
  %before = call ptr %function(ptr %own)
  ret ptr %before
stay:
  ret ptr null
}

define internal void @other_handler(ptr %table, ptr %before) #0 {
entry:
  %changed = icmp ne ptr %before, null
  br i1 %changed, label %set, label %stay
set:
  %function = call ptr @field(ptr %table, i64 $table.set_handler$)
  %decref = call ptr @field(ptr %table, i64 $table.Py_DecRef$)
  %own = call ptr %function(ptr %before)
  call void %decref(ptr %own)
  call void %decref(ptr %before)
  br label %stay
stay:
  ret void
}

define internal void @done(ptr %plan, i64 %hold) #0 {
entry:
  %holds = icmp ne i64 %hold, 0
  br i1 %holds, label %less, label %end
less:
  %p = getelementptr i8, ptr %plan, i64 $plan.active$
  %active = load i64, ptr %p, align 8
  %fewer = sub i64 %active, 1
  store i64 %fewer, ptr %p, align 8
  br label %end
end:
  ret void
}

define internal void @drop(ptr %decref, ptr %objects, i64 %first, i64 %last) #0 {
entry:
  br label %head
head:
  %i = phi i64 [%first, %entry], [%next, %one]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %one, label %end
one:
  %p = getelementptr ptr, ptr %objects, i64 %i
  %o = load ptr, ptr %p
  call void %decref(ptr %o)
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_PROBE = """
; a program of two float arrays of 4 elements: b = a + a; the state's first word is its status
define i64 @probe(ptr %state, ptr %frame) #0 {
  %a = load ptr, ptr %frame
  %b.p = getelementptr ptr, ptr %frame, i64 1
  %b = load ptr, ptr %b.p
  %v = load <4 x float>, ptr %a, align 4
  %s = fadd <4 x float> %v, %v
  store <4 x float> %s, ptr %b, align 4
  %status = load i64, ptr %state
  ret i64 %status
}
"""
