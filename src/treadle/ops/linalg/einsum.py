"""`einsum`: Einstein summation, by transposes, sums, and one matmul per pair of operands, or as one
sum of products where that costs less."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.tensor import Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import common_dtype, has_dtype
from treadle.ops.indexing.transposing import transpose
from treadle.ops.linalg.diagonals import diag_part
from treadle.ops.linalg.matrices import matmul
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.shaping.reshaping import reshape_to, with_dims


class _Term(NamedTuple):
    """A tensor and the label of each of its axes."""

    tensor: Tensor
    labels: tuple[str, ...]

    @property
    def sizes(self) -> dict[str, Dim]:
        return dict(zip(self.labels, self.tensor.dims, strict=True))


def einsum(equation: str, *inputs: Any, optimize: Any = None, name: str | None = None) -> Tensor:
    """The sum of products that `equation` names, such as ``"bij,bjk->bik"``.

    Without ``->`` the result's axes are the labels that appear once, in alphabetical order.
    ``...`` stands for leading axes that broadcast. `optimize` is accepted for TensorFlow programs.

    Raises:
        InvalidArgumentError: the equation does not fit the inputs.
    """
    known = next((x for x in inputs if has_dtype(x)), inputs[0] if inputs else None)
    tensors = [common_dtype("einsum", known, x)[1] for x in inputs]
    operands, result = _parse(equation, tensors)
    dims = _label_dims(tensors, operands)
    checked = [_checked(t, o, dims) for t, o in zip(tensors, operands, strict=True)]
    terms = [_no_repeats(t, labels) for t, labels in zip(checked, operands, strict=True)]
    return _arranged(_sum_out(_multiplied(terms, result), set(result)), result)


# -- the order of the products -------------------------------------------------------------------

CALL = 2000  # element operations that a product costs beside those of its elements
OPEN = 64  # what a dim that the trace leaves open is taken for
MATMUL = 8  # products that a matrix product computes while a fused sum computes one
MOST_ORDERED = 4  # operands of which all orders are compared; of more the cheapest pair is next


def _multiplied(terms: list[_Term], result: Sequence[str]) -> _Term:
    """The product of all terms, summed over what the result does not name, in the way that costs
    least: pair by pair, or all at once in one sum."""
    if len(terms) == 1:
        return terms[0]
    sizes = _sizes(terms)
    cost, pairs = _pairs([t.labels for t in terms], set(result), sizes)
    every = CALL + len(terms) * _count(set(sizes), sizes)
    real = not terms[0].tensor.dtype.is_complex
    if len(terms) > 2 and every < cost and real:
        return _all_at_once(terms, result)
    for i, j in pairs:
        a, b = terms[i], terms[j]
        terms = [t for k, t in enumerate(terms) if k not in (i, j)]
        needed = {label for t in terms for label in t.labels} | set(result)
        first, second = (b, a) if not terms and _is_turned(a, b, result) else (a, b)
        terms.append(_product(first, second, needed))
    return terms[0]


def _sizes(terms: Sequence[_Term]) -> dict[str, int]:
    """The size of each label; an axis of 1 broadcasts."""
    found: dict[str, int] = {}
    for term in terms:
        for label, dim in term.sizes.items():
            size = dim if isinstance(dim, int) else OPEN
            found[label] = max(found.get(label, 1), size)
    return found


def _count(labels: set[str], sizes: dict[str, int]) -> int:
    return math.prod(sizes[label] for label in labels)


def _pairs(
    terms: list[tuple[str, ...]], result: set[str], sizes: dict[str, int]
) -> tuple[float, list[tuple[int, int]]]:
    """The cheapest order of products and its cost. A pair names two of the terms that are left;
    their product becomes the last of these."""
    if len(terms) == 1:
        return 0.0, []
    ways = []
    for i, j in itertools.combinations(range(len(terms)), 2):
        rest = [t for k, t in enumerate(terms) if k not in (i, j)]
        both = set(terms[i]) | set(terms[j])
        needed = result.union(*rest)
        cost = CALL + _count(both, sizes) / MATMUL
        ways.append((cost, (i, j), [*rest, tuple(sorted(both & needed))]))
    if len(terms) > MOST_ORDERED:
        ways = [min(ways)]
    found = []
    for cost, pair, left in ways:
        later, pairs = _pairs(left, result, sizes)
        found.append((cost + later, [pair, *pairs]))
    return min(found)


def _all_at_once(terms: Sequence[_Term], result: Sequence[str]) -> _Term:
    """One sum of products over all labels: a single kernel."""
    order = list(dict.fromkeys([*result, *(label for t in terms for label in t.labels)]))
    total: Tensor | None = None
    for term in terms:
        kept = [label for label in order if label in term.labels]
        sizes = term.sizes
        dims = tuple(sizes.get(label, 1) for label in order)
        x = reshape_to(_arranged(term, tuple(kept)), dims)
        total = x if total is None else total * x
    assert total is not None
    over = list(range(len(result), len(order)))
    return _Term(reduce_sum(total, over) if over else total, tuple(result))


def _fail(equation: str, message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        None, None, f"einsum {equation!r}: {message}{at(user_origin())}"
    )


def _parse(
    equation: str, tensors: Sequence[Tensor]
) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The labels of every operand and of the result; those of ``...`` are "0", "1", ..."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(tensors):
        raise _fail(equation, f"{len(parts)} operands are named and {len(tensors)} given")
    spans = [_ellipsis_rank(equation, p, t) for p, t in zip(parts, tensors, strict=True)]
    operands = [_labels(equation, p, n) for p, n in zip(parts, spans, strict=True)]
    widest = max(spans)
    if arrow:
        result = _labels(equation, right, widest)
    else:
        named = sorted(set(left) - set(",."))
        result = (*_dots(widest), *(c for c in named if left.count(c) == 1))
    _check(equation, tensors, operands, result)
    return operands, result


def _ellipsis_rank(equation: str, part: str, tensor: Tensor) -> int:
    named = len(part.replace("...", ""))
    span = tensor.ndim - named
    if span < 0 or (span and "..." not in part):
        raise _fail(equation, f"{part!r} does not name the {tensor.ndim} axes of {tensor.shape}")
    return span


def _dots(count: int) -> tuple[str, ...]:
    """Labels of the axes of ``...``, counted from the right so that they align."""
    return tuple(str(i) for i in range(count - 1, -1, -1))


def _labels(equation: str, part: str, span: int) -> tuple[str, ...]:
    before, dots, after = part.partition("...")
    if any(not c.isalpha() for c in before + after):
        raise _fail(equation, f"{part!r} is not a list of letters")
    return (*before, *(_dots(span) if dots else ()), *after)


def _check(
    equation: str,
    tensors: Sequence[Tensor],
    operands: Sequence[tuple[str, ...]],
    result: tuple[str, ...],
) -> None:
    sizes: dict[str, Dim] = {}
    for tensor, labels in zip(tensors, operands, strict=True):
        for label, dim in zip(labels, tensor.dims, strict=True):
            known = sizes.setdefault(label, dim)
            if isinstance(known, int) and isinstance(dim, int) and known != dim:
                if not label.isdigit() or 1 not in (known, dim):
                    raise _fail(equation, f"{label!r} is {known} in one place and {dim} in another")
                sizes[label] = max(known, dim)
    if len(set(result)) != len(result) or not set(result) <= set(sizes):
        raise _fail(equation, "the result must name axes of the operands, each once")


def _label_dims(tensors: Sequence[Tensor], operands: Sequence[tuple[str, ...]]) -> dict[str, Dim]:
    """The size of every label, a known one where there is one."""
    sizes: dict[str, Dim] = {}
    for tensor, labels in zip(tensors, operands, strict=True):
        for label, dim in zip(labels, tensor.dims, strict=True):
            if label not in sizes or isinstance(dim, int):
                sizes[label] = dim
    return sizes


def _checked(tensor: Tensor, labels: tuple[str, ...], sizes: dict[str, Dim]) -> Tensor:
    """The tensor, checked to have the sizes of its labels; only axes of ``...`` broadcast."""
    pairs = zip(labels, tensor.dims, strict=True)
    return with_dims(tensor, tuple(d if c.isdigit() else sizes[c] for c, d in pairs))


def _no_repeats(tensor: Tensor, labels: tuple[str, ...]) -> _Term:
    """Axes with one label become the diagonal over them."""
    for label in labels:
        if labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            rest = [i for i in range(len(labels)) if i not in (first, second)]
            tensor = diag_part(transpose(tensor, [*rest, first, second]))
            return _no_repeats(tensor, (*(labels[i] for i in rest), label))
    return _Term(tensor, labels)


def _sum_out(term: _Term, kept: set[str]) -> _Term:
    """The term summed over the axes that nothing names later."""
    over = [i for i, label in enumerate(term.labels) if label not in kept]
    if not over:
        return term
    labels = tuple(label for label in term.labels if label in kept)
    return _Term(reduce_sum(term.tensor, over), labels)


def _arranged(term: _Term, labels: tuple[str, ...]) -> Tensor:
    return transpose(term.tensor, [term.labels.index(label) for label in labels])


def _product(a: _Term, b: _Term, needed: set[str]) -> _Term:
    """Both terms multiplied and summed over what is not needed any more, by a batched matmul."""
    a, b = _sum_out(a, needed | set(b.labels)), _sum_out(b, needed | set(a.labels))
    shared = [label for label in a.labels if label in b.labels]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    rows = [label for label in a.labels if label not in shared]
    columns = [label for label in b.labels if label not in shared]
    sizes = {**b.sizes, **a.sizes}
    lead = tuple(_batch_size(a, b, label) for label in batch)
    # Where one matrix serves all rows, their axes stay as they are. Other operands keep the last
    # axis that they have: the product takes either.
    apart = bool(rows) and not batch
    turn_a = bool(rows and inner) and not apart and a.labels[-1] in rows
    turn_b = bool(columns and inner) and b.labels[-1] in inner
    left = _matrices(a, batch, *((inner, rows) if turn_a else (rows, inner)), lead, apart)
    right = _matrices(b, batch, *((columns, inner) if turn_b else (inner, columns)), lead)
    dims = (*lead, *(sizes[x] for x in rows), *(sizes[x] for x in columns))
    total = matmul(left, right, transpose_a=turn_a, transpose_b=turn_b)
    return _Term(reshape_to(total, dims), (*batch, *rows, *columns))


def _is_turned(a: _Term, b: _Term, result: Sequence[str]) -> bool:
    """Whether the result has the axes of b alone before those of a alone: b times a is it as it is,
    a times b would have to be transposed."""
    rows, columns = set(a.labels) - set(b.labels), set(b.labels) - set(a.labels)
    of_rows = [place for place, label in enumerate(result) if label in rows]
    of_columns = [place for place, label in enumerate(result) if label in columns]
    return bool(of_rows and of_columns) and max(of_columns) < min(of_rows)


def _batch_size(a: _Term, b: _Term, label: str) -> Dim:
    """The common size of a batch axis; a size of 1 broadcasts."""
    return b.sizes[label] if a.sizes[label] == 1 else a.sizes[label]


def _matrices(
    term: _Term, batch: list[str], rows: list[str], columns: list[str], lead: tuple[Dim, ...],
    apart: bool = False,
) -> Tensor:  # fmt: skip
    """The term as one matrix per batch position; its rows as one axis, or `apart`."""
    x = _arranged(term, (*batch, *rows, *columns))
    sizes = term.sizes
    row_dims, column_dims = [sizes[r] for r in rows], [sizes[c] for c in columns]
    x = broadcast_dims(x, (*lead, *row_dims, *column_dims))
    joined = row_dims if apart else [product(row_dims)]
    return reshape_to(x, (*lead, *joined, product(column_dims)))
