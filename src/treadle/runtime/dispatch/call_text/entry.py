"""Where a call comes in: which calls plans may take, and how fields are read."""

FIELDS = """
define internal ptr @field(ptr %object, i64 %offset) alwaysinline #0 {
  %p = getelementptr i8, ptr %object, i64 %offset
  %v = load ptr, ptr %p, align 8
  ret ptr %v
}

define internal i64 @word(ptr %object, i64 %offset) alwaysinline #0 {
  %p = getelementptr i8, ptr %object, i64 %offset
  %v = load i64, ptr %p, align 8
  ret i64 %v
}
"""

ENTRY = """
define ptr @trampoline(ptr %self, ptr %args, i64 %counted, ptr %names) #0 {
entry:
  %bases = alloca [$most.bases$ x ptr], align 8
  %frame = alloca [$most.frame$ x i64], align 16
  %inputs = alloca [$most.frame$ x ptr], align 8
  %made = alloca [$most.outputs$ x ptr], align 8
  %count = and i64 %counted, 9223372036854775807
  %table = call ptr @field(ptr %self, i64 $self.table$)
  %modes.p = call ptr @field(ptr %table, i64 $table.modes$)
  %modes = load i64, ptr %modes.p, align 8
  %quiet = icmp eq i64 %modes, 0
  %positional = icmp eq ptr %names, null
  %usual = and i1 %quiet, %positional
  store ptr %args, ptr %bases
  br i1 %usual, label %first, label %portable
first:
  %plan0 = call ptr @field(ptr %self, i64 $self.plan$)
  br label %try
"""
