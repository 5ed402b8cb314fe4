"""What was made is dropped; the exception is set, or another path takes the call."""

FAILURE = """
; ---- what was made is dropped; the exception is set, or another path takes the call
bad:
  call void @drop(ptr %decref, ptr %made, i64 0, i64 %output.count)
  switch i64 %status, label %leave [
    i64 $RAISED$, label %raise
    i64 $EXHAUSTED$, label %raise
    i64 $INTERRUPTED$, label %interrupted
  ]
leave:
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  br label %portable
raise:
  %failed = call ptr @field(ptr %plan, i64 $plan.failed$)
  %call.none = call ptr @field(ptr %table, i64 $table.PyObject_CallNoArgs$)
  %failure = call ptr %call.none(ptr %failed)
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  %no.failure = icmp eq ptr %failure, null
  br i1 %no.failure, label %raised, label %set.error
set.error:                                ; here, so that no frame of treadle's is in its traceback
  %failure.type = call ptr @field(ptr %failure, i64 $at.type$)
  %set.object = call ptr @field(ptr %table, i64 $table.PyErr_SetObject$)
  call void %set.object(ptr %failure.type, ptr %failure)
  call void %decref(ptr %failure)
  ret ptr null
interrupted:
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  br label %raised
raised:
  ret ptr null
fail.making:                              ; there is no memory: the other path tries, and explains
  %clear = call ptr @field(ptr %table, i64 $table.PyErr_Clear$)
  call void %clear()
  call void @other_handler(ptr %table, ptr %handler.before)
  call void @drop(ptr %decref, ptr %made, i64 0, i64 %j)
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  br label %portable
fail.late:                                ; results are in `made`, and the first ones in `items`
  %so.far = phi i64 [0, %wrap], [0, %counted.number], [%g, %view]
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  call void @drop(ptr %decref, ptr %items, i64 0, i64 %so.far)
  call void @drop(ptr %decref, ptr %made, i64 0, i64 %output.count)
  ret ptr null
fail.packing:
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  call void @drop(ptr %decref, ptr %items, i64 0, i64 %item.count)
  ret ptr null
fail.dict:
  call void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held)
  call void %decref(ptr %m)
  call void @drop(ptr %decref, ptr %items, i64 %e, i64 %item.count)
  ret ptr null
"""

DROP = """
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
"""
