"""Convolutions, their gradients, and pooling."""

import numpy as np

from benchmarks.workload import Workload


class Convolution(Workload):
    """A convolution of NHWC images with "SAME" padding, or one of its gradients.

    `wanted`: "forward", "input gradient" or "filter gradient", the latter two for a gradient of
    ones times the output, as a squared loss gives.
    """

    tolerance = 1e-4
    without = ("treadle-eager", "tf-xla", "torch-compile")

    def data(self):
        random = np.random.default_rng(0)
        images, side, channels, filters, size = self.shape
        x = random.standard_normal((images, side, side, channels)).astype(np.float32)
        w = random.standard_normal((size, size, channels, filters)).astype(np.float32)
        return x, w / np.float32(size * np.sqrt(channels))

    def tf2(self, tf, function):
        def convolution(x, w):
            return tf.nn.conv2d(x, w, self.stride, "SAME")

        def gradient(x, w):
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                loss = tf.reduce_sum(convolution(x, w) ** 2)
            return tape.gradient(loss, x if self.wanted == "input gradient" else w)

        chosen = convolution if self.wanted == "forward" else gradient
        return function(chosen), *map(tf.constant, self.data())

    def jax(self, jax):
        def convolution(x, w):
            strides, dims = (self.stride, self.stride), ("NHWC", "HWIO", "NHWC")
            return jax.lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=dims)

        def loss(x, w):
            return (convolution(x, w) ** 2).sum()

        which = 0 if self.wanted == "input gradient" else 1
        f = jax.jit(convolution if self.wanted == "forward" else jax.grad(loss, which))
        data = [jax.numpy.asarray(x) for x in self.data()]
        return lambda: f(*data).block_until_ready()

    def torch(self, torch, compile):
        x, w = map(torch.from_numpy, self.data())
        layout = {"memory_format": torch.channels_last}
        x = x.permute(0, 3, 1, 2).contiguous(**layout)
        w = w.permute(3, 2, 0, 1).contiguous(**layout)
        (before, after), functional = self.padding(), torch.nn.functional

        def convolution(x, w):
            if before == after:
                return functional.conv2d(x, w, stride=self.stride, padding=before)
            padded = functional.pad(x, (before, after, before, after))
            return functional.conv2d(padded, w, stride=self.stride)

        if self.wanted == "forward":
            return lambda: convolution(x, w).permute(0, 2, 3, 1)
        target, back = (x, (0, 2, 3, 1)) if self.wanted == "input gradient" else (w, (2, 3, 1, 0))
        target.requires_grad_()

        def gradient():
            loss = (convolution(x, w) ** 2).sum()
            return torch.autograd.grad(loss, target)[0].permute(*back)

        return gradient

    def padding(self):
        """TensorFlow's "SAME": the odd row of padding goes after."""
        _, side, _, _, size = self.shape
        total = max((-(-side // self.stride) - 1) * self.stride + size - side, 0)
        return total // 2, total - total // 2


class Depthwise(Convolution):
    """Every channel with filters of its own."""

    def data(self):
        random = np.random.default_rng(0)
        images, side, channels, outputs, size = self.shape
        x = random.standard_normal((images, side, side, channels)).astype(np.float32)
        filters = (size, size, channels, outputs // channels)
        w = random.standard_normal(filters).astype(np.float32)
        return x, w / np.float32(size)

    def tf2(self, tf, function):
        def convolution(x, w):
            return tf.nn.depthwise_conv2d(x, w, [1, self.stride, self.stride, 1], "SAME")

        def gradient(x, w):
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                loss = tf.reduce_sum(convolution(x, w) ** 2)
            return tape.gradient(loss, x if self.wanted == "input gradient" else w)

        chosen = convolution if self.wanted == "forward" else gradient
        return function(chosen), *map(tf.constant, self.data())

    def jax(self, jax):
        dims = ("NHWC", "HWIO", "NHWC")

        def convolution(x, w):
            return jax.lax.conv_general_dilated(
                x, w.reshape(*w.shape[:2], 1, -1), (self.stride, self.stride), "SAME",
                dimension_numbers=dims, feature_group_count=x.shape[3],
            )  # fmt: skip

        def loss(x, w):
            return (convolution(x, w) ** 2).sum()

        which = 0 if self.wanted == "input gradient" else 1
        f = jax.jit(convolution if self.wanted == "forward" else jax.grad(loss, which))
        data = [jax.numpy.asarray(x) for x in self.data()]
        return lambda: f(*data).block_until_ready()

    def torch(self, torch, compile):
        x, w = map(torch.from_numpy, self.data())
        layout = {"memory_format": torch.channels_last}
        x = x.permute(0, 3, 1, 2).contiguous(**layout)
        _, _, groups, _, size = self.shape
        w = w.permute(2, 3, 0, 1).reshape(-1, 1, size, size).contiguous()
        (before, after), functional = self.padding(), torch.nn.functional

        def convolution(x, w):
            if before == after:
                return functional.conv2d(x, w, stride=self.stride, padding=before, groups=groups)
            padded = functional.pad(x, (before, after, before, after))
            return functional.conv2d(padded, w, stride=self.stride, groups=groups)

        if self.wanted == "forward":
            return lambda: convolution(x, w).permute(0, 2, 3, 1)
        target = x if self.wanted == "input gradient" else w
        target.requires_grad_()

        def gradient():
            loss = (convolution(x, w) ** 2).sum()
            found = torch.autograd.grad(loss, target)[0]
            if target is x:
                return found.permute(0, 2, 3, 1)
            return found.reshape(groups, -1, size, size).permute(2, 3, 0, 1)

        return gradient


class BiasReluPool(Workload):
    """max_pool(relu(x + bias)), windows of 2x2."""

    shape = (50, 28, 28, 32)

    def data(self):
        random = np.random.default_rng(0)
        shapes = [self.shape, self.shape[-1:]]
        return [random.standard_normal(shape).astype(np.float32) for shape in shapes]

    def numpy(self, np):
        n, h, w, c = self.shape

        def pool(x, bias):
            return np.maximum(x + bias, 0).reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))

        return pool, *self.data()

    def tf2(self, tf, function):
        def pool(x, bias):
            return tf.nn.max_pool2d(tf.nn.relu(x + bias), 2, 2, "VALID")

        return function(pool), *map(tf.constant, self.data())

    def jax(self, jax):
        n, h, w, c = self.shape
        maximum = jax.numpy.maximum

        def pool(x, bias):
            return maximum(x + bias, 0).reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))

        f, data = jax.jit(pool), [jax.numpy.asarray(x) for x in self.data()]
        return lambda: f(*data).block_until_ready()

    def torch(self, torch, compile):
        functional = torch.nn.functional

        def pool(x, bias):
            rectified = functional.relu(x + bias).permute(0, 3, 1, 2)
            return functional.max_pool2d(rectified, 2).permute(0, 2, 3, 1)

        return compile(pool), *map(torch.from_numpy, self.data())


