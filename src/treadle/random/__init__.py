"""``td.random``: random numbers from counter-based streams (Philox 4x32-10)."""

from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.names import provided
from treadle.random import experimental

if TYPE_CHECKING:
    from treadle.ops.random.algorithms import (
        Algorithm,
    )
    from treadle.ops.random.candidates import (
        all_candidate_sampler,
        fixed_unigram_candidate_sampler,
        log_uniform_candidate_sampler,
        uniform_candidate_sampler,
    )
    from treadle.ops.random.distributions import (
        categorical,
        normal,
        set_seed,
        shuffle,
        stateless_categorical,
        stateless_normal,
        stateless_truncated_normal,
        stateless_uniform,
        truncated_normal,
        uniform,
    )
    from treadle.ops.random.families import (
        gamma,
        poisson,
        stateless_binomial,
        stateless_gamma,
        stateless_parameterized_truncated_normal,
        stateless_poisson,
    )
    from treadle.ops.random.generator import (
        Generator,
        get_global_generator,
        set_global_generator,
    )
    from treadle.ops.random.seeds import (
        create_rng_state,
        fold_in,
        split,
    )

__all__ = [
    "Algorithm",
    "Generator",
    "all_candidate_sampler",
    "categorical",
    "create_rng_state",
    "experimental",
    "fixed_unigram_candidate_sampler",
    "fold_in",
    "gamma",
    "get_global_generator",
    "log_uniform_candidate_sampler",
    "normal",
    "poisson",
    "set_global_generator",
    "set_seed",
    "shuffle",
    "split",
    "stateless_binomial",
    "stateless_categorical",
    "stateless_gamma",
    "stateless_normal",
    "stateless_parameterized_truncated_normal",
    "stateless_poisson",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]

explain_errors(__name__)
__getattr__ = provided(__name__, {
    "treadle.ops.random.algorithms": "Algorithm",
    "treadle.ops.random.candidates": """
        all_candidate_sampler fixed_unigram_candidate_sampler log_uniform_candidate_sampler
        uniform_candidate_sampler
        """,
    "treadle.ops.random.distributions": """
        categorical normal set_seed shuffle stateless_categorical stateless_normal
        stateless_truncated_normal stateless_uniform truncated_normal uniform
        """,
    "treadle.ops.random.families": """
        gamma poisson stateless_binomial stateless_gamma stateless_parameterized_truncated_normal
        stateless_poisson
        """,
    "treadle.ops.random.generator": "Generator get_global_generator set_global_generator",
    "treadle.ops.random.seeds": "create_rng_state fold_in split",
})  # fmt: skip
