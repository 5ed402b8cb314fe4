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
  %plan.room = call i64 @word(ptr %plan, i64 $plan.room$)
  %room.ok = icmp ule i64 %plan.room, %room
  %size.ok = and i1 %count.ok, %room.ok
  br i1 %size.ok, label %keywords, label %miss
keywords:                                 ; the same tuple of names, or one of the same names
  %plan.names = call ptr @field(ptr %plan, i64 $plan.names$)
  %names.same = icmp eq ptr %plan.names, %names
  br i1 %names.same, label %prepare, label %both.named
both.named:
  %plan.unnamed = icmp eq ptr %plan.names, null
  %call.unnamed = icmp eq ptr %names, null
  %some.unnamed = or i1 %plan.unnamed, %call.unnamed
  br i1 %some.unnamed, label %miss, label %count.names
count.names:
  %plan.names.n = call i64 @word(ptr %plan.names, i64 $at.size$)
  %names.n = call i64 @word(ptr %names, i64 $at.size$)
  %names.n.ok = icmp eq i64 %plan.names.n, %names.n
  br i1 %names.n.ok, label %compare.names, label %miss
compare.names:
  %n = phi i64 [0, %count.names], [%n.next, %compare.name]
  %more.names = icmp ult i64 %n, %names.n
  br i1 %more.names, label %compare.name, label %prepare
compare.name:
  %n.next = add i64 %n, 1
  %n.offset = shl i64 %n, 3
  %n.at = add i64 %n.offset, $at.tuple_items$
  %name = call ptr @field(ptr %names, i64 %n.at)
  %plan.name = call ptr @field(ptr %plan.names, i64 %n.at)
  %name.ok = icmp eq ptr %name, %plan.name
  br i1 %name.ok, label %compare.names, label %miss
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
  switch i64 %kind, label %look [
    i64 $HELD$, label %hold.slot
    i64 $CAPTURED$, label %captured
    i64 $DISTINCT$, label %distinct
    i64 $WRITTEN$, label %written
  ]
hold.slot:
  %owner = inttoptr i64 %a to ptr
  %owner.at = call i64 @word(ptr %c, i64 $check.b$)
  %owned = call ptr @field(ptr %owner, i64 %owner.at)
  br label %keep
captured:                                 ; memory that the function reads besides its inputs
  %captured.o = call ptr @field(ptr %table, i64 $table.None$)
  %captured.end = call i64 @word(ptr %c, i64 $check.b$)
  br label %keep
distinct:                                 ; the newest input is none of those before it
  %newest = sub i64 %held, 1
  %newest.p = getelementptr ptr, ptr %inputs, i64 %newest
  %newest.o = load ptr, ptr %newest.p
  br label %differing
differing:
  %q = phi i64 [0, %distinct], [%q.next, %differ]
  %more.before = icmp ult i64 %q, %newest
  br i1 %more.before, label %differ, label %passed
differ:
  %q.next = add i64 %q, 1
  %q.p = getelementptr ptr, ptr %inputs, i64 %q
  %q.o = load ptr, ptr %q.p
  %differs = icmp ne ptr %q.o, %newest.o
  br i1 %differs, label %differing, label %miss
written:                                  ; input a may be written and shares memory with no other
  %v.p = getelementptr ptr, ptr %inputs, i64 %a
  %v = load ptr, ptr %v.p
  %v.flags.p = getelementptr i8, ptr %v, i64 $at.array_flags$
  %v.flags = load i32, ptr %v.flags.p, align 4
  %v.writable = and i32 %v.flags, $writable$
  %v.ok = icmp ne i32 %v.writable, 0
  %v.start.p = getelementptr i64, ptr %starts, i64 %a
  %v.start = load i64, ptr %v.start.p, align 8
  %v.end.p = getelementptr i64, ptr %ends, i64 %a
  %v.end = load i64, ptr %v.end.p, align 8
  br i1 %v.ok, label %apart, label %miss
