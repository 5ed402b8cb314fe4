"""The signature of a call: which arguments are tensors, and a key for the rest.

Tensors and NumPy arrays count by dtype and shape, Python numbers and strings by type and value,
nested structures by their form, variables by dtype and shape, other objects by identity.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.composite_spec import CompositeTensor, CompositeTensorSpec
from treadle.core.context import placed
from treadle.core.devices import HOST, Device
from treadle.core.origin import at, user_origin
from treadle.core.shapes import ANY, TensorShape
from treadle.core.spec import ListSpec, Spec, TensorSpec, array_spec
from treadle.core.tensor import DeviceTensor, Tensor, lacks_rank
from treadle.core.trace_types import TraceType, TracingContext
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.state import Variable
from treadle.tracing.static_values import ObjectKey, Snapshot, Unhashable, described, static_key

_CONTEXT = TracingContext()


def is_tensor_leaf(value: Any) -> bool:
    """True for values that a trace sees as tensors."""
    return isinstance(value, Tensor | np.ndarray | np.generic | TensorSpec | ListSpec)


def leaf_spec(value: Any) -> TensorSpec:
    """The spec under which a tensor leaf is traced."""
    if isinstance(value, Tensor):
        if lacks_rank(value):
            raise value.refusal("the call of a function")
        return value.spec
    if isinstance(value, TensorSpec | ListSpec):
        return value  # type: ignore[return-value]  # of a list as of a tensor
    return array_spec(np.asarray(value))


def leaf_key(value: Any, aliases: dict[int, int]) -> Hashable:
    """The key of one leaf. `aliases` numbers the variables of the call in order of appearance."""
    if is_tensor_leaf(value):
        return leaf_spec(value)
    if isinstance(value, Variable):
        return (
            "variable",
            value.spec,
            None if value.spec.has_rank else value.traced_rank,
            value.trainable,
            aliases.setdefault(id(value), len(aliases)),
        )
    if is_trace_type(value):
        return "trace type", value
    return static_key(value)


def trace_type(value: Any) -> Any:
    """The trace type that an object of a user's class says it has; other values themselves, and
    variables: functions see those of users' classes as they are."""
    says = getattr(type(value), "__tf_tracing_type__", None)
    return value if says is None or isinstance(value, Variable) else says(value, _CONTEXT)


def is_trace_type(kind: Any) -> bool:
    """Whether a type among a call's types is one of a user's class."""
    return isinstance(kind, TraceType) and not isinstance(kind, Spec)


def weakly(leaf: Any) -> Any:
    """The leaf itself if it counts by value, else a key that does not keep it alive."""
    if is_trace_type(leaf):
        return leaf
    if isinstance(leaf, Variable):
        return ObjectKey(leaf, by_identity=True)
    return leaf if is_tensor_leaf(leaf) else described(leaf)


def structure_key(
    value: Any, leaves: list[Any], aliases: dict[int, int], told: list[Any]
) -> Hashable:
    """The key of a nested structure; appends its leaves to `leaves`, and what its composite tensors
    tell beside these to `told`."""

    def key(leaf: Any) -> Hashable:
        leaf = trace_type(leaf)
        leaves.append(leaf)
        return leaf_key(leaf, aliases)

    return _nested_key(value, key, told)


def _nested_key(
    value: Any, of_leaf: Callable[[Any], Hashable], told: list[Any] | None = None
) -> Hashable:
    """The key of a nested structure with those of its leaves. Nothing is made of the user's
    classes, whose constructors may refuse what is no leaf of theirs.

    A composite tensor counts by its type: a trace serves any number of elements.
    """
    if isinstance(value, CompositeTensor):
        value = value._type_spec
    parts = nest.children(value)
    if parts is None:
        return of_leaf(value)
    static = nest.static_part(value)
    if told is not None and isinstance(value, CompositeTensorSpec):
        told.append(value._told)
        static = static, value._told
    keys = tuple(_nested_key(child, of_leaf, told) for _, child in parts)
    names = None if isinstance(value, list | tuple) else tuple(k for k, _ in parts)
    kind = getattr(value, "seen_as", type(value))
    return (kind, names, keys) if static is None else (static, names, keys)


