"""Tables that change: ``td.lookup.experimental``.

A table is an object of Python, a dict from keys to rows of an array. Programs call it for each
lookup and change, in their order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors, locks
from treadle.core.arrays import zeros
from treadle.core.composite_spec import CompositeTensor
from treadle.core.context import recording
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor, is_symbolic
from treadle.ops.registry import Op, register, run

_FIRST_ROWS = 16  # that a table has room for


class Contents:
    """The pairs of a table.

    Args:
        key, value: dtype and static shape of a key and of a value.
        reserved: keys that the table cannot hold, by what they are called.
    """

    def __init__(
        self, key: TensorSpec, value: TensorSpec, reserved: dict[Hashable, str] | None = None
    ) -> None:
        self.key, self.value, self._reserved = key, value, reserved or {}
        self._value_dims = tuple(d for d in value.dims if isinstance(d, int))
        self._key_dims = tuple(d for d in key.dims if isinstance(d, int))
        self._lock = locks.lock()
        self._empty()

    def _empty(self) -> None:
        self._rows: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._keys, self._values = _room(self.key, _FIRST_ROWS), _room(self.value, _FIRST_ROWS)

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, keys: NDArray, default: NDArray) -> NDArray:
        """The values of keys, and `default` for those that the table does not have."""
        wanted = self._allowed(keys)
        lead = keys.shape[: keys.ndim - len(self.key.dims)]
        with self._lock:
            rows = np.fromiter((self._rows.get(k, -1) for k in wanted), np.int64, len(wanted))
            found = self._values[rows]
        default = np.broadcast_to(default, (*lead, *self._value_dims)).reshape(found.shape)
        missing = rows < 0
        found[missing] = default[missing]
        return found.reshape((*lead, *self._value_dims))

    def insert(self, keys: NDArray, values: NDArray) -> None:
        """Add pairs; of equal keys the last one stays."""
        wanted = self._allowed(keys)
        with self._lock:
            self._reserve(len(wanted))
            free, known = self._free, self._rows
            rows = [known[k] if k in known else known.setdefault(k, free.pop()) for k in wanted]
            self._keys[rows] = keys.reshape(len(rows), *self._key_dims)
            self._values[rows] = values.reshape(len(rows), *self._value_dims)

    def remove(self, keys: NDArray) -> None:
        """Forget keys; those that the table does not have are passed over."""
        with self._lock:
            for key in self._allowed(keys):
                row = self._rows.pop(key, None)
                if row is not None:
                    self._free.append(row)

    def export(self) -> tuple[NDArray, NDArray]:
        """All keys and their values, in the order in which the keys came."""
        with self._lock:
            rows = list(self._rows.values())
            return self._keys[rows], self._values[rows]

    def _reserve(self, count: int) -> None:
        """Have room for so many new keys."""
        have, used = len(self._keys), len(self._rows)
        size = have
        while size - used < count:
            size *= 2
        if size > have:
            self._keys = np.concatenate([self._keys, _room(self.key, size - have)])
            self._values = np.concatenate([self._values, _room(self.value, size - have)])
        if len(self._free) < count:
            taken = set(self._rows.values())
            self._free = [row for row in range(size - 1, -1, -1) if row not in taken]

    def _allowed(self, keys: NDArray) -> Sequence[Hashable]:
        found = _hashable(keys, len(self.key.dims))
        for key, name in self._reserved.items():
            if key in found:
                text = f"Using the {name} as a table key is not allowed"
                raise errors.InvalidArgumentError(None, None, text)
        return found

    # -- checkpoints -------------------------------------------------------------------------

    def _trackable_children(self) -> dict[str, Any]:
        return {}

    def _state_dict(self) -> dict[str, Any]:
        keys, values = self.export()
        texts = dtypes.string
        return {
            "keys": keys.tolist() if self.key.dtype is texts else keys,
            "values": values.tolist() if self.value.dtype is texts else values,
        }

    def _load_state_dict(self, state: dict[str, Any]) -> None:
        with self._lock:
            self._empty()
        parts = (state["keys"], self.key), (state["values"], self.value)
        self.insert(*(np.array(part, spec.dtype.np_dtype) for part, spec in parts))


def _room(spec: TensorSpec, rows: int) -> NDArray:
    return zeros((rows, *(d for d in spec.dims if isinstance(d, int))), spec.dtype.np_dtype)


def _hashable(keys: NDArray, rank: int) -> list[Any]:
    """The keys as what a dict holds: numbers and bytes, or the bytes of keys that are arrays."""
    if not rank:
        return keys.reshape(-1).tolist()
    count = int(np.prod(keys.shape[: keys.ndim - rank]))
    if keys.dtype.kind == "O":
        return [tuple(row) for row in keys.reshape(count, -1).tolist()]
    return [row.tobytes() for row in np.ascontiguousarray(keys).reshape(count, -1)]


class MutableHashTable:
    """A table whose pairs are added, changed and removed while the program runs.

    Lookups have no gradient. Lookups and changes in functions happen in the order of the program.

    Args:
        key_dtype, value_dtype: the dtypes of keys and values.
        default_value: the value of keys that the table does not have; values have its shape.
        checkpoint: whether checkpoints hold the pairs.
    """

    _name = "MutableHashTable"

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, name: str | None = None,
        checkpoint: bool = True, experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        self._make(TensorSpec((), dtypes.as_dtype(key_dtype)), value_dtype, default_value, name)
        self._is_saved = checkpoint

    def _make(
        self, key: TensorSpec, value_dtype: Any, default_value: Any, name: str | None,
        reserved: dict[Hashable, str] | None = None,
    ) -> None:  # fmt: skip
        self.name = name or self._name
        self.key_dtype: DType = key.dtype
        self.value_dtype: DType = dtypes.as_dtype(value_dtype)
        if is_symbolic(default_value):
            raise NotImplementedError(
                f"{self.name}: the default value is computed in a function: make the table outside "
                f"of it{at(user_origin())}"
            )
        with recording(None):  # the table may outlive the trace
            self._default: Tensor = convert_to_tensor(default_value, self.value_dtype)
        value = TensorSpec(self._default.dims, self.value_dtype)
        self._contents = Contents(key, value, reserved)

    def _trackable_children(self) -> dict[str, Any]:
        return {"table": self._contents} if self._is_saved else {}

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """The value of each key: in the shape of `keys`, followed by that of a value; ragged or
        sparse where `keys` are.

        Args:
            dynamic_default_values: a value, or one for each of `keys`, in place of the table's
                default value.

        Raises:
            ValueError: the keys have another dtype.
            InvalidArgumentError: the default values have another shape.
        """
        if isinstance(keys, CompositeTensor):
            return keys._with_elements(self.lookup(keys._elements(), dynamic_default_values))
        wanted = self._keys_of(keys)
        default = self._default
        if dynamic_default_values is not None:
            default = convert_to_tensor(dynamic_default_values, self.value_dtype)
            whole = TensorShape((*self._lead(wanted), *self._contents.value.dims))
            if default.shape != self._default.shape and not default.shape.is_compatible_with(whole):
                raise self._misfit("dynamic_default_values", default, whole)
        return run(TABLE_FIND, wanted, default, table=self._contents)

    __getitem__ = lookup

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Add pairs, or change the values of keys that the table has. Of equal keys the last one
        counts.

        Raises:
            ValueError: the keys or values have another dtype.
            InvalidArgumentError: the values have another shape.
        """
        wanted = self._keys_of(keys)
        given: Tensor = convert_to_tensor(values, self.value_dtype)
        whole = TensorShape((*self._lead(wanted), *self._contents.value.dims))
        if not given.shape.is_compatible_with(whole):
            raise self._misfit("values", given, whole)
        run(TABLE_INSERT, wanted, broadcast_dims(given, whole.exact), table=self._contents)

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Remove keys with their values; keys that the table does not have are passed over.

        Raises:
            TypeError: the keys have another dtype.
        """
        dtype = getattr(keys, "dtype", self.key_dtype)
        if dtype != self.key_dtype:
            raise TypeError(
                f"Dtype of argument `keys` must be {self.key_dtype!r}, received: {dtype!r}"
                f"{at(user_origin())}"
            )
        run(TABLE_REMOVE, self._keys_of(keys), table=self._contents)

    def size(self, name: str | None = None) -> Tensor:
        """The number of keys, int64."""
        return run(TABLE_SIZE, table=self._contents)  # type: ignore[no-any-return]

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The keys, and their values in the same order."""
        keys, values = run(TABLE_EXPORT, table=self._contents)
        return keys, values

    def _keys_of(self, keys: Any) -> Tensor:
        wanted: Tensor = convert_to_tensor(keys, self.key_dtype)
        key = self._contents.key.shape
        rank = len(key)
        if wanted.ndim < rank or not key.is_compatible_with(wanted.dims[wanted.ndim - rank :]):
            raise self._misfit("keys", wanted, key)
        return wanted

    def _lead(self, keys: Tensor) -> tuple[Any, ...]:
        return keys.dims[: keys.ndim - len(self._contents.key.dims)]

    def _misfit(self, what: str, given: Tensor, wanted: TensorShape) -> errors.InvalidArgumentError:
        return errors.InvalidArgumentError(
            None, None,
            f"Expected shape {wanted} for {what} of {self.name}, got {given.shape}"
            f"{at(user_origin())}",
        )  # fmt: skip

    def __repr__(self) -> str:
        kinds = f"{self.key_dtype.name} -> {self.value_dtype.name}"
        return f"<{type(self).__name__} {self.name!r}: {len(self._contents)} keys, {kinds}>"


