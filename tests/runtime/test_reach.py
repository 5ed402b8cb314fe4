"""Proofs for library calls, updates and lists: records that are wrong are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from treadle.core.shapes import SymbolicDim
from treadle.graph.ir import Node
from treadle.graph.passes import optimize
from treadle.graph.rewrite import clone_graph
from treadle.runtime.bounds import BoundsError, Sizes
from treadle.runtime.compiler import plan_program
from treadle.runtime.cpu import library
from treadle.runtime.cpu.matmul.tiling import Product
from treadle.runtime.reach import Reach, whole
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import (
    Check,
    Guard,
    LibraryCall,
    ListStep,
    Place,
    Position,
    Update,
)
from treadle.runtime.verify_bounds import verify_bounds

B, C, K = (SymbolicDim.symbol(name) for name in "BCK")


@pytest.mark.parametrize(
    ("reach", "elements", "excess"),
    [
        (whole((3, 4)), 12, 0),
        (whole((3, 4)), 11, 1),
        (whole((B, 4)), B * 4, 0),
        (whole((0, 4)), 0, 0),
        (Reach(((3, 4), (4, 1))), 12, 0),
        (Reach(((3, 4), (4, 1)), 1), 12, 1),
        (Reach(((3, -4), (4, 1)), 8), 12, 0),
        (Reach(((3, -4), (4, 1)), 7), 12, 1),
        (Reach(((B, C), (C, 1))), B * C, 0),
        (Reach(((B, 0), (5, 1))), 5, 0),
        (Reach(((5, 1), (0, 1)), 99), 3, 0),
    ],
)
def test_how_far_known_strides_lead(reach, elements, excess):
    assert reach.excess(elements, Sizes()) == excess


def test_what_is_not_proved_is_a_condition_on_sizes():
    excess = Reach(((K, 1),)).excess(B, Sizes())
    assert isinstance(excess, SymbolicDim)
    for k, b, wanted in ((3, 5, 0), (5, 5, 0), (7, 5, 2), (0, 0, 0)):
        assert excess.evaluate({"K": k, "B": b}) == wanted
    sizes = Sizes()
    sizes.add([(excess, 0)])
    assert Reach(((K, 1),)).excess(B, sizes) == 0 or sizes.is_zero(excess)
    sizes = Sizes()
    sizes.at_least(B, K)
    assert Reach(((K, 1),)).excess(B, sizes) == 0


def test_strides_of_unknown_direction_are_refused():
    with pytest.raises(BoundsError, match="sign"):
        Reach(((4, B - C),)).excess(B, Sizes())


@pytest.mark.parametrize(
    "product",
    [
        Product("float", 1, 5, 7, 3),
        Product("float", 4, 5, 7, 3, 1, 1, 15, 21),
        Product("float", B, 5, C, 3, 0, 1, 15, 3 * C),
        Product("float", 6, 5, 7, 3, 0, 0, 15, 0, inner=3, outer_a=45, outer_b=21),
        Product("i32", 2, 4, 6, 3, 0, 1, 12, 18, pairs=1),
    ],
)
def test_products_touch_their_arrays_and_no_more(product):
    a, b, c = product.reaches
    p = product
    own = 2 if p.pairs else 1
    for reach, elements in (
        (a, p.batch * p.m * p.k * own),
        (b, (p.batch if p.stride_b != 0 else 2 if p.outer_b != 0 else 1) * p.k * p.n * own),
        (c, p.batch * p.m * p.n),
    ):
        assert reach.excess(elements, Sizes()) == 0
        assert reach.excess(elements - 1, Sizes()) != 0


# -- schedules with a wrong step -------------------------------------------------------------------


def planned(function, *specs):
    """The builder and the steps of a program."""
    graph = clone_graph(td.function(function).get_concrete_function(*specs).graph)
    optimize(graph)
    plan = plan_program(graph)
    builder, block = plan.builder, plan.block
    verify_bounds(builder, block)  # as it is, it passes
    return builder, block


def the(kind, block):
    return next(s for s in all_steps(block) if isinstance(s, kind))


def refused(builder, block, match):
    with pytest.raises(BoundsError, match=match):
        verify_bounds(builder, block)


def smaller(place):
    """A place of one row less."""
    first, *rest = place.dims
    return Place(place.kind, place.number, place.dtype, (first - 1, *rest))


X = td.TensorSpec([40, 50])


def test_a_routine_of_arrays_that_are_too_small():
    builder, block = planned(lambda x, y: td.matmul(x, y), X, td.TensorSpec([50, 60]))
    step = the(LibraryCall, block)
    for operand in (*step.inputs, *step.outputs):
        before, operand.place = operand.place, smaller(operand.place)
        refused(builder, block, "elements that are expected")
        operand.place = before
    verify_bounds(builder, block)


def test_a_routine_with_wrong_numbers(monkeypatch):
    builder, block = planned(lambda x, y: td.matmul(x, y), X, td.TensorSpec([50, 60]))
    right = library._product

    def wrong(name, product, *rest, **named):
        return right(name, replace(product, **change), *rest, **named)

    monkeypatch.setattr(library, "_product", wrong)
    for change in ({"m": 41}, {"n": 61}, {"k": 51}, {"batch": 2}, {"lda": 51}, {"stride_a": -1}):
        if change == {"stride_a": -1}:
            change = {"stride_a": -1, "batch": 2}
        refused(builder, block, "nothing checks|may be outside")


def test_a_view_that_leaves_its_array():
    def function(x, y):
        return td.matmul(x[2:30], y)

    builder, block = planned(function, X, td.TensorSpec([50, 60]))
    step = the(LibraryCall, block)
    assert step.views
    first, *rest = step.views
    step.views = (replace(first, offset=first.offset + 11 * 50), *rest)
    refused(builder, block, "may be outside")


def test_a_routine_without_workspace():
    builder, block = planned(lambda x: td.argsort(x, -1), X)
    step = the(LibraryCall, block)
    assert step.scratch is not None
    step.scratch = replace(step.scratch, dims=(step.scratch.dims[0] - 1,))
    refused(builder, block, "workspace")


def test_a_result_that_is_not_kept_in_blocks():
    """The step says so, the routine does not: its result would go into the workspace."""
    builder, block = planned(lambda x, y: td.matmul(x, y) * 2.0, X, td.TensorSpec([50, 60]))
    step = the(LibraryCall, block)
    assert not step.apart
    step.apart = True
    refused(builder, block, "no routine")


def test_an_update_of_a_part_outside():
    from treadle.ops.indexing.updates import set_item

    def function(x, y):
        for k in td.range(3):
            x = set_item(x, (slice(3, 20, 2), slice(1, 9)), td.matmul(y, y[:8]) * x[0, k])
            x = set_item(x, (slice(3, 20, 2), slice(1, 9)), td.matmul(y, y[1:]))
        return x

    builder, block = planned(function, X, td.TensorSpec([9, 8]))
    step = the(Update, block)
    right = step.node
    for change in ({"begin": (25, 1)}, {"begin": (3, -1)}, {"strides": (5, 1)}):
        specs = [v.spec for v in right.outputs]
        step.node = Node(right.op, right.inputs, {**right.attrs, **change}, specs, (), None)
        refused(builder, block, "may be outside")
    step.node = right
    step.target = smaller(step.target)
    refused(builder, block, "elements that are expected")


def test_a_position_that_nothing_checks():
    @td.function
    def function(x, i):
        for k in td.range(5):
            x[i, k] = x[k, 0] + 1.0
        return x

    specs = (X, td.TensorSpec([], td.int32))
    graph = clone_graph(function.get_concrete_function(*specs).graph)
    optimize(graph)
    plan = plan_program(graph)
    builder, block = plan.builder, plan.block
    verify_bounds(builder, block)
    without(Check, block)
    without(Position, block)
    refused(builder, block, "nothing keeps")


def without(kind, block):
    """Take steps out of a schedule."""
    block.steps[:] = [s for s in block.steps if not isinstance(s, kind)]
    for step in block.steps:
        for inner in (getattr(step, name, None) for name in ("condition", "body", "then")):
            if inner is not None:
                without(kind, inner)


def test_sizes_that_nothing_compares():
    def function(x, i, j):
        return td.reduce_sum(x[:i] * x[j : j + i])

    specs = (td.TensorSpec([40]), td.TensorSpec([], td.int32), td.TensorSpec([], td.int32))
    builder, block = planned(function, *specs)
    assert any(isinstance(s, Guard) for s in all_steps(block))
    without(Guard, block)
    refused(builder, block, "nothing checks")


def test_an_element_of_another_size_than_the_lists():
    def function(x):
        items = td.TensorArray(td.float32, size=3, element_shape=[50])
        for k in td.range(3):
            items = items.write(k, td.sort(x[k]))
        return items.stack()

    builder, block = planned(function, X)
    step = the(ListStep, block)
    assert step.node.op.name.startswith("list_")
    lists = {v: tuple(d - 1 for d in dims) for v, dims in builder.element_dims.items()}
    builder.element_dims = lists
    refused(builder, block, "elements where there are")


def test_what_is_not_proved_is_checked_by_the_program():
    """A product of parts whose bounds are data: the program compares, with the user's line."""

    def function(x, y, i, j):
        return td.matmul(x[:, :i], y[:j])

    f = td.function(function)
    x, y = np.ones((40, 50), np.float32), np.ones((50, 60), np.float32)
    assert f(x, y, td.constant(7), td.constant(7)).shape == (40, 60)
    for i, j in ((7, 8), (8, 7), (50, 1)):
        with pytest.raises(td.errors.InvalidArgumentError, match=r"test_reach\.py.*td\.matmul"):
            f(x, y, td.constant(i), td.constant(j))
