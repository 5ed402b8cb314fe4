"""What `td.inspect` and `treadle inspect` show of functions on a GPU."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.on_processor import GPU
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_execution import driver_of, on, program_of
from treadle.cli import main
from treadle.core.devices import Device
from treadle.runtime.gpu import toolkit
from treadle.runtime.gpu.driver import Needs

X = np.random.default_rng(4).standard_normal((6, 20)).astype(np.float32)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv("TREADLE_STRICT", "1")
    with recorded_gpu() as device:
        yield device


class MadeUp:
    """A compiler that knows what every function needs."""

    name = "made-up 1.0"

    def compile(self, text: str, architecture: str) -> toolkit.Compiled:
        assert architecture == "sm_90"
        names = re.findall(r"TD_KERNEL (?:\S+\) )?(\w+)\(", text)
        needs = {name: Needs(20 + n, 8 * n) for n, name in enumerate(names)}
        return toolkit.Compiled(text.encode(), f".target {architecture}", needs)


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(toolkit, "compilers", list)
    monkeypatch.setattr(toolkit, "tool", lambda name: None)


def scaled(x: Any) -> Any:
    y = td.nn.softmax(x @ td.transpose(x))
    return td.argsort(y), td.reduce_sum(y * 2.0)


def launched(stages: Any) -> list[str]:
    return re.findall(r"^ +(\w+): grid", stages["launches"], re.MULTILINE)


def test_each_launch_is_listed(gpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "compilers", lambda: [MadeUp()])
    function = td.function(scaled)
    x = on(gpu, X)
    stages = td.inspect.stages(function, x)
    counts = driver_of(gpu).counts
    counts.clear()
    function(x)
    text = stages["launches"]
    assert counts["launches"] == len(launched(stages)) >= 3
    assert "matmul by product" in text and "argsort by sorting" in text
    assert text.count(" registers, ") == counts["launches"]
    assert "20 registers, 0 bytes local" in text and "21 registers, 8 bytes local" in text
    assert "made-up 1.0 for sm_90" in text and "recorded as a CUDA graph" in text
    assert f"({__file__}:{scaled.__code__.co_firstlineno + 1})" in text
    assert stages["ptx"] == ".target sm_90"


def test_grids_are_those_of_the_launches(gpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "compilers", list)
    asked = []
    driver = driver_of(gpu)
    launch = driver.launch

    def watched(function: Any, blocks: int, threads: int, shared: int, parameters: int) -> None:
        asked.append(f"  {function.stage.name}: grid {blocks}, block {threads}, shared {shared}")
        launch(function, blocks, threads, shared, parameters)

    monkeypatch.setattr(driver, "launch", watched)

    @td.function
    def step(x: Any) -> Any:
        return td.nn.softmax(x), td.sort(x, 0), td.cumsum(x, 1)

    step(on(gpu, X))
    text = td.inspect.stages(step, on(gpu, X))["launches"]
    assert len(asked) >= 3
    assert asked == [x.removesuffix(" bytes") for x in re.findall(r"^  \w+: grid.*", text, re.M)]


def test_sizes_of_open_dims(gpu: Device, no_tools: None) -> None:
    with td.device("GPU:0"):
        stages = td.inspect.stages(lambda x: td.exp(x), td.TensorSpec([None, 8]))
    assert re.search(r"k0: grid \S*d\d+\*", stages["launches"])
    assert re.search(r"of %x \(d\d+\*32 bytes\)", stages["copies"])


def until_small(x: Any) -> Any:
    while td.reduce_max(td.abs(x)) > 0.1:
        x = x * 0.5
    if td.reduce_sum(x) > 0.0:
        x = td.sin(x)
    return x


def test_loops_on_small_arrays_are_one_launch(gpu: Device, no_tools: None) -> None:
    stages = td.inspect.stages(td.function(until_small), on(gpu, X))
    assert re.search(r"^loop by one block.*\n  k0: grid 1, block", stages["launches"], re.MULTILINE)
    assert "loop" not in stages["copies"]


@pytest.mark.parametrize("decides", [False, True])
def test_loops_and_branches_are_indented(decides: bool, no_tools: None) -> None:
    """A device that decides about them does so when they are part of a recording."""
    with recorded_gpu(gpu=replace(GPU, decides=decides)) as gpu:
        large = np.tile(X, (1000, 1))
        stages = td.inspect.stages(td.function(until_small), on(gpu, large))
        text, copies = stages["launches"], stages["copies"]
    by = ", which the device ends in recordings" if decides else ""
    kernels = r"(  kernel.*\n(    k\w+: grid.*\n)+)+"
    assert re.search(rf"^loop{by}\n{kernels}", text, re.MULTILINE)
    by = r" \(the device decides in recordings\)" if decides else ""
    assert re.search(rf"^if \S+{by}\n  kernel", text, re.MULTILINE)
    assert ("recorded as a CUDA graph" if decides else "submitted one after the other") in text
    until = " until calls are recorded" if decides else ""
    read = r"to the host: %\w+ \(1 bytes\).*"
    assert re.search(rf"{read}, in each turn of the loop{until}$", copies, re.MULTILINE)


def test_copies(gpu: Device, no_tools: None) -> None:
    @td.function
    def with_python(x: Any) -> Any:
        y = td.py_function(lambda a: a[:, :3] * 2, [x + 1.0], td.float32)
        return td.ensure_shape(y, [6, 3]) * 2.0

    x = on(gpu, X)
    stages = td.inspect.stages(with_python, x)
    text = stages["copies"]
    assert "arguments that the caller has elsewhere than on GPU:0,\n  of %x (480 bytes)" in text
    assert re.search(r"^to the host: %\w+ \(480 bytes\) \(.*:\d+\)$", text, re.MULTILINE)
    assert re.search(r"^to the device: .*%\w+ \(72 bytes\) \(", text, re.MULTILINE)
    assert "no call was made yet" in text
    counts = driver_of(gpu).counts
    counts.clear()
    with_python(x)
    up, down = program_of(with_python, x).copied
    assert (up.times, down.times) == (counts["uploads"], counts["downloads"])
    assert up.times >= 1 and down.times >= 1
    text = td.inspect.stages(with_python, x)["copies"]
    assert f"the last call copied to the device {up}, to the host {down}" in text
    listed = {"host": 0, "device": 0}
    for direction, line in re.findall(r"^to the (host|device): (%.*)$", text, re.MULTILINE):
        listed[direction] += sum(_size(dim) for dim in re.findall(r"\(([^()]*) bytes\)", line))
    assert listed == {"host": down.bytes, "device": up.bytes}


def _size(text: str) -> int:
    """Bytes: 18 elements and 2 extents are found out by the call."""
    return int(re.sub(r"\w+\*8", "16", re.sub(r"\w+\*4", "72", text)))


def test_a_program_that_the_host_only_submits_copies_nothing(gpu: Device) -> None:
    function = td.function(lambda x: td.nn.softmax(x) * 2.0)
    x = on(gpu, X)
    for _ in range(3):
        function(x)
    assert program_of(function, x).copied == ((0, 0), (0, 0))


def test_segments_of_an_optimizer_step(gpu: Device, no_tools: None) -> None:
    with td.device("GPU:0"):
        variables = [td.Variable(X[:n].copy()) for n in (1, 2, 3, 4)]

    @td.function
    def step() -> None:
        for v in variables:
            v.assign_sub(0.1 * v)

    text = td.inspect.stages(step)["launches"]
    assert "for 3 segments" in text and text.count("grid") == 2


def test_cuda_c(gpu: Device) -> None:
    stages = td.inspect.stages(td.function(scaled), on(gpu, X))
    text = stages["cuda"]
    for name in launched(stages):
        assert f" {name}(" in text
    assert Path(text.split("\n")[0].removeprefix("// after ")).exists()


def test_missing_tools_are_named(gpu: Device, no_tools: None) -> None:
    stages = td.inspect.stages(td.function(scaled), on(gpu, X))
    for name in ("ptx", "sass"):
        assert "no compiler of CUDA C was found: install NVRTC" in stages[name]
        assert "\n" not in stages[name]
    assert "registers are not known: no compiler of CUDA C" in stages["launches"]


def test_missing_disassemblers_are_named(
    gpu: Device, no_tools: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolkit, "compilers", lambda: [MadeUp()])
    stages = td.inspect.stages(td.function(scaled), on(gpu, X))
    assert "neither nvdisasm nor cuobjdump was found" in stages["sass"]


@pytest.mark.parametrize(
    ("name", "options"), [("nvdisasm", "--print-code"), ("cuobjdump", "-sass")]
)
def test_machine_code_is_printed_by_a_tool(
    gpu: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, options: str
) -> None:
    made = tmp_path / name
    made.write_text(f'#!/bin/sh\ntest "$1" = {options} && echo "// MOV of {name}" && cat "$2"\n')
    made.chmod(0o755)
    other = "cuobjdump" if name == "nvdisasm" else "nvdisasm"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    tool = toolkit.tool
    monkeypatch.setattr(toolkit, "tool", lambda n: None if n == other else tool(n))
    monkeypatch.setattr(toolkit, "compilers", lambda: [MadeUp()])
    text = td.inspect.stages(td.function(scaled), on(gpu, X))["sass"]
    assert text.startswith(f"// MOV of {name}") and "TD_KERNEL" in text


def test_a_tool_that_refuses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = tmp_path / "nvdisasm"
    made.write_text("#!/bin/sh\necho 'nvdisasm fatal: unknown format' >&2\nexit 1\n")
    made.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(RuntimeError, match="nvdisasm refuses the code: .*unknown format"):
        toolkit.disassembled(b"")


def test_tools_are_found_in_toolkits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    made = tmp_path / "bin" / "a_tool_of_cuda"
    made.write_text("")
    assert toolkit.tool("a_tool_of_cuda") is None
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert toolkit.tool("a_tool_of_cuda") == str(made)


def test_the_words_of_the_assembler() -> None:
    words = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k1' for 'sm_90'
ptxas info    : Function properties for k1
ptxas         .     800 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 38 registers, used 0 barriers, 800 bytes cumulative stack size
ptxas info    : Compiling entry function 'k0' for 'sm_90'
ptxas info    : Function properties for helper
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for k0
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 400 bytes cmem[0]
"""
    assert toolkit._needs(words) == {"k1": Needs(38, 800), "k0": Needs(24, 0)}


