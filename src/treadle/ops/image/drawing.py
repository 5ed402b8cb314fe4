"""Boxes drawn into images, and boxes drawn at random.

Boxes are painted over one another in their order, and whether a random box fits decides how many
numbers are used: compiled programs call the NumPy forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.op_makers import require_kinds
from treadle.ops.random.distributions import seeded
from treadle.ops.random.philox import random_words
from treadle.ops.random.state import draw
from treadle.ops.registry import Op, register, run
from treadle.ops.scalars import integer
from treadle.ops.sizes import may_be


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


# Yellow, blue, red, lime, purple, olive, maroon, navy blue, aqua and fuchsia, with opacity.
_COLORS = np.array(
    [
        [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
    ],
    np.float32,
)  # fmt: skip


def _check_drawing(images: Any, boxes: Any, colors: Any) -> None:
    if len(images) != 4 or len(boxes) != 3 or len(colors) != 2 or not may_be(boxes[2], 4):
        raise _invalid(
            f"images {list(images)}, boxes {list(boxes)}, colors {list(colors)}: "
            "[batch, height, width, channels], [batch, n, 4] and [colors, channels] are needed"
        )
    if not any(may_be(images[3], channels) for channels in (1, 3, 4)):
        raise _invalid(f"images have 1, 3 or 4 channels, not {images[3]}")
    if not may_be(images[0], boxes[0]):
        raise _invalid(f"{images[0]} images with boxes for {boxes[0]}")


def _infer_drawing(images: TensorSpec, boxes: TensorSpec, colors: TensorSpec) -> TensorSpec:
    if images.dtype not in (dtypes.float16, dtypes.float32):
        raise TypeError(f"images are float16 or float32, not {images.dtype.name}")
    _check_drawing(images.dims, boxes.dims, colors.dims)
    return images


def _draw(images: NDArray, boxes: NDArray, colors: NDArray) -> NDArray:
    if images.dtype.kind != "f":
        raise TypeError(f"images are floats, not {images.dtype}")
    _check_drawing(images.shape, boxes.shape, colors.shape)
    found = images.copy()
    channels = images.shape[3]
    if colors.shape[1] < channels:
        raise _invalid(f"colors of {colors.shape[1]} numbers for images of {channels} channels")
    for image, rows in zip(found, boxes, strict=True):
        for number, box in enumerate(rows):
            _frame(image, box, colors[number % len(colors), :channels])
    return found


def _frame(image: NDArray, box: NDArray, color: NDArray) -> None:
    """Paint the lines of a box that are inside the image."""
    height, width = image.shape[:2]
    top, left, bottom, right = (
        int(np.float32(p) * np.float32(s - 1))
        for p, s in zip(box, (height, width, height, width), strict=True)
    )
    if top > bottom or left > right or top >= height or left >= width or min(bottom, right) < 0:
        return
    columns = slice(max(left, 0), min(right, width - 1) + 1)
    rows = slice(max(top, 0), min(bottom, height - 1) + 1)
    if top >= 0:
        image[top, columns] = color
    if bottom < height:
        image[bottom, columns] = color
    if left >= 0:
        image[rows, left] = color
    if right < width:
        image[rows, right] = color


_CALLED = "the elements tell which pixels are painted, and how many numbers are drawn"
DRAW = register(
    Op(
        "draw_bounding_boxes", _infer_drawing, _draw, callback=_CALLED,
        no_gradient="which pixels are painted changes in steps",
    )
)  # fmt: skip


def draw_bounding_boxes(
    images: Any, boxes: Any, colors: Any, name: str | None = None
) -> Tensor:
    """Images with the frames of boxes painted into them.

    Args:
        images: [batch, height, width, channels] floats, of 1, 3 or 4 channels.
        boxes: [batch, n, 4] floats (y_min, x_min, y_max, x_max) in units of height - 1, width - 1.
        colors: [colors, channels], used in turn; None: ten colours.

    Raises:
        InvalidArgumentError: other shapes.
        TypeError: images of another dtype.
    """
    x = convert_to_tensor(images)
    if colors is None:
        palette = _COLORS
        if x.ndim == 4 and x.dims[3] == 1:
            palette = np.ones_like(_COLORS)
        colors = constant(palette)
    return run(DRAW, x, cast(boxes, dtypes.float32), cast(colors, dtypes.float32))  # type: ignore[no-any-return]


# -- at random -------------------------------------------------------------------------------------


class _Stream:
    """Random words one by one, and the numbers that are made of them."""

    def __init__(self, state: NDArray) -> None:
        self.words = self._next(state)

    def _next(self, state: NDArray) -> Iterator[int]:
        count, used = 64, 0
        while True:
            words = random_words(state, count)
            yield from words[used:].tolist()
            count, used = 2 * count, count

    def real(self) -> np.float32:
        """Uniform in [0, 1)."""
        bits = np.uint32(0x3F800000 | (next(self.words) & 0x7FFFFF))
        return bits.view(np.float32) - np.float32(1)

    def below(self, limit: int) -> int:
        """An integer in [0, limit)."""
        if limit & (limit - 1) == 0:
            return next(self.words) & (limit - 1)
        rest = 0xFFFFFFFF % limit + 1
        while (word := next(self.words)) < rest:
            pass
        return word % limit


def _nearest(number: Any) -> int:
    """The nearest integer, the even one of two."""
    return int(np.rint(np.float32(number)))


def _rectangle(
    stream: _Stream, height: int, width: int, areas: tuple[float, float], aspect: np.float32
) -> tuple[int, int, int, int] | None:
    """A box (top, left, height, width) of this ratio of width to height; None where none fits."""
    if areas[1] <= 0 or aspect <= 0 or height <= 0 or width <= 0 or areas[0] > areas[1]:
        return None
    least, most = (np.float32(a) * np.float32(width) * np.float32(height) for a in areas)
    high, highest = _nearest(np.sqrt(least / aspect)), _nearest(np.sqrt(most / aspect))
    if _nearest(highest * aspect) > width:
        highest = int((width + 0.5 - 1e-7) / float(aspect))
        highest -= _nearest(highest * aspect) > width
    highest = min(highest, height)
    high = min(high, highest)
    if high < highest:
        high += stream.below(highest - high + 1)
    wide = _nearest(high * aspect)
    if wide * high < least:
        high += 1
        wide = _nearest(high * aspect)
    if wide * high > most:
        high -= 1
        wide = _nearest(high * aspect)
    if not (least <= wide * high <= most and 0 < wide <= width and 0 < high <= height):
        return None
    top = stream.below(height - high) if high < height else 0
    left = stream.below(width - wide) if wide < width else 0
    return top, left, high, wide


def _covers(found: tuple[int, int, int, int], boxes: NDArray, least: float) -> bool:
    """Whether one of the boxes (top, left, bottom, right) has so large a part inside."""
    top, left, high, wide = found
    for y0, x0, y1, x1 in boxes.tolist():
        area = (y1 - y0) * (x1 - x0)
        height = min(y1, top + high) - max(y0, top)
        width = min(x1, left + wide) - max(x0, left)
        if area >= 1 and max(height, 0) * max(width, 0) / area >= least:
            return True
    return False


def _infer_sample(
    state: TensorSpec, size: TensorSpec, boxes: TensorSpec, least: TensorSpec, **attrs: Any
) -> Any:
    if not size.dtype.is_integer:
        raise TypeError(f"the size of an image is integers, not {size.dtype.name}")
    require_kinds("f", boxes, least)
    vector = TensorSpec((3,), size.dtype)
    return vector, vector, TensorSpec((1, 1, 4), dtypes.float32)


def _sample(
    state: NDArray, size: NDArray, boxes: NDArray, least: NDArray, *,
    aspects: tuple[float, float], areas: tuple[float, float], attempts: int, whole: bool,
) -> tuple[NDArray, NDArray, NDArray]:  # fmt: skip
    if size.shape != (3,) or (boxes.size and (boxes.ndim != 3 or boxes.shape[2] != 4)):
        raise _invalid(
            f"image_size {list(size.shape)} and boxes {list(boxes.shape)}: [3] and [batch, n, 4]"
        )
    if not ((boxes >= 0) & (boxes <= 1)).all():
        raise _invalid("boxes have coordinates in [0, 1]")
    if not boxes.size and not whole:
        raise _invalid("no boxes: give some, or use_image_if_no_bounding_boxes=True")
    height, width = (int(s) for s in size[:2])
    scale = np.array([height, width, height, width], np.float32)
    rows = (boxes.reshape(-1, 4).astype(np.float32) * scale).astype(np.int64)
    if not len(rows):
        rows = np.array([[0, 0, height, width]])
    found = _attempted(_Stream(state), height, width, rows, float(least), aspects, areas, attempts)
    top, left, high, wide = found
    box = np.array([top, left, top + high, left + wide], np.float32) / scale
    begin, extent = np.array([top, left, 0]), np.array([high, wide, -1])
    return begin.astype(size.dtype), extent.astype(size.dtype), box.reshape(1, 1, 4)


def _attempted(
    stream: _Stream, height: int, width: int, boxes: NDArray, least: float,
    aspects: tuple[float, float], areas: tuple[float, float], attempts: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """The first box that covers enough; the whole image where all attempts fail."""
    low, high = np.float32(aspects[0]), np.float32(aspects[1])
    for _ in range(attempts):
        aspect = stream.real() * (high - low) + low
        found = _rectangle(stream, height, width, areas, aspect)
        if found is not None and _covers(found, boxes, least):
            return found
    return 0, 0, height, width


SAMPLE = register(
    Op(
        "sample_distorted_bounding_box", _infer_sample, _sample, callback=_CALLED,
        no_gradient="it draws whole numbers of pixels",
    )
)  # fmt: skip


class SampleDistortedBoundingBoxV2(NamedTuple):
    """A part of an image: `begin` and `size` are what `td.slice` takes, `bboxes` is what
    `draw_bounding_boxes` takes."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


