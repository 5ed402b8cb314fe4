"""The trampoline's own check, and that it notices faults planted in the trampoline."""

import ast
import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from treadle.autodiff import GradientTape
from treadle.core.context import modes
from treadle.runtime.cpu.dispatch import self_check
from treadle.runtime.cpu.dispatch.call_plan import DICT_RESULT, LIST_RESULT, SINGLE, TUPLE_RESULT
from treadle.runtime.cpu.dispatch.layout import call_layout

native = pytest.mark.skipif(call_layout() is None, reason="this interpreter has no native calls")

# The stage of a call, and what is replaced in its source.
FAULTS = {
    "spec not compared": ("checks", "spec.to_word().eq(self.a)", "self.a.eq(self.a)"),
    "dtype not compared": ("checks", "f.require(dtype.eq(wanted)", "f.require(dtype.eq(dtype)"),
    "layout not compared": (
        "checks", "layout.eq(_CONTIGUOUS_ALIGNED)", "layout.eq(layout)",
    ),
    "dims not compared": (
        "checks", 'require_equal(f, array["array_dims"]', 'require_equal(f, shape.place("dims")',
    ),
    "float not compared": ("checks", "bits.eq(self.a)", "bits.eq(bits)"),
    "length not compared": ("checks", 'x["size"].eq(self.a)', "self.a.eq(self.a)"),
    "modes ignored": ("entry", 'c.table["modes"].load().eq(0)', "f.const(0).eq(0)"),
    "keywords ignored": ("checks", "wanted.eq(c.names), prepare", "c.names.eq(c.names), prepare"),
    "names not compared": (
        "checks", 'require_equal(f, c.names.place', "require_equal(f, wanted.place",
    ),
    "kind of number not compared": (
        "checks", "self.type.eq(type_), self.boxed", "type_.eq(type_), self.boxed",
    ),
    "long ints taken": ("checks", "c.overflow.load().eq(0)", "f.const(0).eq(0)"),
    "same arrays not told apart": ("checks", "inputs[q].ne(given)", "given.eq(given)"),
    "same arrays not compared": ("checks", "self.x.eq(known)", "known.eq(known)"),
    "read-only arrays written": (
        "checks", '(array["array_flags"] & _WRITABLE).ne(0)', "a.eq(a)",
    ),
    "overlaps not seen": ("checks", "other_start.ult(end) & start.ult(other_end)", "a.ne(a)"),
    "ends not seen": ("checks", "end = start + size", "end = start + 0"),
    "items not referenced": (
        "results", "f.call(c.incref, once_more)",
        "f.call(c.incref, once_more) if block is given else None",
    ),
    "arguments not referenced": (
        "results", "f.call(c.incref, once_more)",
        "f.call(c.incref, once_more) if block is again else None",
    ),
    "known values not referenced": ("results", "f.call(c.incref, known)", "pass"),
    "tuples not released": ("results", 'f.call(c.decref, fill["sequence"])', "pass"),
    "dtype not referenced": ("outputs", "f.call(c.incref, dtype)", "pass"),
    "spec not referenced": ("results", "f.call(c.incref, spec)", "pass"),
    "inputs not held": ("outputs", "f.call(c.incref, c.inputs[h])", "pass"),
    "inputs not released": ("program", "f.call(drop, decref, inputs, 0, held)", "pass"),
    "dict items not released": ("results", "f.call(c.decref, value)", "pass"),
    "held tensors used": ("spares", 'kept["refcount"].eq(1)', 'kept["refcount"].ult(9)'),
    "held arrays used": ("spares", ' a["refcount"].eq(1)', ' a["refcount"].ult(9)'),
    "seen tensors used": ("spares", "weak.eq(None)", "weak.eq(weak)"),
    "seen arrays used": ("spares", 'a["array_weak"].eq(None)', "rank.eq(rank)"),
    "changed arrays used": ("spares", 'a["array_flags"].sext(I64).eq(flags)', "flags.eq(flags)"),
    "used tensors not referenced": ("outputs", "f.call(c.incref, idle)", "pass"),
    "kept tensors not referenced": ("spares", "f.call(incref, t)", "pass"),
    "replaced tensors not released": ("spares", "f.call(decref, before)", "pass"),
    "no exception": ("failure", "{RAISED: fails, ", "{RAISED: c.portable, "),
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
        from treadle.runtime.cpu.dispatch import self_check
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


# A process forks for each fault once treadle is imported, which takes longer than the check.
_TRY = """
    import importlib
    import json
    import os
    import sys
    from pathlib import Path
    from treadle.runtime.cpu.dispatch import self_check

    def try_with(stage, right, wrong):
        module = importlib.import_module(f"treadle.runtime.cpu.dispatch.call_code.{stage}")
        source = Path(module.__file__).read_text()
        assert source.count(right) == 1
        exec(compile(source.replace(right, wrong), module.__file__, "exec"), vars(module))
        return "works" if self_check.works() else "refused"

    found = {}
    for name, fault in json.loads(sys.argv[1]).items():
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.environ["TREADLE_CACHE_DIR"] = os.path.join(sys.argv[2], name)
            try:
                said = try_with(*fault)
            except BaseException as error:
                said = repr(error)
            os.write(writing, said.encode())
            os._exit(0)
        os.close(writing)
        with open(reading) as said:
            words = said.read()
        found[name] = words, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, int]]:
    """For each fault what a process finds whose trampoline has it, and how the process ended. Each
    keeps its code in a folder of its own, where code is found by its name."""
    folder = tmp_path_factory.mktemp("faults")
    stage, right, _ = FAULTS["spec not compared"]
    faults = FAULTS | {"none": (stage, right, right)}
    command = [sys.executable, "-c", textwrap.dedent(_TRY), json.dumps(faults), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {name: (said, status) for name, (said, status) in json.loads(ran.stdout).items()}
    assert found["none"] == ("works", 0)
    return found


@pytest.mark.thorough
@native
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_noticed(fault: str, tried: dict[str, tuple[str, int]]) -> None:
    """A process in which the trampoline has the fault does not use it."""
    if fault == "dtype not referenced" and is_immortal(np.dtype(np.float32)):
        return  # then it is none
    said, status = tried[fault]
    # Missing references may also end the process: either way such a trampoline is not relied on.
    assert said == "refused" or (not said and status < 0), said


@native
def test_threads_that_take_references_meanwhile_do_not_matter():
    ended = threading.Event()

    def take() -> None:
        while not ended.is_set():
            ast.dump(ast.parse("a = [None] * 50\nclass C: pass\n" * 20))

    before = sys.getswitchinterval()
    other = threading.Thread(target=take)
    sys.setswitchinterval(0.0002)
    try:
        other.start()
        assert all(self_check._try_all() for _ in range(10))
    finally:
        ended.set()
        other.join()
        sys.setswitchinterval(before)


@native
def test_tapes_and_traces_that_are_at_work_do_not_matter():
    with GradientTape():
        assert modes.value
        assert self_check._try_all()
