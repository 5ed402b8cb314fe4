"""Boxes chosen by their scores, without those that overlap better ones.

Which box is chosen depends on all that were chosen before, and how many there are is not known
before the end: compiled programs call the NumPy forms.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, TensorShape, compound, fresh_symbol
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import size_of
from treadle.ops.elementwise.casting import cast
from treadle.ops.op_makers import require_kinds
from treadle.ops.registry import Op, register, run
from treadle.ops.sizes import may_be


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


def _overlaps(box: NDArray, boxes: NDArray) -> NDArray:
    """The intersection of a box with each of `boxes` over their union; 0 for boxes without area."""

    def limits(b: NDArray) -> tuple[NDArray, ...]:
        y, x = b[..., 0::2], b[..., 1::2]
        return y.min(-1), x.min(-1), y.max(-1), x.max(-1)

    top, left, bottom, right = limits(boxes)
    y0, x0, y1, x1 = limits(box)
    areas, area = (bottom - top) * (right - left), (y1 - y0) * (x1 - x0)
    height = np.maximum(np.minimum(bottom, y1) - np.maximum(top, y0), np.float32(0))
    width = np.maximum(np.minimum(right, x1) - np.maximum(left, x0), np.float32(0))
    common = height * width
    found = common / (areas + area - common)
    return np.where((areas > 0) & (area > 0), found, np.float32(0))


def _by_score(scores: NDArray) -> NDArray:
    """Positions from the highest score to the lowest, equal ones in their order."""
    return np.argsort(-scores, kind="stable")


def _chosen(
    boxes: NDArray, scores: NDArray, most: int, threshold: float, least: float
) -> list[int]:
    """The positions of the boxes that remain, best first."""
    order = _by_score(scores)
    order = order[scores[order] > least]
    found: list[int] = []
    while len(found) < most and order.size:
        best, order = int(order[0]), order[1:]
        found.append(best)
        order = order[_overlaps(boxes[best], boxes[order]) <= np.float32(threshold)]
    return found


def _chosen_softly(
    boxes: NDArray, scores: NDArray, most: int, least: float, sigma: float
) -> tuple[list[int], list[float]]:
    """The same where overlaps lower the scores: positions, and what is left of their scores."""
    candidates = [
        (-s, n, 0) for n, s in enumerate(scores.astype(np.float32).tolist()) if s > least
    ]
    heapq.heapify(candidates)
    found: list[int] = []
    left: list[float] = []
    while len(found) < most and candidates:
        negative, number, since = heapq.heappop(candidates)
        score = np.float32(-negative)
        overlaps = _overlaps(boxes[number], boxes[found[since:]])
        weights = np.exp(np.float32(-0.5 / sigma) * overlaps * overlaps)
        for weight in weights[::-1]:
            score *= weight
            if score <= least:
                break
        if score == np.float32(-negative):
            found.append(number)
            left.append(float(score))
        elif score > least:
            heapq.heappush(candidates, (-float(score), number, len(found)))
    return found, left


# -- one set of boxes ------------------------------------------------------------------------------


def _check(boxes: Any, scores: Any) -> None:
    """Refuse shapes other than [n, 4] and [n]."""
    if len(boxes) != 2 or len(scores) != 1 or not may_be(boxes[1], 4):
        raise _invalid(f"boxes {list(boxes)} with scores {list(scores)}: [n, 4] and [n] are needed")
    if not TensorShape(boxes[:1]).is_compatible_with(TensorShape(scores)):
        raise _invalid(f"{boxes[0]} boxes with {scores[0]} scores")


def _check_limits(name: str, most: Any, threshold: NDArray) -> None:
    if most < 0:
        raise _invalid(f"{name}: max_output_size must not be negative: {most}")
    if not 0 <= threshold <= 1:
        raise _invalid(f"{name}: the threshold of overlaps must be in [0, 1], not {threshold}")


def _infer_choice(boxes: TensorSpec, scores: TensorSpec, *rest: Any) -> Any:
    _check(boxes.dims, scores.dims)
    require_kinds("f", boxes, scores)
    count = fresh_symbol("chosen")
    indices = TensorSpec((count,), dtypes.int32)
    return indices, TensorSpec((count,), scores.dtype)


def _choose(
    boxes: NDArray, scores: NDArray, most: NDArray, threshold: NDArray, least: NDArray,
    sigma: NDArray,
) -> tuple[NDArray, NDArray]:  # fmt: skip
    _check(boxes.shape, scores.shape)
    _check_limits("non_max_suppression", most, threshold)
    wide, points = boxes.astype(np.float32), scores.astype(np.float32)
    if sigma > 0:
        found, left = _chosen_softly(wide, points, int(most), float(least), float(sigma))
        return np.array(found, np.int32), np.array(left, scores.dtype)
    found = _chosen(wide, points, int(most), float(threshold), float(least))
    return np.array(found, np.int32), scores[found]


_CALLED = "each choice depends on those before, and the elements tell how many there are"
_CHOOSES = "which boxes are chosen changes in steps"
CHOOSE = register(
    Op("non_max_suppression", _infer_choice, _choose, callback=_CALLED, no_gradient=_CHOOSES)
)


def _run_choice(
    boxes: Any, scores: Any, most: Any, threshold: Any, least: Any, sigma: Any
) -> tuple[Tensor, Tensor]:
    limits = [convert_to_tensor(v, dtypes.float32) for v in map(_as_float, (threshold, least))]
    return run(  # type: ignore[no-any-return]
        CHOOSE, convert_to_tensor(boxes), convert_to_tensor(scores), cast(most, dtypes.int32),
        *limits, cast(sigma, dtypes.float32),
    )  # fmt: skip


def _as_float(value: Any) -> Any:
    return cast(value, dtypes.float32) if isinstance(value, Tensor) else value


def non_max_suppression(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), name: str | None = None,
) -> Tensor:  # fmt: skip
    """The positions of the best boxes that do not overlap better ones too much, best first.

    Args:
        boxes: [n, 4] floats: any two corners (y1, x1, y2, x2).
        scores: [n] floats.
        max_output_size: how many there are at most.
        iou_threshold: in [0, 1]: the intersection over the union from which boxes overlap too much.
        score_threshold: only better boxes are chosen.

    Returns:
        [chosen] int32; how many there are is known when a function runs.

    Raises:
        InvalidArgumentError: other shapes or limits.
    """
    return _run_choice(boxes, scores, max_output_size, iou_threshold, score_threshold, 0.0)[0]


def non_max_suppression_with_scores(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), soft_nms_sigma: Any = 0.0, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`non_max_suppression` with the scores of the chosen boxes.

    Args:
        soft_nms_sigma: if positive, overlaps lower a box's score by ``exp(-iou**2 / (2 * sigma))``
            and boxes are chosen by what is left of it; `iou_threshold` says nothing then.

    Returns:
        (positions [chosen] int32, their scores).
    """
    return _run_choice(
        boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma
    )


