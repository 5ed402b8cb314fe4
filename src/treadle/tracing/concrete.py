"""ConcreteFunction: one traced graph, compiled on its first call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from treadle.autograph.loop_notes import LoopNote, loop_notes
from treadle.core import dtypes, errors, locks, nest
from treadle.core.context import beginning, context, placing, ran, tell_watchers, watched
from treadle.core.devices import HOST
from treadle.core.frames import recorded_origin
from treadle.core.interrupts import puts_modes_back
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.spec import ResourceSpec, Spec, TensorSpec, array_spec, is_static
from treadle.core.tensor import Tensor, buffer_of, moved
from treadle.graph.ir import Graph
from treadle.graph.replay import replay
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.state import Variable
from treadle.runtime import compile
from treadle.runtime.executable import is_stretched
from treadle.runtime.options import Options
from treadle.runtime.symbols import checked_on_entry, symbol_sources
from treadle.tracing import settings
from treadle.tracing.function_type import FunctionType
from treadle.tracing.implementations import take_over
from treadle.tracing.mirrors import Mirror, MirroredProgram
from treadle.tracing.program_runs import run_program
from treadle.tracing.programs import Programs
from treadle.tracing.signature import (
    Arguments,
    FunctionSignature,
    convert_nested,
    is_tensor_leaf,
    tells_no_more,
    told_by,
    weakly,
)
from treadle.tracing.static_values import ObjectKey, Snapshot
from treadle.tracing.trace import Trace, results_of
from treadle.tracing.tracebacks import show_user_frames


class ConcreteFunction:
    """A function for one signature.

    Calling it takes the tensor arguments of that signature, by position or by name.

    Attributes:
        graph: the traced graph, before any pass.
        name: the Python function's name.
        captured_inputs: eager tensors and variables used by the function besides its arguments.
        number: which trace of the function it is, counted from 1.
        has_open_dims: whether it was traced for more than one shape of an argument.
        changed: see `Trace.changed`.
        was_called: whether its function has called it.
        follows_ranks: whether it is for the ranks that variables of unknown rank have.
        told: see `Arguments`.
        unranked: the signature with unknown ranks that it was made for, if there is one.
        retrace: traces the Python function for specs of the tensor arguments; None where there is
            no such function.
        attributes: as given to `function`.
        alike: for each variable among the arguments a number, the same one where the trace has one
            variable; captured ones, which the trace takes to be others, have the lower numbers.
        as_function: makes a `Function` of a Python function (set by `tracing.function`).
    """

    as_function: Callable[[Callable[..., Any]], Callable[..., Any]]

    def __init__(
        self,
        trace: Trace,
        arguments: Arguments,
        signature: FunctionSignature,
        programs: Programs,
        number: int = 1,
        told_apart: bool = False,
        fixed: Sequence[Variable] = (),
    ) -> None:
        self.told_apart = told_apart
        self.graph: Graph = trace.graph
        self.name = signature.name
        self._signature = signature
        self.number = number
        self.changed = trace.changed
        self.unranked = arguments.unranked
        captured = [c for c in trace.captured if isinstance(c, Variable)]
        self._ranks = [(v, v.traced_rank) for v in captured if not v.spec.has_rank]
        given = [x for x in arguments.leaves if isinstance(x, Variable)]
        self.follows_ranks = not all(v.spec.has_rank for v in (*captured, *given))
        self._programs = programs
        self._family, self.told = arguments.family, arguments.told
        self.has_open_dims = arguments.has_open_dims
        self._notes: list[str] = []
        self._trace = trace
        names = iter([p.name for p in trace.graph.arguments])
        self._arguments = arguments.pack(
            [
                weakly(leaf) if spec is None else named(spec, next(names)).on(self.graph.device)
                for leaf, spec in zip(arguments.leaves, trace.leaves, strict=True)
            ]
        )
        order = list(dict.fromkeys(map(id, given)))
        self.alike = tuple(len(self.variables) + order.index(id(v)) for v in given)
        these = set(map(id, fixed))
        keys = {i: ObjectKey(v, by_identity=True) for i, v in enumerate(given) if id(v) in these}
        self._fixed = keys  # the variables that calls must give, by their places among variables
        self.was_called = False
        self._lock = locks.lock()
        storage = trace.graph.device.storage
        self._has_mirrors = any(isinstance(c, Mirror) for c in trace.graph.captures) or any(
            variable.spec.device.storage is not storage for variable in given
        )
        self._executable: Any = None
        self._gradient: Any = None
        self._replayed: Callable[..., Any] | None = None
        self._guards: list[tuple[Dim, Dim]] | None = None
        self._stretched: dict[Any, ConcreteFunction | None] = {}  # by the specs of arguments
        self.retrace: Callable[[Sequence[Any]], ConcreteFunction] | None = None
        self.attributes: Mapping[str, Any] = {}

    # -- description -------------------------------------------------------------------------

    @property
    def function_def(self) -> Any:
        """TensorFlow's message FunctionDef, to look at: its signature and its operations."""
        return Graph.function_message(self.graph)

    @property
    def captured_inputs(self) -> list[Any]:
        return list(self.graph.captures)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The captured variables."""
        return tuple(c for c in self._trace.captured if isinstance(c, Variable))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.trainable)

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of the tensor arguments, then of the captures."""
        return [v.spec.on(self.graph.device) for v in self.graph.params]

    @property
    def tensor_arguments(self) -> dict[str, Spec]:
        """The specs of the tensor arguments by the names of the parameters."""
        pairs = zip(self.graph.arguments, self.graph.argument_specs, strict=True)
        return {value.name: spec for value, spec in pairs}

    @property
    def outputs(self) -> list[Spec]:
        return self.graph.result_specs

    @property
    def output_shapes(self) -> Any:
        """The result's structure with a TensorShape for every tensor."""
        return nest.map_structure(lambda spec: spec and spec.shape, self.structured_outputs)

    @property
    def output_dtypes(self) -> Any:
        """The result's structure with a DType for every tensor."""
        return nest.map_structure(lambda spec: spec and spec.dtype, self.structured_outputs)

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) with a TensorSpec for every tensor; unknown dims are None."""
        return nest.map_structure(public_leaf, self._arguments)  # type: ignore[no-any-return]

    @property
    def structured_outputs(self) -> Any:
        """The result's structure with a TensorSpec for every tensor."""
        return results_of(self._trace.structure, [public_leaf(spec) for spec in self.outputs])

    def add_to_graph(self, g: Any = None, overwrite: bool = False) -> None:
        """Let a call that this trace has made be of this function, where that is for the device:
        see `implementations`. Else nothing: graphs do not keep functions by names."""
        take_over(self.attributes, self)

    def add_gradient_functions_to_graph(self, g: Any = None) -> None:
        """Nothing, as `add_to_graph`."""

    @property
    def function_type(self) -> FunctionType:
        """The types of parameters, results and captures."""
        return FunctionType(self._signature, *self.structured_input_signature,
                            self.structured_outputs, self.captured_inputs)  # fmt: skip

    @property
    def inference_fn(self) -> InferenceFunction:
        """The function without structures: of all parameters, captures among them."""
        return InferenceFunction(self)

    @property
    def other_ranks(self) -> tuple[Any, ...] | None:
        """None where the captured variables of unknown rank have the ranks that they were traced
        with; else a key that says which ranks they have now."""
        ranks = [v.traced_rank for v, _ in self._ranks]
        if ranks == [rank for _, rank in self._ranks]:
            return None
        keys = [ObjectKey(v, by_identity=True) for v, _ in self._ranks]
        return tuple(zip(keys, ranks, strict=True))

    def fixed_among(self, leaves: Sequence[Any]) -> list[Variable]:
        """The variables among a call's leaves that must be the same ones in each call of the trace:
        those that the function captured as well, and all where it asked which ones they are."""
        if self.told_apart:
            return [x for x in leaves if isinstance(x, Variable)]
        captured = {id(c) for c in self.variables}
        return [x for x in leaves if isinstance(x, Variable) and id(x) in captured]

    def _numbers(self, given: Sequence[Variable]) -> tuple[int, ...]:
        """See `alike`."""
        numbers: dict[int, int] = {}
        for variable in self.variables:
            numbers.setdefault(id(variable), len(numbers))
        return tuple(numbers.setdefault(id(v), len(numbers)) for v in given)

    def is_for_variables(self, leaves: Sequence[Any]) -> bool:
        """Whether a call gives one variable wherever the trace has one for several parameters, and
        those that the trace is for alone."""
        given = [x for x in leaves if isinstance(x, Variable)]
        found: dict[int, int] = {}
        return (
            len(given) == len(self.alike)
            and all(_is(given[i], only) for i, only in self._fixed.items())
            and all(
                found.setdefault(wanted, number) == number
                for wanted, number in zip(self.alike, self._numbers(given), strict=True)
            )
        )

    @property
    def is_for_any_variables(self) -> bool:
        """Whether calls may give other variables than the trace was made for."""
        return not self._fixed

    # -- calling -----------------------------------------------------------------------------

    @puts_modes_back
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run with the function's arguments, or with its tensor arguments alone.

        The function's arguments are given as to the function; Python values must equal the trace's
        and may be omitted. Tensor arguments alone come in the order of `inputs`, or by the names of
        the parameters, which are the names of the TensorSpecs that the trace was made for.

        Raises:
            TypeError: too few or too many arguments, unknown names, other Python values.
            InvalidArgumentError: a dtype or shape differs from the signature's.
        """
        try:
            leaves = self._match_structure(args, kwargs)
            if leaves is None:
                leaves = self._match_flat(args, kwargs)
            return self.call_flat(leaves)
        except Exception as error:
            show_user_frames(error)
            raise

    def _match_structure(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """The tensor leaves where the arguments have the signature's own structure."""
        try:
            given_all = self._signature.completed(args, kwargs, self._arguments)
            nest.assert_same_structure(self._arguments, given_all)
        except (TypeError, ValueError):
            return None
        told = told_by(given_all) if any(self.told) else []
        if not all(map(tells_no_more, self.told, told)):
            raise TypeError(
                f"{self.name}: this concrete function was traced for sparse tensors of the shapes "
                f"{self.told} and cannot take {told}{at(user_origin())}"
            )
        flat = nest.flatten(given_all)
        expected = nest.flatten(self._arguments)
        for given, want in zip(flat, expected, strict=True):
            if not isinstance(want, Spec) and given is not want and weakly(given) != want:
                raise TypeError(
                    f"{self.name}: this concrete function was traced for the Python value "
                    f"{want!r} and cannot take {given!r}{at(user_origin())}"
                )
        return [g for g, w in zip(flat, expected, strict=True) if isinstance(w, Spec)]

    def _match_flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        params = self.graph.arguments
        names = [p.name for p in params]
        given = dict(zip(names, args, strict=False)) | kwargs
        ordered = len(names) == 1 or not self._signature.takes_names_only
        most = len(names) if ordered else 0
        if len(args) > most or set(given) != set(names):
            wanted = ", ".join(f"{p.name}: {p.spec}" for p in params) or "none"
            raise TypeError(
                f"{self.name}: expected the tensor arguments ({wanted}), got {len(args)} by "
                f"position and {sorted(kwargs)} by name{at(user_origin())}"
            )
        return [given[n] for n in names]

    def call_named(self, tensors: Mapping[str, Any]) -> Any:
        """Run with the tensor arguments by the names of the parameters."""
        return self.call_flat([tensors[p.name] for p in self.graph.arguments])

    def fitting_leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """The tensor leaves of a call whose arguments fit the signature, also such as numbers and
        lists that convert to its tensors; None for other arguments."""
        try:
            given = convert_nested((args, kwargs), self._arguments, "an argument", self.name)
            pairs = list(zip(nest.flatten(given), nest.flatten(self._arguments), strict=True))
        except (TypeError, ValueError):
            return None
        for value, want in pairs:
            if isinstance(want, Spec) or value is want:
                continue
            if is_tensor_leaf(value) or type(value) is not type(want) or value != want:
                return None
        leaves = [value for value, want in pairs if isinstance(want, Spec)]
        return leaves if self.is_for_variables(leaves) else None

    def call_flat(self, leaves: Sequence[Any]) -> Any:
        """Run with the tensor and variable arguments in parameter order."""
        in_place = context.recorder is None and not context.tapes and self.reads_in_place
        inputs = [
            self._checked(leaf, spec, p.name, in_place)
            for leaf, p, spec in zip(
                leaves, self.graph.arguments, self.graph.argument_specs, strict=True
            )
        ]
        shared = bool(self.alike) and self._shares_variables(leaves)
        if shared and context.recorder is None:
            return results_of(self._trace.structure, self._of_shared(*inputs))
        return results_of(self._trace.structure, self.run([*inputs, *self._captures()]))

    def _shares_variables(self, leaves: Sequence[Any]) -> bool:
        """Whether a call gives one variable where the trace has several.

        Raises:
            InvalidArgumentError: it gives several where the trace has one, or others than those
                that the trace is for.
        """
        if not self.is_for_variables(leaves):
            text = (
                f"{self.name}: this concrete function was traced for one variable in several "
                "places, or for the variables that it was given then, and is given other ones; "
                f"call the function itself{at(user_origin())}"
            )
            raise errors.InvalidArgumentError(None, None, text)
        return self._numbers([x for x in leaves if isinstance(x, Variable)]) != self.alike

    @property
    def _of_shared(self) -> Callable[..., Any]:
        """The operations of the graph as a function: it has a program for calls that give one
        variable where the trace has several, and so another order of reads and writes."""
        if self._replayed is None:
            graph = self.graph

            def again(*inputs: Any) -> list[Any]:
                return replay(graph, [*inputs, *graph.captures])

            again.__name__ = self.name
            self._replayed = self.as_function(again)
        return self._replayed

    def _captures(self) -> list[Any]:
        """The captures as a call takes them: a trace around it and tapes know those of the user,
        but for the state of a random stream, of which each device has one."""
        there = self.graph.captures
        if context.recorder is not None:
            return self._trace.captured
        if not watched():
            return there
        pairs = zip(self._trace.captured, there, strict=True)
        return [
            used if isinstance(used, Variable) and not isinstance(used, Mirror) else mine
            for mine, used in pairs
        ]

    def _checked(self, leaf: Any, spec: Spec, name: str, in_place: bool) -> Any:
        """The argument for a parameter. Only a program that reads its arrays `in_place` takes an
        array itself: a tape or a trace keeps its inputs, and the caller may change an array."""
        if isinstance(spec, ResourceSpec):
            value, given = leaf, leaf.spec.on(spec.device)
        elif in_place and _is_readable(leaf, spec):
            value, given = leaf, array_spec(leaf)
        else:
            value = leaf
            if not isinstance(leaf, Tensor):
                value = convert_to_tensor(leaf, spec.dtype)
                if not self.graph.devices:
                    value = moved(value, spec.device)
            given = value.spec
        if given is not spec and not (
            given.dtype is spec.dtype
            and given.shape.is_compatible_with(spec.shape)
        ):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"{self.name}: argument {name!r} is {given}, expected {spec}{at(user_origin())}",
            )
        return value

    def run(self, inputs: Sequence[Any]) -> list[Tensor]:
        """The flat results for all parameters' values (arguments, then captures)."""
        if context.recorder is not None:
            if self.graph.device is HOST:
                return list(replay(self.graph, inputs, recorded_origin()))
            with placing(self.graph.device):
                return list(replay(self.graph, inputs, recorded_origin()))
        if watched():
            from treadle.tracing.gradient import run_taped

            other = self._for_sizes(inputs) if self._is_stretched(inputs) else None
            if other is not None:
                given = inputs[: len(self.graph.arguments)]
                return run_taped(other, [*given, *other._captures()])
            return run_taped(self, inputs)
        return self.execute(inputs)

    def _is_stretched(self, values: Sequence[Any]) -> bool:
        """Whether NumPy stretches sizes of these values that the trace takes to be equal."""
        if not self.has_open_dims or self.retrace is None:
            return False
        if self._guards is None:
            known = {source.name for source in symbol_sources(self.graph.params)}
            self._guards = checked_on_entry(self.graph, known)
        return is_stretched(self.graph, self._guards, values)

    def _for_sizes(self, values: Sequence[Any]) -> ConcreteFunction | None:
        """The trace for arguments whose sizes of 1 are known; None where the Python function
        cannot be traced for them: the interpreter runs this trace then."""
        pairs = zip(values, self.graph.argument_specs, strict=False)
        specs = tuple(_with_ones(spec, value) for value, spec in pairs)
        if specs not in self._stretched:
            self._stretched.setdefault(specs, self._retraced(specs))
        return self._stretched[specs]

    def _retraced(self, specs: Sequence[Any]) -> ConcreteFunction | None:
        assert self.retrace is not None
        try:
            with placing(self.graph.device):
                found = self.retrace(specs)
        except Exception:  # the interpreter raises the error of the op that refuses the sizes
            return None
        # A function that catches the error of an op may give other results for these sizes.
        fits = len(found.graph.results) == len(self.graph.results)
        return found if fits and found.graph.device is self.graph.device else None

    def _run_stretched(self, arrays: Sequence[Any]) -> list[Any] | None:
        """See `Executable.stretched`."""
        other = self._for_sizes(arrays)
        if other is None:
            return None
        captures = [buffer_of(c, self.graph.device) for c in other.graph.captures]
        given = arrays[: len(self.graph.arguments)]
        return other.executable.run([*given, *captures])  # type: ignore[no-any-return]

    def execute(self, inputs: Sequence[Any]) -> list[Tensor]:
        """Run the compiled program on tensors, arrays and variables, unseen by tapes."""
        device = self.graph.device
        ran(f"__inference_{self.name}_{self.number}", device)
        since = beginning()
        results = run_program(self.executable, inputs, device)
        tell_watchers(self.name, device, since, self.graph)
        return results

    @property
    def reads_in_place(self) -> bool:
        """Whether the program takes arrays, and only reads them during the call. Results of an
        interpreted one, and values that it assigns to variables, may share memory with its
        arguments."""
        return self.graph.device is HOST and bool(self.executable.mode == "native")

    @property
    def executable(self) -> Any:
        """The compiled program (treadle.runtime.Executable), made on first use."""
        if self._executable is None:
            with self._lock:
                if self._executable is None:
                    self._executable = self.compile(self.graph)
                    if self.retrace is not None:
                        self._executable.stretched = self._run_stretched
        return self._executable

    def use(self, stored: Any) -> bool:
        """Whether it has a program without compiling: it has one already, takes a stored one, or
        shares that of another trace."""
        if self._executable is None:
            found = stored or self._programs.shared(self.graph, self._family)
            with self._lock:
                self._executable = self._executable or found
        return self._executable is not None

    @puts_modes_back
    def compile(self, graph: Graph) -> Any:
        """The program for a graph that belongs to this trace: its own, or one of its gradient's.

        Traces that differ only in dims share programs.
        """
        if graph.devices:
            return self._replicated(graph)
        if settings.check_numerics:
            return compile(graph, Options(check_numerics=True))
        executable = self._programs.compile(graph, self._family, self.number)
        if self._has_mirrors:
            executable = MirroredProgram(graph, executable)
        of = "" if graph is self.graph else f"{graph.name} "
        calls = " ".join(executable.calls.split())
        self._notes += [of + text for text in (executable.note, calls) if text]
        return executable

    def _replicated(self, graph: Graph) -> Any:
        """The programs of a graph of several devices."""
        from treadle.tracing.replicated import ReplicatedProgram

        options = Options(check_numerics=True) if settings.check_numerics else None
        return ReplicatedProgram(graph, partial(compile, options=options))

    @property
    def program_note(self) -> str:
        """How it shares programs with other traces, or why it does not, and which ops call Python
        in their loops; "" for nothing."""
        return "; ".join(dict.fromkeys(self._notes))

    @property
    def loops(self) -> list[LoopNote]:
        """Which loops over Python values were rolled, and why others were not."""
        return loop_notes(self.graph)

    @property
    def leaf_specs(self) -> list[Spec | None]:
        """For every leaf of the arguments its parameter's spec, None for Python values."""
        return self._trace.leaves

    @property
    def result_structure(self) -> Any:
        """The returned structure with markers, for `results_of`."""
        return self._trace.structure

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_signature()}>"

    def pretty_signature(self) -> str:
        """``name(x: f32[2, 3], training=True) -> f32[]``"""
        args, kwargs = self._arguments
        given = [*zip(self._signature.names(len(args)), args, strict=True)]
        named = [*given[self._signature.hidden :], *kwargs.items()]
        results = results_of(self._trace.structure, self.outputs)
        listed = ", ".join(label(n, v) for n, v in named)
        return f"{self.name}({listed}) -> {shown(results)}"

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """The types of parameters, result and captures as TensorFlow writes them; in one line where
        it is not `verbose`."""
        return repr(self.function_type) if verbose else str(self.function_type)

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"


