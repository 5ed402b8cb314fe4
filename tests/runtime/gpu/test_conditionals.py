"""Conditional nodes by the calls of the driver: a library in its place judges and executes them."""

import ctypes
import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.gpu.made_up_cupy import CompileException, Cupy
from treadle.core.object_cache import ObjectCache
from treadle.runtime.gpu import conditionals, cupy_driver, discovery
from treadle.runtime.gpu.conditionals import KERNEL, NAME, has_conditionals
from treadle.runtime.gpu.cupy_driver import CupyDriver
from treadle.runtime.gpu.driver import CannotRecord
from treadle.runtime.gpu.toolkit import Nvrtc, compilers

HERE = Path(__file__).parent
TOOLKIT = Path("/usr/local/cuda/include")


@functools.cache
def library() -> ctypes.CDLL:
    """The library in the place of the driver's."""
    path = Path(tempfile.mkdtemp()) / "graphs.so"
    command = ["g++", "-std=c++20", "-O1", "-Wall", "-shared", "-fPIC", "-o", str(path)]
    subprocess.run([*command, str(HERE / "graphs.cpp")], check=True)
    made = ctypes.CDLL(str(path))
    made.made_end.restype = ctypes.c_void_p
    made.made_run.argtypes = ctypes.c_void_p, ctypes.c_void_p
    return made


class Program:
    """Work on flags in memory. A launch of kernel `n` is call `n` of `effects`.

    Attributes:
        log: the calls that were made.
    """

    def __init__(self, driver: CupyDriver, cupy: Cupy) -> None:
        self.driver, self.cupy = driver, cupy
        self.flags = np.zeros(4, np.bool_)
        self.effects: list[Callable[[], None]] = []
        self.log: list[int] = []

    def flag(self, number: int) -> int:
        return self.flags.ctypes.data + number

    def work(self, effect: Callable[[], None] = lambda: None) -> Callable[[], None]:
        """Asks for a launch that has an effect when it is done."""
        number = len(self.effects)
        self.effects.append(effect)
        function = type("Function", (), {"name": str(number), "ptr": number})
        return lambda: self.driver.launch(function, 1, 1, 0, 0)

    def recorded(self, *works: Callable[[], None]) -> Any:
        self.driver.begin_recording()
        try:
            for work in works:
                work()
        finally:
            made = self.driver.end_recording()
        return made

    def submit(self, recording: Any) -> list[int]:
        """What is done, in order."""
        self.log.clear()

        @ctypes.CFUNCTYPE(None, ctypes.c_int64)
        def call(number: int) -> None:
            self.log.append(number)
            self.effects[number]()

        self.cupy.call = ctypes.cast(call, ctypes.c_void_p)
        recording.submit()
        return list(self.log)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    made = Cupy(graphs=library())
    monkeypatch.setitem(sys.modules, "cupy", made.module)
    monkeypatch.setattr(discovery, "driver_library", library)
    monkeypatch.setattr(cupy_driver, "default_cache", lambda: ObjectCache(None))
    library().made_fail(-1)
    driver = CupyDriver(0)
    assert driver.gpu.decides
    with driver.active():
        yield Program(driver, made)


def test_what_a_driver_must_have() -> None:
    assert has_conditionals(library(), 12040) and has_conditionals(library(), 13000)
    assert not has_conditionals(library(), 12030)  # which has no loops yet
    assert not has_conditionals(ctypes.CDLL(None), 12040)
    assert not has_conditionals(None, 0)


def test_a_loop(program: Program) -> None:
    turns, most = [0], [5]

    def turn() -> None:
        turns[0] += 1
        program.flags[0] = turns[0] < most[0]

    before, body, after = program.work(), program.work(turn), program.work()
    again = lambda: program.driver.repeat(program.flag(0), body)
    recording = program.recorded(before, again, after)
    for count in (5, 1, 9):
        turns[0], most[0], program.flags[0] = 0, count, True
        assert program.submit(recording) == [0, *[1] * count, 2]
    program.flags[0] = False
    assert program.submit(recording) == [0, 2]


def test_branches(program: Program) -> None:
    """What is done first may change the bool: nothing is done second for all that."""

    def change() -> None:
        program.flags[0] = not program.flags[0]

    then, otherwise, after = program.work(change), program.work(change), program.work()
    both = program.recorded(
        lambda: program.driver.choose(program.flag(0), then, otherwise), after
    )
    one = program.recorded(lambda: program.driver.choose(program.flag(0), then, None), after)
    for value in (True, False):
        program.flags[0] = value
        assert program.submit(both) == [0 if value else 1, 2]
        program.flags[0] = value
        assert program.submit(one) == ([0, 2] if value else [2])


def test_loops_and_branches_in_one_another(program: Program) -> None:
    outer, inner, flags = [0], [0], program.flags

    def turn() -> None:
        outer[0] += 1
        inner[0] = 0
        flags[:3] = outer[0] < 4, True, outer[0] % 2

    def deep() -> None:
        inner[0] += 1
        flags[1] = inner[0] < outer[0]

    first, second, odd, even, last = (program.work(f) for f in (turn, deep, *[lambda: None] * 3))

    def body() -> None:
        first()
        program.driver.repeat(program.flag(1), second)
        program.driver.choose(program.flag(2), odd, even)

    recording = program.recorded(lambda: program.driver.repeat(program.flag(0), body), last)
    for _ in range(2):
        outer[0], flags[0] = 0, True
        wanted = [x for n in (1, 2, 3, 4) for x in (0, *[1] * n, 2 if n % 2 else 3)]
        assert program.submit(recording) == [*wanted, 4]


