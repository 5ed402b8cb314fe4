"""``x[key] = value`` where x may be a tensor, which then is replaced by a new one."""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.autograph.operators.aliases import Owner, check_aliases
from treadle.autograph.operators.calls import call
from treadle.autograph.operators.journal import note_item
from treadle.autograph.operators.lists import as_graph_list
from treadle.autograph.operators.paths import Path
from treadle.core.origin import at, user_origin
from treadle.core.tensor import SymbolicTensor, Tensor, may_share
from treadle.ops.collections.graph_list import GraphList
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import identity
from treadle.ops.indexing.basic import is_array
from treadle.ops.indexing.updates import set_item as updated_tensor
from treadle.ops.numbers.python_numbers import is_symbolic_number
from treadle.ops.numbers.tabulated import element_at
from treadle.ops.properties import PartUse

slice = builtins.slice


def get_item(target: Any, key: Any) -> Any:
    """``target[key]``; an array or list that is read at a traced position becomes a constant."""
    if type(target) in (np.ndarray, list, tuple) and _has_number(key):
        return element_at(target, key)
    if isinstance(target, np.ndarray) and _is_traced(key):
        return convert_to_tensor(target)[key]
    return target[key]


def _has_number(key: Any) -> bool:
    return is_symbolic_number(key) or (type(key) is tuple and any(map(is_symbolic_number, key)))


def _is_traced(key: Any) -> bool:
    if isinstance(key, builtins.slice):
        return any(isinstance(k, SymbolicTensor) for k in (key.start, key.stop, key.step))
    if isinstance(key, tuple):
        return any(map(_is_traced, key))
    return isinstance(key, SymbolicTensor)


def set_item(target: Any, key: Any, value: Any, owner: Owner | None = None) -> Any:
    """The value of the variable after ``target[key] = value``.

    A tensor gives a new tensor; a NumPy array that takes symbolic values becomes one. Any other
    object is changed in place and comes back itself.

    Raises:
        TypeError: the object takes no items, or the key or value does not suit it.
        InvalidArgumentError: a position out of range, or a value that does not broadcast.
        StagingTypeError: another variable that is still read shares the tensor's elements.
    """
    inside = _set_inside if isinstance(key, Path) else _set
    return inside(target, key, value, owner)


def _set(target: Any, key: Any, value: Any, owner: Owner | None = None) -> Any:
    """`set_item` for one key; `owner` is where the target is."""
    if isinstance(target, Tensor) or _needs_tensor(target, key, value):
        check_aliases(target, owner)
        return _own(updated_tensor(target, key, value), value)
    if type(target) is list and isinstance(key, SymbolicTensor):
        target = as_graph_list(target)
    note_item(target, key)
    method = getattr(type(target), "__setitem__", None)
    if isinstance(method, types.FunctionType):  # the user's own
        call(types.MethodType(method, target))(key, value)
    else:
        target[key] = value
    return target


def _own(made: Tensor, value: Any) -> Tensor:
    """`made` with elements of its own: a whole that is replaced is the assigned value itself."""
    if isinstance(made, SymbolicTensor):
        node = made.value.node
        part = None if node is None else node.op.part
        shared = part is None or part.use is not PartUse.SET
    else:
        shared = isinstance(value, Tensor) and may_share(made, value)
    return identity(made) if shared else made


def update_item(target: Any, key: Any, symbol: str, value: Any, owner: Owner | None = None) -> Any:
    """The value of the variable after ``target[key] += value``, or another such operator."""
    update = _UPDATES[symbol]
    if isinstance(target, Tensor) and _is_mask(key) and np.ndim(value) == 0:
        check_aliases(target, owner)
        mask = convert_to_tensor(key)
        mask = mask[(..., *(None,) * (target.ndim - mask.ndim))]
        changed = update(target, value)
        if changed.dtype is target.dtype:
            return where(mask, changed, target)
    inner = Path(key[:-1]) if isinstance(key, Path) else Path(())
    holder = _get_inside(target, inner)
    last = key[-1] if isinstance(key, Path) else key
    if isinstance(holder, np.ndarray) and _needs_tensor(holder, last, value):
        holder = convert_to_tensor(holder)
    return set_item(target, key, update(holder[last], value), owner)


def set_attribute_item(owner: Any, name: str, key: Any, value: Any) -> None:
    """``owner.name[key] = value``; where the attribute is a tensor it gets the new one."""
    target, place = getattr(owner, name), Owner(owner, name, owner)
    _replace(owner, name, set_item(target, key, value, place))


def update_attribute_item(owner: Any, name: str, key: Any, symbol: str, value: Any) -> None:
    """``owner.name[key] += value``, or another assigning operator."""
    target, place = getattr(owner, name), Owner(owner, name, owner)
    _replace(owner, name, update_item(target, key, symbol, value, place))


def _replace(owner: Any, name: str, made: Any) -> None:
    if made is not getattr(owner, name) and isinstance(made, Tensor | GraphList):
        setattr(owner, name, made)


def _set_inside(target: Any, keys: Path, value: Any, owner: Owner | None = None) -> Any:
    """``target[a][b] = value``: from the inside out, as far as there are tensors."""
    first, rest = keys[0], Path(keys[1:])
    if not rest:
        return _set(target, first, value, owner)
    if not isinstance(target, Tensor):
        inner = target[first]
        place = Owner(target, first, target if owner is None else owner.root)
        made = _set_inside(inner, rest, value, place)
        return target if made is inner else _set(target, first, made, owner)
    if _selects_copy(first):
        raise TypeError(
            "A mask or an array of positions selects a copy, which the second index would assign "
            f"to: put both into one index{at(user_origin())}"
        )
    check_aliases(target, owner)
    return _own(_updated_inside(target, keys, value), value)


def _updated_inside(target: Tensor, keys: Path, value: Any) -> Tensor:
    """A part of a tensor with a part of its own replaced."""
    if len(keys) > 1:
        value = _updated_inside(target[keys[0]], Path(keys[1:]), value)
    return updated_tensor(target, keys[0], value)


def _get_inside(target: Any, keys: Path) -> Any:
    for key in keys:
        target = target[key]
    return target


def _needs_tensor(target: Any, key: Any, value: Any) -> bool:
    """Whether an array must become a tensor of the graph to take the item."""
    keys = key if isinstance(key, tuple) else (key,)
    return isinstance(target, np.ndarray) and any(
        isinstance(x, SymbolicTensor) for x in (*keys, value)
    )


def _is_mask(key: Any) -> bool:
    return is_array(key) and has_dtype(key) and convert_to_tensor(key).dtype.is_bool


def _selects_copy(key: Any) -> bool:
    return any(is_array(k) for k in (key if isinstance(key, tuple) else (key,)))


_UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul,
    "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor, "<<=": operator.ilshift,
    ">>=": operator.irshift,
}  # fmt: skip