@pytest.mark.parametrize("compiler", toolkit.compilers(), ids=lambda c: c.name)
def test_compilers_tell_what_functions_need(compiler: toolkit.Compiler) -> None:
    text = """
extern "C" __global__ void few(float* x) { x[threadIdx.x] = 1.0f; }
extern "C" __global__ void many(float* x, int n) {
  float kept[200];
  for (int i = 0; i < 200; i++) kept[i] = x[i * n];
  x[0] = kept[(int)x[n]];
}"""
    found = compiler.compile(text, "sm_80")
    assert found.needs["few"].local == 0 and found.needs["many"].local >= 800
    assert 0 < found.needs["few"].registers <= found.needs["many"].registers
    assert ".target sm_80" in found.ptx and ".entry many" in found.ptx


def test_the_driver_tells_where_it_knows(gpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_of(gpu), "needs", lambda function: Needs(99, 16))
    text = td.inspect.stages(td.function(scaled), on(gpu, X))["launches"]
    assert "99 registers, 16 bytes local" in text and "as compiled by" not in text


def on_a_device(x: Any) -> Any:
    with td.device("GPU:0"):
        return td.sin(x)


def test_the_command(gpu: Device, no_tools: None, capsys: Any) -> None:
    target = f"{__name__}:on_a_device"
    assert main(["inspect", target, "--args", "f32[4]"]) == 0
    out = capsys.readouterr().out
    for name in ("launches", "copies", "cuda", "ptx", "sass"):
        assert f"{name} ──" in out
    target = "treadle.examples.collatz:collatz"
    given = [target, "--args", "int32[]", "--device", "gpu:0", "--stage", "cuda"]
    assert main(["inspect", *given]) == 0
    assert "TD_KERNEL" in capsys.readouterr().out


def test_the_command_on_a_device_that_there_is_not(capsys: Any) -> None:
    target = "treadle.examples.collatz:collatz"
    assert main(["inspect", target, "--args", "int32[]", "--device", "GPU:7"]) == 2
    assert "there is no device 'GPU:7': there are CPU:0" in capsys.readouterr().err