# (images, side, channels, filters, filter size), stride
SHAPES = [
    ((50, 28, 1, 32, 5), 1),
    ((50, 14, 32, 64, 5), 1),
    ((32, 28, 64, 64, 3), 1),
    ((32, 28, 64, 128, 3), 2),
    ((32, 28, 128, 128, 1), 1),
]
# The number of filters is that of the channels times the multiplier.
DEPTHWISE = [((32, 28, 128, 128, 3), 1), ((32, 28, 128, 128, 3), 2), ((32, 28, 64, 128, 3), 1)]
WANTED = ["forward", "input gradient", "filter gradient"]


def title(shape, stride, wanted):
    images, side, channels, filters, size = shape
    strided = f" stride {stride}" if stride > 1 else ""
    return f"conv {size}x{size} {images}x{side}x{side}x{channels} to {filters}{strided}, {wanted}"


def depthwise_title(shape, stride, wanted):
    images, side, channels, filters, size = shape
    strided = f" stride {stride}" if stride > 1 else ""
    outputs = f" to {filters}" if filters > channels else ""
    return f"depthwise {size}x{size} {images}x{side}x{side}x{channels}{outputs}{strided}, {wanted}"


WORKLOADS = [
    BiasReluPool("bias + relu + max pool 50x28x28x32"),
    *(
        Depthwise(depthwise_title(shape, stride, wanted), shape=shape, stride=stride, wanted=wanted)
        for shape, stride in DEPTHWISE
        for wanted in WANTED
    ),
    *(
        Convolution(title(shape, stride, wanted), shape=shape, stride=stride, wanted=wanted)
        for shape, stride in SHAPES
        for wanted in WANTED
    ),
]
