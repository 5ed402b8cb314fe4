"""A simulation: how training in sync scales to many workers, under a stated model of the network.

    python -m benchmarks.scaling [--out docs/results/scaling.json]

Nothing here is measured. A message of n bytes between two workers takes ``alpha + n * beta``
seconds, and a worker sends and receives one message at a time. Sums over p workers of n bytes take

    ring   2 (p - 1) alpha + 2 (p - 1) / p * n * beta      (reduce-scatter, then all-gather)
    tree   2 log2(p) alpha + 2 log2(p) * n * beta          (up a binary tree, and down again)

and the faster of both is taken for each pack of gradients. A step takes the time of one worker for
its batch (forward, then backward, which takes twice as long), and the exchanges. Without overlap,
as `td.distribute` computes, they come after the backward pass. With overlap the pack of a layer is
sent when its gradients are there, in the reverse order of the layers, one pack after another.

The weights of a network are those of its layers: ResNet-50 (25.6 million in 161 tensors) and
BERT-base (109.5 million in 199 tensors), in the order of the layers. How long a layer takes is
taken to be in proportion to its multiplications.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Network(NamedTuple):
    """A network of computers.

    Attributes:
        alpha: seconds that a message takes besides its bytes.
        beta: seconds for each byte.
    """

    name: str
    alpha: float
    beta: float


class Layer(NamedTuple):
    """A layer.

    Attributes:
        sizes: the numbers of elements of its weights.
        work: its multiplications for one example.
    """

    sizes: tuple[int, ...]
    work: float


NETWORKS = (
    Network("10 Gbit/s Ethernet", 20e-6, 8 / 10e9),
    Network("100 Gbit/s InfiniBand", 2e-6, 8 / 100e9),
)
WORKERS = (1, 8, 64, 512)
PACK = 1 << 22  # bytes, as `td.distribute` packs


def resnet50() -> Iterator[Layer]:
    """The layers of ResNet-50 for images of 224 x 224."""

    def convolution(inputs: int, outputs: int, size: int, side: int) -> Layer:
        weights = inputs * outputs * size * size
        return Layer((weights, outputs, outputs), weights * side * side)  # batch normalization

    yield convolution(3, 64, 7, 112)
    inputs = 64
    for width, blocks, side in ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)):
        for block in range(blocks):
            yield convolution(inputs, width, 1, side)
            yield convolution(width, width, 3, side)
            yield convolution(width, 4 * width, 1, side)
            if block == 0:
                yield convolution(inputs, 4 * width, 1, side)
            inputs = 4 * width
    yield Layer((inputs * 1000, 1000), inputs * 1000)


def bert_base(length: int = 128) -> Iterator[Layer]:
    """The layers of BERT-base for texts of so many words."""
    width, inner = 768, 3072
    tables = (30522 * width, 512 * width, 2 * width)
    yield Layer((*tables, width, width), length * width)
    for _ in range(12):
        square = (width * width, width)
        yield Layer(
            square * 4 + (width, width),
            length * 4 * width * width + 2 * length * length * width,
        )
        yield Layer(
            (width * inner, inner, inner * width, width, width, width),
            length * 2 * width * inner,
        )
    yield Layer((width * width, width), width * width)


def reduce_seconds(network: Network, workers: int, size: float) -> float:
    """The seconds of a sum of so many bytes over all workers."""
    if workers == 1:
        return 0.0
    levels = math.ceil(math.log2(workers))
    share = 2 * (workers - 1) / workers
    ring = 2 * (workers - 1) * network.alpha + share * size * network.beta
    tree = 2 * levels * (network.alpha + size * network.beta)
    return min(ring, tree)


def packs(layers: Sequence[Layer]) -> list[tuple[float, int]]:
    """(bytes, the layer whose gradients come last) of each pack, in the order of the backward
    pass."""
    found: list[tuple[float, int]] = []
    filled, last = 0.0, 0
    for place in reversed(range(len(layers))):
        for size in layers[place].sizes:
            if filled and filled + 4 * size > PACK:
                found.append((filled, last))
                filled = 0.0
            filled, last = filled + 4 * size, place
    return [*found, (filled, last)]


def step_seconds(
    layers: Sequence[Layer], compute: float, network: Network, workers: int, overlap: bool
) -> float:
    """The seconds of a step.

    Args:
        compute: those of one worker alone.
    """
    total = sum(layer.work for layer in layers)
    ready = {}  # layer -> when its gradients are there
    now = compute / 3
    for place in reversed(range(len(layers))):
        now += compute * 2 / 3 * layers[place].work / total
        ready[place] = now
    free = 0.0 if overlap else now
    for size, last in packs(layers):
        free = max(free, ready[last]) + reduce_seconds(network, workers, size)
    return max(free, now)


def table() -> list[dict[str, Any]]:
    """A row for each network of layers and of computers, with and without overlap."""
    rows = []
    # The seconds of a worker's step are assumptions: those of an accelerator, and of a processor.
    models = (
        ("ResNet-50", list(resnet50()), (("32 images in 0.1 s", 0.1), ("32 images in 4 s", 4.0))),
        ("BERT-base", list(bert_base()), (("32 texts in 0.2 s", 0.2), ("32 texts in 8 s", 8.0))),
    )
    for name, layers, speeds in models:
        for speed, compute in speeds:
            for network in NETWORKS:
                for overlap in (False, True):
                    seconds = [
                        step_seconds(layers, compute, network, workers, overlap)
                        for workers in WORKERS
                    ]
                    rows.append(
                        {
                            "model": name, "worker": speed, "network": network.name,
                            "overlap": overlap,
                            "efficiency": {
                                str(workers): round(compute / taken, 3)
                                for workers, taken in zip(WORKERS, seconds, strict=True)
                            },
                        }
                    )  # fmt: skip
    return rows


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table of docs/distribute.md."""
    sizes = [w for w in WORKERS if w > 1]
    lines = [
        f"| model | a worker's step | network | overlap | {' | '.join(map(str, sizes))} |",
        "|---|---|---|---|" + "---|" * len(sizes),
    ]
    for row in rows:
        found = " | ".join(f"{row['efficiency'][str(w)]:.0%}" for w in sizes)
        overlap = "yes" if row["overlap"] else "no"
        lines.append(
            f"| {row['model']} | {row['worker']} | {row['network']} | {overlap} | {found} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = table()
    if options.out is not None:
        report = {
            "command": "python -m benchmarks.scaling",
            "what": "a simulation, nothing is measured: see benchmarks/scaling.py for its model",
            "networks": {n.name: {"alpha, s": n.alpha, "beta, s/byte": n.beta} for n in NETWORKS},
            "pack, bytes": PACK,
            "weights": {
                "ResNet-50": sum(sum(x.sizes) for x in resnet50()),
                "BERT-base": sum(sum(x.sizes) for x in bert_base()),
            },
            "rows": rows,
        }
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(markdown(rows))


if __name__ == "__main__":
    main()
