"""Arrays become tensors, elements numbers, and what the caller gets is put together."""

RESULTS = """
; ---- arrays become tensors, elements of the frame numbers
wrapping:
  %w = phi i64 [0, %run], [%w.next, %wrapped]
  %more.wraps = icmp ult i64 %w, %output.count
  br i1 %more.wraps, label %unwrapped, label %itemize
unwrapped:
  %w.offset = mul i64 %w, $size.output$
  %w.o = getelementptr i8, ptr %output.table, i64 %w.offset
  %w.form = call i64 @word(ptr %w.o, i64 $output.form$)
  %w.p = getelementptr ptr, ptr %made, i64 %w
  %w.array = load ptr, ptr %w.p
  %w.word = call i64 @word(ptr %w.o, i64 $output.word$)
  %w.value = getelementptr i64, ptr %frame, i64 %w.word
  switch i64 %w.form, label %wrapped [
    i64 $WRAPPED$, label %maybe.wrapped
    i64 $SCALAR$, label %as.scalar
    i64 $INT$, label %as.int
    i64 $REAL$, label %as.real
    i64 $COMPLEX$, label %as.complex
    i64 $BOOL$, label %as.bool
  ]
as.scalar:
  %w.dtype = call ptr @field(ptr %w.o, i64 $output.dtype$)
  %new.scalar = call ptr @field(ptr %table, i64 $table.new_scalar$)
  %scalar.o = call ptr %new.scalar(ptr %w.value, ptr %w.dtype, ptr null)
  br label %counted.number
as.int:
  %w.int = load i64, ptr %w.value, align 8
  %new.int = call ptr @field(ptr %table, i64 $table.PyLong_FromLongLong$)
  %int.o = call ptr %new.int(i64 %w.int)
  br label %counted.number
as.real:
  %w.real = load double, ptr %w.value, align 8
  %new.real = call ptr @field(ptr %table, i64 $table.PyFloat_FromDouble$)
  %real.o = call ptr %new.real(double %w.real)
  br label %counted.number
as.complex:
  %w.re = load double, ptr %w.value, align 8
  %w.im.p = getelementptr double, ptr %w.value, i64 1
  %w.im = load double, ptr %w.im.p, align 8
  %new.complex = call ptr @field(ptr %table, i64 $table.PyComplex_FromDoubles$)
  %complex.o = call ptr %new.complex(double %w.re, double %w.im)
  br label %counted.number
as.bool:
  %w.byte = load i8, ptr %w.value, align 1
  %w.bool = zext i8 %w.byte to i64
  %new.bool = call ptr @field(ptr %table, i64 $table.PyBool_FromLong$)
  %bool.o = call ptr %new.bool(i64 %w.bool)
  br label %counted.number
counted.number:
  %number.o = phi ptr [%scalar.o, %as.scalar], [%int.o, %as.int], [%real.o, %as.real],
    [%complex.o, %as.complex], [%bool.o, %as.bool]
  store ptr %number.o, ptr %w.p
  %number.ok = icmp ne ptr %number.o, null
  br i1 %number.ok, label %wrapped, label %fail.late
maybe.wrapped:                            ; a tensor that is used again?
  %w.type = call ptr @field(ptr %w.array, i64 $at.type$)
  %w.wanted = call ptr @field(ptr %table, i64 $table.Tensor$)
  %w.reused = icmp eq ptr %w.type, %w.wanted
  br i1 %w.reused, label %wrapped, label %wrap
wrap:
  %tensor.type = call ptr @field(ptr %table, i64 $table.Tensor$)
  %alloc = call ptr @field(ptr %table, i64 $table.PyType_GenericAlloc$)
  %t = call ptr %alloc(ptr %tensor.type, i64 0)
  %t.ok = icmp ne ptr %t, null
  br i1 %t.ok, label %fill.tensor, label %fail.late
fill.tensor:
  %w.spec = call ptr @field(ptr %w.o, i64 $output.spec$)
  call void %incref(ptr %w.spec)
  %t.array = getelementptr i8, ptr %t, i64 $at.tensor_array$
  store ptr %w.array, ptr %t.array, align 8
  %t.spec = getelementptr i8, ptr %t, i64 $at.tensor_spec$
  store ptr %w.spec, ptr %t.spec, align 8
  store ptr %t, ptr %w.p
  call void @park(ptr %table, ptr %spares, i64 %w, ptr %t)
  br label %wrapped
wrapped:
  %w.next = add i64 %w, 1
  br label %wrapping
; ---- what the caller gets: results, arguments, views of them, values known before
itemize:
  %item.count = call i64 @word(ptr %plan, i64 $plan.items$)
  %item.table = call ptr @field(ptr %plan, i64 $plan.item_table$)
  br label %itemizing
itemizing:
  %g = phi i64 [0, %itemize], [%g.next, %put]
  %more.items = icmp ult i64 %g, %item.count
  br i1 %more.items, label %itemize.one, label %pack
itemize.one:
  %g.offset = mul i64 %g, $size.item$
  %g.i = getelementptr i8, ptr %item.table, i64 %g.offset
  %g.kind = call i64 @word(ptr %g.i, i64 $item.kind$)
  %g.number = call i64 @word(ptr %g.i, i64 $item.number$)
  %g.object = call ptr @field(ptr %g.i, i64 $item.object$)
  switch i64 %g.kind, label %known.item [
    i64 $RESULT$, label %taken
    i64 $AGAIN$, label %again
    i64 $INPUT$, label %given.item
    i64 $VIEW$, label %view
  ]
taken:                                    ; the only one to have it is the caller
  %taken.p = getelementptr ptr, ptr %made, i64 %g.number
  %taken.o = load ptr, ptr %taken.p
  store ptr null, ptr %taken.p
  br label %put
again:                                    ; an item from before, once more
  %again.p = getelementptr ptr, ptr %items, i64 %g.number
  %again.o = load ptr, ptr %again.p
  call void %incref(ptr %again.o)
  br label %put
given.item:
  %given.p = getelementptr ptr, ptr %inputs, i64 %g.number
  %given.o = load ptr, ptr %given.p
  call void %incref(ptr %given.o)
  br label %put
view:
  %seen.p = getelementptr ptr, ptr %inputs, i64 %g.number
  %seen.o = load ptr, ptr %seen.p
  %call.one = call ptr @field(ptr %table, i64 $table.PyObject_CallOneArg$)
  %view.o = call ptr %call.one(ptr %g.object, ptr %seen.o)
  %view.ok = icmp ne ptr %view.o, null
  br i1 %view.ok, label %put, label %fail.late
known.item:
  call void %incref(ptr %g.object)
  br label %put
put:
  %put.o = phi ptr [%taken.o, %taken], [%again.o, %again], [%given.o, %given.item],
    [%view.o, %view], [%g.object, %known.item]
  %put.p = getelementptr ptr, ptr %items, i64 %g
  store ptr %put.o, ptr %put.p
  %g.next = add i64 %g, 1
  br label %itemizing
pack:
  %form = call i64 @word(ptr %plan, i64 $plan.kind$)
  switch i64 %form, label %nothing [
    i64 $SINGLE$, label %single
    i64 $LIST_RESULT$, label %as.list
    i64 $TUPLE_RESULT$, label %as.tuple
    i64 $PACKED_RESULT$, label %as.tuple
    i64 $DICT_RESULT$, label %as.dict
  ]
single:
  %only = load ptr, ptr %items
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  ret ptr %only
nothing:
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  %none = call ptr @field(ptr %table, i64 $table.None$)
  call void %incref(ptr %none)
  ret ptr %none
as.list:
  %new.list = call ptr @field(ptr %table, i64 $table.PyList_New$)
  %l = call ptr %new.list(i64 %item.count)
  %l.ok = icmp ne ptr %l, null
  br i1 %l.ok, label %l.fill, label %fail.packing
l.fill:
  %l.items = call ptr @field(ptr %l, i64 $at.list_items$)
  br label %fill
as.tuple:
  %new.tuple = call ptr @field(ptr %table, i64 $table.PyTuple_New$)
  %u = call ptr %new.tuple(i64 %item.count)
  %u.ok = icmp ne ptr %u, null
  br i1 %u.ok, label %u.fill, label %fail.packing
u.fill:
  %u.items = getelementptr i8, ptr %u, i64 $at.tuple_items$
  br label %fill
fill:
  %sequence = phi ptr [%l, %l.fill], [%u, %u.fill]
  %places = phi ptr [%l.items, %l.fill], [%u.items, %u.fill]
  %fill.bytes = shl i64 %item.count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %places, ptr align 8 %items,
    i64 %fill.bytes, i1 false)
  %is.packed = icmp eq i64 %form, $PACKED_RESULT$
  br i1 %is.packed, label %packed, label %filled
filled:
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  ret ptr %sequence
packed:                                   ; Python puts the items where they belong
  %packer = call ptr @field(ptr %plan, i64 $plan.packer$)
  %call.packer = call ptr @field(ptr %table, i64 $table.PyObject_CallOneArg$)
  %structure = call ptr %call.packer(ptr %packer, ptr %sequence)
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  call void %decref(ptr %sequence)
  ret ptr %structure
as.dict:
  %new.dict = call ptr @field(ptr %table, i64 $table.PyDict_New$)
  %set = call ptr @field(ptr %table, i64 $table.PyDict_SetItem$)
  %keys = call ptr @field(ptr %plan, i64 $plan.keys$)
  %m = call ptr %new.dict()
  %m.ok = icmp ne ptr %m, null
  br i1 %m.ok, label %entries, label %fail.packing
entries:
  %e = phi i64 [0, %as.dict], [%e.next, %entry.set]
  %more.entries = icmp ult i64 %e, %item.count
  br i1 %more.entries, label %entry.one, label %dict.done
entry.one:
  %e.key.p = getelementptr ptr, ptr %keys, i64 %e
  %e.key = load ptr, ptr %e.key.p
  %e.value.p = getelementptr ptr, ptr %items, i64 %e
  %e.value = load ptr, ptr %e.value.p
  %set.status = call i32 %set(ptr %m, ptr %e.key, ptr %e.value)
  %set.ok = icmp eq i32 %set.status, 0
  br i1 %set.ok, label %entry.set, label %fail.dict
entry.set:
  call void %decref(ptr %e.value)
  %e.next = add i64 %e, 1
  br label %entries
dict.done:
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  ret ptr %m
"""
