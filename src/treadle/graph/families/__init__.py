"""Families of graphs that differ only in dims.

Functions are traced once per shape. `generalize` makes one *pattern* of such traces, a graph with
symbolic dims; `Pattern.match` proves that a trace is the pattern with ints for its symbols. The
program that was compiled from the pattern may then run that trace.

    graph f(%x: f32[4, 8]) { %0: f32[32] = reshape(%x) {shape=(32,)} ... }
    graph f(%x: f32[5, 8]) { %0: f32[40] = reshape(%x) {shape=(40,)} ... }
    ->
    graph f(%x: f32[B, 8]) { %0: f32[B*8] = reshape(%x) {shape=(B*8,)} ... }

How the pattern was found does not matter for its use: every trace is compared with it, node by
node, before it is run by the pattern's program.
"""

from treadle.graph.families.generalize import NoPattern, generalize
from treadle.graph.families.pattern import Mismatch, Pattern, SymbolOrigin

__all__ = ["Mismatch", "NoPattern", "Pattern", "SymbolOrigin", "generalize"]
