"""The folder of compiled objects: entries are what their names say, or nothing."""

import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from treadle.core import object_cache
from treadle.core.object_cache import ObjectCache, default_folder

KEYS = [f"{n:040x}" for n in range(6)]


def filled(folder):
    cache = ObjectCache(folder)
    for key in KEYS:
        cache.store("code", key, f"object {key}".encode() * 40)
    return cache


@pytest.mark.parametrize("seed", range(8))
def test_exchanged_cut_and_flipped_entries_are_never_wrong(tmp_path, seed):
    rng = random.Random(seed)
    cache = filled(tmp_path / "c")
    for _ in range(60):
        first, second = (Path(cache.folder, f"{k}.o") for k in rng.sample(KEYS, 2))
        data = bytearray(first.read_bytes())
        kind = rng.choice(["swap", "copy", "cut", "flip", "grow"])
        if kind == "swap":
            first.write_bytes(second.read_bytes())
            second.write_bytes(data)
        elif kind == "copy":
            second.write_bytes(data)
        elif kind == "cut":
            first.write_bytes(data[: rng.randrange(len(data) + 1)])
        elif kind == "flip" and data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            first.write_bytes(data)
        else:
            first.write_bytes(bytes(data) + b"x")
        for key in KEYS:
            assert cache.load("code", key) in (None, f"object {key}".encode() * 40)
        if rng.random() < 0.3:
            filled(cache.folder)
    assert all(filled(cache.folder).load("code", key) for key in KEYS)


def test_an_entry_of_another_kind_or_version_is_none(tmp_path, monkeypatch):
    cache = filled(tmp_path)
    assert cache.load("program", KEYS[0]) is None
    assert cache.load("code", KEYS[0]) is not None
    monkeypatch.setattr(object_cache, "__version__", "0.0.0")
    assert cache.load("code", KEYS[0]) is None


def test_an_entry_under_another_name_is_none(tmp_path):
    cache = filled(tmp_path)
    (tmp_path / f"{KEYS[0]}.o").rename(tmp_path / f"{KEYS[1]}.o")
    assert cache.load("code", KEYS[1]) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_does_not_hang(tmp_path):
    cache = filled(tmp_path)
    path = tmp_path / f"{KEYS[0]}.o"
    path.unlink()
    os.mkfifo(path)
    assert cache.load("code", KEYS[0]) is None
    cache.trim()
    cache.store("code", KEYS[0], b"again")
    assert cache.load("code", KEYS[0]) == b"again"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners")
def test_what_others_could_have_written_is_not_loaded(tmp_path, monkeypatch):
    cache = filled(tmp_path)
    (tmp_path / f"{KEYS[0]}.o").chmod(0o666)
    assert cache.load("code", KEYS[0]) is None
    target = tmp_path / "elsewhere"
    (tmp_path / f"{KEYS[1]}.o").rename(target)
    (tmp_path / f"{KEYS[1]}.o").symlink_to(target)
    assert cache.load("code", KEYS[1]) is None
    assert cache.load("code", KEYS[2]) is not None
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert cache.load("code", KEYS[2]) is None


def test_other_programs_files_stay(tmp_path):
    cache = filled(tmp_path)
    other = tmp_path / "main.o"
    other.write_bytes(b"\x7fELF" + bytes(10_000))
    cache.most_bytes = 0
    cache.trim()
    cache.clear()
    assert [p.name for p in tmp_path.iterdir()] == ["main.o"]


def test_a_relative_folder_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache = filled(Path("c"))
    (tmp_path / "d").mkdir()
    monkeypatch.chdir(tmp_path / "d")
    assert cache.load("code", KEYS[0]) is not None
    assert not list((tmp_path / "d").iterdir())


@pytest.mark.skipif(not hasattr(os, "umask"), reason="no modes")
def test_parents_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        filled(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    for folder in ("a", "a/b", "a/b/c"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    monkeypatch.delenv("TREADLE_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as it does without a home
    assert default_folder() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ObjectCache(default_folder()).store("code", "key", b"object")


@pytest.mark.skipif(not hasattr(os, "setuid") or os.geteuid() != 0, reason="needs another user")
def test_a_process_of_an_unknown_user_compiles():
    script = (
        "import os, sys; os.environ.pop('HOME', None); os.environ.pop('TREADLE_CACHE_DIR', None);"
        "import treadle as td; import numpy; td.function(td.sin)(td.ones([2]));"
        "from treadle.core.object_cache import default_folder; "
        "os.setuid(54321); print(default_folder())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True,
        env={k: v for k, v in os.environ.items() if k != "XDG_CACHE_HOME"},
    )  # fmt: skip
    assert done.stdout.strip() == "None", done.stderr
