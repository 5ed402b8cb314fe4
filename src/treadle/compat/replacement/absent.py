"""Parts of TensorFlow that treadle does not have, where libraries name them.

Libraries name more than they use: classes of other devices in annotations, dtypes in tables, bases
of classes that few of their users make. With an `Absent` class in such a place a library can be
imported, and what does not use the class runs. To call one is an error.
"""

from __future__ import annotations

import importlib
from abc import ABCMeta
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.names import missing_name


class _Absent(ABCMeta):
    """The class of `Absent` and its like, whose attributes are absent, too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_") or "full_name" not in vars(cls):  # or a class of a library
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        found = absent(f"{cls.full_name}.{name}", cls.reason)
        setattr(cls, name, found)
        return found


class Absent(metaclass=_Absent):
    """In the place of a class, function, module or value. No object is one of its instances.

    Attributes:
        full_name: what TensorFlow calls it.
        reason: why it is not here, or what to use instead.
    """

    full_name = ""
    reason = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{self.full_name}: {self.reason}{at(user_origin())}")


def absent(full_name: str, reason: str) -> Any:
    """The class that stands for a name of TensorFlow's."""
    last = full_name.rpartition(".")[2]
    return type(last, (Absent,), {"full_name": full_name, "reason": reason, "__module__": __name__})


# Public names that libraries have in annotations, tables and bases of classes.
_NAMED = """
    Operation lite mlir qint8 qint16 qint32 quint8
    quint16 resource tpu variant compat.v1.tpu distribute.cluster_resolver.TPUClusterResolver
    experimental.dtensor lookup.experimental distribute.experimental.partitioners
"""


def name_absent_parts() -> None:
    """Give treadle's modules the names that libraries have in annotations and tables."""
    for path in _NAMED.split():
        parent, _, last = f"treadle.{path}".rpartition(".")
        module: Any = importlib.import_module(parent)
        if last not in vars(module):
            setattr(module, last, absent(f"tensorflow.{path}", str(missing_name(parent, last))))
