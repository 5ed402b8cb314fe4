"""Memory that a program takes while it runs, as LLVM text: the workspace and late arrays."""

from __future__ import annotations

from treadle.runtime.cpu.program_state import fixed
from treadle.runtime.memory.plan import ALIGNMENT

MOST_BYTES = 1 << 50  # what is asked for where a size exceeds it: nobody has so much

# One idle workspace is kept in the state table. A call takes it by an atomic exchange, or
# allocates one when another call has it.
WORKSPACE = f"""define internal ptr @take_workspace(ptr %state, i64 %size) noinline #0 {{
entry:
  %word = atomicrmw xchg ptr %state, i64 0 acquire
  %none = icmp eq i64 %word, 0
  br i1 %none, label %new, label %old
old:
  %base = inttoptr i64 %word to ptr
  %has = load i64, ptr %base
  %fits = icmp uge i64 %has, %size
  br i1 %fits, label %take, label %drop
take:
  %p = getelementptr i8, ptr %base, i64 {ALIGNMENT}
  ret ptr %p
drop:
  %freep = getelementptr ptr, ptr %state, i64 {fixed("free")}
  %free = load ptr, ptr %freep
  call void %free(ptr %base)
  br label %new
new:
  %allocp = getelementptr ptr, ptr %state, i64 {fixed("aligned_alloc")}
  %alloc = load ptr, ptr %allocp
  %padded = add i64 %size, {2 * ALIGNMENT - 1}
  %total = and i64 %padded, {-ALIGNMENT}
  %fresh = call ptr %alloc(i64 {ALIGNMENT}, i64 %total)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %out, label %good
out:
  ret ptr null
good:
  store i64 %size, ptr %fresh
  %q = getelementptr i8, ptr %fresh, i64 {ALIGNMENT}
  ret ptr %q
}}

define internal void @give_workspace(ptr %state, ptr %p) noinline #0 {{
entry:
  %base = getelementptr i8, ptr %p, i64 {-ALIGNMENT}
  %word = ptrtoint ptr %base to i64
  %before = atomicrmw xchg ptr %state, i64 %word release
  %none = icmp eq i64 %before, 0
  br i1 %none, label %done, label %drop
drop:
  %other = inttoptr i64 %before to ptr
  %freep = getelementptr ptr, ptr %state, i64 {fixed("free")}
  %free = load ptr, ptr %freep
  call void %free(ptr %other)
  br label %done
done:
  ret void
}}
"""

# Memory for a program that has begun; null where there is none, and then the size is in `wanted`.
ALLOC = f"""define internal ptr @alloc(ptr %state, ptr %wanted, i64 %size) noinline #0 {{
entry:
  %padded = add i64 %size, {2 * ALIGNMENT - 1}
  %total = and i64 %padded, {-ALIGNMENT}
  %allocp = getelementptr ptr, ptr %state, i64 {fixed("aligned_alloc")}
  %alloc = load ptr, ptr %allocp
  %p = call ptr %alloc(i64 {ALIGNMENT}, i64 %total)
  %none = icmp eq ptr %p, null
  br i1 %none, label %out, label %good
out:
  store i64 %size, ptr %wanted
  ret ptr null
good:
  ret ptr %p
}}
"""

LATE = f"""define internal ptr @late_alloc(
    ptr %state, ptr %chain, ptr %wanted, i64 %size
) noinline #0 {{
entry:
  %more = add i64 %size, {ALIGNMENT}
  %p = call ptr @alloc(ptr %state, ptr %wanted, i64 %more)
  %none = icmp eq ptr %p, null
  br i1 %none, label %out, label %good
out:
  ret ptr null
good:
  %before = load ptr, ptr %chain
  store ptr %before, ptr %p
  store ptr %p, ptr %chain
  %q = getelementptr i8, ptr %p, i64 {ALIGNMENT}
  ret ptr %q
}}

define internal void @late_free(ptr %state, ptr %chain, ptr %until) noinline #0 {{
entry:
  %freep = getelementptr ptr, ptr %state, i64 {fixed("free")}
  %free = load ptr, ptr %freep
  %first = load ptr, ptr %chain
  br label %next
next:
  %p = phi ptr [%first, %entry], [%after, %one]
  %end = icmp eq ptr %p, %until
  br i1 %end, label %done, label %one
one:
  %after = load ptr, ptr %p
  call void %free(ptr %p)
  br label %next
done:
  store ptr %until, ptr %chain
  ret void
}}
"""

# A growing buffer is the address of two words: its memory, or null, and how many bytes that has.
GROWN = f"""define internal ptr @grown_reserve(
    ptr %state, ptr %wanted, ptr %buffer, i64 %size
) noinline #0 {{
entry:
  %roomp = getelementptr i64, ptr %buffer, i64 1
  %room = load i64, ptr %roomp
  %p = load ptr, ptr %buffer
  %fits = icmp sle i64 %size, %room
  %some = icmp ne ptr %p, null
  %good = and i1 %fits, %some
  br i1 %good, label %done, label %grow
done:
  ret ptr %p
grow:
  %freep = getelementptr ptr, ptr %state, i64 {fixed("free")}
  %free = load ptr, ptr %freep
  call void %free(ptr %p)
  store [2 x i64] zeroinitializer, ptr %buffer
  %half = lshr i64 %size, 1
  %more = add i64 %size, %half
  %new = call ptr @alloc(ptr %state, ptr %wanted, i64 %more)
  %none = icmp eq ptr %new, null
  br i1 %none, label %out, label %enough
out:
  ret ptr null
enough:
  store ptr %new, ptr %buffer
  store i64 %more, ptr %roomp
  ret ptr %new
}}
"""

# Makes a growing buffer larger and keeps the first bytes of it.
EXTEND = f"""define internal ptr @grown_extend(
    ptr %state, ptr %wanted, ptr %buffer, i64 %used, i64 %size
) #0 {{
entry:
  %roomp = getelementptr i64, ptr %buffer, i64 1
  %room = load i64, ptr %roomp
  %p = load ptr, ptr %buffer
  %fits = icmp sle i64 %size, %room
  br i1 %fits, label %done, label %grow
done:
  ret ptr %p
grow:
  %twice = shl i64 %room, 1
  %more = call i64 @llvm.smax.i64(i64 %twice, i64 %size)
  %new = call ptr @alloc(ptr %state, ptr %wanted, i64 %more)
  %none = icmp eq ptr %new, null
  br i1 %none, label %out, label %move
out:                                    ; what is there stays until the call ends
  ret ptr null
move:
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %p, i64 %used, i1 false)
  store ptr %new, ptr %buffer
  store i64 %more, ptr %roomp
  %freep = getelementptr ptr, ptr %state, i64 {fixed("free")}
  %free = load ptr, ptr %freep
  call void %free(ptr %p)
  ret ptr %new
}}
"""
