"""Convolution against the definition, its transposes, gradients and argument checks."""

import itertools

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients
from treadle.core.shapes import SymbolicDim
from treadle.core.spec import TensorSpec
from treadle.ops.registry import OPS

RNG = np.random.default_rng(3)

# image, filter, strides, padding, dilations
CASES = [
    ((2, 5, 6, 2), (3, 3, 2, 4), (1, 1), "VALID", (1, 1)),
    ((2, 5, 6, 2), (3, 3, 2, 4), (1, 1), "SAME", (1, 1)),
    ((1, 6, 7, 3), (3, 2, 3, 2), (2, 3), "SAME", (1, 1)),
    ((1, 7, 7, 1), (2, 3, 1, 2), (1, 1), "SAME", (2, 2)),
    ((1, 7, 6, 2), (2, 2, 2, 3), (1, 2), "VALID", (3, 2)),
    ((1, 4, 4, 2), (3, 3, 2, 2), (1, 1), ((1, 0), (0, 2)), (1, 1)),
    ((2, 4, 4, 4), (2, 2, 2, 6), (1, 1), "SAME", (1, 1)),  # two groups
    ((1, 4, 5, 3), (3, 3, 1, 6), (2, 1), "SAME", (1, 1)),  # depthwise
    ((2, 3, 3, 5), (1, 1, 5, 2), (1, 1), "VALID", (1, 1)),
    ((1, 2, 2, 1), (5, 5, 1, 1), (1, 1), "SAME", (1, 1)),  # filter larger than the image
]


