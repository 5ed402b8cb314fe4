"""td.image: boxes that are chosen, drawn and sampled."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import program, raised

RNG = np.random.default_rng(8)
CORNERS = RNG.uniform(size=(14, 2)).astype(np.float32) * 0.6
BOXES = np.concatenate([CORNERS, CORNERS + 0.2 + 0.2 * RNG.uniform(size=(14, 2))],
    1).astype(np.float32)
SCORES = RNG.uniform(size=14).astype(np.float32)


@program
def suppressed(tf):
    nms = tf.image.non_max_suppression
    return [
        nms(BOXES, SCORES, 10), nms(BOXES, SCORES, 3), nms(BOXES, SCORES, 10, 0.1),
        nms(BOXES, SCORES, 10, 0.9),
        nms(BOXES, SCORES, 10, 0.3, 0.5), nms(BOXES, SCORES, 0),
        nms(BOXES[:, [2, 3, 0, 1]], SCORES, 10, 0.2),
        nms(BOXES, np.ones(14, np.float32), 10, 0.2), nms(BOXES[:0], SCORES[:0], 3),
        nms(BOXES, SCORES, 10, 0.0), nms(BOXES, SCORES, 10, 1.0), nms(BOXES, SCORES, 14, 0.5, 2.0),
        nms(tf.cast(BOXES, tf.float16), tf.cast(SCORES, tf.float16), 5),
    ]  # fmt: skip


@program
def suppressed_refusals(tf):
    nms = tf.image.non_max_suppression
    return [
        raised(nms, BOXES, SCORES[:3], 10), raised(nms, BOXES[:, :3], SCORES, 10),
        raised(nms, BOXES, SCORES, 10, 1.5),
        raised(nms, BOXES, SCORES, 10, -0.5), raised(nms, BOXES[None], SCORES, 10),
        raised(nms, BOXES, SCORES, -1),
        raised(nms, BOXES, SCORES[None], 10),
    ]  # fmt: skip


@program
def suppressed_softly(tf):
    nms = tf.image.non_max_suppression_with_scores
    return [
        nms(BOXES, SCORES, 10), nms(BOXES, SCORES, 10, 0.3),
        nms(BOXES, SCORES, 14, 1.0, soft_nms_sigma=0.3),
        nms(BOXES, SCORES, 14, 0.5, 0.2, 0.5), nms(BOXES, SCORES, 4, 0.4, 0.0, 1.0),
    ]  # fmt: skip


@program
def suppressed_by_overlaps(tf):
    rng = np.random.default_rng(10)  # the facts do not depend on the order of programs
    overlaps = rng.uniform(size=(6, 6)).astype(np.float32)
    nms = tf.image.non_max_suppression_overlaps
    return [
        nms(overlaps, SCORES[:6], 6), nms(overlaps, SCORES[:6], 6, 0.8),
        nms(overlaps, SCORES[:6], 2, 0.9, 0.3),
        raised(nms, overlaps[:3], SCORES[:6], 6), raised(nms, overlaps, SCORES[:5], 6),
    ]  # fmt: skip


@program
def suppressed_and_padded(tf):
    nms = tf.image.non_max_suppression_padded
    boxes, scores = tf.constant(BOXES), tf.constant(SCORES)
    many = tf.stack([boxes, boxes[::-1]]), tf.stack([scores, scores])
    return [
        nms(boxes, scores, 10), nms(boxes, scores, 10, 0.2), nms(boxes, scores, 3, 0.2, 0.3),
        nms(boxes, scores, 10, 0.2, pad_to_max_output_size=True),
        nms(*many, 10, 0.2, pad_to_max_output_size=True),
        nms(*many, 4, 0.3, 0.5, pad_to_max_output_size=True, tile_size=4),
        nms(boxes, tf.sort(scores, direction="DESCENDING"), 10, 0.2, pad_to_max_output_size=True,
            sorted_input=True),
        nms(tf.gather(boxes, [2, 3, 0, 1], axis=1), scores, 10, 0.2, pad_to_max_output_size=True),
        nms(boxes, scores, 20, 0.2, pad_to_max_output_size=True, canonicalized_coordinates=True),
        raised(nms, *many, 10),
    ]  # fmt: skip


@program
def suppressed_by_class(tf):
    rng = np.random.default_rng(10)  # the facts do not depend on the order of programs
    nms = tf.image.combined_non_max_suppression
    boxes = np.stack([BOXES, BOXES[::-1]])[:, :, None]
    by_class = np.concatenate([boxes, boxes[:, ::-1] * 1.1], 2)
    scores = rng.uniform(size=(2, 14, 2)).astype(np.float32)
    return [
        nms(boxes, scores, 4, 6), nms(boxes, scores, 10, 20, 0.2),
        nms(boxes, scores, 3, 20, 0.2, pad_per_class=True),
        nms(by_class, scores, 4, 6, 0.3, 0.4),
        nms(by_class, scores, 4, 6, 0.3, 0.4, clip_boxes=False),
        nms(boxes, scores[..., :1], 4, 6, 0.3, 0.99),
        raised(nms, boxes, scores, 0, 6), raised(nms, boxes, scores, 4, 0),
        raised(nms, boxes, scores, 4, 6, 1.5),
        raised(nms, boxes[:, :, 0], scores, 4, 6), raised(nms, by_class, scores[..., :1], 4, 6),
    ]  # fmt: skip


@program
def drawn(tf):
    draw = tf.image.draw_bounding_boxes
    boxes = np.array([[[0.1, 0.2, 0.7, 0.9], [-0.2, -0.1, 0.5, 0.3], [0.3, 0.3, 2.0, 2.0]]],
        np.float32)
    colors = [[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]]
    image = np.zeros((1, 6, 7, 3), np.float32)
    return [
        draw(image, boxes, colors), draw(image, boxes, None), draw(image[..., :1], boxes, None),
        draw(np.ones((1, 6, 7, 4), np.float32), boxes, [[0.1, 0.2, 0.3, 0.4]]),
        draw(image, boxes[:, :0], colors), draw(image, boxes[..., [2, 3, 0, 1]], colors),
        draw(image.astype(np.float16), boxes, colors),
        draw(np.repeat(image, 2, 0), np.repeat(boxes, 2, 0)[:, ::-1], colors),
        draw(image, boxes + 5, colors), draw(image, np.zeros((1, 1, 4), np.float32), colors),
        draw(image, np.tile(boxes[:, :1], (1, 12, 1)) * np.linspace(0.1, 1, 12,
            dtype=np.float32)[None, :, None], None),
        raised(draw, image[0], boxes, colors), raised(draw, image, boxes[0], colors),
        raised(draw, tf.constant(image.astype(np.uint8)), boxes, colors),
        raised(draw, image[..., :2], boxes, colors),
        raised(draw, image, boxes[..., :3], colors),
    ]  # fmt: skip


@program
def sampled(tf):
    sample = tf.image.stateless_sample_distorted_bounding_box
    boxes = tf.constant([[[0.1, 0.2, 0.6, 0.7], [0.3, 0.4, 0.9, 0.8]]])
    none = tf.zeros([1, 0, 4])
    return [sample([40, 50, 3], boxes, (n, 5)) for n in range(6)] + [
        sample([40, 50, 3], boxes, (n, 3), 0.9, [0.5, 2.0], [0.2, 0.8], 20) for n in range(4)
    ] + [
        sample([17, 31, 3], none, (n, 3), use_image_if_no_bounding_boxes=True) for n in range(4)
    ] + [
        sample([8, 8, 3], boxes, (1, 2), 1.0, [0.9, 1.1], [0.01, 0.02], 3),
        sample(tf.constant([64, 64, 1], tf.uint8), boxes, tf.constant([7, 8], tf.int64)),
        raised(sample, [40, 50, 3], none, (1, 2)), raised(sample, [40, 50], boxes, (1, 2)),
        raised(sample, [40, 50, 3], boxes[..., :3], (1, 2)),
        raised(sample, [40, 50, 3], boxes * 2, (1, 2)),
        raised(sample, [40, 50, 3], boxes, (1, 2), aspect_ratio_range=[1.0]),
        raised(sample, [40, 50, 3], boxes, (1, 2), area_range=[0.9, 0.1]),
        raised(sample, [40, 50, 3], boxes, (1, 2), 1.5),
        raised(sample, [40, 50, 3], boxes, (1, 2), max_attempts=0),
    ]  # fmt: skip


@program
def sampled_anyhow(tf):
    begin, size, box = tf.image.sample_distorted_bounding_box([40, 50, 3],
        [[[0.1, 0.2, 0.6, 0.7]]], seed=3)
    found = tf.slice(tf.zeros([40, 50, 3]), begin, size)
    return [
        begin.dtype, size.dtype, box.dtype, begin.shape, size.shape, box.shape, found.shape[2],
        begin[2], size[2],
        bool(abs(float(box[0, 0, 0]) - int(begin[0]) / 40) < 1e-6),
    ]  # fmt: skip


@program
def in_functions(tf):
    @tf.function(input_signature=[tf.TensorSpec([None, 4]), tf.TensorSpec([None])])
    def chosen(boxes, scores):
        rows = tf.image.non_max_suppression(boxes, scores, 5, 0.2)
        return tf.gather(boxes, rows), tf.image.non_max_suppression_padded(
            boxes, scores, 5, 0.2, pad_to_max_output_size=True
        )

    @tf.function
    def cut(image, seed):
        size = tf.shape(image)
        begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
            size, tf.zeros([1, 0, 4]), seed, use_image_if_no_bounding_boxes=True
        )
        return tf.slice(image, begin, size)

    image = tf.reshape(tf.range(60, dtype=tf.float32), [5, 6, 2])
    return [chosen(BOXES, SCORES), chosen(BOXES[:4], SCORES[:4]), cut(image, tf.constant([1, 2]))]
