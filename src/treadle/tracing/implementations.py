"""Several functions that compute one thing, of which a trace takes the one for its device.

TensorFlow's attributes of functions say so: ``api_implements`` names what a function computes, and
``api_preferred_device`` the kind of device that it is for. A library calls the function for any
device, and then adds concrete functions for some kinds of devices to the graph (`add_to_graph`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from treadle.core import nest
from treadle.core.context import context
from treadle.core.tensor import SymbolicTensor
from treadle.ops.shaping.reshaping import ensure_shape

_COMPUTES, _DEVICE = "api_implements", "api_preferred_device"


class _Call(NamedTuple):
    """A call of the function for any device, while a region was recorded."""

    leaves: Sequence[Any]
    results: list[Any]


def note_call(attributes: Mapping[str, Any], leaves: Sequence[Any], result: Any) -> None:
    """Note what a function with such attributes gave for its tensor arguments."""
    recorder: Any = context.recorder
    if recorder is not None and _COMPUTES in attributes and _DEVICE not in attributes:
        recorder.calls[attributes[_COMPUTES]] = _Call(leaves, nest.flatten(result))


def take_over(attributes: Mapping[str, Any], concrete: Any) -> None:
    """Let the results of a noted call be those of a concrete function, where that computes the same
    and is for the kind of device of the trace. Gradients stay those of what was called.
    """
    recorder: Any = context.recorder
    if recorder is None or attributes.get(_DEVICE) != concrete.graph.device.kind:
        return
    call = recorder.calls.pop(attributes.get(_COMPUTES), None)
    specs = list(concrete.graph.argument_specs)
    if call is None or [leaf.spec for leaf in call.leaves] != specs:
        return
    found = nest.flatten(concrete.call_flat(call.leaves))
    given = {id(leaf) for leaf in call.leaves}
    if len(found) != len(call.results) or any(id(old) in given for old in call.results):
        return
    pairs = [(old, _like(old, new)) for old, new in zip(call.results, found, strict=True)]
    if all(new is not None for _, new in pairs):
        for old, new in pairs:
            old.value, old._spec = new.value, new._spec


def _like(old: Any, new: Any) -> Any:
    """A result with the known sizes of another one; None where they are not of one kind."""
    both = (old, new)
    if not all(isinstance(x, SymbolicTensor) and x.recorder is context.recorder for x in both):
        return None
    if old.dtype is not new.dtype or not old.shape.is_compatible_with(new.shape):
        return None
    return ensure_shape(new, old.shape)
