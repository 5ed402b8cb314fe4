"""Results that a plan keeps (`dispatch.spares`): one that nobody holds, and a new one put in."""

SPARES = """
; a tensor or plain array for result j that only the plan holds, unchanged since it was made; null
; where none is
define internal ptr @spare(ptr %table, ptr %spares, ptr %o, i64 %j) #0 {
entry:
  %none = icmp eq ptr %spares, null
  br i1 %none, label %no, label %some
no:
  ret ptr null
some:
  %first = mul i64 %j, $EACH$
  %last = add i64 %first, $EACH$
  %array.type = call ptr @field(ptr %table, i64 $table.ndarray$)
  %dtype = call i64 @word(ptr %o, i64 $output.dtype$)
  %rank = call i64 @word(ptr %o, i64 $output.rank$)
  %dims = call ptr @field(ptr %o, i64 $output.dims$)
  %flags = call i64 @word(ptr %o, i64 $output.flags$)
  %form = call i64 @word(ptr %o, i64 $output.form$)
  %plain = icmp eq i64 %form, $PLAIN$
  br label %next
next:
  %k = phi i64 [%first, %some], [%k.next, %busy]
  %more = icmp ult i64 %k, %last
  br i1 %more, label %look, label %no
busy:
  %k.next = add i64 %k, 1
  br label %next
look:                                     ; an empty place holds None, which others hold too
  %t.p = getelementptr ptr, ptr %spares, i64 %k
  %t = load ptr, ptr %t.p
  %t.count = call i64 @word(ptr %t, i64 $at.refcount$)
  %alone = icmp eq i64 %t.count, 1
  br i1 %alone, label %open, label %busy
open:
  br i1 %plain, label %array, label %inside
inside:
  %t.weak = call ptr @field(ptr %t, i64 $at.tensor_weak$)
  %t.array = call ptr @field(ptr %t, i64 $at.tensor_array$)
  %unseen = icmp eq ptr %t.weak, null
  %a.there = icmp ne ptr %t.array, null
  %both = and i1 %unseen, %a.there
  br i1 %both, label %array, label %busy
array:
  %a = phi ptr [%t, %open], [%t.array, %inside]
  %a.type = call ptr @field(ptr %a, i64 $at.type$)
  %a.plain = icmp eq ptr %a.type, %array.type
  br i1 %a.plain, label %shape, label %busy
shape:
  %a.count = call i64 @word(ptr %a, i64 $at.refcount$)
  %a.alone = icmp eq i64 %a.count, 1
  %a.weak = call ptr @field(ptr %a, i64 $at.array_weak$)
  %a.unseen = icmp eq ptr %a.weak, null
  %a.dtype = call i64 @word(ptr %a, i64 $at.array_dtype$)
  %dtype.same = icmp eq i64 %a.dtype, %dtype
  %a.rank.p = getelementptr i8, ptr %a, i64 $at.array_rank$
  %a.rank.32 = load i32, ptr %a.rank.p, align 4
  %a.rank = sext i32 %a.rank.32 to i64
  %rank.same = icmp eq i64 %a.rank, %rank
  %a.flags.p = getelementptr i8, ptr %a, i64 $at.array_flags$
  %a.flags.32 = load i32, ptr %a.flags.p, align 4
  %a.flags = sext i32 %a.flags.32 to i64
  %flags.same = icmp eq i64 %a.flags, %flags
  %c1 = and i1 %a.alone, %a.unseen
  %c2 = and i1 %dtype.same, %rank.same
  %c3 = and i1 %c1, %c2
  %good = and i1 %c3, %flags.same
  br i1 %good, label %measure, label %busy
measure:
  %a.dims = call ptr @field(ptr %a, i64 $at.array_dims$)
  br label %sizes
sizes:
  %d = phi i64 [0, %measure], [%d.next, %size]
  %more.dims = icmp ult i64 %d, %rank
  br i1 %more.dims, label %size, label %yes
size:
  %d.next = add i64 %d, 1
  %have.p = getelementptr i64, ptr %a.dims, i64 %d
  %want.p = getelementptr i64, ptr %dims, i64 %d
  %have = load i64, ptr %have.p, align 8
  %want = load i64, ptr %want.p, align 8
  %size.same = icmp eq i64 %have, %want
  br i1 %size.same, label %sizes, label %busy
yes:
  ret ptr %t
}

; keep `t` for result j, in place of the one that has waited longest
define internal void @park(ptr %table, ptr %spares, i64 %j, ptr %t) #0 {
entry:
  %none = icmp eq ptr %spares, null
  br i1 %none, label %done, label %some
done:
  ret void
some:
  %incref = call ptr @field(ptr %table, i64 $table.Py_IncRef$)
  %decref = call ptr @field(ptr %table, i64 $table.Py_DecRef$)
  %first = mul i64 %j, $EACH$
  call void %incref(ptr %t)
  br label %moving
moving:
  %k = phi i64 [0, %some], [%k.next, %moving]
  %moved = phi ptr [%t, %some], [%before, %moving]
  %place = add i64 %first, %k
  %p = getelementptr ptr, ptr %spares, i64 %place
  %before = load ptr, ptr %p
  store ptr %moved, ptr %p
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, $EACH$
  br i1 %more, label %moving, label %out
out:
  call void %decref(ptr %before)
  ret void
}
"""
