"""Functions of extension types (``td.experimental.extension_type``)."""

from __future__ import annotations

from typing import Any

from treadle.names import missing_in
from treadle.tracing.extension_types import ExtensionType

__all__ = ["as_dict"]

__getattr__ = missing_in(__name__)


def as_dict(value: ExtensionType) -> dict[str, Any]:
    """The fields of an object and their values. Objects in fields stay as they are."""
    return {name: getattr(value, name) for name in value._fields_by_name}
