"""Unicode: strings as numbers of characters, as characters, and in other encodings."""

from __future__ import annotations

import codecs
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.strings.listed import listed_pieces, with_pieces
from treadle.ops.strings.texts import STRINGS, elementwise, invalid, string_tensor

_OUTPUTS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")
_ERRORS = ("strict", "replace", "ignore")
_Character = tuple[int, int]  # the number of a character and where it begins
_SURROGATES = range(0xD800, 0xE000)
_MOST = 0x110000


def _decoded(s: bytes, encoding: str, errors: str, other: int, control: bool) -> list[_Character]:
    """The characters of a string; the number `other` for a part that is none, where it counts."""
    found: list[_Character] = []
    if encoding == "utf-8":
        _decode_utf8(s, errors, other, found)
    else:
        place, step = 0, codecs.getincrementaldecoder(encoding)()
        for index in range(len(s)):
            try:
                text = step.decode(s[index : index + 1], final=index + 1 == len(s))
            except UnicodeDecodeError:
                step.reset()
                _add_invalid(found, errors, other, place)
                place = index + 1
                continue
            for character in text:
                found.append((ord(character), place))
            place = index + 1 if text else place
    if control:
        found = [(other if _is_control(c) else c, place) for c, place in found]
    return found


def _decode_utf8(s: bytes, errors: str, other: int, found: list[_Character]) -> None:
    place = 0
    while place < len(s):
        try:
            text, bad = s[place:].decode(), 0
        except UnicodeDecodeError as error:
            text, bad = s[place : place + error.start].decode(), error.end - error.start
        for character in text:
            found.append((ord(character), place))
            place += len(character.encode())
        if bad:
            _add_invalid(found, errors, other, place)
            place += bad


def _add_invalid(found: list[_Character], errors: str, other: int, place: int) -> None:
    if errors == "strict":
        raise invalid("Invalid formatting on input string")
    if errors == "replace":
        found.append((other, place))


def _is_control(character: int) -> bool:
    return character < 0x20


def _encoded(numbers: list[int], encoding: str, errors: str, other: int) -> bytes:
    kept = []
    for number in numbers:
        good = 0 <= number < _MOST and number not in _SURROGATES
        if not good and errors == "strict":
            raise invalid("Code point is out of range for Unicode, or is a surrogate.")
        if good or errors == "replace":
            kept.append(chr(number if good else other))
    return "".join(kept).encode(encoding)


def _input_encoding(name: str) -> str:
    """Python's name of an encoding; InvalidArgumentError for an unknown one."""
    try:
        return codecs.lookup(name).name
    except LookupError:
        text = f"Could not create converter for input encoding: {name}{at(user_origin())}"
        raise invalid(text) from None


def _checked(errors: str, replacement: int) -> int:
    if errors not in _ERRORS:
        raise invalid(f"errors {errors!r} is none of {', '.join(_ERRORS)}{at(user_origin())}")
    if not 0 <= replacement < _MOST or replacement in _SURROGATES:
        raise invalid(f"replacement_char {replacement} is no character{at(user_origin())}")
    return int(replacement)


def _output_encoding(name: str) -> str:
    if name not in _OUTPUTS:
        text = f"encoding {name!r} is none of {', '.join(_OUTPUTS)}{at(user_origin())}"
        raise invalid(text)
    return name.lower()


# -- numbers of characters -----------------------------------------------------------------------


