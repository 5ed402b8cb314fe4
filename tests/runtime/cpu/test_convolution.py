"""Generated convolutions of random geometry against the ops' NumPy implementations."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    n = draw(st.integers(1, 3))
    return ((n, *image, c), (*window, o), strides, sides, dilations)


@pytest.mark.parametrize("frame_bytes", [1 << 10, plan.FRAME_BYTES])
def test_random_geometry(frame_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "FRAME_BYTES", frame_bytes)  # 1 KiB: many strips an image

    @settings(max_examples=40, deadline=None)
    @given(geometries(), st.sampled_from(["float32", "float32", "float64"]))
    def run(case: tuple, dtype: str) -> None:
        for node, shapes in convolution_nodes(case, dtype):
            check(node, shapes)

    run()
