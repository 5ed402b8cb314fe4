"""``td.keras.random``: random numbers from seeds, the same as Keras's with TensorFlow."""

from __future__ import annotations

import random as _python_random
from typing import Any

import treadle as td
from treadle.iteration import global_seed, seedings
from treadle.keras import naming, replicas
from treadle.keras.config import floatx
from treadle.keras.promotion import standardize_dtype
from treadle.names import missing_in


class SeedGenerator:
    """Seeds that differ from call to call, for the functions of this module.

    Args:
        seed: where they begin; a random number when omitted.
        name: of the generator.

    Raises:
        ValueError: the seed is no int.
    """

    def __init__(self, seed: int | None = None, name: str | None = None, **kwargs: Any) -> None:
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments: {kwargs}")
        self.name = name or naming.unique_name("SeedGenerator")
        self._initial_seed = seed
        first = default_seed() if seed is None else seed
        if not isinstance(first, int):
            raise ValueError(f"Argument `seed` must be an integer. Received: seed={seed}")
        with td.init_scope():
            own = "seed_generator_state"
            owners = [*naming.scopes.owners, naming.Named(self.name), naming.Named(own)]
            path = naming.path_of(owners)
            self.state = td.Variable(td.constant([first, 0], td.int64), trainable=False, name=path)
            self.state.path, self.state.name = path, own

    def next(self, ordered: bool = True) -> td.Tensor:
        """The next seed, two int64 numbers.

        Args:
            ordered: the second number counts the calls; else both jump about.
        """
        now = td.identity(self.state)
        step = td.constant([0, 1], td.int64)
        self.state.assign(now + step if ordered else (now + 1) * 5387 % 933199)
        replica = replicas.number()
        return now + td.constant([replica, 0], td.int64) if replica else now

    def get_config(self) -> dict[str, Any]:
        """The seed and the name that it was made with."""
        return {"seed": self._initial_seed, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """A generator from what `get_config` gave."""
        return cls(**config)


class _Source:
    """What decides seeds that programs leave out."""

    seeding: int | None = None  # the one of `td.random` that was one of Python's numbers, too


_source = _Source()


def default_seed() -> int:
    """A seed where none is given: one of Python's random numbers, as in Keras; so that programs
    that seed td alone repeat as well, one of td's where these were seeded and Python's were not."""
    if global_seed() is None or seedings() == _source.seeding:
        return _python_random.randint(1, int(1e9))
    with td.init_scope():
        return int(td.random.uniform((), 1, int(1e9), td.int64))


_global: list[SeedGenerator] = []  # at most one: what calls without a seed draw from


def forget_global() -> None:
    """Let calls without a seed draw from a new generator."""
    _global.clear()


def seeded_with_python() -> None:
    """Note that Python's random numbers were seeded together with td's: seeds come from them."""
    _source.seeding = seedings()
    forget_global()


def draw_seed(seed: Any) -> td.Tensor:
    """Two int64 numbers: from an int, from a generator, or from the one for all when None.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(seed, SeedGenerator):
        return seed.next()
    if isinstance(seed, int):
        return td.constant([seed, 0], td.int64)
    if seed is not None:
        raise ValueError(
            "Argument `seed` must be either an integer or an instance of `SeedGenerator`. "
            f"Received: seed={seed} (of type {type(seed)})"
        )
    if not _global:
        _global.append(SeedGenerator())
    return _global[0].next(ordered=False)


def _seed(seed: Any) -> td.Tensor:
    return td.cast(td.math.floormod(draw_seed(seed), td.int32.max - 1), td.int32)


def _kind(dtype: Any) -> str:
    """The name of a floating dtype.

    Raises:
        ValueError: it is another one.
    """
    name = standardize_dtype(dtype or floatx())
    if "float" not in name:
        raise ValueError(
            "`keras.random` draws require a floating point `dtype`. Received: "
            f"dtype={dtype} "
        )  # fmt: skip
    return name


def normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None
) -> td.Tensor:
    """Normally distributed numbers.

    Args:
        shape: of the result.
        mean, stddev: of the distribution.
        dtype: a floating one, `floatx` when omitted.
        seed: an int, which always gives the same numbers, a `SeedGenerator`, or None.
    """
    return td.random.stateless_normal(shape, _seed(seed), mean, stddev, _kind(dtype))


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None
) -> td.Tensor:
    """Normally distributed numbers no more than two deviations from the mean."""
    return td.random.stateless_truncated_normal(shape, _seed(seed), mean, stddev, _kind(dtype))


def uniform(
    shape: Any, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None, seed: Any = None
) -> td.Tensor:
    """Numbers from `minval` to below `maxval`, all as likely."""
    kind = _kind(dtype)
    low, high = td.cast(minval, kind), td.cast(maxval, kind)
    return td.random.stateless_uniform(shape, _seed(seed), low, high, kind)


def randint(
    shape: Any, minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None
) -> td.Tensor:
    """Integers from `minval` to below `maxval`, all as likely.

    Raises:
        ValueError: the dtype is none of integers.
    """
    name = standardize_dtype(dtype)
    if "int" not in name:
        raise ValueError(
            f"`keras.random.randint` requires an integer `dtype`. Received: dtype={dtype} "
        )  # fmt: skip
    inner = name if name in ("int32", "int64") else "int64"
    drawn = td.random.stateless_uniform(shape, _seed(seed), minval, maxval, inner)
    return td.cast(drawn, name)


def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Any = None) -> td.Tensor:
    """Class numbers for each row of logits.

    Raises:
        ValueError: the logits are no matrix.
    """
    logits = td.convert_to_tensor(logits)
    if len(logits.shape) != 2:
        raise ValueError(
            "`logits` should be a 2-D tensor with shape [batch_size, num_classes]. Received: "
            f"logits={logits}"
        )
    drawn = td.random.stateless_categorical(logits, num_samples, _seed(seed))
    return td.cast(drawn, standardize_dtype(dtype))


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> td.Tensor:
    """The inputs with a part of the elements set to 0, and the others enlarged.

    Args:
        rate: the part.
        noise_shape: the shape of what is drawn, None for sizes of the inputs.
    """
    inputs = td.convert_to_tensor(inputs)
    if rate == 1.0:
        return td.zeros_like(inputs)
    if rate == 0.0:
        return td.identity(inputs)
    shape = td.shape(inputs)
    if noise_shape is not None:
        shape = td.stack([shape[i] if d is None else d for i, d in enumerate(noise_shape)])
    return td.nn.experimental.stateless_dropout(inputs, rate, _seed(seed), noise_shape=shape)


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> td.Tensor:
    """The slices along the axis in another order."""
    x = td.convert_to_tensor(x)
    keys = td.random.stateless_uniform([td.shape(x)[axis]], _seed(seed))
    return td.gather(x, td.argsort(keys), axis=axis)


def _inner(kind: str) -> str:
    return "float32" if kind == "bfloat16" else kind


def gamma(shape: Any, alpha: Any, dtype: Any = None, seed: Any = None) -> td.Tensor:
    """Gamma distributed numbers of that shape parameter."""
    kind = _kind(dtype)
    drawn = td.random.stateless_gamma(shape, _seed(seed), alpha=alpha, dtype=_inner(kind))
    return td.cast(drawn, kind)


def binomial(
    shape: Any, counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None
) -> td.Tensor:
    """How many of `counts` trials succeed."""
    kind = _kind(dtype)
    drawn = td.random.stateless_binomial(
        shape, _seed(seed), counts=counts, probs=probabilities, output_dtype=_inner(kind)
    )
    return td.cast(drawn, kind)


def beta(shape: Any, alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> td.Tensor:
    """Beta distributed numbers: a gamma distributed one over its sum with another."""
    kind, first = _kind(dtype), _seed(seed)
    a, b = (
        td.cast(
            td.random.stateless_gamma(
                shape, start, td.broadcast_to(td.convert_to_tensor(value, _inner(kind)), shape),
                dtype=_inner(kind),
            ),
            kind,
        )
        for start, value in ((first, alpha), (first + 12, beta))
    )  # fmt: skip
    drawn: td.Tensor = td.divide(a, a + b)
    return drawn


__all__ = [
    "SeedGenerator", "beta", "binomial", "categorical", "dropout", "gamma", "normal", "randint",
    "shuffle", "truncated_normal", "uniform",
]  # fmt: skip

__getattr__ = missing_in(__name__)
