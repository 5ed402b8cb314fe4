"""Labels that are one number everywhere, against logits of many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

LOGITS = np.linspace(-3.0, 3.0, 512, dtype=np.float32).reshape(512, 1)


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("open_rows", [False, True])
def test_sigmoid_cross_entropy_of_equal_labels(value: float, open_rows: bool) -> None:
    def loss(logits: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(logits)
            labels = td.ones_like(logits) * value
            losses = td.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
            total = td.reduce_mean(losses)
        return total, tape.gradient(total, logits)

    signature = [td.TensorSpec([None if open_rows else 512, 1])]
    found = td.function(loss, input_signature=signature)(LOGITS)
    wide = LOGITS.astype(np.float64)
    expected = np.log1p(np.exp(-wide if value else wide)).mean()
    slope = (1.0 / (1.0 + np.exp(-wide)) - value) / 512
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)
    np.testing.assert_allclose(found[1], slope, rtol=1e-4, atol=1e-9)
