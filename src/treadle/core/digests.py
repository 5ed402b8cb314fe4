"""Digests that name things: texts, code, arrays.

They are BLAKE2b's (RFC 7693), from the module that Python's own `hashlib` has it from. `hashlib`
loads OpenSSL beside it, which takes as long as ten modules of this package.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # an interpreter that has it elsewhere
    from hashlib import blake2b

_DIGITS = 40  # enough that no two things of a cache have the same


class Digest:
    """A digest of data that come one after another."""

    def __init__(self, data: str | bytes = b"", digits: int = _DIGITS) -> None:
        """
        Args:
            digits: hexadecimal ones, an even number up to 128.
        """
        self._state = blake2b(_bytes(data), digest_size=digits // 2)

    def update(self, data: str | bytes) -> None:
        self._state.update(_bytes(data))

    @property
    def value(self) -> bytes:
        """The digest of all data up to now: half as many bytes as digits."""
        return self._state.digest()

    @property
    def text(self) -> str:
        """The same in hexadecimal digits."""
        return self._state.hexdigest()


def digest(data: str | bytes, digits: int = _DIGITS) -> str:
    """The digest of some data in so many hexadecimal digits."""
    return Digest(data, digits).text


def _bytes(data: str | bytes) -> bytes:
    # Source text may hold lone surrogates.
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