class InferenceFunction:
    """A trace as a function of flat tensors: those of the arguments and then the captures.

    Attributes:
        name: as TensorFlow names such a function.
        function_type: as of the concrete function.
        cached_graph, graph: the traced graph.
    """

    def __init__(self, concrete: ConcreteFunction) -> None:
        self._concrete = concrete
        self.name = f"__inference_{concrete.name}_{concrete.number}".encode()
        self.function_type = concrete.function_type
        self.cached_graph = self.graph = concrete.graph

    def call_flat(self, *inputs: Any) -> list[Tensor]:
        """The results for all parameters' values.

        Raises:
            TypeError: too few or too many values.
            InvalidArgumentError: a dtype or shape differs.
        """
        concrete, params = self._concrete, self.graph.params
        if len(inputs) != len(params):
            raise TypeError(
                f"{concrete.name}: expected {len(params)} values, the captures among them, got "
                f"{len(inputs)}{at(user_origin())}"
            )
        specs = [value.spec.on(self.graph.device) for value in params]
        given = zip(inputs, specs, params, strict=True)
        return concrete.run([concrete._checked(x, s, p.name, False) for x, s, p in given])

    __call__ = call_flat

    def __repr__(self) -> str:
        return f"InferenceFunction(name={self.name!r}, function_type={self.function_type})"


