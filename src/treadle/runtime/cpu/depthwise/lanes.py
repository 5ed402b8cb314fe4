"""Vectors of output channels, and the input channels that belong to their lanes.

With a multiplier m, output channel o belongs to input channel ``o // m``: the lanes of a vector of
outputs repeat the channels that are loaded, in patterns that are known when the code is made.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from treadle.core.records import record
from treadle.runtime.cpu.library_text import (
    ELEMENT_BYTES,
    first_lanes,
    masked_load,
    masked_store,
    suffix,
)  # fmt: skip
from treadle.runtime.cpu.llvm_text import Function, Word
from treadle.runtime.cpu.matmul.tiles import lanes

MOST_PATTERNS = 8  # patterns of lanes that are worth code of their own: the length of code


@record(frozen=True)
class Channels:
    """The input channels of a vector's lanes.

    Attributes:
        first: the first of them.
        picks: for each lane the channel that it takes, counted from `first`.
        count: how many of them exist; None: all.
    """

    first: Word
    picks: tuple[int, ...]
    count: Word | None = None


class Lanes:
    """Loads and stores of one vector of output channels; the last vector may be partial."""

    def __init__(
        self, fn: Function, element: str, width: int, channel: Word, mask: str = "",
        inputs: Channels | None = None,
    ) -> None:  # fmt: skip
        self.fn, self.element, self.width, self.channel = fn, element, width, channel
        self.mask, self.inputs, self.size = mask, inputs, ELEMENT_BYTES[element]
        self.kind = f"<{width} x {element}>" if width > 1 else element
        self.suffix = (f"v{width}" if width > 1 else "") + suffix(element)

    def load(self, pointer: str) -> str:
        """The outputs' lanes of an array of output channels."""
        place = self.fn.offset(pointer, self.channel, self.element)
        if self.mask:
            return masked_load(self.fn, place, self.element, self.width, self.mask)
        return self._plain(place, self.kind)

    def load_inputs(self, pointer: str) -> str:
        """For each lane the input channel of an array of these."""
        if self.inputs is None:
            return self.load(pointer)
        fn, picks = self.fn, self.inputs.picks
        place = fn.offset(pointer, self.inputs.first, self.element)
        several = max(picks) + 1
        if several == 1:
            return self._every(self._plain(place, self.element))
        width = 1 << (several - 1).bit_length()
        kind = f"<{width} x {self.element}>"
        if self.inputs.count is not None:
            mask = first_lanes(fn, self.inputs.count, width)
            x = masked_load(fn, place, self.element, width, mask)
        elif several < width:
            mask = ", ".join(f"i1 {int(i < several)}" for i in range(width))
            x = masked_load(fn, place, self.element, width, f"<{mask}>")
        else:
            x = self._plain(place, kind)
        order = ", ".join(f"i32 {i}" for i in picks)
        which = f"<{self.width} x i32> <{order}>"
        return fn.value(f"shufflevector {kind} {x}, {kind} poison, {which}")

    def _plain(self, place: str, kind: str) -> str:
        return self.fn.value(f"load {kind}, ptr {place}, align {self.size}")

    def _every(self, x: str) -> str:
        """A vector of one number."""
        if self.width == 1:
            return x
        fn, kind = self.fn, self.kind
        x = fn.value(f"insertelement {kind} poison, {self.element} {x}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return fn.value(f"shufflevector {kind} {x}, {kind} poison, {zeros}")

    def store(self, value: str, pointer: str, past: bool = False) -> None:
        place = self.fn.offset(pointer, self.channel, self.element)
        if self.mask:
            masked_store(self.fn, value, place, self.element, self.width, self.mask)
        else:
            how = f"{self.width * self.size}, !nontemporal !0" if past else str(self.size)
            self.fn.emit(f"store {self.kind} {value}, ptr {place}, align {how}")

    def fma(self, a: str, b: str, c: str) -> str:
        kind = self.kind
        name = f"{kind} @llvm.fma.{self.suffix}({kind}, {kind}, {kind})"
        return self.fn.call(name, f"{kind} {a}, {kind} {b}, {kind} {c}")


Body = Callable[[list[Lanes]], None]


def each_vector(
    fn: Function, element: str, body: Body, multiplier: int = 1, together: int = 1
) -> None:
    """Whole vectors of the outputs of ``%channels`` channels, then the rest: masked where that is
    cheap, else one by one.

    Args:
        together: how many vectors the body is given at a time where each channel has one output.
    """
    width = lanes(fn.module.target, element)
    if multiplier == 1:
        _each_output(fn, element, width, body, together)
    elif multiplier < width and multiplier // gcd(multiplier, width) <= MOST_PATTERNS:
        _each_pattern(fn, element, width, body, multiplier)
    else:
        _each_input(fn, element, width, body, multiplier)


def fills_vectors(width: int, multiplier: int) -> bool:
    """Whether the vectors begin at multiples of their width."""
    patterns = multiplier // gcd(multiplier, width)
    return multiplier % width == 0 or (multiplier < width and patterns <= MOST_PATTERNS)


def _masks_cost(fn: Function) -> bool:
    return fn.module.target.vector_bits < 256


def _each_output(fn: Function, element: str, width: int, body: Body, together: int) -> None:
    done: Word = 0
    for count in sorted({together, 1}, reverse=True):
        whole = fn.mul(fn.divide("%channels", width * count), width * count)
        with fn.loop(done, whole, width * count) as channel:
            places = [fn.add(channel, i * width) for i in range(count)]
            body([Lanes(fn, element, width, place) for place in places])
        done = whole
    if _masks_cost(fn):
        with fn.loop(whole, "%channels") as channel:
            body([Lanes(fn, element, 1, channel)])
        return
    rest = fn.sub("%channels", whole)
    with fn.when(fn.compare("sgt", rest, 0)):
        body([Lanes(fn, element, width, whole, first_lanes(fn, rest, width))])


def _each_pattern(fn: Function, element: str, width: int, body: Body, multiplier: int) -> None:
    """So many channels at a time that their outputs fill whole vectors."""
    together = width // gcd(width, multiplier)
    patterns = [
        _pattern(v * width, width, multiplier) for v in range(together * multiplier // width)
    ]
    whole = fn.mul(fn.divide("%channels", together), together)
    with fn.loop(0, whole, together) as channel:
        for v, (first, picks) in enumerate(patterns):
            output = fn.add(fn.mul(channel, multiplier), v * width)
            inputs = Channels(fn.add(channel, first), picks)
            body([Lanes(fn, element, width, output, "", inputs)])
    if _masks_cost(fn):
        _one_by_one(fn, element, body, multiplier, whole)
        return
    rest = fn.sub("%channels", whole)
    for v, (first, picks) in enumerate(patterns):
        left = fn.sub(fn.mul(rest, multiplier), v * width)
        with fn.when(fn.compare("sgt", left, 0)):
            output = fn.add(fn.mul(whole, multiplier), v * width)
            inputs = Channels(fn.add(whole, first), picks, fn.sub(rest, first))
            body([Lanes(fn, element, width, output, first_lanes(fn, left, width), inputs)])


def _pattern(start: int, width: int, multiplier: int) -> tuple[int, tuple[int, ...]]:
    """The input channel of output `start`, and for each lane how far its channel is behind it."""
    channels = [(start + lane) // multiplier for lane in range(width)]
    return channels[0], tuple(c - channels[0] for c in channels)


def _one_by_one(fn: Function, element: str, body: Body, multiplier: int, first: Word) -> None:
    with fn.loop(first, "%channels") as channel, fn.loop(0, multiplier) as place:
        output = fn.add(fn.mul(channel, multiplier), place)
        body([Lanes(fn, element, 1, output, "", Channels(channel, (0,)))])


def _each_input(fn: Function, element: str, width: int, body: Body, multiplier: int) -> None:
    """The outputs of one channel after another."""
    whole = multiplier // width * width
    with fn.loop(0, "%channels") as channel:
        start, inputs = fn.mul(channel, multiplier), Channels(channel, (0,) * width)
        with fn.loop(0, whole, width) as place:
            body([Lanes(fn, element, width, fn.add(start, place), "", inputs)])
        if _masks_cost(fn):
            with fn.loop(whole, multiplier) as place:
                body([Lanes(fn, element, 1, fn.add(start, place), "", Channels(channel, (0,)))])
        elif whole < multiplier:
            mask = ", ".join(f"i1 {int(whole + i < multiplier)}" for i in range(width))
            body([Lanes(fn, element, width, fn.add(start, whole), f"<{mask}>", inputs)])
