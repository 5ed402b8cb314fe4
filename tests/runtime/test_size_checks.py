"""Compiled programs refuse sizes that shape rules could not judge: no read outside an array."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

VECTOR = td.TensorSpec([None], td.float32)
MATRIX = td.TensorSpec([None, None], td.float32)

# name: (function, spec, shapes that fit, shapes that do not)
CASES = {
    "reshape": (lambda x: td.reshape(x, [2, 2]), VECTOR, [(4,)], [(5,), (3,), (0,)]),
    "reshape_open": (lambda x: td.reshape(x, [-1, 2]), VECTOR, [(4,), (0,)], [(5,)]),
    "ensure_shape": (lambda x: td.ensure_shape(x, [3]), VECTOR, [(3,)], [(2,), (4,)]),
    "ensure_shape_2d": (lambda x: td.ensure_shape(x, [2, None]), MATRIX, [(2, 3)], [(3, 2)]),
    "squeeze": (lambda x: td.squeeze(x, 0), VECTOR, [(1,)], [(2,), (0,)]),
    "element": (lambda x: x[2], VECTOR, [(3,), (9,)], [(2,), (0,)]),
    "last": (lambda x: x[-1], VECTOR, [(3,), (1,)], [(0,)]),
    "last_but_one": (lambda x: x[-2], VECTOR, [(2,)], [(1,)]),
    "python_slice": (lambda x: x[1:4], VECTOR, [(9,), (3,), (1,), (0,)], []),
    "reversed": (lambda x: x[::-1], VECTOR, [(3,), (0,)], []),
    "slice": (lambda x: td.slice(x, [1], [3]), VECTOR, [(4,)], [(3,), (0,)]),
    "slice_rest": (lambda x: td.slice(x, [1], [-1]), VECTOR, [(4,), (1,)], [(0,)]),
    "split": (lambda x: td.split(x, 2), VECTOR, [(4,), (0,)], [(3,)]),
    "split_sizes": (lambda x: td.split(x, [1, 2]), VECTOR, [(3,)], [(4,), (2,)]),
    "split_rest": (lambda x: td.split(x, [1, -1]), VECTOR, [(3,), (1,)], [(0,)]),
    "unstack": (lambda x: td.unstack(x, 3), VECTOR, [(3,)], [(4,), (2,)]),
    "stack": (lambda x: td.stack([x, td.ones([2])]), VECTOR, [(2,)], [(3,), (1,)]),
    "concat": (lambda x: td.concat([[x], td.ones([1, 2])], 0), VECTOR, [(2,)], [(3,)]),
    "concat_along": (lambda x: td.concat([x, td.ones([2])], 0), VECTOR, [(2,), (3,)], []),
    "in_a_branch": (
        lambda x: td.cond(td.size(x) > 4, lambda: x[4], lambda: td.constant(0.0)),
        VECTOR, [(5,), (4,), (0,)], [],
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


@pytest.mark.parametrize("name", CASES)
def test_sizes(name):
    function, spec, good, bad = CASES[name]
    compiled = td.function(function, input_signature=[spec])
    for shape in good:
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for actual, expected in zip(
            td.nest.flatten(compiled(x)), td.nest.flatten(function(td.constant(x))), strict=True
        ):
            np.testing.assert_array_equal(actual, expected)
    for shape in bad:
        x = td.constant(np.ones(shape, np.float32))
        with pytest.raises(ValueError):
            compiled(x)
        with pytest.raises(td.errors.InvalidArgumentError):
            function(x)
