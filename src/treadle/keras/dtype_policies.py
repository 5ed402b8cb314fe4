"""Policies of dtypes: what layers compute in, and what their weights are kept in."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import treadle as td
from treadle.keras import config, quantizers, serialization
from treadle.keras.promotion import standardize_dtype
from treadle.modes import during, is_mode
from treadle.names import missing_in

_MISSING: Any = object()  # no default is given
_MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}


class DTypePolicy:
    """What a layer computes in, and what its weights are.

    Args:
        name: a dtype's name for both; or "mixed_float16", "mixed_bfloat16": computations in 16
            bits with weights of float32; that of the global policy when omitted.

    Raises:
        TypeError: the name is no string.
        ValueError: it is none of these.
    """

    quantization_mode: str | None = None  # how tables of weights are kept in fewer bits
    quantization_config: Any = None  # more of that than the mode says

    def __init__(self, name: str | None = None) -> None:
        self._name = dtype_policy().name if name is None else name
        if not isinstance(self._name, str):
            raise TypeError(
                "'name' must be a string, such as 'mixed_float16'. Received: "
                f"name={name} (of type {type(name)})"
            )
        if self._name in _MIXED:
            self._compute, self._variable = _MIXED[self._name], "float32"
            return
        try:
            self._compute = self._variable = standardize_dtype(self._name)
        except ValueError:
            raise ValueError(
                f"Cannot convert '{name}' to a mixed precision DTypePolicy. Valid policies "
                "include 'mixed_float16', 'mixed_bfloat16', and the name of any float dtype such "
                "as 'float32'."
            ) from None

    @property
    def name(self) -> str:
        """The name that it was made from."""
        return self._name

    @property
    def compute_dtype(self) -> str:
        """The dtype of inputs and results."""
        return self._compute

    @property
    def variable_dtype(self) -> str:
        """The dtype of weights."""
        return self._variable

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal policy."""
        return {"name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DTypePolicy:
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicy) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f'<DTypePolicy "{self.name}">'


