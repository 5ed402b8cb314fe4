"""The plan and the inputs are kept from here on, and there are arrays for the results, the large
ones in memory that is kept.

Making an object may run Python's collector, and with it finalizers and other threads, which may
drop the plan and what lies in the caller's lists.
"""

OUTPUTS = """
; ---- the plan is in use, the inputs are held where the caller does not hold them
outputs:
  %active.p = getelementptr i8, ptr %plan, i64 $plan.active$
  %active = load i64, ptr %active.p, align 8
  %active.more = add i64 %active, 1
  store i64 %active.more, ptr %active.p, align 8
  %output.count = call i64 @word(ptr %plan, i64 $plan.outputs$)
  %output.table = call ptr @field(ptr %plan, i64 $plan.output_table$)
  %incref = call ptr @field(ptr %table, i64 $table.Py_IncRef$)
  %decref = call ptr @field(ptr %table, i64 $table.Py_DecRef$)
  %array.type = call ptr @field(ptr %table, i64 $table.ndarray$)
  %new.array = call ptr @field(ptr %table, i64 $table.new_array$)
  %hold = call i64 @word(ptr %plan, i64 $plan.hold$)
  %holds = icmp ne i64 %hold, 0
  br i1 %holds, label %holding, label %prepare.outputs
holding:
  %h = phi i64 [0, %outputs], [%h.next, %hold.one]
  %more.held = icmp ult i64 %h, %held
  br i1 %more.held, label %hold.one, label %prepare.outputs
hold.one:
  %h.p = getelementptr ptr, ptr %inputs, i64 %h
  %h.o = load ptr, ptr %h.p
  call void %incref(ptr %h.o)
  %h.next = add i64 %h, 1
  br label %holding
; ---- arrays for the results
prepare.outputs:
  %large = call i64 @word(ptr %plan, i64 $plan.large$)
  %handler.before = call ptr @own_handler(ptr %table, i64 %large)
  %spares = call ptr @field(ptr %plan, i64 $plan.spares$)
  br label %making
making:
  %j = phi i64 [0, %prepare.outputs], [%j.next, %addressed]
  %more.outputs = icmp ult i64 %j, %output.count
  br i1 %more.outputs, label %make, label %all.made
all.made:
  call void @other_handler(ptr %table, ptr %handler.before)
  br label %run
make:
  %o.offset = mul i64 %j, $size.output$
  %o = getelementptr i8, ptr %output.table, i64 %o.offset
  %o.form = call i64 @word(ptr %o, i64 $output.form$)
  %is.number = icmp uge i64 %o.form, $SCALAR$
  %is.plain = icmp eq i64 %o.form, $PLAIN$
  br i1 %is.number, label %number, label %array.result
number:                                   ; the program writes it to the frame
  %number.word = call i64 @word(ptr %o, i64 $output.word$)
  %number.p = getelementptr i64, ptr %frame, i64 %number.word
  br label %addressed
array.result:
  %idle = call ptr @spare(ptr %table, ptr %spares, ptr %o, i64 %j)
  %has.idle = icmp ne ptr %idle, null
  br i1 %has.idle, label %reuse, label %anew
reuse:
  call void %incref(ptr %idle)
  br i1 %is.plain, label %ready, label %reuse.tensor
reuse.tensor:
  %idle.array = call ptr @field(ptr %idle, i64 $at.tensor_array$)
  br label %ready
anew:
  %o.dtype = call ptr @field(ptr %o, i64 $output.dtype$)
  %o.rank = call i64 @word(ptr %o, i64 $output.rank$)
  %o.rank.32 = trunc i64 %o.rank to i32
  %o.dims = call ptr @field(ptr %o, i64 $output.dims$)
  call void %incref(ptr %o.dtype)
  %new = call ptr %new.array(ptr %array.type, ptr %o.dtype, i32 %o.rank.32, ptr %o.dims,
    ptr null, ptr null, i32 0, ptr null)
  %new.ok = icmp ne ptr %new, null
  br i1 %new.ok, label %made.anew, label %fail.making
made.anew:
  br i1 %is.plain, label %park.array, label %ready
park.array:                               ; held here as well: nobody takes it meanwhile
  call void @park(ptr %table, ptr %spares, i64 %j, ptr %new)
  br label %ready
ready:                                    ; a tensor or array that is reused, or a new array
  %made.o = phi ptr [%idle, %reuse], [%idle, %reuse.tensor], [%new, %made.anew],
    [%new, %park.array]
  %made.array = phi ptr [%idle, %reuse], [%idle.array, %reuse.tensor], [%new, %made.anew],
    [%new, %park.array]
  %new.data = call ptr @field(ptr %made.array, i64 $at.array_data$)
  br label %addressed
addressed:
  %made.here = phi ptr [%made.o, %ready], [null, %number]
  %made.data = phi ptr [%new.data, %ready], [%number.p, %number]
  %made.p = getelementptr ptr, ptr %made, i64 %j
  store ptr %made.here, ptr %made.p
  %o.slot = call i64 @word(ptr %o, i64 $output.slot$)
  %o.slot.p = getelementptr i64, ptr %frame, i64 %o.slot
  store ptr %made.data, ptr %o.slot.p, align 8
  %j.next = add i64 %j, 1
  br label %making
"""

HANDLERS = """
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
"""
