"""What modules of this package give to those that they import, which cannot import them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


class _Later:
    """Each attribute is set by the module that has it, when that is imported.

    Attributes:
        convert: `conversion.call`: what is called in place of a function. It finds stand-ins by
            name, and so imports those that call functions.
        operators: the module that generated code calls. It imports those that convert functions.
        pools: the module of lists that are elements of lists; None where nobody has imported it.
        sort: `sorting.sort`, which puts lists in order, and makes such lists itself.
    """

    convert: Callable[[Any], Any]
    operators: ModuleType
    pools: Any = None
    sort: Callable[..., None]


later = _Later()
