"""The record of a machine: where it comes from, what follows from it, and what it names."""

import dataclasses
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.machines import ALL, MACHINES, PROCESSORS, RUNNABLE
from treadle.cli import main
from treadle.core.object_cache import ObjectCache
from treadle.machine import MEANINGS, facts
from treadle.runtime import stored
from treadle.runtime.cpu import caches
from treadle.runtime.cpu.caches import DEFAULTS, from_sysctl, read_caches
from treadle.runtime.cpu.jit import Jit, jit
from treadle.runtime.cpu.matmul.tiling import Blocks
from treadle.runtime.cpu.target import baseline, host, named, this_machine, using
from treadle.runtime.fusion.limits import Limits
from treadle.runtime.options import Options
from treadle.runtime.tuning import Cache, Tuning

# -- caches ----------------------------------------------------------------------------------------


def system(root, *levels, **wrong):
    """A folder that describes caches: (level, type, size, ways, line)."""
    for number, values in enumerate(levels):
        folder = root / f"sys/devices/system/cpu/cpu0/cache/index{number}"
        folder.mkdir(parents=True)
        names = "level", "type", "size", "ways_of_associativity", "coherency_line_size"
        for name, value in zip(names, values, strict=True):
            if value is not None:
                (folder / name).write_text(f"{value}\n")
    return root


def test_what_the_system_tells(tmp_path):
    found = read_caches(system(
        tmp_path, (1, "Data", "48K", 12, 64), (1, "Instruction", "32K", 8, 64),
        (2, "Unified", "1024K", 16, 64), (3, "Unified", "32768K", 16, 64),
    ))  # fmt: skip
    assert found == PROCESSORS["AMD Zen 5"].caches


@pytest.mark.parametrize(
    ("levels", "wanted"),
    [
        ([], DEFAULTS),
        ([(1, "Data", "64K", 0, None)], (Cache(64 << 10, 8), *DEFAULTS[1:])),  # ways not told
        ([(1, "Data", "?", 8, 64)], DEFAULTS),
        ([(1, "Data", "-1", 8, 64)], DEFAULTS),
        ([(1, None, "32K", 8, 64)], DEFAULTS),
        ([(1, "Data", "32K", 7, 48)], (Cache(32 << 10, 8), *DEFAULTS[1:])),
        (
            [(1, "Data", "64K", 4, 64), (2, "Unified", "1M", 16, 64)],  # no third level
            (Cache(64 << 10, 4), Cache(1 << 20, 16), Cache(1 << 20, 16)),
        ),
    ],
)
def test_what_is_not_told_has_usual_values(tmp_path, levels, wanted):
    assert read_caches(system(tmp_path, *levels)) == wanted


def test_macos():
    names = {1: ("hw.perflevel0.l1dcachesize", "hw.l1dcachesize"), 2: ("hw.l2cachesize",), 3: ()}
    text = "hw.cachelinesize: 128\nhw.perflevel0.l1dcachesize: 131072\nhw.l1dcachesize: 65536\n"
    found = from_sysctl(text + "hw.l2cachesize: 16777216\nhw.nothing: x\n", names)
    assert found == {1: Cache(128 << 10, 8, 128), 2: Cache(16 << 20, 8, 128)}
    assert from_sysctl("", names) == {}