class StatelessSampleDistortedBoundingBox(NamedTuple):
    """The same, of the function with a seed of its own."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


_WORDS = 8  # that an attempt uses, with some to spare


def _sampled(
    state: Tensor, image_size: Any, boxes: Any, least: Any, aspects: Any, areas: Any,
    attempts: int, whole: Any,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    size = convert_to_tensor(image_size)
    if len(aspects) != 2 or len(areas) != 2 or attempts <= 0:
        text = (
            f"sample_distorted_bounding_box: aspect_ratio_range {aspects} and area_range {areas} "
            f"are two floats, max_attempts {attempts} is positive{at(user_origin())}"
        )
        raise _invalid(text)
    return run(  # type: ignore[no-any-return]
        SAMPLE, state, size, cast(boxes, dtypes.float32), cast(least, dtypes.float32),
        aspects=tuple(map(float, aspects)), areas=tuple(map(float, areas)), attempts=attempts,
        whole=bool(whole),
    )  # fmt: skip


_ASPECTS, _AREAS = (0.75, 1.33), (0.05, 1.0)


def _attempts(most: Any) -> int:
    return 100 if most is None else integer("sample_distorted_bounding_box: max_attempts", most)


def sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Any, seed: int = 0, min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None, area_range: Any = None, max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None, name: str | None = None,
) -> SampleDistortedBoundingBoxV2:  # fmt: skip
    """A random box that covers enough of one of the given boxes.

    Args:
        image_size: [3] integers: height, width, channels.
        bounding_boxes: [batch, n, 4] floats in [0, 1]: y_min, x_min, y_max, x_max.
        seed: a stream of its own, combined with the global seed.
        min_object_covered: which part of a given box the new one must cover.
        aspect_ratio_range: of width / height; (0.75, 1.33) by default.
        area_range: as parts of the image; (0.05, 1) by default.
        max_attempts: 100 by default; then it is the whole image.
        use_image_if_no_bounding_boxes: the image is the given box where there is none.

    Returns:
        (begin, size, bboxes): two vectors of three integers for `td.slice`, and [1, 1, 4] floats.

    Raises:
        InvalidArgumentError: other shapes, coordinates outside of [0, 1], no boxes.
    """
    attempts = _attempts(max_attempts)
    found = _sampled(
        draw(seed or None, (max(attempts, 1) * _WORDS,)), image_size, bounding_boxes,
        min_object_covered, aspect_ratio_range or _ASPECTS, area_range or _AREAS, attempts,
        use_image_if_no_bounding_boxes,
    )  # fmt: skip
    return SampleDistortedBoundingBoxV2(*found)


def stateless_sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Any, seed: Any, min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None, area_range: Any = None, max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None, name: str | None = None,
) -> StatelessSampleDistortedBoundingBox:  # fmt: skip
    """`sample_distorted_bounding_box` as a pure function of `seed`, two ints, as in TensorFlow."""
    attempts = _attempts(max_attempts)
    found = _sampled(
        seeded(seed), image_size, bounding_boxes, min_object_covered,
        aspect_ratio_range or _ASPECTS, area_range or _AREAS, attempts,
        use_image_if_no_bounding_boxes,
    )  # fmt: skip
    return StatelessSampleDistortedBoundingBox(*found)


