"""Attributes of nodes: comparing them, and finding one form that fits several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.shapes import Dim, SymbolicDim, substitute
from treadle.core.spec import Spec
from treadle.graph.families.expressions import Different, Expressions


def same_attr(pattern: Any, given: Any, dims: Mapping[str, Dim]) -> bool:
    """Whether an attribute of a pattern is `given` when its symbols are replaced by `dims`.

    Arrays and floats are compared bit by bit, types exactly, other objects by identity or equality.
    """
    if pattern is given:
        return True
    if isinstance(pattern, SymbolicDim):
        return bool(substitute(pattern, dims) == given)
    if type(pattern) is not type(given):
        return False
    if isinstance(pattern, tuple | list):
        return len(pattern) == len(given) and all(
            same_attr(a, b, dims) for a, b in zip(pattern, given, strict=True)
        )
    if isinstance(pattern, dict):
        return pattern.keys() == given.keys() and all(
            same_attr(v, given[k], dims) for k, v in pattern.items()
        )
    if isinstance(pattern, np.ndarray):
        return same_array(pattern, given)
    if isinstance(pattern, Spec):
        return pattern.dtype is given.dtype and same_attr(pattern.dims, given.dims, dims)
    if isinstance(pattern, float | complex):
        return repr(pattern) == repr(given)
    return bool(pattern == given)


def same_array(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays have the same dtype, shape and bits."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.hasobject:
        return a.tolist() == b.tolist()  # type: ignore[no-any-return]
    first, second = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    return bool((first == second).all())


def common_attr(attrs: Sequence[Any], expressions: Expressions, near: Sequence[Dim]) -> Any:
    """One attribute for the attributes of all sample graphs, with expressions where ints differ.

    Raises:
        Different: there is none.
    """
    first = attrs[0]
    if all(same_attr(first, other, {}) for other in attrs[1:]):
        return first
    if all(type(a) is int or isinstance(a, SymbolicDim) for a in attrs):
        found = expressions.find(tuple(attrs), near)
        if found is None:
            raise Different(f"{' and '.join(map(repr, attrs))}")
        return found
    kind = type(first)
    if any(type(a) is not kind for a in attrs):
        raise Different(f"{' and '.join(map(repr, attrs))}")
    if kind in (tuple, list) and len({len(a) for a in attrs}) == 1:
        return kind(common_attr(parts, expressions, near) for parts in zip(*attrs, strict=True))
    if kind is dict and all(a.keys() == first.keys() for a in attrs):
        return {k: common_attr([a[k] for a in attrs], expressions, near) for k in first}
    if isinstance(first, Spec) and all(a.dtype is first.dtype for a in attrs):
        return first.with_dims(common_attr([a.dims for a in attrs], expressions, near))
    raise Different(f"{' and '.join(map(repr, attrs))}")
