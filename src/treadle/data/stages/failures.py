"""Errors that do not end a pass.

A generator that raises has ended. An iteration goes on behind an element that failed, which
`ignore_errors` leaves out: generators of stages take their elements from `carried`, where an error
is an element, hand such elements on, and are given out through `released`, which raises them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import treadle as td
from treadle.data.stages.stage import Stage, name_stage


class Failure:
    """An error in the place of an element."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def carried(source: Iterable[Any]) -> Iterator[Any]:
    """The elements, and the errors between them."""
    items = iter(source)
    while True:
        try:
            item = next(items)
        except StopIteration:
            return
        except Exception as error:
            # `assertRaises` clears the frames of an error, which ends generators among them.
            own = error.__traceback__
            item = Failure(error.with_traceback(None if own is None else own.tb_next))
        yield item


def attempted(call: Callable[[Any], Iterable[Any]], item: Any) -> Any:
    """An iterator over the elements of ``call(item)`` and the errors between them; for an error of
    its own a failure."""
    try:
        return carried(call(item))
    except Exception as error:
        return Failure(error)


def paired(call: Callable[[Any], Any], source: Iterable[Any]) -> Iterator[Any]:
    """(``call(element)``, element) for every element; an error of either is a failure."""

    def pair(element: Any) -> Any:
        return call(element), element

    return carried(map(pair, source))


def released(items: Iterable[Any], stage: Stage) -> Iterator[Any]:
    """The elements; errors are raised where their turn comes, and name the stage: this one, unless
    they come from one below it."""

    def raised(item: Any) -> Any:
        if type(item) is Failure:
            if isinstance(item.error, td.errors.OpError):
                name_stage(item.error, stage)
            raise item.error
        return item

    return map(raised, items)
