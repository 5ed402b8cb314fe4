"""Calls of public functions that a run makes, as only it knows how many axes there are.

A trace gives every value a rank. Where a public function lacks one, or the length of a vector that
decides one, or an axis (`NotYetKnown`), the function is traced for each rank, length or axis that
may come, to find out the dtypes and ranks of its results:

- If it takes one rank, or length, only, the operand has it, which the run checks.
- If it computes every element by itself, it is applied to a vector of the elements.
- Else the graph calls it when it runs, as it calls a `py_function`, with tensors of known shapes.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from treadle.autodiff.python_functions import call_later
from treadle.core import errors, nest
from treadle.core.context import context, recording, taping
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.refusals import NotYetKnown, targets_of
from treadle.core.shapes import Dim, SymbolicDim, TensorShape
from treadle.core.spec import TensorSpec
from treadle.core.tensor import (
    SymbolicTensor,
    Tensor,
    UnrankedTensor,
    from_array,
    lacks_rank,
)
from treadle.graph.builder import GraphBuilder
from treadle.graph.ir import Graph
from treadle.graph.literals import register_typed
from treadle.graph.passes.broadcasts import is_elementwise
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.operators import OperatorCall, Slice, opened
from treadle.ops.requirements import require
from treadle.ops.shaping.reshaping import ensure_shape, with_dims
from treadle.ops.state import Variable

# What is raised where a trace lacks something that only a run knows.
_UNKNOWN = (NotYetKnown, errors.InaccessibleTensorError, errors.OperatorNotAllowedInGraphError)
_NUMBERS = (1, 2, 3, 4, 0, 5)  # ranks and lengths that are tried
# Where the functions are made whose calls are read from files: these take and give tensors only.
_OF_TENSORS = ("treadle.ops.", "treadle.numpy_staging.", "treadle.signal.", "treadle.image.",
               "treadle.core.tensor")  # fmt: skip


def run_later(error: NotYetKnown, function: Any, args: Any, kwargs: Any) -> Any:
    """The result of a public function's call in a trace that `error` has ended.

    Raises:
        NotYetKnown: `error`, where no argument is what it is about, or the results are no tensors.
    """
    call = _Call(function, (args, kwargs), error)
    trials = call.trials()
    if not trials:
        call.refuse()
    first = trials[0]
    if len(trials) == 1 and error.axis is None:
        return call.with_known(first.numbers)
    if all(map(call.is_by_element, trials)):
        return call.on_elements()
    types = call.result_types(trials)
    results = call_later(call.late(), call.tensors, types, any(t.has_effects for t in trials))
    return nest.pack(first.structure, results) if first.results else first.structure


class _Operand:
    """Stands for the operand of this number among the arguments of a call."""

    def __init__(self, number: int) -> None:
        self.number = number


class LateCall:
    """A call that a run makes: of tensors, it gives the results of a public function in a row.

    Args:
        arguments: those by position and by name, with an `_Operand` for each tensor.
    """

    def __init__(self, function: Any, arguments: Any) -> None:
        self.function, self.arguments = function, arguments
        self.__name__ = function.__name__

    def __call__(self, *tensors: Any) -> list[Any]:
        leaves = nest.flatten(self.arguments)
        given = [tensors[x.number] if isinstance(x, _Operand) else x for x in leaves]
        args, kwargs = nest.pack(self.arguments, given)
        return _tensors(self.function(*args, **kwargs))

    def parts(self) -> dict[str, Any] | None:
        """What a saved function has of it; None where the function has no public name."""
        args, kwargs = self.arguments
        shown = [_plain(x) for x in args], {k: _plain(x) for k, x in kwargs.items()}
        if isinstance(self.function, OperatorCall):
            return {"operator": self.function.__name__, "arguments": list(shown)}
        name = f"{self.function.__module__}:{self.function.__qualname__}"
        with contextlib.suppress(ImportError, AttributeError, ValueError):
            if _public(name) is self.function:
                return {"function": name, "arguments": list(shown)}
        return None

    @staticmethod
    def of_parts(parts: dict[str, Any]) -> LateCall:
        """The call of `parts`.

        Raises:
            ValueError: it is of no public function.
        """
        args, kwargs = parts["arguments"]
        operator = parts.get("operator")
        function = _public(parts["function"]) if operator is None else OperatorCall(operator)
        return LateCall(function, (tuple(map(opened, args)), kwargs))


def _public(name: str) -> Any:
    """The public function, or method of tensors, of a name ``module:function``."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module) if module.split(".")[0] == "treadle" else None
    for part in path.split("."):
        found = getattr(found, part)
    made_in = getattr(getattr(found, "__wrapped__", None), "__module__", "")
    if targets_of(found) is None or not made_in.startswith(_OF_TENSORS):
        raise ValueError(f"{name} is no public function of tensors")
    return found


