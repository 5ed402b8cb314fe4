"""Structures of tensors: classes of the user, values that may be missing (``td.experimental``)."""

from __future__ import annotations

from treadle.names import missing_in
from treadle.ops.collections.optionals import Optional
from treadle.tracing.extension_types import ExtensionType

__all__ = ["ExtensionType", "Optional"]

__getattr__ = missing_in(__name__)
