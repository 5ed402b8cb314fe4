"""Objects of a loaded model."""

from __future__ import annotations

from typing import Any

from treadle.module import Module
from treadle.saved_model.signatures import SignatureMap


class _Held:
    """A property of modules, unless the saved object had an attribute of that name."""

    def __init__(self, name: str) -> None:
        self.name, self.computed = name, getattr(Module, name)

    def __get__(self, held: Any, owner: type | None = None) -> Any:
        if held is None:
            return self
        own = vars(held)
        return own[self.name] if self.name in own else self.computed.__get__(held, owner)

    def __set__(self, held: Any, value: Any) -> None:
        vars(held)[self.name] = value


class LoadedObject(Module):
    """An object of a saved model, with the attributes that it had: variables, functions, assets,
    objects, and lists, tuples and dicts of them.

    Attributes:
        signatures: of the model's first object, the functions that it is served by.
        function_aliases: of the first object, where `LoadOptions` asks for it, functions by the
            names that `SaveOptions` gave them.
    """

    signatures: SignatureMap
    function_aliases: dict[str, Any]

    def hold(self, name: str, value: Any) -> None:
        """Give the object an attribute that it had.

        Raises:
            ValueError: the name is that of a method that objects have here.
        """
        if not self.may_hold(name):
            raise ValueError(f"an object has an attribute named {name!r}")
        vars(self)[name] = value

    @staticmethod
    def may_hold(name: str) -> bool:
        """Whether objects have no method of that name here."""
        held = name == "__call__" or isinstance(vars(LoadedObject).get(name), _Held)
        return held or not hasattr(LoadedObject, name)

    name = _Held("name")
    variables = _Held("variables")
    trainable_variables = _Held("trainable_variables")
    non_trainable_variables = _Held("non_trainable_variables")
    submodules = _Held("submodules")
    name_scope = _Held("name_scope")


class LoadedCallable(LoadedObject):
    """An object of a saved model that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the saved object gives."""
        return vars(self)["__call__"](*args, **kwargs)


def set_aliases(root: LoadedObject, aliases: dict[str, Any]) -> None:
    """Let a loaded object have its functions by the aliases that they were saved under.

    Raises:
        ValueError: it has an attribute of that name.
    """
    if hasattr(root, "function_aliases"):
        raise ValueError(
            "Could not load with experimental_load_function_aliases option because the top-level "
            "object already has an attribute with name 'function_aliases'"
        )
    root.function_aliases = aliases