def told_by(structure: Any) -> list[Any]:
    """What the composite tensors of a structure tell beside their parts: `_told`."""
    found: list[Any] = []
    _nested_key(structure, lambda leaf: None, found)
    return found


def tells_no_more(mine: Any, theirs: Any) -> bool:
    """Whether sizes that one composite tensor tells hold for another one, too."""
    if mine is None or theirs is None:
        return mine is None
    pairs = zip(mine, theirs, strict=False)
    return len(mine) == len(theirs) and all(a is None or a == b for a, b in pairs)


def _fit(a: Any, b: Any) -> bool:
    """Whether one composite tensor may have the sizes that two others tell."""
    if a is None or b is None:
        return True
    pairs = zip(a, b, strict=False)
    return len(a) == len(b) and all(None in (x, y) or x == y for x, y in pairs)


def _told_by_both(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def _tell(like: Any, made: Any, told: Iterator[Any]) -> None:
    """Tell the composite tensors of a structure that was made like another one."""
    if isinstance(like, CompositeTensor | CompositeTensorSpec):
        sizes = next(told)
        if sizes is not None:
            made._tell(sizes)
    pairs = zip(nest.children(like) or (), nest.children(made) or (), strict=False)
    for (_, old), (_, new) in pairs:
        _tell(old, new, told)


class Arguments:
    """One call's arguments, bound to the function's parameters.

    Attributes:
        args, kwargs: as the Python function will be called.
        leaves: the leaves of (args, kwargs) in order.
        types: for each leaf the leaf itself, the spec that the input signature has for it, or the
            trace type of an object that has one.
        names: the parameters' names for `args`.
        key: the cache key.
        told: what composite tensors tell beside the types of their parts, in order.
        scope: the device of a scope that is part of the key, as no tensor tells.
        unranked: the arguments as a signature has them in which ranks are unknown, where these are
            the ones of a call with it.
    """

    __slots__ = (
        "_bare", "_family", "args", "key", "kwargs", "leaves", "names", "scope", "told", "types",
        "unranked",
    )  # fmt: skip

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        names: Sequence[str],
        declared: tuple[Any, ...] = (),
    ) -> None:
        self.args, self.kwargs, self.names = args, kwargs, names
        self._bare: Arguments | None = None
        self._family: Hashable = None
        self.unranked: Arguments | None = None
        self.scope: Device | None = None
        self.types: list[Any] = []
        self.told: list[Any] = []
        typed = (*declared, *args[len(declared) :])
        try:
            self.key = structure_key((typed, kwargs), self.types, {}, self.told)
        except Unhashable as problem:
            raise self._named(problem, self.types[-1]) from None
        # A type is not the value that has it.
        same = not declared and not any(isinstance(t, TraceType) for t in self.types)
        self.leaves = self.types if same else nest.flatten((args, kwargs))

    def _named(self, problem: Unhashable, leaf: Any) -> TypeError:
        """The problem with the argument that has it."""
        labelled = [*zip(self.names, self.args, strict=True), *self.kwargs.items()]
        paths = (p for label, value in labelled for p in nest.flatten_with_paths(value, label))
        name = next((path for path, value in paths if value is leaf), "an argument")
        return TypeError(f"argument {name} is {problem}{at(user_origin())}")

    def without_values(self) -> Arguments:
        """The same signature, keeping no array and no object of the call alive."""
        if self._bare is None:
            bare = object.__new__(Arguments)
            bare.names, bare.key, bare._bare = self.names, self.key, bare
            bare._family = self.family if self.has_ranks else None
            bare.unranked, bare.scope, bare.told = self.unranked, self.scope, self.told
            bare.types = [_bare(t) for t in self.types]
            bare.args, bare.kwargs = self.pack(bare.types)
            bare.leaves = bare.types
            self._bare = bare
        return self._bare

    @property
    def has_open_dims(self) -> bool:
        """Whether a leaf is traced for more than one shape."""
        return any(isinstance(t, TensorSpec) and ANY in t.dims for t in self.types)

    @property
    def is_general(self) -> bool:
        """Whether a trace serves other types than its own."""
        return self.has_open_dims or bool(self.trace_types)

    def accepts(self, other: Arguments) -> bool:
        """Whether a trace for these arguments serves the other ones."""
        if self.family != other.family:
            return False
        specs = zip(self._specs(), other._specs(), strict=True)
        types = zip(self.trace_types, other.trace_types, strict=True)
        if not all(map(tells_no_more, self.told, other.told)):
            return False
        return all(mine.is_compatible_with(theirs) for mine, theirs in specs) and all(
            theirs.is_subtype_of(mine) for mine, theirs in types
        )

    @property
    def trace_types(self) -> list[TraceType]:
        """The types of the objects that say which type they have."""
        return [t for t in self.types if is_trace_type(t)]

    def generalized(self, earlier: Arguments) -> Arguments:
        """These arguments with the dims open in which they differ from `earlier`.

        Only arguments of the same structure, dtypes and ranks are generalized.
        """
        if self.family != earlier.family:
            return self
        merged = iter(
            mine.with_dims(
                TensorShape(
                    [a if a == b else None for a, b in zip(mine.dims, old.dims, strict=True)]
                ).exact
            )
            for mine, old in zip(self._specs(), earlier._specs(), strict=True)
        )
        types = [next(merged) if is_tensor_leaf(t) else t for t in self.types]
        return self._retyped(types, list(map(_told_by_both, self.told, earlier.told)))

    def _retyped(self, types: list[Any], told: list[Any] | None = None) -> Arguments:
        """The same arguments, traced for other types."""
        args, kwargs = self.pack(types, told)
        made = Arguments(args, kwargs, self.names)
        made.args, made.kwargs, made.leaves = self.args, self.kwargs, self.leaves
        made.unranked = self.unranked
        return made

    def called_with(self, leaves: Sequence[Any], name: str) -> Arguments:
        """The arguments of a call with these leaves, traced for this signature's types.

        Raises:
            TypeError: a value does not fit.
        """
        pairs = zip(leaves, self.types, strict=True)
        values = [_convert_leaf(leaf, kind, "an argument", name) for leaf, kind in pairs]
        pairs = zip(values, self.types, strict=True)
        args, kwargs = self.pack([t if isinstance(t, TensorSpec) else v for v, t in pairs])
        made = Arguments(args, kwargs, self.names)
        made.args, made.kwargs = self.pack(values)
        made.leaves = values
        return made

    def of_specs(self, specs: Sequence[Spec]) -> Arguments:
        """Arguments without values (`without_values`) for other specs of tensors.

        Args:
            specs: one for each tensor and variable.

        Raises:
            ReferenceError: an object among the arguments is gone.
        """
        given = iter(specs)
        leaves = []
        for kind in self.types:
            leaf = kind.target if isinstance(kind, ObjectKey | Snapshot) else kind
            if leaf is None and kind is not None:
                raise ReferenceError(f"{kind!r}, an argument, is gone")
            spec = next(given) if is_tensor_leaf(leaf) or isinstance(leaf, Variable) else None
            leaves.append(spec if is_tensor_leaf(leaf) else leaf)
        args, kwargs = self.pack(leaves)
        return Arguments(args, kwargs, self.names)

    @property
    def has_ranks(self) -> bool:
        """Whether all ranks are known: a trace is made for known ranks."""
        return all(t.has_rank for t in self.types if isinstance(t, TensorSpec))

    def ranked(self) -> Arguments:
        """The arguments with the ranks of the values where the signature leaves them open, and all
        dims open there; itself where no value tells."""
        types = [_ranked(t, leaf) for t, leaf in zip(self.types, self.leaves, strict=True)]
        if all(new is old for new, old in zip(types, self.types, strict=True)):
            return self
        made = self._retyped(types)
        made.unranked = self.without_values()
        return made

    def placed(self) -> Arguments:
        """The arguments as tensors of one device: that of the innermost scope, else of the first
        tensor that is not on the host. The call copies those from elsewhere."""
        scope = placed()
        away = (x.spec.device for x in self.leaves if type(x) is DeviceTensor)
        device = scope or next(away, HOST)
        if scope is None and device is HOST:
            return self
        types = [_on_device(t, device) for t in self.types]
        moves = any(new is not old for new, old in zip(types, self.types, strict=True))
        made = self._retyped(types) if moves else self
        if scope is not HOST and not any(t.device is device for t in made._specs()):
            made.within(device)
        return made

    def within(self, scope: Device) -> None:
        """Let the key tell the device scope."""
        self.key, self.scope = (self.key, scope), scope

    def _specs(self) -> list[TensorSpec]:
        return [leaf_spec(t) for t in self.types if is_tensor_leaf(t)]

    @property
    def family(self) -> Hashable:
        """The key with the shapes of tensors replaced by their ranks."""
        if self._family is None:
            aliases: dict[int, int] = {}
            leaves = tuple(
                ("tensor", leaf_spec(t).dtype, leaf_spec(t).rank, leaf_spec(t).device)
                if is_tensor_leaf(t)
                else ("trace type", type(t))
                if is_trace_type(t)
                else leaf_key(t, aliases)
                for t in self.types
            )
            self._family = leaves, _nested_key((self.args, self.kwargs), lambda leaf: None)
        return self._family

    def pack(
        self, leaves: Sequence[Any], told: list[Any] | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) with the leaves replaced, and what composite tensors tell where that is
        given."""
        packed: tuple[tuple[Any, ...], dict[str, Any]] = nest.pack((self.args, self.kwargs), leaves)
        told = self.told if told is None else told
        if any(told):
            _tell((self.args, self.kwargs), packed, iter(told))
        return packed


def _ranked(kind: Any, leaf: Any) -> Any:
    if not isinstance(kind, TensorSpec) or kind.has_rank or not leaf_spec(leaf).has_rank:
        return kind
    return TensorSpec([None] * leaf_spec(leaf).rank, kind.dtype, kind.name)


def _bare(leaf: Any) -> Any:
    """The spec that a leaf is traced as, or its key: nothing that keeps an array."""
    return leaf_spec(leaf) if is_tensor_leaf(leaf) else weakly(leaf)


class FunctionSignature:
    """The Python signature of a function, with an optional tensor signature over it.

    Attributes:
        is_unbound: the input signature belongs to a method, and lacks its object.
        hidden: how many leading parameters the caller does not give; reports leave them out.
    """

    hidden = 0

    def __init__(self, fn: Callable[..., Any], input_signature: Any, name: str) -> None:
        self.name = name
        self.is_unbound = False
        self.parameters = _python_signature(fn)
        owner = str(getattr(fn, "__qualname__", "")).rpartition(".")[0]
        self._is_in_a_class = bool(owner) and not owner.endswith("<locals>")
        self.input_signature: tuple[Any, ...] | None = None
        if input_signature is not None:
            self.input_signature = tuple(_check_signature(input_signature))
            leaves = nest.flatten(self.input_signature)
            self._has_lists = any(isinstance(leaf, ListSpec) for leaf in leaves)
            self._check_fits()

    @property
    def takes_names_only(self) -> bool:
        """Whether there are parameters, and each is given by its name."""
        kinds = {p.kind for p in self.parameters.parameters.values()} if self.parameters else set()
        return kinds == {inspect.Parameter.KEYWORD_ONLY}

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """Arguments in canonical form: defaults filled in, keywords moved to their positions.

        Raises:
            TypeError: the arguments do not fit the parameters or the input signature.
            ValueError: an argument contains itself, or is nested too deeply.
        """
        try:
            return self._bind(args, kwargs)
        except RecursionError:
            text = f"{self.name}(): an argument: {nest.ENDLESS}{at(user_origin())}"
            raise ValueError(text) from None

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        if self.parameters is not None:
            try:
                bound = self.parameters.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.name}(): {error}{at(user_origin())}") from None
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        names, declared = self.names(len(args)), self.input_signature or ()
        if self.input_signature is not None:
            args = self._convert(args)
            if self._has_lists:
                declared = nest.map_structure(_as_given, declared, args[: len(declared)])
        arguments = Arguments(args, kwargs, names, declared)
        if not arguments.has_ranks:
            arguments = arguments.ranked()
        return arguments.placed()

    def completed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], traced: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) in canonical form, with the Python values of a trace where they are
        missing; `traced` is the trace's (args, kwargs), with specs for tensors.

        Raises:
            TypeError: they do not fit the parameters.
        """
        if self.parameters is None:
            return args, kwargs
        bound = self.parameters.bind_partial(*args, **kwargs)
        for name, value in self.parameters.bind(*traced[0], **traced[1]).arguments.items():
            if not any(isinstance(leaf, Spec) for leaf in nest.flatten(value)):
                bound.arguments.setdefault(name, value)
        return bound.args, bound.kwargs

    def canonical_order(
        self, arguments: Arguments, count: int, keywords: Sequence[str]
    ) -> list[int]:
        """For a call with `count` positional arguments and `keywords`: the places of its values
        in the order of `arguments` (defaults that were filled in have no place)."""
        given = {name: i for i, name in enumerate([*self.names(count), *keywords])}
        wanted = [*arguments.names, *sorted(arguments.kwargs)]
        return [given[name] for name in wanted if name in given]

    def names(self, count: int) -> list[str]:
        """A name for each positional argument; arguments of ``*args`` are numbered."""
        names: list[str] = []
        parameters = self.parameters.parameters.values() if self.parameters else ()
        for parameter in parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
            elif parameter.kind is not parameter.KEYWORD_ONLY:
                names.append(parameter.name)
        return (names + [f"arg{i}" for i in range(len(names), count)])[:count]

    def _check_fits(self) -> None:
        assert self.input_signature is not None
        if self.parameters is None:
            return
        try:
            self.parameters.bind(*self.input_signature)
        except TypeError as error:
            if self._fits_a_method():
                self.is_unbound = True  # checked again when it is bound to an object
                return
            raise TypeError(
                f"input_signature with {len(self.input_signature)} entries does not fit "
                f"{self.name}{self.parameters}: {error}"
            ) from None

    def _fits_a_method(self) -> bool:
        """Whether the input signature leaves out only the first parameter of what is a method by
        its name or by that parameter's, ``self`` or ``cls``."""
        assert self.parameters is not None and self.input_signature is not None
        first = next(iter(self.parameters.parameters), "")
        if first not in ("self", "cls") and not self._is_in_a_class:
            return False
        try:
            self.parameters.bind(None, *self.input_signature)
        except TypeError:
            return False
        return True

    def _convert(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments converted to the input signature.

        Raises:
            TypeError: they do not fit, or there are further ones that are not defaults.
        """
        specs = self.input_signature
        assert specs is not None
        if len(args) < len(specs):
            raise TypeError(
                f"{self.name}(): {len(args)} arguments for an input_signature of {len(specs)}"
                f"{at(user_origin())}"
            )
        for name, value in zip(
            self.names(len(args))[len(specs) :], args[len(specs) :], strict=True
        ):
            self._check_is_default(name, value)
        converted = [
            convert_nested(value, spec, f"argument {i}", self.name)
            for i, (value, spec) in enumerate(zip(args, specs, strict=False))
        ]
        return (*converted, *args[len(specs) :])

    def _check_is_default(self, name: str, value: Any) -> None:
        parameter = self.parameters.parameters.get(name) if self.parameters else None
        default = inspect.Parameter.empty if parameter is None else parameter.default
        same = value is default or (type(value) is type(default) and bool(value == default))
        if not same:
            raise TypeError(
                f"{self.name}(): the input_signature does not cover the argument {name}={value!r}, "
                f"which can only be left out{at(user_origin())}"
            )


def _on_device(kind: Any, device: Device) -> Any:
    """The type of an argument of a call on a device. Strings and lists stay on the host."""
    if not is_tensor_leaf(kind):
        return kind
    spec = leaf_spec(kind)
    there = spec if spec.dtype is dtypes.string else spec.on(device)
    return kind if there is spec else there


def _as_given(declared: Any, given: Any) -> Any:
    """The spec of an input signature; for a list that of the one that is given, which knows the
    shape of the elements."""
    return leaf_spec(given) if isinstance(declared, ListSpec) else declared


def convert_nested(value: Any, spec: Any, place: str, name: str) -> Any:
    """A structure of values converted to one of specs; what stands for no spec stays as it is.

    Raises:
        TypeError: they differ in structure, dtype or shape.
    """
    parts = nest.children(spec)
    if parts is None:
        return _convert_leaf(value, spec, place, name)
    given = nest.children(value)
    same = _static_fits(nest.static_part(value), nest.static_part(spec))
    if given is None or not same or [k for k, _ in given] != [k for k, _ in parts]:
        raise TypeError(
            f"{name}(): {place} has another structure than the input_signature: expected "
            f"{spec!r}, got {value!r}{at(user_origin())}"
        )
    if isinstance(spec, CompositeTensorSpec) and not _fit(spec._told, value._told):
        raise TypeError(
            f"{name}(): {place} is {getattr(value, '_type_spec', value)!r}, which does not fit the "
            f"input_signature's {spec!r}{at(user_origin())}"
        )
    converted = [
        convert_nested(v, s, f"{place}[{k!r}]", name)
        for (k, v), (_, s) in zip(given, parts, strict=True)
    ]
    return nest.rebuild(spec, converted)


def _static_fits(given: Any, wanted: Any) -> bool:
    """Whether the static part of an argument's type (the element spec of a dataset, say) equals the
    signature's, or is more special in its dims."""
    if isinstance(wanted, TensorSpec) and isinstance(given, TensorSpec):
        return given.is_subtype_of(wanted)
    if isinstance(wanted, tuple) and isinstance(given, tuple):
        pairs = zip(given, wanted, strict=False)
        return len(given) == len(wanted) and all(_static_fits(g, w) for g, w in pairs)
    return bool(given == wanted)


def _convert_leaf(value: Any, spec: Any, place: str, name: str) -> Any:
    if not isinstance(spec, TensorSpec | ListSpec):
        return value
    if isinstance(value, TensorSpec | ListSpec):
        given: Spec = value
    else:
        try:
            value = value if isinstance(value, Tensor) else convert_to_tensor(value, spec.dtype)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name}(): {place} does not convert to {spec}: {error}") from None
        given = value.spec
    if not spec.is_compatible_with(given):
        raise TypeError(
            f"{name}(): {place} is {given}, which does not fit the input_signature's "
            f"{spec!r}{at(user_origin())}"
        )
    return value


def _python_signature(fn: Callable[..., Any]) -> inspect.Signature | None:
    if isinstance(fn, np.ufunc):
        return None  # its defaults exclude one another
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        return None  # a builtin without one: arguments are taken as they come


def _check_signature(signature: Any) -> list[Any]:
    if isinstance(signature, TensorSpec) or not isinstance(signature, list | tuple):
        raise TypeError(
            f"input_signature must be a list or tuple of nested TensorSpecs, got {signature!r}"
        )
    for leaf in nest.flatten(signature):
        if not isinstance(leaf, Spec):
            raise TypeError(f"input_signature may hold only TensorSpecs, got {leaf!r}")
    return list(signature)


def display_name(fn: Any) -> str:
    """The name of a function for messages."""
    if isinstance(fn, functools.partial):
        return display_name(fn.func)
    if isinstance(fn, types.MethodType):
        return fn.__func__.__name__
    return getattr(fn, "__name__", None) or type(fn).__name__
