"""What must hold of every op, by its samples: programs give what eager execution gives, whatever
dims are known; gradients are finite differences, forward as in reverse; a batch is a loop; every
dtype that an op accepts works. The tables' own tests hold values, lowering and more shapes."""

from __future__ import annotations

import runpy
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.programs import NUMERIC, OTHERS, Program
from tests.ops.samples import (
    WITHOUT,
    Sample,
    accepted,
    all_ops,
    called_with,
    facts,
    planned_ops,
    samples,
    specs_of,
    weighted,
)
from treadle.ops.registry import run

DOCS = Path(__file__).parents[2] / "docs"
BY_NAME = {s.name: s for s in samples()}
PROGRAMS = [BY_NAME[p.name] for p in (*NUMERIC, *OTHERS)]
COMPLEX = [s for s in samples() if any(a.dtype.kind == "c" for a in s.arrays)]
DIFFERENTIABLE = [s for s in samples() if s.order]


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that cannot be compiled fails here instead of being interpreted."""
    monkeypatch.setenv("TREADLE_STRICT", "1")


def tensors_of(sample: Sample) -> list[Any]:
    return [td.constant(a) for a in sample.arrays]


def compare(found: Any, wanted: Any, close: float) -> None:
    """Tensors have one dtype and shape, and elements that are at most so far apart."""
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype is b.dtype and a.shape == b.shape
        if b.dtype.is_floating or b.dtype.is_complex:
            wide = np.complex128 if b.dtype.is_complex else np.float64
            pair = (np.asarray(x).astype(wide) for x in (a, b))
            np.testing.assert_allclose(*pair, rtol=close, atol=close)
        else:
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


# -- programs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", PROGRAMS, ids=str)
def test_compiled_is_eager(sample: Sample) -> None:
    for fn in sample.functions[:2]:
        wanted = fn(*tensors_of(sample))
        compiled = td.function(fn, autograph=False)
        for _ in range(2):  # the second call is the fast one
            compare(compiled(*tensors_of(sample)), wanted, sample.close)


@pytest.mark.parametrize("name", sorted(all_ops()))
def test_open_dims_are_fixed_dims(name: str) -> None:
    """For every op that appears where no dim is known."""
    sample = facts()[name].open_sample
    if sample is not None:
        _check_open_dims(sample)


@cache
def _check_open_dims(sample: Sample) -> None:
    signature = specs_of(sample.arrays, open_dims=True)
    compiled = td.function(sample.values, input_signature=signature, autograph=False)
    found = compiled(*tensors_of(sample))
    compare(found, sample.values(*tensors_of(sample)), max(sample.close, 3e-6))


# -- gradients -----------------------------------------------------------------------------------

STEP = 1e-5


def moved(sample: Sample, direction: Any, step: float) -> list[Any]:
    pairs = zip(sample.arrays, direction, strict=True)
    return [td.constant(a + step * d) for a, d in pairs]


def directions(sample: Sample) -> Any:
    rng = np.random.default_rng(len(sample.name))
    return [rng.choice([-1.0, 1.0], a.shape) * rng.uniform(0.5, 1.0, a.shape)
            for a in sample.arrays]  # fmt: skip


def slope(sample: Sample, fn: Any, direction: Any) -> float:
    """The derivative of scalar `fn` along a direction, by central differences."""
    ahead, behind = (float(fn(*moved(sample, direction, s))) for s in (STEP, -STEP))
    return (ahead - behind) / (2 * STEP)


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_forward_mode_is_reverse_mode_and_finite_differences(sample: Sample) -> None:
    direction, tensors = directions(sample), tensors_of(sample)
    expected = slope(sample, lambda *xs: weighted(sample.values(*xs)), direction)
    reverse = sample.gradients(*tensors)
    along = sum(float(np.sum(g.numpy() * d)) for g, d in zip(reverse, direction, strict=True))
    with td.autodiff.ForwardAccumulator(tensors, [td.constant(d) for d in direction]) as forward:
        total = weighted(sample.values(*tensors))
    found = forward.jvp(total, unconnected_gradients="zero")
    np.testing.assert_allclose(along, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(float(found), along, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("sample", [s for s in PROGRAMS if s.order > 1], ids=str)
def test_second_gradients(sample: Sample) -> None:
    """Those of the tables' cases are in test_second_order.py."""

    def norm(*xs: Any) -> Any:
        return td.add_n([td.reduce_sum(g * g) for g in sample.gradients(*xs)])

    direction = directions(sample)
    found = sample.second_gradients(*tensors_of(sample))
    along = sum(float(np.sum(g.numpy() * d)) for g, d in zip(found, direction, strict=True))
    np.testing.assert_allclose(along, slope(sample, norm, direction), rtol=1e-5, atol=1e-6)


