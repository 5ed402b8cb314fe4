"""Weights in files of Keras 3: ``.weights.h5``, also within ``.keras`` archives.

The file has a group for each layer, with its own weights in ``vars``: numbered, those that training
changes first. The path of a group is made of names of attributes; in lists, of those of classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import treadle as td
from treadle.keras.layers.base import Layer
from treadle.keras.metrics import Metric
from treadle.keras.naming import snake_case
from treadle.keras.optimizers import Optimizer

if TYPE_CHECKING:
    from treadle.keras.models.model import Model


def h5py() -> Any:
    """The library that reads and writes HDF5.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            "Files of Keras need h5py: pip install h5py. Checkpoints of treadle do without it: "
            "give a name without .h5 or .keras"
        ) from error
    return h5py


def created(place: Any) -> Any:
    """A new HDF5 file, whose description of itself has checksums.

    Args:
        place: a path, or an object for bytes.
    """
    return h5py().File(place, "w", libver=("v110", "v110"))


def put(group: Any, name: str, array: Any) -> None:
    """Write an array with a checksum, so that a flipped bit is found: a small one into the
    description, a large one in parts with checksums of their own."""
    if array.nbytes <= _SMALL:
        library = h5py()
        layout = library.h5p.create(library.h5p.DATASET_CREATE)
        layout.set_layout(library.h5d.COMPACT)
        group.create_dataset(name, data=array, dcpl=layout)
        return
    rows = max(1, _PART // (array.nbytes // len(array)))
    part = (min(rows, len(array)), *array.shape[1:])
    group.create_dataset(name, data=array, chunks=part, fletcher32=True)


def refuse_elsewhere(group: Any, name: str) -> None:
    """Refuse a group of a file in which a name stands for what lies elsewhere: a file that is read
    must not tell to read another one.

    Args:
        group: of an open file, or the file.
        name: of the file, for errors.

    Raises:
        ValueError: a link or an array leads to another file, or to another place.
    """
    library = h5py()
    for key in group:
        link = group.get(key, getlink=True)
        kind = None if isinstance(link, library.HardLink) else type(link).__name__
        inner = group[key] if kind is None else None
        if isinstance(inner, library.Dataset):
            if inner.is_virtual:
                kind = "virtual Dataset"
            elif inner.external:
                kind = "Dataset with external links"
        elif inner is not None:
            refuse_elsewhere(inner, name)
        if kind is not None:
            raise ValueError(
                f"Not allowed: H5 file with {kind}: {group.name.rstrip('/')}/{key} of {name} "
                "stands for what lies elsewhere"
            )


_SMALL, _PART = 1 << 15, 1 << 24  # bytes


class Store:
    """The variables of an object in a file: arrays by names."""

    def __init__(self, group: Any) -> None:
        self._group = group

    def __setitem__(self, name: str, value: Any) -> None:
        array = np.asarray(value)
        if array.dtype == td.bfloat16.np_dtype:
            put(self._group, name, array.view(np.dtype("V2")))
            self._group[name].attrs["dtype"] = "bfloat16"
        else:
            put(self._group, name, array)

    def __getitem__(self, name: str) -> Any:
        return array_of(self._group[name])

    def __len__(self) -> int:
        return len(self._group)

    def __iter__(self) -> Iterator[str]:
        return iter(self._group)

    def __contains__(self, name: object) -> bool:
        return name in self._group

    def keys(self) -> Any:
        """The names."""
        return self._group.keys()


def _reads_itself(value: Layer) -> bool:
    """Whether a layer's class says how it takes variables from files."""
    return type(value).load_own_variables is not Layer.load_own_variables


def _variables(value: Any, model: Model) -> list[td.Variable]:
    """The own variables of an object in the order of files."""
    if isinstance(value, Optimizer):
        return value._in_file(model.trainable_variables)
    if isinstance(value, Metric):
        return list(value.variables)
    found: list[td.Variable] = value._kept_variables()
    return found


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, private attributes last. Models also have the attribute `layers`: where
    it is their description, it comes first."""
    if not isinstance(value, Layer):
        return
    found = td.Module._trackable_children(value)
    if hasattr(value, "_listed_layers"):
        if value._listed_layers is not None:
            yield "layers", value._listed_layers
        else:
            found["layers"] = value.layers  # type: ignore[attr-defined]
        if value.optimizer is not None:  # type: ignore[attr-defined]
            found["optimizer"] = value.optimizer  # type: ignore[attr-defined]
    yield from sorted(found.items(), key=lambda item: (item[0][:1] == "_", item[0]))


def walk(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """The objects with variables that are reached from one, each once, and their paths."""
    if isinstance(value, list | tuple | dict):
        yield from _walk_container(value, path, seen)
    elif isinstance(value, Layer | Optimizer | Metric) and id(value) not in seen:
        seen.add(id(value))
        yield path, value
        for name, child in _children(value):
            yield from walk(child, f"{path}/{name}".lstrip("/"), seen)


def _walk_container(values: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    used: dict[str, int] = {}
    for child in values.values() if isinstance(values, dict) else values:
        if isinstance(child, list | tuple | dict):
            name = "container"
        elif isinstance(child, Layer | Optimizer | Metric):
            saved_as = getattr(child, "_saved_as", None)
            own = getattr(child, "_name_in_files", type(child).__name__)
            name = snake_case(saved_as[1] if saved_as else own)
        else:
            continue
        number = used[name] = used.get(name, -1) + 1
        yield from walk(child, f"{path}/{name}{f'_{number}' if number else ''}", seen)


def write(model: Model, file: Any, without: Iterable[Any] = ()) -> None:
    """Write the weights of a model, and what its optimizer keeps, into an open HDF5 file.

    Args:
        without: layers and other objects that are left out.
    """
    for path, value in walk(model, "", set(map(id, without))):
        group = file.create_group(f"{path}/vars".lstrip("/"))
        group.attrs["name"] = value.name
        store = Store(group)
        if isinstance(value, Layer):
            value.save_own_variables(store)
            if type(value).save_own_variables is Layer.save_own_variables:
                _tell_what_is_left_out(value)
            continue
        for number, variable in enumerate(_variables(value, model)):
            store[str(number)] = variable.numpy()


def _tell_what_is_left_out(layer: Layer) -> None:
    names = ", ".join(repr(variable.name) for variable in layer._holdings.plain)
    if names:
        warnings.warn(
            f'Layer "{layer.name}": the file has no {names}: a td.Variable in an attribute is no '
            "weight of a layer. Make it with add_weight or as a keras.Variable, or save the model "
            "with td.train.Checkpoint",
            stacklevel=6,
        )


def read(
    model: Model, file: Any, name: str, skip_mismatch: bool = False, without: Iterable[Any] = ()
) -> None:
    """Assign the weights of a model from an open HDF5 file, or none where one does not fit.

    Args:
        name: of the file, for errors.
        skip_mismatch: leave layers as they are whose weights do not fit.
        without: layers and other objects that are left as they are.

    Raises:
        ValueError: the file has other weights than the model.
    """
    assigned: list[tuple[td.Variable, Any]] = []
    others: list[tuple[Layer, Any]] = []  # layers that take their variables themselves
    taken: list[Layer] = []
    for path, value in walk(model, "", set(map(id, without))):
        group = file.get(f"{path}/vars".lstrip("/"), {})
        if isinstance(value, Layer) and _reads_itself(value):
            others.append((value, Store(group)))
            continue
        variables = _variables(value, model)
        fault = difference(variables, group)
        if fault is None:
            assigned += [(v, array_of(group[str(n)])) for n, v in enumerate(variables)]
            if isinstance(value, Layer):
                taken.append(value)
        elif isinstance(value, Optimizer) and difference(variables[: len(group)], group) is None:
            # It made no update yet, so it has no slots.
            made = variables[: len(group)]
            assigned += [(v, array_of(group[str(n)])) for n, v in enumerate(made)]
        elif isinstance(value, Optimizer):
            if len(group):
                warnings.warn(
                    f"{name}: the optimizer {value.name!r} is left as it is: {fault}", stacklevel=4
                )
        elif not skip_mismatch:
            where = f"layer {value.name!r}" if path else f"model {value.name!r}"
            raise ValueError(f"{name}: {where}, which is {path or 'at the top'!r} there: {fault}")
    assign(assigned)
    for layer in taken:
        layer._after_loading()
    for layer, store in others:
        layer.load_own_variables(store)


def assign(assigned: list[tuple[td.Variable, Any]]) -> None:
    """Assign variables."""
    for variable, array in assigned:
        variable.assign(td.constant(array, variable.dtype))


def difference(variables: list[td.Variable], group: Any) -> str | None:
    """What differs between variables and a group of arrays."""
    if len(variables) != len(group):
        return f"expected {len(variables)} variables, the file has {len(group)}"
    for number, variable in enumerate(variables):
        shape = tuple(group[str(number)].shape)
        if tuple(variable.shape) != shape:
            return (
                f"variable {variable.name!r} has shape {tuple(variable.shape)}, that in the file "
                f"{shape}"
            )
    return None


def array_of(dataset: Any) -> Any:
    """What an array of a file holds."""
    array = np.array(dataset)
    if dataset.attrs.get("dtype") == "bfloat16":
        return array.view(td.bfloat16.np_dtype)
    return array
