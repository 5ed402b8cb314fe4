"""The kinds of files that programs keep their work in: how each is written and read.

``python -m tests.kinds_of_files full FOLDER`` writes each anew where the disk has no room for it,
``... closed FOLDER`` where the folder may not be written, and prints what is raised, as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import treadle as td

keras = td.keras


class Kind(NamedTuple):
    """A kind of files.

    Attributes:
        write: writes numbers that are given below a path.
        read: gives the numbers that are there.
        changed: reads them into something of another shape; None where nothing has a shape.
    """

    write: Callable[[Path, int], None]
    read: Callable[[Path], Any]
    changed: Callable[[Path], Any] | None = None


SIZE = 2000  # numbers: 8 KB


def numbers(value: int, size: int = SIZE) -> Any:
    return np.full(size, value, np.float32)


def model(value: int, size: int = SIZE) -> Any:
    found = keras.Sequential([keras.Input((1,)), keras.layers.Dense(size, use_bias=False)])
    found.set_weights([numbers(value, size)[None]])
    return found


def weights(found: Any) -> Any:
    return found.get_weights()[0][0]


def dataset(value: int) -> Any:
    return td.data.Dataset.from_tensor_slices(numbers(value).reshape(20, -1))


def elements(found: Any) -> Any:
    return np.concatenate([x.numpy() for x in found])


def restored(path: Path, size: int = SIZE) -> Any:
    v = td.Variable(np.zeros(size, np.float32))
    td.train.Checkpoint(v=v).read(path / "ck").assert_consumed()
    return v.numpy()


def loaded_weights(path: Path, size: int = SIZE) -> Any:
    found = model(0, size)
    found.load_weights(path / "m.weights.h5")
    return weights(found)


class Served(td.Module):
    def __init__(self, value: int) -> None:
        super().__init__()
        self.v = td.Variable(numbers(value))

    @td.function(input_signature=[td.TensorSpec([], td.float32)])
    def __call__(self, x: Any) -> Any:
        return self.v * x


def write_records(path: Path, value: int) -> None:
    with td.io.TFRecordWriter(path / "r.tfrecord") as writer:
        for row in numbers(value).reshape(25, -1):
            writer.write(row.tobytes())


def read_records(path: Path) -> Any:
    found = td.data.TFRecordDataset(path / "r.tfrecord")
    return np.concatenate([np.frombuffer(x.numpy(), np.float32) for x in found])


def write_gzip_records(path: Path, value: int) -> None:
    noise = np.random.default_rng(1)  # which gzip does not make smaller
    with td.io.TFRecordWriter(path / "r.gz", "GZIP") as writer:
        for row in numbers(value).reshape(25, -1):
            writer.write(noise.bytes(400) + row.tobytes())


def read_gzip_records(path: Path) -> Any:
    found = td.data.TFRecordDataset(path / "r.gz", "GZIP")
    return np.concatenate([np.frombuffer(x.numpy()[400:], np.float32) for x in found])


def write_events(path: Path, value: int) -> None:
    writer = td.summary.create_file_writer(str(path))
    with writer.as_default():
        td.summary.write("v", numbers(value), step=value)
    writer.close()


def read_events(path: Path) -> Any:
    """What the last file of events has."""
    file = max(files_below(path), key=lambda p: p.stat().st_mtime_ns)
    events = list(td.compat.v1.train.summary_iterator(str(file)))
    return td.make_ndarray(events[-1].summary.value[0].tensor)


def backup(path: Path, found: Any) -> Any:
    """The callback that keeps a model below a path."""
    hook = keras.callbacks.BackupAndRestore(path / "backup")
    found.compile("sgd", "mse")
    hook.set_model(found)
    return hook


def restored_backup(path: Path, size: int = SIZE) -> Any:
    found = model(0, size)
    backup(path, found).on_train_begin()
    return weights(found)


def saver(value: int, size: int = SIZE) -> tuple[Any, Any, Any]:
    """A graph's variable, a session where it has its value, and the Saver of the graph."""
    with td.Graph().as_default():
        v = td.compat.v1.get_variable("v", initializer=numbers(value, size), use_resource=True)
        session = td.compat.v1.Session()
        session.run(v.initializer)
        return v, session, td.compat.v1.train.Saver()


def write_saver(path: Path, value: int) -> None:
    _, session, kept = saver(value)
    kept.save(session, str(path / "graph"), write_meta_graph=False)


def read_saver(path: Path, size: int = SIZE) -> Any:
    v, session, kept = saver(0, size)
    kept.restore(session, str(path / "graph"))
    return session.run(v)


def other_elements(path: Path) -> Any:
    spec = td.TensorSpec([], td.int64)
    return elements(td.data.Dataset.load(path / "saved", element_spec=spec))


