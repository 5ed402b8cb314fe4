"""The input pipeline of image programs: read, decode JPEG, resize, augment, batch, prefetch.

``python -m benchmarks.input_pipeline --peers-python P --out F`` times it in treadle, TensorFlow
(tf.data) and PyTorch (a DataLoader with processes, Pillow decodes), each in a process of its own,
in turn. The pictures are made here: noise over shapes, of the sizes of photographs on the web.

Two ways to write it: `plain`, as books have it, with a map that is not parallel and no prefetch;
`tuned`, with AUTOTUNE. Every library's batches are checked: shapes, dtypes, range, and that
images without augmentation are those of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import machine

SIZE, BATCH = 256, 32
LIBRARIES = ("treadle", "tensorflow", "torch")


def make_pictures(folder: Path, count: int) -> None:
    """JPEG files of different sizes, about 40 KB each."""
    from PIL import Image

    random = np.random.default_rng(0)
    for number in range(count):
        height, width = random.integers(240, 400), random.integers(320, 500)
        y, x = np.mgrid[:height, :width]
        waves = [np.sin(x / random.uniform(5, 60) + y / random.uniform(5, 60)) for _ in range(3)]
        noise = random.normal(0, 12, (height, width, 3))
        pixels = np.stack(waves, -1) * 90 + 128 + noise
        image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
        image.save(folder / f"{number:04d}.jpg", quality=90)


# -- the pipelines ---------------------------------------------------------------------------------


def dataset(tf: Any, folder: str, way: str, augment: bool = True) -> Any:
    """The pipeline in TensorFlow's words."""

    def load(name: Any) -> Any:
        image = tf.image.decode_jpeg(tf.io.read_file(name), channels=3)
        image = tf.image.resize(image, [SIZE, SIZE]) / 255.0
        if augment:
            image = tf.image.random_flip_left_right(image)
            image = tf.image.random_brightness(image, 0.1)
        return image

    names = sorted(str(path) for path in Path(folder).glob("*.jpg"))
    files = tf.data.Dataset.from_tensor_slices(names)
    if way == "plain":
        return files.map(load).batch(BATCH)
    files = files.shuffle(len(names)) if augment else files
    found = files.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)
    return found.prefetch(tf.data.AUTOTUNE)