def test_no_sysctl(monkeypatch):
    def refuse(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(caches.sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", refuse)
    assert read_caches() == DEFAULTS


def size_told(cache, boot, size):
    """The size of the first cache in a process where the system says that it is `size`."""
    code = (
        "from treadle.runtime.cpu import target\n"
        "from treadle.runtime.tuning import Cache\n"
        "other = Cache(1 << 20, 8), Cache(1 << 21, 8)\n"
        f"target.read_caches = lambda: (Cache({size}, 8), *other)\n"
        f"target.boot_id = lambda: {boot!r}\n"
        "print(target.this_machine().caches[0].size)\n"
    )
    environment = {**os.environ, "TREADLE_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="the key is made of /proc/cpuinfo")
def test_the_caches_are_asked_for_once_while_the_system_runs(tmp_path):
    assert size_told(tmp_path, "a", 1 << 14) == 1 << 14
    assert size_told(tmp_path, "a", 1 << 15) == 1 << 14
    assert size_told(tmp_path, "b", 1 << 15) == 1 << 15
    assert size_told(tmp_path, "b", 1 << 16) == 1 << 15
    assert size_told(tmp_path, "", 1 << 16) == 1 << 16


@pytest.mark.parametrize("text", ["", "32768/8/64", "a/b/c d/e/f g/h/i", "0/0/0 1/1/1 1/1/1"])
def test_texts_that_name_no_caches(text):
    with pytest.raises(ValueError, match=r"."):
        caches.caches_of(text)
    assert caches.caches_of(caches.caches_text(DEFAULTS)) == DEFAULTS


# -- the record ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", PROCESSORS)
def test_known_processors(family):
    tuning = PROCESSORS[family].tuning
    assert tuning.family == family
    shared = dataclasses.replace(tuning, family="", l2=Cache(1 << 20, 16))
    assert shared == dataclasses.replace(
        PROCESSORS["AMD Zen 5"].tuning, family="", pack_rows=tuning.pack_rows,
        pack_columns=tuning.pack_columns, wide_rows=tuning.wide_rows,
        pack_colliding=tuning.pack_colliding, fill_rows=tuning.fill_rows,
        alike_rows=tuning.alike_rows,
        far_rows=tuning.far_rows,
        pages=tuning.pages,
    )  # fmt: skip
    assert (tuning.near, tuning.chains) == (1 << 20, 8)
    assert (tuning.task_flops, tuning.task_bytes, tuning.task_elements) == (1 << 18, 1 << 18, 8192)


@pytest.mark.parametrize("name", ALL)
def test_every_machine_has_a_sound_record(name):
    tuning = ALL[name].tuning
    numbers = [getattr(tuning, f.name) for f in dataclasses.fields(Tuning)]
    assert all(n > 0 for n in numbers if isinstance(n, int))
    assert tuning.l1.size <= tuning.l2.size <= tuning.l3.size
    assert tuning.l1.period * tuning.l1.ways == tuning.l1.size
    assert tuning.vector_bits == ALL[name].vector_bits


def test_known_processors_have_the_same_blocks():
    """What was fitted to one of them was measured on the other, too."""
    a, b = PROCESSORS.values()
    assert Limits.of(a.tuning) == Limits.of(b.tuning)
    assert Blocks.of(a) == Blocks.of(b)


def test_narrower_vectors_have_a_record_of_their_own():
    wide, narrow = baseline(4), baseline(4).without("avx512f", "avx512bw")
    assert (wide.tuning.vector_bits, narrow.tuning.vector_bits) == (512, 256)
    assert (wide.tuning.registers, narrow.tuning.registers) == (32, 16)
    assert narrow.tuning.l1 == wide.tuning.l1


@pytest.mark.parametrize("wrong", ["sse", "avx2,l4=1M", "avx2,l1=", "avx2,l1=7/3", "avx2,l1=1K/x"])
def test_names_of_no_machine(wrong):
    with pytest.raises(ValueError, match="no "):
        named(wrong)


# -- whom it is for --------------------------------------------------------------------------------


def test_code_for_another_architecture_does_not_run_here():
    other = MACHINES["neon"] if host().is_x86 else MACHINES["sse2"]
    with pytest.raises(ValueError, match="does not run"):
        using(other)
    with pytest.raises(ValueError, match="lacks future"):
        using(dataclasses.replace(host(), features=host().features | {"future"}))


@pytest.mark.parametrize("name", RUNNABLE)
def test_programs_are_made_for_the_machine_in_use(name):
    with using(RUNNABLE[name]) as target:
        assert host() is target and jit().target == target
        x = np.arange(40, dtype=np.float32)
        found = td.function(lambda v: td.reduce_sum(v * 2 + 1))(x)
        assert found.numpy() == (x * 2 + 1).sum()
        with using(this_machine()):
            assert host() is this_machine()
        assert host() is target
    assert jit().target == host() != target


def test_caches_name_code_and_programs(tmp_path, monkeypatch):
    """Machines whose caches differ share the code of equal texts, and nothing found by name."""
    monkeypatch.setenv("TREADLE_STORE_PROGRAMS", "1")
    here = this_machine()
    other = dataclasses.replace(here, caches=(Cache(16 << 10, 4), *here.caches[1:]))
    a, b = (Jit(target, ObjectCache(tmp_path)) for target in (here, other))
    text = "define i64 @f() {\n  ret i64 7\n}\n"
    assert a._key(text, None) == b._key(text, None)
    assert a._key(text, "f") != b._key(text, "f")
    graph = td.function(lambda x: x + 1).get_concrete_function(np.float32(1)).graph
    here_key = stored.program_key(graph, Options())
    with using(other):
        assert stored.program_key(graph, Options()) != here_key
    assert stored.program_key(graph, Options()) == here_key


def test_environment_variable():
    code = (
        "import json, numpy as np, treadle as td\nfrom treadle.runtime.cpu.target import host\n"
        "assert td.function(lambda x: x * 2)(np.float32([1, 2])).numpy().tolist() == [2, 4]\n"
        "print(host().vector_bits, host().tuning.l2.size)"
    )

    def output(target):
        env = dict(os.environ, TREADLE_TARGET=target)
        return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)

    if "sse2" in RUNNABLE:
        assert output("sse2,l2=512K/8").stdout.split() == ["128", str(512 << 10)]
    assert "TREADLE_TARGET=z80: 'z80' is no machine" in output("z80").stderr


# -- treadle env -----------------------------------------------------------------------------------


def test_env_prints_the_whole_record(capsys):
    assert main(["env", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown.keys() == {name for name, _, _ in facts()} >= MEANINGS.keys()
    assert shown["cpu"] == host().cpu and shown["l1"] == str(host().tuning.l1)
    assert main(["env"]) == 0
    assert "second-level" in " ".join(capsys.readouterr().out.split())
    properties = {n for n, v in vars(Tuning).items() if isinstance(v, property)}
    fields = {f.name for f in dataclasses.fields(Tuning)}
    assert MEANINGS.keys() == fields | properties - {"line", "vector_bytes", "lanes"}


def test_env_with_a_wrong_variable(capsys, monkeypatch):
    monkeypatch.setenv("TREADLE_TARGET", "z80")
    assert main(["env"]) == 2
    assert "no machine" in capsys.readouterr().err
