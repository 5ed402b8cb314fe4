"""``td.keras.config``: what Keras programs set once, for all layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import treadle as td
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.keras.dtype_policies import dtype_policy as dtype_policy
    from treadle.keras.dtype_policies import set_dtype_policy as set_dtype_policy

_floatx = "float32"
_epsilon = 1e-7
_image_data_format = "channels_last"


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


__getattr__ = provided(
    __name__, {"treadle.keras.dtype_policies": "dtype_policy set_dtype_policy"}
)
