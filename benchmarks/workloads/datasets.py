"""Input pipelines: an epoch over arrays of MNIST's size, and small elements."""

import numpy as np

from benchmarks.workload import Workload

BATCH = 128


class Epoch(Workload):
    """Batches of images and labels; the result is the sum of the labels."""

    kinds = ("CPU",)
    without = ("treadle-eager", "tf-xla", "torch-compile")  # the same work as without compiling
    shuffle = False

    def data(self):
        random = np.random.default_rng(1)
        return random.random((self.rows, 784), np.float32), random.integers(0, 10, self.rows)

    def tf2(self, tf, function):
        rows = tf.data.Dataset.from_tensor_slices(self.data())
        batches = (rows.shuffle(self.rows) if self.shuffle else rows).batch(BATCH)

        def epoch():
            return sum(int(labels.numpy().sum()) for _, labels in batches)

        return epoch

    def torch(self, torch, compile):
        from torch.utils.data import DataLoader, TensorDataset

        rows = TensorDataset(*map(torch.from_numpy, self.data()))
        batches = DataLoader(rows, BATCH, shuffle=self.shuffle)

        def epoch():
            return sum(int(labels.numpy().sum()) for _, labels in batches)

        return epoch


class LoopInFunction(Workload):
    """The loop over shuffled batches inside a compiled function."""

    kinds = ("CPU",)
    tolerance = 1e-4
    without = ("treadle-eager", "tf-xla")

    def tf2(self, tf, function):
        values = np.random.default_rng(1).random((self.rows, 784), np.float32)
        batches = tf.data.Dataset.from_tensor_slices(values).shuffle(self.rows).batch(BATCH)

        def total(dataset):
            result = tf.constant(0.0)
            for images in dataset:
                result += tf.reduce_mean(images)
            return result

        return function(total), batches


class Elements(Workload):
    """map and filter of single numbers."""

    kinds = ("CPU",)
    without = ("treadle-eager", "tf-xla")

    def tf2(self, tf, function):
        numbers = tf.data.Dataset.range(self.count).map(double).filter(divisible_by_three)

        def run():
            return sum(int(x) for x in numbers)

        return run


def double(x):
    return x * 2


def divisible_by_three(x):
    return x % 3 == 0


WORKLOADS = [
    Epoch("dataset batches", rows=60_000),
    Epoch("dataset shuffled batches", rows=60_000, shuffle=True),
    LoopInFunction("dataset loop in function", rows=60_000),
    Elements("dataset map filter", count=20_000),
]
