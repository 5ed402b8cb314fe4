"""Every op has a complete record, and every differentiable public op is tested."""

from __future__ import annotations

import inspect
import sys
from typing import get_args

import numpy as np
import pytest

import treadle  # noqa: F401  (registers the ops)
from tests.ops.test_cases import ALL
from tests.ops.traced import trace
from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.ops.linalg import einsum  # noqa: F401
from treadle.ops.lowering import Compute, Kind, Lowering
from treadle.ops.properties import TAGS
from treadle.ops.registry import OPS, Op, infer_outputs, register
from treadle.ops.statistics import sorting  # noqa: F401

EFFECTS = {None, "random", "read", "write", "io"}


def test_the_records_are_complete() -> None:
    assert not {op.name: missing for op in OPS.values() if (missing := incomplete(op))}


def incomplete(op: Op) -> list[str]:
    """What is wrong with the record of an op."""
    controls = "control_flow" in op.tags
    runs_elsewhere = controls or op.effect in ("read", "write") or op.name == "call"
    computes = isinstance(op.lower, Compute)
    rules = {
        "a name of small letters": op.name.isidentifier() and op.name == op.name.lower(),
        "a shape rule": callable(op.infer),
        "a known effect": op.effect in EFFECTS,
        "a NumPy meaning, as it has no regions": callable(op.eager) or runs_elsewhere,
        "a gradient that can be called": op.gradient is None or callable(op.gradient),
        "a lowering": op.lower is None or isinstance(op.lower, Lowering),
        "tags of treadle.ops.properties.TAGS": op.tags <= TAGS.keys(),
        "two regions": len(op.regions) == 2 or not controls,
        "a known kind of lowering": not computes or op.lower.kind in get_args(Kind),
    }
    return [rule for rule, holds in rules.items() if not holds]


def test_what_is_missing_of_a_record_is_told() -> None:
    whole = Op("fine", lambda x: x, eager=lambda x: x)
    assert not incomplete(whole)
    wrong = Op("Wrong name", lambda x: x, tags=frozenset({"no tag"}))
    assert incomplete(wrong) == [
        "a name of small letters", "a NumPy meaning, as it has no regions",
        "tags of treadle.ops.properties.TAGS",
    ]  # fmt: skip


def test_shape_rules_and_numpy_code_take_the_same_attributes() -> None:
    differing = {}
    for op in OPS.values():
        if op.eager is None or "regions" in inspect.signature(op.infer).parameters:
            continue
        if isinstance(op.eager, np.ufunc) or op.eager is np.where:
            continue
        names = [_keywords(inspect.signature(f)) for f in (op.infer, op.eager)]
        if None not in names and names[0] != names[1]:
            differing[op.name] = names
    assert not differing


def _keywords(signature: inspect.Signature) -> set[str] | None:
    parameters = signature.parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}


# The ops of other test files: nn, random, lists, effects, variables, control flow. Ops of the
# families tested by the tables must appear in a case.
FAMILIES = (
    "arithmetic", "basic", "broadcasting", "casting", "comparison", "complex_numbers", "creation",
    "dims", "gather", "histograms", "index", "joining", "logic", "masks", "matrices", "padding",
    "permuting", "powers", "ranges", "reduction", "reshaping", "running_extremes", "scan",
    "scatter", "segments", "selection", "slicing", "sorting", "unary",
)  # fmt: skip
ELSEWHERE = {
    # Only recorded while tracing with dims that a run must tell: test_dims.py.
    "range_dynamic", "open_dim",
    # Written by a pass: test_parts.py.
    "as_dim", "position",
    # What bincount, histograms and gradients of masks are made of: test_native_masks.py.
    "count_positions", "expand_masked",
    # Gradients of ops: exercised by test_gradients.py.
    "index_grad", "strided_slice_grad", "dynamic_slice_grad", "stop_gradient", "complex", "sum_to",
    # Gives a tensor of unknown rank its dims: test_unknown_rank.py.
    "settle_rank",
    # Of strings: programs.py.
    "scatter_append",
    # Operands of sizes that only a run tells: test_late_broadcasts.py.
    "same", "not_same", "of_size", "one_size",
}  # fmt: skip


def test_every_op_of_these_families_has_a_case() -> None:
    seen: set[str] = set()
    for case in ALL:
        for shapes in case.shapes:
            arrays = case.arrays(shapes, case.dtypes[0])
            for symbolic in (False, True) if case.symbolic else (False,):
                seen |= {node.op.name for node in trace(case.fn, arrays, symbolic).walk()}
    expected = {op.name for op in OPS.values() if _family(op) in FAMILIES}
    assert not expected - seen - ELSEWHERE


def _family(op: Op) -> str:
    """The module that the op belongs to; shape rules made by a factory go by the public name."""
    module = op.infer.__module__.rpartition(".")[2]
    if module != "families":
        return module
    loaded = {
        n.rpartition(".")[2]: m for n, m in sys.modules.items() if n.startswith("treadle.ops.")
    }
    return next((f for f in FAMILIES if hasattr(loaded[f], op.name)), "")


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="'add' is registered twice"):
        register(Op("add", lambda x: x))


def test_shape_errors_name_op_inputs_and_line() -> None:
    specs = [TensorSpec([2, 3]), TensorSpec([4], dtypes.float32)]
    wanted = r"add\(f32\[2, 3\], f32\[4\]\): Incompatible shapes.*broadcast"
    with pytest.raises(ValueError, match=wanted) as e:
        infer_outputs(OPS["add"], specs, {})
    assert "test_registry.py" in str(e.value)
