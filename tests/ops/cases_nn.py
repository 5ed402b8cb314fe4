"""Cases of layers' functions, matrices' decompositions and transforms. Their values are tested in
files of their own (test_activations.py, test_losses.py, test_convolution.py, test_pooling.py,
test_native_linalg.py, test_fourier.py, test_updates.py): these are samples for what must hold of
every op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from tests.ops.cases import ONE, TWO, Case
from treadle.ops.indexing.updates import set_item

BOTH = ("float32", "float64")
ROWS = (((2, 5),), ((1, 3),))
IMAGES = (((2, 4, 4, 3),),)


def sample(name: str, fn: Callable[..., Any], shapes: Any = ONE, **k: Any) -> Case:
    """A case whose values are tested in another file."""
    return Case(name, fn, None, shapes, **{"dtypes": BOTH, "kernels": False, **k})


def pulled(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of `fn` at `x`, weighted with `dy`, as a function of both: its own gradients are
    those of the ops that only gradients use."""

    def gradient(dy: Any, x: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        return td.convert_to_tensor(tape.gradient(y, x, output_gradients=dy))

    return gradient


def symmetric(x: Any) -> Any:
    """A symmetric matrix whose eigenvalues are positive and differ."""
    numbers = td.cast(td.range(td.shape(x)[-1]) + 1, x.dtype)
    return x @ td.linalg.matrix_transpose(x) + td.linalg.diag(numbers)


def regular(x: Any) -> Any:
    """A matrix that is far from singular."""
    return x + 5.0 * td.eye(td.shape(x)[-1], dtype=x.dtype)


MATRIX = (((3, 3),), ((2, 2, 2),))
ACTIVATIONS = [
    sample("relu", td.nn.relu),
    sample("relu6", td.nn.relu6),
    sample("leaky_relu", td.nn.leaky_relu),
    sample("elu", td.nn.elu),
    sample("selu", td.nn.selu),
    sample("silu", td.nn.silu),
    sample("gelu", td.nn.gelu),
    sample("gelu_by_tanh", lambda x: td.nn.gelu(x, approximate=True)),
    sample("softsign", td.nn.softsign),
    sample("softmax", td.nn.softmax, ROWS),
    sample("softmax_of_columns", lambda x: td.nn.softmax(x, axis=0), ROWS),
    sample("log_softmax", td.nn.log_softmax, ROWS),
    sample("softmax_cross_entropy",
           lambda x, y: td.nn.softmax_cross_entropy_with_logits(td.nn.softmax(x), y),
           (((2, 5), (2, 5)),)),
    sample("sparse_softmax_cross_entropy",
           lambda x: td.nn.sparse_softmax_cross_entropy_with_logits(td.constant([1, 0]), x),
           (((2, 5),), ((2, 3),))),
    sample("sigmoid_cross_entropy",
           lambda x, y: td.nn.sigmoid_cross_entropy_with_logits(td.sigmoid(x), y),
           (((2, 5), (2, 5)),)),
    sample("isotonic_regression", lambda x: td.nn.isotonic_regression(x)[0], ROWS),
    sample("bitcast", lambda x: td.bitcast(x, td.uint8), ROWS, differentiable=False),
    sample("nextafter", td.math.nextafter, TWO, twice=False),
]  # fmt: skip
CONVOLUTIONS = [
    sample("conv2d", lambda x, f: td.nn.conv2d(x, f, 1, "SAME"), (((2, 4, 4, 2), (3, 3, 2, 4)),)),
    sample("conv2d_strides", lambda x, f: td.nn.conv2d(x, f, 2, "VALID"),
           (((1, 5, 5, 1), (2, 2, 1, 2)),)),
    sample("depthwise_conv2d",
           lambda x, f: td.nn.depthwise_conv2d(x, f, [1, 1, 1, 1], "SAME"),
           (((1, 4, 4, 2), (2, 2, 2, 1)),)),
    sample("conv2d_of_a_constant",
           lambda x: td.nn.conv2d(x, td.ones([2, 2, 3, 2], x.dtype), 1, "VALID"), IMAGES),
    sample("conv3d", lambda x, f: td.nn.conv3d(x, f, [1] * 5, "VALID"),
           (((1, 2, 3, 3, 1), (2, 2, 2, 1, 2)),), symbolic=False),
    sample("max_pool3d", lambda x: td.nn.max_pool3d(x, 2, 1, "VALID"), (((1, 3, 3, 2, 1),),)),
    sample("avg_pool3d", lambda x: td.nn.avg_pool3d(x, 2, 1, "VALID"), (((1, 3, 3, 2, 1),),)),
    sample("max_pool2d", lambda x: td.nn.max_pool2d(x, 2, 2, "VALID"), IMAGES),
    sample("max_pool2d_overlapping", lambda x: td.nn.max_pool2d(x, 3, 1, "SAME"), IMAGES),
    sample("avg_pool2d", lambda x: td.nn.avg_pool2d(x, 2, 2, "VALID"), IMAGES),
    sample("avg_pool2d_overlapping", lambda x: td.nn.avg_pool2d(x, 3, 2, "SAME"), IMAGES),
]  # fmt: skip
DECOMPOSITIONS = [
    sample("inverse", lambda x: td.linalg.inv(regular(x)), MATRIX),
    sample("determinant", lambda x: td.linalg.det(regular(x)), MATRIX),
    sample("log_determinant", lambda x: td.linalg.slogdet(regular(x))[1], MATRIX),
    sample("solve", lambda x, y: td.linalg.solve(regular(x), y), (((3, 3), (3, 2)),)),
    sample("triangular_solve", lambda x, y: td.linalg.triangular_solve(regular(x), y),
           (((3, 3), (3, 2)),)),
    sample("cholesky", lambda x: td.linalg.cholesky(symmetric(x)), MATRIX),
    sample("qr", lambda x: td.linalg.qr(regular(x))[1], MATRIX, symbolic=False),
    sample("svd", lambda x: td.linalg.svd(regular(x))[0], MATRIX),
    sample("eigh", lambda x: td.linalg.eigh(symmetric(x))[0], MATRIX),
]  # fmt: skip


def parts(z: Any) -> Any:
    """A real function of complex numbers that depends on both of their parts."""
    return td.math.real(z) + 2.0 * td.math.imag(z)


TRANSFORMS = [
    sample("fft", lambda x, y: parts(td.signal.fft(td.complex(x, y))), (((2, 4), (2, 4)),)),
    sample("ifft", lambda x, y: parts(td.signal.ifft(td.complex(x, y))), (((2, 4), (2, 4)),)),
    sample("rfft", lambda x: parts(td.signal.rfft(x)), (((2, 6),),)),
    sample("irfft", lambda x, y: td.signal.irfft(td.complex(x, y)), (((2, 4), (2, 4)),)),
]  # fmt: skip
POSITION = [
    sample("element", lambda x: x[td.constant(1), td.constant(2)] * 2.0, (((3, 4),),)),
    sample("item", lambda x: x[td.constant(1)] * 2.0, (((3, 4),),)),
    sample("set_row", lambda x, y: set_item(x, td.constant(1), y), (((3, 4), (4,)),)),
    sample("set_element", lambda x, y: set_item(x, (td.constant(1), td.constant(0)), y),
           (((3, 4), ()),)),
    sample("set_slice", lambda x, y: set_item(x, slice(1, 3), y), (((3, 4), (2, 4)),)),
    sample("set_open_slice",
           lambda x, y: set_item(x, slice(td.constant(1), td.constant(3)), y),
           (((3, 4), (2, 4)),)),
    sample("open_slice", lambda x: x[td.constant(1) : td.constant(3)] * 2.0, (((4, 3),),)),
]  # fmt: skip
GRADIENTS = [
    sample("gradient_of_relu", pulled(td.nn.relu), (((5,), (5,)),)),
    sample("gradient_of_relu6", pulled(td.nn.relu6), (((5,), (5,)),)),
    sample("gradient_of_softmax_cross_entropy",
           lambda dy, x, y: td.add_n([
               pulled(lambda t: td.nn.softmax_cross_entropy_with_logits(td.nn.softmax(y), t))(dy, x)
           ]), (((2,), (2, 3), (2, 3)),)),
    sample("gradient_of_sparse_softmax_cross_entropy",
           pulled(lambda x: td.nn.sparse_softmax_cross_entropy_with_logits(td.constant([1, 0]), x)),
           (((2,), (2, 3)),)),
    sample("gradient_by_images",
           lambda dy, x, f: pulled(lambda t: td.nn.conv2d(t, f, 1, "SAME"))(dy, x),
           (((1, 3, 3, 2), (1, 3, 3, 1), (2, 2, 1, 2)),)),
    sample("gradient_by_filters",
           lambda dy, x, f: pulled(lambda t: td.nn.conv2d(x, t, 1, "SAME"))(dy, f),
           (((1, 3, 3, 2), (1, 3, 3, 1), (2, 2, 1, 2)),)),
    sample("gradient_of_max_pool2d", pulled(lambda x: td.nn.max_pool2d(x, 2, 2, "VALID")),
           (((1, 2, 2, 1), (1, 4, 4, 1)),)),
    sample("gradient_of_avg_pool2d", pulled(lambda x: td.nn.avg_pool2d(x, 2, 2, "VALID")),
           (((1, 2, 2, 1), (1, 4, 4, 1)),)),
    sample("gradient_of_broadcasting", pulled(lambda x: td.broadcast_to(x, [3, 2])),
           (((3, 2), (2,)),)),
    sample("gradient_of_an_item", pulled(lambda x: x[td.constant(1)]), (((2,), (3, 2)),)),
    sample("gradient_of_a_slice", pulled(lambda x: x[1:, ::2]), (((2, 2), (3, 4)),)),
    sample("gradient_of_an_open_slice",
           pulled(lambda x: x[td.constant(1) : td.constant(3)]), (((2, 3), (4, 3)),)),
]  # fmt: skip
LAYERS = [
    *ACTIVATIONS, *CONVOLUTIONS, *DECOMPOSITIONS, *TRANSFORMS, *POSITION, *GRADIENTS
]  # fmt: skip