class QuantizedDTypePolicy(DTypePolicy):
    """What a layer computes in whose table is kept in fewer bits.

    Args:
        mode: "int8", "int4" or "float8".
        source_name: the policy of the computation and of the other weights; that of the global
            policy when omitted.

    Raises:
        NotImplementedError: a mode that only Keras has.
        ValueError: there is no such mode, or none for float16.
    """

    def __init__(self, mode: str, source_name: str | None = None) -> None:
        super().__init__(source_name)
        self._source_name = self._name
        quantizers.check_mode(mode)
        if self.compute_dtype == "float16" and mode == "int8":
            raise ValueError(
                f"Quantization mode='{mode}' doesn't work well with compute_dtype='float16'."
            )
        self.quantization_mode = mode
        self._name = f"{mode}_from_{self._name}"

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal policy."""
        return {"mode": self.quantization_mode, "source_name": self._source_name}

    def __repr__(self) -> str:
        return f'<{type(self).__name__} "{self.name}">'


class Int4DTypePolicy(QuantizedDTypePolicy):
    """What a layer computes in whose table is kept in 4 bits, with scales of groups.

    Args:
        mode: ``"int4/<block_size>"``: how many neighbours have a scale of their own; -1: all along
            an axis share one.
        source_name: the policy of the computation and of the other weights; that of the global
            policy when omitted.

    Raises:
        ValueError: the mode has another form.
    """

    def __init__(self, mode: str, source_name: str | None = None) -> None:
        kind, _, size = mode.partition("/")
        if kind != "int4" or not size.removeprefix("-").isdigit():
            raise ValueError(
                "Invalid mode for Int4DTypePolicy. Expected format 'int4/<block_size>', "
                f"but got '{mode}'."
            )
        self.block_size = int(size)
        if self.block_size < -1 or self.block_size == 0:
            raise ValueError(
                "Invalid block_size in mode. Supported values are -1 (per-channel) or a positive "
                f"integer (sub-channel), but got {self.block_size} from '{mode}'."
            )
        super().__init__(kind, source_name)
        self._name = f"{mode}_from_{self._source_name}"

    @property
    def quantization_config(self) -> Any:
        """How a layer is quantized that gets this policy."""
        return quantizers.Int4QuantizationConfig(block_size=self.block_size)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"mode": f"int4/{self.block_size}"}


class QuantizedFloat8DTypePolicy(QuantizedDTypePolicy):
    """What a layer computes in whose products are of floats of 8 bits.

    Args:
        mode: "float8".
        source_name: the policy of the computation and of the weights; that of the global policy
            when omitted.
        amax_history_length: of how many calls the largest numbers are known, which decide the
            scales.

    Raises:
        TypeError: the length is no int.
    """

    default_amax_history_length = 1024

    def __init__(
        self, mode: str, source_name: str | None = None, amax_history_length: int = 1024
    ) -> None:
        super().__init__(mode, source_name)
        if not isinstance(amax_history_length, int):
            raise TypeError(
                "`amax_history_length` must be an integer. Received: amax_history_length="
                f"{amax_history_length}"
            )
        self.amax_history_length = amax_history_length

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, QuantizedFloat8DTypePolicy) and super().__eq__(other)
        return same and self.amax_history_length == other.amax_history_length  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.name, self.amax_history_length))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"amax_history_length": self.amax_history_length}


def _class_of(mode: str) -> type[QuantizedDTypePolicy]:
    """The class of policies of a mode."""
    if "/" in mode:
        return Int4DTypePolicy
    return QuantizedFloat8DTypePolicy if mode == "float8" else QuantizedDTypePolicy


def quantized(mode: str, source: str, block_size: int | None) -> QuantizedDTypePolicy:
    """The policy of a layer that is quantized.

    Args:
        source: the name of its policy before.
        block_size: of 4 bits; None: it has no blocks.
    """
    if mode != "int4":
        return _class_of(mode)(mode, source)
    return Int4DTypePolicy(f"{mode}/{-1 if block_size is None else block_size}", source)


class DTypePolicyMap(DTypePolicy, MutableMapping[str, DTypePolicy]):
    """Policies of layers by their paths, for layers with inner layers of several policies: a layer
    that is given the map has the policy of its own path.

    Keys are paths, or regular expressions that match whole paths. Other paths have the default.

    Args:
        default_policy: a policy or its name; that of `keras.config.dtype_policy()` when omitted,
            also where a file is read: the policies of the map are saved without their names then.
        policy_map: policies by keys, to begin with.

    Raises:
        TypeError: `policy_map` is no dict.
        ValueError: the default is a map; or, when a policy is looked up, several keys match.
    """

    def __init__(
        self, default_policy: Any = None, policy_map: dict[str, DTypePolicy] | None = None
    ) -> None:
        if isinstance(default_policy, DTypePolicyMap):
            raise ValueError("`default_policy` cannot be a `DTypePolicyMap`.")
        if policy_map is not None and not isinstance(policy_map, dict):
            raise TypeError(
                "If specified, `policy_map` must be a dict. Received: "
                f"policy_map={policy_map} of type {type(policy_map)}"
            )
        self._given = default_policy
        self._default = get(default_policy)
        self._policies = {} if policy_map is None else policy_map

    @property
    def name(self) -> str:
        """"map_" and the name of the default."""
        return f"map_{self._default.name}"

    @property
    def default_policy(self) -> DTypePolicy:
        """The policy of paths that no key matches."""
        return self._default

    @property
    def compute_dtype(self) -> str:
        """That of the default."""
        return self._default.compute_dtype

    @property
    def variable_dtype(self) -> str:
        """That of the default."""
        return self._default.variable_dtype

    @property
    def quantization_mode(self) -> str | None:  # type: ignore[override]
        """That of the default."""
        return self._default.quantization_mode

    def __getitem__(self, key: str) -> DTypePolicy:
        """The policy of a path.

        Raises:
            ValueError: several keys match it.
        """
        if key in self._policies:
            return self._policies[key]
        found = [pattern for pattern in self._policies if re.fullmatch(pattern, key)]
        if len(found) > 1:
            raise ValueError(
                f"Path '{key}' matches multiple dtype policy specification keys: {found}. Please "
                "make sure each path only matches at most one dtype policy specification key in "
                "the DTypePolicyMap."
            )
        return self._policies[found[0]] if found else self._default

    def __setitem__(self, key: str, policy: Any) -> None:
        """Add a policy.

        Raises:
            ValueError: the key is there already, or it is no policy.
        """
        if key in self._policies:
            raise ValueError(
                f"{key} already exist in the DTypePolicyMap with value {self._policies[key]}. "
                "Please make sure to not use duplicated keys."
            )
        try:
            self._policies[key] = get(policy)
        except (TypeError, ValueError):
            raise ValueError(
                "Cannot interpret the assigned value by `keras.dtype_policies.get`. Received: "
                f"{policy} of type {type(policy)}"
            ) from None

    def __delitem__(self, key: str) -> None:
        del self._policies[key]

    def pop(self, key: str, default: Any = _MISSING) -> Any:
        """Take the policy of a key out; only of the key itself, no other one that matches."""
        if default is _MISSING:
            return self._policies.pop(key)
        return self._policies.pop(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._policies

    def __iter__(self) -> Iterator[str]:
        return iter(self._policies)

    def __len__(self) -> int:
        return len(self._policies)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        mapping = [(key, policy.name) for key, policy in self._policies.items()]
        return (
            f"<DTypePolicyMap at {hex(id(self))} default_policy={self._default.name}, "
            f"mapping={mapping}>"
        )

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal map."""
        found = {key: serialize(policy) for key, policy in self._policies.items()}
        if self._given is None:  # they are those of the program that reads it
            for described in found.values():
                if isinstance(described, dict):
                    name = "source_name" if "source_name" in described["config"] else "name"
                    described["config"] = {**described["config"], name: None}
        default = self._given
        if isinstance(default, DTypePolicy):
            default = serialize(default)
        return {"default_policy": default, "policy_map": found}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> DTypePolicyMap:
        policies = {k: deserialize(p, custom_objects) for k, p in config["policy_map"].items()}
        default = serialization.deserialize_keras_object(config["default_policy"], custom_objects)
        return cls(default, policies)


