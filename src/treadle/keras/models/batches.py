"""From what fit, evaluate and predict are given to batches."""

from __future__ import annotations

import functools
import itertools
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import config
from treadle.keras.utils.datasets import PyDataset


def unpack(data: Any) -> tuple[Any, Any, Any]:
    """(x, y, sample_weight) from what a batch holds; missing parts are None."""
    parts = tuple(data) if isinstance(data, list | tuple) else (data,)
    if len(parts) > 3:
        raise ValueError(f"A batch is (x, y, sample_weight) or less of it, got {len(parts)} parts")
    return (*parts, *(None,) * (3 - len(parts)))


def pack(*parts: Any) -> Any:
    """A batch as a Dataset has it: (x, y, sample_weight) without what is missing. x alone is
    itself, unless it is a list or tuple of inputs."""
    given = tuple(p for p in parts if p is not None)
    alone = len(given) == 1 and not isinstance(given[0], list | tuple)
    return given[0] if alone else given


def with_class_weight(data: Any, table: Mapping[int, float]) -> Any:
    """A batch whose examples weigh what their class does, besides their own weights.

    Labels are class numbers, or rows whose largest element is the class; a class that `table` does
    not have weighs 1.
    """
    x, y, weight = unpack(data)
    if y is None:
        raise ValueError("class_weight needs labels: there is no y")
    if isinstance(y, Mapping | list | tuple):
        raise ValueError(
            "class_weight goes with models of one output: give sample_weight, with weights for "
            "each of the outputs"
        )
    labels = np.asarray(y)
    if labels.ndim > 1:
        labels = labels[..., 0] if labels.shape[-1] == 1 else labels.argmax(-1)
    classes = np.round(labels).astype(np.int64)
    found = np.vectorize(lambda c: table.get(int(c), 1.0), otypes=[np.float32])(classes)
    return x, y, found if weight is None else found * np.asarray(weight, np.float32)


def is_arrays(x: Any) -> bool:
    """Whether x holds all examples, as opposed to an iterable of batches (a list of tuples)."""
    if isinstance(x, list) and x and all(issubclass(kind, tuple) for kind in set(map(type, x))):
        return False
    leaves = [leaf for leaf in td.nest.flatten(x) if leaf is not None]
    kinds = np.ndarray | int | float
    return bool(leaves) and all(isinstance(leaf, kinds) or td.is_tensor(leaf) for leaf in leaves)


def _has_composites(parts: Any) -> bool:
    """Whether a ragged or sparse tensor is among the leaves, which is no array."""
    plain = td.Tensor | td.Variable
    return any(td.is_tensor(x) and not isinstance(x, plain) for x in td.nest.flatten(parts))


