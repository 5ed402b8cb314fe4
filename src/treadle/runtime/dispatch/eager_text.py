"""Native operators of eager tensors: small arrays of one dtype, or an array and a number.

``ptr @operator_add(self, args, count)`` is a METH_FASTCALL method of `Tensor`. What it does not
take (other types and dtypes, broadcasts, large arrays, traces and tapes at work) it passes on to
the operator written in Python.
"""

from __future__ import annotations

from treadle.runtime.cpu.target import Target
from treadle.runtime.dispatch.layout import CallLayout
from treadle.runtime.dispatch.table import WORDS, position

OPERATORS = ("add", "sub", "mul", "truediv", "radd", "rsub", "rmul", "rtruediv")
DTYPES = {"f4": "float", "f8": "double", "i4": "i32", "i8": "i64"}
MOST_ELEMENTS = 256  # NumPy's loops are better from there
MOST_RANK = 32

_INSTRUCTIONS = {
    "add": ("fadd", "add"), "sub": ("fsub", "sub"), "mul": ("fmul", "mul"), "truediv": ("fdiv", ""),
}  # fmt: skip
# Words of the record: the table's, the Python operators, the dtypes, and what numbers need.
RECORD = (
    *WORDS, *(f"python_{name}" for name in OPERATORS), *(f"dtype_{name}" for name in DTYPES),
    "int", "PyLong_AsLongLongAndOverflow",
)  # fmt: skip


def eager_text(layout: CallLayout, target: Target) -> str:
    """The module: the operators, and ``void @set_word(i64 place, i64 value)`` for their record."""
    parts = [f"@record = internal global [{len(RECORD)} x i64] zeroinitializer", _COMMON]
    for name in OPERATORS:
        parts.append(_operator(name))
    for name in ("add", "sub", "mul", "truediv"):
        parts += [_loop(name, dtype) for dtype in DTYPES if _INSTRUCTIONS[name][dtype[0] == "i"]]
    text = "\n".join(parts)
    for name, value in layout._asdict().items():
        text = text.replace(f"$at.{name}$", str(value))
    for i, name in enumerate(RECORD):
        text = text.replace(f"$record.{name}$", str(i))
    text = text.replace("$most$", str(MOST_ELEMENTS))
    assert "$" not in text, text[text.index("$") :][:40]
    assert position("modes") == 0
    return text + target.attributes


def _loop(name: str, dtype: str) -> str:
    """``out[i] = a[i * sa] op b[i * sb]``; the strides are 0 or 1."""
    kind = DTYPES[dtype]
    instruction = _INSTRUCTIONS[name][dtype[0] == "i"]
    return f"""
define internal void @{name}_{dtype}(ptr %a, i64 %sa, ptr %b, i64 %sb, ptr %out, i64 %n) #0 {{
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %ia = mul i64 %i, %sa
  %ib = mul i64 %i, %sb
  %pa = getelementptr {kind}, ptr %a, i64 %ia
  %pb = getelementptr {kind}, ptr %b, i64 %ib
  %x = load {kind}, ptr %pa
  %y = load {kind}, ptr %pb
  %z = {instruction} {kind} %x, %y
  %po = getelementptr {kind}, ptr %out, i64 %i
  store {kind} %z, ptr %po
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}"""


def _operator(name: str) -> str:
    """The method: convert the other operand, compute, wrap; or call the Python operator."""
    base, swapped = name.removeprefix("r"), name.startswith("r")
    first, second = ("%b, i64 %sb", "%a, i64 %sa") if swapped else ("%a, i64 %sa", "%b, i64 %sb")
    integers = _INSTRUCTIONS[base][1]
    computed = []
    for dtype in DTYPES:
        if dtype[0] == "i" and not integers:
            computed.append(f"do.{dtype}:\n  br label %python")
            continue
        computed.append(
            f"do.{dtype}:\n  call void @{base}_{dtype}(ptr {first}, ptr {second}, ptr %to, "
            f"i64 %n)\n  br label %wrap"
        )
    refused = "" if integers else "  br i1 %is.integer, label %python, label %made.room\nmade.room:"
    return _OPERATOR.format(name=name, computed="\n".join(computed), refused=refused)


