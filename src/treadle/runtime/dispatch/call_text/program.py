"""The program runs."""

PROGRAM = """
; ---- the program
run:
  %code = call ptr @field(ptr %plan, i64 $plan.run$)
  %state = call ptr @field(ptr %plan, i64 $plan.state$)
  %hits.p = getelementptr i8, ptr %plan, i64 $plan.hits$
  %hits = load i64, ptr %hits.p, align 8
  %hits.more = add i64 %hits, 1
  store i64 %hits.more, ptr %hits.p, align 8
  %status = call i64 %code(ptr %state, ptr %frame)
  %good = icmp eq i64 %status, $DONE$
  br i1 %good, label %wrapping, label %bad
"""

DONE_WITH = """
; the plan is not needed any more, nor are the inputs
define internal void @done(ptr %plan, i64 %hold, ptr %decref, ptr %inputs, i64 %held) #0 {
entry:
  %p = getelementptr i8, ptr %plan, i64 $plan.active$
  %active = load i64, ptr %p, align 8
  %fewer = sub i64 %active, 1
  store i64 %fewer, ptr %p, align 8
  %holds = icmp ne i64 %hold, 0
  br i1 %holds, label %less, label %end
less:
  call void @drop(ptr %decref, ptr %inputs, i64 0, i64 %held)
  br label %end
end:
  ret void
}
"""
