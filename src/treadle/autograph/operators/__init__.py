"""The operators that generated code calls: they decide between Python and the graph.

A Python value (an eager tensor too) means plain Python control flow; a symbolic tensor means
``cond`` and ``while`` nodes in the graph being traced. Operators are imported when code first asks
for them, but for two that have the names of their modules.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from treadle.autograph.operators.outer import outer
from treadle.autograph.operators.undefined import defined, undefined

if TYPE_CHECKING:
    from treadle.autograph.operators.assertions import assert_stmt
    from treadle.autograph.operators.builtins import (
        enumerate,
        filter,
        iter,
        len,
        list,
        map,
        range,
        reversed,
        tuple,
        zip,
    )
    from treadle.autograph.operators.calls import call
    from treadle.autograph.operators.comprehensions import generator, iterable, list_comp
    from treadle.autograph.operators.conditionals import if_exp, if_stmt
    from treadle.autograph.operators.guards import python_bool, python_iterable
    from treadle.autograph.operators.handlers import caught
    from treadle.autograph.operators.items import (
        get_item,
        set_attribute_item,
        set_item,
        slice,
        update_attribute_item,
        update_item,
    )
    from treadle.autograph.operators.logical import and_, not_, or_
    from treadle.autograph.operators.loops import for_stmt, while_stmt
    from treadle.autograph.operators.membership import in_
    from treadle.autograph.operators.numbers import abs, bool, float, int
    from treadle.autograph.operators.paths import path
    from treadle.autograph.operators.places import attribute, item
    from treadle.autograph.operators.reductions import all, any, max, min, sorted, sum

_MODULES = {
    "assertions": "assert_stmt",
    "builtins": "enumerate filter iter len list map range reversed tuple zip",
    "calls": "call",
    "comprehensions": "generator iterable list_comp",
    "conditionals": "if_exp if_stmt",
    "guards": "python_bool python_iterable",
    "handlers": "caught",
    "items": "get_item set_attribute_item set_item slice update_attribute_item update_item",
    "logical": "and_ not_ or_",
    "loops": "for_stmt while_stmt",
    "membership": "in_",
    "numbers": "abs bool float int",
    "paths": "path",
    "places": "attribute item",
    "reductions": "all any max min sorted sum",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _PLACES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


__all__ = [
    "abs", "all", "and_", "any", "assert_stmt", "attribute", "bool", "call", "caught", "defined",
    "enumerate", "filter", "float", "for_stmt", "generator", "get_item", "if_exp", "if_stmt", "in_",
    "int", "item", "iter", "iterable", "len", "list", "list_comp", "map", "max", "min", "not_",
    "or_", "outer", "path", "python_bool", "python_iterable", "range", "reversed",
    "set_attribute_item", "set_item", "slice", "sorted", "sum", "tuple", "undefined",
    "update_attribute_item", "update_item", "while_stmt", "zip",
]  # fmt: skip
