"""Depthwise convolution and its gradients against the ops' NumPy implementations."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.cpu.machines import ALL, RUNNABLE
from tests.runtime.cpu.test_convolution import geometries
from tests.runtime.cpu.test_library import check, node_of
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Node
from treadle.runtime.cpu import library, library_code
from treadle.runtime.cpu.target import Target, aarch64, baseline, host, using
from treadle.runtime.tuning import Cache

MULTIPLIERS = [1, 2, 3, 6, 7, 16, 20]


def depthwise_nodes(
    case: tuple, dtype: str, multiplier: int = 1
) -> list[tuple[Node, list[tuple[int, ...]]]]:
    """The three ops on one geometry, with so many filters for each channel."""
    image, (kh, kw, _), strides, padding, dilations, *_ = case
    filters = (kh, kw, 1, image[3] * multiplier)
    attrs = {"strides": strides, "padding": padding, "dilations": dilations}
    x, f = TensorSpec(image, dtype), TensorSpec(filters, dtype)
    forward = node_of("conv2d", [x, f], attrs)
    y = forward.outputs[0].spec
    to_input = node_of("conv2d_backprop_input", [f, y], {"image": image[1:], **attrs})
    to_filter = node_of("conv2d_backprop_filter", [x, y], {"filters": filters, **attrs})
    return [
        (forward, [image, filters]),
        (to_input, [filters, y.dims]),
        (to_filter, [image, y.dims]),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("multiplier", MULTIPLIERS)
@pytest.mark.parametrize("machine", ["host", *RUNNABLE])
def test_random_geometry(machine: str, multiplier: int) -> None:
    @settings(max_examples=20 if multiplier == 1 else 8, deadline=None)
    @given(geometries(), st.integers(2, 70), st.sampled_from(["float32", "float64"]))
    def run(case: Any, channels: int, dtype: str) -> None:
        image = (*case[0][:3], channels)
        for node, shapes in depthwise_nodes((image, *case[1:]), dtype, multiplier):
            routine = library.routine_for(node)
            assert routine is not None
            assert routine.symbol.startswith(f"depthwise{multiplier}_")
            check(node, shapes)

    with using(ALL[machine]):
        run()


@pytest.mark.parametrize("channels", [32, 48, 40, 3])
@pytest.mark.parametrize("multiplier", [1, 3, 17, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_results_are_stored_past_the_caches(
    dtype: str, multiplier: int, channels: int
) -> None:
    case = ((2, 13, 11, channels), (3, 3, 0), (1, 1), "SAME", (1, 1))
    l1, l2, _ = host().caches
    with using(replace(host(), caches=(l1, l2, Cache(1 << 10, 16)))):  # every result is large
        for node, shapes in depthwise_nodes(case, dtype, multiplier)[:2]:
            check(node, shapes)


@pytest.mark.parametrize(
    ("multiplier", "target", "past"),
    [
        (1, baseline(4), True),
        (1, baseline(3), True),  # two vectors at a time fill a line
        (3, baseline(4), True),
        (3, baseline(3), False),  # vectors of patterns are stored one by one
        (1, aarch64(), False),
    ],
)
def test_only_whole_lines_are_stored_past_the_caches(
    multiplier: int, target: Target, past: bool
) -> None:
    text = library_code.library_text(f"depthwise{multiplier}_conv2d", "float", target)
    assert ("!nontemporal" in text) is past


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("multiplier", [1, 3, 8])
def test_compiles_for_arm(multiplier: int, element: str) -> None:
    from treadle.runtime.cpu.target import llvm_binding

    for op in ("conv2d", "conv2d_backprop_input", "conv2d_backprop_filter"):
        text = library_code.library_text(f"depthwise{multiplier}_{op}", element, aarch64())
        module = llvm_binding().parse_assembly(text)
        module.verify()
        assert aarch64().machine().emit_object(module)