apart:
  %other = phi i64 [0, %written], [%other.next, %same.object], [%other.next, %compare.places]
  %more.places = icmp ult i64 %other, %held
  br i1 %more.places, label %other.place, label %cell
other.place:
  %other.next = add i64 %other, 1
  %other.p = getelementptr ptr, ptr %inputs, i64 %other
  %other.o = load ptr, ptr %other.p
  %other.same = icmp eq ptr %other.o, %v
  br i1 %other.same, label %same.object, label %compare.places
same.object:
  br label %apart
compare.places:
  %other.start.p = getelementptr i64, ptr %starts, i64 %other
  %other.start = load i64, ptr %other.start.p, align 8
  %other.end.p = getelementptr i64, ptr %ends, i64 %other
  %other.end = load i64, ptr %other.end.p, align 8
  %begins = icmp ult i64 %other.start, %v.end
  %goes.on = icmp ult i64 %v.start, %other.end
  %overlaps = and i1 %begins, %goes.on
  br i1 %overlaps, label %miss, label %apart
cell:                                     ; the program takes it as a variable of its own
  %v.slot = call i64 @word(ptr %c, i64 $check.slot$)
  %v.cell = call i64 @word(ptr %c, i64 $check.b$)
  %v.slot.p = getelementptr i64, ptr %frame, i64 %v.slot
  %v.cell.p = getelementptr i64, ptr %frame, i64 %v.cell
  store ptr %v.cell.p, ptr %v.slot.p, align 8
  %v.data.p = getelementptr i64, ptr %v.cell.p, i64 $cell.data$
  store i64 %v.start, ptr %v.data.p, align 8
  %v.array.p = getelementptr i64, ptr %v.cell.p, i64 $cell.array$
  store ptr %v, ptr %v.array.p, align 8
  br label %passed
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
    i64 $ARRAY$, label %maybe.array
    i64 $SAME$, label %is.same
    i64 $BOXED$, label %is.boxed
    i64 $INTEGER$, label %is.integer
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
  br i1 %array.ok, label %described, label %maybe.scalar
maybe.scalar:                             ; a NumPy scalar for a tensor of rank 0
  %scalar.record = call ptr @field(ptr %c, i64 $check.c$)
  %scalar.t = call ptr @field(ptr %scalar.record, i64 $shape.scalar$)
  %scalar.at = call i64 @word(ptr %scalar.record, i64 $shape.scalar_at$)
  %scalar.ok = icmp eq ptr %type, %scalar.t
  br i1 %scalar.ok, label %boxed, label %miss
is.same:
  %known.p = getelementptr ptr, ptr %inputs, i64 %a
  %known = load ptr, ptr %known.p
  %known.ok = icmp eq ptr %x, %known
  br i1 %known.ok, label %input, label %miss
is.boxed:                                 ; a number: its value is inside the object
  %boxed.t = inttoptr i64 %a to ptr
  %boxed.at = call i64 @word(ptr %c, i64 $check.b$)
  %boxed.ok = icmp eq ptr %type, %boxed.t
  br i1 %boxed.ok, label %boxed, label %miss
boxed:
  %value.at = phi i64 [%scalar.at, %maybe.scalar], [%boxed.at, %is.boxed]
  %value.p = getelementptr i8, ptr %x, i64 %value.at
  %boxed.slot = call i64 @word(ptr %c, i64 $check.slot$)
  %boxed.slot.p = getelementptr i64, ptr %frame, i64 %boxed.slot
  store ptr %value.p, ptr %boxed.slot.p, align 8
  br label %keep
is.integer:
  %int.t = call ptr @field(ptr %table, i64 $table.int$)
  %int.ok = icmp eq ptr %type, %int.t
  br i1 %int.ok, label %integer, label %miss
integer:
  %as.integer = call ptr @field(ptr %table, i64 $table.PyLong_AsLongLongAndOverflow$)
  %integer.v = call i64 %as.integer(ptr %x, ptr %overflow)
  %overflow.v = load i32, ptr %overflow, align 4
  %integer.fits = icmp eq i32 %overflow.v, 0
  br i1 %integer.fits, label %integer.place, label %miss
