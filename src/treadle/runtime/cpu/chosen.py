"""What is chosen for a routine, and which routines matter to a process."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from treadle.runtime.cpu import winners
from treadle.runtime.cpu.alike import Alike, Form, slot_of, text_of
from treadle.runtime.cpu.library_code import calls_counted
from treadle.runtime.cpu.matmul.classes import Products
from treadle.runtime.cpu.target import Target, this_machine
from treadle.runtime.cpu.thread_count import planned_workers


def alike_of(text: str) -> Alike:
    """The class of calls of a `text_of`.

    Raises:
        ValueError: the text names none.
    """
    name, _, threads = text.rpartition(" threads=")
    if not threads.isdigit():
        raise ValueError(f"{text!r} does not say how many threads share a call")
    if name.startswith("matmul "):
        return Products.named(name)
    from treadle.runtime.cpu.convolution.classes import Convolutions

    return Convolutions.named(name)


def chosen(alike: Alike | None, target: Target) -> tuple[str, Form | None]:
    """The text of a class, "" where a call has none, and what was chosen, None for the rule's."""
    if alike is None:
        return "", None
    text = text_of(alike, planned_workers())
    winners.note(text)
    return text, _winner(text, alike, target)


def _winner(text: str, alike: Alike, target: Target) -> Form | None:
    """The winner of a class, if it may be chosen."""
    if target is not this_machine():
        return None  # others were tried out on this one
    numbers = winners.known().get(text)
    if numbers is None:
        return None
    try:
        form = alike.form(numbers)
    except TypeError:
        return None
    return form if form in alike.forms(target, planned_workers()) else None


def made_with(text: str, form: Form | None) -> tuple[tuple[str, str], ...]:
    """What a program on disk says of a choice for a class."""
    numbers = () if form is None else dataclasses.astuple(form)
    return ((text, winners.numbers_text(numbers)),) if text else ()


def class_that_matters(
    target: Target, tried: Collection[str], cycles: float
) -> tuple[str, Alike, int] | None:
    """The class whose calls took most cycles in this process, if these are so many: its text, and
    the threads that share a call.

    Args:
        tried: classes that do not matter any more.
    """
    calls, workers = calls_counted(), planned_workers()
    best, found = cycles, None
    for text in list(winners.seen):
        count = calls[slot_of(text)]
        if not count or text in tried or not text.endswith(f"={workers}"):
            continue
        alike = alike_of(text)
        taken = count * alike.cost(alike.rule(target), target, 1)
        if taken > best and len(alike.forms(target, workers)) > 1:
            best, found = taken, (text, alike, workers)
    return found
