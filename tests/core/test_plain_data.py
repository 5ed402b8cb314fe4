"""Plain data as bytes: what was written is read; what was not is an error, never anything else."""

import math
import random
import tracemalloc

import pytest

from treadle.core.plain_data import MOST_DEEP, DamagedError, from_bytes, to_bytes


def plain(r, deep=3):
    """Random plain data."""
    kinds = ["none", "bool", "int", "large", "float", "text", "bytes"]
    kind = r.choice(kinds + ["list", "words", "tuple", "dict"] * bool(deep))
    several = range(r.choice([0, 1, 2, 5]))
    match kind:
        case "none":
            return None
        case "bool":
            return r.random() < 0.5
        case "int" | "large":
            return r.randint(-9, 9) << (r.randrange(300) if kind == "large" else 0)
        case "float":
            return r.choice([r.gauss(0, 1e9), -0.0, math.inf, 5e-324])
        case "text":
            return "".join(chr(r.choice([65, 0, 233, 0x2028, 0xD801, 0x1F600])) for _ in several)
        case "bytes":
            return r.randbytes(len(several))
        case "words":
            return [r.randint(-(2**63), 2**63 - 1) for _ in several]
        case "dict":
            return {plain(r, 0): plain(r, deep - 1) for _ in several}
    items = [plain(r, deep - 1) for _ in several]
    return items if kind == "list" else tuple(items)


VALUE = {
    "a": (1, -1, 2**80, -(2**80), 1.5, True, None),
    ("b", 0): [b"\0\xff", "\ud800 é", [], (), {}, [1, 2], [1, True]],
}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_read(seed):
    r = random.Random(seed)
    for _ in range(300):
        value = plain(r)
        again = from_bytes(to_bytes(value))
        assert again == value and repr(again) == repr(value)  # 1, 1.0 and True differ


def test_not_a_number():
    assert math.isnan(from_bytes(to_bytes(math.nan)))
    assert repr(from_bytes(to_bytes([-0.0, math.inf]))) == "[-0.0, inf]"


class Int(int):
    pass


@pytest.mark.parametrize("value", [{1}, object(), [1j], (len,), bytearray(b"x"), Int(1)])
def test_other_things_are_refused(value):
    with pytest.raises(TypeError, match="plain data"):
        to_bytes(value)


def test_depth_is_bounded():
    value = data = 0
    for _ in range(MOST_DEEP):
        value = [value, None]
    assert from_bytes(to_bytes(value)) == value
    with pytest.raises(ValueError, match="deep"):
        to_bytes([value])
    data = b"[\x01\0\0\0" * 100_000 + b"N"
    with pytest.raises(DamagedError):
        from_bytes(data)


def read(data):
    """The value, or None for what is refused."""
    try:
        return from_bytes(data)
    except DamagedError:
        return None


def test_cut_and_continued_data_is_refused():
    data = to_bytes(VALUE)
    assert from_bytes(data) == VALUE
    for end in range(len(data)):
        with pytest.raises(DamagedError):
            from_bytes(data[:end])
    with pytest.raises(DamagedError, match="follow"):
        from_bytes(data + b"N")


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes(seed):
    r = random.Random(seed)
    whole = to_bytes(VALUE)
    for _ in range(2000):
        if r.random() < 0.5:
            data = bytes(r.choice(b"NTFiIfsb[({v\0\0\0\1\xff") for _ in range(r.randrange(40)))
        else:
            changed = bytearray(whole)
            for _ in range(r.randint(1, 3)):
                changed[r.randrange(len(changed))] = r.randrange(256)
            data = bytes(changed)
        read(data)


def test_counts_that_lie_ask_for_no_memory():
    tracemalloc.start()
    try:
        for tag in b"Isbv[({":
            assert read(bytes([tag]) + b"\xff\xff\xff\x7f" + b"N" * 100) is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