def _infer_by_overlaps(overlaps: TensorSpec, scores: TensorSpec, *rest: Any) -> TensorSpec:
    _check_overlaps(overlaps.dims, scores.dims)
    require_kinds("f", overlaps, scores)
    return TensorSpec((fresh_symbol("chosen"),), dtypes.int32)


def _check_overlaps(overlaps: Any, scores: Any) -> None:
    if len(overlaps) != 2 or len(scores) != 1:
        raise _invalid(f"overlaps {overlaps} with scores {scores}: [n, n] and [n] are needed")
    square = TensorShape((*scores, *scores))
    if not TensorShape(overlaps).is_compatible_with(square):
        raise _invalid(f"overlaps {list(overlaps)} with {scores[0]} scores: [n, n] and [n] needed")


def _choose_by_overlaps(
    overlaps: NDArray, scores: NDArray, most: NDArray, threshold: NDArray, least: NDArray
) -> NDArray:
    _check_overlaps(overlaps.shape, scores.shape)
    order = _by_score(scores)
    order = order[scores[order] > least]
    found: list[int] = []
    while len(found) < most and order.size:
        best, order = int(order[0]), order[1:]
        found.append(best)
        order = order[overlaps[order, best] <= threshold]
    return np.array(found, np.int32)


CHOOSE_BY_OVERLAPS = register(
    Op(
        "non_max_suppression_overlaps", _infer_by_overlaps, _choose_by_overlaps,
        callback=_CALLED,
    )
)


def non_max_suppression_overlaps(
    overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), name: str | None = None,
) -> Tensor:  # fmt: skip
    """`non_max_suppression` where it is known how much any two of n boxes overlap.

    Args:
        overlaps: [n, n] floats.

    Raises:
        InvalidArgumentError: other shapes.
    """
    return run(  # type: ignore[no-any-return]
        CHOOSE_BY_OVERLAPS, convert_to_tensor(overlaps), convert_to_tensor(scores),
        cast(max_output_size, dtypes.int32), cast(overlap_threshold, dtypes.float32),
        cast(score_threshold, dtypes.float32),
    )  # fmt: skip


