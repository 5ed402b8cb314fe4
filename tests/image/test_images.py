"""td.image beyond TensorFlow's facts (tests/facts_tf/programs/images_*.py): compiled programs equal
eager code, gradients equal finite differences, open sizes need one trace."""

import numpy as np
import pytest

import treadle as td

RNG = np.random.default_rng(0)
# No two channels of a pixel are nearly equal: adjustments of colours have kinks there.
COLORS = [RNG.choice(np.arange(10, 90), 3, replace=False) for _ in range(2 * 7 * 9)]
X = ((np.reshape(COLORS, (2, 7, 9, 3)) + 0.37) / 100).astype(np.float32)
BYTES = RNG.integers(0, 256, (2, 7, 9, 3)).astype(np.uint8)
BOXES = np.array([[0.1, 0.2, 0.8, 0.9], [0.7, 0.6, 0.2, 0.1]], np.float32)
image = td.image

FUNCTIONS = {
    "bilinear": lambda x: image.resize(x, [5, 12]),
    "bilinear smaller": lambda x: image.resize(x, [3, 4], antialias=True),
    "nearest": lambda x: image.resize(x, [10, 4], "nearest"),
    "area": lambda x: image.resize(x, [3, 4], "area"),
    "bicubic": lambda x: image.resize(x, [10, 5], "bicubic"),
    "lanczos": lambda x: image.resize(x, [4, 20], "lanczos3", antialias=True),
    "gaussian": lambda x: image.resize(x, [4, 3], "gaussian"),
    "mitchell": lambda x: image.resize(x, [4, 3], "mitchellcubic", True, True),
    "with pad": lambda x: image.resize_with_pad(x, 6, 5),
    "crop or pad": lambda x: image.resize_with_crop_or_pad(x, 5, 12),
    "crop and resize": lambda x: image.crop_and_resize(x, BOXES, [0, 1], [4, 3]),
    "glimpse": lambda x: image.extract_glimpse(x, [3, 4], [[0.1, 0.5], [0.8, -0.9]], noise="zero"),
    "patches": lambda x: image.extract_patches(
        x, [1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 2, 1], "SAME"
    ),
    "centre": lambda x: image.central_crop(x, 0.6),
    "flips": lambda x: image.flip_up_down(image.flip_left_right(image.rot90(x))),
    "sobel": lambda x: image.sobel_edges(x),
    "gradients": lambda x: image.image_gradients(x)[1],
    "variation": lambda x: image.total_variation(x),
    "hsv": lambda x: image.rgb_to_hsv(x),
    "rgb": lambda x: image.hsv_to_rgb(x),
    "yuv": lambda x: image.yuv_to_rgb(image.rgb_to_yiq(x)),
    "gray": lambda x: image.grayscale_to_rgb(image.rgb_to_grayscale(x)),
    "hue": lambda x: image.adjust_hue(x, 0.1234),
    "saturation": lambda x: image.adjust_saturation(x, 0.7),
    "contrast": lambda x: image.adjust_contrast(x, 1.7),
    "brightness": lambda x: image.adjust_brightness(x, 0.1),
    "gamma": lambda x: image.adjust_gamma(x, 1.7, 0.9),
    "standardization": lambda x: image.per_image_standardization(x),
    "psnr": lambda x: image.psnr(x, X[::-1], 1.0),
    "ssim": lambda x: image.ssim(x, X[::-1], 1.0, 5),
    "scales": lambda x: image.ssim_multiscale(x, 0.7 * X + 0.1, 1.0, (0.4, 0.6), 3),
    "stateless": lambda x: image.stateless_random_brightness(
        image.stateless_random_contrast(x, 0.5, 1.5, [1, 2]), 0.2, [3, 4]
    ),
    "random crop": lambda x: image.stateless_random_crop(x, [2, 3, 3, 3], [1, 2]),
    "random flip": lambda x: image.stateless_random_flip_left_right(x, [1, 2]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_equals_eager(name, monkeypatch):
    monkeypatch.setenv("TREADLE_STRICT", "1")  # no interpreter
    fn = FUNCTIONS[name]
    eager = fn(td.constant(X))
    np.testing.assert_allclose(td.function(fn)(X), eager, rtol=2e-5, atol=2e-6)


OPEN = [name for name in FUNCTIONS if name not in ("psnr", "ssim", "scales", "glimpse")]


@pytest.mark.parametrize("name", OPEN)
def test_one_trace_for_open_sizes(name, monkeypatch):
    monkeypatch.setenv("TREADLE_STRICT", "1")
    fn = FUNCTIONS[name]
    signature = [td.TensorSpec([None, None, None, 3])]
    compiled = td.function(fn, input_signature=signature)
    for size in ((2, 7, 9, 3), (3, 5, 5, 3), (2, 12, 6, 3)):
        x = RNG.uniform(size=size).astype(np.float32)
        np.testing.assert_allclose(compiled(x), fn(td.constant(x)), rtol=2e-5, atol=2e-6)
    assert compiled.experimental_get_tracing_count() == 1


# They convert to float32 and back, as TensorFlow's do.
IN_SINGLE = ("gray", "hue", "saturation", "contrast", "brightness", "gamma", "stateless")


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "nearest"])
def test_gradients_equal_differences(name):
    x = td.constant(X, td.float64)
    y = FUNCTIONS[name](x)
    weights = np.random.default_rng(1).normal(size=y.shape).astype(y.dtype.as_numpy_dtype)

    def loss(x):
        return td.reduce_sum(FUNCTIONS[name](x) * weights)

    def gradient(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = loss(x)
        return tape.gradient(y, x)

    eager = gradient(x)
    np.testing.assert_allclose(td.function(gradient)(x), eager, rtol=1e-3, atol=1e-4)
    way = np.random.default_rng(2).normal(size=X.shape)
    exact = y.dtype == td.float64 and name not in IN_SINGLE
    step = 1e-6 if exact else 2e-4
    slope = (loss(x + step * way) - loss(x - step * way)) / (2 * step)
    bound = (1e-6, 1e-6) if exact else (0.02, 0.05)
    np.testing.assert_allclose(slope, np.sum(eager.numpy() * way), *bound)


@pytest.mark.parametrize("name", ["bilinear", "area", "nearest", "hue", "contrast", "crop or pad"])
def test_bytes(name):
    fn = FUNCTIONS[name]
    eager = fn(td.constant(BYTES))
    np.testing.assert_allclose(td.function(fn)(BYTES), eager, rtol=1e-5, atol=1)


def test_equal_pixels_stay_equal():
    """A plain image cast to bytes after it was resized keeps its value."""
    for value in range(0, 256, 5):
        x = np.full((5, 7, 1), value, np.uint8)
        assert (td.cast(image.resize(x, [9, 4]), td.uint8).numpy() == value).all()


def test_a_size_known_late():
    @td.function
    def resized(x, size):
        return image.resize(x, size, antialias=True), image.resize_with_pad(x, size[0], size[1])

    for size in ([3, 4], [20, 5]):
        found = resized(X, td.constant(size))
        np.testing.assert_allclose(found[0], image.resize(X, size, antialias=True), 1e-5, 1e-6)
        np.testing.assert_allclose(found[1], image.resize_with_pad(X, *size), 1e-5, 1e-6)
    assert resized.experimental_get_tracing_count() == 1
    with pytest.raises(td.errors.InvalidArgumentError, match="size"):
        resized(X, td.constant([0, 3]))


def test_examples_of_a_batch():
    """vectorized_map computes what is written for one image for all of a batch."""

    def augmented(x):
        y = image.resize(x, [5, 5])
        return image.adjust_saturation(image.flip_left_right(y), 0.5)

    found = td.vectorized_map(augmented, td.constant(X))
    each = [augmented(td.constant(x)) for x in X]
    np.testing.assert_allclose(found, np.stack(each), rtol=1e-5, atol=1e-6)


def test_random_forms_follow_the_seed():
    td.random.set_seed(3)

    def augmented(x):
        x = image.random_flip_left_right(image.random_brightness(x, 0.3), seed=4)
        x = image.random_contrast(image.random_hue(x, 0.2), 0.4, 1.6)
        return image.random_crop(image.random_saturation(x, 0.5, 1.5), [1, 4, 4, 3])

    compiled = td.function(augmented)
    first = [compiled(X).numpy() for _ in range(3)]
    td.random.set_seed(3)
    again = [augmented(td.constant(X)).numpy() for _ in range(3)]
    np.testing.assert_allclose(first, again, rtol=1e-4, atol=1e-5)
    assert not np.allclose(first[0], first[1])


def test_ranges_known_late():
    compiled = td.function(
        lambda x, n: (
            image.stateless_random_contrast(x, n, 2 * n, [1, 2]),
            image.stateless_random_hue(x, n, [1, 2]),
        )
    )
    late = [td.constant(n) for n in (0.3, -0.2)]
    expected = image.stateless_random_contrast(X, 0.3, 0.6, [1, 2])
    np.testing.assert_allclose(compiled(X, late[0])[0], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(td.errors.InvalidArgumentError, match="upper must be > lower"):
        compiled(X, late[1])
    with pytest.raises(td.errors.InvalidArgumentError, match="max_delta must be <= 0.5"):
        compiled(X, td.constant(0.6))


def test_glimpses_are_filled_with_noise():
    td.random.set_seed(1)
    for noise in ("uniform", "gaussian"):
        found = image.extract_glimpse(X, [20, 20], np.zeros((2, 2)), noise=noise).numpy()
        assert found.shape == (2, 20, 20, 3) and found[0, 0].std() > 0.05
        np.testing.assert_array_equal(found[:, 7:13, 6:14], X[:, 1:, 1:].repeat(1, 0)[:, :6, :8])


def test_boxes_of_open_shapes():
    """Also the four numbers of a box may be known when a program runs only."""
    one, two = td.TensorSpec([None, None]), td.TensorSpec([None])

    @td.function(input_signature=[td.TensorSpec([None] * 4), one, two])
    def found(x, boxes, scores):
        chosen = image.non_max_suppression(boxes, scores, 2)
        many, _ = image.non_max_suppression_padded(boxes, scores, 3, pad_to_max_output_size=True)
        drawn = image.draw_bounding_boxes(x, td.stack([boxes, boxes]), [[0.1, 0.2, 0.3]])
        return chosen, many, drawn, image.crop_and_resize(x, boxes, [0, 1], [3, 3])

    scores = np.array([0.4, 0.7], np.float32)
    chosen, many, drawn, crops = found(X, BOXES, scores)
    assert chosen.numpy().tolist() == [1, 0] and many.numpy().tolist() == [1, 0, 0]
    expected = image.draw_bounding_boxes(X, np.stack([BOXES, BOXES]), [[0.1, 0.2, 0.3]])
    np.testing.assert_allclose(drawn, expected)
    np.testing.assert_allclose(crops, image.crop_and_resize(X, BOXES, [0, 1], [3, 3]), 1e-5)
    with pytest.raises(td.errors.InvalidArgumentError):
        found(X, BOXES[:, :3], scores)


def test_bytes_are_resized_where_they_lie():
    resized = td.function(lambda x: image.resize(x, [6, 6]) / 255.0)
    stages = td.inspect.stages(resized, td.TensorSpec([None, None, 3], td.uint8))
    assert "cast<f32>(x[" in stages["kernels"]  # where they are blended
    assert "any[" not in stages["kernels"]  # positions are known to lie inside
    (scaled,) = [line for line in stages["kernels"].splitlines() if "/ 255.0" in line]
    assert " - " in scaled  # not by a pass of its own
    x = BYTES[0] if BYTES.ndim == 4 else BYTES
    np.testing.assert_allclose(resized(x), image.resize(x, [6, 6]) / 255.0, 1e-6)


def test_no_pixels_are_refused_when_a_function_runs():
    signature = [td.TensorSpec([None, None, 3])]
    resized = td.function(
        lambda x: image.resize(x, [3, 4], preserve_aspect_ratio=True), input_signature=signature
    )
    with pytest.raises(td.errors.InvalidArgumentError):
        resized(X[0, :0])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: image.resize(X, [2, 2], "cubic"), ValueError, "test_images.py"),
        (lambda: image.resize(X > 0, [2, 2]), TypeError, "real numbers"),
        (lambda: image.crop_to_bounding_box(X, 0, 0, 8, 2), ValueError, "height must be"),
        (lambda: image.pad_to_bounding_box(X, 0, 0, 8, 2), ValueError, "width must be"),
        (lambda: image.rgb_to_hsv(BYTES), TypeError, "use convert_image_dtype"),
        (lambda: image.adjust_hue(X, 2.0), ValueError, r"\[-1, 1\]"),
        (lambda: image.ssim(X, X[:, :5], 1.0), ValueError, "not compatible"),
        (lambda: image.non_max_suppression(BOXES, [0.5], 3), ValueError, "2 boxes with 1 scores"),
        (lambda: image.generate_bounding_box_proposals, AttributeError, "non_max_suppression"),
        (lambda: td.io.decode_csv("a", []), ValueError, "no columns"),
        (lambda: image.read_file, AttributeError, "td.io.read_file"),
    ],
)
def test_refusals(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
