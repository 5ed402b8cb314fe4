"""Texts of ints that only the run knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

FIFTHS = {str(digit): digit**5 for digit in range(10)}


def digits(n: Any) -> Any:
    return sum(int(d) for d in str(n)), sum(map(int, str(n))), [int(d) for d in str(n)]


def turned(n: Any) -> Any:
    text = str(n)
    back = text[::-1]
    return back, text == back, int(back), text != back, "".join(reversed(text))


def asked(n: Any) -> Any:
    text = str(n)
    return (
        len(text), "1" in text, text in "1987121", text.count("1"), text.find("1"), text[0],
        text[-1], text.isdigit(), text[1:], text.startswith("1"), text.endswith("1"),
        isinstance(text, str), type(text) is str, type(text) == str,  # noqa: E721
    )  # fmt: skip


def joined(n: Any) -> Any:
    text = str(n) + "-" + str(-n)
    return text, text * 2, "".join(sorted(text)), "+".join([text, "x", str(n)]), int(str(-n))


def padded(n: Any) -> Any:
    return str(n).zfill(5), str(-n).zfill(5), str(n * 100).rstrip("0"), str(n).strip("1")


def compared(n: Any) -> Any:
    return str(n) < str(n + 1), str(n) > "5", max(str(n)), min(str(n)), "121" == str(n)


def held(n: Any) -> Any:
    return list(str(n)), sorted(str(n)), len(set(str(n))), sum(FIFTHS[d] for d in str(n))


def letters(n: Any) -> Any:
    return chr(97 + n % 26), ord(chr(97 + n % 26)), ord(str(n)[0])


def longest_palindrome(n: Any) -> Any:
    best, found = "", 0
    for k in range(n):
        text = str(k * k)
        if text == text[::-1]:
            best = text
            found += 1
    return best, found


def chosen(n: Any) -> Any:
    word = "even" if n % 2 == 0 else str(n)
    return word, len(word), str(n > 100)


def happy(n: Any) -> Any:
    seen = set()
    while n != 1 and n not in seen:
        seen.add(n)
        n = sum(int(digit) ** 2 for digit in str(n))
    return n == 1


FUNCTIONS = [
    digits, turned, asked, joined, padded, compared, held, letters, longest_palindrome, chosen,
    happy,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_texts(function: Any) -> None:
    jitted = td.jit(function)
    for n in (19, 121, 7, 1001):
        expected, found = function(n), jitted(n)
        assert found == expected
        if isinstance(expected, tuple):
            assert [type(f) for f in found] == [type(e) for e in expected]


def test_the_least_and_the_greatest_int() -> None:
    jitted = td.jit(lambda n: (str(n), int(str(n))))
    for n in (1, -1, 0, 2**63 - 1, -(2**63), 10**18, -(10**18), 999):
        assert jitted(n) == (str(n), n)


def test_numpys_ints() -> None:
    jitted = td.jit(lambda x: [len(str(v)) for v in x])
    assert jitted(np.array([1, 10, -100])) == [1, 2, 4]


def test_errors_of_the_run() -> None:
    jitted = td.jit(lambda n: int(str(n)[1:]))
    assert jitted(123) == 23 and jitted(45) == 5
    with pytest.raises(ValueError, match="invalid literal"):
        jitted(7)
    looked_up = td.jit(lambda n: {"1": 5, "2": 6}[str(n)[0]])
    assert looked_up(12) == 5 and looked_up(23) == 6
    with pytest.raises(KeyError):
        looked_up(31)


def test_what_is_not_supported_is_refused() -> None:
    with pytest.raises(TypeError, match="given to encode"):
        td.jit(lambda x: str(x[0]).encode())(np.array([1]))


def written(n: Any, x: Any) -> Any:
    ratio = f"{x:.3f}"
    return f"n={n}", f"{n:4d}|{x}|" + ratio, f"{'even' if n % 2 == 0 else 'odd'}", [f"{n}{n}", "a"]


def keys_of_texts(n: Any) -> Any:
    found = 0
    for k in range(n):
        if f"{k}{k + 1}"[0] == f"{k}"[-1]:
            found += 1
    return found


def test_texts_that_are_written() -> None:
    jitted = td.jit(written)
    for n, x in ((3, 1.5), (4, 2.25), (-5, 1e20)):
        assert jitted(n, x) == written(n, x)
    counted = td.jit(keys_of_texts)
    for n in (5, 30, 200):
        assert counted(n) == keys_of_texts(n)


def test_texts_with_floats_are_not_asked() -> None:
    with pytest.raises(TypeError, match="can be returned, printed and joined"):
        td.jit(lambda x: len(f"{x}"))(2.5)


def test_texts_that_are_printed_and_raised(capsys: Any) -> None:
    def told(n: Any) -> Any:
        text = f"{n} of {n + 1}"
        print(text, f"{n:03d}", str(n))
        if n > 5:
            message = f"{n=} is too large, {n!r}"
            raise ValueError(message)
        return text

    jitted = td.jit(told)
    assert [jitted(n) for n in (1, 2, 3)] == ["1 of 2", "2 of 3", "3 of 4"]
    assert capsys.readouterr().out == "1 of 2 001 1\n2 of 3 002 2\n3 of 4 003 3\n"
    with pytest.raises(ValueError, match="n=7 is too large, 7"):
        jitted(7)


def test_conversions_in_f_strings() -> None:
    def told(n: Any, x: Any) -> Any:
        kind = "even" if n % 2 == 0 else "odd"
        return f"{n!r} {x[0]!r} {x[0]!s} {kind!r:>8} {[n, 2]!r} {x[0]:.1f}"

    jitted = td.jit(told)
    for n in (1, 2, 3):
        x = np.array([n / 4, 1.0])
        assert jitted(n, x) == told(n, x)
    with pytest.raises(TypeError, match="as repr"):
        td.jit(lambda x: f"{str(x[0])!r}")(np.array([1]))
