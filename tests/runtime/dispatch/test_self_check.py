"""The trampoline's own check, and that it notices faults planted in the trampoline."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from treadle.core.context import modes
from treadle.runtime.dispatch import self_check
from treadle.runtime.dispatch.layout import call_layout
from treadle.runtime.dispatch.plans import DICT_RESULT, LIST_RESULT, SINGLE, TUPLE_RESULT

native = pytest.mark.skipif(call_layout() is None, reason="this interpreter has no native calls")

FAULTS = {
    "spec not compared": ("%spec.ok = icmp eq i64 %spec, %a", "%spec.ok = icmp eq i64 %a, %a"),
    "dtype not compared": (
        "%dtype.ok = icmp eq i64 %dtype, %wanted.dtype", "%dtype.ok = icmp eq i64 %dtype, %dtype",
    ),
    "layout not compared": (
        "%flags.ok = icmp eq i32 %y.layout, $flags$",
        "%flags.ok = icmp eq i32 %y.layout, %y.layout",
    ),
    "dims not compared": (
        "%dim.ok = icmp eq i64 %dim.v, %wanted", "%dim.ok = icmp eq i64 %wanted, %wanted",
    ),
    "float not compared": ("%bits.ok = icmp eq i64 %bits, %a", "%bits.ok = icmp eq i64 %a, %a"),
    "length not compared": (
        "%length.ok = icmp eq i64 %length, %a", "%length.ok = icmp eq i64 %a, %a",
    ),
    "modes ignored": ("%quiet = icmp eq i64 %modes, 0", "%quiet = icmp eq i64 0, 0"),
    "keywords ignored": (
        "%names.same = icmp eq ptr %plan.names, %names", "%names.same = icmp eq i64 0, 0",
    ),
    "names not compared": (
        "%name.ok = icmp eq ptr %name, %plan.name", "%name.ok = icmp eq i64 0, 0",
    ),
    "kind of number not compared": (
        "%boxed.ok = icmp eq ptr %type, %boxed.t", "%boxed.ok = icmp eq i64 0, 0",
    ),
    "long ints taken": (
        "%integer.fits = icmp eq i32 %overflow.v, 0", "%integer.fits = icmp eq i64 0, 0",
    ),
    "same arrays not told apart": (
        "%differs = icmp ne ptr %q.o, %newest.o", "%differs = icmp eq i64 0, 0",
    ),
    "same arrays not compared": (
        "%known.ok = icmp eq ptr %x, %known", "%known.ok = icmp eq i64 0, 0",
    ),
    "read-only arrays written": (
        "%v.ok = icmp ne i32 %v.writable, 0", "%v.ok = icmp eq i64 0, 0",
    ),
    "overlaps not seen": (
        "%overlaps = and i1 %begins, %goes.on", "%overlaps = icmp ne i64 0, 0",
    ),
    "ends not seen": ("%z.end = add i64 %z.start, %z.bytes", "%z.end = add i64 %z.start, 0"),
    "items not referenced": ("call void %incref(ptr %again.o)", ""),
    "arguments not referenced": ("call void %incref(ptr %given.o)", ""),
    "known values not referenced": ("call void %incref(ptr %g.object)", ""),
    "tuples not released": ("call void %decref(ptr %sequence)", ""),
    "dtype not referenced": ("call void %incref(ptr %o.dtype)", ""),
    "spec not referenced": ("call void %incref(ptr %w.spec)", ""),
    "inputs not held": ("call void %incref(ptr %h.o)", ""),
    "inputs not released": (
        "call void @drop(ptr %decref, ptr %inputs, i64 0, i64 %held)", "",
    ),
    "dict items not released": ("call void %decref(ptr %e.value)", ""),
    "held tensors used": ("%alone = icmp eq i64 %t.count, 1", "%alone = icmp ult i64 %t.count, 9"),
    "held arrays used": (
        "%a.alone = icmp eq i64 %a.count, 1", "%a.alone = icmp ult i64 %a.count, 9",
    ),
    "seen tensors used": (
        "%unseen = icmp eq ptr %t.weak, null", "%unseen = icmp eq ptr %t.weak, %t.weak",
    ),
    "seen arrays used": (
        "%a.unseen = icmp eq ptr %a.weak, null", "%a.unseen = icmp eq ptr %a.weak, %a.weak",
    ),
    "changed arrays used": (
        "%flags.same = icmp eq i64 %a.flags, %flags", "%flags.same = icmp eq i64 %flags, %flags",
    ),
    "used tensors not referenced": ("call void %incref(ptr %idle)", ""),
    "kept tensors not referenced": ("call void %incref(ptr %t)", ""),
    "replaced tensors not released": ("call void %decref(ptr %before)", ""),
    "no exception": ("i64 $RAISED$, label %raise", "i64 $RAISED$, label %portable"),
}  # fmt: skip


@native
@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("kind", [SINGLE, LIST_RESULT, TUPLE_RESULT, DICT_RESULT])
def test_every_kind_of_result(kind: int, hold: bool) -> None:
    before = modes.value
    self_check._try(kind, hold)
    assert modes.value == before


@native
@pytest.mark.parametrize("hold", [False, True])
def test_numbers_and_arrays_that_are_written(hold: bool) -> None:
    self_check.try_numbers(hold)


@pytest.mark.skipif(
    sys.implementation.name != "cpython"
    or not (3, 11) <= sys.version_info[:2] <= (3, 13)
    or not getattr(sys, "_is_gil_enabled", lambda: True)()
    or hasattr(sys, "getobjects")
    or os.environ.get("TREADLE_PORTABLE_CALLS", "0") != "0",
    reason="not supported, or switched off",
)
def test_supported_interpreters_have_native_calls() -> None:
    """Otherwise every test of native calls is left out without a word."""
    assert call_layout() is not None


@native
def test_it_works_here() -> None:
    assert self_check.works()


def works_elsewhere(folder: Path, before: str = "") -> str:
    """What `works` finds in a process of its own that keeps its code in a folder, and whether it
    tried the trampoline."""
    code = f"""
        import treadle
        from treadle.runtime.dispatch import self_check
        {before}
        tried, try_all = [], self_check._try_all
        self_check._try_all = lambda: tried.append(1) or try_all()
        print(self_check.works(), len(tried))
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True,
        env=os.environ | {"TREADLE_CACHE_DIR": str(folder)},
    ).stdout.strip()  # fmt: skip


