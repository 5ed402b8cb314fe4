"""Functions that take their arguments in an older order, or by older names, than they do now.

``tf.pad(x, paddings, "CONSTANT", "padded")`` gives a name in TensorFlow 1, and a value in 2: a call
by position must not mean something else.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treadle.core.origin import at, user_origin

_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_REQUIRED = inspect.Parameter.empty


class OlderArguments:
    """The arguments that an older version of a function takes.

    Args:
        name: the function's, for errors.
        order: the arguments' names in the older order, as ``"value=input strides name"``:
            ``old=new`` are those that are called otherwise now, ``old=`` those that say nothing
            here.
    """

    def __init__(self, name: str, order: str) -> None:
        entries = [entry.partition("=") for entry in order.split()]
        self._name = name
        self._names = [old for old, _, _ in entries]
        self._now = {old: new if sign else old for old, sign, new in entries}

    def fit(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether no argument is given by position that there is not, and none twice."""
        by_position = self._names[: len(args)]
        return len(by_position) == len(args) and not any(name in kwargs for name in by_position)

    def by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by the names that they have now.

        Raises:
            TypeError: there are too many, or one is given twice.
        """
        if len(args) > len(self._names):
            raise TypeError(
                f"{self._name} takes {len(self._names)} arguments by position, but {len(args)} "
                f"were given{at(user_origin())}"
            )
        given: dict[str, Any] = {}
        by_position = dict(zip(self._names, args, strict=False))
        for old, value in [*by_position.items(), *kwargs.items()]:
            new = self._now.get(old, old)
            if not new or (new != old and value is None):
                continue  # the older of two names is None where the newer one is given
            is_twice = old in by_position and old in kwargs
            if is_twice or given.get(new) is not None:
                raise TypeError(f"{self._name} got multiple values for {new!r}{at(user_origin())}")
            given[new] = value
        return given

    def taken_by(
        self, call: Callable[..., Any], prepare: Callable[[dict[str, Any]], object] | None = None
    ) -> Callable[..., Any]:
        """A function, or a method of a class, that takes its arguments so.

        Args:
            prepare: changes the arguments, by the names that they have now, before the call.
        """
        parameters = inspect.signature(call).parameters
        own = int(next(iter(parameters), None) == "self")

        @functools.wraps(call)
        def taking(*args: Any, **kwargs: Any) -> Any:
            given = self.by_name(args[own:], kwargs)
            if prepare is not None:
                prepare(given)
            return call(*args[:own], **given)

        found = [inspect.Parameter("self", _POSITIONAL)] * own + self._parameters(parameters)
        vars(taking)["__signature__"] = inspect.Signature(found)
        return taking

    def _parameters(self, known: Mapping[str, inspect.Parameter]) -> list[inspect.Parameter]:
        """The parameters in the older order. Of two names for one argument either is given."""
        now = list(self._now.values())
        found: list[inspect.Parameter] = []
        for old in self._names:
            new = self._now[old]
            default = known[new].default if new in known else None
            follows = any(p.default is not _REQUIRED for p in found)
            if now.count(new) > 1 or (default is _REQUIRED and follows):
                default = None
            found.append(inspect.Parameter(old, _POSITIONAL, default=default))
        return found