class DenseHashTable(MutableHashTable):
    """A `MutableHashTable` that, for TensorFlow programs, is told two keys that it never holds.

    Args:
        key_dtype, value_dtype: the dtypes of keys and values.
        default_value: the value of keys that the table does not have; values have its shape.
        empty_key, deleted_key: the two; keys have their shape.
        initial_num_buckets: accepted, a power of two.
        checkpoint: whether checkpoints hold the pairs.

    Raises:
        InvalidArgumentError: the two keys are equal or of different shapes, or
            `initial_num_buckets` is no power of two.
    """

    _name = "MutableDenseHashTable"

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, empty_key: Any,
        deleted_key: Any, initial_num_buckets: int | None = None, name: str | None = None,
        checkpoint: bool = True, experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        kind = dtypes.as_dtype(key_dtype)
        empty, deleted = (convert_to_tensor(k, kind).numpy() for k in (empty_key, deleted_key))
        empty, deleted = np.asarray(empty), np.asarray(deleted)
        buckets = initial_num_buckets
        if empty.shape != deleted.shape or (empty == deleted).all():
            raise self._refused("Empty and deleted keys cannot be equal, and are of one shape")
        if buckets is not None and (buckets < 1 or buckets & (buckets - 1)):
            raise self._refused(f"Number of buckets must be a power of 2, got: {buckets}")
        (one,), (other,) = (_hashable(key, key.ndim) for key in (empty, deleted))
        reserved: dict[Hashable, str] = {one: "empty_key", other: "deleted_key"}
        self._make(TensorSpec(empty.shape, kind), value_dtype, default_value, name, reserved)
        self._is_saved = checkpoint

    def _refused(self, text: str) -> errors.InvalidArgumentError:
        return errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")

    def lookup(self, keys: Any, name: str | None = None) -> Any:  # type: ignore[override]
        """See `MutableHashTable.lookup`."""
        return super().lookup(keys)

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> None:
        """See `insert`."""
        self.insert(keys, values)

    def erase(self, keys: Any, name: str | None = None) -> None:
        """See `remove`."""
        self.remove(keys)