# -- batches -------------------------------------------------------------------------------------

EXAMPLES = 3


@pytest.mark.parametrize("program", [p for p in NUMERIC if p.batched is not None], ids=str)
def test_a_batch_is_a_loop(program: Program) -> None:
    """Also where an op has no rule: then it is a loop, of which a warning tells."""
    sample = BY_NAME[program.name]
    factors = 1.0 + 0.1 * np.arange(EXAMPLES)
    arrays = [np.multiply.outer(factors, a) for a in sample.arrays]
    one = [sample.values(*(td.constant(a[k]) for a in arrays)) for k in range(EXAMPLES)]
    wanted = [td.stack(column) for column in zip(*one, strict=True)]
    elems = [td.constant(a) for a in arrays]
    with warnings.catch_warnings(action="error" if program.batched else "ignore"):
        found = td.vectorized_map(
            lambda xs: sample.values(*xs), elems, fallback_to_while_loop=not program.batched
        )
    compare(found, wanted, 1e-12)
    if not program.batched:
        with pytest.raises(ValueError, match="cannot be computed for all examples at once"):
            td.vectorized_map(
                lambda xs: sample.values(*xs), elems, fallback_to_while_loop=False
            )


# -- dtypes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(all_ops()))
def test_every_dtype_that_an_op_accepts(name: str) -> None:
    """Eagerly it gives what the shape rule says, and a program gives the same."""
    op = all_ops()[name]
    for dtype in accepted(op):
        inputs, attrs = called_with(op, dtype)
        inferred = op.infer(*(x.spec for x in inputs), **attrs)
        inferred = inferred if isinstance(inferred, tuple) else (inferred,)
        found = td.nest.flatten(run(op, *inputs, **attrs))
        assert [x.dtype for x in found] == [s.dtype for s in inferred]


# -- all of them ---------------------------------------------------------------------------------


def test_every_op_has_a_sample_or_a_reason() -> None:
    """Ops that no sample's trace has are written by passes, for some program."""
    traced = {name for name, known in facts().items() if known.sample is not None}
    written = {op.name for sample in (*PROGRAMS, *COMPLEX) for op in _planned(sample)[0]}
    without = all_ops().keys() - traced - written
    assert without - WITHOUT.keys() == set(), (
        "tests/ops: add a case to the tables or a program to programs.py"
    )
    assert WITHOUT.keys() - without == set(), "these have samples"


@cache
def _planned(sample: Sample) -> Any:
    return planned_ops(sample)


@pytest.mark.parametrize("sample", [*PROGRAMS, *COMPLEX], ids=str)
def test_programs_call_what_says_why(sample: Sample) -> None:
    assert {op.name for op in _planned(sample)[1] if op.why_called is None} == set()


def test_what_has_no_native_form_says_why() -> None:
    """Ops that are lowered, taken apart or part of the program's structure need no reason."""

    def is_native(op: Any) -> bool:
        return bool(op.lower or op.parts or op.part or op.effect or "gradient_mark" in op.tags)

    silent = [n for n, op in all_ops().items() if not is_native(op) and not op.why_called]
    assert not silent


def test_the_page_of_ops_is_up_to_date() -> None:
    script = runpy.run_path(str(DOCS / "make_ops.py"))
    assert (DOCS / "ops.md").read_text() == script["page"](), (
        "run PYTHONPATH=src:. python docs/make_ops.py"
    )
