"""Max and average pooling: definition, first maximum, gradients and lowering."""

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients
from tests.ops.lowered import check_lowering
from treadle.ops.registry import OPS

RNG = np.random.default_rng(4)
IMAGES = RNG.permutation(2 * 7 * 8 * 3).reshape(2, 7, 8, 3).astype(np.float32)  # no ties

# window, strides, padding
CASES = [
    ((2, 2), (2, 2), "VALID"),
    ((2, 2), (2, 2), "SAME"),
    ((3, 3), (2, 2), "SAME"),
    ((3, 2), (1, 1), "SAME"),
    ((3, 3), (2, 1), "VALID"),
    ((2, 2), (3, 3), "VALID"),
    ((2, 2), (2, 2), ((1, 0), (0, 1))),
    ((6, 5), (2, 2), "SAME"),
]


def windows(x, window, strides, padding):
    """Each window's elements, padding left out, with the output position."""
    size = x.shape[1:3]
    if padding == "SAME":
        count = [-(-size[i] // strides[i]) for i in (0, 1)]
        pads = [max((count[i] - 1) * strides[i] + window[i] - size[i], 0) // 2 for i in (0, 1)]
    else:
        frame = ((0, 0), (0, 0)) if padding == "VALID" else padding
        pads = [frame[0][0], frame[1][0]]
        count = [(size[i] + sum(frame[i]) - window[i]) // strides[i] + 1 for i in (0, 1)]
    for h, w in np.ndindex(*count):
        starts = [h * strides[0] - pads[0], w * strides[1] - pads[1]]
        part = [slice(max(s, 0), s + window[i]) for i, s in enumerate(starts)]
        yield h, w, x[:, part[0], part[1]]


def pooled(x, case, reduce):
    parts = [(h, w, reduce(p)) for h, w, p in windows(x, *case)]
    height, width = parts[-1][0] + 1, parts[-1][1] + 1
    y = np.zeros((x.shape[0], height, width, x.shape[3]))
    for h, w, value in parts:
        y[:, h, w] = value
    return y


def explicit(padding):
    return padding if isinstance(padding, str) else [[0, 0], *padding, [0, 0]]


@pytest.mark.parametrize("case", CASES)
def test_definition(case):
    window, strides, padding = case[0], case[1], explicit(case[2])
    y = td.nn.max_pool2d(IMAGES, window, strides, padding)
    np.testing.assert_array_equal(y, pooled(IMAGES, case, lambda p: p.max((1, 2))))
    z = td.nn.avg_pool2d(IMAGES, window, strides, padding)
    np.testing.assert_allclose(z, pooled(IMAGES, case, lambda p: p.mean((1, 2))), rtol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_lowering(case):
    attrs = dict(zip(("window", "strides", "padding"), case, strict=True))
    image = IMAGES.shape[1:3]
    tied = np.round(IMAGES / 40)
    y = check_lowering("max_pool", tied, **attrs)
    winner = check_lowering("max_pool_index", tied, **attrs)
    check_lowering("max_pool_gather", tied, winner, **attrs)
    check_lowering("max_pool_scatter", y, winner, image=image, **attrs)
    if case[0] != (6, 5):  # only small windows are masked
        masked = check_lowering("max_pool_masked_index", tied, tied % 3 == 1, **attrs)
        check_lowering("max_pool_scatter", y, masked, image=image, **attrs)
    check_lowering("avg_pool", IMAGES, **attrs)
    check_lowering("avg_pool_grad", y, image=image, **attrs)


def test_exact_tiling_needs_no_masks():
    tiled = IMAGES[:, :6]
    attrs = {"window": (2, 2), "strides": (2, 2), "padding": "VALID"}
    y = check_lowering("max_pool", tiled, **attrs)
    winner = check_lowering("max_pool_index", tiled, **attrs)
    check_lowering("max_pool_scatter", y, winner, image=(6, 8), **attrs)
    check_lowering("avg_pool_grad", y, image=(6, 8), **attrs)


@pytest.mark.parametrize("case", CASES)
def test_gradients(case):
    x = IMAGES[:1, :, :, :1].astype(np.float64) / 10
    args = (case[0], case[1], explicit(case[2]))
    check_gradients(lambda t: td.nn.max_pool2d(t, *args), x, second=case is CASES[2])
    check_gradients(lambda t: td.nn.avg_pool2d(t, *args), x, second=case is CASES[2])


@pytest.mark.parametrize(
    ("window", "dtype"), [((2, 2), np.uint8), ((2, 127), np.uint8), ((3, 85), np.int32)]
)
def test_winners_are_bytes_where_the_window_allows(window, dtype):
    """The dtype's largest number is kept for windows whose gradient goes nowhere."""
    x = np.random.default_rng(0).permutation(3 * 130).reshape(1, 3, 130, 1).astype(np.float32)
    attrs = {"window": window, "strides": (1, 1), "padding": "VALID"}
    winner = OPS["max_pool_index"].eager(x, **attrs)
    assert winner.dtype == dtype
    views = np.lib.stride_tricks.sliding_window_view(x[0, :, :, 0], window)
    np.testing.assert_array_equal(
        winner[0, :, :, 0], views.reshape(*views.shape[:2], -1).argmax(-1)
    )


def test_masked_winners_take_no_gradient():
    attrs = {"window": (2, 2), "strides": (2, 2), "padding": "VALID"}
    x = np.array([[1, 5, 7, 3], [2, 0, 7, 8]], np.float32).reshape(1, 2, 4, 1)
    dy = np.array([10, 20], np.float32).reshape(1, 1, 2, 1)
    fives, eights = 10 * (x == 5), 20 * (x == 8)
    for mask, winners, wanted in (
        (x > 0, [[1, 3]], fives + eights),
        (x != 5, [[255, 3]], eights),
        (x == 5, [[1, 255]], fives),
        (x < 0, [[255, 255]], 0 * x),
    ):
        winner = OPS["max_pool_masked_index"].eager(x, mask, **attrs)
        np.testing.assert_array_equal(winner[0, :, :, 0], winners)
        dx = OPS["max_pool_scatter"].eager(dy, winner, image=(2, 4), **attrs)
        np.testing.assert_array_equal(dx, wanted)


def test_ties_go_to_the_first():
    x = td.ones((1, 2, 4, 1))
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.nn.max_pool2d(x, 2, 2, "VALID")
    np.testing.assert_array_equal(
        tape.gradient(y, x).numpy()[0, :, :, 0], [[1, 0, 1, 0], [0, 0, 0, 0]]
    )


# What TensorFlow 2.21 gives for images full of the lowest number, with output gradients 1, 2, 3...
LOWEST = {
    ((2, 2), (2, 2)): [[1, 0, 2, 0, 3], [0, 0, 0, 0, 0], [4, 0, 5, 0, 6], [0, 0, 0, 0, 0]],
    ((3, 2), (2, 1)): [[1, 2, 3, 4, 5], [0, 0, 0, 0, 0], [6, 7, 8, 9, 10], [0, 0, 0, 0, 0]],
    ((3, 3), (1, 1)): [[16, 11, 13, 15, 0], [23, 13, 14, 15, 0], [33, 18, 19, 20, 0], [0] * 5],
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("value", [np.finfo(np.float32).min, -np.inf, np.nan])
@pytest.mark.parametrize("case", LOWEST, ids=str)
def test_no_gradient_is_lost_in_the_padding(case, value, masked, compiled):
    def gradient(x, every):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.nn.max_pool2d(x, *case, "SAME")
        weights = td.reshape(td.range(1, td.size(y) + 1, dtype=td.float32), y.shape)
        dx = tape.gradient(y, x, output_gradients=weights)
        return td.where((x < 0) | every, dx, 0.0) if masked else dx

    run = td.function(gradient) if compiled else gradient
    dx = run(td.fill([1, 4, 5, 1], td.constant(value, td.float32)), td.constant(True))
    np.testing.assert_array_equal(dx.numpy()[0, :, :, 0], LOWEST[case])
    if compiled and masked:
        program = run.get_concrete_function(
            td.TensorSpec([1, 4, 5, 1], td.float32), td.TensorSpec([], td.bool)
        ).executable
        assert "max_pool_masked_index" in program.stages["graph"]


def test_integers_and_nan():
    x = np.array([-5, -3, -7, -9], np.int32).reshape(1, 2, 2, 1)
    assert td.nn.max_pool2d(x, 3, 1, "SAME").numpy().max() == -3
    y = td.nn.max_pool2d(np.array([1, np.nan, 2, 3], "f").reshape(1, 2, 2, 1), 2, 2, "VALID")
    assert np.isnan(y.numpy()).all()


def test_channels_first_and_default_strides():
    y = td.nn.max_pool2d(IMAGES, 2, None, "VALID")
    moved = td.nn.max_pool2d(
        IMAGES.transpose(0, 3, 1, 2), [1, 1, 2, 2], [1, 1, 2, 2], "VALID", "NCHW"
    )
    np.testing.assert_array_equal(moved.numpy().transpose(0, 2, 3, 1), y)


def test_wrong_arguments():
    with pytest.raises(
        td.errors.InvalidArgumentError, match=r"(?s)max_pool.*4 axes.*test_pooling.py"
    ):
        td.nn.max_pool2d(np.zeros((3, 4, 1), "f"), 2, 2, "VALID")
    with pytest.raises(td.errors.InvalidArgumentError, match="window of 9 does not fit"):
        td.nn.max_pool2d(IMAGES, 9, 1, "VALID")
    with pytest.raises(ValueError, match="ksize"):
        td.nn.max_pool2d(IMAGES, 0, 1, "VALID")
    with pytest.raises(TypeError, match="int32"):
        td.nn.avg_pool2d(IMAGES.astype(np.int32), 2, 2, "VALID")


def test_windows_of_several_channels():
    x = td.constant(np.arange(2 * 2 * 3 * 6).reshape(2, 2, 3, 6) % 5, td.float32)
    sizes = [1, 1, 1, 3]

    def pooled(x):
        return td.nn.max_pool2d(x, sizes, sizes, "SAME")

    groups = x.numpy().reshape(2, 2, 3, 2, 3)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.function(pooled)(x)
    np.testing.assert_array_equal(y, groups.max(-1))
    np.testing.assert_array_equal(pooled(x), y)
    winners = np.eye(3, dtype=np.float32)[groups.argmax(-1)]  # the first ones
    np.testing.assert_array_equal(tape.gradient(y, x), winners.reshape(x.shape))
    for sizes, steps in (([1, 2, 1, 2], [1, 1, 1, 2]), ([1, 1, 1, 2], [1, 1, 1, 1])):
        with pytest.raises(td.errors.UnimplementedError, match="window over several channels"):
            td.nn.max_pool2d(x, sizes, steps, "SAME")
    with pytest.raises(td.errors.UnimplementedError, match="do not evenly divide"):
        td.nn.max_pool2d(x, [1, 1, 1, 4], [1, 1, 1, 4], "VALID")
