"""The measurement of products as shares of the FMA peak."""

import numpy as np
import pytest

from benchmarks import peak
from treadle.runtime.cpu.jit import Jit, jit
from treadle.runtime.cpu.target import baseline, host
from treadle.runtime.cpu.threads import pool


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("level", [3, None])
def test_the_loop_is_multiply_adds_in_registers(element: str, level: int | None) -> None:
    target = host() if level is None else baseline(level)
    if not target.has_fma:
        pytest.skip("no such instruction")
    text = Jit(target, jit().cache).assembly(peak.peak_text(target, element))
    loop = [line for line in text.splitlines() if "fmadd" in line or "fmla" in line]
    assert len(loop) == peak.SUMS
    assert not any("(%rsp)" in line for line in loop)


def test_all_threads_run_it() -> None:
    loop = peak.Peak("float64")
    loop._record[:8] = np.frombuffer(np.float64(0.5).tobytes(), np.uint8)
    loop()
    sums = loop._record.view(np.float64)[8::8][: pool().threads]
    np.testing.assert_allclose(sums, peak.SUMS)  # s = s / 2 + 1 / 2 tends to 1


def test_shares() -> None:
    row = peak._row([(50.0, 100.0), (90.0, 100.0), (60.0, 100.0)])
    assert row["share"] == 0.6
    assert "60.0 %" in peak.table({"matmul": row})


def test_products_are_measured() -> None:
    [(change, job, flops)] = peak.product(30, 20, 10, "float32", "b")
    assert change == ""
    assert job().shape == (30, 20)
    assert flops == 2 * 30 * 20 * 10
    assert peak.best_call(job, 0.0) > 0
