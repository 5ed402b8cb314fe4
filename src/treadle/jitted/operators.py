"""AutoGraph's operators with NumPy's meaning, for the generated code of jitted functions.

The text that AutoGraph generates is the same as for `td.function`, but for comparisons with None
and of tuples, which only programs of jitted functions decide (`autograph.converters.comparisons`).
There an assignment to an item gives a variable a new tensor; here it changes the array, for all
that see it.
"""

from __future__ import annotations

import operator
from typing import Any

from treadle.autograph import operators as python_operators
from treadle.autograph.operators.outer import outer
from treadle.autograph.operators.paths import path
from treadle.autograph.operators.places import item
from treadle.autograph.operators.undefined import defined, undefined
from treadle.jitted import keyed_types
from treadle.jitted.builtin_functions import (
    abs,
    all,
    any,
    bool,
    dict_comp,
    enumerate,
    filter,
    float,
    generator,
    int,
    iter,
    iterable,
    len,
    list,
    list_comp,
    map,
    max,
    min,
    python_bool,
    python_iterable,
    range,
    reversed,
    set_comp,
    sorted,
    sum,
    tuple,
    zip,
)
from treadle.jitted.comparing import equal, in_, is_same, is_truth, ordered, unequal
from treadle.jitted.conversion import call
from treadle.jitted.deques import method
from treadle.jitted.foreseen import (
    divides_by_zero,
    lacking_of,
    lacks_key,
    lacks_position,
    refusal_of,
    refuses,
)
from treadle.jitted.items import (
    attribute,
    get_item,
    set_attribute_item,
    set_item,
    update_attribute_item,
    update_item,
)
from treadle.jitted.namespace import add_stand_in
from treadle.jitted.optional_values import is_none
from treadle.jitted.recursion import by_position, frame, reached, returned
from treadle.jitted.refused_numbers import trying
from treadle.jitted.statements import (
    and_,
    assert_stmt,
    for_stmt,
    if_exp,
    if_stmt,
    not_,
    or_,
    pass_on,
    while_stmt,
)
from treadle.jitted.tables import set_display
from treadle.jitted.written_texts import text

add_stand_in(operator.getitem, get_item)
assert keyed_types  # registers what it has


def __getattr__(name: str) -> Any:
    """Operators that mean the same for arrays."""
    return getattr(python_operators, name)


__all__ = [
    "abs", "all", "and_", "any", "assert_stmt", "attribute", "bool", "by_position", "call",
    "defined", "dict_comp", "divides_by_zero", "enumerate", "equal", "filter", "float",
    "for_stmt", "frame", "generator", "get_item", "if_exp", "if_stmt", "in_", "int", "is_none",
    "is_same", "is_truth", "item", "iter", "iterable", "lacking_of", "lacks_key",
    "lacks_position", "len", "list", "list_comp", "map", "max", "method", "min", "not_", "or_",
    "ordered", "outer", "pass_on", "path", "python_bool", "python_iterable", "range", "reached",
    "returned", "refusal_of", "refuses", "reversed", "set_attribute_item", "set_comp",
    "set_display", "set_item", "sorted", "sum", "text", "trying", "tuple", "undefined", "unequal",
    "update_attribute_item", "update_item", "while_stmt", "zip",
]  # fmt: skip