def same_padding(size, window, stride, dilation):
    reach = (window - 1) * dilation + 1
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def direct(x, w, strides, padding, dilations):
    """Convolution by its definition, one output element at a time."""
    if padding == "SAME":
        padding = [
            same_padding(x.shape[i + 1], w.shape[i], strides[i], dilations[i]) for i in (0, 1)
        ]
    elif padding == "VALID":
        padding = [(0, 0), (0, 0)]
    x = np.pad(x, [(0, 0), *padding, (0, 0)])
    (kh, kw, inner, outer), groups = w.shape, x.shape[3] // w.shape[2]
    reach = [(w.shape[i] - 1) * dilations[i] + 1 for i in (0, 1)]
    size = [(x.shape[i + 1] - reach[i]) // strides[i] + 1 for i in (0, 1)]
    y = np.zeros((x.shape[0], *size, outer))
    for n, h, v, o in np.ndindex(y.shape):
        first = o // (outer // groups) * inner
        for i, j in itertools.product(range(kh), range(kw)):
            pixel = x[n, h * strides[0] + i * dilations[0], v * strides[1] + j * dilations[1]]
            y[n, h, v, o] += pixel[first : first + inner] @ w[i, j, :, o]
    return y


def explicit(padding):
    return padding if isinstance(padding, str) else [[0, 0], *padding, [0, 0]]


@pytest.mark.parametrize("case", CASES)
def test_definition(case):
    image, filters, strides, padding, dilations = case
    x, w = RNG.normal(size=image), RNG.normal(size=filters)
    y = td.nn.conv2d(x, w, strides, explicit(padding), dilations=dilations)
    np.testing.assert_allclose(y, direct(x, w, strides, padding, dilations), rtol=1e-10, atol=1e-12)
    spec = OPS["conv2d"].infer(
        TensorSpec(image, "float64"), TensorSpec(filters, "float64"),
        strides=strides, padding=padding, dilations=dilations,
    )  # fmt: skip
    assert spec.dims == y.dims


@pytest.mark.parametrize("case", CASES)
def test_transposes_are_adjoint(case):
    """<dy, conv(x, w)> is <conv_input(w, dy), x> and <conv_filter(x, dy), w>."""
    image, filters, strides, padding, dilations = case
    settings = {"strides": strides, "padding": padding, "dilations": dilations}
    x, w = RNG.normal(size=image), RNG.normal(size=filters)
    y = OPS["conv2d"].eager(x, w, **settings)
    dy = RNG.normal(size=y.shape)
    dx = OPS["conv2d_backprop_input"].eager(w, dy, image=image[1:], **settings)
    dw = OPS["conv2d_backprop_filter"].eager(x, dy, filters=filters, **settings)
    assert dx.shape == image and dw.shape == filters
    np.testing.assert_allclose((dx * x).sum(), (dy * y).sum(), rtol=1e-10)
    np.testing.assert_allclose((dw * w).sum(), (dy * y).sum(), rtol=1e-10)


@pytest.mark.parametrize(
    ("image", "filters", "strides", "padding", "dilations"),
    [
        ((1, 3, 4, 2), (2, 2, 2, 2), (1, 1), "SAME", (1, 1)),
        ((1, 4, 3, 2), (2, 2, 1, 2), (2, 1), "VALID", (1, 2)),
    ],
)
def test_gradients_of_first_and_second_order(image, filters, strides, padding, dilations):
    check_gradients(
        lambda x, w: td.nn.conv2d(x, w, strides, padding, dilations=dilations),
        RNG.normal(size=image), RNG.normal(size=filters),
    )  # fmt: skip


def test_depthwise_and_transposed_gradients():
    check_gradients(
        lambda x, w: td.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
        RNG.normal(size=(1, 3, 3, 2)), RNG.normal(size=(2, 2, 2, 2)), second=False,
    )  # fmt: skip
    check_gradients(
        lambda x, w: td.nn.conv2d_transpose(x, w, [1, 4, 5, 2], 2),
        RNG.normal(size=(1, 2, 3, 1)), RNG.normal(size=(2, 2, 2, 1)), second=False,
    )  # fmt: skip


def test_depthwise_keeps_channels_apart():
    x, w = RNG.normal(size=(1, 4, 4, 3)), RNG.normal(size=(2, 2, 3, 2))
    y = td.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID").numpy()
    for c in range(3):
        alone = direct(x[..., c : c + 1], w[:, :, c : c + 1], (1, 1), "VALID", (1, 1))
        np.testing.assert_allclose(y[..., 2 * c : 2 * c + 2], alone, rtol=1e-10)


def test_channels_first():
    x, w = RNG.normal(size=(2, 5, 6, 3)), RNG.normal(size=(3, 3, 3, 2))
    y = td.nn.conv2d(x, w, [1, 2, 1, 1], "SAME")
    z = td.nn.conv2d(x.transpose(0, 3, 1, 2), w, [1, 1, 2, 1], "SAME", data_format="NCHW")
    np.testing.assert_allclose(z.numpy().transpose(0, 2, 3, 1), y, rtol=1e-12)


def test_half_precision_accumulates_in_float32():
    x, w = np.full((1, 1, 1, 4096), 1, np.float16), np.full((1, 1, 4096, 1), 1, np.float16)
    y = td.nn.conv2d(x, w, 1, "VALID")
    assert y.dtype == "float16" and float(y[0, 0, 0, 0]) == 4096.0


def test_empty_batch():
    y = td.nn.conv2d(np.zeros((0, 5, 5, 1), "f"), np.zeros((3, 3, 1, 2), "f"), 1, "VALID")
    assert y.shape == (0, 3, 3, 2)


def test_symbolic_sizes():
    b, h = SymbolicDim.symbol("B"), SymbolicDim.symbol("H")
    infer = OPS["conv2d"].infer
    filters = TensorSpec((3, 3, 1, 4))
    same = infer(
        TensorSpec((b, h, 8, 1)), filters, strides=(1, 1), padding="SAME", dilations=(1, 1)
    )
    assert same.dims == (b, h, 8, 4)
    valid = infer(
        TensorSpec((b, h, 8, 1)), filters, strides=(2, 2), padding="VALID", dilations=(1, 1)
    )
    assert valid.dims == (b, (h - 3) // 2 + 1, 3, 4)


@pytest.mark.parametrize(
    ("x", "w", "message"),
    [
        ((4, 5, 2), (3, 3, 2, 1), r"conv2d.*4 axes.*\(4, 5, 2\)"),
        ((1, 4, 5, 2), (3, 3, 2), r"\[height, width, in, out\].*\(3, 3, 2\)"),
        ((1, 4, 5, 3), (3, 3, 2, 1), "3 channels and the filters take 2"),
        ((1, 2, 5, 2), (3, 3, 2, 1), "window of 3 does not fit into the height 2"),
    ],
)
def test_wrong_shapes(x, w, message):
    with pytest.raises(td.errors.InvalidArgumentError, match=message):
        td.nn.conv2d(np.zeros(x, "f"), np.zeros(w, "f"), 1, "VALID")


def test_wrong_arguments():
    x, w = np.zeros((1, 4, 4, 1), "f"), np.zeros((2, 2, 1, 1), "f")
    with pytest.raises(ValueError, match="padding"):
        td.nn.conv2d(x, w, 1, "FULL")
    with pytest.raises(ValueError, match="strides"):
        td.nn.conv2d(x, w, [1, 2, 3], "SAME")
    with pytest.raises(ValueError, match="batch and channel"):
        td.nn.conv2d(x, w, [2, 1, 1, 1], "SAME")
    with pytest.raises(TypeError, match="float32 and float64"):
        td.nn.conv2d(x, w.astype(np.float64), 1, "SAME")
    with pytest.raises(ValueError, match="NHWC"):
        td.nn.conv2d(x, w, 1, "SAME", data_format="HWC")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_programs_equal_numpy(case, dtype):
    image, filters, strides, padding, dilations = case
    x = td.constant(RNG.normal(size=image).astype(dtype))
    w = td.constant(RNG.normal(size=filters).astype(dtype))

    def all_three(x, w):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = td.nn.conv2d(x, w, strides, explicit(padding), dilations=dilations)
            total = td.reduce_sum(y * y)
        return [y, *tape.gradient(total, [x, w])]

    tolerance = {"float32": 1e-5, "float64": 1e-12, "float16": 2e-2}[dtype]
    program = td.function(all_three, autograph=False)
    for actual, expected in zip(program(x, w), all_three(x, w), strict=True):
        assert actual.dtype == dtype
        scale = max(1.0, float(np.abs(expected.numpy()).max()))
        np.testing.assert_allclose(actual.numpy() / scale, expected.numpy() / scale, atol=tolerance)


def test_a_program_serves_every_batch_size():
    w = td.constant(RNG.normal(size=(3, 3, 2, 4)).astype("f"))
    spec = td.TensorSpec([None, 6, 5, 2])

    @td.function(input_signature=[spec], autograph=False)
    def f(x):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = td.nn.max_pool2d(td.nn.relu(td.nn.conv2d(x, w, 1, "SAME")), 2, 2, "VALID")
        return [y, *tape.gradient(y, [x, w])]

    for batch in (0, 1, 2, 7):
        x = RNG.normal(size=(batch, 6, 5, 2)).astype("f")
        for actual, expected in zip(f(x), f.python_function(td.constant(x)), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("call", [lambda f: f, td.function])
def test_whole_numbers_of_both_directions(call):
    x = np.arange(24).reshape(1, 3, 4, 2) * 10**7
    w = np.arange(-8, 8).reshape(2, 2, 2, 2)
    up = call(lambda a, b: td.nn.conv2d_transpose(a, b, [1, 6, 8, 2], 2, "SAME"))
    found = up(td.constant(x, td.int32), td.constant(w, td.int32))
    wanted = np.zeros((1, 6, 8, 2), np.int64)
    for row, column in np.ndindex(3, 4):
        part = np.einsum("hwoi,i->hwo", w, x[0, row, column])
        wanted[0, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2] += part
    assert found.dtype is td.int32
    np.testing.assert_array_equal(found.numpy(), wanted.astype(np.int32))
