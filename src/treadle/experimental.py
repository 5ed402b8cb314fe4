"""Classes of the user as structures of tensors (``td.experimental``)."""

from __future__ import annotations

from treadle.names import missing_in
from treadle.tracing.extension_types import ExtensionType

__all__ = ["ExtensionType"]

__getattr__ = missing_in(__name__)
