"""Signatures: functions of named tensors that give a dict of them, by which a model is served."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from treadle.core import nest
from treadle.core.composite_spec import CompositeSpec, CompositeTensor
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.saved_model.objects import complete, function_of
from treadle.tracing.any_rank import AnyRankFunction
from treadle.tracing.concrete import ConcreteFunction, public_leaf
from treadle.tracing.extension_types import ExtensionType
from treadle.tracing.function import Function

DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
Signature: TypeAlias = ConcreteFunction | AnyRankFunction
_OWN = "_default_save_signature"  # the name of a function that an object has for it


class SignatureMap(Mapping[str, "Signature"]):
    """The signatures of a loaded model by their names."""

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self._signatures = dict(signatures)

    def __getitem__(self, key: str) -> Signature:
        return self._signatures[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def __repr__(self) -> str:
        return f"SignatureMap({self._signatures!r})"


def signatures_of(
    given: Any, children: Mapping[str, Any]
) -> dict[str, Signature]:
    """The signatures that a model is saved with.

    Args:
        given: a function, or a dict of functions; None for the only one of the model that could be
            a signature.
        children: what the model refers to.

    Raises:
        ValueError: one is no function with an input signature, or gives something else than a
            tensor, a sequence of tensors or a dict of tensors.
        TypeError: a name is no string.
    """
    if given is None:
        own = children.get(_OWN)
        found = [own] if own is not None else [v for v in children.values() if _is_fit(v)]
        given = found[0] if len(found) == 1 else {}
    named = given if isinstance(given, Mapping) else {DEFAULT_SERVING_SIGNATURE_DEF_KEY: given}
    signatures = {}
    for name, value in named.items():
        if not isinstance(name, str):
            raise TypeError(f"The name of a signature is a string, not {name!r}{at(user_origin())}")
        concrete = complete(function_of(value))
        if concrete is None:
            raise ValueError(
                f"Expected a function for which to generate the signature {name!r}, but got "
                f"{value!r}. Only td.functions with an input signature or concrete functions can "
                f"be used as a signature{at(user_origin())}"
            )
        signatures[name] = _signature(name, concrete)
    return signatures


_VALUES = (Tensor, CompositeTensor, ExtensionType)


def _is_fit(value: Any) -> bool:
    """Whether a value can be a signature."""
    concrete = complete(function_of(value))
    if concrete is None:
        return False
    try:
        _named_outputs("", concrete.structured_outputs, (TensorSpec, CompositeSpec))
    except ValueError:
        return False
    leaves = nest.flatten(concrete.structured_input_signature)
    return all(isinstance(leaf, TensorSpec) for leaf in leaves)


def _signature(name: str, concrete: Signature) -> Signature:
    """A function of the concrete function's tensors, by their names, that gives a dict."""
    keys = {key: _parameter_name(key) for key in concrete.tensor_arguments}
    if len(set(keys.values())) < len(keys):
        raise ValueError(
            f"The signature {name!r} has the parameters {list(keys)}, several of which are named "
            f"alike once other characters than letters and digits are '_'{at(user_origin())}"
        )
    specs = {
        keys[key]: public_leaf(TensorSpec(spec.shape, spec.dtype, keys[key]))
        for key, spec in concrete.tensor_arguments.items()
    }

    def signature_wrapper(**tensors: Any) -> dict[str, Any]:
        given = {key: tensors[kept] for key, kept in keys.items()}
        return _named_outputs(name, concrete.call_named(given), _VALUES)

    signature_wrapper.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY) for key in specs]
    )
    made = Function(signature_wrapper, autograph=False).get_concrete_function(**specs)
    return complete(made)  # type: ignore[no-any-return]


def _parameter_name(name: str) -> str:
    """A tensor's name as that of a parameter: TensorFlow's rule."""
    plain = "".join(c if c.isalnum() else "_" for c in name)
    return plain if plain[0].isalpha() and not keyword.iskeyword(plain) else f"arg_{plain}"


def _named_outputs(name: str, results: Any, kind: tuple[type, ...]) -> dict[str, Any]:
    """The results of a signature by their names."""
    if isinstance(results, kind):
        results = [results]
    if isinstance(results, list | tuple):
        results = {f"output_{number}": result for number, result in enumerate(results)}
    if isinstance(results, Mapping) and all(
        isinstance(key, str) and isinstance(result, kind) for key, result in results.items()
    ):
        return dict(results)
    raise ValueError(
        f"The function of the signature {name!r} gives "
        f"{nest.map_structure(str, results, expand_composites=False)}: "
        "signatures give a single tensor, a sequence of tensors, or a dict of tensors by strings"
        f"{at(user_origin())}"
    )
