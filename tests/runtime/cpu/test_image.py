"""The small linker and loader: constants, variables, imports, what it leaves to LLVM."""

import ctypes
import gc

import pytest

from treadle.runtime.cpu.emission import object_file
from treadle.runtime.cpu.image import Image, LoadedImage, is_supported, link
from treadle.runtime.cpu.target import aarch64, host

pytestmark = pytest.mark.skipif(not is_supported(), reason="images are for Linux on x86-64")

SUM_OF_TABLE = """
@table = private unnamed_addr constant [4 x i64] [i64 1, i64 20, i64 300, i64 4000], align 64
define i64 @f(i64 %i) {
  %p = getelementptr i64, ptr @table, i64 %i
  %x = load i64, ptr %p
  ret i64 %x
}
"""
COUNTER = """
@count = internal global i64 40
@calls = internal global i64 0
define internal void @note() noinline {
  %n = load i64, ptr @calls
  %m = add i64 %n, 1
  store i64 %m, ptr @calls
  ret void
}
define i64 @f(i64 %by) {
  call void @note()
  %x = load i64, ptr @count
  %y = add i64 %x, %by
  store i64 %y, ptr @count
  ret i64 %y
}
define i64 @calls_of_f(i64 %unused) {
  %n = load i64, ptr @calls
  ret i64 %n
}
"""
COPIES = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @abs(i32)
define void @f(ptr %to, ptr %from, i64 %size) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  ret void
}
define i32 @g(i32 %x) {
  %y = call i32 @abs(i32 %x)
  ret i32 %y
}
"""
SWITCH = (
    "define i64 @f(i64 %x) {\n  switch i64 %x, label %other ["
    + "".join(f" i64 {n}, label %l{n}" for n in range(9))
    + " ]\n"
    + "".join(f"l{n}:\n  ret i64 {n * n * n + 7}\n" for n in range(9))
    + "other:\n  ret i64 -1\n}\n"
)
DOUBLES = """
define double @f(double %x) {
  %y = fmul double %x, 0x400921FB54442D18
  %z = fadd double %y, 1.5
  ret double %z
}
"""


def loaded(text):
    image = link(object_file(text, host()))
    assert image is not None
    return LoadedImage(Image.from_bytes(image.to_bytes()))


def function(image, name, result=ctypes.c_int64, *arguments):
    kind = ctypes.CFUNCTYPE(result, *(arguments or (ctypes.c_int64,)))
    return kind(image.base + image.functions[name])


def test_constants():
    image = loaded(SUM_OF_TABLE)
    assert [function(image, "f")(i) for i in range(4)] == [1, 20, 300, 4000]
    double = loaded(DOUBLES)
    f = function(double, "f", ctypes.c_double, ctypes.c_double)
    assert f(2.0) == 2.0 * 3.141592653589793 + 1.5


def test_jump_tables():
    image = loaded(SWITCH)
    assert [function(image, "f")(i) for i in range(10)] == [n**3 + 7 for n in range(9)] + [-1]


def test_each_load_has_variables_of_its_own():
    first, second = loaded(COUNTER), loaded(COUNTER)
    assert [function(first, "f")(1) for _ in range(3)] == [41, 42, 43]
    assert function(second, "f")(2) == 42
    assert [function(i, "calls_of_f")(0) for i in (first, second)] == [3, 1]
    assert "note" not in first.functions


def test_functions_of_the_process():
    image = loaded(COPIES)
    source, target = ctypes.create_string_buffer(b"x" * 500), ctypes.create_string_buffer(501)
    copy = function(image, "f", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    copy(target, source, 500)
    assert target.raw == source.raw
    assert function(image, "g", ctypes.c_int, ctypes.c_int)(-12) == 12


def test_an_import_that_does_not_exist():
    image = link(object_file("declare i64 @nobody_has_this()\n"
                             "define i64 @f() {\n %x = call i64 @nobody_has_this()\n ret i64 %x\n}"
                             "\n", host()))  # fmt: skip
    with pytest.raises(OSError, match="nobody_has_this"):
        LoadedImage(image)


def test_what_is_left_to_llvm():
    assert link(object_file(SUM_OF_TABLE, aarch64())) is None
    assert link(b"not an object") is None
    absolute = "@f_address = constant ptr @f\ndefine ptr @f() {\n  ret ptr @f_address\n}\n"
    assert link(object_file(absolute, host())) is None


@pytest.mark.parametrize("data", [b"", b"treadle-image-1\n", b"\x7fELF", b"other\n\nbody"])
def test_bytes_that_are_no_image(data):
    with pytest.raises(ValueError, match="image"):
        Image.from_bytes(data)


def test_memory_goes_with_the_image():
    def mapped():
        with open("/proc/self/maps") as file:
            return sum(1 for _ in file)

    before, kept = mapped(), [loaded(SUM_OF_TABLE) for _ in range(60)]
    function(kept[7], "f")(2)
    kept.clear()
    gc.collect()
    assert mapped() < before + 30
