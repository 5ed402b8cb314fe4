"""What models make of columns: an input layer, or a weighted sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import treadle as td
from treadle.compat.v1 import functions, initializers, scopes
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.feature_column import values
from treadle.compat.v1.feature_column.columns import Variables
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.mirrored import graph_function
from treadle.core.origin import at, user_origin


def _sorted(feature_columns: Any) -> list[Any]:
    """Columns in the order of their names.

    Raises:
        ValueError: they are no list, or two have the same name.
    """
    if isinstance(feature_columns, Mapping):
        raise ValueError(f"Expected feature_columns to be iterable, found dict.{at(user_origin())}")
    if hasattr(feature_columns, "name"):  # (columns are tuples themselves)
        feature_columns = [feature_columns]
    found = sorted(feature_columns, key=lambda c: c.name)
    if not found:
        raise ValueError(f"feature_columns must not be empty.{at(user_origin())}")
    for a, b in zip(found, found[1:], strict=False):
        if a.name == b.name:
            raise ValueError(
                "Duplicate feature column name found for columns. This usually means that these "
                f"columns refer to same base feature: {a.name}{at(user_origin())}"
            )
    return found


def _variables(collections: Sequence[Any] | None, trainable: bool) -> Variables:
    chosen = dict.fromkeys(
        [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    )
    return Variables(list(chosen), trainable)


def _note(found: Any, column: Any) -> None:
    """Say which variables a column has."""
    if found is not None:
        scope = scopes.get_variable_scope().name
        found[column] = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, f"{scope}/")


def input_layer(features: Any, feature_columns: Any, weight_collections: Any = None,
                trainable: bool = True, cols_to_vars: Any = None,
                cols_to_output_tensors: Any = None) -> Any:  # fmt: skip
    """The columns side by side, sorted by their names.

    Args:
        cols_to_vars, cols_to_output_tensors: dicts that say what belongs to a column.

    Raises:
        ValueError: a column of categories is neither an indicator nor an embedding.
    """
    columns, variables = _sorted(feature_columns), _variables(weight_collections, trainable)
    for column in columns:
        if not hasattr(column, "dense"):
            raise ValueError(
                "Items of feature_columns must be a _DenseColumn. You can wrap a categorical "
                f"column with an embedding_column or indicator_column. Given: {column}"
                f"{at(user_origin())}"
            )
    parts = []
    with scopes.variable_scope(None, default_name="input_layer"):
        for column in columns:
            with scopes.variable_scope(None, default_name=column.scope_name):
                parts.append(column.dense(features, variables))
                _note(cols_to_vars, column)
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = parts[-1]
    return graph_function(td.concat)(parts, 1)


def linear_model(features: Any, feature_columns: Any, units: int = 1, sparse_combiner: str = "sum",
                 weight_collections: Any = None, trainable: bool = True,
                 cols_to_vars: Any = None) -> Any:  # fmt: skip
    """The weighted sum of the columns and a bias.

    Args:
        sparse_combiner: what the weights of the categories of one example become: ``sum``,
            ``mean`` or ``sqrtn``.
        cols_to_vars: a dict that says which variables belong to a column, and which to ``"bias"``.
    """
    columns, variables = _sorted(feature_columns), _variables(weight_collections, trainable)
    total: Any = None
    zeros = initializers.zeros_initializer()
    with scopes.variable_scope(None, default_name="linear_model"):
        for column in columns:
            with scopes.variable_scope(None, default_name=column.scope_name):
                part = _weighted(column, features, units, sparse_combiner, variables)
                _note(cols_to_vars, column)
            total = part if total is None else total + part
        bias = variables.make("bias_weights", [units], zeros)
    if cols_to_vars is not None:
        cols_to_vars["bias"] = [bias]
    return graph_function(td.nn.bias_add)(total, bias, name="linear_model/weighted_sum")


def _weighted(column: Any, features: Any, units: int, combiner: str, variables: Variables) -> Any:
    zeros = initializers.zeros_initializer()
    if hasattr(column, "ids"):  # of the rows of the categories that there are
        weights = variables.make("weights", [column.size, units], zeros)
        return values.combined(weights, *column.ids(features), combiner, None)
    x = column.dense(features, variables)
    return functions.matmul(x, variables.make("weights", [column.width, units], zeros))


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """The features for `parse_example`."""
    found: dict[str, Any] = {}
    for column in feature_columns:
        found |= column.parse_spec
    return found
