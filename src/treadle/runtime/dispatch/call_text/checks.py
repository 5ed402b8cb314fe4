"""The plans one after another, and the checks of the arguments by each."""

CHECKS = """
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
  br i1 %lacks, label %lacking, label %found
lacking:
  %occurred = call ptr @field(ptr %table, i64 $table.PyErr_Occurred$)
  %error = call ptr %occurred()
  %no.error = icmp eq ptr %error, null
  br i1 %no.error, label %miss, label %raised
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