_COMMON = """
define void @set_word(i64 %place, i64 %value) #0 {
  %p = getelementptr i64, ptr @record, i64 %place
  store i64 %value, ptr %p
  ret void
}

define internal ptr @record_word(i64 %place) alwaysinline #0 {
  %p = getelementptr ptr, ptr @record, i64 %place
  %v = load ptr, ptr %p
  ret ptr %v
}

define internal ptr @field(ptr %object, i64 %offset) alwaysinline #0 {
  %p = getelementptr i8, ptr %object, i64 %offset
  %v = load ptr, ptr %p, align 8
  ret ptr %v
}

; 0 to 3 for the dtypes of DTYPES, 4 for others
define internal i64 @dtype_number(ptr %dtype) #0 {
  %f4 = call ptr @record_word(i64 $record.dtype_f4$)
  %f8 = call ptr @record_word(i64 $record.dtype_f8$)
  %i4 = call ptr @record_word(i64 $record.dtype_i4$)
  %i8 = call ptr @record_word(i64 $record.dtype_i8$)
  %is.f4 = icmp eq ptr %dtype, %f4
  %is.f8 = icmp eq ptr %dtype, %f8
  %is.i4 = icmp eq ptr %dtype, %i4
  %is.i8 = icmp eq ptr %dtype, %i8
  %n3 = select i1 %is.i8, i64 3, i64 4
  %n2 = select i1 %is.i4, i64 2, i64 %n3
  %n1 = select i1 %is.f8, i64 1, i64 %n2
  %n0 = select i1 %is.f4, i64 0, i64 %n1
  ret i64 %n0
}

define internal i64 @rank(ptr %array) alwaysinline #0 {
  %p = getelementptr i8, ptr %array, i64 $at.array_rank$
  %r = load i32, ptr %p, align 4
  %w = sext i32 %r to i64
  ret i64 %w
}

; the elements of an array, -1 if there are more than $most$
define internal i64 @elements(ptr %array) #0 {
entry:
  %rank = call i64 @rank(ptr %array)
  %dims = call ptr @field(ptr %array, i64 $at.array_dims$)
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %go]
  %n = phi i64 [1, %entry], [%product, %go]
  %more = icmp ult i64 %i, %rank
  br i1 %more, label %body, label %end
body:
  %p = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %p
  %large = icmp ugt i64 %d, $most$
  br i1 %large, label %many, label %times
times:
  %product = mul i64 %n, %d
  %next = add i64 %i, 1
  %over = icmp ugt i64 %product, $most$
  br i1 %over, label %many, label %go
go:
  br label %head
many:
  ret i64 -1
end:
  ret i64 %n
}

define internal i1 @same_dims(ptr %a, ptr %b, i64 %rank) #0 {
entry:
  %da = call ptr @field(ptr %a, i64 $at.array_dims$)
  %db = call ptr @field(ptr %b, i64 $at.array_dims$)
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %i, %rank
  br i1 %more, label %body, label %equal
body:
  %pa = getelementptr i64, ptr %da, i64 %i
  %pb = getelementptr i64, ptr %db, i64 %i
  %xa = load i64, ptr %pa
  %xb = load i64, ptr %pb
  %next = add i64 %i, 1
  %same = icmp eq i64 %xa, %xb
  br i1 %same, label %head, label %different
equal:
  ret i1 true
different:
  ret i1 false
}

; a Python int or float in the dtype, at %to; false where it does not fit
define internal i1 @number(ptr %x, ptr %type, i64 %dtype, ptr %to) #0 {
entry:
  %overflow = alloca i32
  %float.t = call ptr @record_word(i64 $record.float$)
  %int.t = call ptr @record_word(i64 $record.int$)
  %is.float = icmp eq ptr %type, %float.t
  br i1 %is.float, label %float, label %maybe.int
float:
  %value.p = getelementptr i8, ptr %x, i64 $at.float_value$
  %value = load double, ptr %value.p, align 8
  br label %real
maybe.int:
  %is.int = icmp eq ptr %type, %int.t
  br i1 %is.int, label %int, label %no
int:
  %convert = call ptr @record_word(i64 $record.PyLong_AsLongLongAndOverflow$)
  %long = call i64 %convert(ptr %x, ptr %overflow)
  %over = load i32, ptr %overflow
  %fits = icmp eq i32 %over, 0
  br i1 %fits, label %int.kind, label %no
int.kind:
  switch i64 %dtype, label %no [
    i64 0, label %int.real
    i64 1, label %int.real
    i64 2, label %int.32
    i64 3, label %int.64
  ]
int.real:
  %exact.low = icmp sgt i64 %long, -16777217
  %exact.high = icmp slt i64 %long, 16777217
  %exact = and i1 %exact.low, %exact.high
  %as.double = sitofp i64 %long to double
  br i1 %exact, label %real, label %no
int.32:
  %low = trunc i64 %long to i32
  %back = sext i32 %low to i64
  %whole = icmp eq i64 %back, %long
  store i32 %low, ptr %to
  ret i1 %whole
int.64:
  store i64 %long, ptr %to
  ret i1 true
real:
  %v = phi double [%value, %float], [%as.double, %int.real]
  switch i64 %dtype, label %no [
    i64 0, label %real.32
    i64 1, label %real.64
  ]
real.32:
  %single = fptrunc double %v to float
  %wide = fpext float %single to double
  %grown = call double @llvm.fabs.f64(double %wide)
  %is.inf = fcmp oeq double %grown, 0x7FF0000000000000
  %was = call double @llvm.fabs.f64(double %v)
  %was.inf = fcmp oeq double %was, 0x7FF0000000000000
  %still = xor i1 %was.inf, true
  %lost = and i1 %is.inf, %still
  store float %single, ptr %to
  %kept = xor i1 %lost, true
  ret i1 %kept
real.64:
  store double %v, ptr %to
  ret i1 true
no:
  ret i1 false
}
declare double @llvm.fabs.f64(double)
"""

