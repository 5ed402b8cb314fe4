"""Convolutions and pools of volumes and of any rank, windows along an axis, dilation, argmax."""

import warnings

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients
from tests.ops.lowered import check_lowering

RNG = np.random.default_rng(6)
VOLUME = RNG.normal(size=(2, 4, 3, 5, 4))
FILTERS = RNG.normal(size=(2, 3, 2, 4, 3))

# strides, padding, dilations
CASES = [
    (1, "SAME", 1),
    (1, "VALID", 1),
    ([2, 1, 3], "SAME", 1),
    ([2, 2, 1], "VALID", 1),
    (1, "SAME", [2, 1, 2]),
    (1, "VALID", [3, 1, 1]),
    ([1, 2, 1], [[0, 0], [1, 2], [0, 1], [2, 0], [0, 0]], [1, 1, 2]),
]


def three(value):
    return (value,) * 3 if isinstance(value, int) else tuple(value)


def padded(x, window, case, fill=0.0):
    """The padded volume."""
    strides, padding, dilations = three(case[0]), case[1], three(case[2])
    if padding == "VALID":
        return x
    if padding == "SAME":
        frame = [(0, 0)]
        for n, k, s, d in zip(x.shape[1:4], window, strides, dilations, strict=True):
            total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            frame.append((total // 2, total - total // 2))
        padding = [*frame, (0, 0)]
    return np.pad(x, padding, constant_values=fill)


def convolved(x, w, case):
    strides, dilations = three(case[0]), three(case[2])
    x = padded(x, w.shape[:3], case)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape, dilations, strict=False)]
    counts = [(n - r) // s + 1 for n, r, s in zip(x.shape[1:4], reach, strides, strict=True)]
    y = np.zeros((x.shape[0], *counts, w.shape[4]))
    for place in np.ndindex(*counts):
        starts = [p * s for p, s in zip(place, strides, strict=True)]
        parts = [slice(a, a + r, d) for a, r, d in zip(starts, reach, dilations, strict=True)]
        window = x[:, parts[0], parts[1], parts[2]]
        y[:, place[0], place[1], place[2]] = np.einsum("ndhwc,dhwco->no", window, w)
    return y


@pytest.mark.parametrize("case", CASES)
def test_conv3d(case):
    strides, padding, dilations = case

    def conv(x, w):
        return td.nn.conv3d(x, w, strides, padding, dilations=dilations)

    expected = convolved(VOLUME, FILTERS, case)
    eager = conv(VOLUME, FILTERS)
    np.testing.assert_allclose(eager, expected, rtol=1e-12, atol=1e-12)
    spec = [td.TensorSpec([None] * 4 + [4], td.float64), td.TensorSpec(FILTERS.shape, td.float64)]
    compiled = td.function(conv)(VOLUME, FILTERS)  # NumPy's BLAS adds in an order of its own
    np.testing.assert_allclose(compiled, expected, rtol=1e-12, atol=1e-12)
    opened = td.function(conv, input_signature=spec)
    np.testing.assert_array_equal(opened(VOLUME, FILTERS), compiled)
    np.testing.assert_allclose(
        opened(VOLUME[:1, :, :, 1:], FILTERS), convolved(VOLUME[:1, :, :, 1:], FILTERS, case),
        rtol=1e-12, atol=1e-12,
    )  # fmt: skip


@pytest.mark.parametrize("case", [CASES[2], CASES[4], CASES[6]])
def test_gradients_of_conv3d(case):
    strides, padding, dilations = case
    x, w = VOLUME[:1, ..., :4, :1], FILTERS[:, :2, :, :1, :2]
    check_gradients(
        lambda x, w: td.nn.conv3d(x, w, strides, padding, dilations=dilations), x, w
    )


def test_groups_formats_and_batches():
    w = RNG.normal(size=(2, 3, 2, 2, 6))
    whole = td.nn.conv3d(VOLUME, w, 1, "SAME").numpy()
    halves = [
        td.nn.conv3d(VOLUME[..., 2 * g : 2 * g + 2], w[..., 3 * g : 3 * g + 3], 1, "SAME")
        for g in range(2)
    ]
    np.testing.assert_allclose(whole, np.concatenate(halves, -1), rtol=1e-12)
    check_gradients(lambda x, w: td.nn.conv3d(x, w, 2, "SAME"), VOLUME[:1], w, second=False)
    first = np.moveaxis(VOLUME, -1, 1)
    for fn in (
        lambda x, f: td.nn.conv3d(x, FILTERS, [1, 2, 1], "SAME", f, [1, 1, 2]),
        lambda x, f: td.nn.max_pool3d(x, [2, 1, 3], 2, "SAME", f),
        lambda x, f: td.nn.pool(x, [2, 2, 2], "AVG", data_format=f, dilations=[2, 1, 1]),
        lambda x, f: td.nn.conv3d_transpose(
            x, np.moveaxis(FILTERS, -1, 3), [2, 4, 3, 5, 3] if f == "NDHWC" else [2, 3, 4, 3, 5], 1,
            "SAME", f,
        ),
    ):  # fmt: skip
        np.testing.assert_allclose(
            np.moveaxis(fn(first, "NCDHW"), 1, -1), fn(VOLUME, "NDHWC"), rtol=1e-12
        )
    many = VOLUME.reshape(2, 1, 4, 3, 5, 4)
    np.testing.assert_array_equal(
        td.nn.conv3d(many, FILTERS, 1, "SAME")[:, 0], td.nn.conv3d(VOLUME, FILTERS, 1, "SAME")
    )


@pytest.mark.parametrize("case", [*CASES[:4], CASES[6]])
def test_conv3d_transpose_is_the_gradient_of_conv3d(case):
    strides, padding, dilations = case
    x = td.constant(VOLUME)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.nn.conv3d(x, FILTERS, strides, padding, dilations=dilations)
        loss = td.reduce_sum(y * y) * 0.5
    slope = tape.gradient(loss, x)

    def back(y):
        shape = [td.shape(y)[0], *VOLUME.shape[1:]]
        return td.nn.conv3d_transpose(y, FILTERS, shape, strides, padding, dilations=dilations)

    np.testing.assert_allclose(back(y), slope, rtol=1e-10, atol=1e-10)
    spec = td.TensorSpec([None, *y.shape[1:]], td.float64)
    np.testing.assert_allclose(
        td.function(back, input_signature=[spec])(y), slope, rtol=1e-10, atol=1e-10
    )


def test_gradients_of_conv3d_transpose():
    x, w = VOLUME[:1, :2, :2, :3, :2], FILTERS[:, :2, :, :2, :2]
    check_gradients(
        lambda x, w: td.nn.conv3d_transpose(x, w, [1, 4, 2, 6, 2], [2, 1, 2], "SAME"), x, w
    )


# axis, window, stride, dilation, padding
WINDOWS = [
    (1, 2, 1, 1, "SAME"), (0, 3, 2, 1, "VALID"), (1, 3, 3, 2, (4, 1)), (2, 2, 3, 1, "SAME"),
    (1, 20, 2, 1, (16, 11)), (0, 1, 2, 1, "VALID"),
]  # fmt: skip


@pytest.mark.parametrize("case", WINDOWS)
def test_windows_along_an_axis(case):
    axis, window, stride, dilation, padding = case
    attrs = {
        "axis": axis, "window": window, "stride": stride, "dilation": dilation, "padding": padding,
    }  # fmt: skip
    x = RNG.normal(size=(4, 5, 6, 3)).astype("f")
    for fill in ("zero", "lowest"):
        taken = check_lowering("take_windows", x, fill=fill, **attrs)
    check_lowering("take_windows", x.astype(np.int32), fill="lowest", **attrs)
    y = RNG.normal(size=taken.shape)
    added = check_lowering("add_windows", y, size=x.shape[axis], tolerance=1e-12, **attrs)
    from treadle.ops.image.axis_windows import take_windows

    zeros = take_windows(td.constant(x, td.float64), axis, window, stride, dilation, padding)
    np.testing.assert_allclose((y * zeros.numpy()).sum(), (added * x).sum(), rtol=1e-6)


@pytest.mark.parametrize("case", [c for c in CASES if c[2] == 1])
@pytest.mark.parametrize("size", [(2, 2, 3), (1, 3, 1), (2, 1, 5)])
def test_pools_of_volumes(case, size):
    strides, padding, _ = case
    distinct = RNG.permutation(VOLUME.size).reshape(VOLUME.shape).astype(np.float64)
    ones = padded(np.ones_like(distinct), size, case, np.nan)
    framed = padded(distinct, size, case, np.nan)
    steps = three(strides)
    counts = [(n - k) // s + 1 for n, k, s in zip(framed.shape[1:4], size, steps, strict=True)]
    places = list(np.ndindex(*counts))

    def reduced(x, reduce):
        parts = []
        for place in places:
            cut = [slice(p * s, p * s + k) for p, s, k in zip(place, steps, size, strict=True)]
            parts.append(reduce(x[:, cut[0], cut[1], cut[2]], (1, 2, 3)))
        return np.stack(parts, 1).reshape(x.shape[0], *counts, x.shape[4])

    highest = td.nn.max_pool3d(distinct, list(size), strides, padding)
    np.testing.assert_array_equal(highest, reduced(framed, np.nanmax))
    mean = td.nn.avg_pool3d(distinct, list(size), strides, padding)
    whole = reduced(framed, np.nansum) / reduced(ones, np.nansum)
    np.testing.assert_allclose(mean, whole, rtol=1e-12)
    if size != (2, 2, 3):
        return
    small = distinct[:1, ..., :1] / 10
    for pool in (td.nn.max_pool3d, td.nn.avg_pool3d):
        check_gradients(
            lambda x, pool=pool: pool(x, list(size), strides, padding), small,
            second=pool is td.nn.avg_pool3d,
        )  # fmt: skip


def test_dilated_pools():
    distinct = RNG.permutation(2 * 6 * 7 * 2).reshape(2, 6, 7, 2).astype(np.float64)
    y = td.nn.pool(distinct, [2, 3], "MAX", dilations=[3, 2])
    expected = np.max([distinct[:, 3 * i : 3 * i + 3, 2 * j : 2 * j + 3] for i in range(2)
                       for j in range(3)], 0)  # fmt: skip
    np.testing.assert_array_equal(y, expected)
    check_gradients(lambda x: td.nn.pool(x, [2, 3], "AVG", dilations=[3, 2]), distinct[:1] / 10)
    check_gradients(
        lambda x: td.nn.pool(x, [2, 3], "MAX", dilations=[3, 2]), distinct[:1] / 10, second=False
    )
    spread = td.nn.with_space_to_batch(
        distinct, [3, 2], "VALID", lambda x, n, padding: td.nn.max_pool(x, [2, 3], 1, padding)
    )
    np.testing.assert_array_equal(spread, y)


def test_gradients_of_dilations():
    x = RNG.permutation(2 * 5 * 4).reshape(1, 5, 4, 2) / 3.0
    f = RNG.normal(size=(2, 3, 2))
    for fn in (td.nn.dilation2d, td.nn.erosion2d):
        check_gradients(
            lambda x, f, fn=fn: fn(x, f, [1, 2, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]), x, f,
            second=False,
        )  # fmt: skip


def test_patches_are_what_a_convolution_multiplies():
    patches = td.extract_volume_patches(VOLUME, [1, 2, 3, 2, 1], [1, 2, 1, 1, 1], "SAME")
    y = td.matmul(patches, FILTERS.reshape(-1, 3))
    np.testing.assert_allclose(
        y, td.nn.conv3d(VOLUME, FILTERS, [2, 1, 1], "SAME"), rtol=1e-10, atol=1e-10
    )


def test_argmax_of_open_sizes():
    images = RNG.permutation(2 * 5 * 6 * 3).reshape(2, 5, 6, 3).astype("f")
    pool = td.function(
        lambda x: td.nn.max_pool_with_argmax(x, 3, 2, "SAME", include_batch_in_index=True),
        input_signature=[td.TensorSpec([None] * 4)],
    )
    highest, position = pool(images)
    np.testing.assert_array_equal(images.reshape(-1)[position.numpy()], highest)


def batched(fn, *arrays):
    """What a function gives for every example, and for all at once."""
    single = [fn(*(td.constant(a[k]) for a in arrays)) for k in range(len(arrays[0]))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = td.vectorized_map(lambda parts: fn(*parts), tuple(map(td.constant, arrays)))
    np.testing.assert_allclose(whole, td.stack(single), rtol=1e-10, atol=1e-10)


def test_batches_of_volumes():
    many = RNG.normal(size=(3, 1, 4, 3, 5, 4))
    images = RNG.normal(size=(3, 2, 5, 4, 2))
    w = np.moveaxis(FILTERS, -1, 3)
    batched(lambda x: td.nn.conv3d(x, FILTERS, [2, 1, 1], "SAME"), many)
    batched(lambda x: td.nn.conv3d_transpose(x, w, [1, 8, 3, 5, 3], [2, 1, 1], "SAME"), many)
    batched(lambda x: td.nn.max_pool3d(x, 2, 1, "SAME"), many)
    batched(lambda x: td.nn.avg_pool3d(x, 2, 2, "VALID"), many)
    batched(lambda x: td.nn.pool(x, [2, 2], "MAX", dilations=[2, 1]), images)
    batched(
        lambda x: td.nn.dilation2d(x, FILTERS[0, ..., :2, 0], 1, "SAME", "NHWC", 1), images
    )
    batched(lambda x: td.nn.max_pool_with_argmax(x, 2, 1, "SAME")[1], images)


def test_what_does_not_fit():
    invalid = td.errors.InvalidArgumentError
    n = td.nn
    for call in (
        lambda: n.conv3d(VOLUME, FILTERS[..., :3, :], 1, "SAME"),
        lambda: n.conv3d(VOLUME[0], FILTERS, 1, "SAME"),
        lambda: n.conv3d(VOLUME, FILTERS, 1, "SAME", "NHWC"),
        lambda: n.conv3d(VOLUME, FILTERS, [1, 2], "SAME"),
        lambda: n.conv3d(VOLUME[:, :1], FILTERS, 1, "VALID"),
        lambda: n.conv3d(VOLUME[:, :, :1], FILTERS, 1, "VALID"),
        lambda: n.conv3d_transpose(VOLUME, FILTERS, [2, 9, 3, 5, 4], 1),
        lambda: n.max_pool3d(VOLUME, 9, 1, "VALID"),
        lambda: n.max_pool_with_argmax(VOLUME[:, 0], 2, 1, "SAME", output_dtype="int8"),
        lambda: n.dilation2d(VOLUME[0], FILTERS[0, ..., 0], 1, "FULL", "NHWC", 1),
    ):
        with pytest.raises(invalid):
            call()
        with pytest.raises(invalid):
            td.function(call)()
    opened = td.function(
        lambda x: n.conv3d(x, FILTERS, 1, "VALID"),
        input_signature=[td.TensorSpec([None] * 4 + [4], td.float64)],
    )
    with pytest.raises(invalid):
        opened(VOLUME[:, :1])
    with pytest.raises(invalid):
        n.max_pool(VOLUME[:, 0, 0], 2, 1, [])
    with pytest.raises(ValueError, match="1, 2 or 3"):
        n.max_pool(VOLUME[None], 2, 1, "SAME")
    with pytest.raises(ValueError, match="NHWC"):
        n.max_pool(VOLUME[:, 0], 2, 1, "SAME", "NWC")
    with pytest.raises(ValueError, match="strides of 1"):
        n.pool(VOLUME, [2, 2, 2], "MAX", strides=2, dilations=2)
