"""Variables that have no value on some path."""

from __future__ import annotations

from typing import Any, NoReturn

from treadle.autograph.errors import UndefinedVariableError
from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.core.tensor import SymbolicTensor
from treadle.ops.control.io import Assert

RETURN_VALUE = "return value"  # the marker of a `return` that has not happened


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


class PartlyDefined(Undefined):
    """A variable that one branch of a conditional has assigned: not to be read, but a loop or
    another conditional may complete it.

    Attributes:
        value: its value where it was assigned, with a flag that tells where that is.
    """

    __slots__ = ("value",)

    value: Any

    def __init__(self, name: str, why: str, value: Any) -> None:
        super().__init__(name, why)
        object.__setattr__(self, "value", value)


def completed(value: Any) -> Any:
    """The flagged value of a partly defined variable; other values as they are."""
    return value.value if isinstance(value, PartlyDefined) else value


def undefined(name: str) -> Undefined:
    """A marker for the variable `name`, which has no value yet."""
    return Undefined(name)


def defined(value: Any) -> Any:
    """`value`, unless it is a marker: then UndefinedVariableError, an UnboundLocalError.

    Where only the running graph can tell, an assertion is recorded.
    """
    if isinstance(value, Undefined):
        value.fail()
    if type(value) is SymbolicTensor or nest.is_nested(value):
        for leaf in nest.flatten(value):
            if type(leaf) is SymbolicTensor and leaf.assigned is not None:
                _check_assigned(*leaf.assigned)
    return value


def made(value: Any, what: str) -> Any:
    """What a place of an object holds after the loop that made it: its reads are not looked at, so
    an assertion is recorded at once where the loop may have left it out.

    Args:
        what: the attribute or item, for the error.
    """
    flagged = [leaf for leaf in nest.flatten(value) if assigned_flag(leaf) is not None]
    for flag in {id(leaf.assigned[0]): leaf.assigned[0] for leaf in flagged}.values():
        message = f"{what} has no value: the loop that makes it ran no iteration, or none in which "
        Assert(flag, [message + "it is assigned"])
    for leaf in flagged:
        leaf.assigned = None
    return value


def assigned_flag(value: Any) -> Any:
    """The bool tensor that tells whether `value` was assigned; None where it was in any case."""
    if type(value) is not SymbolicTensor or value.assigned is None:
        return None
    return value.assigned[0]


def with_flag(value: Any, assigned: Any, name: str) -> Any:
    """`value` of the variable `name`, which has a meaning only where `assigned` is true."""
    if type(value) is SymbolicTensor:
        value.assigned = (assigned, name)
    return value


def _check_assigned(assigned: Any, name: str) -> None:
    message = (
        f"the variable {name!r} is used before it has a value: the loop that assigns it ran no "
        "iteration, or none in which it is assigned"
    )
    Assert(assigned, [message])
