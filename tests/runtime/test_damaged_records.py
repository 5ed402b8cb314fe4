"""Programs on disk that are not what was written, under checksums that are right: they are
compiled again; reading them neither runs code nor ends the process."""

import random
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from treadle import runtime
from treadle.core import object_cache
from treadle.core.plain_data import DamagedError, from_bytes, to_bytes
from treadle.runtime import stored
from treadle.runtime.compiler import compile_native
from treadle.runtime.cpu.image import Image
from treadle.runtime.cpu.program_record import Record
from treadle.runtime.cpu.stored_program import StoredExecutable
from treadle.runtime.options import Options

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
RAN = []


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_STORE_PROGRAMS", "1")
    monkeypatch.setattr(stored, "default_cache", lambda: cache)
    from treadle.runtime.cpu.jit import jit

    td.clear_caches()
    cache = object_cache.ObjectCache(tmp_path / "cache")
    monkeypatch.setattr(jit(), "cache", cache)
    return cache


def stored_program(graph):
    return stored.stored_program(graph, Options(), compile_native)


def graph_of(function, *arguments):
    return td.function(function).get_concrete_function(*arguments).graph


def open_sizes():
    w = td.Variable(np.ones((4, 4), np.float32))

    def step(x, i):
        y = td.tanh(x @ w) + np.arange(4, dtype=np.float32)
        w.assign_add(td.matmul(x, y, transpose_a=True))
        return td.gather(y, i), td.reduce_sum(y, axis=0)

    return graph_of(step, td.TensorSpec([None, 4]), td.TensorSpec([None], td.int32))


def entry(cache, graph):
    """The key and the plain form of a graph's record."""
    runtime.compile(graph)
    key = stored.program_key(graph, Options())
    return key, from_bytes(cache.load("program", key))


def test_what_is_written_is_read(cache):
    graph = open_sizes()
    key, _ = entry(cache, graph)
    data = cache.load("program", key)
    record = Record.from_bytes(data, graph)
    assert record.to_bytes() == data
    assert record.memory is not None and len(record.signature.symbols) == 2
    assert isinstance(stored_program(graph), StoredExecutable)


def parts(plain, path=()):
    """The places of all values in plain data."""
    yield path
    if isinstance(plain, list | tuple):
        for k, inner in enumerate(plain):
            yield from parts(inner, (*path, k))
    elif isinstance(plain, dict):
        for k, inner in plain.items():
            yield from parts(inner, (*path, k))


def replaced(plain, path, change):
    if not path:
        return change(plain)
    kind = type(plain)
    items = plain if kind is dict else dict(enumerate(plain))
    items = {**items, path[0]: replaced(items[path[0]], path[1:], change)}
    return items if kind is dict else kind(items.values())


def odd(r):
    def change(value):
        if type(value) is int and r.random() < 0.6:
            return r.choice([value + 1, value - 1, -value, 2**40, -(2**70), 0])
        if isinstance(value, list | tuple) and value and r.random() < 0.5:
            return type(value)([*value, value[0]]) if r.random() < 0.5 else value[:-1]
        if isinstance(value, str) and r.random() < 0.5:
            return r.choice(["", "x", "../../" + value, value + "\0", value[1:], "cell", "?"])
        return r.choice([None, True, 1.5, "word", b"bytes", (), [], {}, -1, 10**6])

    return change


@pytest.mark.parametrize("seed", range(3))
def test_odd_values_under_right_checksums(cache, seed):
    """Any value of the record is another one: the record is refused, or makes an executable."""
    graph, r = open_sizes(), random.Random(seed)
    key, plain = entry(cache, graph)
    places = list(parts(plain))
    refused = 0
    for _ in range(60):
        cache.store("program", key, to_bytes(replaced(plain, r.choice(places), odd(r))))
        refused += stored_program(graph) is None
    assert 20 < refused < 60


@pytest.mark.parametrize("seed", range(2))
def test_random_bytes_under_right_checksums(cache, seed):
    graph, r = open_sizes(), random.Random(seed)
    key, plain = entry(cache, graph)
    whole = to_bytes(plain)
    for _ in range(100):
        data = bytearray(whole[: r.choice([len(whole), r.randrange(len(whole))])])
        for _ in range(r.randint(1, 4)):
            if data:
                data[r.randrange(len(data))] = r.randrange(256)
        cache.store("program", key, bytes(data))
        stored_program(graph)
    cache.store("program", key, whole)
    assert isinstance(stored_program(graph), StoredExecutable)


