"""Checkpoints on disk: the format, damaged files, full disks, and a saver that is killed."""

import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import treadle as td
from treadle.train import atomic
from treadle.train.safetensors import File, write

SAVER = Path(__file__).parent / "saver.py"
ENVIRONMENT = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
KILLS = int(os.environ.get("TREADLE_SAVER_KILLS", "5"))


@pytest.fixture
def saved(tmp_path):
    """A checkpoint of three variables, and its file."""
    checkpoint = td.train.Checkpoint(
        a=td.Variable(np.arange(6, dtype=np.float32).reshape(2, 3)), b=td.Variable(["x", "yz"]),
        c=td.Variable(7),
    )  # fmt: skip
    prefix = checkpoint.write(tmp_path / "ck")
    return prefix, Path(f"{prefix}.safetensors")


ARRAYS = {
    "f32": np.arange(6, dtype=np.float32).reshape(2, 3), "f64": np.array(2.5),
    "f16": np.ones([3], np.float16), "bf16": np.array([1, 2], ml_dtypes.bfloat16),
    "flags": np.array([True, False]), "none": np.zeros([0, 4], np.int8),
    **{f"{k}{n}": np.array([3, 1], f"{k}{n}") for k in ("int", "uint") for n in (8, 16, 32, 64)},
}  # fmt: skip


def test_the_library_reads_what_is_written(tmp_path):
    path = tmp_path / "a.safetensors"
    write(path, ARRAYS, {"note": "a \"text\" with é"}, "arrays")
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata()["note"] == "a \"text\" with é"
        assert set(file.keys()) == set(ARRAYS)
        for name, array in ARRAYS.items():
            if name != "bf16":  # which the library gives to PyTorch only
                np.testing.assert_array_equal(file.get_tensor(name), array)
                assert file.get_tensor(name).dtype == array.dtype
    header = json.loads(path.read_bytes()[8:][: int.from_bytes(path.read_bytes()[:8], "little")])
    for name, array in ARRAYS.items():
        assert header[name]["data_offsets"][0] % array.itemsize == 0


def test_what_the_library_writes_is_read(tmp_path):
    path = tmp_path / "a.safetensors"
    given = {name: array for name, array in ARRAYS.items() if name != "bf16"}
    safetensors.numpy.save_file(given, path, {"by": "the library"})
    file = File(path)
    assert file.texts == {"by": "the library"} and set(file.entries) == set(given)
    for name, array in given.items():
        np.testing.assert_array_equal(file.read(name), array)
    assert td.train.load_variable(path, "f64") == 2.5
    v = td.Variable(np.zeros([2, 3], np.float32), name="f32")
    td.train.Checkpoint(v=v).read(path).assert_existing_objects_matched()
    np.testing.assert_array_equal(v, given["f32"])


def test_the_library_reads_a_checkpoint(saved):
    _, path = saved
    arrays = safetensors.numpy.load_file(path)
    np.testing.assert_array_equal(
        arrays["a/.ATTRIBUTES/VARIABLE_VALUE"], np.arange(6).reshape(2, 3)
    )


def read_all(prefix):
    reader = td.train.load_checkpoint(prefix)
    return {n: np.asarray(reader.get_tensor(n)) for n in reader.get_variable_to_shape_map()}


def test_flipped_bits_are_found(saved):
    prefix, path = saved
    good = path.read_bytes()
    for bit in range(0, 8 * len(good), 5):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        with pytest.raises((td.errors.DataLossError, td.errors.UnimplementedError), match="ck"):
            read_all(prefix)
    path.write_bytes(good)
    assert len(read_all(prefix)) == 3


def test_truncated_and_longer_files_are_found(saved):
    prefix, path = saved
    good = path.read_bytes()
    for size in range(len(good)):
        path.write_bytes(good[:size])
        with pytest.raises(td.errors.DataLossError, match=r"ck\.safetensors is damaged"):
            td.train.load_checkpoint(prefix)
    path.write_bytes(good + b"\0")
    with pytest.raises(td.errors.DataLossError, match="its header speaks of"):
        td.train.load_checkpoint(prefix)