def _is_readable(value: Any, spec: Spec) -> bool:
    """Whether a program reads a value in place: a plain array in C order of the dtype."""
    return (
        type(value) is np.ndarray
        and value.dtype is spec.dtype.np_dtype
        and spec.dtype is not dtypes.string
        and value.flags.c_contiguous
        and value.flags.aligned
    )


def public_leaf(leaf: Any) -> Any:
    """A leaf of a signature as users write it."""
    if isinstance(leaf, ObjectKey | Snapshot):
        return leaf.target
    if not isinstance(leaf, TensorSpec) or is_static(leaf):
        return leaf
    dims = [d if isinstance(d, int) else None for d in leaf.dims] if leaf.has_rank else None
    return TensorSpec(dims, leaf.dtype, leaf.name).on(leaf.device)


def named(leaf: Any, name: str) -> Any:
    """A tensor's spec with the name of its parameter; other leaves of a signature themselves."""
    if not isinstance(leaf, TensorSpec):
        return leaf
    return TensorSpec(leaf.shape, leaf.dtype, name).on(leaf.device)


def label(name: str, value: Any) -> str:
    """An argument as signatures print it: ``x: f32[2, 3]`` or ``training=True``."""
    return f"{name}{': ' if isinstance(value, Spec) else '='}{shown(value)}"


def shown(value: Any) -> str:
    """A structure of specs and Python values as signatures print it."""

    def text(leaf: Any) -> _Text:
        return _Text(str(leaf) if isinstance(leaf, Spec) else repr(leaf))

    return repr(nest.map_structure(text, value, expand_composites=False))


class _Text:
    """Prints as the text it holds, inside lists and dicts too."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _is(variable: Variable, only: ObjectKey) -> bool:
    """Whether a variable, or the one that it stands for in a trace, is that of a key."""
    return variable is only.target or variable.identity() is only.target


def _with_ones(spec: Spec, value: Any) -> Spec:
    """A spec of an argument with the dims known that are 1 in a call's value."""
    if not isinstance(spec, TensorSpec):
        return spec
    pairs = zip(spec.dims, value.shape, strict=True)
    dims = [1 if size == 1 else dim if isinstance(dim, int) else None for dim, size in pairs]
    return TensorSpec(dims, spec.dtype, spec.name)
