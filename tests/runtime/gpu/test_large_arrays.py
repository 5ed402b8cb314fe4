"""Kernels for arrays of more than 2^31 elements count in 64 bits. No array of that size is made:
their text is looked at."""

import re

import pytest

import treadle as td
from tests.runtime.gpu.recorder import recorded_gpu

WIDE = [1 << 16, 1 << 17]
PROGRAMS = {
    "elements": (lambda x: td.exp(x) * 2.0, WIDE),
    "columns": (lambda x: td.reduce_sum(x, 0), WIDE),
    "all": (lambda x: td.argmax(x), [1 << 33]),
    "turned": (lambda x: td.transpose(x) + 1.0, WIDE),
    "running sums": (lambda x: td.cumsum(x, 1), WIDE),
    "small operands": (lambda x: x[:, None] + x[None, :], [1 << 17]),
    "padded": (lambda x: td.pad(x, [[1, 1], [2, 2]]), WIDE),
}
# Numbers of threads and of places within a block, and what counts the elements of one thread.
_SHORT = r"(?:lane|warp|thread|column|row|point|points|team|step|place)\b"
_NARROW = re.compile(rf"(?<!for \()\b(?:int|unsigned)\s+(?!{_SHORT})(\w+)\s*=")


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROGRAMS)
def test_positions_have_64_bits(name: str) -> None:
    function, shape = PROGRAMS[name]
    with recorded_gpu(), td.device("GPU:0"):
        stages = td.inspect.stages(td.function(function), td.TensorSpec(shape, td.float32))
    text = next(t for t in stages.values() if "TD_KERNEL" in t)
    assert not _NARROW.findall(text), text
    for line in text.splitlines():
        if "blockIdx.x" in line and "*" in line:
            assert "(td_index)blockIdx.x" in line, line
    launches = re.findall(r"grid (\d+)", stages["launches"])
    assert launches and all(0 < int(blocks) < 1 << 31 for blocks in launches)
