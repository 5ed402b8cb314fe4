"""``td.types.experimental.FunctionType``: a Python signature with the types of a trace."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from treadle.core import nest
from treadle.core.spec import Spec, TensorSpec
from treadle.tracing.signature import FunctionSignature


class Parameter(inspect.Parameter):
    """A parameter of a trace.

    Attributes:
        type_constraint: the argument's structure with a TensorSpec for every tensor.
    """

    __slots__ = ("type_constraint",)

    def __init__(self, name: str, kind: Any, type_constraint: Any) -> None:
        self.type_constraint = nest.map_structure(
            lambda leaf: _without_name(leaf, name), type_constraint
        )
        super().__init__(name, kind, annotation=_type(self.type_constraint))


def _without_name(leaf: Any, parameter: str) -> Any:
    """A tensor's spec, without a name that it has from its parameter."""
    if isinstance(leaf, TensorSpec) and str(leaf.name).startswith(parameter):
        return TensorSpec(leaf.shape, leaf.dtype).on(leaf.device)
    return leaf


class FunctionType(inspect.Signature):
    """The parameters of a trace with the types that they have there.

    Attributes:
        output: the result's structure with a TensorSpec for every tensor; `inspect.Signature.empty`
            where it is not known yet.
        captures: by `id`, the types of what the trace captures.
    """

    __slots__ = ("captures", "output")

    def __init__(
        self, signature: FunctionSignature, args: Sequence[Any], kwargs: Mapping[str, Any],
        output: Any, captures: Sequence[Any],
    ) -> None:  # fmt: skip
        known = signature.parameters.parameters if signature.parameters else {}
        names = signature.names(len(args))
        only, named = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
        kinds = [known[n].kind if n in known else only for n in names]
        positional = zip(names, kinds, args, strict=True)
        found = [Parameter(n, kind, x) for n, kind, x in positional]
        found += [Parameter(n, named, x) for n, x in kwargs.items()]
        super().__init__(found, return_annotation=_type(output), __validate_parameters__=False)
        self.output = output
        self.captures = {id(x): x.spec for x in captures}

    def __repr__(self) -> str:
        listed = [
            f"  {p.name} ({p.kind.name}): {p.annotation}" for p in self.parameters.values()
        ]
        captured = [f"  {key}: {spec!r}" for key, spec in self.captures.items()]
        known = self.return_annotation is not inspect.Signature.empty
        result = self.return_annotation if known else "known once the function was called"
        return "\n".join([
            "Input Parameters:", *(listed or ["  None"]), "Output Type:",
            f"  {result}", "Captures:", *(captured or ["  None"]),
        ])  # fmt: skip


class _Annotation:
    """Prints as the text it holds, in signatures."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _type(value: Any) -> Any:
    """The type of an argument or result, as TensorFlow writes it; none where nothing is known."""
    return value if value is inspect.Signature.empty else _Annotation(_text(value))


def _text(value: Any) -> str:
    if isinstance(value, TensorSpec):
        return f"TensorSpec(shape={value.shape}, dtype=tf.{value.dtype.name}, name={value.name!r})"
    if isinstance(value, Spec):
        return repr(value)
    if isinstance(value, Mapping):
        items = ", ".join(f"[{key!r}, {_text(x)}]" for key, x in value.items())
        return f"Dict[{items}]"
    if isinstance(value, list | tuple):
        kind = "List" if isinstance(value, list) else "Tuple"
        return f"{kind}[{', '.join(map(_text, value))}]"
    return repr(value) if nest.is_nested(value) else f"Literal[{value!r}]"
