"""Functions for signatures with unknown ranks: one to the user, with a trace for each rank."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.core.spec import Spec, TensorSpec
from treadle.tracing.concrete import ConcreteFunction, label, named, public_leaf, shown
from treadle.tracing.function_type import FunctionType
from treadle.tracing.signature import Arguments, FunctionSignature, weakly
from treadle.tracing.trace import parameter_names
from treadle.tracing.tracebacks import show_user_frames


class AnyRankFunction:
    """A function for a signature with arguments of unknown rank.

    Calls look up, or make, the trace for the ranks of their arguments. `traces` gives those that
    there are; what belongs to one trace, such as a graph, is theirs.

    Args:
        arguments: the signature.
        signature: of the function.
        lookup: gives the trace for arguments of known rank.
        traces: gives all traces of the function.
    """

    def __init__(
        self, arguments: Arguments, signature: FunctionSignature,
        lookup: Callable[[Arguments], ConcreteFunction],
        traces: Callable[[], Sequence[ConcreteFunction]],
    ) -> None:  # fmt: skip
        self.name = signature.name
        self._bare = arguments.without_values()
        self._signature, self._all_traces = signature, traces
        self._look_up = lookup
        self._met: dict[int, ConcreteFunction] = {}  # by id

    @property
    def traces(self) -> list[ConcreteFunction]:
        """The traces made so far, one for each combination of ranks."""
        key = self._bare.key
        return [
            c
            for c in self._all_traces()
            if id(c) in self._met or (c.unranked is not None and c.unranked.key == key)
        ]

    def _lookup(self, arguments: Arguments) -> ConcreteFunction:
        """The trace for arguments, which may have been made for calls without this signature."""
        found = self._look_up(arguments)
        self._met[id(found)] = found
        return found

    def trace_ranks(self, most: int = 5) -> list[ConcreteFunction]:
        """The traces for all ranks from 0 to `most` for which the function can be traced; where
        more than two arguments have no rank, for equal ranks of these."""
        open_leaves = [t for t in self._bare.types if isinstance(t, TensorSpec) and not t.has_rank]
        ranks: Any = itertools.product(range(most + 1), repeat=len(open_leaves))
        if len(open_leaves) > 2:
            ranks = [(rank,) * len(open_leaves) for rank in range(most + 1)]
        for combination in ranks:
            left = iter(combination)
            leaves = [
                TensorSpec([None] * next(left), t.dtype)
                if isinstance(t, TensorSpec) and not t.has_rank
                else t
                for t in self._bare.types
            ]
            # A rank may be none of this function's, and many traces are what was asked for.
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                self._lookup(self._bare.called_with(leaves, self.name).ranked())
        return self.traces

    @property
    def tensor_arguments(self) -> dict[str, TensorSpec]:
        """The specs of the tensor arguments by the names of the parameters."""
        labelled = zip(parameter_names(self._bare), self._bare.types, strict=True)
        return {name: kind for name, kind in labelled if isinstance(kind, TensorSpec)}

    def call_named(self, tensors: Mapping[str, Any]) -> Any:
        """Run with the tensor arguments by the names of the parameters."""
        return self(**tensors)

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) with a TensorSpec for every tensor, of unknown rank or with None for
        unknown dims."""
        labelled = zip(parameter_names(self._bare), self._bare.types, strict=True)
        return self._bare.pack([public_leaf(named(kind, name)) for name, kind in labelled])

    @property
    def function_type(self) -> FunctionType:
        """The types of parameters, results and captures; without results before the first call."""
        found = self.traces
        captured = {id(c): c for trace in found for c in trace.captured_inputs}
        results = self.structured_outputs if found else inspect.Signature.empty
        return FunctionType(
            self._signature, *self.structured_input_signature, results, list(captured.values())
        )

    @property
    def structured_outputs(self) -> Any:
        """The result's structure with the TensorSpec that serves all traces made so far.

        Raises:
            ValueError: there is none yet.
        """
        found = [c.structured_outputs for c in self.traces]
        if not found:
            raise ValueError(
                f"{self.name}: what the function returns is known once it was called: its argument "
                f"has an unknown rank{at(user_origin())}"
            )
        return nest.map_structure(_common, *found)

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of the tensor arguments."""
        return [t for t in self._bare.types if isinstance(t, TensorSpec)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run with the function's arguments, or with its tensor arguments alone, as those of any
        concrete function.

        Raises:
            TypeError: too few or too many arguments, unknown names, other dtypes or Python values.
        """
        try:
            arguments = self._bare.called_with(self._leaves(args, kwargs), self.name).ranked()
            concrete = self._lookup(arguments)
            pairs = zip(arguments.leaves, concrete.leaf_specs, strict=True)
            return concrete.call_flat([leaf for leaf, spec in pairs if spec])
        except Exception as error:
            show_user_frames(error)
            raise

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of a call."""
        wanted = (self._bare.args, self._bare.kwargs)
        try:
            given = self._signature.completed(args, kwargs, wanted)
            nest.assert_same_structure(wanted, given)
        except (TypeError, ValueError):
            return self._of_tensors(args, kwargs)
        leaves = nest.flatten(given)
        for value, kind in zip(leaves, self._bare.types, strict=True):
            if not isinstance(kind, Spec) and value is not kind and weakly(value) != kind:
                raise TypeError(
                    f"{self.name}: this concrete function is for the Python value {kind!r} and "
                    f"cannot take {value!r}{at(user_origin())}"
                )
        return [public_leaf(leaf) for leaf in leaves]

    def _of_tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves where only tensors are given, in order or by their names."""
        types = self._bare.types
        labelled = zip(parameter_names(self._bare), types, strict=True)
        names = [name for name, kind in labelled if isinstance(kind, Spec)]
        given = dict(zip(names, args, strict=False)) | kwargs
        if len(args) > len(names) or set(given) != set(names):
            raise TypeError(
                f"{self.name}: expected the tensor arguments {names}, got {len(args)} by position "
                f"and {sorted(kwargs)} by name{at(user_origin())}"
            )
        tensors = iter([given[name] for name in names])
        return [next(tensors) if isinstance(t, Spec) else public_leaf(t) for t in types]

    def pretty_signature(self) -> str:
        """``name(x: f32<unknown>) -> f32[]``"""
        bare = self._bare
        given = [*zip(self._signature.names(len(bare.args)), bare.args, strict=True)]
        named = [*given[self._signature.hidden :], *bare.kwargs.items()]
        listed = ", ".join(label(n, v) for n, v in named)
        results = f" -> {shown(self.structured_outputs)}" if self.traces else ""
        return f"{self.name}({listed}){results}"

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """The types of parameters, result and captures as TensorFlow writes them; in one line where
        it is not `verbose`."""
        return repr(self.function_type) if verbose else str(self.function_type)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(
            f"{self.name} has no {name!r}: its argument has an unknown rank, and there is a trace "
            "for each rank. Ask these (`traces`), or take the concrete function for a "
            f"td.TensorSpec([None, ...]){at(user_origin())}"
        )

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_signature()}>"


def _common(*specs: Any) -> Any:
    """The spec of one result in all traces."""
    if not isinstance(specs[0], TensorSpec):
        return specs[0]
    found = specs[0].most_specific_common_supertype(specs[1:])
    return TensorSpec(None, specs[0].dtype) if found is None else found
