"""Attention: results are means of values, weighted by how queries and keys fit together."""

from __future__ import annotations

import math
import string
from typing import Any, ClassVar

import treadle as td
from treadle.keras import initializers, random
from treadle.keras.layers.base import Layer
from treadle.keras.layers.core import Softmax
from treadle.keras.layers.einsum import EinsumDense
from treadle.keras.layers.noise import Dropout
from treadle.keras.layers.spatial import size_of
from treadle.keras.masks import mask_of, set_mask


def _both(first: Any, second: Any) -> Any:
    """Where both masks are True; None stands for a mask that leaves nothing out."""
    if first is None or second is None:
        return second if first is None else first
    return td.logical_and(td.cast(first, td.bool), td.cast(second, td.bool))


def _not_later(queries: Any, keys: Any) -> td.Tensor:
    """[1, queries, keys]: which keys a query sees that sees no later ones."""
    rows, columns = td.range(queries)[:, None], td.range(keys)[None]
    return (rows >= columns)[None]


class Attention(Layer):
    """Dot-product attention over ``[query, value]`` or ``[query, value, key]``, each [batch, steps,
    features]; the key is the value when it is not given.

    The mask is a list as the inputs are: steps of values that are left out have no weight, and
    results of queries that are left out are 0.

    Args:
        use_scale: multiply the scores by a learnt number.
        score_mode: "dot", or "concat": the sum of ``tanh(query + key)`` times a learnt number.
        dropout: the fraction of weights to drop in training.
        seed: makes the dropout repeat.
    """

    has_shape_rule: ClassVar[bool] = False
    _config_names: ClassVar[tuple[str, ...]] = ("use_scale", "score_mode", "dropout", "seed")

    def __init__(
        self, use_scale: bool = False, score_mode: str = "dot", dropout: float = 0.0,
        seed: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        if score_mode not in ("dot", "concat"):
            raise ValueError(
                f'{type(self).__name__}: score_mode is "dot" or "concat", not {score_mode!r}'
            )
        self.use_scale, self.score_mode = use_scale, score_mode
        self.dropout, self.seed = dropout, seed
        if dropout > 0:
            self.seed_generator = random.SeedGenerator(seed)
        self.scale: Any = None

    def build(self, input_shape: Any) -> None:
        self._check_shapes(input_shape)
        if self.use_scale:
            self.scale = self.add_weight((), "ones", name="scale")
        if self.score_mode == "concat":
            self.concat_score_weight = self.add_weight((), "ones", name="concat_score_weight")

    def _check_shapes(self, input_shape: Any) -> None:
        """Refuse the shape of one tensor, and a wrong number of shapes."""
        several = isinstance(input_shape, list | tuple) and all(
            isinstance(shape, list | tuple | td.TensorShape) for shape in input_shape
        )
        self._check(input_shape if several else None)

    def _check(self, inputs: Any, mask: Any = None) -> None:
        if mask is not None:
            if not isinstance(mask, list | tuple):
                raise ValueError(
                    f'Layer "{self.name}" ({type(self).__name__}): the mask of a call is a list, '
                    f"as layer inputs are, got {mask!r}"
                )
            if not 2 <= len(mask) <= 3:
                raise ValueError(
                    f'Layer "{self.name}" ({type(self).__name__}): the list of masks must have '
                    f"length 2 or 3, got {len(mask)}"
                )
        if not isinstance(inputs, list | tuple) or len(inputs) not in (2, 3):
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) takes a list [query, value] or '
                f"[query, value, key], got {inputs!r}"
            )

    def _scores(self, query: td.Tensor, key: td.Tensor) -> td.Tensor:
        if self.score_mode == "concat":
            both = td.expand_dims(query, -2) + td.expand_dims(key, -3)
            both = both if self.scale is None else both * self.scale
            return self.concat_score_weight * td.reduce_sum(td.tanh(both), -1)
        scores = td.matmul(query, key, transpose_b=True)
        return scores if self.scale is None else scores * self.scale

    def call(
        self, inputs: Any, mask: Any = None, training: Any = False,
        return_attention_scores: bool = False, use_causal_mask: bool = False,
    ) -> Any:  # fmt: skip
        self._check(inputs, mask)
        query, value = inputs[:2]
        scores = self._scores(query, inputs[2] if len(inputs) > 2 else value)
        query_mask, value_mask = (None, None) if mask is None else mask[:2]
        kept = None if value_mask is None else td.expand_dims(td.cast(value_mask, td.bool), -2)
        if use_causal_mask:
            kept = _both(kept, _not_later(size_of(scores, -2), size_of(scores, -1)))
        if kept is not None:
            low = 65504.0 if scores.dtype == td.float16 else 1e9
            scores = td.where(kept, scores, scores - td.constant(low, scores.dtype))
        weights = td.nn.softmax(scores)
        if training and self.dropout:
            weights = random.dropout(weights, self.dropout, seed=self.seed_generator)
        outputs = td.matmul(weights, value)
        if query_mask is not None:
            shown = td.expand_dims(td.cast(query_mask, td.bool), -1)
            outputs = td.where(shown, outputs, td.zeros_like(outputs))
        return (outputs, weights) if return_attention_scores else outputs

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The query's."""
        return None if mask is None else mask[0]

    def compute_output_shape(self, input_shape: Any) -> Any:
        self._check_shapes(input_shape)
        return (*input_shape[0][:-1], input_shape[1][-1])


