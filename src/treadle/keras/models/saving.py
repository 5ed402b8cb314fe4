"""Models in files: Keras's archives, and files of treadle's own, which need no further library.

``.keras`` is a zip archive of a config, of metadata and of weights, as Keras 3 has it; ``.h5`` and
``.hdf5`` are Keras's older files (`legacy_files`). What ends with ``.safetensors`` is a checkpoint
with the config among its texts. Classes are found by their names. The only code in any of them is
that of lambdas; reading runs none unless ``safe_mode=False`` asks for it.
"""

from __future__ import annotations

import io
import json
import os
import time
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import treadle as td
from treadle.keras import lambdas
from treadle.keras.layers.base import Layer
from treadle.keras.models import assets, legacy_files, weight_files, weight_shards
from treadle.keras.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    serialize_keras_object,
)
from treadle.modes import generation
from treadle.train import atomic
from treadle.train.checkpoint import Checkpoint
from treadle.train.reader import open_file
from treadle.train.safetensors import SUFFIX
from treadle.version import __version__

if TYPE_CHECKING:
    from treadle.keras.models.model import Model

_CONFIG = "keras.config"
_WEIGHTS = "model.weights.h5"
_LEGACY = (".h5", ".hdf5")
_MOST_TEXT = 1 << 28  # bytes of a config


def to_config(model: Model) -> dict[str, Any]:
    """A model and how it was compiled, as plain data; or a layer, which is not compiled."""
    config: dict[str, Any] = serialize_keras_object(model)
    compiled = model.get_compile_config() if hasattr(model, "get_compile_config") else None
    if compiled is None:
        return config
    return config | {"compile_config": serialize_keras_object(compiled)}  # a program's has objects


def from_config(
    config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None, compile: bool = False
) -> Any:
    """The model of a config, with new weights.

    Raises:
        ValueError: the config is that of something else, or has what is not supported.
    """
    with custom_object_scope(custom_objects or {}):
        model = deserialize_keras_object(config)
        if not isinstance(model, Layer):
            raise ValueError(f"The config is that of {type(model).__name__}, not of a model")
        if compile and config.get("compile_config"):
            as_model: Any = model
            as_model.compile_from_config(config["compile_config"])
    return model


def pickled(model: Model) -> tuple[Any, ...]:
    """What `unpickled` makes the model of."""
    kept = None
    if model.compiled and model.optimizer is not None and model.optimizer.built:
        kept = [v.numpy() for v in model.optimizer.variables]
    return to_config(model), _own_classes(model), model.get_weights(), kept


def _own_classes(layer: Any) -> dict[str, type[Any]]:
    """The classes of programs among those of a layer and of the layers in it."""
    kind = type(layer)
    own = not kind.__module__.startswith("treadle.")
    found = {kind.__name__: kind} if own else {}
    for inner in layer._holdings.layers:
        found |= _own_classes(inner)
    return found


def unpickled(config: Any, classes: Any, weights: list[Any], kept: list[Any] | None) -> Any:
    """The model that was pickled; who reads a pickle runs its code anyway."""
    with lambdas.running():
        model = from_config(config, classes, compile=True)
    model.set_weights(weights)
    if kept is not None:
        model.optimizer.build(model.trainable_variables)
        model.optimizer.set_weights(kept)
    return model


def save_model(
    model: Model, filepath: Any, overwrite: bool = True, zipped: bool | None = None,
    include_optimizer: bool = True, save_format: Any = None, **kwargs: Any,
) -> None:  # fmt: skip
    """Write a model: its config, its weights, and what its optimizer keeps.

    A file that is there stays until all of the new one is on the disk.

    Args:
        filepath: ends with ``.keras`` for an archive of Keras 3, or with ``.h5`` or ``.hdf5`` for
            a file as Keras 2 had it, which need h5py; or with ``.safetensors`` for a file of
            treadle's own. Or an open binary file, which gets an archive.
        overwrite: whether a file that is there may be replaced.
        include_optimizer: whether an ``.h5`` file also has how the model was compiled, and what its
            optimizer keeps.
        save_format: taken for programs of Keras 2; the ending says the format, as in Keras 3.
        zipped: False: a folder with what an archive has.

    Raises:
        ValueError: another ending, or an argument that there is not.
        FileExistsError: the file is there and may not be replaced.
        TypeError: a layer has an argument that is no plain data.
        ResourceExhaustedError, PermissionDeniedError: as for `td.train.Checkpoint.save`.
    """
    if generation.is_2 and not hasattr(filepath, "write"):  # Keras 3 writes no such files
        if _is_saved_model(filepath, save_format):
            _save_folder(model, Path(filepath), overwrite, **kwargs)
            return
        kwargs.pop("save_traces", None)
    if kwargs:
        raise ValueError(f"The following argument(s) are not supported: {list(kwargs)}")
    if hasattr(filepath, "write"):
        filepath.write(_zipped(archived(model)))
        return
    path = Path(filepath)
    is_older = generation.is_2 and save_format == "h5"
    if path.suffix not in (".keras", SUFFIX, *_LEGACY) and zipped is not False and not is_older:
        raise ValueError(
            f"Invalid filepath extension for saving: {path} should end with .keras or .h5 for a "
            f"file of Keras, or with {SUFFIX} for a file of treadle's own; td.train.Checkpoint and "
            "save_weights keep variables only"
        )
    if zipped is False and path.suffix == ".keras":
        raise ValueError(
            f"save: a folder should not end in .keras, as {path} does: that is for archives"
        )
    if not overwrite and path.exists():
        raise FileExistsError(f"save: {path} is there already, and overwrite is False")
    if path.suffix in (SUFFIX, *_LEGACY) or is_older:
        _save_older(model, path, include_optimizer)
        return
    parts = archived(model)
    if zipped is not False:
        atomic.write(path, [_zipped(parts)], "model")
        return
    write_parts(parts, path)