_OPERATOR = """
define ptr @operator_{name}(ptr %self, ptr %args, i64 %count) #0 {{
entry:
  %slot = alloca i64, align 8
  %other = load ptr, ptr %args
  %modes.p = call ptr @record_word(i64 $record.modes$)
  %modes = load i64, ptr %modes.p
  %quiet = icmp eq i64 %modes, 0
  %one = icmp eq i64 %count, 1
  %usual = and i1 %quiet, %one
  %tensor.t = call ptr @record_word(i64 $record.Tensor$)
  %self.t = call ptr @field(ptr %self, i64 $at.type$)
  %is.tensor = icmp eq ptr %self.t, %tensor.t
  %ready = and i1 %usual, %is.tensor
  br i1 %ready, label %begin, label %python
begin:
  %x = call ptr @field(ptr %self, i64 $at.tensor_array$)
  %x.dtype = call ptr @field(ptr %x, i64 $at.array_dtype$)
  %dtype = call i64 @dtype_number(ptr %x.dtype)
  %known = icmp ult i64 %dtype, 4
  %is.integer = icmp uge i64 %dtype, 2
  br i1 %known, label %operand, label %python
operand:
  %x.data = call ptr @field(ptr %x, i64 $at.array_data$)
  %x.rank = call i64 @rank(ptr %x)
  %other.t = call ptr @field(ptr %other, i64 $at.type$)
  %both = icmp eq ptr %other.t, %tensor.t
  br i1 %both, label %tensor, label %other.kind
other.kind:
  %converted = call i1 @number(ptr %other, ptr %other.t, i64 %dtype, ptr %slot)
  br i1 %converted, label %shaped, label %python
tensor:
  %y = call ptr @field(ptr %other, i64 $at.tensor_array$)
  %y.dtype = call ptr @field(ptr %y, i64 $at.array_dtype$)
  %same.dtype = icmp eq ptr %x.dtype, %y.dtype
  br i1 %same.dtype, label %ranks, label %python
ranks:
  %y.data = call ptr @field(ptr %y, i64 $at.array_data$)
  %y.rank = call i64 @rank(ptr %y)
  %y.scalar = icmp eq i64 %y.rank, 0
  br i1 %y.scalar, label %shaped, label %not.scalar
not.scalar:
  %x.scalar = icmp eq i64 %x.rank, 0
  br i1 %x.scalar, label %shaped, label %compare
compare:
  %same.rank = icmp eq i64 %x.rank, %y.rank
  br i1 %same.rank, label %dims, label %python
dims:
  %same = call i1 @same_dims(ptr %x, ptr %y, i64 %x.rank)
  br i1 %same, label %shaped, label %python
shaped:
  %like = phi ptr [%self, %other.kind], [%self, %ranks], [%other, %not.scalar], [%self, %dims]
  %shape = phi ptr [%x, %other.kind], [%x, %ranks], [%y, %not.scalar], [%x, %dims]
  %a = phi ptr [%x.data, %other.kind], [%x.data, %ranks], [%x.data, %not.scalar], [%x.data, %dims]
  %b = phi ptr [%slot, %other.kind], [%y.data, %ranks], [%y.data, %not.scalar], [%y.data, %dims]
  %sa = phi i64 [1, %other.kind], [1, %ranks], [0, %not.scalar], [1, %dims]
  %sb = phi i64 [0, %other.kind], [0, %ranks], [1, %not.scalar], [1, %dims]
  %n = call i64 @elements(ptr %shape)
  %small = icmp sge i64 %n, 0
  br i1 %small, label %make, label %python
make:
{refused}
  %incref = call ptr @record_word(i64 $record.Py_IncRef$)
  %decref = call ptr @record_word(i64 $record.Py_DecRef$)
  %array.t = call ptr @record_word(i64 $record.ndarray$)
  %new = call ptr @record_word(i64 $record.new_array$)
  %out.rank = call i64 @rank(ptr %shape)
  %out.rank.32 = trunc i64 %out.rank to i32
  %out.dims = call ptr @field(ptr %shape, i64 $at.array_dims$)
  call void %incref(ptr %x.dtype)
  %out = call ptr %new(ptr %array.t, ptr %x.dtype, i32 %out.rank.32, ptr %out.dims,
    ptr null, ptr null, i32 0, ptr null)
  %out.ok = icmp ne ptr %out, null
  br i1 %out.ok, label %compute, label %fail
compute:
  %to = call ptr @field(ptr %out, i64 $at.array_data$)
  switch i64 %dtype, label %python [
    i64 0, label %do.f4
    i64 1, label %do.f8
    i64 2, label %do.i4
    i64 3, label %do.i8
  ]
{computed}
wrap:
  %alloc = call ptr @record_word(i64 $record.PyType_GenericAlloc$)
  %result = call ptr %alloc(ptr %tensor.t, i64 0)
  %result.ok = icmp ne ptr %result, null
  br i1 %result.ok, label %fill, label %drop
fill:
  %spec = call ptr @field(ptr %like, i64 $at.tensor_spec$)
  call void %incref(ptr %spec)
  %array.p = getelementptr i8, ptr %result, i64 $at.tensor_array$
  store ptr %out, ptr %array.p
  %spec.p = getelementptr i8, ptr %result, i64 $at.tensor_spec$
  store ptr %spec, ptr %spec.p
  ret ptr %result
drop:
  call void %decref(ptr %out)
  br label %fail
fail:
  ret ptr null
python:
  %both.args = alloca [2 x ptr], align 8
  store ptr %self, ptr %both.args
  %second = getelementptr ptr, ptr %both.args, i64 1
  store ptr %other, ptr %second
  %function = call ptr @record_word(i64 $record.python_{name}$)
  %call = call ptr @record_word(i64 $record.PyObject_Vectorcall$)
  %answer = call ptr %call(ptr %function, ptr %both.args, i64 2, ptr null)
  ret ptr %answer
}}"""
