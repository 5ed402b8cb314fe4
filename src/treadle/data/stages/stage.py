"""Stage: one step of a pipeline, and what a pipeline depends on inside a function."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import Leaves
from treadle.data.rows import Rows, skipped
from treadle.data.stages.randomness import Randomness
from treadle.iteration import SymbolicTensor, at, is_symbolic, user_origin

INFINITE, UNKNOWN = -1, -2
_DESCRIPTIONS = {"spec", "origin"}  # attributes of stages that are no parts of the pipeline


class _Debugging:
    """Whether functions of the user run in Python, element by element in the thread that asks."""

    on = False


debugging = _Debugging()


class Stage:
    """A recipe for elements: iterating does not change it.

    Attributes:
        spec: the structure of the elements, of TensorSpecs and DatasetSpecs.

    Attributes of a stage may hold symbolic tensors while a function is traced; `bound` replaces
    them by their values when the function runs.
    """

    spec: Any = None
    origin: str | None = None  # the line of the user that made it

    def open(self) -> Iterator[Leaves]:
        """A new pass over the elements."""
        rows = self.rows()
        assert rows is not None, type(self)
        return rows.elements()

    def resume(self, count: int) -> Iterator[Leaves]:
        """A new pass without its first `count` elements, which are not made where that can be."""
        rows = self.rows()
        if rows is not None:
            return rows.with_blocks(skipped(rows.blocks, count)).elements()
        return islice(self.open(), count, None)

    def placed(self, skip: int, size: int) -> Iterator[Any]:
        """`resume` for batches of `size` elements, some of which may be `Placed` in them."""
        return self.resume(skip) if skip else self.open()

    def rows(self) -> Rows | None:
        """The elements of a new pass as rows of arrays that can be gathered, where they are."""
        return None

    def cardinality(self) -> int:
        """The number of elements, INFINITE or UNKNOWN."""
        return UNKNOWN

    def renew(self) -> None:
        """Called for a copy whose symbolic tensors got values: drop results that depend on them."""


def symbols_in(value: Any) -> list[Any]:
    """The symbolic tensors that a pipeline depends on, each once."""
    found: dict[int, Any] = {}
    _find_symbols(value, found, set())
    return list(found.values())


def _find_symbols(value: Any, found: dict[int, Any], seen: set[int]) -> None:
    if is_symbolic(value):
        found[id(value)] = value
    elif id(value) not in seen:
        seen.add(id(value))
        for part in _parts(value):
            _find_symbols(part, found, seen)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Stage):
        return [part for name, part in vars(value).items() if name not in _DESCRIPTIONS]
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Mapping):
        return value.values()
    return ()


def bound(value: Any, values: Mapping[int, Any]) -> Any:
    """A pipeline with its symbolic tensors (by id) replaced; without any, the same object."""
    return _replaced(value, is_symbolic, lambda symbol: values[id(symbol)], Stage.renew)


def _replaced(
    value: Any, wanted: Callable[[Any], bool], new: Callable[[Any], Any],
    then: Callable[[Stage], None],
) -> Any:  # fmt: skip
    """A pipeline with some of its parts replaced; the same object where there are none.

    Args:
        wanted: whether a part is replaced by what `new` gives.
        then: called with each stage that was copied.
    """
    if wanted(value):
        return new(value)
    if isinstance(value, Stage):
        other = None
        for name, part in vars(value).items():
            if name in _DESCRIPTIONS:
                continue
            given = _replaced(part, wanted, new, then)
            if given is not part:
                other = copy.copy(value) if other is None else other
                setattr(other, name, given)
        if other is None:
            return value
        then(other)
        return other
    parts = value.values() if isinstance(value, Mapping) else _parts(value)
    given = [_replaced(part, wanted, new, then) for part in parts]
    if all(a is b for a, b in zip(given, parts, strict=True)):
        return value
    if isinstance(value, Mapping):
        return dict(zip(value, given, strict=True))
    return type(value)(given)


# -- iterators that can be saved -------------------------------------------------------------------


def stages_in(value: Any) -> list[Stage]:
    """The stages of a pipeline, from the last to the first; one that is used twice comes twice."""
    found = [value] if isinstance(value, Stage) else []
    return found + [stage for part in _parts(value) for stage in stages_in(part)]


def randomness_in(value: Any) -> list[Randomness]:
    """The sources of random numbers of a pipeline, in the order of its stages."""
    if isinstance(value, Randomness):
        return [value]
    return [found for part in _parts(value) for found in randomness_in(part)]


def _nothing(stage: Stage) -> None:
    """What is to be done with a copy whose randomness is replaced."""


def forked(stage: Stage) -> Stage:
    """The pipeline of a new iterator, which does not depend on others of its dataset."""
    if not randomness_in(stage):
        return stage
    found: Stage = _replaced(
        stage, lambda part: isinstance(part, Randomness), Randomness.fork, _nothing
    )
    return found


def outline(stage: Stage) -> str:
    """The kinds of the stages of a pipeline: those of two differ where their elements do."""
    return " < ".join(type(part).__name__ for part in stages_in(stage))


def restored(stage: Stage, states: list[list[int]]) -> Stage:
    """The pipeline of an iterator that had these states of randomness when it began.

    Raises:
        ValueError: there is not one for each source of random numbers.
    """
    if len(states) != len(randomness_in(stage)):
        raise ValueError(
            f"an iterator with {len(states)} sources of random numbers was saved, this one has "
            f"{len(randomness_in(stage))}{at(user_origin())}"
        )
    rest = iter(states)
    found: Stage = _replaced(
        stage, lambda part: isinstance(part, Randomness), lambda r: r.restored(next(rest)), _nothing
    )
    return found


# -- errors ----------------------------------------------------------------------------------------


def no_end(stage: str, error: td.errors.OutOfRangeError) -> Exception:
    """The error for a function of the user that came to an end, which is not that of the stage."""
    return td.errors.InvalidArgumentError(
        None, None, f"A function of the stage {stage} came to an end: {error.message}"
    )


def in_stage(stage: Stage, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that a stage calls; errors of ops name the stage, and where it was made. One that
    means the end of a sequence is another here: the end is not that of the stage."""

    def named(leaves: Any) -> Any:
        try:
            return call(leaves)
        except td.errors.OutOfRangeError as error:
            raise no_end(type(stage).__name__, error) from error
        except td.errors.OpError as error:
            _name(error, stage)
            raise

    return named


