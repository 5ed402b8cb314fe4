"""Machine code from LLVM text, on several threads at once."""

import re
import threading

import pytest

from tests.runtime.interrupts.inject import by_signal
from treadle.runtime.cpu.dispatch.layout import call_layout
from treadle.runtime.cpu.dispatch.native_type import _module
from treadle.runtime.cpu.emission import OPTIMIZE, assembly_text, object_file, on_another_thread
from treadle.runtime.cpu.kept_memory_code import memory_text
from treadle.runtime.cpu.pool_code import pool_text
from treadle.runtime.cpu.target import aarch64, baseline, host


def texts(target):
    add = "define i64 @f(i64 %x) {{\n  %y = add i64 %x, {}\n  ret i64 %y\n}}\n"
    return [pool_text(target), memory_text(target), *(add.format(n) for n in range(20))]


def test_threads_emit_the_same_objects():
    target = host()
    expected = [object_file(t, target) for t in texts(target)]
    found = {}

    def work(number):
        found[number] = [object_file(t, target) for t in texts(target)]

    several = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert list(found.values()) == [expected] * 4


def test_a_thread_may_emit_for_several_targets():
    for target in (host(), aarch64(), host()):
        assert object_file(pool_text(target), target)[:4] == b"\x7fELF"


def test_assembly():
    assert "f:" in assembly_text("define i64 @f() {\n  ret i64 7\n}\n", host())


@pytest.mark.skipif(call_layout() is None, reason="calls take the portable path here")
def test_calls_of_functions_read_fields_in_place():
    text, _, _ = _module(type("Plain", (), {}).__basicsize__)  # a class without slots
    stages = {"own_handler", "other_handler", "spare", "park", "drop", "done"}
    assert set(re.findall(r"define internal .*@(\w+)\(", text())) == stages


@pytest.mark.parametrize("emit", [object_file, assembly_text])
@pytest.mark.parametrize("text", ["define i64 @f( {", "define i64 @f() {\n ret i32 0\n}\n"])
def test_invalid_text(emit, text):
    with pytest.raises(RuntimeError):
        emit(text, host())


def test_an_interrupted_emission_goes_on_elsewhere():
    target = host()
    text = pool_text(target)
    expected = object_file(text, target)
    came = 0
    for number in range(20):
        came += bool(by_signal(lambda: object_file(text, target), 1e-4 * (1 + number)))
    assert came
    for thread in threading.enumerate():
        # One whose start was interrupted stays in the list and never runs.
        if thread.name == "treadle-llvm" and thread.ident is not None:
            thread.join(60)
            assert not thread.is_alive()
    assert object_file(text, target) == expected


def test_the_main_thread_does_not_call_llvm():
    names = []
    assert on_another_thread(lambda: names.append(threading.current_thread().name)) is None
    assert names == ["treadle-llvm"]
    with pytest.raises(ZeroDivisionError):
        on_another_thread(lambda: 1 / 0)


_DISTANCES = OPTIMIZE + """\
define void @distances(ptr noalias %row, ptr noalias %letters, i32 %letter) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%after, %next]
  %left = phi i32 [0, %entry], [%best, %next]
  %after = add nuw i64 %i, 1
  %place.diagonal = getelementptr inbounds i32, ptr %row, i64 %i
  %diagonal = load i32, ptr %place.diagonal
  %place.above = getelementptr inbounds i32, ptr %row, i64 %after
  %above = load i32, ptr %place.above
  %place.other = getelementptr inbounds i32, ptr %letters, i64 %i
  %other = load i32, ptr %place.other
  %differ = icmp ne i32 %letter, %other
  %more = zext i1 %differ to i32
  %changed = add i32 %diagonal, %more
  %removed = add i32 %above, 1
  %nearer = call i32 @llvm.smin.i32(i32 %changed, i32 %removed)
  %added = add i32 %left, 1
  %best = call i32 @llvm.smin.i32(i32 %nearer, i32 %added)
  %place = getelementptr inbounds i32, ptr %row, i64 %after
  %place.below = getelementptr inbounds i32, ptr %place, i64 600
  store i32 %best, ptr %place.below
  %ends = icmp eq i64 %after, 600
  br i1 %ends, label %end, label %next
end:
  ret void
}
"""


def test_choices_that_data_decide_do_not_branch():
    text = assembly_text(_DISTANCES, baseline(3))
    assert len(re.findall(r"\tj\w+\t", text)) == 1  # back to the beginning of the loop
