"""What is chosen for a product, and which products matter to a process."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from treadle.runtime.cpu import winners
from treadle.runtime.cpu.library_code import calls_counted
from treadle.runtime.cpu.matmul.candidates import all_choices, cost
from treadle.runtime.cpu.matmul.classes import class_of, class_text, product_of, slot_of
from treadle.runtime.cpu.matmul.tiling import Choice, Product, rule
from treadle.runtime.cpu.target import Target, this_machine
from treadle.runtime.cpu.thread_count import planned_workers


def chosen(product: Product, target: Target) -> tuple[str, Choice | None]:
    """The class of a product, "" where it has none, and what was chosen, None for the rule."""
    found = class_of(product)
    if found is None:
        return "", None
    text = class_text(found, planned_workers())
    winners.note(text)
    return text, _winner(text, found, target)


def _winner(text: str, product: Product, target: Target) -> Choice | None:
    """The winner of a class, if it may be chosen."""
    if target is not this_machine():
        return None  # others were tried out on this one
    numbers = winners.known().get(text)
    if numbers is None:
        return None
    try:
        choice = Choice(*numbers)
    except TypeError:  # so many numbers make no choice
        return None
    return choice if choice in all_choices(product, target, planned_workers()) else None


def made_with(text: str, choice: Choice | None) -> tuple[tuple[str, str], ...]:
    """What a program on disk says of a choice for a class."""
    numbers = () if choice is None else dataclasses.astuple(choice)
    return ((text, winners.numbers_text(numbers)),) if text else ()


def product_that_matters(
    target: Target, tried: Collection[str], cycles: float
) -> tuple[str, Product, int] | None:
    """The class of product that took most cycles in this process, if these are so many, with the
    product that stands for it and the threads that share it.

    Args:
        tried: classes that do not matter any more.
    """
    calls, workers = calls_counted(), planned_workers()
    best, found = cycles, None
    for text in list(winners.seen):
        count = calls[slot_of(text)]
        if not count or text in tried or not text.endswith(f"={workers}"):
            continue
        product = product_of(text)
        taken = count * cost(product, rule(product, target), target, 1)
        if taken > best and len(all_choices(product, target, workers)) > 1:
            best, found = taken, (text, product, workers)
    return found