def policy_at(policy: DTypePolicy, path: str | None) -> DTypePolicy:
    """The policy of a layer that was given a policy or a map of them.

    Args:
        path: the layer's; None before it is built.
    """
    if not isinstance(policy, DTypePolicyMap):
        return policy
    return policy.default_policy if path is None else policy[path]


FloatDTypePolicy = Policy = DTypePolicy
_global: DTypePolicy | None = None


def dtype_policy() -> DTypePolicy:
    """The policy of layers that are given none: that of `keras.config.floatx()` unless set."""
    return _global or DTypePolicy(config.floatx())


def set_dtype_policy(policy: Any) -> None:
    """Set `dtype_policy`, to a policy, its name or its configuration.

    Raises:
        ValueError: it is none of these.
    """
    global _global
    if not isinstance(policy, DTypePolicy | Mapping | str | td.DType):
        raise ValueError(
            "Invalid `policy` argument. Expected the string name of a policy (such as "
            f"'mixed_float16') or a `DTypePolicy` instance. Received: policy={policy} "
            f"(of type {type(policy)})"
        )
    _global = get(policy)


def get(identifier: Any) -> DTypePolicy:
    """A policy from its name, a dtype, its configuration or itself; None is the global one."""
    if identifier is None:
        return dtype_policy()
    if isinstance(identifier, DTypePolicy):
        return identifier
    if isinstance(identifier, Mapping):
        return deserialize(identifier)
    if isinstance(identifier, str):
        mode, of, source = identifier.partition("_from_")
        if not of:
            return DTypePolicy(identifier)
        return _class_of(mode)(mode, source)
    try:
        return DTypePolicy(standardize_dtype(identifier))
    except ValueError:
        raise ValueError(
            "Cannot interpret `dtype` argument. Expected a string or an instance of DTypePolicy. "
            f"Received: dtype={identifier}"
        ) from None


def computed_in(dtype: Any) -> str:
    """The dtype that losses and metrics compute in: that of a policy, or `floatx` for None."""
    if isinstance(dtype, DTypePolicy | Mapping) or (isinstance(dtype, str) and dtype in _MIXED):
        return get(dtype).compute_dtype
    return td.as_dtype(dtype or config.floatx()).name


def is_known(name: str) -> bool:
    """Whether a string names a dtype or a policy."""
    try:
        get(name)
    except (TypeError, ValueError):
        return False
    return True


def serialize(dtype_policy: DTypePolicy) -> Any:
    """A policy as data."""
    return serialization.serialize_keras_object(dtype_policy)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> DTypePolicy:
    """The policy that `serialize` described."""
    return get(serialization.deserialize_keras_object(config, custom_objects))


class _Casting(threading.local):
    """The dtype that weights are read in by the layer being called; None: their own."""

    dtype: str | None = None


casting = is_mode(_Casting())


def as_they_are() -> during:
    """A block in which weights are read in their own dtypes."""
    return during(casting, "dtype", None)


class CastVariable(td.Variable):
    """A weight that a layer's `call` reads in the dtype that the layer computes in.

    Assignments are in the weight's own dtype; a value of the computation's dtype may be added.
    """

    __slots__ = ()
    _is_layer = True

    @property
    def dtype(self) -> td.DType:
        """The dtype that reading gives: that of the computation while a layer is called."""
        return self.spec.dtype if casting.dtype is None else td.as_dtype(casting.dtype)

    def read_value(self) -> td.Tensor:
        """The current value; in the dtype of the computation while a layer is called."""
        value = super().read_value()
        return value if casting.dtype is None else td.cast(value, casting.dtype)

    def assign(self, value: Any, *args: Any, **kwargs: Any) -> td.Variable:
        """Set the value, which is cast to the weight's own dtype."""
        with as_they_are():
            return super().assign(value, *args, **kwargs)

    def assign_add(self, delta: Any, *args: Any, **kwargs: Any) -> td.Variable:
        """Add a value, which may have the dtype of the computation."""
        with as_they_are():
            return super().assign_add(self._in_own_dtype(delta), *args, **kwargs)

    def assign_sub(self, delta: Any, *args: Any, **kwargs: Any) -> td.Variable:
        """Subtract a value, which may have the dtype of the computation."""
        with as_they_are():
            return super().assign_sub(self._in_own_dtype(delta), *args, **kwargs)

    def _in_own_dtype(self, value: Any) -> td.Tensor:
        return td.cast(td.convert_to_tensor(value), self.spec.dtype)


__all__ = [
    "CastVariable", "DTypePolicy", "DTypePolicyMap", "FloatDTypePolicy", "Int4DTypePolicy",
    "Policy", "QuantizedDTypePolicy", "QuantizedFloat8DTypePolicy", "deserialize", "dtype_policy",
    "get", "serialize", "set_dtype_policy",
]  # fmt: skip

__getattr__ = missing_in(__name__)
