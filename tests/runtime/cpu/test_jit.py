"""Compiling and the caches: in memory, on disk, damaged, read-only, bounded."""

import ctypes
import os
import subprocess
import sys
import threading
import warnings
from dataclasses import replace

import pytest

from tests.runtime.cpu.machines import ZEN5
from treadle.core.object_cache import MAGIC, ObjectCache, default_folder
from treadle.runtime.cpu.image import is_supported
from treadle.runtime.cpu.jit import Jit
from treadle.runtime.cpu.target import aarch64, baseline, host

ADD = "define i64 @f(i64 %x) {{\n  %y = add i64 %x, {}\n  ret i64 %y\n}}\n"


def call(code, x):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("f"))(x)


def fresh(folder):
    return Jit(host(), ObjectCache(folder))


def test_compiled_once_then_reused(tmp_path):
    compiler = fresh(tmp_path / "c")
    assert call(compiler.load(ADD.format(1)), 4) == 5
    assert call(compiler.load(ADD.format(1)), 5) == 6
    assert (compiler.counters.compiled, compiler.counters.reused) == (1, 1)


def test_a_second_process_compiles_nothing(tmp_path):
    code = (
        "import sys, treadle as td, numpy as np\n"
        "from treadle.runtime.cpu.jit import jit\n"
        "@td.function\n"
        "def f(x): return td.reduce_sum(td.tanh(x) * 2.0, -1)\n"
        "y = f(td.constant(np.ones((5, 40), np.float32)))\n"
        "c = jit().counters\n"
        "print(c.compiled, c.loaded_from_disk, float(y[0]), c.shipped)\n"
        "print('llvmlite' in sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": "src", "TREADLE_CACHE_DIR": str(tmp_path / "c")}

    def process():
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    first, second = process(), process()
    assert int(first[0]) > 0 and first[1] == "0"
    assert second[0] == second[3] == "0" and int(second[1]) == int(first[0]) + int(first[3])
    assert first[2] == second[2]
    assert first[4] == "True"
    if is_supported():
        assert second[4] == "False"


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "head"])
def test_a_damaged_entry_is_compiled_again(tmp_path, damage):
    folder = tmp_path / "c"
    fresh(folder).load(ADD.format(2))
    (path,) = folder.glob("*.o")
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-20] ^= 0xFF
    elif damage == "cut":
        del data[len(data) // 2 :]
    elif damage == "empty":
        data = bytearray()
    else:
        data[0] ^= 1
    path.write_bytes(data)
    compiler = fresh(folder)
    assert call(compiler.load(ADD.format(2)), 1) == 3
    assert (compiler.counters.compiled, compiler.counters.loaded_from_disk) == (1, 0)
    again = fresh(folder)
    assert call(again.load(ADD.format(2)), 1) == 3
    assert again.counters.loaded_from_disk == 1


def test_the_key_names_everything_that_changes_the_code(tmp_path):
    cache = ObjectCache(tmp_path)
    here = ZEN5
    targets = [here, baseline(1), baseline(3), here.without("avx512f"), aarch64()]
    targets += [replace(here, opt=0), replace(here, llvm="0.0.0")]
    keys = {Jit(t, cache).key(ADD.format(1)) for t in targets}
    keys.add(Jit(here, cache).key(ADD.format(2)))
    assert len(keys) == len(targets) + 1


def test_a_name_stands_for_a_text(tmp_path):
    asked = []

    def text():
        asked.append(1)
        return ADD.format(70)

    compiler = fresh(tmp_path / "c")
    compiler.prepare(text, "seventy")
    assert call(compiler.load(text, name="seventy"), 1) == 71
    assert call(compiler.load(text, name="seventy"), 2) == 72
    again = fresh(tmp_path / "c")
    assert call(again.load(text, name="seventy"), 3) == 73
    assert len(asked) == 1 and again.counters.compiled == 0
    assert call(again.load(ADD.format(71), name="seventy-one"), 0) == 71


def test_code_is_found_by_its_key(tmp_path):
    compiler = fresh(tmp_path / "c")
    key = compiler.load(ADD.format(80)).key
    again = fresh(tmp_path / "c")
    assert call(again.load_known(key), 1) == 81
    assert again.load_known(again.key(ADD.format(81))) is None
    assert again.counters.compiled == 0


def test_a_folder_that_cannot_be_made_gives_one_warning(tmp_path):
    (tmp_path / "file").write_text("in the way")
    compiler = fresh(tmp_path / "file" / "cache")
    with pytest.warns(RuntimeWarning, match="TREADLE_CACHE_DIR") as caught:
        assert call(compiler.load(ADD.format(3)), 1) == 4
        assert call(compiler.load(ADD.format(4)), 1) == 5
    assert len(caught) == 1


def test_a_folder_others_can_write_to_is_not_used(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    compiler = fresh(folder)
    with pytest.warns(RuntimeWarning, match="not private"):
        compiler.load(ADD.format(5))
    assert not list(folder.iterdir())


def test_the_folder_is_private(tmp_path):
    fresh(tmp_path / "a" / "b").load(ADD.format(6))
    assert (tmp_path / "a" / "b").stat().st_mode & 0o077 == 0


def test_trimming_removes_the_least_recently_used(tmp_path):
    roomy = ObjectCache(tmp_path)
    for n in range(5):
        roomy.store("code", f"k{n}", bytes(1000))
        os.utime(tmp_path / f"k{n}.o", (n, n))
    cache = ObjectCache(tmp_path, most_bytes=2500)
    assert cache.load("code", "k0") is not None  # now the most recent
    cache.trim()
    kept = {p.stem for p in tmp_path.glob("*.o")}
    assert kept == {"k0", "k4"}
    cache.clear()
    assert not list(tmp_path.glob("*.o"))


def test_no_half_written_entries(tmp_path):
    cache = ObjectCache(tmp_path)
    wrong = []

    def write():
        for n in range(60):
            cache.store("code", "same", bytes([n]) * 5000)

    def read():
        for _ in range(200):
            data = cache.load("code", "same")
            if data is not None and (len(data) != 5000 or len(set(data)) != 1):
                wrong.append(data)

    several = [threading.Thread(target=t) for t in (write, write, read, read)]
    for t in several:
        t.start()
    for t in several:
        t.join()
    assert not wrong and [p.name for p in tmp_path.iterdir()] == ["same.o"]
    assert (tmp_path / "same.o").read_bytes().startswith(MAGIC)


def test_threads_that_ask_for_the_same_code_compile_it_once(tmp_path):
    compiler, results = fresh(tmp_path / "c"), []
    texts = [ADD.format(n) for n in range(20, 26)]

    def work():
        for n, text in enumerate(texts):
            results.append(call(compiler.load(text), 0) - n)

    several = [threading.Thread(target=work) for _ in range(4)]
    for t in several:
        t.start()
    for t in several:
        t.join()
    assert results == [20] * 24 and compiler.counters.compiled == len(texts)


def test_what_was_prepared_is_compiled_once(tmp_path):
    compiler = fresh(tmp_path / "c")
    for _ in range(2):
        for n in range(40, 50):
            compiler.prepare(ADD.format(n))
    assert [call(compiler.load(ADD.format(n)), 0) for n in range(40, 50)] == list(range(40, 50))
    compiler.prepare(ADD.format(41))
    assert compiler.counters.compiled == 10


def test_nothing_is_prepared_that_is_on_disk(tmp_path):
    fresh(tmp_path / "c").load(ADD.format(51))
    compiler = fresh(tmp_path / "c")
    compiler.prepare(ADD.format(51))
    assert compiler.counters.loaded_from_disk == 0
    assert call(compiler.load(ADD.format(51)), 1) == 52


def test_invalid_text_that_was_prepared_is_an_error_when_it_is_loaded(tmp_path):
    compiler = fresh(tmp_path / "c")
    compiler.prepare("define i64 @f( {")
    with pytest.raises(RuntimeError, match="LLVM IR"):
        compiler.load("define i64 @f( {")


@pytest.mark.parametrize("text", ["define i64 @f( {", "define i64 @f() {\n ret i32 0\n}\n"])
def test_invalid_text_is_an_error_and_nothing_is_kept(tmp_path, text):
    compiler = fresh(tmp_path / "c")
    for _ in range(2):
        with pytest.raises(RuntimeError):
            compiler.load(text)
    assert call(compiler.load(ADD.format(7)), 0) == 7


def test_unknown_function(tmp_path):
    with pytest.raises(KeyError):
        fresh(tmp_path / "c").load(ADD.format(8)).address("g")


def test_the_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path))
    assert default_folder() == str(tmp_path)
    monkeypatch.setenv("TREADLE_CACHE_DIR", "")
    assert default_folder() is None
    monkeypatch.delenv("TREADLE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_folder() == str(tmp_path / "x" / "treadle")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fresh(None).load(ADD.format(9)).size > 0


def test_kernels_compile_for_arm():
    """Every function of the table and the pool become Arm objects."""
    from tests.runtime.cpu.test_functions import CASES, elementwise
    from treadle.core import dtypes
    from treadle.kernel.functions import FUNCTIONS
    from treadle.kernel.ir import apply
    from treadle.runtime.cpu.nest import emit_kernel
    from treadle.runtime.cpu.pool_code import pool_text

    compiler = Jit(aarch64(), ObjectCache(None))
    assert compiler.compile(pool_text(compiler.target))[18:20] == b"\xb7\x00"  # EM_AARCH64
    for fn, dtype in CASES:
        if dtype.name in ("float32", "float16", "int32", "bool"):
            operands = [dtype] * FUNCTIONS[fn].arity
            if fn == "select":
                operands[0] = dtypes.bool
            kernel, _, _ = elementwise(lambda *args, fn=fn: apply(fn, *args), *operands)
            text = emit_kernel(kernel, compiler.target).text
            assert "x86" not in text
            assert compiler.compile(text)[18:20] == b"\xb7\x00", (fn, dtype)
