"""The functions of `keras.backend` that layers were made of: convolutions, pools, margins and
loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import ops
from treadle.keras.config import epsilon, image_data_format


def _is_first(data_format: str | None) -> bool:
    """Whether channels come first.

    Raises:
        ValueError: there is no such format.
    """
    given = data_format or image_data_format()
    if given not in ("channels_first", "channels_last"):
        raise ValueError(f"Unknown data_format: {given}")
    return given == "channels_first"


def conv1d(
    x: Any, kernel: Any, strides: int = 1, padding: str = "valid", data_format: str | None = None,
    dilation_rate: int = 1,
) -> Any:  # fmt: skip
    """The convolution of sequences; ``padding="causal"`` sees no later steps."""
    if padding == "causal":
        x = temporal_padding(x, (dilation_rate * (int(kernel.shape[0]) - 1), 0))
        padding = "valid"
    return ops.conv(x, kernel, strides, padding, data_format, dilation_rate)


def conv2d(
    x: Any, kernel: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str | None = None, dilation_rate: Any = (1, 1),
) -> Any:  # fmt: skip
    """The convolution of images."""
    return ops.conv(x, kernel, strides, padding, data_format, dilation_rate)


def conv3d(
    x: Any, kernel: Any, strides: Any = (1, 1, 1), padding: str = "valid",
    data_format: str | None = None, dilation_rate: Any = (1, 1, 1),
) -> Any:  # fmt: skip
    """The convolution of volumes."""
    return ops.conv(x, kernel, strides, padding, data_format, dilation_rate)


def depthwise_conv2d(
    x: Any, depthwise_kernel: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str | None = None, dilation_rate: Any = (1, 1),
) -> Any:  # fmt: skip
    """The convolution of each channel by itself."""
    return ops.depthwise_conv(x, depthwise_kernel, strides, padding, data_format, dilation_rate)


def separable_conv2d(
    x: Any, depthwise_kernel: Any, pointwise_kernel: Any, strides: Any = (1, 1),
    padding: str = "valid", data_format: str | None = None, dilation_rate: Any = (1, 1),
) -> Any:  # fmt: skip
    """The convolution of each channel by itself, then of each position."""
    return ops.separable_conv(
        x, depthwise_kernel, pointwise_kernel, strides, padding, data_format, dilation_rate
    )


def conv2d_transpose(
    x: Any, kernel: Any, output_shape: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str | None = None, dilation_rate: Any = (1, 1),
) -> Any:  # fmt: skip
    """The gradient of a convolution: images [batch, *output_shape[1:]].

    Args:
        output_shape: of the result; None for the batch's size is that of x.
    """
    first = _is_first(data_format)
    if first:
        x = td.transpose(x, [0, 2, 3, 1])
        output_shape = [output_shape[i] for i in (0, 2, 3, 1)]
    batch = td.shape(x)[0] if output_shape[0] is None else output_shape[0]
    shape = td.stack([batch, *output_shape[1:]])
    found = td.nn.conv2d_transpose(
        x, kernel, shape, list(strides), padding.upper(), dilations=list(dilation_rate)
    )
    return td.transpose(found, [0, 3, 1, 2]) if first else found


def _pooled(
    x: Any, size: Any, strides: Any, padding: str, data_format: str | None, mode: str
) -> Any:
    rank = len(x.shape) - 2
    for name, value in (("pool_size", size), ("strides", strides)):
        if len(value) != rank:
            raise ValueError(f"`{name}` must be a tuple of {rank} integers.")
    if mode not in ("max", "avg"):
        raise ValueError(f"Invalid pooling mode: {mode}")
    pool = ops.max_pool if mode == "max" else ops.average_pool
    return pool(x, size, strides, padding, data_format)


def pool2d(
    x: Any, pool_size: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str | None = None, pool_mode: str = "max",
) -> Any:  # fmt: skip
    """The largest numbers (``pool_mode="max"``) or the means (``"avg"``) of windows of images."""
    return _pooled(x, pool_size, strides, padding, data_format, pool_mode)


def pool3d(
    x: Any, pool_size: Any, strides: Any = (1, 1, 1), padding: str = "valid",
    data_format: str | None = None, pool_mode: str = "max",
) -> Any:  # fmt: skip
    """The largest numbers or the means of windows of volumes."""
    return _pooled(x, pool_size, strides, padding, data_format, pool_mode)


def temporal_padding(x: Any, padding: Any = (1, 1)) -> Any:
    """Zeros before and after the steps of sequences."""
    if len(padding) != 2:
        raise ValueError(
            f"Expected `padding` to be a tuple of 2 integers. Received: padding={padding}"
        )
    return td.pad(x, [[0, 0], list(padding), [0, 0]])


def _with_margins(x: Any, padding: Any, rank: int, data_format: str | None) -> Any:
    if len(padding) != rank or any(len(pair) != 2 for pair in padding):
        raise ValueError(
            f"Expected `padding` to be a tuple of {rank} tuples of 2 integers. Received: "
            f"padding={padding}"
        )
    none, around = [0, 0], [list(pair) for pair in padding]
    first = _is_first(data_format)
    return td.pad(x, [none, none, *around] if first else [none, *around, none])


def spatial_2d_padding(
    x: Any, padding: Any = ((1, 1), (1, 1)), data_format: str | None = None
) -> Any:
    """Zeros around images."""
    return _with_margins(x, padding, 2, data_format)


def spatial_3d_padding(
    x: Any, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None
) -> Any:
    """Zeros around volumes."""
    return _with_margins(x, padding, 3, data_format)


def resize_images(
    x: Any, height_factor: int, width_factor: int, data_format: str,
    interpolation: str = "nearest",
) -> Any:  # fmt: skip
    """Images so many times as high and wide."""
    first = _is_first(data_format)
    x = td.transpose(x, [0, 2, 3, 1]) if first else td.convert_to_tensor(x)
    rows, columns = x.shape[1], x.shape[2]
    if rows is None or columns is None:
        rows, columns = td.shape(x)[1], td.shape(x)[2]
    size = [rows * height_factor, columns * width_factor]
    found = td.image.resize(x, size, interpolation)
    return td.transpose(found, [0, 3, 1, 2]) if first else found


def resize_volumes(
    x: Any, depth_factor: int, height_factor: int, width_factor: int, data_format: str
) -> Any:
    """Volumes whose elements are repeated so often along the axes."""
    begin = 2 if _is_first(data_format) else 1
    for axis, factor in enumerate((depth_factor, height_factor, width_factor), begin):
        x = td.repeat(x, factor, axis)
    return x


def batch_normalization(
    x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3
) -> Any:
    """x less the mean, over the deviation, times gamma, plus beta: shapes that broadcast."""
    return td.nn.batch_normalization(x, mean, var, beta, gamma, epsilon)


def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """The product of each example of x with that of y.

    Args:
        axes: of x and y that are summed over; the last of x and the last but one of y when
            omitted.

    Raises:
        ValueError: the shapes or axes do not fit.
    """
    x, y = td.convert_to_tensor(x), td.convert_to_tensor(y)
    ranks = len(x.shape), len(y.shape)
    if min(ranks) < 2:
        raise ValueError(
            "Cannot do batch_dot on inputs with rank < 2. Received inputs with shapes "
            f"{x.shape} and {y.shape}."
        )
    if axes is None:
        axes = (ranks[0] - 1, ranks[1] - (1 if ranks[1] == 2 else 2))
    axes = (axes, axes) if isinstance(axes, int) else tuple(axes)
    if any(isinstance(axis, list | tuple) for axis in axes):
        raise ValueError(
            f"Multiple target dimensions are not supported. Expected: None, int, (int, int), "
            f"Provided: {axes}"
        )
    over = [axis % rank for axis, rank in zip(axes, ranks, strict=True)]
    if 0 in over:
        raise ValueError(
            "Cannot perform batch_dot over axis 0. If your inputs are not batched, add a dummy "
            "batch dimension to your inputs using K.expand_dims(x, 0)"
        )
    names = iter("bcdefghijklmnopqrstuvwxyz")
    letters = [["a", *(next(names) for _ in range(rank - 1))] for rank in ranks]
    letters[1][over[1]] = letters[0][over[0]]
    kept = [n for own, at in zip(letters, over, strict=True)
            for i, n in enumerate(own) if i and i != at]  # fmt: skip
    rule = f"{''.join(letters[0])},{''.join(letters[1])}->a{''.join(kept)}"
    found = td.einsum(rule, x, y)
    return found[:, None] if max(ranks) == 2 else found


def moving_average_update(x: td.Variable, value: Any, momentum: float) -> Any:
    """Move a variable towards the value, by 1 - momentum of the way."""
    return x.assign_sub((x - td.cast(value, x.dtype)) * (1 - momentum))


def map_fn(fn: Callable[[Any], Any], elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """The results of a function of each element along the first axis."""
    return td.map_fn(fn, elems, dtype)


def foldl(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, name: str | None = None
) -> Any:
    """What a function of the result so far and the next element gives at last."""
    return td.foldl(fn, elems, initializer)


def foldr(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, name: str | None = None
) -> Any:
    """`foldl` from the last element to the first."""
    return td.foldr(fn, elems, initializer)


def gradients(loss: Any, variables: Any) -> Any:
    """The gradients of the loss in a function; outside use a ``td.GradientTape``."""
    return td.gradients(loss, variables)


def is_sparse(tensor: Any) -> bool:
    """Whether a tensor is a `td.SparseTensor`."""
    return isinstance(tensor, td.SparseTensor)


def to_dense(tensor: Any) -> Any:
    """A sparse tensor with its zeros; any other as it is."""
    return td.sparse.to_dense(tensor) if is_sparse(tensor) else tensor


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """Cross-entropy of binary labels, an element each. Probabilities may broadcast with labels, and
    `epsilon` is added to them in logarithms, once they are clipped by it."""
    output = td.convert_to_tensor(output)
    target = td.cast(td.convert_to_tensor(target), output.dtype)
    if from_logits:
        return td.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=output)
    p = td.clip_by_value(output, epsilon(), 1.0 - epsilon())
    losses = target * td.math.log(p + epsilon()) + (1 - target) * td.math.log(1 - p + epsilon())
    return -losses


def binary_focal_crossentropy(
    target: Any, output: Any, apply_class_balancing: bool = False, alpha: float = 0.25,
    gamma: float = 2.0, from_logits: bool = False,
) -> Any:  # fmt: skip
    """The cross-entropy of binary labels, an element each, where sure ones count less.

    Args:
        apply_class_balancing: weigh ones by alpha and zeros by 1 - alpha.
        gamma: how much less.
    """
    target, output = td.convert_to_tensor(target), td.convert_to_tensor(output)
    likely = td.sigmoid(output) if from_logits else output
    right = target * likely + (1 - target) * (1 - likely)
    loss = (1.0 - right) ** gamma * binary_crossentropy(target, output, from_logits)
    weight = target * alpha + (1 - target) * (1 - alpha) if apply_class_balancing else 1.0
    return weight * loss


def categorical_focal_crossentropy(
    target: Any, output: Any, alpha: float = 0.25, gamma: float = 2.0, from_logits: bool = False,
    axis: int = -1,
) -> Any:  # fmt: skip
    """The cross-entropy against distributions, times alpha, where sure ones count less."""
    target, output = td.convert_to_tensor(target), td.convert_to_tensor(output)
    likely = td.nn.softmax(output, axis) if from_logits else output
    likely = likely / td.reduce_sum(likely, axis, keepdims=True)
    likely = td.clip_by_value(likely, epsilon(), 1.0 - epsilon())
    loss = (1.0 - likely) ** gamma * alpha * -target * td.math.log(likely)
    return td.reduce_sum(loss, axis)


def rnn(
    step_function: Callable[[Any, Any], Any], inputs: Any, initial_states: Any,
    go_backwards: bool = False, mask: Any = None, constants: Sequence[Any] | None = None,
    unroll: bool = False, input_length: Any = None, time_major: bool = False,
    zero_output_for_mask: bool = False, return_all_outputs: bool = True,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """A function along the time axis of tensors (batch, time, ...).

    Args:
        step_function: takes a step of the inputs and the states, with the constants behind them;
            gives the output and the new states.
        inputs: a tensor, or a nest of them.
        initial_states: before the first step.
        go_backwards: start at the last step.
        mask: (batch, time): False where a step is left out, which keeps the states and repeats the
            output.
        constants: given to each step.
        unroll: write the steps out instead of looping.
        input_length: the number of steps of each sequence, instead of a mask.
        time_major: the time comes before the batch, also in the results.
        zero_output_for_mask: outputs of steps left out are 0.
        return_all_outputs: of all steps, else (batch, 1, ...) of the last one.

    Returns:
        The last output, the outputs (batch, time, ...), and the last states.
    """
    states = tuple(initial_states)
    inputs = td.nest.map_structure(lambda x: x if time_major else _swapped(x), inputs)
    leaf = td.nest.flatten(inputs)[0]
    count = leaf.shape[0] if leaf.shape[0] is not None else td.shape(leaf)[0]
    if mask is None and isinstance(input_length, td.Tensor | np.ndarray | list | tuple):
        mask, time_first = _steps_of(input_length, count), True
    else:
        time_first = time_major
    if mask is not None:
        mask = td.cast(mask, "bool")
        mask = mask if len(mask.shape) == 2 else mask[..., 0]
        mask = mask if time_first else _swapped(mask)

    def step(t: Any, before: Any, states: Any) -> tuple[Any, Any]:
        at = count - 1 - t if go_backwards else t
        now = td.nest.map_structure(lambda x: x[at], inputs)
        output, after = step_function(now, (*states, *(constants or ())))
        after = tuple(after)
        if mask is None:
            return output, after
        before = td.zeros_like(output) if before is None else before
        kept = td.nest.map_structure(lambda new, old: _where(mask[at], new, old), after, states)
        return _where(mask[at], output, before), kept

    first, states = step(0, None, states)
    last, outputs, states = _walked(step, count, first, states, unroll, return_all_outputs)
    if mask is not None and zero_output_for_mask:
        ordered = td.reverse(mask, [0]) if go_backwards else mask
        last = _where(ordered[-1], last, td.zeros_like(last))
        shown = ordered if return_all_outputs else ordered[-1:]
        outputs = td.where(_spread(shown, outputs), outputs, td.zeros_like(outputs))
    return last, outputs if time_major else _swapped(outputs), list(states)


def _walked(
    step: Callable[..., Any], count: Any, first: Any, states: Any, unroll: bool, all_outputs: bool
) -> tuple[Any, Any, Any]:
    """The last output, the outputs and the last states, after the first step was made."""
    if unroll:
        if not isinstance(count, int):
            raise ValueError("Unrolling requires a fixed number of timesteps.")
        found = [first]
        for t in range(1, count):
            output, states = step(t, found[-1], states)
            found.append(output)
        return found[-1], td.stack(found if all_outputs else found[-1:]), states
    written = td.TensorArray(first.dtype, size=count, element_shape=first.shape)
    written = written.write(0, first) if all_outputs else written

    def body(t: Any, output: Any, flat: Any, written: Any) -> Any:
        output, after = step(t, output, td.nest.pack_sequence_as(states, list(flat)))
        written = written.write(t, output) if all_outputs else written
        return t + 1, output, tuple(td.nest.flatten(after)), written

    start = (td.constant(1), first, tuple(td.nest.flatten(states)), written)
    _, last, flat, written = td.while_loop(lambda t, *_: t < count, body, start)
    outputs = written.stack() if all_outputs else last[None]
    return last, outputs, td.nest.pack_sequence_as(states, list(flat))


def _swapped(x: Any) -> Any:
    """The time before the batch, or back."""
    x = td.convert_to_tensor(x)
    return td.transpose(x, [1, 0, *range(2, len(x.shape))])


def _spread(mask: Any, x: Any) -> Any:
    """The mask with axes of 1 for those of x that it does not have."""
    for _ in range(len(x.shape) - len(mask.shape)):
        mask = mask[..., None]
    return mask


def _where(mask: Any, new: Any, old: Any) -> Any:
    return td.where(_spread(mask, new), new, old)


def _steps_of(lengths: Any, count: Any) -> Any:
    """(time, batch): whether a sequence has the step."""
    return td.range(count)[:, None] < td.cast(lengths, "int32")[None]
