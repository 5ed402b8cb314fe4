"""The target's passes that change nothing in graphs without loops."""

from __future__ import annotations

from treadle.runtime.passes.additions import add_in_place as add_in_place
from treadle.runtime.passes.carried_elements import carry_elements as carry_elements
from treadle.runtime.passes.factor_panels import lay_out_panels as lay_out_panels
from treadle.runtime.passes.joined_iterations import join_iterations as join_iterations
from treadle.runtime.passes.late_operands import order_operands as order_operands