class Arrays:
    """Batches of arrays that share their first axis.

    Args:
        parts: (x,), (x, y) or (x, y, sample_weight), each a nested structure.
        batch_size: examples a batch; the last may be smaller.
        shuffle: whether each pass takes the examples in a new order.
    """

    def __init__(self, parts: tuple[Any, ...], batch_size: int, shuffle: bool) -> None:
        self.parts = tuple(td.nest.map_structure(_as_array, _listless(p)) for p in parts)
        sizes = {len(leaf) for leaf in td.nest.flatten(self.parts) if leaf is not None}
        if len(sizes) != 1:
            raise ValueError(
                f"The arrays must have as many examples as each other, got {sorted(sizes)}"
            )
        self.size = sizes.pop()
        self.batch_size, self.shuffle = batch_size, shuffle
        self._orders = Orders()

    def __len__(self) -> int:
        return -(-self.size // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        size, together = self.batch_size, self._together()
        arrays = td.nest.flatten(self.parts)
        if self.shuffle:
            order = self._orders.next(self.size)
            parts = [_no_rows if array is None else array.take for array in arrays]
            for start in range(0, self.size, size):
                rows = order[start : start + size]
                yield together([rows_of(rows, 0) for rows_of in parts])
        else:
            for start in range(0, self.size, size):
                rows = slice(start, start + size)
                yield together([_or_none(array, operator.getitem, rows) for array in arrays])

    def _together(self) -> Callable[[list[Any]], Any]:
        """The function that makes a batch of its arrays."""
        if len(self.parts) > 1 and all(isinstance(part, np.ndarray) for part in self.parts):
            return tuple
        return functools.partial(td.nest.pack_sequence_as, pack(*self.parts))

    def split(self, fraction: float) -> tuple[Arrays, Arrays]:
        """The first examples and, apart, the last `fraction` of them."""
        at = int(self.size * (1.0 - fraction))
        if not 0 < at < self.size:
            raise ValueError(f"validation_split={fraction} leaves no examples on one side")
        head, tail = (
            tuple(
                td.nest.map_structure(lambda a, s=side: _or_none(a, operator.getitem, s), p)
                for p in self.parts
            )
            for side in (slice(None, at), slice(at, None))
        )
        return Arrays(head, self.batch_size, self.shuffle), Arrays(tail, self.batch_size, False)


def _as_array(value: Any) -> Any:
    return _or_none(value, np.asarray)


def _no_rows(rows: Any, axis: int) -> None:
    """The rows of an optional input that is not given."""


def _or_none(value: Any, function: Callable[..., Any], *args: Any) -> Any:
    """What a function makes of a value; None, which stands for an optional input, stays."""
    return None if value is None else function(value, *args)


class Orders:
    """New orders of examples, one for each pass: the same for all workers."""

    def __init__(self) -> None:
        self._random: np.random.Generator | None = None

    def next(self, size: int) -> Any:
        """The numbers below `size`, shuffled. The first order depends on `td.random`'s seed, the
        others follow from it."""
        if self._random is None:
            seed = td.random.uniform((), maxval=1 << 62, dtype=td.int64)
            self._random = np.random.default_rng(int(seed))
        order = self._random.permutation(size)
        return td.distribute.get_strategy().extended.from_chief(order)


def _listless(part: Any) -> Any:
    """Plain nested lists of numbers as one array."""
    if isinstance(part, list) and part and not isinstance(part[0], np.ndarray | td.Tensor | dict):
        return np.asarray(part)
    return part


def _check_dataset(y: Any, sample_weight: Any) -> None:
    """Refuse what a Dataset has in its elements. A size of batches says nothing, as in Keras."""
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(
                f"{name} must not be given with a Dataset: its elements are batches of "
                "(x, y, sample_weight), made by dataset.batch(n)"
            )


class Items:
    """The batches of a `PyDataset`, which may have no end.

    Args:
        shuffle: whether each pass takes the batches in a new order, where their number is known.
    """

    def __init__(self, data: PyDataset, shuffle: bool) -> None:
        self.data, self.shuffle = data, shuffle
        self._orders = Orders()

    def count(self) -> int | None:
        """How many there are; None for a dataset without an end."""
        own = type(self.data).__len__ is not PyDataset.__len__
        return len(self.data) if own else self.data.num_batches

    def __iter__(self) -> Iterator[Any]:
        self.data.on_epoch_begin()
        count = self.count()
        if count is None:
            places: Iterable[int] = itertools.count()
        else:
            places = self._orders.next(count) if self.shuffle else range(count)
        for place in places:
            yield self.data[int(place)]
        self.data.on_epoch_end()


RAN_OUT = (
    "Your input ran out of data; interrupting training. Make sure that your dataset or generator "
    "can generate at least `steps_per_epoch * epochs` batches. You may need to use the "
    "`.repeat()` function when building your dataset."
)


class Continued:
    """Batches that go on where the last pass stopped, for epochs of a given number of steps. Where
    the data end within an epoch, that ends, too, and the next one begins with the first batch."""

    def __init__(self, data: Any, steps: int) -> None:
        self.data, self.steps = data, steps
        self.rest: Iterator[Any] | None = None
        self.left: int | None = None  # batches until the end, where their number is known

    def __iter__(self) -> Iterator[Any]:
        if self.rest is None:
            self.rest, self.left = iter(self.data), number_of(self.data)
        for _ in range(self.steps):
            batch = None if self.left == 0 else next(self.rest, None)
            if batch is None:
                self.rest = None
                warnings.warn(RAN_OUT, stacklevel=3)
                return
            if self.left is not None:
                self.left -= 1
            yield batch
        if self.left == 0:
            self.rest = None


def batches(x: Any, y: Any, sample_weight: Any, batch_size: int | None, shuffle: bool) -> Any:
    """An iterable of (x, y, sample_weight) tuples."""
    x, y, sample_weight = map(_as_arrays, (x, y, sample_weight))
    if isinstance(x, td.data.Dataset):
        _check_dataset(y, sample_weight)
        td.distribute.get_strategy().extended.agree_on_seeds(x)
        return x
    if isinstance(x, PyDataset):
        _check_dataset(y, sample_weight)
        return Items(x, shuffle)
    if is_arrays(x):
        parts = tuple(p for p in (x, y, sample_weight) if p is not None)
        if y is None and sample_weight is not None:
            raise ValueError("sample_weight needs y")
        if _has_composites(parts):
            given = td.nest.map_structure(_as_argument, pack(*map(_listless, parts)))
            data = td.data.Dataset.from_tensor_slices(given)
            data = data.shuffle(max(int(data.cardinality()), 1)) if shuffle else data
            return data.batch(batch_size or 32)
        return Arrays(parts, batch_size or 32, shuffle)
    if y is not None:
        raise ValueError("y is taken from x when x is an iterable of batches")
    return x


def _as_arrays(value: Any) -> Any:
    """A structure in which sparse matrices of SciPy are `td.SparseTensor`s and tables of pandas are
    arrays, a series an array of one column."""
    if hasattr(value, "tocoo"):
        return _of_scipy(value)
    if hasattr(value, "iloc"):
        array = value.to_numpy()
        return array if array.ndim > 1 else array[:, None]
    if isinstance(value, Mapping):
        return type(value)((key, _as_arrays(part)) for key, part in value.items())  # type: ignore[call-arg]
    if type(value) in (list, tuple) and any(map(_is_foreign, value)):
        return type(value)(map(_as_arrays, value))
    return value


def _is_foreign(value: Any) -> bool:
    return hasattr(value, "tocoo") or hasattr(value, "iloc")


def _of_scipy(matrix: Any) -> Any:
    """A sparse matrix of SciPy as a `td.SparseTensor`, its elements in the order of rows."""
    found = matrix.tocsr().tocoo()
    indices = np.stack([found.row, found.col], -1).astype(np.int64)
    values = found.data.astype(config.floatx()) if found.dtype == np.float64 else found.data
    return td.sparse.reorder(td.SparseTensor(indices, values, found.shape))


def number_of(data: Any) -> int | None:
    """How many batches there are, None where it is not known."""
    if isinstance(data, td.data.Dataset):
        count = int(data.cardinality())
        return count if count >= 0 else None
    if isinstance(data, Items):
        return data.count()
    return len(data) if hasattr(data, "__len__") else None


def first_of(data: Any, steps: int | None) -> Iterable[Any]:
    """The first batches; all of them for None."""
    return data if steps is None else itertools.islice(data, steps)


def as_tensors(batch: Any) -> Any:
    """A batch with its arrays as tensors; float64 examples take the dtype of layers."""
    return td.nest.map_structure(_as_tensor, batch)


def as_arguments(batch: Any) -> Any:
    """A batch as `as_tensors` gives it, but with arrays as they are, for compiled functions, which
    read them where they lie."""
    if type(batch) is tuple and all(map(_is_argument, batch)):
        return batch
    return td.nest.map_structure(_as_argument, batch)


def _is_argument(leaf: Any) -> bool:
    """Whether a compiled function takes a tensor or array as it is."""
    kind = type(leaf)
    return kind is td.Tensor or (kind is np.ndarray and leaf.dtype.char != "d")


def are_arguments(data: Any) -> bool:
    """Whether all batches are what `as_arguments` makes of them, which is known beforehand of
    datasets, arrays and lists."""
    if isinstance(data, Continued):
        return are_arguments(data.data)
    if isinstance(data, td.data.Dataset):
        spec = data.element_spec
        return type(spec) is tuple and all(type(part) is td.TensorSpec for part in spec)
    if isinstance(data, Arrays):
        return len(data.parts) > 1 and all(map(_is_argument, data.parts))
    if type(data) is not list or set(map(type, data)) != {tuple}:
        return False
    kinds = set(map(type, itertools.chain.from_iterable(data)))
    return kinds == {td.Tensor} or all(map(_is_argument, itertools.chain.from_iterable(data)))


def _as_tensor(leaf: Any) -> Any:
    found = _as_argument(leaf)
    return td.convert_to_tensor(found) if isinstance(found, np.ndarray) else found


def _as_argument(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return np.asarray(leaf, config.floatx()) if leaf.dtype == np.float64 else leaf
    if hasattr(leaf, "tocoo"):
        return _of_scipy(leaf)
    if isinstance(leaf, np.float64):
        leaf = np.asarray(leaf, config.floatx())
    if leaf is None or (td.is_tensor(leaf) and not isinstance(leaf, td.Tensor | td.Variable)):
        return leaf
    parts = td.nest.flatten(leaf, expand_composites=True)
    if len(parts) != 1 or parts[0] is not leaf:  # the values of replicas
        return td.nest.map_structure(_as_tensor, leaf, expand_composites=True)
    return td.convert_to_tensor(leaf)
