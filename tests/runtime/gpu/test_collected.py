"""Programs of the corpus and random graphs, with the kernels that they need on a GPU.

`python -m tests.runtime.gpu.run` does the same for all there are, and against native programs.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu import sources
from tests.runtime.gpu.collected import Collection
from tests.runtime.gpu.on_processor import Kernels
from tests.runtime.gpu.run import Examination
from treadle.runtime.gpu.toolkit import CompileError, Compiler, compilers

CORPUS = list({c.fn: c for c in sources.CASES if c.tensors}.values())  # a case of each function
SEEDS = range(8)
Collected = tuple[Collection, Kernels]


@pytest.fixture(scope="module", params=["corpus", "graphs"])
def collected(request: pytest.FixtureRequest) -> Iterator[Collected]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREADLE_STRICT", "1")
        found = Collection(natively=False)
        if request.param == "corpus":
            sources.corpus(found, CORPUS)
        else:
            for seed in SEEDS:
                sources.graph(found, seed)
        yield found, Kernels(found.forms)


def test_every_program_has_kernels(collected: Collected) -> None:
    found, kernels = collected
    assert found.unsupported == {}
    assert len(found.calls) >= found.sources and len(kernels.distinct) > 50


def test_kernels_give_what_the_interpreter_gives(collected: Collected) -> None:
    found, kernels = collected
    assert found.differences(kernels) == {}
    assert len(kernels.ran) > 0.8 * len(kernels.distinct)
    left = found.not_run(kernels)
    assert set(left) == kernels.distinct.keys() - kernels.ran
    assert set(left.values()) <= {"in branches and loops that no call takes"}


@pytest.mark.skipif(not compilers(), reason="there is no compiler of CUDA C")
def test_kernels_compile(collected: Collected) -> None:
    examination = Examination(compilers()[:1])
    examination.compile(collected[1])
    assert examination.refused == []
    assert set(examination.compiled.values()) == {len(examination.kernels)}


def newton(x):
    y = td.Variable(2.0)

    @td.function
    def step(x):
        y.assign(y - (y * y - x) / (2.0 * y))
        return y * 1.0

    return step(x)


def test_what_differs_is_found() -> None:
    found = Collection(natively=False)
    found.collect("newton", lambda: newton(td.constant(3.0)))
    (call,) = found.calls
    kernels = Kernels(found.forms)
    assert found.differences(kernels) == {}
    ((variable, before, after),) = call.state
    found.calls = [replace(call, results=[call.results[0] * np.float32(1.001)])]
    assert "result 0 is not" in found.differences(kernels)["newton"]
    found.calls = [replace(call, state=[(variable, before, after + np.float32(0.01))])]
    assert "result 1 is not" in found.differences(kernels)["newton"]
    found.collect("an error", lambda: td.constant(1.0) + "a")
    assert list(found.unsupported) == ["an error"]


def test_what_does_not_compile_is_told() -> None:
    class Refusing(Compiler):
        name = "refusing"

        def compile(self, text: str, architecture: str) -> bytes:
            raise CompileError(f"not for {architecture}")

    found = Collection(natively=False)
    found.collect("newton", lambda: newton(td.constant(3.0)))
    examination = Examination([Refusing()])
    examination.add(found)
    assert examination.table()["compiled"] == {"refusing": 0}
    assert examination.refused == ["refusing: sm_80: not for sm_80"]
