"""``td.keras.config``: what Keras programs set once, for all layers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import treadle as td
from treadle.keras import lambdas
from treadle.keras.progress import (
    disable_interactive_logging,
    enable_interactive_logging,
    is_interactive_logging_enabled,
)
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.keras.dtype_policies import dtype_policy as dtype_policy
    from treadle.keras.dtype_policies import set_dtype_policy as set_dtype_policy

enable_traceback_filtering = td.debugging.enable_traceback_filtering
disable_traceback_filtering = td.debugging.disable_traceback_filtering
is_traceback_filtering_enabled = td.debugging.is_traceback_filtering_enabled

_floatx = "float32"
_epsilon = 1e-7
_image_data_format = "channels_last"
_max_epochs: int | None = None
_max_steps_per_epoch: int | None = None


def floatx() -> str:
    """The name of the dtype that layers have by default."""
    return _floatx


def set_floatx(value: str) -> None:
    """Set the dtype that layers have by default.

    Raises:
        ValueError: it is no floating dtype.
    """
    global _floatx
    if value not in ("bfloat16", "float16", "float32", "float64"):
        raise ValueError(f"set_floatx: a floating dtype's name, not {value!r}")
    _floatx = td.as_dtype(value).name


def epsilon() -> float:
    """The small number that keeps divisions and logarithms finite."""
    return _epsilon


def set_epsilon(value: float) -> None:
    """Set `epsilon`."""
    global _epsilon
    _epsilon = float(value)


def image_data_format() -> str:
    """Where images have their channels by default."""
    return _image_data_format


def set_image_data_format(data_format: str) -> None:
    """Set where images have their channels: "channels_last" or "channels_first"."""
    global _image_data_format
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"set_image_data_format: channels_last or first, not {data_format!r}")
    _image_data_format = data_format


def keras_home() -> str:
    """The folder of Keras's files: what KERAS_HOME says, or ``~/.keras``."""
    return os.environ.get("KERAS_HOME") or str(Path.home() / ".keras")


def backend() -> str:
    """The backend of Keras whose functions programs may use besides: "tensorflow", by whose names
    those of treadle are called."""
    return "tensorflow"


def set_backend(backend: str) -> None:
    """Accept "tensorflow", the only backend.

    Raises:
        ValueError: another one.
    """
    if backend != "tensorflow":
        raise ValueError(f"set_backend: there is one backend, 'tensorflow', not {backend!r}")


def max_epochs() -> int | None:
    """How many epochs `fit` trains at most; None: as many as it is told."""
    return _max_epochs


def set_max_epochs(max_epochs: int | None) -> None:
    """Let `fit` train no more epochs; None: as many as it is told."""
    global _max_epochs
    _max_epochs = max_epochs


def max_steps_per_epoch() -> int | None:
    """How many batches `fit`, `evaluate` and `predict` take at most; None: as many as there are."""
    return _max_steps_per_epoch


def set_max_steps_per_epoch(max_steps_per_epoch: int | None) -> None:
    """Let `fit`, `evaluate` and `predict` take no more batches an epoch; None: all of them."""
    global _max_steps_per_epoch
    _max_steps_per_epoch = max_steps_per_epoch


def least(given: int | None, limit: int | None) -> int | None:
    """The lesser of two numbers that may be None."""
    return given if limit is None else limit if given is None else min(given, limit)


_flash_attention: bool | None = None


def is_flash_attention_enabled() -> bool | None:
    """What programs have set; None where they have not.

    It changes nothing: attention is fused by the compiler, whatever it is called.
    """
    return _flash_attention


def enable_flash_attention() -> None:
    """Let `is_flash_attention_enabled` say True."""
    global _flash_attention
    _flash_attention = True


def disable_flash_attention() -> None:
    """Let `is_flash_attention_enabled` say False."""
    global _flash_attention
    _flash_attention = False


def is_nnx_enabled() -> bool:
    """False: NNX belongs to JAX."""
    return False


def enable_unsafe_deserialization() -> None:
    """Let all that is loaded from now on run the code of lambdas that it holds, until
    `keras.utils.clear_session`: for files whose author is trusted."""
    lambdas.always_run()


__all__ = [
    "backend", "disable_flash_attention", "disable_interactive_logging",
    "disable_traceback_filtering", "dtype_policy", "enable_flash_attention",
    "enable_interactive_logging", "enable_traceback_filtering", "enable_unsafe_deserialization",
    "epsilon", "floatx", "image_data_format", "is_flash_attention_enabled",
    "is_interactive_logging_enabled", "is_nnx_enabled", "is_traceback_filtering_enabled",
    "max_epochs", "max_steps_per_epoch", "set_backend", "set_dtype_policy", "set_epsilon",
    "set_floatx", "set_image_data_format", "set_max_epochs", "set_max_steps_per_epoch",
]  # fmt: skip

__getattr__ = provided(
    __name__, {"treadle.keras.dtype_policies": "dtype_policy set_dtype_policy"}
)
