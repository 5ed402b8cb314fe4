"""Arrays become tensors, and tensors the result."""

RESULTS = """
; ---- arrays become tensors, tensors the result
wrapping:
  %w = phi i64 [0, %ran], [%w.next, %wrapped]
  %more.wraps = icmp ult i64 %w, %output.count
  br i1 %more.wraps, label %unwrapped, label %pack
unwrapped:                                ; or is it a tensor that is used again?
  %w.shifted = lshr i64 %reused, %w
  %w.reused = trunc i64 %w.shifted to i1
  br i1 %w.reused, label %wrapped, label %wrap
wrap:
  %tensor.type = call ptr @field(ptr %table, i64 $table.Tensor$)
  %alloc = call ptr @field(ptr %table, i64 $table.PyType_GenericAlloc$)
  %t = call ptr %alloc(ptr %tensor.type, i64 0)
  %t.ok = icmp ne ptr %t, null
  br i1 %t.ok, label %fill.tensor, label %fail.late
fill.tensor:
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
  call void @park(ptr %table, ptr %spares, i64 %w, ptr %t)
  br label %wrapped
wrapped:
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
