"""Texts by name, each of them written when it is first read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping


class Texts(Mapping[str, str]):
    """A mapping whose texts are written when somebody reads them, and then kept.

    There are many texts about a program, and a reader wants one of them. Some take long: the
    assembly takes as long as compiling the program.
    """

    def __init__(self, writers: Mapping[str, Callable[[], str]]) -> None:
        self._writers = dict(writers)
        self._written: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._written:
            self._written[name] = self._writers[name]()
        return self._written[name]

    def __contains__(self, name: object) -> bool:  # a Mapping's own would write the text
        return name in self._writers

    def __iter__(self) -> Iterator[str]:
        return iter(self._writers)

    def __len__(self) -> int:
        return len(self._writers)

    def writer(self, name: str) -> Callable[[], str]:
        """Gives the text of this name, and writes it at most once."""
        return lambda: self[name]
