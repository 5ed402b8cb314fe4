"""What a checkpoint and a program have, node by node: what fits together, and what only one has."""

from __future__ import annotations

import logging
import os
import weakref
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.train import trackable
from treadle.train.nodes import Node
from treadle.train.reader import open_file

_logger = logging.getLogger("treadle")


class TrackableView:
    """The graph of objects below a root, as a checkpoint of it would have it.

    Args:
        root: an object, which is not kept alive; or a weak reference to one.
    """

    def __init__(self, root: Any) -> None:
        self._root_ref = root if isinstance(root, weakref.ref) else _reference(root)

    @classmethod
    def children(cls, obj: Any, save_type: Any = None, **kwargs: Any) -> dict[str, Any]:
        """The objects that an object refers to, by name.

        Args:
            save_type, kwargs: accepted for TensorFlow programs.
        """
        return trackable.children(obj)

    @property
    def root(self) -> Any:
        """The root.

        Raises:
            ReferenceError: it is there no more.
        """
        found = self._root_ref()
        if found is None:
            raise ReferenceError(f"the root of the view was deleted{at(user_origin())}")
        return found

    def descendants(self) -> list[Any]:
        """All objects, the root first, nearest first."""
        return trackable.Walk(self.root, with_slots=False).objects


def _reference(root: Any) -> Any:
    """A weak reference to an object, or what gives one that there are none to, such as a list."""
    try:
        return weakref.ref(root)
    except TypeError:
        return lambda: root


class CheckpointView:
    """The graph of objects that a checkpoint has. Nodes are numbers; that of the root is 0.

    Args:
        save_path: of the checkpoint, as `Checkpoint.save` gives it.

    Raises:
        NotFoundError: there is no checkpoint.
        ValueError: it has names of variables, and no objects.
        DataLossError: it is damaged.
    """

    def __init__(self, save_path: Any) -> None:
        file = open_file(os.fspath(save_path))
        if file.nodes is None:
            raise ValueError(
                f'The specified checkpoint "{save_path}" does not appear to be object-based: it '
                f"has values by the names of variables, and no graph of objects{at(user_origin())}"
            )
        self._nodes: list[Node] = file.nodes

    def children(self, node_id: int) -> dict[str, int]:
        """The nodes that a node refers to, by name."""
        return dict(self._nodes[node_id].children)

    def descendants(self) -> list[int]:
        """All nodes that are reached from the root by names, nearest first."""
        found = {0: None}
        waiting = [0]
        for number in waiting:
            for child in self._nodes[number].children.values():
                if child not in found:
                    found[child] = None
                    waiting.append(child)
        return list(found)

    def match(self, obj: Any) -> dict[int, Any]:
        """The objects of a program that are at the same place as a node, by node.

        Args:
            obj: what the root stands for.

        Raises:
            ValueError: `obj` refers to nothing that a checkpoint can hold.
        """
        if not trackable.is_trackable(obj):
            raise ValueError(
                f"Expected a Trackable, got {obj} of type {type(obj)}.{at(user_origin())}"
            )
        found: dict[int, Any] = {0: obj}
        waiting = [0]
        for number in waiting:
            there = trackable.children(found[number])
            for name, child in self._nodes[number].children.items():
                if child == 0 or name not in there:
                    continue
                if child not in found:
                    found[child] = there[name]
                    waiting.append(child)
                elif found[child] is not there[name]:
                    _logger.warning(
                        "Inconsistent references when matching the checkpoint into this object "
                        "graph. The referenced objects are: (%s and %s).", found[child],
                        there[name],
                    )  # fmt: skip
        return found

    def diff(self, obj: Any) -> tuple[dict[int, Any], list[int], list[Any]]:
        """What fits together, and what only one side has: what `match` gives, the nodes of the
        checkpoint that no object stands for, and the objects that are in no place of it."""
        found = self.match(obj)
        known = {id(value) for value in found.values()}
        objects = TrackableView(obj).descendants()
        return (
            found,
            [number for number in self.descendants() if number not in found],
            [value for value in objects if id(value) not in known],
        )