_IN = "\n  in the stage "


def _name(error: td.errors.OpError, stage: Stage) -> None:
    place = f" made at {stage.origin}" if stage.origin is not None else ""
    text = f"{error.message}{_IN}{type(stage).__name__}{place}"
    error.message, error.args = text, (text,)


def name_stage(error: td.errors.OpError, stage: Stage | None = None) -> None:
    """Have an error of a pass name its stage, and where that was made, unless it does.

    It is the last of the stages whose methods the error came through: they are only looked for
    where there is an error, so that elements cost nothing more.

    Args:
        stage: the one to name where the error came through methods of none.
    """
    if _IN in error.message:
        return
    found, trace = stage, error.__traceback__
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        found = owner if isinstance(owner, Stage) else found
        trace = trace.tb_next
    if found is not None:
        _name(error, found)


def integer(value: Any, what: str) -> Any:
    """A whole number: an int, or the symbolic tensor.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, td.Variable):
        value = value.read_value()
    if is_symbolic(value):
        if value.ndim or not value.dtype.is_integer:
            raise TypeError(f"{what} must be an integer scalar, got {value!r}{at(user_origin())}")
        return value
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "iu":
        raise TypeError(f"{what} must be an integer, got {value!r}{at(user_origin())}")
    return int(array)


def invalid(message: str) -> td.errors.InvalidArgumentError:
    return td.errors.InvalidArgumentError(None, None, f"{message}{at(user_origin())}")


def known(value: Any) -> bool:
    """Whether a parameter has its value already."""
    return not isinstance(value, SymbolicTensor)


def scaled(count: int, change: Any) -> int:
    """``change(count)``, where there is a count."""
    return int(change(count)) if count >= 0 else count


def infinite_or_unknown(stages: Iterable[Stage]) -> int:
    """The cardinality of what has no end where one of the stages has none."""
    return INFINITE if any(stage.cardinality() == INFINITE for stage in stages) else UNKNOWN


def counted(items: Iterator[Any]) -> Generator[Any, None, int]:
    """All items; the value of the `yield from` is how many there were."""
    count = 0
    for item in items:
        count += 1
        yield item
    return count


def available_processors() -> int:
    """The threads that a stage under AUTOTUNE may use."""
    setting = td.config.threading
    return setting.get_inter_op_parallelism_threads() or setting.usable_processors()