def test_work_that_fails_leaves_no_recording_open(program: Program) -> None:
    def failing() -> None:
        work()
        raise ValueError("of the work")

    work, stream = program.work(), ctypes.c_void_p(program.driver.stream.ptr)
    deep = lambda: program.driver.choose(program.flag(1), work, failing)
    for inner in (failing, deep):
        with pytest.raises(ValueError, match="of the work"):
            program.recorded(lambda: program.driver.repeat(program.flag(0), inner))
        assert not library().made_records(stream)
    assert program.submit(program.recorded(work)) == [0]


CALLS = 33  # for a branch in a loop


@pytest.mark.parametrize("number", range(CALLS + 1))
def test_each_call_may_be_refused(program: Program, number: int) -> None:
    work, stream = program.work(), ctypes.c_void_p(program.driver.stream.ptr)

    def control() -> None:
        inside = lambda: program.driver.choose(program.flag(1), work, work)
        program.driver.repeat(program.flag(0), inside)

    library().made_fail(number)
    if number < CALLS:
        with pytest.raises(CannotRecord, match="error"):
            program.recorded(work, control)
    else:
        assert program.submit(program.recorded(work, control)) == [0]
    assert not library().made_records(stream)
    library().made_fail(-1)
    assert program.submit(program.recorded(work, control)) == [0]


def test_the_kernel_is_loaded_before_anything_is_recorded(program: Program) -> None:
    program.cupy.calls.clear()
    program.recorded(program.work())
    kinds = [c[0] for c in program.cupy.calls]
    assert kinds.index("module") < kinds.index("capture")
    assert program.cupy.calls[0][1] == KERNEL
    program.cupy.calls.clear()
    program.recorded(program.work())
    assert "module" not in [c[0] for c in program.cupy.calls]


def test_a_compiler_that_does_not_know_them(program: Program) -> None:
    program.cupy.refuses = CompileException("cudaGraphSetConditional is undefined")
    work = program.work()
    with pytest.raises(CannotRecord, match="NVRTC"):
        program.recorded(lambda: program.driver.repeat(program.flag(0), work))
    assert program.submit(program.recorded(work)) == [0]


# -- the real thing, as far as it is here ----------------------------------------------------------


@pytest.mark.parametrize("compiler", compilers(), ids=lambda c: c.name)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_the_kernel_compiles(compiler: Any, architecture: str) -> None:
    """NVRTC, which CuPy uses, needs neither a header nor another library."""
    if not isinstance(compiler, Nvrtc):
        return
    made = compiler.compile(KERNEL, architecture)
    assert NAME in made.needs and "cudaGraphSetConditional" in made.ptx


ABI = """
#include <cuda.h>
#include <cstddef>
static_assert(sizeof(CUgraphNodeParams) == {whole});
static_assert(offsetof(CUgraphNodeParams, conditional) == {conditional});
{fields}
static_assert(CU_GRAPH_NODE_TYPE_CONDITIONAL == {node} && CU_GRAPH_COND_TYPE_IF == {way});
static_assert(CU_GRAPH_COND_TYPE_WHILE == {loop});
static_assert(CU_STREAM_SET_CAPTURE_DEPENDENCIES == {replace});
static_assert(CU_STREAM_CAPTURE_STATUS_ACTIVE == {active});
static_assert(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL == {thread});
CUresult (*a)(CUcontext *) = cuCtxGetCurrent;
CUresult (*b)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **,
              const CUgraphEdgeData **, size_t *) = cuStreamGetCaptureInfo_v3;
CUresult (*c)(CUgraphConditionalHandle *, CUgraph, CUcontext, unsigned, unsigned) =
    cuGraphConditionalHandleCreate;
CUresult (*d)(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
              CUgraphNodeParams *) = cuGraphAddNode_v2;
CUresult (*e)(CUstream, CUgraphNode *, const CUgraphEdgeData *, size_t, unsigned) =
    cuStreamUpdateCaptureDependencies_v2;
CUresult (*f)(CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
              CUstreamCaptureMode) = cuStreamBeginCaptureToGraph;
CUresult (*g)(CUstream, CUgraph *) = cuStreamEndCapture;
"""


@pytest.mark.parametrize("folder", [TOOLKIT] * (TOOLKIT / "cuda.h").exists(), ids=str)
def test_the_header_says_the_same(folder: Path, tmp_path: Path) -> None:
    names = {"handle": "handle", "type": "type", "size": "size", "graphs": "phGraph_out",
             "context": "ctx"}  # fmt: skip
    fields = (
        f"static_assert(offsetof(CUDA_CONDITIONAL_NODE_PARAMS, {theirs}) == "
        f"{getattr(conditionals._Conditional, ours).offset});"
        for ours, theirs in names.items()
    )
    text = ABI.format(
        whole=ctypes.sizeof(conditionals._Parameters), fields="\n".join(fields),
        conditional=conditionals._Parameters.conditional.offset, thread=conditionals._THIS_THREAD,
        node=conditionals._CONDITIONAL_NODE, way=conditionals._IF, loop=conditionals._WHILE,
        replace=conditionals._REPLACE, active=conditionals._IS_RECORDING,
    )  # fmt: skip
    (tmp_path / "abi.cpp").write_text(text)
    command = ["g++", "-std=c++17", "-fsyntax-only", f"-I{folder}", str(tmp_path / "abi.cpp")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert not found.returncode, found.stderr
