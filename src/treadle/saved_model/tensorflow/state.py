"""Operations of TensorFlow's graphs on what they name by handles: variables and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.tensor import Tensor
from treadle.ops.collections.table_contents import KeyValueTensorInitializer, TextFileInitializer
from treadle.ops.collections.tables import StaticHashTable
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import shape as shape_of
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexed_slices import IndexedSlices
from treadle.ops.indexing.gather import gather
from treadle.ops.indexing.scatter import gather_nd
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.reshaping import reshape
from treadle.ops.state import Variable

Attrs: TypeAlias = Mapping[str, Any]
Rule: TypeAlias = "Callable[[Sequence[Any], Attrs], Any]"

# The types of operations, and what they give for their inputs and attributes.
OPERATIONS: dict[str, Rule] = {}


def _rule(*types: str) -> Callable[[Rule], Rule]:
    def give(rule: Rule) -> Rule:
        OPERATIONS.update(dict.fromkeys(types, rule))
        return rule

    return give


# -- variables -------------------------------------------------------------------------------------


@_rule("ReadVariableOp", "ResourceReadVariableOp")
def _read(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return inputs[0].value()


@_rule("VariableShape")
def _shape(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return shape_of(inputs[0].value(), attrs.get("out_type"))


@_rule("VarIsInitializedOp", "IsVariableInitialized")
def _is_initialized(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return convert_to_tensor(True)


@_rule("DisableCopyOnRead")
def _nothing(inputs: Sequence[Any], attrs: Attrs) -> None:
    return None


def _assignment(method: str) -> Rule:
    def assign(inputs: Sequence[Any], attrs: Attrs) -> Any:
        variable, *values = inputs
        if not isinstance(variable, Variable):
            raise ValueError(f"{method} of what is no variable")
        getattr(variable, method)(*values)
        return variable

    return assign


_ASSIGNMENTS = {"": "assign", "Add": "assign_add", "Sub": "assign_sub"}
for _kind, _method in _ASSIGNMENTS.items():
    _rule(f"Assign{_kind}VariableOp", f"Assign{_kind}")(_assignment(_method))


def _scatter(method: str) -> Rule:
    def scatter(inputs: Sequence[Any], attrs: Attrs) -> Any:
        variable, indices, updates = inputs
        getattr(variable, method)(IndexedSlices(updates, indices))
        return variable

    return scatter


def _scatter_nd(method: str) -> Rule:
    def scatter(inputs: Sequence[Any], attrs: Attrs) -> Any:
        variable, indices, updates = inputs
        getattr(variable, method)(indices, updates)
        return variable

    return scatter


for _kind in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update"):
    _rule(f"ResourceScatter{_kind}", f"Scatter{_kind}")(_scatter(f"scatter_{_kind.lower()}"))
for _kind in ("Add", "Sub", "Min", "Max", "Update"):
    _rule(f"ResourceScatterNd{_kind}", f"ScatterNd{_kind}")(
        _scatter_nd(f"scatter_nd_{_kind.lower()}")
    )


@_rule("ResourceGather")
def _gather(inputs: Sequence[Any], attrs: Attrs) -> Any:
    variable, indices = inputs
    batch_dims = attrs.get("batch_dims", 0)
    return gather(variable.value(), indices, axis=batch_dims, batch_dims=batch_dims)


@_rule("ResourceGatherNd")
def _gather_nd(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return gather_nd(inputs[0].value(), inputs[1])


@_rule("ResourceApplyGradientDescent")
def _descend(inputs: Sequence[Any], attrs: Attrs) -> None:
    variable, rate, gradient = inputs
    variable.assign_sub(rate * gradient)


@_rule("RngReadAndSkip")
def _skip(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """The state of a generator, which is moved on."""
    variable, _, delta = inputs
    state = variable.value()
    moved = state[:1] + cast(reshape(delta, [1]), state.dtype) * 256
    variable.assign(concat([moved, state[1:]], 0))
    return cast(state, dtypes.uint64)


# -- tables ----------------------------------------------------------------------------------------


class Table:
    """A table from keys to values, which an operation fills.

    Args:
        key_dtype, value_dtype: the dtypes.
    """

    def __init__(self, key_dtype: DType, value_dtype: DType) -> None:
        self._dtypes = key_dtype, value_dtype
        self._contents: Any = None

    def fill(self, contents: Any) -> None:
        """Give the table its pairs: those of an initializer of ``td.lookup``."""
        self._contents = contents

    def holding(self, default: Any) -> StaticHashTable:
        """The table with a value for keys that it does not have.

        Raises:
            FailedPreconditionError: nothing has filled it.
        """
        return StaticHashTable(self._pairs(), default)

    @property
    def count(self) -> int:
        """The number of keys."""
        return len(set(self._pairs().pairs()[0].tolist()))

    def _pairs(self) -> Any:
        if self._contents is None:
            raise errors.FailedPreconditionError(None, None, "Table not initialized.")
        return self._contents

    def of_file(self, path: Any, attrs: Attrs) -> TextFileInitializer:
        """The lines of a file as pairs."""
        count = attrs.get("vocab_size", -1)
        return TextFileInitializer(
            path, self._dtypes[0], attrs["key_index"], self._dtypes[1], attrs["value_index"],
            vocab_size=count if count > 0 else None, delimiter=attrs.get("delimiter", "\t"),
            value_index_offset=attrs.get("offset", 0),
        )  # fmt: skip


@_rule("HashTableV2", "HashTable")
def _table(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return Table(attrs["key_dtype"], attrs["value_dtype"])


@_rule("LookupTableImportV2", "InitializeTableV2")
def _fill(inputs: Sequence[Any], attrs: Attrs) -> None:
    table, keys, values = inputs
    table.fill(KeyValueTensorInitializer(keys, values))


@_rule("InitializeTableFromTextFileV2")
def _fill_from_file(inputs: Sequence[Any], attrs: Attrs) -> None:
    table, path = inputs
    table.fill(table.of_file(path, attrs))


@_rule("LookupTableFindV2")
def _find(inputs: Sequence[Any], attrs: Attrs) -> Any:
    table, keys, default = inputs
    return table.holding(default).lookup(keys)


@_rule("LookupTableSizeV2")
def _size(inputs: Sequence[Any], attrs: Attrs) -> Tensor:
    return convert_to_tensor(inputs[0].count, dtypes.int64)
