"""The innermost loops: runs of pixels times taps, for all channels."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from treadle.runtime.cpu.depthwise.lanes import Lanes, each_vector, fills_vectors
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.target import Target

TAPS = (9, 3, 1)  # filter gradients that are summed up together: windows are made of so many


def add_weighing(module: Module, element: str, multiplier: int) -> None:
    """``@weigh`` (x, x_step, f, y, y_step, taps, count, past, pixels, channels)

    ``y[p] = sum over taps t of x[p + t] f[t]`` for every output of every channel.
    Where `past` is 1 stores go past the caches, for a y whose pixels begin at cache lines.
    Steps are bytes from pixel to pixel, `taps` a table of pairs of byte offsets into x and f.
    """
    counts = _pixels(module.target, multiplier)
    for pixels in counts:
        _define_weigh(module, element, pixels, multiplier)
    _define_runs(module, "weigh", counts, _next_pixels, "i64 %pixels")


def _pixels(target: Target, multiplier: int) -> tuple[int, ...]:
    """Pixels that are summed up together: with the vectors of each so many that as many sums are
    under way as must be, then half as many."""
    most = max(1, target.tuning.chains // _vectors_of_a_line(target, multiplier))
    return tuple(most >> i for i in range(most.bit_length()))


def _vectors_of_a_line(target: Target, multiplier: int) -> int:
    """Vectors of a pixel that are summed up together, at least: a cache line of them, so that whole
    lines are stored at a time. One, where the lanes of vectors repeat channels in patterns."""
    if multiplier > 1:
        return 1
    return max(1, target.tuning.line // target.tuning.vector_bytes)


def add_correlation(module: Module, element: str, multiplier: int) -> None:
    """``@correlate`` (x, x_step, dy, dy_step, part, taps, count, pixels, channels):
    ``part[t] += sum over p of x[p + t] dy[p]`` for every output of every channel."""
    for taps in TAPS:
        _define_correlate(module, element, taps, multiplier)
    _define_runs(module, "correlate", TAPS, _next_taps, "i64 %count")


_WEIGH = "ptr %x, i64 %x_step, ptr %f, ptr %y, i64 %y_step, ptr %taps, i64 %count, i64 %past"
_CORRELATE = "ptr %x, i64 %x_step, ptr %y, i64 %y_step, ptr %f, ptr %taps, i64 %pixels"


def _define_runs(
    module: Module, name: str, sizes: tuple[int, ...],
    following: Callable[[Function, Word], str], last: str,
) -> None:  # fmt: skip
    """Divide the pixels, or the taps, into as many as the kernels take at once."""
    fn = Function(module)
    total = last.split()[1]
    done: Word = 0
    for size in sizes:
        end = fn.add(done, fn.mul(fn.divide(fn.sub(total, done), size), size))
        with fn.loop(done, end, size) as i:
            fn.emit(f"call void @{name}_{size}({following(fn, i)}, i64 %channels)")
        done = end
    fn.emit("ret void")
    arguments = _WEIGH if name == "weigh" else _CORRELATE
    fn.define(name, f"void @{{}}({arguments}, {last}, i64 %channels)", "internal")


def _next_pixels(fn: Function, p: Word) -> str:
    x = fn.offset("%x", fn.mul(p, "%x_step"), "i8")
    y = fn.offset("%y", fn.mul(p, "%y_step"), "i8")
    rest = "ptr %taps, i64 %count, i64 %past"
    return f"ptr {x}, i64 %x_step, ptr %f, ptr {y}, i64 %y_step, {rest}"


def _next_taps(fn: Function, t: Word) -> str:
    taps = fn.offset("%taps", fn.mul(t, 2), "i64")
    return f"ptr %x, i64 %x_step, ptr %y, i64 %y_step, ptr %f, ptr {taps}, i64 %pixels"


def _sums(
    fn: Function, lanes_: Lanes, starts: list[str], stop: str,
    step: Callable[[str, list[str]], list[str]],
) -> list[str]:  # fmt: skip
    """A loop from 0 to `stop` that carries sums in registers; straight-line steps."""
    kinds = [lanes_.kind] * len(starts)
    return fn.carried(0, stop, 1, kinds, starts, lambda t, sums: step(str(t), sums))


def _define_weigh(module: Module, element: str, pixels: int, multiplier: int) -> None:
    fn = Function(module)
    steps = [fn.mul("%x_step", p) for p in range(pixels)]

    def body(vectors: list[Lanes]) -> None:
        def step(t: str, sums: list[str]) -> list[str]:
            place = fn.mul(t, 2)
            x = fn.offset("%x", fn.load_word("%taps", place), "i8")
            f = fn.offset("%f", fn.load_word("%taps", fn.add(place, 1)), "i8")
            weights = [vector.load(f) for vector in vectors]
            sources = [fn.offset(x, s, "i8") for s in steps]
            return [
                vector.fma(vector.load_inputs(source), weight, total)
                for (source, (vector, weight)), total in zip(
                    product(sources, zip(vectors, weights, strict=True)), sums, strict=True
                )
            ]

        first = vectors[0]
        bytes_ = len(vectors) * first.width * first.size
        zero = "zeroinitializer" if first.width > 1 else "0.0"
        sums = _sums(fn, first, [zero] * (pixels * len(vectors)), "%count", step)
        places = [fn.offset("%y", fn.mul("%y_step", p), "i8") for p in range(pixels)]
        stores = list(zip(sums, product(places, vectors), strict=True))
        whole = first.width > 1 and not first.mask and fills_vectors(first.width, multiplier)
        if whole and module.target.is_x86 and bytes_ % module.target.tuning.line == 0:
            _store_past(fn, stores)
            return
        for total, (place, vector) in stores:
            vector.store(total, place)

    least = _vectors_of_a_line(module.target, multiplier)
    together = max(least, module.target.tuning.chains // 2 // pixels)
    each_vector(fn, element, body, multiplier, together)
    fn.emit("ret void")
    fn.define(f"weigh_{pixels}", f"void @{{}}({_WEIGH}, i64 %channels)", "internal")


def _store_past(fn: Function, stores: list[tuple[str, tuple[str, Lanes]]]) -> None:
    """Store whole vectors, past the caches where that is wanted."""
    past, through, stored = (fn.block_of(name, []) for name in ("past", "through", "stored"))
    fn.fork(str(fn.compare("ne", "%past", 0)), past, through)
    for block in (past, through):
        fn.label(block)
        for total, (place, vector) in stores:
            vector.store(total, place, block is past)
        fn.branch(stored)
    fn.label(stored)


def _define_correlate(module: Module, element: str, taps: int, multiplier: int) -> None:
    fn = Function(module)
    offsets = [fn.load_word("%taps", i) for i in range(2 * taps)]
    sources = [fn.offset("%x", offset, "i8") for offset in offsets[::2]]
    targets = [fn.offset("%f", offset, "i8") for offset in offsets[1::2]]

    def body(vectors: list[Lanes]) -> None:
        (vector,) = vectors

        def step(p: str, sums: list[str]) -> list[str]:
            x_place, y_place = fn.mul(p, "%x_step"), fn.mul(p, "%y_step")
            dy = vector.load(fn.offset("%y", y_place, "i8"))
            xs = [vector.load_inputs(fn.offset(source, x_place, "i8")) for source in sources]
            return [vector.fma(x, dy, s) for x, s in zip(xs, sums, strict=True)]

        starts = [vector.load(target) for target in targets]
        for total, target in zip(_sums(fn, vector, starts, "%pixels", step), targets, strict=True):
            vector.store(total, target)

    each_vector(fn, element, body, multiplier)
    fn.emit("ret void")
    fn.define(f"correlate_{taps}", f"void @{{}}({_CORRELATE}, i64 %channels)", "internal")