def write_parts(parts: Mapping[str, bytes], path: Path) -> None:
    """Write what an archive holds into a folder."""
    path.mkdir(parents=True, exist_ok=True)
    for name, content in parts.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        atomic.write(path / name, [content], "model")


def _is_saved_model(filepath: Any, save_format: Any) -> bool:
    """Whether Keras 2 writes a saved model to a path."""
    if save_format is not None:
        return save_format in ("tf", "tensorflow")
    return Path(filepath).suffix not in (".keras", SUFFIX, *_LEGACY)


def _save_folder(
    model: Model, path: Path, overwrite: bool, signatures: Any = None, options: Any = None,
    save_traces: bool = True,
) -> None:  # fmt: skip
    """Write a saved model, and beside it what `load_model` makes the model of."""
    if not overwrite and path.exists():
        raise FileExistsError(f"save: {path} is there already, and overwrite is False")
    if save_traces and model.built:
        td.saved_model.save(model, str(path), signatures, options)
    write_parts(archived(model), path)


def _save_older(model: Model, path: Path, include_optimizer: bool) -> None:
    """Write a file of Keras 2, or one of treadle's own."""
    if not model.built:
        raise ValueError(
            f'Model "{model.name}" has no weights yet: call it on data, or model.build(shape)'
        )
    if path.suffix != SUFFIX:
        content = io.BytesIO()
        with weight_files.created(content) as file:
            legacy_files.write(model, file, include_optimizer)
        atomic.write(path, [content.getvalue()], "model")
        return
    prefix = str(path).removesuffix(SUFFIX)
    checkpoint = Checkpoint(model)
    config = {_CONFIG: json.dumps(to_config(model))}
    checkpoint._write(prefix, checkpoint._walk(), None, config)


def archived(model: Model) -> dict[str, bytes]:
    """What an archive of Keras 3 holds, by the names of its files."""
    if not model.built:
        warnings.warn(
            "You are saving a model that has not yet been built. It might not contain any weights "
            "yet. Consider building the model first by calling it on some data.",
            stacklevel=4,
        )
    config = json.dumps(to_config(model))
    weights = io.BytesIO()
    with weight_files.created(weights) as file:
        weight_files.write(model, file)
    saved = time.strftime("%Y-%m-%d@%H:%M:%S")
    metadata = {"keras_version": "3.10.0", "date_saved": saved, "treadle_version": __version__}
    return {
        "metadata.json": json.dumps(metadata).encode(), "config.json": config.encode(),
        _WEIGHTS: weights.getvalue(),
    } | assets.of(model)  # fmt: skip


