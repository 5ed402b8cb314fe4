"""Structures of tensors: classes of the user, values that may be missing (``td.experimental``)."""

from __future__ import annotations

from treadle.names import missing_in
from treadle.ops.collections.optionals import Optional
from treadle.tracing.extension_types import ExtensionType, ExtensionTypeSpec

# Objects of all classes may be put together and taken apart along their first axes.
BatchableExtensionType = ExtensionType

__all__ = ["BatchableExtensionType", "ExtensionType", "ExtensionTypeSpec", "Optional"]

__getattr__ = missing_in(__name__)