# -- batches, padded -------------------------------------------------------------------------------


def _infer_padded(
    boxes: TensorSpec, scores: TensorSpec, *rest: Any, most: Dim, **flags: bool
) -> Any:
    _check_batch(boxes.dims, scores.dims)
    require_kinds("f", boxes, scores)
    outer = boxes.dims[:-2]
    return TensorSpec((*outer, most), dtypes.int32), TensorSpec(outer, dtypes.int32)


def _check_batch(boxes: Any, scores: Any) -> None:
    if len(boxes) < 2 or not may_be(boxes[-1], 4):
        raise _invalid(f"boxes must be [..., n, 4], not {list(boxes)}")
    if not TensorShape(boxes[:-1]).is_compatible_with(TensorShape(scores)):
        raise _invalid(f"boxes {list(boxes)} with scores {list(scores)}: [..., n, 4] and [..., n]")


def _choose_padded(
    boxes: NDArray, scores: NDArray, threshold: NDArray, least: NDArray, *, most: int,
    in_order: bool, upright: bool,
) -> tuple[NDArray, NDArray]:  # fmt: skip
    _check_batch(boxes.shape, scores.shape)
    outer, count = boxes.shape[:-2], boxes.shape[-2]
    corners = boxes.reshape(-1, count, 4).astype(np.float32)
    points = scores.reshape(-1, count).astype(np.float32)
    good = points > least
    points, corners = points * good, corners * good[..., None]
    if not upright and corners.size:  # as the first box is
        y0, x0, y1, x1 = corners[0, 0]
        order = [0, 1, 2, 3] if y0 <= y1 else [2, 1, 0, 3]
        if x0 > x1:
            order[1], order[3] = order[3], order[1]
        corners = corners[..., order]
    found = np.zeros((len(corners), most), np.int32)
    valid = np.zeros(len(corners), np.int32)
    for n, (row, score) in enumerate(zip(corners, points, strict=True)):
        left = np.arange(count) if in_order else _by_score(score)
        left = left[(row[left] > 0).any(-1)]
        while valid[n] < most and left.size:
            best, left = left[0], left[1:]
            found[n, valid[n]] = best
            valid[n] += 1
            left = left[_upright_overlaps(row[best], row[left]) < threshold]
    return found.reshape(*outer, most), valid.reshape(outer)


