"""``experimental_enable_numpy_behavior``: what TensorFlow 2.21 gives after it, in a process of its
own, as it holds for the rest of the process."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

PROGRAM = """
import json
import numpy as np
import treadle as td
import treadle.experimental.numpy as tnp

if {native}:
    for _ in range(600):  # until the native operators are there
        td.ones([]) + td.ones([])
tnp.experimental_enable_numpy_behavior({options})
print(json.dumps([x.dtype.name if hasattr(x, "dtype") else list(x) for x in ({values})]))
"""


def found(values: str, options: str = "", native: bool = False) -> Any:
    program = PROGRAM.format(values=values, options=options, native=native)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


OPERATORS = """
td.ones([], td.int8) + td.ones([], td.uint8), td.ones([], td.int32) + td.ones([], td.int64),
td.ones([], td.int32) + td.ones([], td.float32), td.ones([], td.float16) + td.ones([], td.float32),
td.ones([], td.int32) * td.ones([], td.complex64), td.ones([], td.int32) + 1.5,
td.ones([]) + 1.5, td.ones([]) + np.float64(1.5), td.ones([]) * np.ones([2], np.int64),
1.5 + td.ones([], td.int32), td.ones([], td.int32) + 1j, td.ones([], td.int32) + 2,
td.ones([], td.int64) / td.ones([], td.int32), td.ones([], td.int32) < td.ones([], td.int64),
td.ones([1, 1], td.int32) @ td.ones([1, 1]), td.Variable(1) + td.constant(1.5),
td.function(lambda x: x + td.ones([], td.int64))(td.constant(1.5)),
"""
DTYPES = (
    "int16 int64 float64 float32 complex128 float64 float32 float64 float64 float64 complex128 "
    "int32 float64 bool float64 float64 float64"
).split()


def test_operators_promote() -> None:
    assert found(OPERATORS) == DTYPES


def test_operators_promote_where_the_native_ones_were_there_before() -> None:
    assert found(OPERATORS, native=True) == DTYPES


def test_floats_may_be_float32() -> None:
    values = "tnp.asarray(1.0), tnp.add(1.0, 2.0), tnp.asarray(np.float64(1)), tnp.asarray(1),"
    assert found(values) == ["float64", "float64", "float64", "int64"]
    assert found(values, "prefer_float32=True") == ["float32", "float32", "float32", "int64"]


def test_tuples_in_a_key_are_positions() -> None:
    code = (
        "td.zeros((2, 3, 4))[:, (True, False, True)].shape, "
        "td.zeros((2, 3, 4))[1, (0, 0, 1), td.constant([0, 1, 1])].shape, "
        "td.zeros((2, 3, 4))[(0, 1), :].shape,"
    )
    assert found(code) == [[2, 2, 4], [3], [2, 3, 4]]