def test_programs_that_are_exchanged(cache):
    """A file under another's name is none; what another graph's record says is compared with the
    graph at hand, also under a right checksum."""
    graphs = [
        graph_of(lambda x: td.cast(x, td.int32), X),
        graph_of(lambda x: td.reduce_sum(x, 0), X),
        graph_of(lambda x, y: (x + y, x), X, X),
        open_sizes(),
    ]
    entries = [entry(cache, graph) for graph in graphs]
    files = [Path(cache.folder, f"{key}.o").read_bytes() for key, _ in entries]
    for graph, (key, _) in zip(graphs, entries, strict=True):
        for other, (_, plain), file in zip(graphs, entries, files, strict=True):
            Path(cache.folder, f"{key}.o").write_bytes(file)
            assert (stored_program(graph) is None) == (graph is not other)
            cache.store("program", key, to_bytes(plain))
            assert (stored_program(graph) is None) == (graph is not other)


def test_a_symbol_is_no_code(cache):
    """Names of symbols become names in a function that is written for the call."""
    graph = open_sizes()
    key, plain = entry(cache, graph)
    before = plain[0][3][0]
    evil = f"{before}; __import__('tests.runtime.test_damaged_records').RAN.append(1)"

    def other(value):
        return evil if value == before else value

    for path in parts(plain):
        plain = replaced(plain, path, other)
    cache.store("program", key, to_bytes(plain))
    with pytest.raises(DamagedError):
        Record.from_bytes(cache.load("program", key), graph)
    assert stored_program(graph) is None and not RAN


@pytest.mark.parametrize("name", ["../../etc/passwd", "a" * 10_000, "a\0b", "", "rows os.system"])
def test_odd_names_of_objects_and_routines(cache, name):
    graph = graph_of(lambda x: td.matmul(x, x, transpose_b=True), X)
    key, plain = entry(cache, graph)
    how, code, use, table, *rest = plain
    assert any(kind == "routine" for kind, _ in table)
    wrong = [(kind, name if kind == "routine" else word) for kind, word in table]
    for other in ((how, code, use, wrong, *rest), (how, (name, *code[1:]), use, table, *rest)):
        cache.store("program", key, to_bytes(other))
        assert stored_program(graph) is None


def test_a_damaged_record_is_compiled_and_written_again(cache):
    graph = open_sizes()
    key, plain = entry(cache, graph)
    cache.store("program", key, to_bytes(plain[:-1]))
    assert not isinstance(runtime.compile(graph), StoredExecutable)
    assert isinstance(runtime.compile(graph), StoredExecutable)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_images(seed):
    r = random.Random(seed)
    image = Image(b"code" * 100, 4096, 8192, {"run": 16, "entry": 32}, ("free", "malloc"))
    whole = image.to_bytes()
    assert Image.from_bytes(whole) == image
    head = whole.index(b"\n\n")
    for _ in range(500):
        data = bytearray(whole[: r.choice([len(whole), r.randrange(len(whole))])])
        for _ in range(r.randint(0, 3)):
            data[r.randrange(min(head, len(data)) or 1) : 1] = r.choice([b"9", b"-", b"\n", b" 1"])
        try:
            found = Image.from_bytes(bytes(data))
        except ValueError:
            continue
        assert len(found.data) <= found.size and all(
            0 <= offset < found.read_only <= found.size for offset in found.functions.values()
        )


def test_images_that_say_too_much():
    for wrong in (
        Image(b"", 4096, 1 << 50, {}, ()),
        Image(b"", 4096, 4096, {}, ("free",)),
        Image(b"x" * 9000, 4096, 8192, {}, ()),
        Image(b"", 4096, 8192, {"run": 4096}, ()),
        Image(b"", 4096, 8192, {"run": -1}, ()),
        Image(b"", 100, 8192, {}, ()),
    ):
        with pytest.raises(ValueError, match="not an image"):
            Image.from_bytes(wrong.to_bytes())
