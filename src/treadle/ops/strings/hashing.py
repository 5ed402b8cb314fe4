"""Hashes of byte strings that are the same in every process and in TensorFlow.

All arithmetic is modulo 2 ** 64.
"""

from __future__ import annotations

from collections.abc import Iterator

_WORD = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _word(s: bytes, at: int) -> int:
    return int.from_bytes(s[at : at + 8], "little")


def _right(x: int, by: int) -> int:
    """Rotated to the right."""
    x &= _WORD
    return (x >> by | x << (64 - by)) & _WORD


def _mixed(x: int) -> int:
    x &= _WORD
    return x ^ x >> 47


def _joined(u: int, v: int, multiplier: int) -> int:
    a = _mixed(((u ^ v) & _WORD) * multiplier)
    return _mixed(((v ^ a) & _WORD) * multiplier) * multiplier & _WORD


def fingerprint(s: bytes) -> int:
    """FarmHash's Fingerprint64."""
    n = len(s)
    if n <= 16:
        return _up_to_16(s, n)
    if n <= 32:
        return _up_to_32(s, n)
    return _up_to_64(s, n) if n <= 64 else _longer(s, n)


def _up_to_16(s: bytes, n: int) -> int:
    multiplier = _K2 + 2 * n
    if n >= 8:
        a, b = _word(s, 0) + _K2, _word(s, n - 8)
        return _joined(_right(b, 37) * multiplier + a, (_right(a, 25) + b) * multiplier, multiplier)
    if n >= 4:
        first, last = (int.from_bytes(part, "little") for part in (s[:4], s[n - 4 :]))
        return _joined(n + (first << 3), last, multiplier)
    if n:
        y, z = s[0] + (s[n >> 1] << 8), n + (s[-1] << 2)
        return _mixed(y * _K2 ^ z * _K0) * _K2 & _WORD
    return _K2


def _up_to_32(s: bytes, n: int) -> int:
    multiplier = _K2 + 2 * n
    a, b = _word(s, 0) * _K1, _word(s, 8)
    c, d = _word(s, n - 8) * multiplier, _word(s, n - 16) * _K2
    return _joined(
        _right(a + b, 43) + _right(c, 30) + d, a + _right(b + _K2, 18) + c, multiplier
    )  # fmt: skip


def _up_to_64(s: bytes, n: int) -> int:
    multiplier = _K2 + 2 * n
    a, b = _word(s, 0) * _K2, _word(s, 8)
    c, d = _word(s, n - 8) * multiplier, _word(s, n - 16) * _K2
    y = _right(a + b, 43) + _right(c, 30) + d
    z = _joined(y, a + _right(b + _K2, 18) + c, multiplier)
    e, f = _word(s, 16) * multiplier, _word(s, 24)
    g = (y + _word(s, n - 32)) * multiplier
    h = (z + _word(s, n - 24)) * multiplier
    return _joined(_right(e + f, 43) + _right(g, 30) + h, e + _right(f + a, 18) + g, multiplier)


_Pair = tuple[int, int]


def _weak(s: bytes, at: int, a: int, b: int) -> _Pair:
    """A pair from 32 bytes and two seeds."""
    a += _word(s, at)
    b = _right(b + a + _word(s, at + 24), 21)
    before = a
    a += _word(s, at + 8) + _word(s, at + 16)
    b += _right(a, 44)
    return (a + _word(s, at + 24)) & _WORD, (b + before) & _WORD


def _longer(s: bytes, n: int) -> int:
    x, y = 81, 81 * _K1 + 113
    z = _mixed(y * _K2 + 113) * _K2
    v: _Pair = (0, 0)
    w: _Pair = (0, 0)
    x = x * _K2 + _word(s, 0)
    end = (n - 1) // 64 * 64
    for at in range(0, end, 64):
        x = _right(x + y + v[0] + _word(s, at + 8), 37) * _K1
        y = _right(y + v[1] + _word(s, at + 48), 42) * _K1
        x = (x ^ w[1]) & _WORD
        y += v[0] + _word(s, at + 40)
        z = _right(z + w[0], 33) * _K1
        v = _weak(s, at, v[1] * _K1, x + w[0])
        w = _weak(s, at + 32, z + w[1], y + _word(s, at + 16))
        z, x = x, z
    multiplier = _K1 + ((z & 0xFF) << 1)
    at = n - 64
    w = w[0] + ((n - 1) & 63), w[1]
    v = v[0] + w[0], v[1]
    w = w[0] + v[0], w[1]
    x = _right(x + y + v[0] + _word(s, at + 8), 37) * multiplier
    y = _right(y + v[1] + _word(s, at + 48), 42) * multiplier
    x = (x ^ w[1] * 9) & _WORD
    y += v[0] * 9 + _word(s, at + 40)
    z = _right(z + w[0], 33) * multiplier
    v = _weak(s, at, v[1] * multiplier, x + w[0])
    w = _weak(s, at + 32, z + w[1], y + _word(s, at + 16))
    z, x = x, z
    return _joined(
        _joined(v[0], w[0], multiplier) + _mixed(y) * _K0 + z,
        _joined(v[1], w[1], multiplier) + x,
        multiplier,
    )


def concatenated(a: int, b: int) -> int:
    """The fingerprint of two fingerprints, TensorFlow's FingerprintCat64."""
    factor = 0xC6A4A7935BD1E995
    both = ((a ^ factor) ^ (_mixed(b * factor) * factor & _WORD)) * factor & _WORD
    return _mixed(_mixed(both) * factor)


def murmur(s: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """MurmurHash64A with TensorFlow's seed."""
    multiplier, n = 0xC6A4A7935BD1E995, len(s)
    whole = n // 8 * 8
    h = (seed ^ n * multiplier) & _WORD
    for at in range(0, whole, 8):
        k = _mixed(_word(s, at) * multiplier) * multiplier & _WORD
        h = (h ^ k) * multiplier & _WORD
    if n > whole:
        h = (h ^ int.from_bytes(s[whole:], "little")) * multiplier & _WORD
    return _mixed(_mixed(h) * multiplier)


def siphash(s: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 with a key of two words."""
    k0, k1 = key
    v = [
        k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573,
    ]  # fmt: skip
    for word in _blocks(s):
        v[3] ^= word
        _round(v)
        _round(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        _round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _blocks(s: bytes) -> Iterator[int]:
    """Words of 8 bytes; the last one has the length in its highest byte."""
    whole = len(s) // 8 * 8
    yield from (_word(s, at) for at in range(0, whole, 8))
    yield int.from_bytes(s[whole:], "little") | (len(s) & 0xFF) << 56


def _round(v: list[int]) -> None:
    v[0] = (v[0] + v[1]) & _WORD
    v[2] = (v[2] + v[3]) & _WORD
    v[1] = _right(v[1], 51) ^ v[0]
    v[3] = _right(v[3], 48) ^ v[2]
    v[0] = _right(v[0], 32)
    v[2] = (v[2] + v[1]) & _WORD
    v[0] = (v[0] + v[3]) & _WORD
    v[1] = _right(v[1], 47) ^ v[2]
    v[3] = _right(v[3], 43) ^ v[0]
    v[2] = _right(v[2], 32)
