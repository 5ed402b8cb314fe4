"""``td.compat.v1.layers``: layers whose variables are made by `get_variable`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import treadle as td
from treadle.compat.v1 import functions, initializers, nn, scopes
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import in_graphs, recorded, writes_into
from treadle.compat.v1.shapes import TensorShape, plain
from treadle.compat.v1.values import element
from treadle.compat.v1.variables import Variable, writing
from treadle.names import missing_in


class InputSpec:
    """What a layer takes.

    Attributes:
        ndim, min_ndim: the rank. axes: sizes by axes.
    """

    def __init__(self, dtype: Any = None, shape: Any = None, ndim: Any = None, max_ndim: Any = None,
                 min_ndim: Any = None, axes: Any = None) -> None:  # fmt: skip
        self.dtype, self.shape, self.ndim, self.max_ndim = dtype, shape, ndim, max_ndim
        self.min_ndim, self.axes = min_ndim, axes or {}


class Layer:
    """``layer(inputs)``: its variables are made by the first call, in a scope of its name.

    Classes have `build`, which makes variables by `add_weight`, and `call`.

    Args:
        trainable: whether the variables are trained.
        name: of the scope, made unique where it is the default one.
        dtype: of the variables; that of the inputs where omitted.
    """

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: Any = None,
                 activity_regularizer: Any = None, **kwargs: Any) -> None:  # fmt: skip
        self._reuse, self._scope = kwargs.pop("_reuse", None), kwargs.pop("_scope", None)
        if kwargs:
            raise TypeError(f"Keyword argument not understood: {next(iter(kwargs))}")
        self.trainable, self.built = trainable, False
        self._given, self._dtype = name, dtype
        self.activity_regularizer = activity_regularizer
        self.input_spec: InputSpec | None = None
        self._weights: list[Any] = []
        self._updates: list[Any] = []
        self._losses: list[Any] = []
        self._opened: Any = None

    def build(self, input_shape: Any) -> None:
        """Make the variables for inputs of a shape."""
        self.built = True

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """The outputs."""
        return inputs

    @property
    def _base(self) -> str:
        kind = type(self).__name__
        return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=.)([A-Z][a-z])", r"_\1\2", kind).lower()

    @property
    def name(self) -> str:
        if self._opened is not None:
            return str(self._opened.name.rpartition("/")[2])
        return self._given or self._base

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def scope_name(self) -> str:
        if self._opened is None:
            raise ValueError(f'No name available for layer scope because the layer "{self.name}" '
                             "has not been used yet.")
        return str(self._opened.name)

    def _open(self) -> Any:
        if self._opened is None:
            if self._scope is not None:
                block = scopes.variable_scope(self._scope, default_name=self._given or self._base)
            elif self._reuse and self._given:
                block = scopes.variable_scope(self._given, reuse=True)
            else:
                block = scopes.variable_scope(None, default_name=self._given or self._base)
            with block as opened:
                self._opened = opened
        return self._opened

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        scope = kwargs.pop("scope", None)
        if scope is not None and self._opened is None:
            self._scope = scope
        opened = self._open()
        reuse = self._reuse or (True if self.built else None)
        with scopes.variable_scope(opened, reuse=reuse, auxiliary_name_scope=False):
            graph = get_default_graph()
            with graph.name_scope(opened.original_name_scope or None):
                inputs = _tensors(inputs)
                if not self.built:
                    if self._dtype is None:
                        self._dtype = td.nest.flatten(inputs)[0].dtype
                    self._check(inputs)
                    shapes = [_shape_of(x) for x in td.nest.flatten(inputs)]
                    self.build(shapes[0] if not td.nest.is_nested(inputs) else shapes)
                    self.built = True
                outputs = self.call(inputs, *args, **kwargs)
                if self.activity_regularizer is not None:
                    self.add_loss(self.activity_regularizer(outputs))
        return outputs

    apply = __call__

    def _check(self, inputs: Any) -> None:
        spec = self.input_spec
        if spec is None or td.nest.is_nested(inputs):
            return
        rank = _shape_of(inputs).rank
        if rank is None:
            if spec.ndim is not None or spec.min_ndim is not None:
                raise ValueError(
                    f"The rank of the inputs of layer {self.name} is not known: give the "
                    "placeholder a shape, or call set_shape"
                )
            return
        wanted = spec.ndim or spec.min_ndim
        if (spec.ndim is not None and rank != spec.ndim) or (
            spec.min_ndim and rank < spec.min_ndim
        ):
            raise ValueError(
                f"Input 0 of layer {self.name} is incompatible with the layer: expected "
                f"{'' if spec.ndim else 'min_'}ndim={wanted}, found ndim={rank}."
            )

    def add_weight(self, name: str, shape: Any, dtype: Any = None, initializer: Any = None,
                   regularizer: Any = None, trainable: bool | None = None, constraint: Any = None,
                   **more: Any) -> Any:  # fmt: skip
        """A variable of the layer."""
        chosen = self.trainable if trainable is None else trainable and self.trainable
        made = scopes.get_variable(
            name, shape, td.as_dtype(dtype or self._dtype or td.float32), initializer, None,
            chosen, constraint=constraint,
        )  # fmt: skip
        if regularizer is not None and writes_into() is not None:
            with get_default_graph().name_scope(f"{made.op.name}/Regularizer/"):
                loss = regularizer(made.read_value())
            if loss is not None:
                self._losses.append(loss)
                if loss not in get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES):
                    get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
        if all(made is not w for w in self._weights):
            self._weights.append(made)
        return made

    add_variable = add_weight

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Losses that the graph collects."""
        for loss in losses if isinstance(losses, list | tuple) else [losses]:
            if loss is not None:
                self._losses.append(loss)
                get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Operations that the graph collects, to be run in each step."""
        for update in updates if isinstance(updates, list | tuple) else [updates]:
            self._updates.append(update)
            get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update)

    @property
    def variables(self) -> list[Any]:
        return list(self._weights)

    weights = variables

    @property
    def trainable_variables(self) -> list[Any]:
        return [w for w in self._weights if w.trainable]

    trainable_weights = trainable_variables

    @property
    def non_trainable_variables(self) -> list[Any]:
        return [w for w in self._weights if not w.trainable]

    non_trainable_weights = non_trainable_variables

    @property
    def losses(self) -> list[Any]:
        return list(self._losses)

    @property
    def updates(self) -> list[Any]:
        return list(self._updates)

    @property
    def graph(self) -> Any:
        return get_default_graph()


def _tensors(inputs: Any) -> Any:
    if isinstance(inputs, list | tuple) and any(functions.is_tensor(x) for x in inputs):
        return type(inputs)(_tensors(x) for x in inputs)
    return functions.convert_to_tensor(inputs)


def _shape_of(x: Any) -> TensorShape:
    found = element(x)
    return TensorShape((x if found is None else found).shape)


def _last(shape: Any, axis: int = -1) -> int:
    size = shape[axis].value if shape.rank is not None else None
    if size is None:
        raise ValueError(
            "The last dimension of the inputs to `Dense` should be defined. Found `None`."
        )
    return int(size)


class Dense(Layer):
    """``activation(inputs @ kernel + bias)``."""

    def __init__(self, units: int, activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = None, bias_initializer: Any = None,
                 kernel_regularizer: Any = None, bias_regularizer: Any = None,
                 activity_regularizer: Any = None, kernel_constraint: Any = None,
                 bias_constraint: Any = None, trainable: bool = True, name: str | None = None,
                 **kwargs: Any) -> None:  # fmt: skip
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units, self.activation, self.use_bias = int(units), activation, use_bias
        self.kernel_initializer, self.kernel_regularizer = kernel_initializer, kernel_regularizer
        self.bias_initializer, self.bias_regularizer = bias_initializer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        self.kernel = self.add_weight(
            "kernel", [_last(input_shape), self.units], initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer, constraint=self.kernel_constraint,
        )  # fmt: skip
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [self.units], initializer=self.bias_initializer or _ZEROS,
                regularizer=self.bias_regularizer, constraint=self.bias_constraint,
            )  # fmt: skip

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        rank = _shape_of(inputs).rank
        assert rank is not None
        if rank > 2:
            outputs = graph_function(td.tensordot)(inputs, self.kernel, [[rank - 1], [0]])
        else:
            outputs = functions.matmul(inputs, self.kernel)
        if self.bias is not None:
            outputs = graph_function(td.nn.bias_add)(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)


_ZEROS, _ONES = initializers.zeros_initializer(), initializers.ones_initializer()


def _numbers(value: Any, count: int) -> list[int]:
    return [value] * count if isinstance(value, int) else list(value)


class _Convolution(Layer):
    """What convolutions of any rank have."""

    _rank: int

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str = "channels_last", dilation_rate: Any = 1, activation: Any = None,
                 use_bias: bool = True, kernel_initializer: Any = None,
                 bias_initializer: Any = None,
                 kernel_regularizer: Any = None, bias_regularizer: Any = None,
                 activity_regularizer: Any = None, kernel_constraint: Any = None,
                 bias_constraint: Any = None, trainable: bool = True, name: str | None = None,
                 **kwargs: Any) -> None:  # fmt: skip
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        rank = self._rank
        self.filters, self.kernel_size = filters, _numbers(kernel_size, rank)
        self.strides, self.dilation_rate = _numbers(strides, rank), _numbers(dilation_rate, rank)
        self.padding, self.data_format = padding.upper(), data_format
        self.activation, self.use_bias = activation, use_bias
        self.kernel_initializer, self.kernel_regularizer = kernel_initializer, kernel_regularizer
        self.bias_initializer, self.bias_regularizer = bias_initializer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(ndim=rank + 2)

    def _shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, channels, self.filters]

    def _outputs(self) -> int:
        return self.filters

    def build(self, input_shape: Any) -> None:
        channels = _last(input_shape, 1 if self.data_format == "channels_first" else -1)
        self.kernel = self.add_weight(
            "kernel", self._shape(channels), initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer, constraint=self.kernel_constraint,
        )  # fmt: skip
        self._add_bias()

    def _add_bias(self) -> None:
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [self._outputs()], initializer=self.bias_initializer or _ZEROS,
                regularizer=self.bias_regularizer, constraint=self.bias_constraint,
            )  # fmt: skip

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        x = _channels_last(inputs) if self.data_format == "channels_first" else inputs
        outputs = self._convolved(x)
        if self.bias is not None:
            outputs = graph_function(td.nn.bias_add)(outputs, self.bias)
        if self.activation is not None:
            outputs = self.activation(outputs)
        return _channels_first(outputs) if self.data_format == "channels_first" else outputs

    def _convolved(self, x: Any) -> Any:
        call = graph_function(td.nn.convolution, f"Conv{self._rank}D")
        return call(x, self.kernel, self.strides, self.padding, None, self.dilation_rate)


def _channels_last(x: Any) -> Any:
    rank = _shape_of(x).rank
    assert rank is not None
    return graph_function(td.transpose)(x, [0, *range(2, rank), 1])


def _channels_first(x: Any) -> Any:
    rank = _shape_of(x).rank
    assert rank is not None
    return graph_function(td.transpose)(x, [0, rank - 1, *range(1, rank - 1)])


class Conv1D(_Convolution):
    """A convolution along one axis."""

    _rank = 1


class Conv2D(_Convolution):
    """A convolution of images."""

    _rank = 2

    @property
    def _base(self) -> str:
        return "conv2d"


class Conv3D(_Convolution):
    """A convolution of volumes."""

    _rank = 3


class Conv2DTranspose(_Convolution):
    """The gradient of a convolution of images."""

    _rank = 2

    def _shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, self.filters, channels]

    def _convolved(self, x: Any) -> Any:
        return recorded(_transposed, "conv2d_transpose", "Conv2DBackpropInput")(
            x, self.kernel, self.strides, self.padding, self.filters
        )


def _transposed(x: Any, kernel: Any, strides: list[int], padding: str, filters: int) -> Any:
    kernel = td.convert_to_tensor(kernel)
    shape = td.unstack(td.shape(x))
    static = x.shape.as_list()
    sizes = []
    for axis in (0, 1):
        size, window, step = static[axis + 1], int(kernel.shape[axis]), strides[axis]
        size = shape[axis + 1] if size is None else size
        sizes.append(size * step + (max(window - step, 0) if padding == "VALID" else 0))
    batch = shape[0] if static[0] is None else static[0]
    return td.nn.conv2d_transpose(x, kernel, [batch, *sizes, filters], strides, padding)


class SeparableConv2D(_Convolution):
    """A convolution of each channel, and one of all channels of a pixel."""

    _rank = 2

    def __init__(self, filters: int, kernel_size: Any, *args: Any, depth_multiplier: int = 1,
                 depthwise_initializer: Any = None, pointwise_initializer: Any = None,
                 depthwise_regularizer: Any = None, pointwise_regularizer: Any = None,
                 **kwargs: Any) -> None:  # fmt: skip
        super().__init__(filters, kernel_size, *args, **kwargs)
        self.depth_multiplier = depth_multiplier
        self._depthwise = depthwise_initializer, depthwise_regularizer
        self._pointwise = pointwise_initializer, pointwise_regularizer

    def build(self, input_shape: Any) -> None:
        channels = _last(input_shape, 1 if self.data_format == "channels_first" else -1)
        many = channels * self.depth_multiplier
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel", [*self.kernel_size, channels, self.depth_multiplier],
            initializer=self._depthwise[0], regularizer=self._depthwise[1],
        )  # fmt: skip
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel", [1, 1, many, self.filters], initializer=self._pointwise[0],
            regularizer=self._pointwise[1],
        )  # fmt: skip
        self._add_bias()

    def _convolved(self, x: Any) -> Any:
        return nn.separable_conv2d(
            x, self.depthwise_kernel, self.pointwise_kernel, [1, *self.strides, 1], self.padding,
            dilations=self.dilation_rate,
        )  # fmt: skip


class _Pooling(Layer):
    """What poolings have."""

    _rank: int
    _kind: str

    def __init__(self, pool_size: Any, strides: Any, padding: str = "valid",
                 data_format: str = "channels_last", name: str | None = None,
                 **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size, self.strides = (_numbers(v, self._rank) for v in (pool_size, strides))
        self.padding, self.data_format = padding.upper(), data_format
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        first = self.data_format == "channels_first"
        x = _channels_last(inputs) if first else inputs
        function = td.nn.max_pool if self._kind == "MAX" else td.nn.avg_pool
        name = {"MAX": "MaxPool", "AVG": "AvgPool"}[self._kind]
        outputs = graph_function(function, name)(x, self.pool_size, self.strides, self.padding)
        return _channels_first(outputs) if first else outputs


def _pooling(rank: int, kind: str) -> Any:
    label = f"{'Max' if kind == 'MAX' else 'Average'}Pooling{rank}D"
    doc = f"The {'greatest' if kind == 'MAX' else 'mean'} elements of windows."
    return type(label, (_Pooling,), {"_rank": rank, "_kind": kind, "__doc__": doc})


MaxPooling1D, MaxPooling2D, MaxPooling3D = (_pooling(rank, "MAX") for rank in (1, 2, 3))
AveragePooling1D, AveragePooling2D, AveragePooling3D = (_pooling(rank, "AVG") for rank in (1, 2, 3))


class Dropout(Layer):
    """Sets elements to zero at random where ``training`` is true."""

    def __init__(self, rate: Any = 0.5, noise_shape: Any = None, seed: int | None = None,
                 name: str | None = None, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = False, **kwargs: Any) -> Any:
        if isinstance(training, bool | int):
            return self._dropped(inputs) if training else functions.convert_to_tensor(inputs)
        return functions.cond(training, lambda: self._dropped(inputs),
                              lambda: graph_function(td.identity)(inputs))  # fmt: skip

    def _dropped(self, inputs: Any) -> Any:
        call = graph_function(td.nn.dropout)
        return call(inputs, self.rate, self.noise_shape, self.seed)


class Flatten(Layer):
    """All axes but the first as one: of ``channels_first`` in the order of ``channels_last``."""

    def __init__(self, data_format: Any = None, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.data_format = data_format or "channels_last"
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        rank = _shape_of(inputs).rank
        if self.data_format == "channels_first" and rank is not None and rank > 1:
            inputs = _channels_last(inputs)
        sizes = plain(_shape_of(inputs))[1:]
        known = -1
        if None not in sizes:
            known = 1
            for size in sizes:
                known *= size
        shape = plain(_shape_of(inputs))[0]
        whole = [-1 if shape is None else shape, known]
        if whole == [-1, -1]:
            whole = [graph_function(td.shape)(inputs)[0], -1]
        return graph_function(td.reshape)(inputs, whole)


class BatchNormalization(Layer):
    """Normalizes over all axes but one: by the batch where ``training``, else by means that it
    keeps. The operations that change these are in the collection UPDATE_OPS.

    Args:
        fused: whether the variance that is kept is the unbiased one, as TensorFlow's fused kernel
            has it; None: of images and volumes.
    """

    # The axes of channels with which the fused kernel is taken, by the rank of inputs.
    _fused_axes: ClassVar[dict[int, tuple[int, ...]]] = {4: (1, 3), 5: (1, 4)}

    def __init__(self, axis: Any = -1, momentum: Any = 0.99, epsilon: float = 1e-3,
                 center: bool = True, scale: bool = True, beta_initializer: Any = None,
                 gamma_initializer: Any = None, moving_mean_initializer: Any = None,
                 moving_variance_initializer: Any = None, beta_regularizer: Any = None,
                 gamma_regularizer: Any = None, beta_constraint: Any = None,
                 gamma_constraint: Any = None, renorm: bool = False, renorm_clipping: Any = None,
                 renorm_momentum: float = 0.99, fused: Any = None, trainable: bool = True,
                 virtual_batch_size: Any = None, adjustment: Any = None, name: str | None = None,
                 **kwargs: Any) -> None:  # fmt: skip
        super().__init__(trainable, name, **kwargs)
        if renorm or virtual_batch_size or adjustment:
            raise NotImplementedError("renorm, virtual_batch_size and adjustment are not provided")
        self.axis, self.momentum, self.epsilon = axis, momentum, epsilon
        self.center, self.scale, self.fused = center, scale, fused
        self._made = {
            "gamma": (gamma_initializer or _ONES, gamma_regularizer, gamma_constraint),
            "beta": (beta_initializer or _ZEROS, beta_regularizer, beta_constraint),
            "moving_mean": (moving_mean_initializer or _ZEROS, None, None),
            "moving_variance": (moving_variance_initializer or _ONES, None, None),
        }
        self.input_spec = InputSpec(min_ndim=2)

    def _variable(self, name: str, size: int, trainable: bool = True) -> Any:
        initializer, regularizer, constraint = self._made[name]
        return self.add_weight(name, [size], None, initializer, regularizer, trainable, constraint)

    def build(self, input_shape: Any) -> None:
        axis = self.axis[0] if isinstance(self.axis, list | tuple) else self.axis
        self._axis = axis % input_shape.rank
        if self.fused is None:
            self.fused = self._axis in self._fused_axes.get(input_shape.rank, ())
        size = _last(input_shape, self._axis)
        self.gamma = self._variable("gamma", size) if self.scale else None
        self.beta = self._variable("beta", size) if self.center else None
        self.moving_mean = self._variable("moving_mean", size, False)
        self.moving_variance = self._variable("moving_variance", size, False)

    def call(self, inputs: Any, training: Any = False, **kwargs: Any) -> Any:
        given = [self.gamma, self.beta, self.moving_mean, self.moving_variance]
        settings = (self._axis, self.epsilon)
        training = functions.of_rank_0(training)
        if isinstance(training, bool | int) and not training:
            return recorded(_normalized, "batchnorm", "AddV2")(inputs, *given, *settings)
        found = recorded(_by_batch, "batchnorm", "AddV2")(
            inputs, *given, training, *settings, self.fused
        )
        outputs, mean, variance = found
        for kept, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
            update = _move(kept, new, self.momentum)
            if isinstance(kept, Variable):
                self.add_update(update)
        return outputs


def _normalized(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, axis: int,
                epsilon: float) -> Any:  # fmt: skip
    rank = len(x.shape)
    if axis != rank - 1:
        shape = [1] * rank
        shape[axis] = -1
        mean, variance, gamma, beta = (
            None if v is None else td.reshape(td.convert_to_tensor(v), shape)
            for v in (mean, variance, gamma, beta)
        )
    return td.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)


def _by_batch(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, training: Any, axis: int,
              epsilon: float, unbiased: bool) -> list[Any]:  # fmt: skip
    axes = [a for a in range(len(x.shape)) if a != axis]
    batch_mean, batch_variance = td.nn.moments(x, axes)
    mean, variance = td.convert_to_tensor(mean), td.convert_to_tensor(variance)
    kept = batch_variance
    if unbiased and x.dtype is not td.float64:  # which the fused kernel does not take
        count = td.cast(td.size(x) // td.shape(x)[axis], kept.dtype)
        kept = kept * count / td.maximum(count - 1.0, 1.0)
    if not isinstance(training, bool | int):
        training = td.cast(training, td.bool)
        batch_mean, batch_variance, kept = (
            td.where(training, new, old)
            for new, old in ((batch_mean, mean), (batch_variance, variance), (kept, variance))
        )
    outputs = _normalized(x, gamma, beta, batch_mean, batch_variance, axis, epsilon)
    return [outputs, batch_mean, kept]


def _moved(variable: Any, value: Any, momentum: Any) -> Any:
    variable.assign_sub((variable - value) * (1.0 - momentum))
    return variable.read_value()


_move = writing(_moved, "AssignMovingAvg")


def _function(kind: Any, *, calls: Sequence[str] = ()) -> Callable[..., Any]:
    """The function of a layer: a new one is made and called."""

    @functools.wraps(kind.__init__)
    def layer(inputs: Any, *args: Any, **kwargs: Any) -> Any:
        reuse, given = kwargs.pop("reuse", None), kwargs.get("name")
        more = {k: kwargs.pop(k) for k in calls if k in kwargs}
        if reuse and given is None:
            raise ValueError("`reuse=True` cannot be used without a name")
        return kind(*args, _reuse=reuse, _scope=given, **kwargs)(inputs, **more)

    layer.__doc__ = f"A `{kind.__name__}` of the inputs."
    return layer


dense, conv1d, conv2d, conv3d = map(_function, (Dense, Conv1D, Conv2D, Conv3D))
conv2d_transpose, separable_conv2d = map(_function, (Conv2DTranspose, SeparableConv2D))
max_pooling1d, max_pooling2d, max_pooling3d = map(
    _function, (MaxPooling1D, MaxPooling2D, MaxPooling3D)
)
average_pooling1d, average_pooling2d, average_pooling3d = map(
    _function, (AveragePooling1D, AveragePooling2D, AveragePooling3D)
)
flatten = _function(Flatten)
dropout = _function(Dropout, calls=("training",))
batch_normalization = _function(BatchNormalization, calls=("training",))
Convolution2D, Convolution1D = Conv2D, Conv1D
MaxPool2D, AvgPool2D = MaxPooling2D, AveragePooling2D

in_graphs(
    _by_batch,
    _normalized,
    _transposed,
)

__getattr__ = missing_in(__name__)