@native
def test_what_worked_is_not_tried_again(tmp_path: Path) -> None:
    assert works_elsewhere(tmp_path) == "True 1"
    assert works_elsewhere(tmp_path) == "True 0"
    assert works_elsewhere(tmp_path, "self_check.np.__version__ = 'another'") == "True 1"


@native
def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    failing = "self_check.try_numbers = None"
    assert works_elsewhere(tmp_path, failing) == "False 1"
    assert works_elsewhere(tmp_path, failing) == "False 1"
    assert works_elsewhere(tmp_path) == "True 1"


def is_immortal(value: object) -> bool:
    """Whether references to an object are not counted."""
    before = sys.getrefcount(value)
    more = [value] * 10
    return sys.getrefcount(value) < before + len(more)


@native
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_noticed(fault: str, tmp_path: Path) -> None:
    """A process of its own, in which the trampoline has the fault, does not use it."""
    if fault == "dtype not referenced" and is_immortal(np.dtype(np.float32)):
        return  # then it is none
    right, wrong = FAULTS[fault]
    code = f"""
        import treadle
        from treadle.runtime.dispatch import self_check, trampoline
        found = 0
        for name in ("ENTRY", "CHECKS", "OUTPUTS", "PROGRAM", "RESULTS", "FAILURE", "SPARES",
                     "DONE_WITH"):
            text = getattr(trampoline, name)
            found += text.count({right!r})
            setattr(trampoline, name, text.replace({right!r}, {wrong!r}))
        assert found == 1, found
        print("works" if self_check.works() else "refused")
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False,
        env=os.environ | {"TREADLE_CACHE_DIR": str(tmp_path)},  # where code is found by its name
    )  # fmt: skip
    # Missing references may also end the process: either way such a trampoline is not relied on.
    assert "works" not in ran.stdout, ran.stdout
    assert "refused" in ran.stdout or ran.returncode < 0, ran.stderr
