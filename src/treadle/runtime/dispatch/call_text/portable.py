"""The call as ``Function.__call__(self, *args, **names)``."""

PORTABLE = """
; ---- Function.__call__(self, *args, **names)
portable:
  %named = icmp ne ptr %names, null
  br i1 %named, label %with.names, label %counted.all
with.names:
  %names.count = call i64 @word(ptr %names, i64 $at.size$)
  br label %counted.all
counted.all:
  %extra = phi i64 [0, %portable], [%names.count, %with.names]
  %given = add i64 %count, %extra
  %all = add i64 %given, 1
  %all.args = alloca ptr, i64 %all, align 8
  store ptr %self, ptr %all.args
  %rest = getelementptr ptr, ptr %all.args, i64 1
  %given.bytes = shl i64 %given, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %rest, ptr align 8 %args, i64 %given.bytes, i1 false)
  %function = call ptr @field(ptr %table, i64 $table.portable$)
  %vectorcall = call ptr @field(ptr %table, i64 $table.PyObject_Vectorcall$)
  %positionals = add i64 %count, 1
  %result = call ptr %vectorcall(ptr %function, ptr %all.args, i64 %positionals, ptr %names)
  ret ptr %result
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
