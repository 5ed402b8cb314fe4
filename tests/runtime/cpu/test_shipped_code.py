"""Code that comes with treadle: which texts it serves, how it is found, and that it computes the
same as code that is compiled here."""

import ctypes
import os
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest

from tests.runtime.cpu.machines import PROCESSORS, ZEN3
from treadle.core.object_cache import ObjectCache
from treadle.core.switches import disabled
from treadle.runtime.cpu import shipped_code, shipping
from treadle.runtime.cpu.jit import Jit
from treadle.runtime.cpu.shipped_code import LEVELS, archive_path, code_name, level_of
from treadle.runtime.cpu.target import host, named
from treadle.runtime.tuning import Measured

pytestmark = pytest.mark.thorough

LEVEL = level_of(host())
needs_level = pytest.mark.skipif(LEVEL is None, reason="no code is shipped for this processor")
ADD = "define i64 @f(i64 %x) {\n  %y = add i64 %x, 3\n  ret i64 %y\n}\n"


def call(code, x):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("f"))(x)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of archives in the place of that which comes with treadle."""
    monkeypatch.setattr(shipped_code, "FOLDER", tmp_path / "shipped")
    (tmp_path / "shipped").mkdir()
    forget()
    yield tmp_path / "shipped"
    forget()


def forget():
    for kept in (shipped_code._archive, shipped_code._codes, shipped_code._names):
        kept.cache_clear()


def ship(folder, text, names=()):
    lists = {shipped_code.list_name(host()): dict.fromkeys(names, code_name(text))}
    level = shipping.Level({code_name(text): text}, lists)
    shipping._write(archive_path(folder, LEVEL), level, shipping.machine(LEVEL))


def load(tmp_path, text, name=None):
    compiler = Jit(host(), ObjectCache(tmp_path / "cache"))
    return compiler.load(text, name=name), compiler.counters


@pytest.mark.parametrize("target", [*PROCESSORS.values(), ZEN3], ids=lambda t: t.cpu)
def test_what_is_written_for_known_processors_is_shipped(target):
    whole = replace(target, features=target.features | named("x86-64-v3").features)
    found, shipped = dict(shipping.texts(whole)), shipping.written(level_of(whole))
    assert {"pool", "memory", "matmul float", "conv2d float", "tile_float_rows_6x2"} <= set(found)
    assert {f"winograd{k}x{k}_conv2d_backprop_filter float" for k in (3, 5)} <= set(found)
    assert not [name for name, text in found.items() if code_name(text) not in shipped.texts]
    # Found by name it is the same code, whatever caches the processor has.
    listed = shipped.lists[shipped_code.list_name(whole)]
    assert listed == {name: code_name(text) for name, text in found.items()}


def test_what_is_shipped_depends_on_no_measurement_and_on_no_instruction_that_it_does_not_use():
    """An Intel server tells of more instructions than its family has in common, and pauses shorter
    than is stated."""
    found = PROCESSORS["Intel server with AMX"]
    more = {"amx-bf16", "amx-int8", "avx512bf16", "avx512fp16"} | named("x86-64-v4").features
    slow = Measured(
        fma=2.0, loads=2.0, latency=4.0, forward=13.0, copy=64.0, moving=26.0, l1=5.0, l2=15.0,
        l3=360.0, memory=450.0, pause=44.0, nanoseconds=0.4,
    )  # fmt: skip
    server = replace(found, features=found.features | more, measured=slow)
    assert server.tuning.spins != found.tuning.spins
    shipped = shipping.written("x86-64-v4")
    texts = dict(shipping.texts(server))
    assert not [name for name, text in texts.items() if code_name(text) not in shipped.texts]
    listed = shipped.lists[shipped_code.list_name(server)]
    assert listed == {name: code_name(text) for name, text in texts.items()}


def test_a_level_is_chosen_by_instructions_and_vectors():
    assert level_of(named("x86-64-v4")) == "x86-64-v4"
    assert level_of(named("x86-64-v3")) == "x86-64-v3"
    assert level_of(named("x86-64-v4").without("avx512f")) == "x86-64-v3"
    assert level_of(named("x86-64-v3").without("fma")) is None
    assert level_of(named("sse2")) is None
    assert level_of(named("aarch64")) == "aarch64"


@needs_level
def test_shipped_code_is_loaded_and_kept(folder, tmp_path):
    ship(folder, ADD)
    code, counters = load(tmp_path, ADD)
    assert call(code, 4) == 7 and (counters.shipped, counters.compiled) == (1, 0)
    code, counters = load(tmp_path, ADD)
    assert call(code, 4) == 7 and (counters.shipped, counters.loaded_from_disk) == (0, 1)


@needs_level
def test_other_texts_are_compiled(folder, tmp_path):
    ship(folder, ADD.replace("3", "5"))
    code, counters = load(tmp_path, ADD)
    assert call(code, 4) == 7 and (counters.shipped, counters.compiled) == (0, 1)


@needs_level
def test_the_switch(folder, tmp_path):
    ship(folder, ADD)
    with disabled("shipped_code"):
        _, counters = load(tmp_path, ADD)
    assert (counters.shipped, counters.compiled) == (0, 1)


@needs_level
@pytest.mark.parametrize("damage", ["cut", "bytes", "empty", "missing"])
def test_a_damaged_archive_has_nothing(folder, tmp_path, damage):
    ship(folder, ADD)
    path = archive_path(folder, LEVEL)
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "bytes":
        with zipfile.ZipFile(path) as archive:
            codes = archive.getinfo(shipped_code.CODES)
            start = codes.header_offset + 30 + len(codes.filename) + 10  # in the data
        path.write_bytes(data[:start] + bytes(b ^ 255 for b in data[start : start + 20])
                         + data[start + 20 :])  # fmt: skip
    else:
        path.write_bytes(data[: len(data) // 2 if damage == "cut" else 0])
    code, counters = load(tmp_path, ADD)
    assert call(code, 4) == 7 and (counters.shipped, counters.compiled) == (0, 1)


@needs_level
def test_code_is_found_by_name_without_its_text(folder, tmp_path):
    ship(folder, ADD, ["three more"])

    def text():
        raise AssertionError("it was written")

    code, counters = load(tmp_path, text, "three more")
    assert call(code, 4) == 7 and (counters.shipped, counters.compiled) == (1, 0)
    code, counters = load(tmp_path, lambda: ADD, "other")
    assert call(code, 4) == 7 and (counters.shipped, counters.compiled) == (1, 0)


@needs_level
@pytest.mark.parametrize("change", ["size", "time", "time, then installed", "record of a machine"])
def test_names_count_for_the_sources_and_the_processor_that_they_were_written_for(
    folder, tmp_path, monkeypatch, change
):
    """Names of another treadle may stand for other texts: these are written and looked up."""
    ship(folder, ADD, ["f"])
    digest, _ = shipped_code.same_anywhere("runtime")
    path = archive_path(folder, LEVEL)
    written = path.stat().st_mtime_ns
    found = {
        "size": ("another", 0), "time": (digest, written + 1), "record of a machine": (digest, 0),
        "time, then installed": (digest, written + 1),
    }  # fmt: skip
    monkeypatch.setattr(shipped_code, "same_anywhere", lambda package: found[change])
    target = host()
    if change == "record of a machine":
        slow = {"fma": 9.0, "loads": 9.0, "latency": 9.0, "forward": 9.0, "copy": 9.0, "pause": 9.0}
        rest = {n: 0.0 for n in Measured.__annotations__ if n not in slow}
        target = replace(target, measured=Measured(**slow, **rest))
    if change == "time, then installed":  # its record is the last file of an installation
        time_of = shipped_code._time_of
        monkeypatch.setattr(
            shipped_code, "_time_of",
            lambda path: written + 1 if path.name == "RECORD" else time_of(path),
        )  # fmt: skip
    is_found = shipped_code.shipped_by_name("f", target) is not None
    assert is_found == (change == "time, then installed")


PROGRAM = """
import hashlib, numpy as np, treadle as td
from treadle.runtime.cpu.jit import jit
from treadle.runtime.cpu import shipped_code
from pathlib import Path
import sys
shipped_code.FOLDER = Path(sys.argv[1])
r = np.random.default_rng(0)
told = hashlib.sha256()
@td.function
def step(x, w, v):
    with td.GradientTape() as tape:
        tape.watch([w, v])
        y = td.nn.relu(td.nn.conv2d(x, w, 1, "SAME"))
        loss = td.reduce_sum(td.matmul(td.reshape(y, [x.shape[0], -1]), v) ** 2)
    return [loss, *tape.gradient(loss, [w, v])]
