"""``td.saved_model.load``: reads an object that `save` wrote, or TensorFlow. No code of the files
is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from treadle.core import errors
from treadle.core.context import context, recording
from treadle.core.origin import at, user_origin
from treadle.core.spec import ResourceSpec
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.random.generator import Generator
from treadle.ops.random.state import streams
from treadle.ops.shaping.creation import zeros
from treadle.ops.state import Variable, VariableAggregation, VariableSynchronization
from treadle.saved_model import files
from treadle.saved_model.assets import Asset
from treadle.saved_model.functions import (
    Record,
    Restored,
    read_literal,
    restored_function,
    restored_signature_function,
)
from treadle.saved_model.loaded import LoadedCallable, LoadedObject, set_aliases
from treadle.saved_model.options import LoadOptions
from treadle.saved_model.signatures import SignatureMap
from treadle.train.own_files import OwnReader
from treadle.train.safetensors import SUFFIX

_GRAPH = re.compile(r"^(?=graph )", re.MULTILINE)
_FAULTS = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError,
    StopIteration, errors.InternalError,
)  # fmt: skip


def load(export_dir: Any, tags: Any = None, options: LoadOptions | None = None) -> Any:
    """The object that `save` or TensorFlow wrote, with its variables and functions, in any process.

    Its attributes are named as they were. Functions take what their concrete functions take, and
    have gradients; variables can be assigned, trained, and restored by a `td.train.Checkpoint`.

    Args:
        export_dir: the folder.
        tags: "serve", or those given to `save` as `SaveOptions.extra_tags`.
        options: a `LoadOptions`.

    Returns:
        An object that has `signatures`, a mapping, beside its attributes.

    Raises:
        OSError: there is no saved model.
        DataLossError: it is damaged.
        UnimplementedError: it is of a newer version, or a function of a model of TensorFlow has
            operations that are not known, which its first call says.
        NotFoundError: it does not have the tags.
        ImportError: it is TensorFlow's, and the package protobuf is not installed.
        NotImplementedError: called while a function is traced.
    """
    if context.recorder is not None:
        raise NotImplementedError(
            "Calling td.saved_model.load() from a function is not supported: call it between calls "
            f"of functions{at(user_origin())}"
        )
    folder = Path(os.fsdecode(export_dir))
    asked = {tags} if isinstance(tags, str) else set(tags or ())
    options = options or LoadOptions()
    try:
        if not (folder / files.INDEX).is_file() and (folder / files.OF_TENSORFLOW).is_file():
            from treadle.saved_model.tensorflow import loading

            with recording(None):
                root, aliases = loading.load(folder, asked, options)
        else:
            content = files.read_index(folder)
            _check_tags(folder, content["tags"], asked)
            with recording(None):
                loader = _Loader(folder, content, options)
                root, aliases = loader.root(), loader.functions_by_alias()
    except _FAULTS as fault:
        raise files.damaged(folder, fault) from None
    if options.experimental_load_function_aliases:
        set_aliases(root, aliases)
    return root


def _check_tags(folder: Path, known: Sequence[str], asked: set[str]) -> None:
    if not asked <= set(known):
        raise errors.NotFoundError(
            None, None,
            f"{folder} has no tags {sorted(asked - set(known))}; it has {sorted(known)}",
        )  # fmt: skip


class _ArrayBytes(Mapping[str, bytes]):
    """The bytes of the arrays of graphs, by digest."""

    def __init__(self, file: OwnReader) -> None:
        self._file = file

    def __getitem__(self, digest: str) -> bytes:
        return self._file.read(f"arrays/{digest}").tobytes()

    def __contains__(self, digest: object) -> bool:
        return f"arrays/{digest}" in self._file.entries()

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return len(self._file.entries())


class _Loader:
    """A model that is being read."""

    def __init__(self, folder: Path, content: Record, options: LoadOptions) -> None:
        self.folder, self.options = folder, options
        self.records: list[Record] = content["objects"]
        self.functions: list[Record] = content["functions"]
        self.signatures: dict[str, list[int]] = content["signatures"]
        self.aliases: dict[str, list[int]] = content.get("aliases", {})
        self.constants = OwnReader(folder / (files.CONSTANTS + SUFFIX))
        self.variables = OwnReader(folder / (files.VARIABLES + SUFFIX))
        self.texts = _GRAPH.split((folder / files.GRAPHS).read_text())[1:]
        self.objects: dict[int, Any] = {}
        self.tensors: dict[str, Tensor] = {}
        self.restored: dict[int, Restored] = {}
        self.waiting: set[int] = set()  # tuples whose elements are being made
        if len(self.texts) != len(self.functions):
            raise ValueError(f"there are {len(self.texts)} graphs for {len(self.functions)}")

    def root(self) -> Any:
        """The first object, with all that it refers to."""
        for number in range(len(self.records)):
            self.object(number)
        for number, record in enumerate(self.records):
            self.fill(self.objects[number], record)
        root = self.objects[0]
        if not isinstance(root, LoadedObject):
            raise ValueError("its first object is a value")
        root.signatures = SignatureMap(
            {str(name): self.concrete(numbers) for name, numbers in self.signatures.items()}
        )
        return root

    def functions_by_alias(self) -> dict[str, Any]:
        """The functions by the names that `SaveOptions` gave them."""
        return {str(alias): self._aliased(numbers) for alias, numbers in self.aliases.items()}

    def _aliased(self, numbers: list[int]) -> Any:
        """The function that has just these concrete functions, or else a list of them."""
        for number, record in enumerate(self.records):
            if record["kind"] == "function" and set(record["concrete"]) == set(numbers):
                return self.objects[number]
        return [self.concrete([number]) for number in numbers]

    # -- objects ---------------------------------------------------------------------------------

    def object(self, number: int) -> Any:
        """An object. Objects and containers are filled when all of them are there."""
        if number not in self.objects:
            record = _nth(self.records, number)
            if number in self.waiting:
                raise ValueError("a tuple contains itself")
            self.waiting.add(number)
            self.objects[number] = self.made(record)
        return self.objects[number]

    def made(self, record: Record) -> Any:
        kind = record["kind"]
        if kind == "object":
            return self.empty_object(record)
        if kind == "variable":
            return self.variable(record)
        if kind == "constant":
            return self.tensor(record["value"])
        if kind == "asset":
            return Asset(files.inside(self.folder, f"{files.ASSETS}/{record['file']}"))
        if kind == "function":
            found = [self.graph(n) for n in record["concrete"]]
            return restored_function(record, found, self.tensor)
        if kind == "concrete":
            return self.concrete(record["concrete"])
        if kind == "generator":
            return Generator(state=self.object(record["children"]["_state_var"]))
        if kind == "tuple":
            return tuple(self.elements(record))
        if kind in ("list", "dict"):
            return [] if kind == "list" else {}
        raise ValueError(f"there is no kind {kind!r} of objects")

    def empty_object(self, record: Record) -> LoadedObject:
        kind = LoadedCallable if "__call__" in record["children"] else LoadedObject
        made = kind()
        if record["name"] is not None:
            made._name = str(record["name"])
        return made

    def variable(self, record: Record) -> Variable:
        spec, name = read_literal(record["type"]), record["value"]
        shape, dtype = self.variables.entries()[name]
        if not isinstance(spec, ResourceSpec) or spec.dtype is not dtype:
            raise ValueError(f"variable {name} is {spec}, and its value has dtype {dtype.name}")
        skip = self.options.experimental_skip_checkpoint
        value = zeros(shape, dtype) if skip else self.variables.read(name)
        variable = Variable(
            convert_to_tensor(value, dtype), trainable=bool(record["trainable"]), shape=spec.shape,
            synchronization=VariableSynchronization[record["synchronization"]],
            aggregation=VariableAggregation[record["aggregation"]],
        )  # fmt: skip
        variable.name = str(record["name"])
        return variable

    def tensor(self, name: str) -> Tensor:
        """A constant, one tensor wherever it is used."""
        if name not in self.tensors:
            _, dtype = self.constants.entries()[name]
            self.tensors[name] = convert_to_tensor(self.constants.read(name), dtype)
        return self.tensors[name]

    def elements(self, record: Record) -> list[Any]:
        """The elements of a list or tuple."""
        found = {int(name): self.object(child) for name, child in record["children"].items()}
        found |= read_literal(record["plain"])
        return [found[place] for place in range(len(found))]

    def fill(self, value: Any, record: Record) -> None:
        """Give an object or a container what it refers to."""
        if isinstance(value, list):
            value += self.elements(record)
        elif isinstance(value, dict):
            value |= {name: self.object(child) for name, child in record["children"].items()}
            value |= read_literal(record["plain"])
        elif isinstance(value, LoadedObject):
            for name, child in record["children"].items():
                value.hold(name, self.object(child))

    # -- functions -------------------------------------------------------------------------------

    def graph(self, number: int) -> Restored:
        """A concrete function before it belongs to a function."""
        if number not in self.restored:
            record, text = _nth(self.functions, number), self.texts[number]
            data = _ArrayBytes(self.constants)
            self.restored[number] = Restored(record, text, data, self.captured)
        return self.restored[number]

    def concrete(self, numbers: Sequence[int]) -> Any:
        """A concrete function that stands alone, with a trace for each rank or a single one."""
        record = {"concrete": numbers, "parameters": _nth(self.functions, numbers[0])["parameters"]}
        return restored_signature_function(record, [self.graph(number) for number in numbers])

    def captured(self, described: Sequence[Any]) -> Any:
        """What stands for a capture."""
        kind, which = described
        if kind == "stream":
            return streams.variable(None if which is None else int(which))
        if kind == "constant":
            return self.tensor(which)
        found = self.object(which)
        return found.asset_path if isinstance(found, Asset) else found


def _nth(records: Sequence[Record], number: int) -> Record:
    if not isinstance(number, int) or not 0 <= number < len(records):
        raise ValueError(f"it has no number {number!r}")
    return records[number]
