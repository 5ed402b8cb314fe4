"""What all distributions have: shapes, samples, densities and moments.

A class says what it computes by formulas of treadle. They are written down in a graph as one
operation each, for an object whose parameters are the values that a session has.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import treadle as td
from treadle.compat.v1 import functions
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import recorded
from treadle.compat.v1.shapes import TensorShape
from treadle.compat.v1.values import Literal, element
from treadle.core.origin import at, user_origin


class ReparameterizationType:
    """Whether samples are a function of the parameters, which has gradients."""

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


_shape, _reshape, _concat = map(graph_function, (td.shape, td.reshape, td.concat))


def _plain(value: Any) -> Any:
    return value.value if type(value) is Literal else value


def _computed(
    distribution: Distribution, method: str, tensors: Mapping[str, Any], *args: Any
) -> Any:
    """The result of a method of a distribution whose parameters have these values."""
    twin = copy.copy(_plain(distribution))
    twin.__dict__.update(tensors)
    return getattr(twin, method)(*args)


@functools.cache
def _written(class_name: str, method: str) -> Callable[..., Any]:
    name = method.strip("_")
    return recorded(_computed, f"{class_name}/{name}", name.title().replace("_", ""))


class Distribution:
    """A batch of distributions.

    A subclass gives some of ``_log_prob``, ``_prob``, ``_cdf``, ``_sample_n``, ``_mean``,
    ``_variance``, ``_stddev``, ``_mode``, ``_entropy``, ``_quantile``, ``_batch_shape``,
    ``_batch_shape_tensor``, ``_event_shape`` and ``_event_shape_tensor``: others follow from them.

    Args:
        dtype: of samples.
        reparameterization_type: FULLY_REPARAMETERIZED or NOT_REPARAMETERIZED.
        validate_args: whether parameters are checked when they are used.
        allow_nan_stats: whether moments that do not exist are NaN; else they are an error.
        parameters: what it was made with.
        name: of it, and in front of its operations.
    """

    # The attributes that are tensors, in the formulas of the class.
    _tensors: ClassVar[tuple[str, ...]] = ()

    def __init__(self, dtype: Any, reparameterization_type: Any, validate_args: bool,
                 allow_nan_stats: bool, parameters: Any = None, graph_parents: Any = None,
                 name: str | None = None) -> None:  # fmt: skip
        self._dtype, self._reparameterization_type = td.as_dtype(dtype), reparameterization_type
        self._validate_args, self._allow_nan_stats = validate_args, allow_nan_stats
        self._parameters = {
            k: v for k, v in (parameters or {}).items() if k not in ("self", "__class__")
        }
        with functions.name_scope(name or type(self).__name__) as scope:
            self._name = scope if scope.endswith("/") else f"{scope}/"

    # -- what it is --------------------------------------------------------------------------

    name = property(lambda self: self._name)
    dtype = property(lambda self: self._dtype)
    parameters = property(lambda self: dict(self._parameters))
    reparameterization_type = property(lambda self: self._reparameterization_type)
    allow_nan_stats = property(lambda self: self._allow_nan_stats)
    validate_args = property(lambda self: self._validate_args)

    def copy(self, **override_parameters_kwargs: Any) -> Any:
        """A distribution of the class with some other parameters."""
        return type(self)(**{**self.parameters, **override_parameters_kwargs})

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch, as far as it is known."""
        return TensorShape(self._batch_shape())

    @property
    def event_shape(self) -> Any:
        """The shape of a sample of one distribution, as far as it is known."""
        return TensorShape(self._event_shape())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        return self._call("_batch_shape_tensor", name=name)

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Any:
        return self._call("_event_shape_tensor", name=name)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Any:
        return self._call("_has_no_batch", name=name)

    def is_scalar_event(self, name: str = "is_scalar_event") -> Any:
        return self._call("_has_scalar_events", name=name)

    # -- what it computes --------------------------------------------------------------------

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Any:
        """Samples: a tensor of shape ``sample_shape + batch_shape + event_shape``."""
        shape = functions.convert_to_tensor(sample_shape, td.int32)
        found = self._call("_samples", shape, seed, name=name)
        known = functions.get_static_value(shape)
        if known is not None and element(found) is not None:
            sizes = td.TensorShape(known.reshape(-1).tolist())
            found.set_shape(
                sizes.concatenate(td.TensorShape(self.batch_shape))
                .concatenate(td.TensorShape(self.event_shape))
            )  # fmt: skip
        return found

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """The logarithm of the density, or of the probability."""
        return self._call("_any_log_prob", self._given(value), name=name)

    def prob(self, value: Any, name: str = "prob") -> Any:
        """The density, or the probability."""
        return self._call("_any_prob", self._given(value), name=name)

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        """The probability of samples up to `value`."""
        return self._call("_any_cdf", self._given(value), name=name)

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Any:
        return self._call("_any_log_cdf", self._given(value), name=name)

    def survival_function(self, value: Any, name: str = "survival_function") -> Any:
        """The probability of samples beyond `value`."""
        return self._call("_any_survival_function", self._given(value), name=name)

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Any:
        return self._call("_any_log_survival_function", self._given(value), name=name)

    def quantile(self, value: Any, name: str = "quantile") -> Any:
        """The value up to which samples have a probability."""
        if not _has(self, "_quantile"):
            raise NotImplementedError(
                f"quantile is not implemented: {type(self).__name__}{at(user_origin())}"
            )
        return self._call("_quantile", self._given(value), name=name)

    def entropy(self, name: str = "entropy") -> Any:
        return self._call("_entropy", name=name)

    def mean(self, name: str = "mean") -> Any:
        return self._call("_mean", name=name)

    def variance(self, name: str = "variance") -> Any:
        return self._call("_any_variance", name=name)

    def stddev(self, name: str = "stddev") -> Any:
        return self._call("_any_stddev", name=name)

    def covariance(self, name: str = "covariance") -> Any:
        return self._call("_covariance", name=name)

    def mode(self, name: str = "mode") -> Any:
        return self._call("_mode", name=name)

    def kl_divergence(self, other: Any, name: str = "kl_divergence") -> Any:
        """The Kullback-Leibler divergence from another distribution."""
        return kl_divergence(self, other, name=name)

    def cross_entropy(self, other: Any, name: str = "cross_entropy") -> Any:
        """The entropy and the divergence from another distribution."""
        return self.entropy() + kl_divergence(self, other)

    # -- how ---------------------------------------------------------------------------------

    def _samples(self, shape: Any, seed: int | None) -> Any:
        drawn = self._sample_n(functions.reduce_prod(shape), seed)
        inner = _shape(drawn)[1:]
        return _reshape(drawn, _concat([_reshape(shape, [-1]), inner], 0))

    def _call(self, method: str, *args: Any, name: str) -> Any:
        if not self._tensors:  # a class of the user, whose methods are written down themselves
            return getattr(self, method)(*args)
        tensors = {key: getattr(self, key) for key in self._tensors}
        written = _written(type(self).__name__, method)
        return written(Literal(self), method, tensors, *args, name=self._name + name)

    def _given(self, value: Any) -> Any:
        if element(value) is not None or td.is_tensor(value):
            return value
        return functions.convert_to_tensor(value, self._dtype)

    def _has_no_batch(self) -> Any:
        return td.equal(td.size(self._batch_shape_tensor()), 0)

    def _has_scalar_events(self) -> Any:
        return td.equal(td.size(self._event_shape_tensor()), 0)

    def _any_log_prob(self, value: Any) -> Any:
        return self._log_prob(value) if _has(self, "_log_prob") else td.math.log(self._prob(value))

    def _any_prob(self, value: Any) -> Any:
        return self._prob(value) if _has(self, "_prob") else td.exp(self._log_prob(value))

    def _any_cdf(self, value: Any) -> Any:
        return td.exp(self._log_cdf(value)) if not _has(self, "_cdf") else self._cdf(value)

    def _any_log_cdf(self, value: Any) -> Any:
        return self._log_cdf(value) if _has(self, "_log_cdf") else td.math.log(self._cdf(value))

    def _any_survival_function(self, value: Any) -> Any:
        if _has(self, "_survival_function"):
            return self._survival_function(value)
        return 1.0 - self._any_cdf(value)

    def _any_log_survival_function(self, value: Any) -> Any:
        if _has(self, "_log_survival_function"):
            return self._log_survival_function(value)
        return td.math.log(self._any_survival_function(value))

    def _any_variance(self) -> Any:
        return self._variance() if _has(self, "_variance") else td.square(self._stddev())

    def _any_stddev(self) -> Any:
        return self._stddev() if _has(self, "_stddev") else td.sqrt(self._variance())

    def _or_error(self, exists: Any, value: Any, what: str) -> Any:
        """A moment where it exists; elsewhere NaN, or an error where NaN is not allowed."""
        if self._allow_nan_stats:
            return td.where(exists, value, td.constant(float("nan"), value.dtype))
        td.debugging.Assert(td.reduce_all(exists), [what])
        return td.identity(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name.strip("_") in _METHODS:
            raise NotImplementedError(
                f"{name.strip('_')} is not implemented: {type(self).__name__}{at(user_origin())}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return (
            f"<tf.distributions.{type(self).__name__} {self._name.rstrip('/')!r} "
            f"batch_shape={self.batch_shape} event_shape={self.event_shape} "
            f"dtype={self._dtype.name}>"
        )

    __str__ = __repr__


_METHODS = {
    "log_prob", "prob", "cdf", "log_cdf", "survival_function", "log_survival_function", "quantile",
    "entropy", "mean", "variance", "stddev", "covariance", "mode", "sample_n", "batch_shape",
    "event_shape", "batch_shape_tensor", "event_shape_tensor",
}  # fmt: skip


def _has(distribution: Distribution, method: str) -> bool:
    return hasattr(type(distribution), method)


def parameter(value: Any, dtype: Any = None, check: Any = None) -> Any:
    """A parameter as a tensor.

    Args:
        dtype: of numbers of Python.
        check: an assertion of treadle, run with the value.
    """
    if element(value) is None and not td.is_tensor(value):
        value = functions.convert_to_tensor(value, dtype, preferred_dtype=td.float32)
    elif element(value) is not None:
        value = element(value)
    return value if check is None else recorded(_checked, "checked", "Identity")(
        value, Literal(check)
    )


def _checked(value: Any, check: Any) -> Any:
    _plain(check)(value)
    return td.identity(value)


def parameters(*values: Any, check: Any = None) -> list[Any]:
    """Parameters of one dtype: that of the first that has one.

    Raises:
        ValueError: they have different dtypes.
    """
    known = [v.dtype for v in values if hasattr(v, "dtype")]
    dtype = td.as_dtype(known[0]) if known else td.float32
    found = [parameter(v, dtype, check) for v in values]
    if any(v.dtype is not dtype for v in found):
        raise ValueError(
            f"parameters have dtypes {', '.join(v.dtype.name for v in found)}: give them one"
            f"{at(user_origin())}"
        )
    return found


def joint_shape(*tensors: Any) -> Any:
    """The static shape of tensors that broadcast, without a number of their last axes."""
    found = td.TensorShape([])
    for tensor in tensors:
        found = _broadcast(found, td.TensorShape(tensor.shape))
    return found


def _broadcast(a: Any, b: Any) -> Any:
    if a.rank is None or b.rank is None:
        return td.TensorShape(None)
    rank = max(a.rank, b.rank)
    pairs = [
        ([1] * (rank - len(s)) + s.as_list()) for s in (a, b)
    ]  # fmt: skip
    return td.TensorShape([
        x if y == 1 else y if x == 1 else x if y is None else y for x, y in zip(*pairs, strict=True)
    ])  # fmt: skip


def joint_shape_tensor(*tensors: Any) -> Any:
    """The shape of tensors that broadcast."""
    found = td.shape(tensors[0])
    for tensor in tensors[1:]:
        found = td.broadcast_dynamic_shape(found, td.shape(tensor))
    return found


_divergences: dict[tuple[type, type], Callable[..., Any]] = {}


class RegisterKL:
    """Decorator: the function ``f(a, b, name=None)`` is the divergence of objects of two classes.

    Raises:
        TypeError: it is no function. ValueError: there is one for these classes.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = dist_cls_a, dist_cls_b

    def __call__(self, kl_fn: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _divergences:
            first, second = (c.__name__ for c in self._key)
            raise ValueError(f"KL({first} || {second}) has already been registered")
        _divergences[self._key] = kl_fn
        return kl_fn


def kl_divergence(distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True,
                  name: str | None = None) -> Any:  # fmt: skip
    """The Kullback-Leibler divergence ``KL(a || b)``.

    Raises:
        NotImplementedError: none is registered for their classes.
    """
    for first in type(distribution_a).__mro__:
        for second in type(distribution_b).__mro__:
            found = _divergences.get((first, second))
            if found is not None:
                return found(distribution_a, distribution_b, name=name)
    raise NotImplementedError(
        "No KL(distribution_a || distribution_b) registered for distribution_a type "
        f"{type(distribution_a).__name__} and distribution_b type "
        f"{type(distribution_b).__name__}{at(user_origin())}"
    )


def _divergence_of(
    formula: Any, a: Any, b: Any, tensors: Mapping[str, Any], others: Mapping[str, Any]
) -> Any:
    twins = copy.copy(_plain(a)), copy.copy(_plain(b))
    twins[0].__dict__.update(tensors)
    twins[1].__dict__.update(others)
    return _plain(formula)(*twins)


def divergence(kind: type) -> Callable[..., Any]:
    """Decorator: the divergence of two objects of a class, as a formula of treadle."""

    def register(formula: Callable[..., Any]) -> Callable[..., Any]:
        call = recorded(_divergence_of, f"KL_{kind.__name__}", "KL")

        @RegisterKL(kind, kind)
        def written(a: Any, b: Any, name: str | None = None) -> Any:
            ours, theirs = ({k: getattr(d, k) for k in d._tensors} for d in (a, b))
            return call(Literal(formula), Literal(a), Literal(b), ours, theirs, name=name)

        return formula

    return register
