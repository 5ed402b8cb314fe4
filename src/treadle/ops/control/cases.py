"""``case`` and ``switch_case``: one of several functions runs, as branches within branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.spec import spec_text
from treadle.core.tensor import Tensor
from treadle.ops.control.control_flow import check_predicate, cond, traceable
from treadle.ops.control.io import Assert
from treadle.ops.conversion import convert_to_tensor, is_symbolic
from treadle.ops.elementwise.arithmetic import add_n
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import less, less_equal
from treadle.ops.elementwise.logic import logical_and

Branch = Callable[[], Any]


def case(
    pred_fn_pairs: Sequence[tuple[Any, Branch]],
    default: Branch | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """What the function of the first true predicate returns.

    Args:
        pred_fn_pairs: pairs of a scalar bool tensor and a function without arguments. In a
            function (`td.function`) all functions are traced and must return one structure.
        default: runs where no predicate is true. Without it the last function does, and its
            predicate must be true.
        exclusive: more than one true predicate is an error.
        strict, name: accepted for TensorFlow programs.

    Raises:
        TypeError: a predicate is no scalar bool tensor, a function cannot be called, or the
            functions return different structures or dtypes.
        ValueError: there are no pairs.
        InvalidArgumentError: when it runs: no predicate is true and there is no default, or
            `exclusive` and more than one is.
    """
    pairs = [_checked_pair(pair) for pair in _pairs(pred_fn_pairs)]
    predicates = [pred for pred, _ in pairs]
    if default is not None:
        default = traceable("case", default=default)
    if exclusive:
        count = add_n([cast(p, dtypes.int32) for p in predicates])
        message = "case: more than one condition is true and exclusive=True:"
        Assert(less_equal(count, 1), [message, *predicates])
    if default is None:
        pairs, default = pairs[:-1], _last(predicates, pairs[-1][1])

    def from_pair(number: int) -> Any:
        if number == len(pairs):
            return default()
        pred, function = pairs[number]
        return cond(pred, function, lambda: from_pair(number + 1))

    return from_pair(0)


def _pairs(given: Any) -> Sequence[Any]:
    if not isinstance(given, list | tuple):
        raise TypeError(
            "case: pred_fn_pairs is a list of (predicate, function) pairs, not a "
            f"{type(given).__name__}, which has no order{at(user_origin())}"
        )
    if not given:
        raise ValueError(f"case: pred_fn_pairs is empty{at(user_origin())}")
    return given


def _checked_pair(pair: Any) -> tuple[Tensor, Branch]:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise TypeError(
            f"case: pred_fn_pairs holds (predicate, function) pairs, got {pair!r}"
            f"{at(user_origin())}"
        )
    pred, function = pair
    if not isinstance(pred, Tensor):
        raise TypeError(f"case: pred must be a Tensor, got: {pred!r}{at(user_origin())}")
    check_predicate(pred, "case")
    return pred, traceable("case", fn=function)


def _last(predicates: Sequence[Tensor], function: Branch) -> Branch:
    """The last function, where the predicates before it are false."""

    def checked() -> Any:
        message = "Input error: None of conditions evaluated as True:"
        Assert(predicates[-1], [message, *predicates])
        return function()

    return checked


def switch_case(
    branch_index: Any,
    branch_fns: Sequence[Any] | Mapping[int, Branch],
    default: Branch | None = None,
    name: str = "switch_case",
) -> Any:
    """What the function of a number returns.

    Args:
        branch_index: a scalar integer tensor.
        branch_fns: functions without arguments, or pairs of a number and a function, or a dict of
            functions; the numbers are those from 0 on. In a function (`td.function`) all are
            traced and must return one structure.
        default: runs where no function has the number; the last function when omitted.

    Raises:
        TypeError: the index is no integer scalar tensor, or something cannot be called, or the
            functions return different structures or dtypes.
        ValueError: there are no functions, or their numbers have gaps.
    """
    if not isinstance(branch_index, Tensor):
        kind = type(branch_index)
        raise TypeError(f"'branch_index' must be a Tensor, got {kind}{at(user_origin())}")
    if not branch_index.dtype.is_integer:
        raise TypeError(
            f"'branch_index' must be an integer Tensor, got {branch_index.dtype!r}"
            f"{at(user_origin())}"
        )
    if branch_index.ndim != 0:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"switch_case: the index must be a scalar, got {spec_text(branch_index.spec)}"
            f"{at(user_origin())}",
        )
    branches = _numbered(branch_fns)
    last = len(branches) if default is not None else len(branches) - 1
    if default is not None:
        branches = [*branches, default]
    branches = [traceable("switch_case", branch=function) for function in branches]
    if not is_symbolic(branch_index):
        number = int(branch_index)
        return branches[number if 0 <= number < last else last]()
    inside = logical_and(less_equal(0, branch_index), less(branch_index, last))

    def among(first: int, end: int) -> Any:
        """The call of one of the functions from `first` to before `end`, by halves."""
        if end - first == 1:
            return branches[first]()
        middle = (first + end) // 2
        in_first_half = less(branch_index, convert_to_tensor(middle, branch_index.dtype))
        if end == last + 1:  # numbers of no function belong to the last one
            in_first_half = logical_and(inside, in_first_half)
        return cond(in_first_half, lambda: among(first, middle), lambda: among(middle, end))

    return among(0, last + 1)


def _numbered(given: Any) -> list[Branch]:
    """The functions in the order of their numbers."""
    items: list[Any] = list(given.items()) if isinstance(given, Mapping) else list(given)
    if not items:
        raise ValueError(f"Must provide at least one item in 'branch_fns'{at(user_origin())}")
    if not isinstance(given, Mapping) and all(callable(item) for item in items):
        return items
    for item in items:
        if not isinstance(item, list | tuple) or len(item) != 2 or not isinstance(item[0], int):
            raise TypeError(
                f"Each element in 'branch_fns' must be a function or a pair of an int and a "
                f"function, got {item!r}{at(user_origin())}"
            )
    items.sort(key=lambda item: item[0])
    numbers = [number for number, _ in items]
    if numbers != list(range(len(items))):
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(items)}) but found "
            f"{{{','.join(map(str, numbers))}}}{at(user_origin())}"
        )
    return [function for _, function in items]