KINDS = {
    "checkpoint": Kind(
        lambda p, v: td.train.Checkpoint(v=td.Variable(numbers(v))).write(p / "ck"), restored,
        lambda p: restored(p, 3),
    ),
    "managed checkpoints": Kind(
        lambda p, v: td.train.CheckpointManager(
            td.train.Checkpoint(v=td.Variable(numbers(v))), str(p), 1, checkpoint_name="m"
        ).save(checkpoint_number=v),
        lambda p: td.train.load_variable(str(p), "v/.ATTRIBUTES/VARIABLE_VALUE"),
    ),
    ".keras": Kind(
        lambda p, v: model(v).save(p / "m.keras"),
        lambda p: weights(keras.models.load_model(p / "m.keras")),
        lambda p: model(0, 3).load_weights(p / "m.keras"),
    ),
    ".weights.h5": Kind(
        lambda p, v: model(v).save_weights(p / "m.weights.h5"), loaded_weights,
        lambda p: loaded_weights(p, 3),
    ),
    ".h5": Kind(
        lambda p, v: model(v).save(p / "m.h5"),
        lambda p: weights(keras.models.load_model(p / "m.h5", compile=False)),
        lambda p: model(0, 3).load_weights(p / "m.h5"),
    ),
    ".safetensors": Kind(
        lambda p, v: model(v).save(p / "m.safetensors"),
        lambda p: weights(keras.models.load_model(p / "m.safetensors")),
        lambda p: model(0, 3).load_weights(p / "m.safetensors"),
    ),
    "saved model": Kind(
        lambda p, v: td.saved_model.save(Served(v), str(p / "s")),
        lambda p: td.saved_model.load(str(p / "s"))(1.0).numpy(),
    ),
    "records": Kind(write_records, read_records),
    "compressed records": Kind(write_gzip_records, read_gzip_records),
    "events": Kind(write_events, read_events),
    "backup of fit": Kind(
        lambda p, v: backup(p, model(v)).on_epoch_end(0), restored_backup,
        lambda p: restored_backup(p, 3),
    ),
    "Saver": Kind(write_saver, read_saver, lambda p: read_saver(p, 3)),
    "cache": Kind(
        lambda p, v: elements(dataset(v).cache(p / "c")) is None,
        lambda p: elements(dataset(-1).cache(p / "c")),
        lambda p: elements(td.data.Dataset.range(3).cache(p / "c")),
    ),
    "saved dataset": Kind(
        lambda p, v: dataset(v).save(p / "saved"),
        lambda p: elements(td.data.Dataset.load(p / "saved")), other_elements,
    ),
    "snapshot": Kind(
        lambda p, v: elements(dataset(v).snapshot(p / "snap")) is None,
        lambda p: elements(dataset(1).snapshot(p / "snap")),
    ),
}  # fmt: skip


def write_log(path: Path, value: int, append: bool = False) -> None:
    log = keras.callbacks.CSVLogger(path / "log.csv", append=append)
    log.on_train_begin()
    try:
        log.on_epoch_end(0, {f"metric_{n}": value for n in range(SIZE // 2)})
    finally:
        log.on_train_end()


def write_text(path: Path, value: int) -> None:
    with td.io.gfile.GFile(path / "text.txt", "w") as file:
        for number in numbers(value):
            file.write(f"{number}\n")


def write_profile(path: Path, value: int) -> None:
    td.profiler.experimental.start(str(path / "profile"))
    for _ in range(40):
        td.add(value, 1)
    td.profiler.experimental.stop()


# Files without checksums, which programs write from their beginning.
PLAIN = {
    "a file written at once": lambda p, v: td.io.write_file(str(p / "f"), numbers(v).tobytes()),
    "text": write_text,
    "log of epochs": write_log,
    "log that goes on": lambda p, v: write_log(p, v, append=True),
    "profile": write_profile,
}  # fmt: skip
# Pipelines of other elements have a snapshot of their own beside it; a cache is written once.
WRITTEN_ONCE = ("cache",)


def files_below(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file())


def writer_of(name: str) -> Callable[[Path, int], Any]:
    return PLAIN[name] if name in PLAIN else KINDS[name].write


def attempt(name: str, path: Path) -> list[str]:
    """What is raised where a kind is written anew, in a folder that has it."""
    try:
        writer_of(name)(path, 2)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["no error", ""]


def main(fault: str, folder: str) -> None:
    warnings.simplefilter("ignore")
    for name in KINDS:  # what is compiled first is not what is tried
        path = Path(folder, "warm", name)
        path.mkdir(parents=True)
        KINDS[name].write(path, 1)
        KINDS[name].read(path)
    td.io.write_file(str(Path(folder, "warm", "f")), "compiled")
    if fault == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    elif os.geteuid() == 0:
        os.seteuid(65534)  # root may write everywhere
    found = {name: attempt(name, Path(folder, name)) for name in (*KINDS, *PLAIN)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
