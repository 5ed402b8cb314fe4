"""Arrays of other libraries as tensors and tensors as theirs, where they lie
(``td.experimental.dlpack``, https://dmlc.github.io/dlpack)."""

from __future__ import annotations

import ctypes
from typing import Any

from treadle.core.tensor import Tensor
from treadle.numpy_staging import protocols
from treadle.ops.conversion import convert_to_tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tf_tensor: Any) -> Any:
    """A DLPack capsule over the elements of a tensor, on its device. Nobody may write to them.

    Libraries that ask for an object with ``__dlpack__`` are given the tensor itself.
    """
    return protocols.tensor_dlpack(convert_to_tensor(tf_tensor))


def from_dlpack(dlcapsule: Any) -> Tensor:
    """A tensor over another library's array, on the same device and without a copy where the
    elements lie in row-major order at an address that is aligned.

    Args:
        dlcapsule: an array with ``__dlpack__``, or a capsule that nobody has taken the array of.
            The array must not be written to afterwards.

    Raises:
        BufferError: it is on a device that no tensor can be on.
        ValueError: a capsule whose array was taken before.
    """
    if not hasattr(dlcapsule, "__dlpack__"):
        dlcapsule = _Capsule(dlcapsule)
    return protocols.from_dlpack(dlcapsule)


class _Capsule:
    """A capsule as an array that can be asked for it, as libraries expect today."""

    def __init__(self, capsule: Any) -> None:
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        try:
            address = pointer(capsule, b"dltensor")
        except ValueError:
            raise ValueError(
                f"from_dlpack takes an array with __dlpack__, or a DLPack capsule that nobody has "
                f"taken the array of, not {capsule!r}"
            ) from None
        self._capsule, self._tensor = capsule, _Tensor.from_address(address)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.kind, self._tensor.number


class _Tensor(ctypes.Structure):
    """The beginning of DLTensor in dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("number", ctypes.c_int32),
    )  # fmt: skip
