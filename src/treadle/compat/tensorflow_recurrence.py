"""TensorFlow's operation that runs an LSTM over a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.compat.tensorflow_ops import Attrs, rule


@rule("BlockLSTMV2", results="i cs f o ci co h")
def _block_lstm(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """The gates, states and results of all steps; zeros for those after the length, where the gates
    of TensorFlow are whatever its memory held."""
    length, x, cs, h, w, wci, wcf, wco, b = map(td.convert_to_tensor, inputs)
    most, peephole = attrs.get("cell_clip", 0.0), attrs.get("use_peephole", False)

    def step(state: Any, x: Any) -> Any:
        cs, h = state[1], state[-1]
        i, f, ci, o = td.split(td.concat([x, h], 1) @ w + b, 4, axis=1)
        if peephole:
            i, f = i + cs * wci, f + cs * wcf
        i, f, ci = td.sigmoid(i), td.sigmoid(f), td.tanh(ci)
        cs = ci * i + cs * f
        if most > 0.0:
            cs = td.clip_by_value(cs, -most, most)
        o = td.sigmoid(o + cs * wco if peephole else o)
        co = td.tanh(cs)
        return i, cs, f, o, ci, co, co * o

    nothing = td.zeros_like(cs)
    found = td.scan(step, x, (nothing, cs, nothing, nothing, nothing, nothing, h))
    inside = td.range(td.shape(x)[0], dtype=length.dtype) < length
    return tuple(td.where(inside[:, None, None], each, td.zeros_like(each)) for each in found)