integer.place:
  %integer.p = getelementptr i64, ptr %frame, i64 %a
  store i64 %integer.v, ptr %integer.p, align 8
  %integer.slot = call i64 @word(ptr %c, i64 $check.slot$)
  %integer.slot.p = getelementptr i64, ptr %frame, i64 %integer.slot
  store ptr %integer.p, ptr %integer.slot.p, align 8
  br label %passed
described:
  %y = phi ptr [%array, %maybe.unnamed], [%x, %maybe.array]
  %dtype = call i64 @word(ptr %y, i64 $at.array_dtype$)
  %wanted.dtype = call i64 @word(ptr %c, i64 $check.b$)
  %dtype.ok = icmp eq i64 %dtype, %wanted.dtype
  br i1 %dtype.ok, label %ranked, label %miss
ranked:
  %dims.record = call ptr @field(ptr %c, i64 $check.c$)
  %rank = call i64 @word(ptr %dims.record, i64 $shape.rank$)
  %wanted.dims = getelementptr i8, ptr %dims.record, i64 $shape.dims$
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
  %wanted.p = getelementptr i64, ptr %wanted.dims, i64 %d
  %dim.v = load i64, ptr %dim.p, align 8
  %wanted = load i64, ptr %wanted.p, align 8
  %dim.ok = icmp eq i64 %dim.v, %wanted
  br i1 %dim.ok, label %dims, label %miss
input:
  %z = phi ptr [%array, %tensor], [%y, %dims], [%x, %is.same]
  %data = call ptr @field(ptr %z, i64 $at.array_data$)
  %shape.record = call ptr @field(ptr %c, i64 $check.c$)
  %z.bytes = call i64 @word(ptr %shape.record, i64 $shape.bytes$)
  %z.start = ptrtoint ptr %data to i64
  %z.end = add i64 %z.start, %z.bytes
  %slot = call i64 @word(ptr %c, i64 $check.slot$)
  %slot.p = getelementptr i64, ptr %frame, i64 %slot
  store ptr %data, ptr %slot.p, align 8
  br label %keep
keep:
  %kept.o = phi ptr [%z, %input], [%owned, %hold.slot], [%captured.o, %captured], [%x, %boxed]
  %kept.start = phi i64 [%z.start, %input], [0, %hold.slot], [%a, %captured],
    [0, %boxed]
  %kept.end = phi i64 [%z.end, %input], [0, %hold.slot], [%captured.end, %captured], [0, %boxed]
  %input.p = getelementptr ptr, ptr %inputs, i64 %held
  store ptr %kept.o, ptr %input.p
  %start.p = getelementptr i64, ptr %starts, i64 %held
  store i64 %kept.start, ptr %start.p, align 8
  %end.p = getelementptr i64, ptr %ends, i64 %held
  store i64 %kept.end, ptr %end.p, align 8
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
  %opened.items = phi ptr [%list.items, %list], [%tuple.items, %tuple], [%x, %is.dict]
  %length = call i64 @word(ptr %x, i64 $at.size$)
  %length.ok = icmp eq i64 %length, %a
  br i1 %length.ok, label %open, label %miss
open:
  %open.p = getelementptr ptr, ptr %bases, i64 %opened
  store ptr %opened.items, ptr %open.p
  %opened.more = add i64 %opened, 1
  br label %passed
passed:
  %held.next = phi i64 [%held.more, %keep], [%held, %float], [%held, %is.value],
    [%held, %equal], [%held, %open], [%held, %integer.place], [%held, %differing], [%held, %cell]
  %opened.next = phi i64 [%opened, %keep], [%opened, %float], [%opened, %is.value],
    [%opened, %equal], [%opened.more, %open], [%opened, %integer.place], [%opened, %differing],
    [%opened, %cell]
  %i.next = add i64 %i, 1
  br label %checking
"""
