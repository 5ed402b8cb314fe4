"""What generated code calls: operators that decide at run time between Python and the graph.

A Python value (an eager tensor too) means plain Python control flow; a symbolic tensor means
``cond`` and ``while`` nodes in the graph being traced.
"""

from treadle.autograph.operators.assertions import assert_stmt
from treadle.autograph.operators.builtins import (
    abs,
    all,
    any,
    enumerate,
    filter,
    float,
    int,
    len,
    map,
    max,
    min,
    range,
    reversed,
    sorted,
    sum,
    zip,
)
from treadle.autograph.operators.calls import call
from treadle.autograph.operators.conditionals import if_exp, if_stmt
from treadle.autograph.operators.guards import python_bool, python_iterable
from treadle.autograph.operators.items import (
    path,
    set_attribute_item,
    set_item,
    slice,
    update_attribute_item,
    update_item,
)
from treadle.autograph.operators.logical import and_, not_, or_
from treadle.autograph.operators.loops import for_stmt, while_stmt
from treadle.autograph.operators.places import attribute, item
from treadle.autograph.operators.undefined import defined, undefined

__all__ = [
    "abs", "all", "and_", "any", "assert_stmt", "attribute", "call", "defined", "enumerate",
    "filter", "float", "for_stmt", "if_exp", "if_stmt", "int", "item", "len", "map", "max", "min",
    "not_", "or_", "path", "python_bool", "python_iterable", "range", "reversed",
    "set_attribute_item", "set_item", "slice", "sorted", "sum", "undefined",
    "update_attribute_item", "update_item", "while_stmt", "zip",
]  # fmt: skip
