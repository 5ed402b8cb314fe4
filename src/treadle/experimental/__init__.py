"""Structures of tensors: classes of the user, values that may be missing (``td.experimental``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.experimental import dlpack
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.dispatching import (
        dispatch_for_api,
        dispatch_for_binary_elementwise_apis,
        dispatch_for_binary_elementwise_assert_apis,
        dispatch_for_unary_elementwise_apis,
        unregister_dispatch_for,
    )
    from treadle.experimental import extension_type, numpy
    from treadle.ops.collections.optionals import Optional
    from treadle.ragged.dynamic_shape import DynamicRaggedShape
    from treadle.ragged.row_partition import RowPartition
    from treadle.tracing.batchable_types import BatchableExtensionType, ExtensionTypeBatchEncoder
    from treadle.tracing.extension_types import ExtensionType, ExtensionTypeSpec

__all__ = [
    "BatchableExtensionType", "DynamicRaggedShape", "ExtensionType", "ExtensionTypeBatchEncoder",
    "ExtensionTypeSpec", "Optional", "RowPartition", "dispatch_for_api",
    "dispatch_for_binary_elementwise_apis", "dispatch_for_binary_elementwise_assert_apis",
    "dispatch_for_unary_elementwise_apis", "dlpack", "extension_type", "numpy",
    "unregister_dispatch_for",
]  # fmt: skip

__getattr__ = provided(__name__, {
    "treadle.experimental": "extension_type numpy",
    "treadle.dispatching": """
        dispatch_for_api dispatch_for_unary_elementwise_apis dispatch_for_binary_elementwise_apis
        dispatch_for_binary_elementwise_assert_apis unregister_dispatch_for
        """,
    "treadle.ops.collections.optionals": "Optional",
    "treadle.ragged.dynamic_shape": "DynamicRaggedShape",
    "treadle.ragged.row_partition": "RowPartition",
    "treadle.tracing.batchable_types": "BatchableExtensionType ExtensionTypeBatchEncoder",
    "treadle.tracing.extension_types": "ExtensionType ExtensionTypeSpec",
})  # fmt: skip
