"""``td.keras.distribution``: how weights would be laid out on several devices.

A model library says here for each weight along which axes of a mesh of devices it may be split.
With TensorFlow Keras never splits one, and treadle does not, either: `td.distribute` has replicas
with all weights. So these are descriptions, which can be made, matched and printed, and
`set_distribution` takes only None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.names import explain_missing, missing_in

__all__ = [
    "DeviceMesh", "LayoutMap", "TensorLayout", "distribution", "get_device_count", "list_devices",
    "set_distribution",
]  # fmt: skip

_REPLICAS = "Use a td.distribute strategy: the replicas of a model share the batches"
explain_missing(
    {
        **{f"keras.distribution.{name}": _REPLICAS for name in (
            "DataParallel", "ModelParallel", "distribute_tensor")},
        "keras.distribution.initialize": "Workers are processes that MPI starts: use "
        "td.distribute.MultiWorkerMirroredStrategy",
    }
)  # fmt: skip


def list_devices(device_type: str | None = None) -> list[str]:
    """The devices of a type as "cpu:0" or "gpu:1".

    Args:
        device_type: "cpu" or "gpu". None: the GPUs, or where there is none the host.
    """
    kind = device_type.upper() if device_type else None
    devices = td.config.list_logical_devices(kind)
    others = [device for device in devices if device.device_type != "CPU"]
    chosen = devices if kind else others or devices
    return [f"{d.device_type.lower()}:{d.name.rpartition(':')[2]}" for d in chosen]


def get_device_count(device_type: str | None = None) -> int:
    """How many devices `list_devices` gives."""
    return len(list_devices(device_type))


def distribution() -> None:
    """The distribution that models are made with: there is none, as no weight is split."""
    return


def set_distribution(value: Any) -> None:
    """Say how weights are split from now on.

    Raises:
        NotImplementedError: the value is not None.
    """
    if value is not None:
        raise NotImplementedError(
            f"keras.distribution.set_distribution: weights are not split over devices. {_REPLICAS}"
        )


class DeviceMesh:
    """Devices in the order of an array.

    Args:
        shape: how many there are along each axis.
        axis_names: what the axes are called.
        devices: their names. None: those that `list_devices` gives.

    Raises:
        ValueError: there are no axes, names and sizes differ in number, or the sizes make another
            number of devices.
    """

    def __init__(self, shape: Sequence[int], axis_names: Sequence[str], devices: Any = None):
        if not shape or not axis_names:
            raise ValueError(
                "Shape and axis_names cannot be empty. Received: "
                f"shape={shape}, axis_names={axis_names}"
            )
        if len(shape) != len(axis_names):
            raise ValueError(
                "Shape and axis_names should have same size. "
                f"Received: shape={shape}, axis_names={axis_names}"
            )
        array = np.array(list_devices() if devices is None else devices)
        if math.prod(shape) != array.size:
            raise ValueError(
                "Shape does not match the number of devices. "
                f"Received: shape={shape}; devices.shape={array.shape}"
            )
        self.shape, self.axis_names = shape, axis_names
        self.devices = array.reshape(tuple(shape))

    def __repr__(self) -> str:
        return f"<DeviceMesh shape={self.shape}, axis_names={self.axis_names}>"


class TensorLayout:
    """Along which axes of a mesh those of a tensor are split.

    Args:
        axes: for each axis of the tensor the name of one of the mesh, or None: not split.
        device_mesh: the mesh, which may be given later, once.

    Raises:
        ValueError: the mesh has no axis of such a name, or it is given twice.
    """

    def __init__(self, axes: Sequence[str | None], device_mesh: DeviceMesh | None = None) -> None:
        self.axes = tuple(axes)
        self._device_mesh: DeviceMesh | None = None
        if device_mesh is not None:
            self.device_mesh = device_mesh

    @property
    def device_mesh(self) -> DeviceMesh | None:
        """The mesh whose axes are meant."""
        return self._device_mesh

    @device_mesh.setter
    def device_mesh(self, device_mesh: DeviceMesh) -> None:
        if self._device_mesh is not None:
            raise ValueError(
                f"Cannot override device mesh value. Existing value is {self._device_mesh}"
            )
        valid = set(device_mesh.axis_names)
        names = set(self.axes) - {None}
        if names - valid:
            raise ValueError(
                f"Invalid axis names for Layout. Valid axis names: {valid}, Got {names}"
            )
        self._device_mesh = device_mesh

    def __repr__(self) -> str:
        return f"<TensorLayout axes={self.axes}, device_mesh={self.device_mesh}>"


class LayoutMap(MutableMapping[str, Any]):
    """Layouts of weights by regular expressions for their paths.

    Args:
        device_mesh: the mesh of layouts that are given as tuples of names.
    """

    def __init__(self, device_mesh: DeviceMesh | None) -> None:
        self.device_mesh = device_mesh
        self._layouts: dict[str, TensorLayout] = {}

    def __getitem__(self, key: str) -> TensorLayout | None:
        """The layout of a path; None where no key matches.

        Raises:
            ValueError: several keys match it.
        """
        if key in self._layouts:
            return self._layouts[key]
        found = [pattern for pattern in self._layouts if re.fullmatch(pattern, key)]
        if len(found) > 1:
            raise ValueError(
                f"Path '{key}' matches multiple layout specification keys: {found}. Please make "
                "sure each tensor/variable path only matches at most one layout specification key "
                "in the LayoutMap."
            )
        return self._layouts[found[0]] if found else None

    def __setitem__(self, key: str, layout: TensorLayout | tuple[str | None, ...]) -> None:
        """Add a layout, or a tuple of its axes.

        Raises:
            ValueError: the key is there already, or it is no layout of the map's mesh.
        """
        if key in self._layouts:
            raise ValueError(
                f"{key} already exist in the LayoutMap with value {self._layouts[key]}. Please "
                "make sure to not use duplicated keys."
            )
        if isinstance(layout, tuple):
            layout = TensorLayout(layout)
        if not isinstance(layout, TensorLayout):
            raise ValueError(f"{layout} should be a TensorLayout type, got {type(layout)}")
        if layout.device_mesh is None and self.device_mesh is not None:
            layout.device_mesh = self.device_mesh
        self._layouts[key] = layout

    def __delitem__(self, key: str) -> None:
        del self._layouts[key]

    def __len__(self) -> int:
        return len(self._layouts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._layouts)


__getattr__ = missing_in(__name__)
