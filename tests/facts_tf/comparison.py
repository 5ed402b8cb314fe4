"""Where two facts differ: paths such as ``[0].error`` with both values."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from typing import Any

from tests.facts_tf.registry import HERE

ABSENT = "(absent)"
RAISES = "raises "
# TensorFlow computes in these dtypes themselves, treadle in float32, which it then rounds.
ROUNDING = {"float16": 4e-3, "bfloat16": 1.6e-2}
ROUNDED = 1e-5  # of other dtypes
Differences = dict[str, tuple[Any, Any]]


@functools.cache
def recorded(group: str) -> dict[str, Any]:
    """The facts of a group, by program."""
    facts: dict[str, Any] = json.loads((HERE / "facts" / f"{group}.json").read_text())
    del facts["tensorflow"]
    return facts


def differences(
    expected: Any, actual: Any, path: str = "", rounding: float = ROUNDED
) -> Differences:
    """What differs, by place: floats to rounding, everything else exactly, types included.

    Tensors are dicts with one key that tells dtype and shape, so a wrong dtype is a whole tensor.

    Args:
        rounding: by which floats may differ, relative to their sizes.
    """
    if type(expected) is not type(actual):
        return {path: (expected, actual)}
    if isinstance(expected, dict):
        if _is_leaf(expected) or _is_leaf(actual):
            return _of_leaves(expected, actual, path, rounding)
        found: Differences = {}
        for key in dict.fromkeys([*expected, *actual]):
            inner = path if key == "tuple" else f"{path}.{key}"
            values = expected.get(key, ABSENT), actual.get(key, ABSENT)
            found |= differences(*values, inner, rounding)
        return found
    if isinstance(expected, list):
        if len(expected) != len(actual):
            return {path: (expected, actual)}
        pairs = enumerate(zip(expected, actual, strict=True))
        parts = [differences(e, a, f"{path}[{i}]", rounding) for i, (e, a) in pairs]
        return {key: value for part in parts for key, value in part.items()}
    return {} if _same(expected, actual, rounding) else {path: (expected, actual)}


def _is_leaf(value: dict[str, Any]) -> bool:
    """Whether this is a tensor, variable or array: ``{"int32[2]": [1, 2]}``, or a ragged one."""
    key = next(iter(value), "")
    return len(value) == 1 and (key.endswith((")", "]")) or key.startswith("ragged "))


def _of_leaves(
    expected: dict[str, Any], actual: dict[str, Any], path: str, rounding: float
) -> Differences:
    if list(expected) == list(actual):
        (key,) = expected
        if _close(expected[key], actual[key], ROUNDING.get(key.partition("[")[0], rounding)):
            return {}
    return {path: (expected, actual)}


def _close(expected: Any, actual: Any, rounding: float) -> bool:
    if isinstance(expected, list) and isinstance(actual, list):
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(_close(e, a, rounding) for e, a in pairs)
    if isinstance(expected, float) and isinstance(actual, float):
        return math.isclose(expected, actual, rel_tol=rounding, abs_tol=1e-6)
    return not differences(expected, actual)


def _same(expected: Any, actual: Any, rounding: float) -> bool:
    if isinstance(expected, float):
        return math.isclose(expected, actual, rel_tol=rounding, abs_tol=1e-6)
    if isinstance(expected, str) and expected.startswith(RAISES) and actual.startswith(RAISES):
        # An except clause that catches TensorFlow's type catches this one.
        wanted, *_ = expected.removeprefix(RAISES).split(" < ")
        return wanted in actual.removeprefix(RAISES).split(" < ")
    return bool(expected == actual)


@dataclass(frozen=True)
class Deviation:
    """Something that treadle does differently on purpose.

    Attributes:
        title, tensorflow, treadle, reason: for the table of the documentation.
        facts: by ``group.program`` the places that differ, with what treadle gives there.
    """

    title: str
    tensorflow: str
    treadle: str
    reason: str
    facts: dict[str, dict[str, Any]]


@functools.cache
def deviations() -> list[Deviation]:
    """The deliberate deviations, in the order of the documentation."""
    entries = json.loads((HERE / "deviations.json").read_text())
    return [Deviation(**entry) for entry in entries]


def deviating(program: str) -> dict[str, Any]:
    """The places of ``group.program`` that differ on purpose, with what treadle gives there."""
    found: dict[str, Any] = {}
    for deviation in deviations():
        found |= deviation.facts.get(program, {})
    return found
