"""Masks of tensors: which time steps or examples count.

A mask travels with the tensor that a layer or a loss function gave, as in Keras 3; losses and
metrics look it up.
"""

from __future__ import annotations

import weakref
from typing import Any

import treadle as td

_masks: dict[int, tuple[weakref.ref[Any], Any]] = {}


def mask_of(tensor: Any) -> Any:
    """The mask of a tensor, or None."""
    found = _masks.get(id(tensor))
    return found[1] if found is not None and found[0]() is tensor else None


def set_mask(tensor: td.Tensor, mask: Any) -> None:
    """Let `mask` be that of the tensor for as long as the tensor is there; None takes it away."""
    key = id(tensor)
    if mask is None:
        _masks.pop(key, None)
        return

    def forget(reference: weakref.ref[Any]) -> None:
        found = _masks.get(key)
        if found is not None and found[0] is reference:
            del _masks[key]

    _masks[key] = weakref.ref(tensor, forget), mask