x, w = r.normal(size=(5, 9, 9, 3)), r.normal(size=(3, 3, 3, 18))
v = r.normal(size=(9 * 9 * 18, 37)) / 100
for value in step(*(a.astype("f") for a in (x, w, v))):
    told.update(value.numpy().tobytes())
print(jit().counters.shipped, told.hexdigest())
"""


@needs_level
def test_results_have_the_same_bits(tmp_path):
    shipping.write_level(tmp_path / "shipped", LEVEL)

    def run(folder, cache):
        environment = {**os.environ, "TREADLE_CACHE_DIR": str(tmp_path / cache)}
        command = [sys.executable, "-c", PROGRAM, str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    shipped, told = run(tmp_path / "shipped", "a")
    compiled, told_by_compiled = run(tmp_path / "none", "b")
    assert int(shipped) > 10 and int(compiled) == 0
    assert told == told_by_compiled


def test_archives_are_written_once(tmp_path, monkeypatch):
    level = shipping.Level({code_name(ADD): ADD}, {"names": {"f": code_name(ADD)}})
    shipping._write(tmp_path / "a.zip", level, shipping.machine("aarch64"))
    first = (tmp_path / "a.zip").read_bytes()
    monkeypatch.setattr(shipping, "object_file", None)
    shipping._write(tmp_path / "a.zip", level, shipping.machine("aarch64"))
    assert (tmp_path / "a.zip").read_bytes() == first
    other = shipping.Level({code_name("other"): ADD}, {})
    with pytest.raises(TypeError):
        shipping._write(tmp_path / "a.zip", other, shipping.machine("aarch64"))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        data = shipped_code.codes_of(archive)[code_name(ADD)]
    assert data[:4] == b"\x7fELF" and data[18] == 183  # for AArch64: its loader is LLVM's
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]


def test_every_level_has_processors():
    assert set(shipping.PROCESSORS) == set(LEVELS)
