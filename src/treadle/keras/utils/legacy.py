"""``keras.utils.legacy``: objects as plain data in the form of Keras 2.

An object is ``{"class_name", "config"}``, a function is its name. Nothing says in which module a
class is: it is one of those that a library gives with the call, or that a program registered.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from treadle.keras.serialization import (
    custom_object_scope,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
)
from treadle.names import missing_in

_NESTED = "__passive_serialization__"  # what marks an object among the arguments of another


def serialize_keras_object(instance: Any) -> Any:
    """An object as the name of its class and its config; a function as its name.

    Raises:
        ValueError: it has neither a config nor a name.
    """
    instance = inspect.unwrap(instance)
    if instance is None:
        return None
    if hasattr(instance, "get_config"):
        config = {name: _argument(value) for name, value in instance.get_config().items()}
        return {"class_name": get_registered_name(type(instance)), "config": config}
    if hasattr(instance, "__name__"):
        return get_registered_name(instance)
    raise ValueError(f"Cannot serialize {instance!r} because it doesn't implement `get_config()`.")


def _argument(value: Any) -> Any:
    if isinstance(value, str):
        return value
    try:
        found = serialize_keras_object(value)
    except ValueError:
        return value
    return found | {_NESTED: True} if isinstance(found, dict) else found


def deserialize_keras_object(
    identifier: Any,
    module_objects: Mapping[str, Any] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    printable_module_name: str = "object",
) -> Any:
    """What `serialize_keras_object` was given. A class that is given by its name is called without
    arguments; functions and None are given back.

    Args:
        module_objects: the classes and functions of a library, by name.
        custom_objects: those of its user.
        printable_module_name: what the object is, for errors.

    Raises:
        ValueError: no class or function has the name, or it is nothing of that kind.
    """
    known = (custom_objects, module_objects)
    if identifier is None or inspect.isfunction(identifier):
        return identifier
    if isinstance(identifier, str):
        found = _named(identifier, known, printable_module_name)
        return found() if inspect.isclass(found) else found
    if not isinstance(identifier, dict):
        raise ValueError(f"Could not interpret serialized {printable_module_name}: {identifier!r}")
    if "class_name" not in identifier or "config" not in identifier:
        raise ValueError(
            f"Improper config format for {identifier}. "
            "Expecting python dict contains `class_name` and `config` as keys"
        )
    kind = _named(identifier["class_name"], known, printable_module_name)
    config = identifier["config"]
    if isinstance(config, dict):
        config = {name: _given(name, value, known) for name, value in config.items()}
    own = dict(custom_objects or {})
    if hasattr(kind, "from_config"):
        if "custom_objects" in inspect.signature(kind.from_config).parameters:
            return kind.from_config(config, custom_objects=get_custom_objects() | own)
        with custom_object_scope(own):
            return kind.from_config(config)
    with custom_object_scope(own):
        return kind(**config)


_Known = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]


def _named(name: str, known: _Known, what: str) -> Any:
    found = get_registered_object(name, *known)
    if found is None:
        raise ValueError(
            f"Unknown {what}: {name!r}. Please ensure you are using a "
            "`keras.utils.custom_object_scope` and that this object is included in the scope."
        )
    return found


def _given(name: str, value: Any, known: _Known) -> Any:
    """An argument from what `_argument` made of it: functions are given by their names."""
    if name == "name":  # a text, also where a function is called so
        return value
    if isinstance(value, dict) and _NESTED in value:
        return deserialize_keras_object(value, known[1], known[0], "config_item")
    if isinstance(value, str):
        found = get_registered_object(value, *known)
        return found if inspect.isfunction(found) else value
    return value


__all__ = ["deserialize_keras_object", "serialize_keras_object"]

__getattr__ = missing_in(__name__)
