"""What texts do whose characters only the run knows, written as users write: traced with the
function that has the text. Texts are arrays of the numbers of their characters."""

from __future__ import annotations

from typing import Any

import numpy as np


def of_int(number: Any) -> Any:
    """The characters of ``str(number)``."""
    size = 1
    rest = number // 10
    if number < 0:
        size += 1
        rest = _tenth(number)
    while rest > 0:
        rest //= 10
        size += 1
    return _filled(number, size)


def _tenth(number: Any) -> Any:
    """A tenth of a negative number, without its sign: ``-number`` of the least int is no int."""
    return -((number + 9) // 10)


def _last_digit(number: Any) -> Any:
    digit = number % 10
    if number < 0 and digit > 0:
        digit = 10 - digit
    return digit


def _filled(number: Any, size: Any) -> Any:
    codes = np.empty(size, np.int64)
    codes[size - 1] = 48 + _last_digit(number)
    rest = number // 10
    if number < 0:
        codes[0] = 45
        rest = _tenth(number)
    place = size - 2
    while rest > 0:
        codes[place] = 48 + rest % 10
        rest //= 10
        place -= 1
    return codes


def to_int(codes: Any) -> Any:
    """``int(text)``.

    Raises:
        ValueError: it is none.
    """
    size = len(codes)
    place, end = 0, size
    while place < size and _is_space(codes[place]):
        place += 1
    while end > place and _is_space(codes[end - 1]):
        end -= 1
    sign = 1
    if place < end and (codes[place] == 45 or codes[place] == 43):
        if codes[place] == 45:
            sign = -1
        place += 1
    found = 0
    wrong = place >= end
    for i in range(place, end):
        digit = int(codes[i]) - 48
        wrong = wrong or digit < 0 or digit > 9
        found = found * 10 - digit  # negative: the least int has no counterpart
    if wrong:
        raise ValueError("invalid literal for int() with base 10")
    if sign > 0:
        found = -found
    return found


def _is_space(code: Any) -> Any:
    return code == 32 or (code >= 9 and code <= 13)


def same(a: Any, b: Any) -> Any:
    place, size = 0, len(a)
    equal = size == len(b)
    while equal and place < size:
        equal = bool(a[place] == b[place])
        place += 1
    return equal


def less(a: Any, b: Any) -> Any:
    """``a < b``."""
    place, size = 0, min(len(a), len(b))
    while place < size and a[place] == b[place]:
        place += 1
    found = len(a) < len(b)
    if place < size:
        found = bool(a[place] < b[place])
    return found


def position(codes: Any, part: Any, start: Any) -> Any:
    """The first position of a text in another one from `start` on, or -1."""
    size, length = len(codes), len(part)
    place = start
    found = -1
    while found < 0 and place + length <= size:
        i = 0
        while i < length and codes[place + i] == part[i]:
            i += 1
        if i == length:
            found = place
        place += 1
    return found


def number_of(codes: Any, part: Any) -> Any:
    """``text.count(part)`` of a part that is not empty."""
    found = 0
    place = position(codes, part, 0)
    while place >= 0:
        found += 1
        place = position(codes, part, place + len(part))
    return found


def are_digits(codes: Any) -> Any:
    fits = len(codes) > 0
    for code in codes:
        fits = fits and code >= 48 and code <= 57
    return bool(fits)


def padded(codes: Any, width: Any) -> Any:
    """``text.zfill(width)``."""
    size = len(codes)
    made = np.full(max(size, width), 48)
    shift = len(made) - size
    for i in range(size):
        made[shift + i] = codes[i]
    if size > 0 and shift > 0 and (codes[0] == 45 or codes[0] == 43):
        made[0], made[shift] = codes[0], 48
    return made


def ends(codes: Any, given: Any, at_begin: Any, at_end: Any) -> Any:
    """Where the text without characters at its ends begins and ends.

    Args:
        given: the characters; none: white space.
    """
    begin, end = 0, len(codes)
    while at_begin and begin < end and _is_one_of(codes[begin], given):
        begin += 1
    while at_end and end > begin and _is_one_of(codes[end - 1], given):
        end -= 1
    return begin, end


def _is_one_of(code: Any, given: Any) -> Any:
    found = len(given) == 0 and _is_space(code)
    for one in given:
        found = found or code == one
    return found
