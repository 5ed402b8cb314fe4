"""Models in ONNX, checked and run by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

import treadle as td


def exported(fn: Any, *args: Any) -> Any:
    """The model of a function, which onnx has checked."""
    model = td.onnx.export(fn, None, *args)
    onnx.checker.check_model(model, full_check=True)
    return model


def session(model: Any) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def results(model: Any, arrays: Sequence[Any]) -> list[Any]:
    """What onnxruntime computes."""
    running = session(model)
    names = [x.name for x in running.get_inputs()]
    given = zip(names, map(np.asarray, arrays), strict=True)
    return list(running.run(None, dict(given)))


def agree(found: Sequence[Any], wanted: Sequence[Any], close: float = 1e-5) -> None:
    """Arrays have one dtype and shape, and elements that are at most so far apart."""
    for a, b in zip(found, map(np.asarray, wanted), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=close, atol=close)
        else:
            np.testing.assert_array_equal(a, b)
