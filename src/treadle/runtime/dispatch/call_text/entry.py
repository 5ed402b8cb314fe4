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
  %overflow = alloca i32, align 4
  %count = and i64 %counted, 9223372036854775807
  %table = call ptr @field(ptr %self, i64 $self.table$)
  %modes.p = call ptr @field(ptr %table, i64 $table.modes$)
  %modes = load i64, ptr %modes.p, align 8
  %quiet = icmp eq i64 %modes, 0
  br i1 %quiet, label %first, label %portable
first:                                    ; room for the largest plan of the function
  %plan0 = call ptr @field(ptr %self, i64 $self.plan$)
  %room = call i64 @word(ptr %self, i64 $self.room$)
  %frame = alloca i64, i64 %room, align 16
  %bases = alloca ptr, i64 %room, align 8
  %inputs = alloca ptr, i64 %room, align 8
  %starts = alloca i64, i64 %room, align 8
  %ends = alloca i64, i64 %room, align 8
  %made = alloca ptr, i64 %room, align 8
  %items = alloca ptr, i64 %room, align 8
  store ptr %args, ptr %bases
  br label %try
"""
