"""Variables that have no value on some path."""

from __future__ import annotations

from typing import Any, NoReturn

from treadle.autograph.errors import UndefinedVariableError
from treadle.core.origin import at, user_origin


class Undefined:
    """Stands for a variable that was not assigned; using it in any way is an error."""

    __slots__ = ("name", "why")

    name: str
    why: str

    def __init__(self, name: str, why: str = "") -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "why", why or ": the code that assigns it did not run")

    def fail(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UndefinedVariableError(
            f"The variable {self.name!r} is used before it has a value{self.why}{at(user_origin())}"
        )

    def __repr__(self) -> str:
        return f"<undefined {self.name}>"

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        self.fail()

    __bool__ = __call__ = __getitem__ = __setitem__ = __iter__ = __len__ = fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = fail
    __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __pow__ = __neg__ = __matmul__ = fail
    __lt__ = __le__ = __gt__ = __ge__ = __float__ = __int__ = __index__ = fail


def undefined(name: str) -> Undefined:
    """A marker for the variable `name`, which has no value yet."""
    return Undefined(name)


def defined(value: Any) -> Any:
    """`value`, unless it is a marker: then UndefinedVariableError, an UnboundLocalError."""
    return value.fail() if isinstance(value, Undefined) else value
