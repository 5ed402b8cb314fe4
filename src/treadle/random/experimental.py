"""``td.random.experimental``: shuffled positions, and other names of `td.random`."""

from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.ops.random.algorithms import (
        Algorithm,
    )
    from treadle.ops.random.generator import (
        Generator,
        get_global_generator,
        set_global_generator,
    )
    from treadle.ops.random.permutations import (
        index_shuffle,
        stateless_shuffle,
    )
    from treadle.ops.random.seeds import (
        create_rng_state,
    )
    from treadle.ops.random.seeds import fold_in as stateless_fold_in
    from treadle.ops.random.seeds import split as stateless_split

__all__ = [
    "Algorithm",
    "Generator",
    "create_rng_state",
    "get_global_generator",
    "index_shuffle",
    "set_global_generator",
    "stateless_fold_in",
    "stateless_shuffle",
    "stateless_split",
]

explain_errors(__name__)
__getattr__ = provided(__name__, {
    "treadle.ops.random.algorithms": "Algorithm",
    "treadle.ops.random.generator": "Generator get_global_generator set_global_generator",
    "treadle.ops.random.permutations": "index_shuffle stateless_shuffle",
    "treadle.ops.random.seeds": "create_rng_state stateless_fold_in=fold_in stateless_split=split",
})  # fmt: skip
