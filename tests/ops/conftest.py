"""The tests of ops ask the registry for all of them."""

from treadle.ops.loading import load_all_ops

load_all_ops()
