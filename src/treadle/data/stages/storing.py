"""Stages that keep elements in files: cache with a file name, snapshot, and what save wrote."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import Leaves, leaves_of
from treadle.data.stages.failures import Failure, carried, released
from treadle.data.stages.functions import DatasetFunction, Mapped, argument_specs
from treadle.data.stages.nesting import interleaved
from treadle.data.stages.randomness import Randomness
from treadle.data.stages.stage import Stage
from treadle.io.checksums import crc32c
from treadle.io.elements import ElementWriter, elements, leaf_specs, move, read_header, spec_text
from treadle.iteration import at, user_origin

METADATA = "dataset.json"


# -- structures of elements ------------------------------------------------------------------------


def spec_as_json(spec: Any) -> Any:
    """The structure of elements in the types of JSON.

    Raises:
        TypeError: elements of datasets, or of classes of the user.
    """
    if isinstance(spec, td.TensorSpec):
        return {"leaf": spec_text([(_dims(spec), spec.dtype)])[0]}
    if isinstance(spec, tuple):
        names = list(getattr(spec, "_fields", ()))
        return {"tuple": [spec_as_json(s) for s in spec], "names": names}
    if isinstance(spec, Mapping):
        return {"dict": [[key, spec_as_json(spec[key])] for key in spec]}
    if isinstance(spec, td.RaggedTensorSpec):
        offsets = spec.row_splits_dtype.name
        return {"ragged": spec_text([(_dims(spec), spec.dtype)])[0], "rank": spec.ragged_rank,
                "offsets": offsets}  # fmt: skip
    if isinstance(spec, td.SparseTensorSpec):
        return {"sparse": spec_text([(_dims(spec), spec.dtype)])[0]}
    if spec is None:
        return None
    raise TypeError(f"elements with {spec!r} cannot be kept in files{at(user_origin())}")


def _dims(spec: Any) -> Any:
    """The dims of a spec; None for an unknown rank."""
    return None if spec.shape.rank is None else spec.shape


def spec_of_json(text: Any) -> Any:
    """The structure that `spec_as_json` was given; named tuples are tuples."""
    if text is None:
        return None
    if "leaf" in text:
        ((shape, dtype),) = leaf_specs([text["leaf"]])
        return td.TensorSpec(shape, dtype)
    if "ragged" in text:
        ((shape, dtype),) = leaf_specs([text["ragged"]])
        return td.RaggedTensorSpec(shape, dtype, text["rank"], td.as_dtype(text["offsets"]))
    if "sparse" in text:
        ((shape, dtype),) = leaf_specs([text["sparse"]])
        return td.SparseTensorSpec(shape, dtype)
    if "tuple" in text:
        return tuple(map(spec_of_json, text["tuple"]))
    return {key: spec_of_json(part) for key, part in text["dict"]}


def _check(path: str, header: Mapping[str, Any], spec: Any) -> None:
    """InvalidArgumentError where a file has elements of another spec."""
    if header.get("spec") != spec_as_json(spec):
        raise td.errors.InvalidArgumentError(
            None, None,
            f"{path} holds elements of another dataset, {spec_of_json(header['spec'])!r}, not "
            f"{spec!r}: delete it or take another name",
        )  # fmt: skip


def _dtypes(spec: Any) -> list[Any]:
    return [leaf.dtype for leaf in leaves_of(spec)]


# -- one file --------------------------------------------------------------------------------------


class FileCache(Stage):
    """The elements of the first complete pass, kept in a file.

    Args:
        path: the file; where it is there, it is read and nothing else.
    """

    def __init__(self, inner: Stage, path: str) -> None:
        self.inner, self.spec, self.path = inner, inner.spec, f"{path}.elements"
        spec_as_json(inner.spec)

    def open(self) -> Iterator[Leaves]:
        if os.path.exists(self.path):
            _check(self.path, read_header(self.path), self.spec)
            return elements(self.path)
        return released(self._written(), self)

    def _written(self) -> Iterator[Any]:
        writer = ElementWriter(self.path, {"spec": spec_as_json(self.spec)}, _dtypes(self.spec))
        whole = True
        try:
            for leaves in carried(self.inner.open()):
                if type(leaves) is Failure:
                    whole = False
                else:
                    writer.write(leaves)
                yield leaves
            if whole:
                writer.finish()
        finally:
            writer.abandon()

    def cardinality(self) -> int:
        return self.inner.cardinality()


# -- folders of files ------------------------------------------------------------------------------


class _Folder:
    """Writes elements into a folder, a file for each shard, which are valid once all are written.

    Args:
        kind: how the files are compressed: "", "GZIP" or "ZLIB".
    """

    def __init__(self, path: str, spec: Any, kind: str) -> None:
        self.path, self.spec, self.kind = path, spec, kind
        self.run = uuid.uuid4().hex[:8]
        self.text, self.dtypes = spec_as_json(spec), _dtypes(spec)
        self.writers: dict[int, ElementWriter] = {}
        self.whole: list[str] = []  # files that nothing has told of yet
        self.counts: dict[int, int] = {}
        td.io.gfile.makedirs(path)

    def _name(self, shard: int) -> str:
        return f"shard-{shard:05d}.{self.run}.elements"

    def write(self, leaves: Leaves, shard: int) -> None:
        if shard not in self.writers:
            name = os.path.join(self.path, self._name(shard))
            self.writers[shard] = ElementWriter(name, {"spec": self.text}, self.dtypes, self.kind)
            self.counts[shard] = 0
        self.writers[shard].write(leaves)
        self.counts[shard] += 1

    def finish(self) -> None:
        before = [n for n in td.io.gfile.listdir(self.path) if n.endswith(".elements")]
        for shard, writer in self.writers.items():
            writer.finish()
            self.whole.append(os.path.join(self.path, self._name(shard)))
        shards = [[self._name(s), self.counts[s]] for s in sorted(self.counts)]
        found = {"spec": self.text, "compression": self.kind, "shards": shards}
        text = json.dumps({**found, "checksum": _checksum(found)})
        place = os.path.join(self.path, METADATA)
        self.whole.append(f"{place}.{self.run}")
        with td.io.gfile.GFile(f"{place}.{self.run}", "w") as file:
            file.write(text)
        move(f"{place}.{self.run}", place)
        self.whole = []
        for name in before:  # of a dataset that was here before
            td.io.gfile.remove(os.path.join(self.path, name))

    def abandon(self) -> None:
        """Delete what was written; does nothing after `finish`."""
        for writer in self.writers.values():
            writer.abandon()
        for path in self.whole:
            if td.io.gfile.exists(path):
                td.io.gfile.remove(path)
        self.whole = []


def metadata(path: str) -> dict[str, Any]:
    """What is known of a folder of elements.

    Raises:
        NotFoundError: there is no dataset in it.
        DataLossError: its description is damaged.
    """
    place = os.path.join(path, METADATA)
    text = td.io.gfile.GFile(place, "rb").read()
    try:
        found: dict[str, Any] = json.loads(text)
        checksum = found.pop("checksum", None)  # there was none in the first files
        if checksum is not None and checksum != _checksum(found):
            raise ValueError
        spec_of_json(found["spec"]), found["compression"], list(found["shards"])
        return found
    except (ValueError, KeyError, TypeError, AttributeError):
        raise td.errors.DataLossError(
            None, None, f"{place}: not a description of a dataset, or a damaged one"
        ) from None


def _checksum(description: Mapping[str, Any]) -> int:
    """The checksum of what is known of a folder."""
    return crc32c(json.dumps(description, sort_keys=True).encode())


def save(stage: Stage, path: str, kind: str, shard: Callable[[Leaves], int] | None) -> None:
    """Write the elements of a stage into a folder.

    Args:
        shard: gives the number of the file of an element.
    """
    folder = _Folder(path, stage.spec, kind)
    try:
        for leaves in stage.open():
            folder.write(leaves, 0 if shard is None else shard(leaves))
        folder.finish()
    finally:
        folder.abandon()


class Shard(Stage):
    """The elements of a file of a folder."""

    def __init__(self, path: str, spec: Any, kind: str, count: int) -> None:
        self.path, self.spec, self.kind, self.count = path, spec, kind, count

    def open(self) -> Iterator[Leaves]:
        found = 0
        for leaves in elements(self.path, self.kind):
            found += 1
            yield leaves
        if found != self.count:
            raise td.errors.DataLossError(
                None, None, f"{self.path}: {found} elements in place of {self.count}"
            )

    def cardinality(self) -> int:
        return self.count


class Shards(Stage):
    """The elements of the files of a folder, of one after another in turn."""

    def __init__(self, spec: Any, parts: list[Shard]) -> None:
        self.spec, self.parts = spec, parts

    def open(self) -> Iterator[Leaves]:
        count = max(len(self.parts), 1)
        return released(interleaved(iter(self.parts), lambda s: carried(s.open()), count, 1), self)

    def cardinality(self) -> int:
        return sum(part.count for part in self.parts)


def shards_of(path: str, spec: Any) -> Shards:
    """The elements of a folder.

    Args:
        spec: what the elements should be; None for what they are.

    Raises:
        NotFoundError: there is no dataset in the folder.
        InvalidArgumentError: it has elements of another spec.
    """
    known = metadata(path)
    if spec is None:
        spec = spec_of_json(known["spec"])
    elif _dtypes(spec) != _dtypes(spec_of_json(known["spec"])):
        _check(path, known, spec)
    kind = known["compression"]
    files = [(os.path.join(path, name), count) for name, count in known["shards"]]
    return Shards(spec, [Shard(file, spec, kind, count) for file, count in files])


class Snapshot(Stage):
    """The elements of the first complete pass, kept in a folder, for this and other programs.

    Args:
        path: the folder, in which each pipeline has a folder of its own.
        shard: on leaves, gives the number of the file of an element (int64).
        read: gives the stage that reads the files of a folder.
    """

    def __init__(
        self, inner: Stage, path: str, kind: str, shard: Mapped | None,
        read: Callable[[Shards], Stage],
    ) -> None:  # fmt: skip
        self.inner, self.spec, self.kind, self.read = inner, inner.spec, kind, read
        self.shard = shard
        self.path = os.path.join(path, fingerprint(inner))
        spec_as_json(inner.spec)

    def open(self) -> Iterator[Leaves]:
        if os.path.exists(os.path.join(self.path, METADATA)):
            return self.read(shards_of(self.path, self.spec)).open()
        return released(self._written(), self)

    def _written(self) -> Iterator[Any]:
        folder, shard = _Folder(self.path, self.spec, self.kind), shard_function(self.shard)
        whole = True
        try:
            for leaves in carried(self.inner.open()):
                if type(leaves) is Failure:
                    whole = False
                else:
                    folder.write(leaves, 0 if shard is None else shard(leaves))
                yield leaves
            if whole:
                folder.finish()
        finally:
            folder.abandon()

    def cardinality(self) -> int:
        return self.inner.cardinality()


def sharding(function: Callable[..., Any] | None, spec: Any, what: str) -> Mapped | None:
    """A function of the user that gives the number of the file of an element.

    Raises:
        ValueError: it does not return an integer scalar.
    """
    if function is None:
        return None
    mapped = Mapped(function, argument_specs(spec))
    if not (isinstance(mapped.spec, td.TensorSpec) and mapped.spec.dtype.is_integer):
        raise ValueError(
            f"{what}: shard_func must return an int64 scalar, not {mapped.spec!r}"
            f"{at(user_origin())}"
        )
    return mapped


def shard_function(mapped: Mapped | None) -> Callable[[Leaves], int] | None:
    """The function on leaves."""
    if mapped is None:
        return None
    call = mapped.bound_to(mapped.captures)
    return lambda leaves: int(call(leaves)[0])


# -- which pipeline it is --------------------------------------------------------------------------


def fingerprint(stage: Stage) -> str:
    """A name for a pipeline: pipelines of one name have equal elements."""
    digest = hashlib.blake2b(digest_size=12)
    _add(digest, stage)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, Stage):
        digest.update(type(value).__name__.encode())
        for name, part in sorted(vars(value).items(), key=itemgetter(0)):
            if name != "origin":
                _add(digest, part)
    elif isinstance(value, np.ndarray):
        digest.update(repr((value.dtype.str, value.shape)).encode())
        plain = value.dtype.hasobject
        digest.update(repr(value.tolist()).encode() if plain else np.ascontiguousarray(value).data)
    elif isinstance(value, list | tuple):
        digest.update(f"{type(value).__name__}{len(value)}".encode())
        for part in value:
            _add(digest, part)
    elif isinstance(value, Mapped) and not value.eager:
        lines = str(value.concrete.graph).splitlines()
        digest.update("\n".join(line.partition("  # ")[0] for line in lines).encode())
    elif isinstance(value, Mapped | DatasetFunction):
        code = value.fn.__code__
        digest.update(code.co_code + repr((code.co_consts, code.co_names)).encode())
    elif isinstance(value, Randomness):
        digest.update(b"random")  # what was drawn first is kept
    elif callable(value):
        digest.update(getattr(value, "__qualname__", type(value).__name__).encode())
        _add(digest, list(getattr(value, "args", ())))
    else:
        digest.update(repr(value).encode())


