"""What programs give to writers of summaries, in program order (`treadle.summary`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray
from treadle.ops.registry import Op, register


def _infer(*inputs: Spec, write: Any) -> TensorSpec:
    return TensorSpec((), dtypes.bool)


def _write_now(*arrays: NDArray, write: Any) -> Any:
    write(*arrays)
    return np.bool_(True)


# `write` takes the arrays of the inputs. Equal ones do the same, so that traces share a program.
WRITE_SUMMARY = register(
    Op(
        "write_summary", _infer, _write_now, effect="io", tags=frozenset({"quiet", "strings"}),
        callback="Python writes the files of summaries",
    )
)  # fmt: skip