def _zipped(parts: Mapping[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        for name, content in parts.items():
            zipped.writestr(name, content)
    return archive.getvalue()


def load_model(
    filepath: Any, custom_objects: Mapping[str, Any] | None = None, compile: bool = True,
    safe_mode: bool = True,
) -> Any:  # fmt: skip
    """A model that `save_model` or Keras 3 wrote, with its weights.

    Args:
        filepath: of the file, or of the folder of an archive that is not zipped; or an open binary
            file that holds an archive.
        custom_objects: classes and functions of the user, by name; those that are registered are
            found anyway.
        compile: whether to compile it as it was, with what the optimizer kept.
        safe_mode: False: the code of lambdas in the file is run. What its author wrote is done
            then: trust the file.

    Raises:
        ValueError: there is no such file, or it is none of these, or holds what is not supported.
        DataLossError: it is damaged.
    """
    if not safe_mode:
        with lambdas.running():
            return load_model(filepath, custom_objects, compile)
    if hasattr(filepath, "read"):
        name = getattr(filepath, "name", "the archive")
        return _load_archive(_unzipped(filepath.read(), name), name, custom_objects, compile)
    path = Path(filepath)
    if not path.exists():
        raise ValueError(
            f"File not found: filepath={path}. Please ensure the file is an accessible `.keras` or "
            f"`.h5` file of Keras, or a `{SUFFIX}` file of treadle."
        )
    if path.suffix == SUFFIX:
        return _load_own(path, custom_objects, compile)
    if (path / "config.json").is_file():
        names = ["config.json", _WEIGHTS, *assets.names_in(path)]
        parts = {name: _content(path / name) for name in names}
        with lambdas.running(generation.is_2):
            return _load_archive(parts, path, custom_objects, compile)
    if path.is_dir():
        raise ValueError(
            f"File format not supported: filepath={path}. A saved model is loaded by "
            "td.saved_model.load, or as a layer by "
            f"keras.layers.TFSMLayer({str(path)!r}, call_endpoint='serving_default')"
        )
    if path.suffix in _LEGACY or (path.suffix != ".keras" and _is_hdf5(path)):
        return _load_legacy(path, custom_objects, compile)
    if path.suffix != ".keras":
        raise ValueError(
            f"load_model: {path} is neither a file of Keras (.keras, .h5) nor one of treadle "
            f"({SUFFIX}): write it anew with Keras 3, model.save('name.keras')"
        )
    return _load_archive(_unzipped(_content(path), path), path, custom_objects, compile)


def _is_hdf5(path: Path) -> bool:
    """Whether a file whose name does not say so is one of HDF5."""
    with open(path, "rb") as file:
        return file.read(8) == b"\x89HDF\r\n\x1a\n"


def _content(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise atomic.file_error(error, f"Could not read model {path}") from error


def _unzipped(data: bytes, path: Any) -> dict[str, bytes]:
    """The config, the weights and the assets of an archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as zipped:
            if zipped.getinfo("config.json").file_size > _MOST_TEXT:
                raise ValueError("its config is too large")
            kept = [name for name in zipped.namelist() if assets.is_name(name)]
            return {name: zipped.read(name) for name in ("config.json", _WEIGHTS, *kept)}
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise td.errors.DataLossError(None, None, f"{path} is damaged: {error}") from None


def _load_archive(
    parts: Mapping[str, bytes], path: Any, custom_objects: Mapping[str, Any] | None, compile: bool
) -> Any:
    try:
        config = json.loads(parts["config.json"])
    except ValueError as error:
        raise td.errors.DataLossError(None, None, f"{path} is damaged: {error}") from None
    with lambdas.guarded():
        model = from_config(config, custom_objects, compile)
    with opened(io.BytesIO(parts[_WEIGHTS]), path) as file:
        weight_files.read(model, file, str(path))
    assets.give(model, parts)
    return model


class opened:
    """An open HDF5 file, within a ``with``.

    Raises:
        NotFoundError: it is not there.
        ValueError: what it holds lies elsewhere, in part.
        DataLossError: it is damaged; this may be found while it is read.
        ImportError: h5py is missing.
    """

    def __init__(self, source: Any, path: Any) -> None:
        self._source, self._path = source, path
        self._file: Any = None

    def __enter__(self) -> Any:
        h5py = weight_files.h5py()
        if isinstance(self._source, str) and not os.path.exists(self._source):
            raise td.errors.NotFoundError(None, None, f"There is no file {self._source}")
        try:
            self._file = h5py.File(self._source, "r")
            weight_files.refuse_elsewhere(self._file, str(self._path))
        except (OSError, RuntimeError, KeyError) as error:
            raise self._damaged(error) from None
        return self._file

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._file.close()
        if isinstance(error, Exception) and _is_of_library(error):
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> Exception:
        return td.errors.DataLossError(None, None, f"{self._path} is damaged: {error}")


def _is_of_library(error: Exception) -> bool:
    """Whether h5py raised an exception."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and "h5py" in trace.tb_frame.f_code.co_filename


def _load_legacy(path: Path, custom_objects: Mapping[str, Any] | None, compile: bool) -> Any:
    with opened(str(path), path) as file, custom_object_scope(custom_objects or {}):
        model = from_config(legacy_files.model_config(file, str(path)))
        legacy_files.read_weights(model, file, str(path))
        if compile:
            legacy_files.compile_as_stored(model, file, str(path))
    return model


def _load_own(path: Path, custom_objects: Mapping[str, Any] | None, compile: bool) -> Any:
    prefix = str(path).removesuffix(SUFFIX)
    text = open_file(prefix).texts.get(_CONFIG)
    if text is None:
        raise ValueError(
            f"load_model: {path} has values and no model: restore it with load_weights or "
            "td.train.Checkpoint"
        )
    model = from_config(json.loads(text), custom_objects, compile)
    Checkpoint(model).read(prefix).assert_existing_objects_matched()
    return model


def save_weights(
    model: Model, filepath: Any, overwrite: bool = True, objects_to_skip: Iterable[Any] = (),
    max_shard_size: float | None = None,
) -> None:  # fmt: skip
    """Write the weights of a model; `Model.save_weights` says how."""
    name = os.fspath(filepath)
    if max_shard_size is not None and name.endswith(".weights.h5"):
        name = name.removesuffix(".h5") + ".json"  # as Keras does it
    if name.endswith(weight_shards.SUFFIX) != (max_shard_size is not None):
        raise ValueError(
            f"save_weights: a name that ends with {weight_shards.SUFFIX} goes with "
            f"max_shard_size. Received: filepath={name}, max_shard_size={max_shard_size}"
        )
    is_keras = name.endswith((".h5", weight_shards.SUFFIX))
    is_older = name.endswith(".h5") and not name.endswith(".weights.h5")
    if is_older and not generation.is_2:
        raise ValueError(f"The filename must end in `.weights.h5`. Received: filepath={name}")
    prefix = name.removesuffix(SUFFIX)
    if not overwrite and os.path.exists(name if is_keras else prefix + SUFFIX):
        raise FileExistsError(f"save_weights: {name} is there already, and overwrite is False")
    if is_keras and not model.built:
        raise ValueError(
            "You are saving a model that has not yet been built. Try building the model first by "
            "calling it on some data or by using `build()`."
        )
    if not is_keras:
        if objects_to_skip:
            raise ValueError("save_weights: objects_to_skip is for files of Keras (.weights.h5)")
        Checkpoint(model).write(prefix)
        return
    content = io.BytesIO()
    with weight_files.created(content) as file:
        if is_older:
            legacy_files.write_weights(model, file, own_names=True)
        else:
            weight_files.write(model, file, objects_to_skip)
        if max_shard_size is not None:
            weight_shards.write(file, Path(name), max_shard_size)
            return
    atomic.write(Path(name), [content.getvalue()], "weights")


def _require_weights(model: Model) -> None:
    if not model.built:
        raise ValueError(
            f'Model "{model.name}" has no weights yet: call it on data, or model.build(shape)'
        )


def load_weights(
    model: Model, filepath: Any, skip_mismatch: bool = False, by_name: bool = False,
    objects_to_skip: Iterable[Any] = (),
) -> Any:  # fmt: skip
    """Assign the weights of a model; `Model.load_weights` says how."""
    name = os.fspath(filepath)
    if by_name and (not name.endswith(_LEGACY) or name.endswith(".weights.h5")):
        raise ValueError(f"load_weights: by_name is for files of Keras 2 (.h5, .hdf5), not {name}")
    if name.endswith(weight_shards.SUFFIX):
        _require_weights(model)
        with weight_shards.opened(Path(name)) as whole:
            weight_files.read(model, whole, name, skip_mismatch, objects_to_skip)
        return None
    if name.endswith((*_LEGACY, ".keras")):
        source: Any = name
        if name.endswith(".keras"):
            try:
                with zipfile.ZipFile(name) as zipped:
                    source = io.BytesIO(zipped.read(_WEIGHTS))
            except (zipfile.BadZipFile, KeyError, EOFError) as error:
                raise td.errors.DataLossError(None, None, f"{name} is damaged: {error}") from None
            except OSError as error:
                raise atomic.file_error(error, f"Could not read weights {name}") from error
        _require_weights(model)
        with opened(source, name) as file:
            if legacy_files.is_legacy(file):
                legacy_files.read_weights(model, file, name, skip_mismatch, by_name)
            else:
                weight_files.read(model, file, name, skip_mismatch, objects_to_skip)
        return None
    if skip_mismatch or objects_to_skip:
        given = "skip_mismatch" if skip_mismatch else "objects_to_skip"
        raise ValueError(f"load_weights: {given} is for files of Keras (.weights.h5)")
    status = Checkpoint(model).read(name.removesuffix(SUFFIX))
    status.assert_nontrivial_match()
    missing = status.missing_among(model.weights)
    if missing:
        raise ValueError(f"{name} has no values of {', '.join(missing)}")
    return status
