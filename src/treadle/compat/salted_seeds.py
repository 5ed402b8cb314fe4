"""Seeds that are made of another seed and a word, as TensorFlow's distributions make theirs."""

from __future__ import annotations

import hashlib


def salted_seed(seed: int | None, salt: str) -> int | None:
    """Another seed below 2**31, the one that TensorFlow's `gen_new_seed` gives; None of None."""
    if seed is None:
        return None
    digest = hashlib.md5(f"{seed}{salt}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) & 0x7FFFFFFF