class AdditiveAttention(Attention):
    """Attention whose scores are sums of ``scale * tanh(query + key)``, with a learnt scale for
    each feature. Inputs and masks as for Attention.

    Args:
        use_scale: without it the scale is 1.
        dropout: the fraction of weights to drop in training.
    """

    _no_settings: ClassVar[tuple[str, ...]] = ("score_mode",)

    def __init__(self, use_scale: bool = True, dropout: float = 0.0, **kwargs: Any) -> None:
        super().__init__(use_scale, dropout=dropout, **kwargs)

    def build(self, input_shape: Any) -> None:
        self._check_shapes(input_shape)
        if self.use_scale:
            self.scale = self.add_weight((input_shape[0][-1],), "glorot_uniform", name="scale")

    def _scores(self, query: td.Tensor, key: td.Tensor) -> td.Tensor:
        bent = td.tanh(td.expand_dims(query, -2) + td.expand_dims(key, -3))
        return td.reduce_sum(bent if self.scale is None else bent * self.scale, -1)


def _also(name: str) -> Any:
    """An attribute that is another one, by a further name."""
    return property(
        lambda layer: getattr(layer, name), lambda layer, value: setattr(layer, name, value)
    )


class _Heads(Layer):
    """What attention of several heads shares: projections of query, key and value, softmax along
    the keys, and a projection of what the heads give.

    ``layer(query, value, key=value, attention_mask=None)`` gives the results, or
    (results, weights) with `return_attention_scores`.
    """

    has_shape_rule: ClassVar[bool] = False
    supports_masking = True
    _config_names: ClassVar[tuple[str, ...]] = (
        "dropout", "use_bias", "use_gate", "sliding_window", "seed", "activity_regularizer",
    )  # fmt: skip
    _weight_kinds: ClassVar[dict[str, str]] = {"kernel": "glorot_uniform", "bias": "zeros"}
    # Whether the activity regularizer is for the results, too: else for the projections alone.
    _regularizes_results: ClassVar[bool] = True
    attention_axes: tuple[int, ...] | None = None
    _softmax: Softmax
    _dropout_layer: Dropout
    _dot_product_equation: str
    _combine_equation: str

    def __init__(
        self, dropout: float, use_bias: bool, sliding_window: int | None,
        flash_attention: bool | None, use_gate: bool, seed: int | None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        whole = isinstance(sliding_window, int) and sliding_window > 0
        if sliding_window is not None and not whole:
            raise ValueError(
                f"{type(self).__name__}: sliding_window is a positive int, got {sliding_window!r}"
            )
        if flash_attention and dropout:
            raise ValueError(f"{type(self).__name__}: flash_attention goes without dropout")
        self.dropout, self.use_bias, self.use_gate = dropout, use_bias, use_gate
        self.sliding_window, self.seed = sliding_window, seed
        self._flash_attention = bool(flash_attention)
        self._return_attention_scores = False

    def _get_common_kwargs_for_sublayer(self) -> dict[str, Any]:
        """The arguments that all inner layers of a call have in common."""
        given = {
            f"{weight}_{kind}": getattr(self, f"{weight}_{kind}")
            for weight in self._weight_kinds for kind in ("regularizer", "constraint")
        }  # fmt: skip
        for weight in self._weight_kinds:  # each projection draws numbers of its own
            given[f"{weight}_initializer"] = initializers.again(
                getattr(self, f"{weight}_initializer")
            )
        own = {"dtype": self.dtype_policy, "activity_regularizer": self.activity_regularizer}
        return given | own

    def _projection(
        self, name: str, equation: str, output_shape: Any, bias_axes: str, shape: Any,
        activation: Any = None,
    ) -> EinsumDense:  # fmt: skip
        """One of the inner layers, for inputs of this shape."""
        layer = EinsumDense(
            equation, output_shape, activation, bias_axes if self.use_bias else None, name=name,
            **self._get_common_kwargs_for_sublayer(),
        )  # fmt: skip
        layer.build(shape)
        return layer

    def _penalize(self, outputs: Any) -> None:
        if self._regularizes_results:
            super()._penalize(outputs)

    def _compute_attention_mask(
        self, query: Any, value: Any, query_mask: Any = None, value_mask: Any = None,
        key_mask: Any = None, attention_mask: Any = None, use_causal_mask: bool = False,
    ) -> Any:  # fmt: skip
        """[batch, queries, keys]: which keys count for which queries; None for all.

        Programs give their layers such a method of their own, as they do with
        `_compute_causal_mask`, `_compute_attention` and `_masked_softmax`: `call` goes by them.
        """
        kept = None if query_mask is None else td.expand_dims(td.cast(query_mask, td.bool), -1)
        for mask in (value_mask, key_mask):
            if mask is not None:
                kept = _both(kept, td.expand_dims(td.cast(mask, td.bool), -2))
        if use_causal_mask:
            kept = _both(kept, self._compute_causal_mask(query, value))
        if self.sliding_window is not None:
            kept = _both(kept, self._compute_sliding_window_mask(query, value))
        given = None if attention_mask is None else td.cast(attention_mask, td.bool)
        return _both(given, kept)

    def _compute_causal_mask(self, query: Any, value: Any = None) -> td.Tensor:
        """[1, queries, keys]: which keys a query sees that sees no later ones."""
        return _not_later(size_of(query, 1), size_of(query if value is None else value, 1))

    def _compute_sliding_window_mask(self, query: Any, value: Any = None) -> td.Tensor:
        """[1, queries, keys]: which keys are near enough to a query."""
        queries, keys = size_of(query, 1), size_of(query if value is None else value, 1)
        distance = td.abs(td.range(queries)[:, None] - td.range(keys)[None])
        return (distance < self.sliding_window)[None]

    def _for_heads(self, scores: Any, attention_mask: Any) -> Any:
        """The mask with axes of one element for the heads."""
        if attention_mask is not None:
            place = -2 * len(self.attention_axes or (1,)) - 1
            while len(attention_mask.shape) < len(scores.shape):
                attention_mask = td.expand_dims(attention_mask, place)
        return attention_mask

    def _masked_softmax(self, attention_scores: Any, attention_mask: Any = None) -> Any:
        """The weights of the keys for each query, where the scores are wanted, or dropped, or of
        several axes: queries for which no key counts get weights of 0."""
        kept = self._for_heads(attention_scores, attention_mask)
        return self._softmax(attention_scores, mask=kept)

    def _attended(
        self, scores: Any, value: Any, mask: Any, training: Any, wanted: bool
    ) -> tuple[Any, Any]:
        """What the heads give, and the weights.

        Where `_masked_softmax` is not asked, queries for which no key counts get the mean of all
        values, as in Keras.
        """
        if wanted or self.dropout or len(value.shape) != 4:
            weights = self._masked_softmax(scores, mask)
        elif mask is None:
            weights = self._softmax(scores)
        else:
            kept = td.cast(self._for_heads(scores, mask), td.bool)
            low = -0.7 * scores.dtype.max
            weights = td.nn.softmax(td.where(kept, scores, td.constant(low, scores.dtype)))
        dropped = self._dropout_layer(weights, training=training)
        return td.einsum(self._combine_equation, dropped, value), weights


def _letters(rank: int, attention_axes: tuple[int, ...]) -> tuple[str, str]:
    """The equations of the scores and of the results, for inputs [batch, ..., heads, features] of
    which the attention axes are compared with each other."""
    of_query = string.ascii_lowercase[:rank]
    others = iter(string.ascii_lowercase[rank:])
    of_key = "".join(next(others) if i in attention_axes else c for i, c in enumerate(of_query))
    batch = [c for i, c in enumerate(of_query[:-1]) if i not in attention_axes]
    scores = "".join(
        [*batch, *(of_query[i] for i in attention_axes), *(of_key[i] for i in attention_axes)]
    )
    return f"{of_key},{of_query}->{scores}", f"{scores},{of_key}->{of_query}"


class MultiHeadAttention(_Heads):
    """Attention of several heads, each with projections of its own.

    Args:
        num_heads: the number of heads.
        key_dim: the features of a query and of a key in a head.
        value_dim: the features of a value in a head; `key_dim` when omitted.
        dropout: the fraction of weights to drop in training.
        use_bias: whether the projections add a bias.
        output_shape: the results' features; the query's when omitted.
        attention_axes: the axes that are compared; all between batch and features when omitted.
        sliding_window: how far a key may be from a query, in steps.
        flash_attention: accepted for Keras programs: the result is the same.
        use_gate: multiply what the heads give by a sigmoid projection of the query.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
        kernel_constraint, bias_constraint: of all projections.
        seed: makes the dropout repeat.
    """

    _regularizes_results = False
    _config_names: ClassVar[tuple[str, ...]] = (
        "num_heads", "key_dim", "value_dim", "attention_axes",
    )
    # What Keras keeps under these names, which derived classes read and assign.
    _num_heads = _also("num_heads")
    _key_dim = _also("key_dim")
    _value_dim = _also("value_dim")
    _dropout = _also("dropout")
    _use_bias = _also("use_bias")
    _use_gate = _also("use_gate")
    _output_shape = _also("_result_shape")
    _attention_axes = _also("attention_axes")
    _sliding_window = _also("sliding_window")
    _kernel_initializer = _also("kernel_initializer")
    _bias_initializer = _also("bias_initializer")
    _kernel_regularizer = _also("kernel_regularizer")
    _bias_regularizer = _also("bias_regularizer")
    _activity_regularizer = _also("activity_regularizer")
    _kernel_constraint = _also("kernel_constraint")
    _bias_constraint = _also("bias_constraint")
    _query_dense = _also("query_dense")
    _key_dense = _also("key_dense")
    _value_dense = _also("value_dense")
    _output_dense = _also("output_dense")

    @property
    def _inverse_sqrt_key_dim(self) -> float:
        return 1.0 / math.sqrt(self.key_dim)

    def __init__(
        self, num_heads: int, key_dim: int, value_dim: int | None = None, dropout: float = 0.0,
        use_bias: bool = True, output_shape: Any = None, attention_axes: Any = None,
        sliding_window: int | None = None, flash_attention: bool | None = None,
        kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, use_gate: bool = False, seed: int | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            dropout, use_bias, sliding_window, flash_attention, use_gate, seed,
            kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint, **kwargs,
        )  # fmt: skip
        for name, value in (("num_heads", num_heads), ("key_dim", key_dim)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"MultiHeadAttention: {name} must be a positive int, got {value!r}"
                )
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim or key_dim
        given = (output_shape,) if isinstance(output_shape, int) else output_shape
        if given is not None and not isinstance(given, list | tuple):
            raise ValueError(
                "Invalid `output_shape`: an int or a tuple of them. Received: "
                f"output_shape={output_shape}"
            )
        self._result_shape = None if given is None else tuple(given)
        axes = (attention_axes,) if isinstance(attention_axes, int) else attention_axes
        self.attention_axes = None if axes is None else tuple(axes)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"output_shape": self._result_shape}

    def _check_shapes(self, value_shape: Any, key_shape: Any) -> None:
        if tuple(value_shape[1:-1]) != tuple(key_shape[1:-1]):
            raise ValueError(
                f'Layer "{self.name}" (MultiHeadAttention): all axes of value and key but the last '
                f"must be equal, got shapes {tuple(value_shape)} and {tuple(key_shape)}"
            )

    def build(self, query_shape: Any, value_shape: Any, key_shape: Any = None) -> None:  # type: ignore[override]
        key_shape = value_shape if key_shape is None else key_shape
        self._check_shapes(value_shape, key_shape)

        def into_heads(name: str, shape: Any, size: int, activation: Any = None) -> EinsumDense:
            free = string.ascii_lowercase[: len(shape) - 1]
            sizes = (*(None,) * (len(shape) - 2), self.num_heads, size)
            return self._projection(
                name, f"{free}x,xyz->{free}yz", sizes, "yz", shape, activation
            )

        self.query_dense = into_heads("query", query_shape, self.key_dim)
        self.key_dense = into_heads("key", key_shape, self.key_dim)
        if self.use_gate:
            self._gate_dense = into_heads("gate", query_shape, self.value_dim, "sigmoid")
        self.value_dense = into_heads("value", value_shape, self.value_dim)
        self._build_attention(len(query_shape) + 1)
        self.output_dense = self._make_output_dense(
            query_shape, self._get_common_kwargs_for_sublayer(), "attention_output"
        )
        self.output_dense.build((*query_shape[:-1], self.num_heads, self.value_dim))

    def _build_attention(self, rank: int) -> None:
        """Make what `_compute_attention` needs, for queries in heads of this rank."""
        axes = self.attention_axes
        if axes is None:
            self.attention_axes = tuple(range(1, rank - 2))
        else:
            self.attention_axes = tuple(a % (rank - 1) for a in axes)
        self._dot_product_equation, self._combine_equation = _letters(rank, self.attention_axes)
        count = len(self.attention_axes)
        axis = tuple(range(-count, 0)) if count > 1 else -1
        self._softmax = Softmax(axis, dtype=self.dtype_policy)
        self._dropout_layer = Dropout(self.dropout, seed=self.seed, dtype=self.dtype_policy)

    def _make_output_dense(
        self, query_shape: Any, common_kwargs: dict[str, Any], name: str | None = None
    ) -> EinsumDense:
        """The projection of what the heads give, which is not built yet."""
        rank = len(query_shape) + 1
        outputs = self._result_shape or (query_shape[-1],)
        free = string.ascii_lowercase[: rank - 2]
        new = string.ascii_lowercase[rank : rank + len(outputs)]
        return EinsumDense(
            f"{free}yz,yz{new}->{free}{new}", (*(None,) * (rank - 3), *outputs),
            bias_axes=new if self.use_bias else None, name=name, **common_kwargs,
        )  # fmt: skip

    def _compute_attention(
        self, query: Any, key: Any, value: Any, attention_mask: Any = None, training: Any = None,
        return_attention_scores: bool = False, use_causal_mask: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """What the heads give for projected queries, keys and values, and the weights.

        Args:
            query: [batch, queries, heads, key_dim].
            key, value: [batch, keys, heads, key_dim or value_dim].
            attention_mask: [batch, queries, keys], which keys count.
            use_causal_mask: queries see no later keys, besides.
        """
        if use_causal_mask:
            attention_mask = _both(attention_mask, self._compute_causal_mask(query, value))
        scores = td.einsum(self._dot_product_equation, key, query * self.key_dim**-0.5)
        return self._attended(scores, value, attention_mask, training, return_attention_scores)

    def call(
        self, query: Any, value: Any, key: Any = None, query_mask: Any = None,
        value_mask: Any = None, key_mask: Any = None, attention_mask: Any = None,
        return_attention_scores: bool = False, training: Any = None,
        use_causal_mask: bool = False,
    ) -> Any:  # fmt: skip
        key = value if key is None else key
        query_mask = mask_of(query) if query_mask is None else query_mask
        kept = self._compute_attention_mask(
            query, value, query_mask=query_mask, value_mask=value_mask, key_mask=key_mask,
            attention_mask=attention_mask, use_causal_mask=use_causal_mask,
        )  # fmt: skip
        gate = self._gate_dense(_bare(query)) if self.use_gate else None
        outputs, weights = self._compute_attention(
            self.query_dense(_bare(query)), self.key_dense(_bare(key)),
            self.value_dense(_bare(value)), kept, training, return_attention_scores,
        )  # fmt: skip
        outputs = self.output_dense(outputs if gate is None else outputs * gate)
        set_mask(outputs, query_mask)
        return (outputs, weights) if return_attention_scores else outputs

    def compute_output_shape(  # type: ignore[override]
        self, query_shape: Any, value_shape: Any, key_shape: Any = None
    ) -> Any:
        self._check_shapes(value_shape, value_shape if key_shape is None else key_shape)
        return (*query_shape[:-1], *(self._result_shape or query_shape[-1:]))


def _bare(x: td.Tensor) -> td.Tensor:
    """The tensor without its mask, which is not meant for the inner layers."""
    return x if mask_of(x) is None else td.identity(x)


class GroupQueryAttention(_Heads):
    """Attention of several heads, groups of which share their keys and values.

    Args:
        head_dim: the features of a query, key and value in a head.
        num_query_heads: the number of heads.
        num_key_value_heads: the number of groups, which divides that of the heads.
        dropout, use_bias, sliding_window, flash_attention, use_gate, kernel_initializer,
        bias_initializer, kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint,
        seed: as for MultiHeadAttention.
    """

    _name_in_files: ClassVar[str] = "GroupedQueryAttention"
    _config_names: ClassVar[tuple[str, ...]] = (
        "head_dim", "num_query_heads", "num_key_value_heads",
    )

    def __init__(
        self, head_dim: int, num_query_heads: int, num_key_value_heads: int,
        dropout: float = 0.0, use_bias: bool = True, sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, use_gate: bool = False, seed: int | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            dropout, use_bias, sliding_window, flash_attention, use_gate, seed,
            kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer, kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint, **kwargs,
        )  # fmt: skip
        if num_query_heads % num_key_value_heads:
            raise ValueError(
                f"GroupQueryAttention: num_key_value_heads={num_key_value_heads} must divide "
                f"num_query_heads={num_query_heads}"
            )
        self.head_dim, self.num_query_heads = head_dim, num_query_heads
        self.num_key_value_heads = num_key_value_heads
        self.num_repeats = num_query_heads // num_key_value_heads

    def build(self, query_shape: Any, value_shape: Any, key_shape: Any = None) -> None:  # type: ignore[override]
        key_shape = value_shape if key_shape is None else key_shape
        self.compute_output_shape(query_shape, value_shape, key_shape)
        own = (None, self.num_query_heads, self.head_dim)
        shared = (None, self.num_key_value_heads, self.head_dim)
        into = "bqm,muh->bquh"
        self._query_dense = self._projection("query", into, own, "uh", query_shape)
        self._key_dense = self._projection("key", into, shared, "uh", key_shape)
        if self.use_gate:
            self._gate_dense = self._projection("gate", into, own, "uh", query_shape, "sigmoid")
        self._value_dense = self._projection("value", into, shared, "uh", value_shape)
        self._dropout_layer = Dropout(self.dropout, seed=self.seed, dtype=self.dtype_policy)
        self._softmax = Softmax(dtype=self.dtype_policy)
        self._dot_product_equation = "bquh,bkuh->buqk"
        self._combine_equation = "buqk,bkuh->bquh"
        self._output_dense = self._projection(
            "attention_output", "bquh,uhm->bqm", (None, query_shape[-1]), "m",
            (query_shape[0], query_shape[1], self.num_query_heads, self.head_dim),
        )  # fmt: skip

    def call(
        self, query: Any, value: Any, key: Any = None, query_mask: Any = None,
        value_mask: Any = None, key_mask: Any = None, attention_mask: Any = None,
        return_attention_scores: bool = False, training: Any = None,
        use_causal_mask: bool = False,
    ) -> Any:  # fmt: skip
        self._return_attention_scores = return_attention_scores
        key = value if key is None else key
        kept = self._compute_attention_mask(
            query, value, query_mask=query_mask, value_mask=value_mask, key_mask=key_mask,
            attention_mask=attention_mask, use_causal_mask=use_causal_mask,
        )  # fmt: skip
        gate = self._gate_dense(_bare(query)) if self.use_gate else None
        outputs, weights = self._compute_attention(
            self._query_dense(_bare(query)),
            td.repeat(self._key_dense(_bare(key)), self.num_repeats, axis=2),
            td.repeat(self._value_dense(_bare(value)), self.num_repeats, axis=2),
            attention_mask=kept, training=training,
        )  # fmt: skip
        outputs = self._output_dense(outputs if gate is None else outputs * gate)
        return (outputs, weights) if return_attention_scores else outputs

    def _compute_attention(
        self, query: Any, key: Any, value: Any, attention_mask: Any = None, training: Any = None,
        use_causal_mask: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """What the heads give for projected queries, keys and values, and the weights; see
        `MultiHeadAttention`."""
        if use_causal_mask:
            attention_mask = _both(attention_mask, self._compute_causal_mask(query, value))
        scores = td.einsum(self._dot_product_equation, query * self.head_dim**-0.5, key)
        wanted = self._return_attention_scores
        return self._attended(scores, value, attention_mask, training, wanted)

    def compute_output_shape(  # type: ignore[override]
        self, query_shape: Any, value_shape: Any, key_shape: Any = None
    ) -> Any:
        key_shape = value_shape if key_shape is None else key_shape
        if query_shape[-1] != value_shape[-1] or value_shape[1:-1] != key_shape[1:-1]:
            raise ValueError(
                f'Layer "{self.name}" (GroupedQueryAttention): the last axes of query and value '
                "must be equal, and all axes of value and key but the last one: their shapes are "
                f"{query_shape}, {value_shape} and {key_shape}"
            )
        return tuple(query_shape)
