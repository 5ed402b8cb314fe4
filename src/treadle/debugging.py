"""``td.debugging``: assertions, what errors show, and where NaNs come from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from treadle.core.context import log_placement
from treadle.core.refusals import explain_errors
from treadle.names import provided
from treadle.ops.control.io import Assert
from treadle.tracing import settings
from treadle.tracing.function import clear_all_traces

if TYPE_CHECKING:
    from treadle.ops.asserts import (
        assert_all_finite,
        assert_equal,
        assert_greater,
        assert_greater_equal,
        assert_integer,
        assert_less,
        assert_less_equal,
        assert_near,
        assert_negative,
        assert_non_negative,
        assert_non_positive,
        assert_none_equal,
        assert_positive,
        assert_proper_iterable,
        assert_rank,
        assert_rank_at_least,
        assert_rank_in,
        assert_same_float_dtype,
        assert_scalar,
        assert_shapes,
        assert_type,
        check_numerics,
        is_numeric_tensor,
    )

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "disable_check_numerics",
    "disable_traceback_filtering",
    "enable_check_numerics",
    "enable_traceback_filtering",
    "get_log_device_placement",
    "is_numeric_tensor",
    "is_traceback_filtering_enabled",
    "set_log_device_placement",
]


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Let functions fail at the first operation that gives a NaN or an infinity.

    The InvalidArgumentError names the operation and its line. Functions are traced again and run
    operation by operation, which is slow; code outside functions is not checked. The arguments
    are accepted for TensorFlow programs.
    """
    _set_check_numerics(True)


def disable_check_numerics() -> None:
    """Run compiled functions without looking for NaNs again, which is the default."""
    _set_check_numerics(False)


def _set_check_numerics(on: bool) -> None:
    if settings.check_numerics != on:
        settings.check_numerics = on
        clear_all_traces()


def set_log_device_placement(enabled: bool) -> None:
    """Write a line to stderr for each operation and compiled program that runs, with its device:
    ``Executing op matmul in device /job:localhost/replica:0/task:0/device:CPU:0``.

    It holds for this thread and those that begin later. A compiled program is one line, as it runs
    on one device.
    """
    settings.log_device_placement = bool(enabled)
    log_placement(_write if enabled else None)


def _write(line: str) -> None:
    sys.stderr.write(line)


def get_log_device_placement() -> bool:
    """What `set_log_device_placement` was told; False at first."""
    return settings.log_device_placement


def disable_traceback_filtering() -> None:
    """Show treadle's own frames in tracebacks too; TREADLE_FULL_TRACEBACK=1 does so from the start.

    By default errors of a `function` show the frames that plain Python would.
    """
    settings.filter_tracebacks = False


def enable_traceback_filtering() -> None:
    """Show only the user's frames in tracebacks, which is the default."""
    settings.filter_tracebacks = True


def is_traceback_filtering_enabled() -> bool:
    """Whether treadle's own frames are left out of tracebacks."""
    return settings.filter_tracebacks


explain_errors(__name__)
__getattr__ = provided(__name__, {
    "treadle.ops.asserts": """
        assert_all_finite assert_equal assert_greater assert_greater_equal assert_integer
        assert_less assert_less_equal assert_near assert_negative assert_non_negative
        assert_non_positive assert_none_equal assert_positive assert_proper_iterable assert_rank
        assert_rank_at_least assert_rank_in assert_same_float_dtype assert_scalar assert_shapes
        assert_type check_numerics is_numeric_tensor
        """,
})  # fmt: skip
