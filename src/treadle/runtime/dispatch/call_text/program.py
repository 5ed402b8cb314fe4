"""The program runs; it keeps its inputs alive where other code may run meanwhile."""

PROGRAM = """
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
  br label %ran
ran:
  %status = phi i64 [%status.1, %go], [%status.2, %go.held]
  %good = icmp eq i64 %status, $DONE$
  br i1 %good, label %wrapping, label %bad
"""

DONE_WITH = """
; the plan is not needed any more, nor are the inputs
define internal void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held) #0 {
entry:
  %holds = icmp ne i64 %hold, 0
  br i1 %holds, label %less, label %end
less:
  %p = getelementptr i8, ptr %plan, i64 $plan.active$
  %active = load i64, ptr %p, align 8
  %fewer = sub i64 %active, 1
  store i64 %fewer, ptr %p, align 8
  call void @drop(ptr %decref, ptr %inputs, i64 0, i64 %held)
  br label %end
end:
  ret void
}
"""
