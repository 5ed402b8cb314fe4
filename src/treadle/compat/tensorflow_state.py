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
from treadle.ops.elementwise.unary import rsqrt, sqrt
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


VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


def run_state(type_: str, attrs: Attrs, *inputs: Any) -> Any:
    """What an operation gives, as `tensorflow_ops.run_operation`."""
    return OPERATIONS[type_](inputs, attrs)


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


def _changing(old: str, new: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a function that changes variables, which come first: for the type of operations on
    references, which gives the new value of the first one, and for that on handles."""

    def give(change: Callable[..., None]) -> Callable[..., None]:
        def with_value(inputs: Sequence[Any], attrs: Attrs) -> Any:
            change(attrs, *inputs)
            return inputs[0].value()

        _rule(old)(with_value)
        _rule(new)(lambda inputs, attrs: change(attrs, *inputs))
        return change

    return give


def _assignment(method: str) -> Callable[..., None]:
    def assign(attrs: Attrs, variable: Any, value: Any) -> None:
        if not isinstance(variable, Variable):
            raise ValueError(f"{method} of what is no variable")
        getattr(variable, method)(value)

    return assign


_ASSIGNMENTS = {"": "assign", "Add": "assign_add", "Sub": "assign_sub"}
for _kind, _method in _ASSIGNMENTS.items():
    _changing(f"Assign{_kind}", f"Assign{_kind}VariableOp")(_assignment(_method))


def _scatter(method: str) -> Callable[..., None]:
    def scatter(attrs: Attrs, variable: Any, indices: Any, updates: Any) -> None:
        getattr(variable, method)(IndexedSlices(updates, indices))

    return scatter


def _scatter_nd(method: str) -> Callable[..., None]:
    def scatter(attrs: Attrs, variable: Any, indices: Any, updates: Any) -> None:
        getattr(variable, method)(indices, updates)

    return scatter


for _kind in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update"):
    _changing(f"Scatter{_kind}", f"ResourceScatter{_kind}")(_scatter(f"scatter_{_kind.lower()}"))
for _kind in ("Add", "Sub", "Min", "Max", "Update"):
    _changing(f"ScatterNd{_kind}", f"ResourceScatterNd{_kind}")(
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


# -- steps of optimizers ---------------------------------------------------------------------------


@_changing("ApplyGradientDescent", "ResourceApplyGradientDescent")
def _descend(attrs: Attrs, variable: Any, rate: Any, gradient: Any) -> None:
    variable.assign_sub(rate * gradient)


@_changing("ApplyMomentum", "ResourceApplyMomentum")
def _momentum(
    attrs: Attrs, variable: Any, accumulation: Any, rate: Any, gradient: Any, momentum: Any
) -> None:
    new = accumulation * momentum + gradient
    accumulation.assign(new)
    step = gradient + momentum * new if attrs.get("use_nesterov") else new
    variable.assign_sub(rate * step)


@_rule("ResourceApplyKerasMomentum")
def _keras_momentum(inputs: Sequence[Any], attrs: Attrs) -> None:
    variable, accumulation, rate, gradient, momentum = inputs
    new = accumulation * momentum - rate * gradient
    accumulation.assign(new)
    step = momentum * new - rate * gradient if attrs.get("use_nesterov") else new
    variable.assign_add(step)


@_changing("ApplyAdagrad", "ResourceApplyAdagrad")
def _adagrad(attrs: Attrs, variable: Any, squares: Any, rate: Any, gradient: Any) -> None:
    if attrs.get("update_slots", True):
        squares.assign_add(gradient * gradient)
    variable.assign_sub(rate * gradient * rsqrt(squares.value()))


@_changing("ApplyAdagradV2", "ResourceApplyAdagradV2")
def _adagrad_2(
    attrs: Attrs, variable: Any, squares: Any, rate: Any, epsilon: Any, gradient: Any
) -> None:
    if attrs.get("update_slots", True):
        squares.assign_add(gradient * gradient)
    variable.assign_sub(rate * gradient / (sqrt(squares.value()) + epsilon))


@_changing("ApplyAdam", "ResourceApplyAdam")
def _adam(
    attrs: Attrs, variable: Any, m: Any, v: Any, power1: Any, power2: Any, rate: Any, beta1: Any,
    beta2: Any, epsilon: Any, gradient: Any,
) -> None:  # fmt: skip
    rate = rate * sqrt(1 - power2) / (1 - power1)
    new_m = m + (gradient - m) * (1 - beta1)
    new_v = v + (gradient * gradient - v) * (1 - beta2)
    m.assign(new_m)
    v.assign(new_v)
    ahead = new_m * beta1 + gradient * (1 - beta1) if attrs.get("use_nesterov") else new_m
    variable.assign_sub(rate * ahead / (sqrt(new_v) + epsilon))


@_changing("ApplyAdadelta", "ResourceApplyAdadelta")
def _adadelta(
    attrs: Attrs, variable: Any, squares: Any, updates: Any, rate: Any, rho: Any, epsilon: Any,
    gradient: Any,
) -> None:  # fmt: skip
    new = squares * rho + gradient * gradient * (1 - rho)
    step = sqrt(updates + epsilon) * rsqrt(new + epsilon) * gradient
    squares.assign(new)
    updates.assign(updates * rho + step * step * (1 - rho))
    variable.assign_sub(rate * step)


@_changing("ApplyRMSProp", "ResourceApplyRMSProp")
def _rms_prop(
    attrs: Attrs, variable: Any, squares: Any, moved: Any, rate: Any, rho: Any, momentum: Any,
    epsilon: Any, gradient: Any,
) -> None:  # fmt: skip
    new = squares + (gradient * gradient - squares) * (1 - rho)
    squares.assign(new)
    step = moved * momentum + rate * gradient * rsqrt(new + epsilon)
    moved.assign(step)
    variable.assign_sub(step)


@_changing("ApplyCenteredRMSProp", "ResourceApplyCenteredRMSProp")
def _centered_rms_prop(
    attrs: Attrs, variable: Any, means: Any, squares: Any, moved: Any, rate: Any, rho: Any,
    momentum: Any, epsilon: Any, gradient: Any,
) -> None:  # fmt: skip
    new = squares + (gradient * gradient - squares) * (1 - rho)
    mean = means + (gradient - means) * (1 - rho)
    squares.assign(new)
    means.assign(mean)
    step = moved * momentum + rate * gradient * rsqrt(new - mean * mean + epsilon)
    moved.assign(step)
    variable.assign_sub(step)


# -- generators ------------------------------------------------------------------------------------


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