def test_a_damaged_value_changes_no_variable(saved):
    prefix, path = saved
    bad = bytearray(path.read_bytes())
    bad[-1] ^= 1
    path.write_bytes(bad)
    a, c = td.Variable(np.zeros([2, 3], np.float32)), td.Variable(0)
    b = td.Variable(["", ""])
    with pytest.raises(td.errors.DataLossError, match=r"'b/\.ATTR.*do not fit their checksum"):
        td.train.Checkpoint(a=a, b=b, c=c).read(prefix)
    assert not a.numpy().any() and c.numpy() == 0 and b.numpy().tolist() == [b"", b""]


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table["x"].update(data_offsets=[0, 1 << 40]),
        lambda table: table["x"].update(shape=[-2, 3]),
        lambda table: table["x"].update(shape="many"),
        lambda table: table["x"].update(dtype=None),
        lambda table: table["x"].pop("dtype"),
        lambda table: table.update(x=3),
        lambda table: table.update(__metadata__=[]),
        lambda table: table["__metadata__"].update({"treadle.graph": "[{]"}),
        lambda table: table["__metadata__"].update({
            "treadle.graph": '[{"children": {"a": 9}, "values": {}, "name": "", "slots": []}]'
        }),
    ],
)  # fmt: skip
def test_a_header_made_to_harm_is_an_error(tmp_path, change):
    path = tmp_path / "ck.safetensors"
    safetensors.numpy.save_file({"x": np.zeros([2, 3], np.float32)}, path, {"k": "v"})
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    table = json.loads(data[8 : 8 + length])
    change(table)
    header = json.dumps(table, separators=(",", ":"))
    if "treadle" in header:  # with a good checksum
        table["__metadata__"]["treadle.header"] = "0" * 8
        header = json.dumps(table, separators=(",", ":"))
        mark = f'"treadle.header":"{zlib.crc32(header.encode()):08x}"'
        header = header.replace('"treadle.header":"00000000"', mark)
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + data[8 + length :])
    with pytest.raises((td.errors.DataLossError, td.errors.UnimplementedError)):
        td.train.Checkpoint().read(tmp_path / "ck")


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    checkpoint = td.train.Checkpoint(v=td.Variable(1.0))
    (tmp_path / "file").write_text("")
    with pytest.raises(td.errors.OpError, match="Could not write checkpoint .*ck-1"):
        checkpoint.save(tmp_path / "file" / "ck")
    assert checkpoint.save_counter.numpy() == 0

    def refused(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refused)  # root may write everywhere
    with pytest.raises(td.errors.PermissionDeniedError, match=r"Could not write checkpoint .*ck-1"):
        checkpoint.save(tmp_path / "ck")


def test_a_full_disk_is_an_error_and_the_old_checkpoint_stays(tmp_path, monkeypatch):
    v = td.Variable(np.ones(1000, np.float32))
    checkpoint = td.train.Checkpoint(v=v)
    checkpoint.write(tmp_path / "ck")
    room, real = [2000], os.write

    def little(file, data):
        if room[0] <= 0:
            raise OSError(28, "No space left on device")
        count = real(file, data[: min(room[0], len(data))])
        room[0] -= count
        return count

    monkeypatch.setattr(atomic.os, "write", little)
    v.assign(v * 2)
    message = r"Could not write checkpoint .*ck\.safetensors; No space left on device"
    with pytest.raises(td.errors.ResourceExhaustedError, match=message):
        checkpoint.write(tmp_path / "ck")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["ck.safetensors"]
    checkpoint.read(tmp_path / "ck").assert_consumed()
    assert v.numpy()[0] == 1.0


def test_a_limit_of_the_system_is_an_error_and_nothing_is_left(tmp_path):
    program = f"""
import numpy as np, treadle as td
checkpoint = td.train.Checkpoint(v=td.Variable(np.zeros(100_000)))
try:
    checkpoint.save({str(tmp_path / "ck")!r})
except td.errors.ResourceExhaustedError as error:
    print(error)
"""

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    done = subprocess.run(
        [sys.executable, "-c", program], preexec_fn=limited, capture_output=True, text=True,
        env=ENVIRONMENT,
    )  # fmt: skip
    assert "File too large" in done.stdout, done.stderr
    assert os.listdir(tmp_path) == []


def test_half_written_files_of_dead_processes_are_removed(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    own = f".ck.safetensors.{socket.gethostname()}-"
    left, alive = tmp_path / f"{own}{dead.pid}.part", tmp_path / f"{own}1.part"
    left.write_text("half")
    alive.write_text("of another process")
    td.train.Checkpoint(v=td.Variable(1.0)).write(tmp_path / "ck")
    assert not left.exists() and alive.exists()


def whole(prefix):
    """The number of a saving, which all its values have."""
    values = read_all(prefix)
    step = values["step/.ATTRIBUTES/VARIABLE_VALUE"].item()
    assert len(values) == 5 and all((value == step).all() for value in values.values())
    return step


def test_a_saver_that_is_killed_leaves_the_last_good_checkpoint(tmp_path):
    """Killed at any moment; each time the next saver goes on from a whole checkpoint."""
    chance, before, moments, pace = random.Random(1), 0, [], 0.0
    for kill in range(KILLS):
        saver = subprocess.Popen(
            [sys.executable, str(SAVER), str(tmp_path)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=ENVIRONMENT,
        )  # fmt: skip
        assert saver.stdout.readline() == b"ready\n", saver.stderr.read()
        since = time.monotonic()
        if not kill:  # there is a checkpoint to go on from; how long one takes is the machine's
            while td.train.latest_checkpoint(tmp_path) is None and saver.poll() is None:
                time.sleep(0.001)
            pace = time.monotonic() - since
        time.sleep(chance.uniform(0.0, 5 * pace))
        saver.send_signal(signal.SIGKILL)
        saver.wait()
        moments.append(len(list(tmp_path.glob(".*.part"))))
        latest = td.train.latest_checkpoint(tmp_path)
        assert latest is not None
        for path in tmp_path.glob("*.safetensors"):  # all that is there is whole
            whole(path.with_suffix(""))
        assert whole(latest) >= before
        before = whole(latest)
    assert before > 0
    report = os.environ.get("TREADLE_SAVER_REPORT")
    if report:
        Path(report).write_text(json.dumps(
            {"kills": KILLS, "in the middle of writing": sum(map(bool, moments)), "last": before}
        ))  # fmt: skip
