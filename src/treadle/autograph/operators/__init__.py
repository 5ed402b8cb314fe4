"""What generated code calls: operators that decide at run time between Python and the graph.

A Python value (an eager tensor too) means plain Python control flow; a symbolic tensor means
``cond`` and ``while`` nodes in the graph being traced.
"""

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
from treadle.autograph.operators.membership import in_
from treadle.autograph.operators.numbers import abs, bool, float, int
from treadle.autograph.operators.outer import outer
from treadle.autograph.operators.places import attribute, item
from treadle.autograph.operators.reductions import all, any, max, min, sorted, sum
from treadle.autograph.operators.undefined import defined, undefined

__all__ = [
    "abs", "all", "and_", "any", "assert_stmt", "attribute", "bool", "call", "defined",
    "enumerate", "filter", "float", "for_stmt", "generator", "if_exp", "if_stmt", "in_", "int",
    "item", "iter", "iterable", "len", "list", "list_comp", "map", "max", "min", "not_", "or_",
    "outer", "path", "python_bool", "python_iterable", "range", "reversed", "set_attribute_item",
    "set_item", "slice", "sorted", "sum", "tuple", "undefined", "update_attribute_item",
    "update_item", "while_stmt", "zip",
]  # fmt: skip
