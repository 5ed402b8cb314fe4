"""Functions of a SavedModel of TensorFlow as functions of treadle."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from treadle.core.origin import at, user_origin
from treadle.saved_model.signatures import Signature, SignatureMap
from treadle.saved_model.tensorflow import structures
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.function import Function


class Saved(NamedTuple):
    """A concrete function that TensorFlow saved.

    Attributes:
        arguments: those that it is for, ``(args, kwargs)``, with a TensorSpec for each tensor.
        results: gives the structure of its results.
        run: calls its operations: gives the tensors of the results for those of the arguments.
    """

    arguments: Any
    results: Callable[[], Any]
    run: Callable[[Sequence[Any]], Sequence[Any]]

    def call(self, tensors: Sequence[Any]) -> Any:
        """The results for the tensors of the arguments."""
        return structures.filled(self.results(), iter(self.run(tensors)))


class RestoredFunction(Function):
    """A function of the concrete functions that were saved, which are traced when the function is
    first called or looked at: models have many that a program never needs.

    Args:
        saved: the concrete functions.
        name, signature: as Python knows the function.
        declared: its input signature, or None.
    """

    def __init__(
        self, saved: Sequence[Saved], name: str, signature: inspect.Signature, declared: Any
    ) -> None:
        self._saved, self._is_read, self._is_reading = tuple(saved), False, False

        def restored(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = (bound.args, bound.kwargs)
            for one in self._saved:
                tensors = structures.matched(one.arguments, given)
                if tensors is not None:
                    return one.call(tensors)
            raise ValueError(self._no_match(bound))

        structures.give_signature(restored, name, signature)
        super().__init__(restored, declared, autograph=False, name=name)

    def _no_match(self, bound: inspect.BoundArguments) -> str:
        options = "".join(f"\n  {one.arguments[0]}, {one.arguments[1]}" for one in self._saved)
        return (
            "Could not find matching concrete function to call loaded from the SavedModel. Got "
            f"{bound.args} and {bound.kwargs}. Expected these arguments to match one of the "
            f"following {len(self._saved)} option(s):{options}{at(user_origin())}"
        )

    def _read(self) -> None:
        """Trace what was saved, once. Threads that come later wait for the first one."""
        if self._is_read or self._is_reading:
            return
        self._is_reading = True
        try:
            for one in self._saved:
                args, kwargs = one.arguments
                self.get_concrete_function(*args, **kwargs)
            self._is_read = True
        finally:
            self._is_reading = False

    def _found(self, arguments: Any, for_any_variables: bool = False) -> ConcreteFunction:
        self._read()
        return super()._found(arguments, for_any_variables)

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        self._read()
        return super().concrete_functions


def alone(saved: Saved, name: str) -> Signature:
    """A concrete function that stands alone: it takes its tensors by their names."""
    args, kwargs = saved.arguments
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(f"arg{k}", kinds[0]) for k in range(len(args))]
    parameters += [inspect.Parameter(key, kinds[1]) for key in kwargs]
    function = RestoredFunction([saved], name, inspect.Signature(parameters), None)
    return function.get_concrete_function(*args, **kwargs)


class RestoredSignatures(SignatureMap):
    """The signatures of a model, each traced when it is looked at.

    Args:
        makers: give the signatures, by their names.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Signature]]) -> None:
        super().__init__({})
        self._makers = dict(makers)

    def __getitem__(self, key: str) -> Signature:
        if key not in self._signatures:
            self._signatures[key] = self._makers[key]()
        return self._signatures[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return f"SignatureMap({list(self._makers)})"