def loader(torch: Any, folder: str, way: str, augment: bool = True) -> Any:
    """The pipeline in PyTorch's words."""
    from PIL import Image

    names = sorted(str(path) for path in Path(folder).glob("*.jpg"))

    class Pictures(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return len(names)

        def __getitem__(self, number: int) -> Any:
            with Image.open(names[number]) as image:
                pixels = torch.from_numpy(np.array(image.convert("RGB")))
            image = pixels.permute(2, 0, 1)[None].float()
            image = torch.nn.functional.interpolate(
                image, (SIZE, SIZE), mode="bilinear", align_corners=False
            )[0] / 255.0
            if augment:
                if torch.rand(()) < 0.5:
                    image = image.flip(2)
                image = image + (torch.rand(()) * 0.2 - 0.1)
            return image

    processes = 0 if way == "plain" else len(os.sched_getaffinity(0))
    torch.set_num_threads(1 if processes else len(os.sched_getaffinity(0)))
    return torch.utils.data.DataLoader(
        Pictures(), BATCH, shuffle=augment and way == "tuned", num_workers=processes,
        persistent_workers=bool(processes),
    )  # fmt: skip


def batches(library: str, folder: str, way: str, augment: bool = True) -> Any:
    """An iterable of batches."""
    if library == "treadle":
        import treadle

        return dataset(treadle, folder, way, augment)
    if library == "tensorflow":
        import tensorflow

        return dataset(tensorflow, folder, way, augment)
    import torch

    return loader(torch, folder, way, augment)


def as_array(batch: Any) -> np.ndarray:
    return np.asarray(batch)


# -- timing ----------------------------------------------------------------------------------------


def passes(library: str, folder: str, way: str, count: int) -> Iterator[tuple[float, float]]:
    """The pictures per second of passes, and the milliseconds of all processors that each took in
    this process; the first pass is not counted."""
    pipeline = batches(library, folder, way)
    for number in range(count + 1):
        pictures, started, used = 0, time.perf_counter(), time.process_time()
        for batch in pipeline:
            pictures += batch.shape[0]
        if number:
            spent = time.process_time() - used
            yield pictures / (time.perf_counter() - started), spent / pictures * 1e3


def work(library: str, folder: str, way: str, count: int) -> None:
    """One process: times passes, and keeps the mean of each picture for the check."""
    found = list(passes(library, folder, way, count))
    means = []
    for batch in batches(library, folder, way, augment=False):
        array = as_array(batch)
        assert array.dtype == np.float32 and array.size == array.shape[0] * SIZE * SIZE * 3
        assert array.min() >= 0 and array.max() <= 1.001
        means += array.reshape(array.shape[0], -1).mean(1).tolist()
    rates, spent = zip(*found, strict=True)
    print(json.dumps({"rates": rates, "milliseconds": spent, "means": means}))


def run(options: argparse.Namespace) -> dict[str, Any]:
    rates: dict[str, dict[str, list[float]]] = {}
    spent: dict[str, dict[str, list[float]]] = {}
    means: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        make_pictures(Path(folder), options.pictures)
        sizes = [path.stat().st_size for path in Path(folder).glob("*.jpg")]
        for _ in range(options.rounds):
            for way in ("plain", "tuned"):
                for library in options.libraries.split(","):
                    own = library == "treadle"
                    command = [
                        sys.executable if own else options.peers_python, "-m",
                        "benchmarks.input_pipeline", "--work", library, way, folder,
                        str(options.passes),
                    ]  # fmt: skip
                    done = subprocess.run(command, capture_output=True, text=True, check=False)
                    if done.returncode:
                        raise SystemExit(f"{library}: {done.stderr[-2000:]}")
                    found = json.loads(done.stdout.splitlines()[-1])
                    rates.setdefault(way, {}).setdefault(library, []).extend(found["rates"])
                    spent.setdefault(way, {}).setdefault(library, []).extend(found["milliseconds"])
                    means[library] = found["means"]
                    print(way, library, [round(r) for r in found["rates"]], file=sys.stderr)
    check(means)
    return {
        "machine": machine(),
        "processors": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg(),
        "pictures": options.pictures, "mean_bytes": round(statistics.mean(sizes)),
        "size": SIZE, "batch": BATCH,
        "pictures_per_second": {
            way: {
                library: {"median": round(statistics.median(r), 1), "best": round(max(r), 1)}
                for library, r in found.items()
            }
            for way, found in rates.items()
        },
        # Of PyTorch's own process only: its workers are other processes.
        "processor_milliseconds_per_picture": {
            way: {library: round(min(times), 2) for library, times in found.items()}
            for way, found in spent.items()
        },
    }  # fmt: skip


def check(means: dict[str, list[float]]) -> None:
    """All libraries have the same pictures, as far as decoders agree."""
    first, *others = means.items()
    for name, found in others:
        np.testing.assert_allclose(found, first[1], atol=4e-3, err_msg=f"{name} and {first[0]}")


def main() -> None:
    if sys.argv[1:2] == ["--work"]:
        library, way, folder, count = sys.argv[2:]
        work(library, folder, way, int(count))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.input_pipeline")
    parser.add_argument("--libraries", default=",".join(LIBRARIES))
    parser.add_argument(
        "--peers-python", default=os.environ.get("TREADLE_PEERS_PYTHON", sys.executable)
    )
    parser.add_argument("--pictures", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = json.dumps(run(options), indent=1)
    print(report)
    if options.out:
        options.out.write_text(report + "\n")


if __name__ == "__main__":
    main()
