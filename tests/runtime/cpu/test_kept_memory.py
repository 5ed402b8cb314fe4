"""Memory that programs give back is used again, within bounds, by any number of threads."""

import ctypes
import os
import threading

import pytest

import treadle as td
from treadle.runtime.cpu import kept_memory
from treadle.runtime.cpu.kept_memory import KeptMemory

MIB = 1 << 20


class Allocator:
    """The two functions as Python calls them."""

    def __init__(self, budget: int) -> None:
        self.memory = KeptMemory(budget)
        self.allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
            self.memory.allocate
        )
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.memory.free)


@pytest.fixture
def allocator() -> Allocator:
    """The process's code has one set of words: the others of this process are put back."""
    kept_memory.kept_memory().release()
    return Allocator(8 * MIB)


@pytest.fixture(autouse=True)
def restored():
    yield
    kept_memory.kept_memory.forget()
    kept_memory.kept_memory()


def test_blocks_are_aligned_and_used_again(allocator: Allocator) -> None:
    first = allocator.allocate(64, MIB)
    assert first % 64 == 0
    ctypes.memset(first, 7, MIB)
    allocator.free(first)
    assert allocator.memory.kept == MIB
    assert allocator.allocate(64, MIB - 1000) == first
    assert allocator.memory.kept == 0
    other = allocator.allocate(64, MIB)
    assert other != first
    allocator.free(first)
    allocator.free(other)


@pytest.mark.parametrize("size", [0, 1, 100, 1000, (64 << 10) - 1, 64 << 10, 65537, 3 * MIB])
def test_every_size(allocator: Allocator, size: int) -> None:
    blocks = [allocator.allocate(64, size) for _ in range(5)]
    assert len(set(blocks)) == 5
    for number, block in enumerate(blocks):
        ctypes.memset(block, number, size)
    for number, block in enumerate(blocks):
        assert ctypes.string_at(block, size) == bytes([number]) * size
        allocator.free(block)


def test_what_waits_is_bounded(allocator: Allocator) -> None:
    blocks = [allocator.allocate(64, 3 * MIB) for _ in range(5)]
    for block in blocks:
        allocator.free(block)
    assert allocator.memory.kept == 8 * MIB  # two blocks of 4 MiB
    allocator.memory.release()
    assert allocator.memory.kept == 0


def test_nothing_waits_without_a_budget() -> None:
    kept_memory.kept_memory().release()
    none = Allocator(0)
    none.free(none.allocate(64, MIB))
    assert none.memory.kept == 0


def test_threads(allocator: Allocator) -> None:
    wrong = []

    def work(number: int) -> None:
        for i in range(300):
            size = (64 << 10) * (1 + i % 5)
            block = allocator.allocate(64, size)
            ctypes.memset(block, number, size)
            if ctypes.string_at(block, size) != bytes([number]) * size:
                wrong.append(number)
            allocator.free(block)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(
    not os.path.exists("/sys/kernel/mm/transparent_hugepage"), reason="a system without such pages"
)
def test_large_blocks_ask_for_huge_pages(allocator: Allocator) -> None:
    block = allocator.allocate(64, 48 * MIB)
    ctypes.memset(block, 1, 48 * MIB)
    assert "hg" in _flags(block + 24 * MIB)
    allocator.free(block)


def _flags(address: int) -> list[str]:
    """The kernel's flags of the memory around an address."""
    inside = False
    with open("/proc/self/smaps") as lines:
        for line in lines:
            name, *rest = line.split()
            if "-" in name and not name.endswith(":"):
                low, high = (int(end, 16) for end in name.split("-"))
                inside = low <= address < high
            elif inside and name == "VmFlags:":
                return rest
    return []


def test_programs_use_it_and_clear_caches_gives_it_back() -> None:
    @td.function
    def f(x):
        h = td.TensorArray(td.float32, 0, dynamic_size=True)
        for i in td.range(40):
            h = h.write(i, x * td.cast(i, td.float32))
        return h.stack()

    x = td.ones([100, 100])
    for _ in range(3):
        assert f(x).numpy()[-1, 0, 0] == 39
    assert kept_memory.kept_memory().kept > 0
    del f
    td.clear_caches()
    assert kept_memory.kept_memory().kept == 0