def _plain(value: Any) -> Any:
    """An argument as values that have a text: arrays for tensors, slices for their structures."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, Slice):
        return slice(*map(_plain, value))
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return value


register_typed("late call", [LateCall], LateCall.parts, LateCall.of_parts)
register_typed("operand", [_Operand], lambda x: {"number": x.number}, lambda x: _Operand(**x))


class _Trial:
    """A call traced with known ranks, or lengths.

    Attributes:
        numbers: the ranks or lengths, for each of the values that have none.
        structure: what the function gave.
    """

    def __init__(self, numbers: tuple[int, ...], structure: Any, graph: Graph) -> None:
        self.numbers, self.structure, self.graph = numbers, structure, graph
        self.results = _tensors(structure)

    @property
    def has_effects(self) -> bool:
        """Whether the function does more than to give results."""
        return any(node.op.effect is not None for node in self.graph.walk())

    @property
    def types(self) -> list[tuple[DType, TensorShape]]:
        return [(x.dtype, x.shape) for x in self.results]


class _Call:
    """A call of a public function with operands of unknown ranks, or lengths, or axes.

    Attributes:
        tensors: the arguments that the graph gives: symbolic tensors, and others that a gradient
            may be asked for.
        sought: what numbers are sought for: a length, the shapes of the tensors without a rank, or
            the tensors that tell axes.
    """

    def __init__(self, function: Any, arguments: Any, error: NotYetKnown) -> None:
        own = getattr(Variable, function.__name__, None) is function
        if own and hasattr(Tensor, function.__name__):  # it reads the variable
            function, own = getattr(Tensor, function.__name__), False
        self.function, self.arguments, self.error = function, arguments, error
        try:
            self.leaves = nest.flatten(arguments)
        except ValueError:  # an argument is nested too deeply
            raise error from None
        if not own:  # else it may update the variable
            self.leaves = [_read(x) for x in self.leaves]
        self.places = [i for i, x in enumerate(self.leaves) if _is_operand(x)]
        self.tensors: list[Any] = [self.leaves[i] for i in self.places]
        self.__name__ = function.__name__
        symbolic = [x for x in self.tensors if x.is_symbolic]
        ranked = [x for x in symbolic if not lacks_rank(x)]
        self.sought: list[Any] = []
        if error.axis is not None:
            values = set(_sources(error.axis.value))
            self.sought = [x for x in ranked if x.value in values and x.ndim <= 2]
        else:
            if error.dim is not None and any(error.dim in x.dims for x in ranked):
                self.sought = [error.dim]
            if self.sought or error.dim is None:  # ranks are sought beside a length, too
                extents = {id(x.extents): x.extents for x in self.tensors if lacks_rank(x)}
                self.sought += [x for x in extents.values() if x.dims[0] != error.dim]
        if not self.sought:
            raise error
        self.problems: list[Exception] = []

    def trials(self) -> list[_Trial]:
        """The numbers that the function takes, with what it gives for each."""
        count = len(self.sought)
        repeat = itertools.product(_NUMBERS, repeat=2) if count == 2 else (
            (number,) * count for number in _NUMBERS)  # fmt: skip
        found = (self._try(numbers) for numbers in repeat)
        return [trial for trial in found if trial is not None]

    def _try(self, numbers: tuple[int, ...]) -> _Trial | None:
        builder = GraphBuilder(self.__name__, outer=context.recorder)  # type: ignore[arg-type]
        given = [self._parameter(builder, x, numbers) for x in self.tensors]
        try:
            with recording(builder), taping(()):
                structure = self.with_tensors(*given)
            trial = _Trial(numbers, structure, builder.graph)
            if not all(isinstance(x, Tensor) for x in trial.results):
                raise self.error
            return trial
        except _UNKNOWN:  # so that it cannot be told whether the function takes this number
            raise self.error from None
        except Exception as problem:  # it does not take it
            self.problems.append(problem)
            return None
        finally:
            builder.finished = True

    def _parameter(self, builder: GraphBuilder, x: Any, numbers: Sequence[int]) -> Tensor:
        """What stands for an operand in a trial."""
        if not x.is_symbolic:
            return x  # type: ignore[no-any-return]
        for number, sought in zip(numbers, self.sought, strict=True):
            if sought is x:  # axes from this one on
                axes = np.arange(number, number + x.dims[-1]) if x.dims else np.array(number)
                return from_array(np.broadcast_to(axes, x.dims).astype(x.dtype.np_dtype))
        return builder.parameter(self._spec(x, numbers))

    def _spec(self, x: Any, numbers: Sequence[int]) -> TensorSpec:
        """The spec of an operand for a trial: open sizes are any."""
        if lacks_rank(x):  # its rank may be the length that is sought
            known = zip(numbers, self.sought, strict=True)
            ranks = (n for n, s in known if s is x.extents or _is_dim(s, x.extents.dims[0]))
            return TensorSpec([None] * next(ranks, 1), x.dtype)
        dims = self._dims(x, numbers)
        return TensorSpec([d if isinstance(d, int) else None for d in dims], x.dtype)

    def _dims(self, x: Tensor, numbers: Sequence[int]) -> tuple[Dim, ...]:
        """The dims of an operand where the length that is sought is known."""
        return tuple(numbers[0] if d == self.error.dim else d for d in x.dims)

    def late(self) -> LateCall:
        """What the run calls."""
        leaves = list(self.leaves)
        for number, place in enumerate(self.places):
            leaves[place] = _Operand(number)
        return LateCall(self.function, nest.pack(self.arguments, leaves))

    def with_tensors(self, *tensors: Any) -> Any:
        """The function's result for other tensors."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = nest.pack(self.arguments, leaves)
        return self.function(*args, **kwargs)

    def with_known(self, numbers: Sequence[int]) -> Any:
        """The result of the function, which takes these numbers only."""
        found = self.with_tensors(*(self._known(x, numbers) for x in self.tensors))
        text = f"{self.__name__}: this takes a vector of another length"
        known = zip(self.sought, numbers, strict=True)
        pairs = [(s, number) for s, number in known if isinstance(s, SymbolicDim)]
        return nest.map_structure(lambda x: self._checked(x, pairs, text), found)

    def _checked(self, x: Any, pairs: Sequence[tuple[Dim, Dim]], text: str) -> Any:
        """A result that there is for known lengths only, whether the vectors are read or not."""
        ranked = isinstance(x, SymbolicTensor) and not lacks_rank(x)
        return require(x, pairs, f"{text}{at(user_origin())}") if ranked else x

    def _known(self, x: Any, numbers: Sequence[int]) -> Any:
        if lacks_rank(x):
            return ensure_shape(x, self._spec(x, numbers).shape)
        return with_dims(x, self._dims(x, numbers))

    def is_by_element(self, trial: _Trial) -> bool:
        """Whether each element of the result is computed of one element of the only operand."""
        of_rank = self.error.dim is self.error.axis is None
        if not of_rank or len(self.sought) != 1 or len(trial.results) != 1:
            return False
        others = [x for x in self.leaves if isinstance(x, Tensor | np.ndarray)]
        if any(x.ndim for x in others if not lacks_rank(x)):
            return False
        (result,) = trial.results
        nodes = list(trial.graph.walk())
        if not isinstance(result, SymbolicTensor) or any(not _computes(node) for node in nodes):
            return False
        params = trial.graph.params
        return any(result.dims == p.spec.dims for p in params)

    def on_elements(self) -> Any:
        """The function of the elements in a row, with the shape of the operand."""
        vectors = [x.elements if lacks_rank(x) else x for x in self.tensors]
        return UnrankedTensor(nest.flatten(self.with_tensors(*vectors))[0], self.sought[0])

    def result_types(self, trials: Sequence[_Trial]) -> list[tuple[DType, TensorShape]]:
        """(dtype, shape) of each result, of the shape as much as all trials agree in."""
        kinds = {tuple(dtype for dtype, _ in trial.types) for trial in trials}
        if len(kinds) > 1:
            raise self.error
        found = []
        for results in zip(*(trial.types for trial in trials), strict=True):
            dtype, shape = results[0]
            for _, other in results[1:]:
                shape = _common(shape, other)
            if self.error.axis is not None and shape.rank is not None:
                shape = TensorShape([None] * shape.rank)  # other axes may leave other sizes
            found.append((dtype, shape))
        return found

    def refuse(self) -> NoReturn:
        """Raise what all trials say; that the rank is not known where they say different things.
        Of axes each trial says the same in other words."""
        texts = {f"{type(p).__name__} {p}" for p in self.problems}
        raise self.problems[0] if len(texts) == 1 or self.error.axis is not None else self.error


def _is_dim(sought: Any, dim: Dim) -> bool:
    return isinstance(sought, SymbolicDim) and sought == dim


def _tensors(structure: Any) -> list[Any]:
    """The results of a call in a row: none of what updates a variable, which it gives back."""
    return [] if structure is None or isinstance(structure, Variable) else nest.flatten(structure)


def _read(x: Any) -> Any:
    """An argument, of a variable its value: a gradient may be asked for."""
    return convert_to_tensor(x) if isinstance(x, Variable) else x


def _is_operand(x: Any) -> bool:
    return isinstance(x, Tensor) and (x.is_symbolic or x.dtype.is_differentiable)


def _sources(value: Any) -> Iterator[Any]:
    """A value, and those that it is computed of."""
    waiting, seen = [value], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) not in seen:
            seen.add(id(value))
            yield value
            waiting += [] if value.node is None else value.node.inputs


def _computes(node: Any) -> bool:
    return is_elementwise(node) or not (node.inputs or node.op.effect)


def _common(a: TensorShape, b: TensorShape) -> TensorShape:
    """The shape that both may have."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    pairs = zip(a.as_list(), b.as_list(), strict=True)
    return TensorShape([m if m == n else None for m, n in pairs])
