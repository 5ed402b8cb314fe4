"""Types that users' classes implement (``td.types``)."""

from __future__ import annotations

from treadle.names import missing_in
from treadle.types import experimental

__all__ = ["experimental"]

__getattr__ = missing_in(__name__)
