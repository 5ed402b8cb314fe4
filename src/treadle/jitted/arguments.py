"""The arguments of a jitted function: bound to its parameters, and as operands of the program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor, from_array
from treadle.jitted.records import Records, are_records, split
from treadle.jitted.variables import is_ready, native, variable_over
from treadle.ops.state import Variable
from treadle.tracing.signature import display_name

# The kinds of leaves. An array that is the same object as an earlier leaf has that leaf's number
# behind the letter, a Python number its dtype's character.
ARRAY, NUMBER, SCALAR, STATIC = "array", "number:", "scalar", "static"
INT = NUMBER + "l"


class Parameters:
    """The parameters of a Python function, and the values of int arguments that were seen."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = display_name(function)
        self.signature = inspect.signature(function)
        kinds = [p.kind for p in self.signature.parameters.values()]
        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.count = len(kinds)
        self.is_plain = all(k is positional for k in kinds)
        self.names = list(self.signature.parameters)
        self.takes_any_keyword = inspect.Parameter.VAR_KEYWORD in kinds
        # Ints that came with more than one value: (leaf number) -> the first value, or None.
        self.ints: dict[int, int | None] = {}
        self.varying: set[int] = set()  # the leaf numbers of those that vary
        self.pinned: set[int] = set()  # of those that are constants of each program all the same

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        """The arguments in canonical form: defaults filled in, keywords at their positions.

        Raises:
            TypeError: they do not fit the parameters.
        """
        if kwargs or len(args) != self.count or not self.is_plain:
            try:
                bound = self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.name}(): {error}{at(user_origin())}") from None
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        return Bound(self, args, kwargs)

    def is_constant(self, number: int, value: int) -> bool:
        """Whether an int is a constant of the program: as long as it is the only value seen, or
        where tracing needs the value."""
        if number in self.pinned:
            return True
        first = self.ints.setdefault(number, value)
        if first is not None and first != value:
            self.ints[number] = None
            self.varying.add(number)
            return False
        return first is not None

    def pin(self, numbers: Collection[int]) -> None:
        """Have ints be constants of each program, however many values come."""
        self.pinned |= set(numbers)
        self.varying -= self.pinned

    def unpin(self, numbers: Collection[int]) -> None:
        """Take `pin` back."""
        self.pinned -= set(numbers)
        self.varying |= set(numbers)

    def leaf_names(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
        """A readable, unique name for each leaf: ``x``, ``params_0``."""
        names = list(self.names)
        if len(args) > len(names):
            names += [f"arg{i}" for i in range(len(names), len(args))]
        labelled = [*zip(names, args, strict=False), *sorted(kwargs.items())]
        paths = [p for label, v in labelled for p, _ in nest.flatten_with_paths(v, label)]
        taken: dict[str, int] = {}
        found = []
        for path in paths:
            base = "_".join("".join(c if c.isalnum() else " " for c in path).split())
            count = taken[base] = taken.get(base, -1) + 1
            found.append(f"{base}_{count}" if count else base)
        return found


class Bound:
    """One call's arguments.

    Attributes:
        args, kwargs: as the trace takes them: arrays of records as their fields.
        given: both as the Python function takes them.
        leaves: the leaves of these, in order.
        kinds: for every leaf ARRAY, NUMBER, SCALAR or STATIC.
        key: equal for calls that one program serves; None where that cannot be told in advance.
        has_tensors: whether a leaf is a tensor or variable of treadle's.
    """

    __slots__ = (
        "args", "given", "has_tensors", "is_known", "key", "kinds", "kwargs", "leaves",
        "parameters",
    )  # fmt: skip

    def __init__(
        self, parameters: Parameters, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.parameters = parameters
        self.args, self.kwargs = args, kwargs
        self.given = args, kwargs
        self.has_tensors, self.is_known = False, True
        simple = not kwargs and not any(map(_is_nested, args))
        self.leaves = list(args) if simple else nest.flatten((args, kwargs))
        if any(map(are_records, self.leaves)):
            simple = False
            self.args, self.kwargs = args, kwargs = nest.map_structure(split, (args, kwargs))
            self.leaves = nest.flatten((args, kwargs))
        self.kinds: list[str] = []
        keys: list[Any] = [] if simple else [_structure(args, kwargs)]
        seen: dict[int, int] = {}
        for i, leaf in enumerate(self.leaves):
            self.kinds.append(self._kind(i, leaf, keys, seen))
        self.key = tuple(keys) if self.is_known else None

    def _kind(self, number: int, leaf: Any, keys: list[Any], seen: dict[int, int]) -> str:
        if isinstance(leaf, np.ndarray):
            same = seen.setdefault(id(leaf), number)
            keys += (leaf.dtype, leaf.shape, same)
            return ARRAY if same == number else f"{ARRAY}{same}"
        kind = type(leaf)
        if kind is float:
            keys.append(float)
            return NUMBER + "d"
        if kind is int:
            if not -(2**63) <= leaf < 2**63 or self.parameters.is_constant(number, leaf):
                keys.append(leaf)
                return STATIC
            keys.append(int)
            return INT
        if kind is complex:
            keys.append(complex)
            return NUMBER + "D"
        if isinstance(leaf, np.generic) and leaf.dtype.kind in "biufc":
            keys.append(leaf.dtype)
            return SCALAR
        if isinstance(leaf, Tensor | Variable):
            self.has_tensors = True
            keys.append(leaf.spec)
            return ARRAY if leaf.shape.rank else SCALAR
        keys.append((kind, leaf))
        self.is_known = self.is_known and _is_hashable(leaf)
        return STATIC

    def check(self) -> None:
        """Raise TypeError for arrays that the graph cannot hold."""
        for name, leaf in zip(self.names(), self.leaves, strict=True):
            if isinstance(leaf, np.ndarray):
                try:
                    known = dtypes.as_dtype(leaf.dtype)
                except TypeError:
                    known = None
                if known is None or known is dtypes.string:
                    raise TypeError(
                        f"{self.parameters.name}(): the argument {name!r} is an array of dtype "
                        f"{leaf.dtype}, which jitted functions do not take{at(user_origin())}"
                    )

    def are_writable(self, written: Sequence[int]) -> bool:
        """Whether the arrays that a function changes in place can be changed."""
        return all(self.leaves[i].flags.writeable for i in written)

    def check_writable(self, written: Sequence[int]) -> None:
        """Raise ValueError where the function changes a read-only array."""
        for i in written:
            leaf = self.leaves[i]
            if isinstance(leaf, np.ndarray) and not leaf.flags.writeable:
                raise ValueError(
                    f"{self.parameters.name}() changes its argument {self.names()[i]!r} in place, "
                    f"which is read-only{at(user_origin())}"
                )

    def names(self) -> list[str]:
        return self.parameters.leaf_names(self.args, self.kwargs)

    def overlapping(self, written: Sequence[int], captured: Sequence[Any]) -> bool:
        """Whether an array that is written shares memory with another argument, or with a captured
        array."""
        others = [x for x in self.leaves if isinstance(x, np.ndarray)]
        read = [x for x in captured if isinstance(x, np.ndarray)]
        return any(
            np.may_share_memory(array, other) and np.shares_memory(array, other)
            for array in (self.leaves[i] for i in written)
            for other in [*(x for x in others if x is not array), *read]
        )

    def constant_ints(self) -> list[int]:
        """The numbers of the leaves that are ints and constants of the program."""
        return [
            i
            for i, (kind, leaf) in enumerate(zip(self.kinds, self.leaves, strict=True))
            if kind == STATIC and type(leaf) is int
        ]

    def varying_ints(self) -> list[int]:
        """The numbers of the leaves that are ints and read at each call."""
        return [i for i, kind in enumerate(self.kinds) if kind == INT]

    def with_pinned(self, numbers: Collection[int]) -> Bound:
        """The same arguments, with some ints as constants of the program."""
        self.parameters.pin(numbers)
        return Bound(self.parameters, *self.given)

    def places(self, count: int, names: Sequence[str]) -> list[tuple[int | None, Any]] | None:
        """The arguments in canonical order with their places among the values of a call, which are
        `count` values by position and then the keywords'; None as the place of defaults.

        Returns:
            None where keywords cannot be told from parameters.
        """
        parameters = self.parameters
        if names and parameters.takes_any_keyword:
            return None
        given = {name: count + i for i, name in enumerate(names)}
        positional = [
            (i if i < count else given.get(parameters.names[i]), value)
            for i, value in enumerate(self.args)
        ]
        return positional + [(given.get(name), self.kwargs[name]) for name in sorted(self.kwargs)]

    # -- operands ----------------------------------------------------------------------------

    def traced(self, written: set[int]) -> tuple[Any, dict[str, Any]]:
        """The structure of kinds and the leaves by name, for tracing."""
        kinds = nest.pack((self.args, self.kwargs), self.kinds)
        leaves = [
            _variable(leaf)[0] if i in written else self._operand(kind, leaf)
            for i, (kind, leaf) in enumerate(zip(self.kinds, self.leaves, strict=True))
        ]
        return kinds, dict(zip(self.names(), leaves, strict=True))

    def _operand(self, kind: str, leaf: Any) -> Any:
        if kind.startswith(ARRAY):
            return from_array(native(leaf)) if isinstance(leaf, np.ndarray) else leaf
        if kind.startswith(NUMBER):
            return from_array(np.asarray(leaf, kind.removeprefix(NUMBER)))
        return from_array(np.asarray(leaf)) if kind == SCALAR else leaf

    def order(self) -> list[int]:
        """The leaves that the program takes, in the order of its parameters: by name."""
        names = self.names()
        taken = [i for i, kind in enumerate(self.kinds) if kind != STATIC]
        return sorted(taken, key=names.__getitem__)

    def operands(self, written: Sequence[int]) -> tuple[list[Any], list[tuple[Variable, Any]]]:
        """A value of the program for each leaf, and the variables for the arrays it changes."""
        operands: list[Any] = []
        changed: list[tuple[Variable, Any]] = []
        for i, (kind, leaf) in enumerate(zip(self.kinds, self.leaves, strict=True)):
            if i in written:
                variable, array = _variable(leaf)
                operands.append(variable)
                changed.append((variable, array if array is leaf else leaf))
            elif isinstance(leaf, Tensor | Variable):
                operands.append(leaf)
            elif kind.startswith(ARRAY):
                operands.append(leaf if is_ready(leaf) else native(leaf))
            elif kind.startswith(NUMBER):
                operands.append(np.array(leaf, kind.removeprefix(NUMBER)))
            elif kind == SCALAR:
                operands.append(np.array(leaf))
            else:
                operands.append(leaf)
        return operands, changed


class Kinds:
    """The structure of a call's arguments with a kind for every leaf."""

    def __init__(self, kinds: Any) -> None:
        self._kinds = kinds
        self.flat: list[str] = nest.flatten(kinds)

    def pack(self, values: list[Any]) -> Any:
        """(args, kwargs) with the values as leaves."""
        return nest.pack(self._kinds, values)


_NESTED = (list, tuple, dict)
_LEAVES = (np.ndarray, np.generic, int, float, complex, str)


def _is_nested(value: Any) -> bool:
    return isinstance(value, _NESTED) or not (isinstance(value, _LEAVES) or _is_leaf(value))


def _is_leaf(value: Any) -> bool:
    """Whether a value of a kind that is seldom an argument has no parts."""
    return not hasattr(type(value), "__dataclass_fields__") or not nest.is_nested(value)


def _structure(args: Any, kwargs: Any) -> Any:
    """A key of the structure of arguments."""
    if isinstance(args, list | tuple):
        own: Any = (type(args), *(_structure(a, None) for a in args))
    elif isinstance(args, dict):
        own = (dict, *((k, _structure(v, None)) for k, v in sorted(args.items())))
    elif isinstance(args, Records):
        own = (type(args), args.dtype)
    else:
        own = type(args) if nest.is_nested(args) else None
    return (own, _structure(kwargs, None)) if kwargs else own


def _is_hashable(leaf: Any) -> bool:
    try:
        hash(leaf)
    except TypeError:
        return False
    return True


def _variable(array: Any) -> tuple[Variable, Any]:
    """A variable over the array's own memory where programs can write it, else over a copy."""
    ready = array if is_ready(array) and array.flags.aligned else native(array).copy()
    return variable_over(ready), ready
