"""Wrong arguments: one error each, eager and traced, that names the op and the user's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.traced import trace
from treadle.ops.linalg.einsum import einsum
from treadle.ops.statistics.sorting import sort, top_k

Invalid = td.errors.InvalidArgumentError
F = np.ones((2, 3), np.float32)
I = np.ones((2, 3), np.int32)
CASES: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "matmul": (lambda x: td.matmul(x, x), F, Invalid, r"matmul.*inner dims 3 and 2 differ"),
    "matmul_rank": (lambda x: td.matmul(x, x[0]), F, Invalid, "matmul.*at least two axes"),
    "matmul_options": (
        lambda x: td.matmul(x, x, transpose_a=True, adjoint_a=True), F, ValueError, "matmul",
    ),
    "matvec": (lambda x: td.linalg.matvec(x, x[0, 0]), F, Invalid, "matvec"),
    "reduce_axis": (
        lambda x: td.reduce_sum(x, axis=2), F, Invalid,
        r"reduce_sum of shape \(2, 3\): axis 2 is out",
    ),
    "reduce_twice": (lambda x: td.reduce_max(x, [0, -2]), F, Invalid, "reduce_max.*twice"),
    "reduce_bool": (lambda x: td.reduce_any(x), F, TypeError, "reduce_any.*must be bool"),
    "sum_bool": (lambda x: td.reduce_sum(x > 0), F, TypeError, "reduce_sum.*bool"),
    "variance_int": (lambda x: td.math.reduce_variance(x), I, TypeError, "reduce_variance.*int32"),
    "argmax_axis": (lambda x: td.argmax(x, 5), F, Invalid, "axis 5 is out of range"),
    "argmax_empty": (lambda x: td.argmax(x[:0]), F, Invalid, "argmax.*empty"),
    "exp_int": (lambda x: td.exp(x), I, TypeError, r"exp\(i32\[2, 3\]\).*floating"),
    "sqrt_bool": (lambda x: td.sqrt(x > 0), F, TypeError, "sqrt.*bool"),
    "and_float": (lambda x: td.logical_and(x, x), F, TypeError, "logical_and.*bool"),
    "invert_float": (lambda x: ~x, F, TypeError, "invert.*integer"),
    "floor_int": (lambda x: td.floor(x), I, TypeError, "floor.*floating"),
    "reshape": (lambda x: td.reshape(x, [4, 2]), F, Invalid, r"reshape.*6 values.*\(4, 2\)"),
    "reshape_open": (lambda x: td.reshape(x, [4, -1]), F, Invalid, "reshape.*6 values.*4"),
    "reshape_two": (lambda x: td.reshape(x, [-1, -1]), F, Invalid, "reshape.*one dim may be -1"),
    "transpose": (lambda x: td.transpose(x, [0, 0]), F, Invalid, r"transpose.*\(0, 0\).*\(2, 3\)"),
    "expand_dims": (lambda x: td.expand_dims(x, 5), F, Invalid, "axis 5 is out of range"),
    "expand_dims_two": (lambda x: td.expand_dims(x, [0, 1]), F, Invalid, "one integer"),
    "squeeze": (lambda x: td.squeeze(x, 0), F, Invalid, r"squeeze: dim 0 of \(2, 3\) is 2"),
    "concat": (
        lambda x: td.concat([x, x[:, :1]], 0), F, Invalid, "should match: dim 1 is 3 in one and 1",
    ),
    "concat_axis": (lambda x: td.concat([x, x], 5), F, Invalid, "axis 5 is out of range"),
    "concat_scalars": (
        lambda x: td.concat([x[0, 0], x[0, 1]], 0), F, Invalid, "concat.*stack",
    ),
    "concat_dtypes": (
        lambda x: td.concat([x, td.cast(x, td.int32)], 0), F, TypeError,
        "concat.*float32 and int32",
    ),
    "stack": (lambda x: td.stack([x, x[0]]), F, Invalid, "stack.*differ"),
    "split": (lambda x: td.split(x, 2, axis=1), F, Invalid, "split: 3 does not divide into 2"),
    "split_sizes": (lambda x: td.split(x, [1, 1], 1), F, Invalid, "split.*do not add up to 3"),
    "tile": (lambda x: td.tile(x, [2]), F, ValueError, "tile.*2 axes"),
    "pad": (lambda x: td.pad(x, [[1, 1]]), F, ValueError, "pad.*2 axes"),
    "pad_mode": (lambda x: td.pad(x, [[0, 0], [0, 0]], "edge"), F, ValueError, "pad.*'edge'"),
    "pad_reflect": (
        lambda x: td.pad(x, [[2, 0], [0, 0]], "REFLECT"), F, Invalid,
        r"paddings\[0\]\[0\] must be in \[0, 1\], not 2",
    ),
    "broadcast_to less axes": (
        lambda x: td.broadcast_to(x[:, :1], [2]), F, Invalid, r"broadcast_to.*\(2,\)",
    ),
    "broadcast_to": (lambda x: td.broadcast_to(x, [3, 2]), F, Invalid, r"broadcast_to.*\(3, 2\)"),
    "gather_float": (lambda x: td.gather(x, x), F, TypeError, "gather.*integer"),
    "gather_axis": (lambda x: td.gather(x, [0], axis=3), F, Invalid, "axis 3 is out of range"),
    "gather_nd": (lambda x: td.gather_nd(x, [[0, 0, 0]]), F, Invalid, "gather_nd.*at most 2"),
    "where": (lambda x: td.where(x, x, x), F, TypeError, "where.*bool"),
    "where_half": (lambda x: td.where(x > 0, x), F, ValueError, "both x and y"),
    "add_n": (lambda x: td.add_n([x, x[0]]), F, Invalid, r"add_n.*\(2, 3\) and \(3,\) differ"),
    "update": (
        lambda x: td.tensor_scatter_nd_update(x, [[0]], [[1.0, 2.0]]), F, Invalid,
        r"tensor_scatter_nd_update.*\(1, 2\).*\(1, 3\)",
    ),
    "one_hot_float": (lambda x: td.one_hot(x, 3), F, TypeError, "one_hot.*integers"),
    "range_step": (lambda x: td.range(0, 5, 0), F, Invalid, "range: delta is 0"),
    "range_direction": (lambda x: td.range(3, 1), F, Invalid, "range: 1 cannot be reached from 3"),
    "linspace": (lambda x: td.linspace(0.0, 1.0, -1), F, Invalid, "linspace: num must be"),
    "fill": (lambda x: td.fill([-1], 1.0), F, Invalid, "fill.*negative"),
    "fill_value": (lambda x: td.fill([2], [1.0, 2.0]), F, Invalid, r"fill.*\(2,\), not \(\)"),
    "mask": (lambda x: td.boolean_mask(x, True), F, ValueError, "boolean_mask.*scalar"),
    "einsum": (lambda x: einsum("ij,jk->ik", x, x), F, Invalid, "einsum.*'j' is 3.*2"),
    "einsum_rank": (lambda x: einsum("i->i", x), F, Invalid, r"einsum.*'i'.*2 axes"),
    "tensordot": (lambda x: td.tensordot(x, x, 1), F, Invalid, "tensordot: axis 1.*axis 0"),
    "top_k": (lambda x: top_k(x, 9).values, F, Invalid, "top_k.*k = 9"),
    "sort": (lambda x: sort(x, 0, "DOWN"), F, ValueError, "'DOWN'"),
    "cumsum": (lambda x: td.cumsum(x, 7), F, Invalid, "axis 7 is out of range"),
    "ensure_shape": (
        lambda x: td.ensure_shape(x, [None, 4]), F, Invalid, r"ensure_shape.*\(2, 3\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fn", "array", "kind", "message"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("mode", ["eager", "traced"])
def test_errors(mode: str, fn: Any, array: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        if mode == "eager":
            fn(td.constant(array))
        else:
            trace(fn, [array])
    assert "test_errors.py" in str(caught.value)
