"""Members that classes of treadle get when they stand for those of TensorFlow or Keras 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

# By the class: names, with the functions, properties and values that it is to have by them.
Members: TypeAlias = Mapping[type, Mapping[str, Any]]


def have_members(members: Members) -> None:
    """Give classes members, beside their own or in place of these."""
    for owner, own in members.items():
        for name, member in own.items():
            setattr(owner, name, member)