def _infer_decode(
    x: Spec, *, how: Any, texts: str | None
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    pieces, counts = with_pieces(x, dtypes.int32 if texts is None else dtypes.string)
    return pieces, TensorSpec(pieces.dims, dtypes.int64), counts


def _decode(x: NDArray, *, how: Any, texts: str | None) -> tuple[NDArray, NDArray, NDArray]:
    """`texts`: the encoding of the characters; None: give their numbers."""
    rows = [_decoded(s, *how) for s in x.reshape(-1).tolist()]
    places, counts = listed_pieces([[p for _, p in row] for row in rows], x.shape, np.int64(0))
    if texts is not None:
        characters = [[chr(c).encode(texts) for c, _ in row] for row in rows]
        return listed_pieces(characters, x.shape, b"")[0], places, counts
    numbers = [[c for c, _ in row] for row in rows]
    return listed_pieces(numbers, x.shape, np.int32(0))[0], places, counts


DECODE = register(Op("unicode_decode", _infer_decode, _decode, tags=STRINGS | {"dynamic"}))


def characters(
    x: Tensor, encoding: str, errors: str, other: int, control: bool = False, texts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """The characters of all strings, the byte where each begins, and how many each string has.

    Args:
        encoding: "UTF-8", "UTF-16-BE", "UTF-32-BE"; to numbers any that Python knows.
        errors: what is done about bytes that are no character: "replace", "ignore", or "strict".
        other: the number that stands for them.
        control: it stands for characters below 32, too.
        texts: whether characters are strings in the encoding; else they are their numbers, int32.

    Raises:
        InvalidArgumentError: an unknown encoding or way; with "strict" bytes that are no character.
    """
    kept = _output_encoding(encoding) if texts else None
    how = (_input_encoding(encoding), errors, _checked(errors, other), bool(control))
    return run(DECODE, x, how=how, texts=kept)  # type: ignore[no-any-return]


def _infer_encode(x: Spec, **attrs: Any) -> TensorSpec:
    if x.dtype is not dtypes.int32:
        raise TypeError(f"the characters are {x.dtype.name}, not int32")
    if not x.rank:
        raise ValueError("a scalar is no row of characters")
    return TensorSpec(x.dims[:-1], dtypes.string)


def _encode(x: NDArray, *, encoding: str, errors: str, other: int) -> NDArray:
    if x.dtype != np.int32 or not x.ndim:
        raise ValueError("not rows of int32")  # the shape rule says it
    found = np.empty(x.shape[:-1], object)
    for place in np.ndindex(found.shape):
        found[place] = _encoded(x[place].tolist(), encoding, errors, other)
    return found


ENCODE = register(Op("unicode_encode", _infer_encode, _encode, tags=STRINGS))


def unicode_encode(
    input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Strings of the characters whose numbers are the rows of `input`, int32 [..., n].

    Args:
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors, replacement_char: what is done about numbers that are no character, as in
            `unicode_decode`.

    Raises:
        InvalidArgumentError: another encoding or dtype; with "strict" numbers of no character.
    """
    other = _checked(errors, replacement_char)
    encoding = _output_encoding(output_encoding)
    x = convert_to_tensor(input, dtype_hint=dtypes.int32)
    return run(ENCODE, x, encoding=encoding, errors=errors, other=other)  # type: ignore[no-any-return]


def _infer_encode_rows(x: Spec, counts: Spec, **attrs: Any) -> TensorSpec:
    if x.dtype is not dtypes.int32:
        raise TypeError(f"the characters are {x.dtype.name}, not int32")
    return TensorSpec(counts.dims, dtypes.string)


def _encode_rows(x: NDArray, counts: NDArray, *, encoding: str, errors: str, other: int) -> NDArray:
    found, place = np.empty(counts.shape, object), 0
    numbers = x.tolist()
    for row, count in enumerate(counts.tolist()):
        found[row] = _encoded(numbers[place : place + count], encoding, errors, other)
        place += count
    return found


ENCODE_ROWS = register(Op("unicode_encode_rows", _infer_encode_rows, _encode_rows, tags=STRINGS))


def encode_rows(x: Tensor, counts: Tensor, encoding: str, errors: str, other: int) -> Tensor:
    """Strings of characters whose numbers are one after another, so many of each string.

    Raises:
        InvalidArgumentError: as of `unicode_encode`.
    """
    how = {"encoding": _output_encoding(encoding), "errors": errors}
    return run(ENCODE_ROWS, x, counts, **how, other=_checked(errors, other))  # type: ignore[no-any-return]


def _transcoded(s: bytes, how: Any, encoding: str) -> bytes:
    return "".join(chr(c) for c, _ in _decoded(s, *how)).encode(encoding)


TRANSCODE = elementwise("unicode_transcode", _transcoded)


def unicode_transcode(
    input: Any, input_encoding: str, output_encoding: str, errors: str = "replace",
    replacement_char: int = 65533, replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The strings in another encoding.

    Args:
        input_encoding, errors, replacement_char, replace_control_characters: as in
            `unicode_decode`.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".

    Raises:
        InvalidArgumentError: as of `unicode_decode`, or another `output_encoding`.
    """
    other = _checked(errors, replacement_char)
    how = (_input_encoding(input_encoding), errors, other, bool(replace_control_characters))
    encoding = _output_encoding(output_encoding)
    return run(TRANSCODE, string_tensor(input), how=how, encoding=encoding)  # type: ignore[no-any-return]
