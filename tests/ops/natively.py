"""Compiled functions compared with eager execution, bit for bit, without any callback."""

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.core import nest
from treadle.runtime.cpu.threads import pool


def natively(fn: Callable[..., Any], *args: Any, rtol: float = 0.0, atol: float = 0.0) -> Any:
    """``fn(*args)`` compiled: it must run without Python and give what it gives eagerly.

    rtol, atol: how far results may be from the eager ones; with 0 they have the same bits.
    """
    compiled = td.function(fn)
    wanted, found = fn(*args), compiled(*args)
    executable = compiled.get_concrete_function(*args).executable
    assert executable.mode == "native" and executable.counters["callbacks"] == 0
    for a, b in zip(nest.flatten(found), nest.flatten(wanted), strict=True):
        a, b = a.numpy(), b.numpy()
        assert a.dtype == b.dtype and a.shape == b.shape
        if rtol or atol:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
        else:
            assert a.tobytes() == b.tobytes() or _same_but_for_nans(a, b)
    return found


def _same_but_for_nans(a: Any, b: Any) -> bool:
    """Whether arrays agree but for the payloads of NaN."""
    np.testing.assert_array_equal(a, b)
    return True


def same_for_any_number_of_threads(fn: Callable[..., Any], *args: Any) -> None:
    """``fn(*args)`` compiled gives the same bits for 1, 2, 3 and 7 threads."""
    before, found = pool().threads, []
    try:
        pool().set_threads(7)
        compiled = td.function(fn)
        compiled(*args)
        for count in (1, 2, 3, 7):
            pool().set_threads(count)
            found.append([t.numpy().tobytes() for t in nest.flatten(compiled(*args))])
    finally:
        pool().set_threads(before)
    assert all(f == found[0] for f in found[1:])
