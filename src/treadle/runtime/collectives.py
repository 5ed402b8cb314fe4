"""How compiled programs reach the function with which workers add up arrays.

Addresses differ between processes, so programs find them in a table, at the number of the way in
which elements are combined (`treadle.ops.control.collectives.number_of_way`).
"""

from __future__ import annotations

import ctypes

from treadle.ops.control.collectives import NATIVE, WAYS, number_of_way

# The words that come first: the function, which is called as MPI_Allreduce is; the communicator;
# what is called with the code of an error; how many calls began, and how many have ended.
HEAD = ("function", "communicator", "failed", "begun", "ended")
ENTRY = ("datatype", "operation")  # the words of each way

_words = (ctypes.c_int64 * (len(HEAD) + len(ENTRY) * len(WAYS) * len(NATIVE)))()


def table_address() -> int:
    """The address of the table."""
    return ctypes.addressof(_words)


def set_function(function: int, communicator: int, failed: int) -> None:
    """Say what programs call."""
    _words[0], _words[1], _words[2] = function, communicator, failed


def set_way(how: str, dtype: object, datatype: int, operation: int) -> None:
    """Say with which handles elements of a dtype are combined."""
    number = number_of_way(how, dtype)  # type: ignore[arg-type]
    assert number is not None
    place = len(HEAD) + len(ENTRY) * number
    _words[place], _words[place + 1] = datatype, operation


def calls() -> tuple[int, int]:
    """How many calls of programs and of Python began, and how many have ended."""
    return _words[HEAD.index("begun")], _words[HEAD.index("ended")]


class counted:
    """A call of Python inside the block counts among those."""

    def __enter__(self) -> None:
        _words[HEAD.index("begun")] += 1

    def __exit__(self, *error: object) -> None:
        _words[HEAD.index("ended")] += 1
