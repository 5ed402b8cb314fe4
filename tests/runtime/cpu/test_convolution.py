"""Generated convolutions of random geometry against the ops' NumPy implementations."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from tests.runtime.cpu.test_library import check, convolution_nodes
from treadle.runtime.cpu.convolution import plan

extents = st.integers(1, 20)
small = st.integers(1, 3)


@st.composite
def geometries(draw: Any) -> tuple:
    """Images, filters, strides, padding and dilations for which there is an output."""
    window = [draw(st.integers(1, 5)) for _ in range(2)]
    strides = tuple(draw(small) for _ in range(2))
    dilations = tuple(draw(small) for _ in range(2))
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    padding = draw(st.sampled_from(["SAME", "VALID", "explicit"]))
    sides: Any = padding
    least = reach if padding == "VALID" else [1, 1]
    image = [draw(st.integers(low, low + 14)) for low in least]
    if padding == "explicit":
        sides = tuple(
            (draw(st.integers(0, 6)), draw(st.integers(0, 6)) + max(0, r - e))
            for r, e in zip(reach, image, strict=True)
        )
    c, o = draw(st.integers(1, 20)), draw(st.sampled_from([1, 3, 8, 16, 17, 33]))
    n, groups = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2, 5]))
    return ((n, *image, c * groups), (*window, o * groups), strides, sides, dilations, groups)


@pytest.mark.parametrize("frame_bytes", [1 << 10, plan.FRAME_BYTES])
def test_random_geometry(frame_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "FRAME_BYTES", frame_bytes)  # 1 KiB: many strips an image

    @settings(max_examples=40, deadline=None)
    @given(geometries(), st.sampled_from(["float32", "float32", "float64"]))
    def run(case: tuple, dtype: str) -> None:
        for node, shapes in convolution_nodes(case, dtype):
            check(node, shapes)

    run()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_nothing_is_left_to_python(groups: int, dtype: str) -> None:
    """16-bit images are summed in float32 and rounded once, forwards and backwards."""
    rng = np.random.default_rng(0)
    x = td.cast(td.constant(rng.standard_normal((2, 9, 8, 6))), dtype)
    filters = td.cast(td.constant(rng.standard_normal((3, 3, 6 // groups, 12))), dtype)

    def gradients(x: td.Tensor, filters: td.Tensor) -> list[td.Tensor]:
        with td.GradientTape() as tape:
            tape.watch([x, filters])
            y = td.nn.conv2d(x, filters, 2, "SAME")
            loss = td.reduce_sum(td.cast(y, "float32") ** 2)
        return [y, *tape.gradient(loss, [x, filters])]

    compiled = td.function(gradients, autograph=False)
    step = float(ml_dtypes.finfo(x.dtype.np_dtype).eps)
    for found, expected in zip(compiled(x, filters), gradients(x, filters), strict=True):
        assert found.dtype is x.dtype
        a, b = (t.numpy().astype(np.float64) for t in (found, expected))
        np.testing.assert_allclose(a, b, rtol=0, atol=(1.01 * step + 1e-5) * np.abs(b).max())
    counters = compiled.get_concrete_function(x, filters).executable.counters
    assert counters["callbacks"] == 0
