"""Seeds of shuffles, from the global seed and the dataset's own."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import treadle as td
from treadle.iteration import check_seed, global_seed

_NO_SEED = 87654321  # TensorFlow's, for a dataset with a seed in a program without one


def seeds_for(seed: Any) -> tuple[int, int]:
    """Two numbers: equal ones for equal global seeds and `seed`; without any seed, random ones."""
    check_seed(seed)
    chosen = global_seed()
    if seed is not None:
        return (_NO_SEED if chosen is None else chosen, int(seed))
    if chosen is None:
        return tuple(np.frombuffer(os.urandom(16), np.int64).tolist())
    with td.init_scope():  # the global stream decides, so that two shuffles differ
        drawn = td.random.uniform([2], -(2**62), 2**62, td.int64)
    first, second = np.asarray(drawn).tolist()
    return first, second
