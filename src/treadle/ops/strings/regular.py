"""Regular expressions over strings, with the syntax of RE2 as far as Python's `re` has it."""

from __future__ import annotations

import functools
import re
from typing import Any

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.strings.texts import STRINGS, invalid, mapped, string_tensor

_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_TOKEN = re.compile(
    r"""
    \[:(?P<named>\w+):\]
    | \\Q(?P<literal>.*?)(?:\\E|$)
    | (?P<end>\\z|\$)
    | \\(?P<refused>[1-9]|[CZ]|[pP])
    | \(\?(?P<group>=|!|<[=!]|\(|\#|P=|P>)
    | \\.
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


@functools.lru_cache(maxsize=256)
def _compiled(pattern: bytes) -> re.Pattern[str]:
    """The pattern over texts, in which each byte that is no UTF-8 is a character of its own.

    Raises:
        InvalidArgumentError: it is none, or RE2 or Python's `re` does not have what it asks for.
    """
    text = _decoded(pattern)
    try:
        return re.compile(_translated(text), re.ASCII)
    except re.error as error:
        raise invalid(f"Invalid pattern: {text}, error: {error}") from None


def _translated(pattern: str) -> str:
    """The pattern as Python writes it."""
    multiline = bool(re.search(r"\(\?[a-zA-Z]*m", pattern))
    found = []
    for token in _TOKEN.finditer(pattern):
        kind = token.lastgroup
        if kind == "named":
            name = token["named"]
            if name not in _CLASSES:
                raise re.error(f"invalid character class range: [:{name}:]")
            found.append(_CLASSES[name])
        elif kind == "literal":
            found.append(re.escape(token["literal"]))
        elif kind == "end" and token["end"] != "$":
            found.append(r"\Z")
        elif kind == "end":
            found.append("$" if multiline or _in_class(found) else r"\Z")
        elif kind is not None:
            raise re.error(f"not supported: {token.group()}")
        else:
            nested = token.group() == "[" and _in_class(found)
            found.append(r"\[" if nested else token.group())
    return "".join(found)


def _in_class(before: list[str]) -> bool:
    """Whether what follows these pieces stands between brackets."""
    opened = max((i for i, p in enumerate(before) if p == "["), default=-1)
    return opened >= 0 and "]" not in before[opened + 2 :]


def _decoded(s: bytes) -> str:
    return s.decode(errors="surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _pattern(array: NDArray, what: str = "pattern") -> bytes:
    if array.ndim:
        raise invalid(f"{what} must be scalar, but received {array.shape}")
    return bytes(array.item())


# -- full matches --------------------------------------------------------------------------------


def _full_match(x: NDArray, pattern: NDArray) -> NDArray:
    matches = _compiled(_pattern(pattern)).fullmatch
    return mapped(lambda s: matches(_decoded(s)) is not None, x, dtypes.bool)


FULL_MATCH = register(
    Op(
        "regex_full_match", lambda x, pattern: TensorSpec(x.dims, dtypes.bool), _full_match,
        tags=STRINGS,
    )
)  # fmt: skip


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    r"""Whether each string as a whole matches the pattern, a bool tensor of the strings' shape.

    Args:
        pattern: a scalar string in RE2's syntax; classes by script (``\p{Greek}``) and ``\C`` are
            not known.

    Raises:
        InvalidArgumentError: the pattern is none, or uses what is not known.
    """
    return run(FULL_MATCH, string_tensor(input), string_tensor(pattern))  # type: ignore[no-any-return]


# -- replacing -----------------------------------------------------------------------------------


def _replace(x: NDArray, pattern: NDArray, rewrite: NDArray, *, everywhere: bool) -> NDArray:
    compiled, text = _compiled(_pattern(pattern)), _decoded(_pattern(rewrite, "rewrite"))
    pieces = _rewriting(text, compiled.groups)
    if pieces is None:  # it names a group that the pattern has not
        return x.copy()
    return mapped(lambda s: _encoded(_replaced(_decoded(s), compiled, pieces, everywhere)), x)


def _rewriting(text: str, groups: int) -> list[str | int] | None:
    r"""The parts of a replacement, up to one that RE2 does not know: texts, and numbers of groups
    for ``\0`` to ``\9``; None where there is no such group."""
    pieces: list[str | int] = []
    for token in re.finditer(r"\\(.?)|[^\\]+", text, re.DOTALL):
        escaped = token[1]
        if escaped is None:
            pieces.append(token[0])
        elif escaped == "\\":
            pieces.append("\\")
        elif escaped and escaped in "0123456789":
            pieces.append(int(escaped))
        else:
            break
    return pieces if all(isinstance(p, str) or p <= groups for p in pieces) else None


def _replaced(
    text: str, pattern: re.Pattern[str], pieces: list[str | int], everywhere: bool
) -> str:
    """`text` with matches replaced; an empty match at the end of another one is none."""
    found, end, last = [], 0, -1
    for match in pattern.finditer(text):
        start, stop = match.span()
        if start == stop == last:
            continue
        found.append(text[end:start])
        found += [p if isinstance(p, str) else match[p] or "" for p in pieces]
        end = last = stop
        if not everywhere:
            break
    return "".join([*found, text[end:]])


REPLACE = register(
    Op(
        "regex_replace", lambda x, pattern, rewrite, *, everywhere: TensorSpec(x.dims, x.dtype),
        _replace, tags=STRINGS,
    )
)  # fmt: skip


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""The strings with what matches the pattern replaced.

    Args:
        pattern: see `regex_full_match`.
        rewrite: a scalar string; ``\1`` to ``\9`` stand for groups, ``\0`` for the match.
        replace_global: replace all matches, not the first one only.

    Raises:
        InvalidArgumentError: the pattern is none, or uses what is not known.
    """
    x, pattern, rewrite = string_tensor(input), string_tensor(pattern), string_tensor(rewrite)
    return run(REPLACE, x, pattern, rewrite, everywhere=bool(replace_global))  # type: ignore[no-any-return]