def _infer_find(keys: TensorSpec, default: TensorSpec, *, table: Contents) -> TensorSpec:
    lead = keys.dims[: len(keys.dims) - len(table.key.dims)]
    return TensorSpec((*lead, *table.value.dims), table.value.dtype)


def _infer_export(*, table: Contents) -> tuple[Spec, Spec]:
    keys = TensorSpec((None, *table.key.dims), table.key.dtype).with_fresh_symbols("keys")
    return keys, TensorSpec((keys.dims[0], *table.value.dims), table.value.dtype)


def _find(keys: NDArray, default: NDArray, *, table: Contents) -> NDArray:
    return table.find(np.asarray(keys), np.asarray(default))


def _insert(keys: NDArray, values: NDArray, *, table: Contents) -> tuple[()]:
    table.insert(np.asarray(keys), np.asarray(values))
    return ()


def _remove(keys: NDArray, *, table: Contents) -> tuple[()]:
    table.remove(np.asarray(keys))
    return ()


_CALLED = "tables that change are objects of Python"


def _op(name: str, infer: Any, eager: Any) -> Op:
    tags = frozenset({"strings", "quiet", "gives_own_arrays"})
    return register(Op(name, infer, eager, effect="io", callback=_CALLED, tags=tags))


TABLE_FIND = _op("table_find", _infer_find, _find)
TABLE_INSERT = _op("table_insert", lambda keys, values, *, table: (), _insert)
TABLE_REMOVE = _op("table_remove", lambda keys, *, table: (), _remove)
TABLE_SIZE = _op(
    "table_size",
    lambda *, table: TensorSpec((), dtypes.int64),
    lambda *, table: np.array(len(table), np.int64),
)
TABLE_EXPORT = _op("table_export", _infer_export, lambda *, table: table.export())
