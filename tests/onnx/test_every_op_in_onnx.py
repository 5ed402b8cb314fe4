"""Every op that has a form in ONNX, by its samples: onnxruntime gives what treadle gives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import treadle as td
from tests.onnx.running import agree, exported, results
from tests.ops.samples import Sample, all_ops, samples, specs_of, traced
from treadle.core.errors import UnimplementedError
from treadle.ops.onnx.forms import give_forms

give_forms()
WITH_FORM = {name for name, op in all_ops().items() if op.onnx is not None}
TRANSLATED = WITH_FORM | {"custom_gradient"}


class Case(NamedTuple):
    """A function of a sample: itself (0) or its gradients (1), of known or open dims."""

    sample: Sample
    depth: int
    open_dims: bool

    @property
    def arrays(self) -> list[Any]:
        """onnxruntime computes little in float64."""
        arrays = map(np.asarray, self.sample.arrays)
        return [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays]

    @property
    def fn(self) -> Any:
        return self.sample.functions[self.depth]

    @property
    def specs(self) -> list[Any]:
        return specs_of(self.arrays, self.open_dims)


@cache
def cases() -> dict[str, list[Case]]:
    """By the name of an op those cases that have it, and only ops with a form; small ones first."""
    found: list[tuple[int, set[str], Case]] = []
    for sample in samples():
        if any(np.asarray(a).dtype.kind == "c" for a in sample.arrays):
            continue
        for depth in range(len(sample.functions[:2])):
            for open_dims in (False, True) if sample.open_dims else (False,):
                case = Case(sample, depth, open_dims)
                nodes = list(_traced(case))
                names = {node.op.name for node in nodes}
                if names and names <= TRANSLATED:
                    found.append((len(nodes), names, case))
    found.sort(key=lambda item: item[0])
    return {
        name: [case for _, names, case in found if name in names] for name in sorted(WITH_FORM)
    }


def _traced(case: Case) -> Iterator[Any]:
    try:
        yield from traced(case.fn, case.arrays, case.open_dims).walk()
    except td.errors.OpError:  # the sample is of float64 only
        return


MOST = 3  # cases of an op, of known and of open dims each


# Samples that read a variable also assign it, which models do not: test_export.py reads them.
@pytest.mark.parametrize("name", sorted(WITH_FORM - {"read_variable"}))
def test_onnxruntime_agrees(name: str) -> None:
    ran = {True: 0, False: 0}
    for case in cases()[name]:
        if ran[case.open_dims] < MOST:
            ran[case.open_dims] += _ran(case)
    assert any(ran.values()), f"no sample of {name} was run"


@cache
def _ran(case: Case) -> bool:
    """Whether a case can be exported; it is compared."""
    try:
        model = exported(td.function(case.fn, autograph=False), *case.specs)
    except UnimplementedError:
        return False
    agree(results(model, case.arrays), case.fn(*map(td.constant, case.arrays)), 1e-4)
    return True
