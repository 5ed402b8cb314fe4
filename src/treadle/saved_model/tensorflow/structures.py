"""Arguments and results of TensorFlow's functions: structures as messages, and as Python has
them."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from treadle.compat.graph_nodes import array_of, dtype_of, shape_of
from treadle.core import errors
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor

_Parameter = inspect.Parameter


def read(message: Any) -> Any:
    """The structure that a message ``StructuredValue`` has.

    Raises:
        ValueError: it has none.
        UnimplementedError: a type that consists of several tensors.
    """
    kind = message.WhichOneof("kind")
    if kind is None:
        raise ValueError("a structure has no value")
    value = getattr(message, kind)
    match kind:
        case "none_value":
            return None
        case "float64_value" | "int64_value" | "string_value" | "bool_value":
            return value
        case "tensor_shape_value":
            return shape_of(value)
        case "tensor_dtype_value":
            return dtype_of(value)
        case "tensor_spec_value" | "bounded_tensor_spec_value":
            return TensorSpec(shape_of(value.shape), dtype_of(value.dtype), value.name or None)
        case "list_value":
            return [read(item) for item in value.values]
        case "tuple_value":
            return tuple(read(item) for item in value.values)
        case "dict_value":
            return {key: read(item) for key, item in value.fields.items()}
        case "named_tuple_value":
            names = [pair.key for pair in value.values]
            return namedtuple(value.name, names)(*(read(pair.value) for pair in value.values))
        case "tensor_value" | "numpy_value":
            return array_of(value)
    raise errors.UnimplementedError(
        None, None,
        f"a value of the type {value.type_spec_class_name or value.type_spec_class} is not read: "
        "export the model with tensors as arguments and results",
    )  # fmt: skip


def leaves(structure: Any) -> Iterator[Any]:
    """What a structure consists of, in TensorFlow's order: dicts by their sorted keys."""
    if isinstance(structure, Mapping):
        for name in sorted(structure):
            yield from leaves(structure[name])
    elif isinstance(structure, list | tuple):
        for item in structure:
            yield from leaves(item)
    else:
        yield structure


def filled(structure: Any, values: Iterator[Any]) -> Any:
    """A structure of results with a value for each of its tensors."""
    if isinstance(structure, Mapping):
        found = {name: filled(structure[name], values) for name in sorted(structure)}
        return {name: found[name] for name in structure}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(filled(item, values) for item in structure))
    if isinstance(structure, list | tuple):
        return type(structure)(filled(item, values) for item in structure)
    return next(values) if isinstance(structure, TensorSpec) else structure


def matched(wanted: Any, given: Any) -> list[Tensor] | None:
    """The tensors of arguments that fit a structure; None for other arguments."""
    if isinstance(wanted, TensorSpec):
        return _matched_tensor(wanted, given)
    if isinstance(wanted, Mapping):
        if not isinstance(given, Mapping) or set(wanted) != set(given):
            return None
        pairs = [(wanted[name], given[name]) for name in sorted(wanted)]
    elif isinstance(wanted, list | tuple):
        if not isinstance(given, list | tuple) or len(given) != len(wanted):
            return None
        pairs = list(zip(wanted, given, strict=True))
    else:
        if isinstance(given, Tensor):
            return None
        same = type(given) is type(wanted) and given == wanted
        return [] if same else None
    parts = [matched(a, b) for a, b in pairs]
    return None if None in parts else [x for part in parts for x in part or ()]


def _matched_tensor(spec: TensorSpec, given: Any) -> list[Tensor] | None:
    if given is None:
        return None
    if not hasattr(given, "dtype"):
        try:
            given = convert_to_tensor(given, spec.dtype)
        except (TypeError, ValueError):
            return None
    tensor: Tensor = convert_to_tensor(given)
    fits = tensor.dtype is spec.dtype and spec.shape.is_compatible_with(tensor.shape)
    return [tensor] if fits else None


def signature_of(spec: Any, keywords: Sequence[str] = ()) -> inspect.Signature:
    """The Python signature that a message ``FunctionSpec`` has; of keywords only where it has none.

    Raises:
        ValueError: it is none.
    """
    if not spec.HasField("fullargspec"):
        return inspect.Signature([_Parameter(k, _Parameter.KEYWORD_ONLY) for k in keywords])
    named = read(spec.fullargspec)
    args = list(named.args or ())[1 if spec.is_method else 0 :]
    defaults = list(named.defaults or ())[-len(args) :] if args else []
    defaults = [_Parameter.empty] * (len(args) - len(defaults)) + defaults
    found = [
        _Parameter(name, _Parameter.POSITIONAL_OR_KEYWORD, default=default)
        for name, default in zip(args, defaults, strict=True)
    ]
    if named.varargs:
        found.append(_Parameter(named.varargs, _Parameter.VAR_POSITIONAL))
    of_keywords = named.kwonlydefaults or {}
    for name in named.kwonlyargs or ():
        default = of_keywords.get(name, _Parameter.empty)
        found.append(_Parameter(name, _Parameter.KEYWORD_ONLY, default=default))
    if named.varkw:
        found.append(_Parameter(named.varkw, _Parameter.VAR_KEYWORD))
    return inspect.Signature(found)


def give_signature(function: Callable[..., Any], name: str, signature: inspect.Signature) -> None:
    """Let a function show a name and a signature."""
    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature  # type: ignore[attr-defined]
