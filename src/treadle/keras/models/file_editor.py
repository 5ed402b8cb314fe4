"""KerasFileEditor: what files of weights hold, looked at, compared with models, and changed."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from treadle.keras.models import saving, weight_files
from treadle.train import atomic

Weights = dict[str, Any]  # of an object: arrays by names, and the objects in it by theirs


class KerasFileEditor:
    """Shows, compares and edits the weights of a file of Keras 3.

    Attributes: ``weights_dict`` has the objects by their names, one within the other, and in them
    the weights as arrays, by numbers; ``object_metadata`` what the file says of an object beside
    its weights, by its path. Of an archive: ``config`` and ``metadata``, else None.

    Args:
        filepath: of an archive (``.keras``) or a file of weights (``.weights.h5``).

    Raises:
        ValueError: another ending; or what it holds lies in another file, or at another place of
            the same one.
        NotFoundError, DataLossError: there is no such file, or it is damaged.
    """

    def __init__(self, filepath: Any) -> None:
        self.filepath = os.fspath(filepath)
        parts: tuple[Any, Any, Any] = None, None, self.filepath
        if self.filepath.endswith(".keras"):
            parts = self._parts()
        elif not self.filepath.endswith(".weights.h5"):
            raise ValueError(
                "Invalid filename: expected a `.keras` `.weights.h5` extension. Received: "
                f"filepath={filepath}"
            )
        self.config, self.metadata, source = parts
        self.object_metadata: dict[str, dict[str, Any]] = {}
        with saving.opened(source, self.filepath) as file:
            self.weights_dict = _weights_in(file, self.object_metadata)
        print(f"Keras model file '{self.filepath}'")
        if self.metadata is not None:
            version, date = self.metadata["keras_version"], self.metadata["date_saved"]
            print(f"Saved with Keras {version} - date: {date}")

    def _parts(self) -> tuple[Any, Any, Any]:
        """The config, the metadata and the file of weights of an archive."""
        try:
            with zipfile.ZipFile(self.filepath) as zipped:
                texts = (json.loads(zipped.read(f"{n}.json")) for n in ("config", "metadata"))
                return (*texts, io.BytesIO(zipped.read("model.weights.h5")))
        except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
            raise td.errors.DataLossError(
                None, None, f"{self.filepath} is damaged: {error}"
            ) from None
        except OSError as error:
            raise atomic.file_error(error, f"Could not read {self.filepath}") from error

    # -- looking -----------------------------------------------------------------------------------

    def summary(self) -> None:
        """Print the objects and the shapes and dtypes of their weights."""
        print("Weights structure")
        self._print(self.weights_dict, "", "  ")

    def _print(self, weights: Weights, path: str, indent: str) -> None:
        for number, (key, value) in enumerate(weights.items()):
            is_last = number == len(weights) - 1
            start = f"{indent}{'└─' if is_last else '├─'} {key}"
            if not isinstance(value, dict):
                print(f"{start}: shape={value.shape}, dtype={value.dtype}")
                continue
            name = self.object_metadata.get(f"{path}/{key}", {}).get("name")
            print(start if name is None else f"{start} ('{name}')")
            self._print(value, f"{path}/{key}", indent + ("   " if is_last else "│  "))

    def compare(self, reference_model: Any) -> dict[str, Any]:
        """Compare the weights with those of a model, and print what differs.

        Returns:
            ``"status"``: "success" or "error"; ``"match_count"``: how many weights have a partner
            of the same shape; ``"error_count"``: how many objects and weights have none.
        """
        content = io.BytesIO()
        with weight_files.created(content) as file:
            weight_files.write(reference_model, file)
            own = _weights_in(file, {})
        print("Running comparison")
        faults, matches = [], 0
        for fault in _differences(self.weights_dict, own, ""):
            matches += fault is None
            if fault is not None:
                faults.append(fault)
                print(f"...{fault}")
        if faults:
            count = f"{len(faults)} error{'s' if len(faults) > 1 else ''}"
            print(f"Found {count}: saved file is not compatible with the reference model")
        else:
            print("Comparison successful: saved file is compatible with the reference model")
            print(f"    Found {matches} matching weight{'' if matches == 1 else 's'}")
        status = "error" if faults else "success"
        return {"status": status, "error_count": len(faults), "match_count": matches}

    # -- changing ----------------------------------------------------------------------------------

    def _place_of(self, name: str) -> tuple[Weights, str, str]:
        """Where an object is: the object that it is in, the path of that, and the name there.

        Args:
            name: its path; or its name, if there is one of it.

        Raises:
            ValueError: it is not there, or the name is that of several.
        """
        if "/" in name:
            *outer, last = name.strip("/").split("/")
            holder = self._object(outer, name)
            if last not in holder:
                raise ValueError(f"Path '{name}' not found in model.")
            return holder, "".join(f"/{part}" for part in outer), last
        holders = [found for found in _objects(self.weights_dict) if name in found[0]]
        if not holders:
            raise ValueError(
                f"Source name '{name}' does not appear in the model. Use `editor.summary()` to "
                "list all objects."
            )
        if len(holders) > 1:
            raise ValueError(
                f"Name '{name}' occurs more than once in the model; try passing a complete path"
            )
        return (*holders[0], name)

    def _object(self, names: list[str], path: str) -> Weights:
        found: Any = self.weights_dict
        for name in names:
            found = found.get(name)
            if not isinstance(found, dict):
                raise ValueError(f"Path '{path}' not found in model.")
        return found  # type: ignore[no-any-return]

    def _found(self, name: str) -> Weights:
        holder, _, key = self._place_of(name)
        if not isinstance(holder[key], dict):
            raise ValueError(f"'{name}' is a weight, not an object")
        return holder[key]  # type: ignore[no-any-return]

    def _move_described(self, old: str, new: str | None) -> None:
        """What the file says of an object and those in it belongs to another path, or to none."""
        for path in [p for p in self.object_metadata if f"{p}/".startswith(f"{old}/")]:
            described = self.object_metadata.pop(path)
            if new is not None:
                self.object_metadata[new + path[len(old) :]] = described

    def rename_object(self, object_name: str, new_name: str) -> None:
        """Give an object, such as a layer, another name.

        Args:
            object_name: its name or its path.
            new_name: a name, no path.

        Raises:
            ValueError: there is no such object, or several; or the new name is a path, or taken.
        """
        if "/" in new_name:
            raise ValueError(
                "Argument `target_name` should be a leaf name, not a full path name. Received: "
                f"target_name='{new_name}'"
            )
        holder, path, key = self._place_of(object_name)
        if new_name in holder and new_name != key:
            raise ValueError(f"There is an object {new_name!r} beside {object_name!r} already")
        holder[new_name] = holder.pop(key)
        self._move_described(f"{path}/{key}", f"{path}/{new_name}")

    def delete_object(self, object_name: str) -> None:
        """Take an object out.

        Args:
            object_name: its name or its path.

        Raises:
            ValueError: there is no such object, or several.
        """
        holder, path, key = self._place_of(object_name)
        del holder[key]
        self._move_described(f"{path}/{key}", None)

    def add_object(self, object_path: str, weights: Mapping[str, Any]) -> None:
        """Add an object.

        Args:
            object_path: its path; the object that it is to be in must be there.
            weights: arrays by names, ``{"0": kernel, "1": bias}``.

        Raises:
            ValueError: there is no object to put it into, or `weights` is no dict.
        """
        *outer, name = object_path.strip("/").split("/")
        self._object(outer, "/".join(outer))[name] = _as_arrays(weights)

    def delete_weight(self, object_name: str, weight_name: str) -> None:
        """Take a weight of an object out.

        Raises:
            ValueError: there is no such object, or several; or it has no such weight.
        """
        found = self._found(object_name)
        if weight_name not in found:
            raise ValueError(
                f"Weight {weight_name} not found in object {object_name}. Weights found: "
                f"{list(found)}"
            )
        del found[weight_name]

    def add_weights(self, object_name: str, weights: Mapping[str, Any]) -> None:
        """Add weights to an object, or put others in the place of those that it has.

        Args:
            object_name: its name or its path.
            weights: arrays by names, ``{"0": kernel, "1": bias}``.

        Raises:
            ValueError: there is no such object, or several; or `weights` is no dict.
        """
        self._found(object_name).update(_as_arrays(weights))

    def save(self, filepath: Any) -> None:
        """Write the weights as they are now.

        Args:
            filepath: ends with ``.weights.h5``.

        Raises:
            ValueError: another ending.
        """
        name = os.fspath(filepath)
        if not name.endswith(".weights.h5"):
            raise ValueError(
                "Invalid `filepath` argument: expected a `.weights.h5` extension. Received: "
                f"filepath={filepath}"
            )
        content = io.BytesIO()
        with weight_files.created(content) as file:
            self._write(self.weights_dict, file, "")
        atomic.write(Path(name), [content.getvalue()], "weights")

    def resave_weights(self, filepath: Any) -> None:
        """`save`."""
        self.save(filepath)

    def _write(self, weights: Weights, file: Any, path: str) -> None:
        own = {key: value for key, value in weights.items() if not isinstance(value, dict)}
        described = self.object_metadata.get(path, {})
        if own or described:
            group = file.create_group(f"{path}/vars".lstrip("/"))
            group.attrs.update(described)
            store = weight_files.Store(group)
            for key, value in own.items():
                store[key] = value
        for key, value in weights.items():
            if isinstance(value, dict):
                self._write(value, file, f"{path}/{key}")


def _weights_in(group: Any, described: dict[str, dict[str, Any]], path: str = "") -> Weights:
    """The weights of an object and the objects in it.

    Args:
        group: of an open file.
        described: gets what the file says of objects, by their paths.
    """
    found: Weights = {}
    if "vars" in group:
        own = group["vars"]
        found |= {key: weight_files.array_of(own[key]) for key in own}
        if len(own.attrs):
            described[path] = dict(own.attrs)
    for key, inner in group.items():
        if key != "vars" and hasattr(inner, "keys"):
            weights = _weights_in(inner, described, f"{path}/{key}")
            if weights:
                found[key] = weights
    return found


def _objects(weights: Weights, path: str = "") -> Iterator[tuple[Weights, str]]:
    """An object and all in it, and their paths."""
    yield weights, path
    for key, value in weights.items():
        if isinstance(value, dict):
            yield from _objects(value, f"{path}/{key}")


def _differences(saved: Weights, own: Weights, path: str) -> Iterator[str | None]:
    """What differs between two objects; None for each weight that is the same in both."""
    for key in [*own, *(key for key in saved if key not in own)]:
        where = f"{path}/{key}"
        kind = "Object" if isinstance(saved.get(key, own.get(key)), dict) else "Weight"
        if key not in saved:
            yield f"{kind} {where} present in reference model, missing from saved file"
        elif key not in own:
            yield f"{kind} {where} present in saved file, missing from reference model"
        elif isinstance(saved[key], dict) != isinstance(own[key], dict):
            yield f"{where} is a weight in one of the two and an object in the other one"
        elif isinstance(saved[key], dict):
            yield from _differences(saved[key], own[key], where)
        elif saved[key].shape != own[key].shape:
            yield (
                f"Weight shape mismatch for {where}: shape={own[key].shape} in reference model, "
                f"shape={saved[key].shape} in saved file"
            )
        else:
            yield None


def _as_arrays(weights: Any) -> Weights:
    if not isinstance(weights, Mapping):
        raise ValueError(
            "Argument `weights` should be a dict where keys are weight names (usually '0', '1', "
            f"etc.) and values are NumPy arrays. Received: type(weights)={type(weights)}"
        )
    return {str(key): np.asarray(value) for key, value in weights.items()}