def _upright_overlaps(box: NDArray, boxes: NDArray) -> NDArray:
    """Intersection over union of boxes (top, left, bottom, right)."""
    size = np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2])
    common = np.maximum(size, np.float32(0)).prod(-1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    union = areas + (box[2:] - box[:2]).prod() - common
    found: NDArray = common / (union + np.float32(1e-8))
    return found


CHOOSE_PADDED = register(
    Op("non_max_suppression_padded", _infer_padded, _choose_padded, callback=_CALLED)
)


def non_max_suppression_padded(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), pad_to_max_output_size: bool = False,
    name: str | None = None, sorted_input: bool = False, canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`non_max_suppression` with zeros behind the positions, for batches too.

    Args:
        boxes: [..., n, 4] floats.
        scores: [..., n] floats.
        pad_to_max_output_size: whether there are zeros; without them there is no batch.
        sorted_input: whether the boxes come best first.
        canonicalized_coordinates: whether (y1, x1) is the upper left corner; else that of the
            first box tells which corners all boxes have.
        tile_size: accepted for TensorFlow programs.

    Returns:
        (positions [..., max_output_size] int32, how many of them are chosen [...] int32).

    Raises:
        InvalidArgumentError: other shapes.
    """
    x, y = convert_to_tensor(boxes), convert_to_tensor(scores)
    if not pad_to_max_output_size and x.ndim > 2:
        text = "non_max_suppression_padded: 'pad_to_max_output_size' must be True for batched input"
        raise _invalid(f"{text}{at(user_origin())}")
    most = size_of(max_output_size, "non_max_suppression_padded: max_output_size")
    found, count = run(
        CHOOSE_PADDED, x, y, cast(iou_threshold, dtypes.float32),
        cast(score_threshold, dtypes.float32), most=most, in_order=bool(sorted_input),
        upright=bool(canonicalized_coordinates),
    )  # fmt: skip
    return (found if pad_to_max_output_size else found[:count]), count


# -- classes ---------------------------------------------------------------------------------------


class CombinedNonMaxSuppression(NamedTuple):
    """What `combined_non_max_suppression` gives."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


def _infer_classes(
    boxes: TensorSpec, scores: TensorSpec, *rest: Any, each: Dim, total: Dim, clip: bool
) -> Any:
    _check_classes(boxes.dims, scores.dims)
    require_kinds("f", boxes, scores)
    dims, kind = (boxes.dims[0], total), dtypes.float32
    shapes = ((*dims, 4), dims, dims)
    return *(TensorSpec(s, kind) for s in shapes), TensorSpec(dims[:1], dtypes.int32)


def _check_classes(boxes: Any, scores: Any) -> None:
    text = f"boxes {list(boxes)} with scores {list(scores)}"
    if len(boxes) != 4 or len(scores) != 3 or not may_be(boxes[3], 4):
        raise _invalid(f"{text}: [batch, n, 1 or classes, 4] and [batch, n, classes] are needed")
    if not may_be(boxes[2], 1) and not may_be(boxes[2], scores[2]):
        raise _invalid(f"{text}: there are boxes for each class, or one for all")


def _choose_classes(
    boxes: NDArray, scores: NDArray, threshold: NDArray, least: NDArray, *, each: int, total: int,
    clip: bool,
) -> tuple[NDArray, ...]:  # fmt: skip
    _check_classes(boxes.shape, scores.shape)
    _check_limits("combined_non_max_suppression", each, threshold)
    batch, _, own, _ = boxes.shape
    corners = np.zeros((batch, total, 4), np.float32)
    points, kinds = np.zeros((batch, total), np.float32), np.zeros((batch, total), np.float32)
    valid = np.zeros(batch, np.int32)
    limits = each, float(threshold), float(least)
    for n in range(batch):
        found = [
            (number, kind)
            for kind in range(scores.shape[2])
            for number in _chosen(boxes[n, :, kind % own], scores[n, :, kind], *limits)
        ]
        rows = np.array(found, np.int64).reshape(-1, 2)
        rows = rows[_by_score(scores[n, rows[:, 0], rows[:, 1]])[:total]]
        count = valid[n] = len(rows)
        points[n, :count] = scores[n, rows[:, 0], rows[:, 1]]
        kinds[n, :count] = rows[:, 1]
        corners[n, :count] = boxes[n, rows[:, 0], rows[:, 1] % own]
    return (corners.clip(0, 1) if clip else corners), points, kinds, valid


CHOOSE_CLASSES = register(
    Op(
        "combined_non_max_suppression", _infer_classes, _choose_classes, callback=_CALLED,
        no_gradient=_CHOOSES,
    )
)  # fmt: skip


def combined_non_max_suppression(
    boxes: Any, scores: Any, max_output_size_per_class: Any, max_total_size: Any,
    iou_threshold: Any = 0.5, score_threshold: Any = float("-inf"), pad_per_class: bool = False,
    clip_boxes: bool = True, name: str | None = None,
) -> CombinedNonMaxSuppression:  # fmt: skip
    """`non_max_suppression` for each class, and the best boxes of all classes.

    Args:
        boxes: [batch, n, 1 or classes, 4] floats.
        scores: [batch, n, classes] floats.
        max_output_size_per_class, max_total_size: how many boxes there are at most.
        pad_per_class: the results are no longer than all classes need.
        clip_boxes: whether coordinates are kept in [0, 1].

    Returns:
        (nmsed_boxes [batch, total, 4], nmsed_scores and nmsed_classes [batch, total], float32 with
        zeros at their end, valid_detections: how many there are, [batch] int32).

    Raises:
        InvalidArgumentError: other shapes, sizes that are not positive.
    """
    x, y = cast(boxes, dtypes.float32), cast(scores, dtypes.float32)
    each = size_of(max_output_size_per_class, "max_output_size_per_class", least=1)
    total = size_of(max_total_size, "max_total_size", least=1)
    if pad_per_class and y.ndim == 3:
        total = compound("min", total, each * y.dims[2])
    found = run(
        CHOOSE_CLASSES, x, y, cast(iou_threshold, dtypes.float32),
        cast(score_threshold, dtypes.float32), each=each, total=total, clip=bool(clip_boxes),
    )  # fmt: skip
    return CombinedNonMaxSuppression(*found)
