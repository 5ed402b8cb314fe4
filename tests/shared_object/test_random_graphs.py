"""Random graphs (`tests/runtime/fuzz`) as libraries: the bits of the compiled function."""

from __future__ import annotations

from pathlib import Path

import pytest

import treadle as td
from tests.runtime.fuzz.execution import function
from tests.runtime.fuzz.generate import generate
from tests.shared_object.calling import Caller


@pytest.mark.parametrize("seed", [3, 8, 21, 34])
def test_the_bits_are_those_of_python(seed: int, tmp_path: Path) -> None:
    program = generate(seed)
    arrays = [program.arrays[v] for v in program.block.params]
    variables = {n: td.Variable(a) for n, a in program.variables.items()}
    specs = [td.TensorSpec(a.shape, a.dtype) for a in arrays]
    concrete = td.function(function(program, variables)).get_concrete_function(*specs)
    graph = concrete.graph
    exported = td.shared_object.export({"f": concrete}, tmp_path / "libnet.so", threads=2)
    call = Caller(exported, "f", [v.spec for v in graph.arguments], [v.spec for v in graph.results])
    for threads in (1, 2):  # variables change from call to call, here as there
        assert call.library.net_set_threads(threads) == 0
        found = call(*arrays)
        wanted = [x.numpy() for x in td.nest.flatten(concrete(*map(td.constant, arrays)))]
        assert [a.shape for a in found] == [b.shape for b in wanted]
        assert [a.tobytes() for a in found] == [b.tobytes() for b in wanted]
