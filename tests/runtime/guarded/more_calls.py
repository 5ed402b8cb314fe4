"""Random calls of matrix functions, transforms, counts, index arrays, loops, lists, variables."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

import treadle as td
from tests.runtime.guarded.registry import (
    REALS,
    Call,
    Input,
    axis,
    call,
    dim,
    dims,
    number,
)
from treadle.ops.indexing.updates import set_item

# -- matrices --------------------------------------------------------------------------------------


def _square(r: Random) -> tuple[int, ...]:
    n = r.choice([0, 1, 2, 3, 4, 5, 8, 9, 17, 33])
    return (*dims(r, 0, 2), n, n)


def _regular(x: Any) -> Any:
    """Symmetric matrices without small eigenvalues, made from any ones."""
    n = td.shape(x)[-2]
    scale = td.cast((n + 1) * (n + 1), x.dtype)
    return td.matmul(x, x, transpose_b=True) / scale + 2 * td.eye(n, dtype=x.dtype)


@call
def matrix_function(r: Random) -> Call:
    shape = _square(r)
    name = r.choice(["cholesky", "inv", "det", "slogdet", "logdet", "eigvalsh", "adjoint"])
    fn = getattr(td.linalg, name)
    x = Input(r.choice(("float32", "float32", "float64")), shape, finite=True)
    if r.random() < 0.1:
        x.shape = dims(r, 0, 3)
    return Call(name, lambda x: fn(_regular(x)), [x], differentiable=name in ("inv", "det"))


@call
def factors(r: Random) -> Call:
    """Factorisations whose factors have signs of their own: their product is compared."""
    shape, name = _square(r), r.choice(["eigh", "qr", "svd"])
    if name != "eigh":
        shape = (*shape[:-1], dim(r))

    def function(x: Any) -> Any:
        if name == "eigh":
            values, vectors = td.linalg.eigh(_regular(x))
            return values, td.matmul(vectors * values[..., None, :], vectors, transpose_b=True)
        if name == "qr":
            q, rest = td.linalg.qr(x)
            return td.matmul(q, rest), td.abs(rest)
        s, u, v = td.linalg.svd(x)
        return s, td.matmul(u * s[..., None, :], v, transpose_b=True)

    x = Input(r.choice(("float32", "float64")), shape, finite=True)
    return Call(name, function, [x], differentiable=False)


@call
def solve(r: Random) -> Call:
    shape = _square(r)
    right = (*shape[:-1], dim(r))
    name = r.choice(["solve", "cholesky_solve", "triangular_solve", "lstsq"])
    lower, adjoint = r.random() < 0.5, r.random() < 0.5

    def function(a: Any, b: Any) -> Any:
        a = _regular(a)
        if name == "triangular_solve":
            return td.linalg.triangular_solve(a, b, lower=lower, adjoint=adjoint)
        if name == "cholesky_solve":
            return td.linalg.cholesky_solve(td.linalg.cholesky(a), b)
        return getattr(td.linalg, name)(a, b)

    dtype = r.choice(("float32", "float64"))
    inputs = [Input(dtype, shape, finite=True), Input(dtype, right, finite=True)]
    return Call(f"{name} {lower} {adjoint}", function, inputs, differentiable=name == "solve")


@call
def bands(r: Random) -> Call:
    shape = dims(r, 1, 3)
    below, above = (min(max(number(r, -1, 4), -3), 60) for _ in range(2))
    return Call(
        f"band_part {below} {above}",
        lambda x: td.linalg.band_part(x, below, above),
        [Input(r.choice(REALS), shape)],
    )


@call
def clipped_norms(r: Random) -> Call:
    shape = dims(r, 0, 3)
    text, fn = r.choice(
        [
            ("clip_by_norm", lambda x, y: td.clip_by_norm(x, 2.0)),
            ("global_norm", lambda x, y: td.linalg.global_norm([x, y])),
            ("clip_by_global_norm", lambda x, y: td.clip_by_global_norm([x, y], 1.5)),
            ("add_n", lambda x, y: td.add_n([x, y, x])),
            (
                "weighted cross entropy",
                lambda x, y: td.nn.weighted_cross_entropy_with_logits(y, x, 0.5),
            ),
            ("shape_n", lambda x, y: td.shape_n([x, y])),
        ]
    )
    return Call(text, fn, [Input("float32", shape), Input("float32", shape)])


THREE = ["ij,jk,kl->il", "i,ij,j->", "bi,ij,bj->b", "ij,ik,il->jkl", "a,b,c->abc", "ij,ij,ij->i"]


@call
def einsum_of_three(r: Random) -> Call:
    equation = r.choice(THREE)
    sizes = {c: dim(r) for c in equation if c.isalpha()}
    parts = equation.split("->")[0].split(",")
    return Call(
        f"einsum {equation}",
        lambda *xs: td.einsum(equation, *xs),
        [Input("float32", tuple(sizes[c] for c in part), finite=True) for part in parts],
    )


@call
def complex_numbers(r: Random) -> Call:
    shape = dims(r, 0, 3)
    product = td.matmul
    text, fn = r.choice(
        [
            ("complex product", lambda x, y: td.complex(x, y) * td.complex(y, x)),
            ("complex matmul", lambda x, y: product(td.complex(x, y), td.complex(y, x), False, 1)),
            ("angle", lambda x, y: td.math.angle(td.complex(x, y))),
            ("complex exp", lambda x, y: td.exp(td.complex(x, y) * 0.1)),
            ("complex sum", lambda x, y: td.reduce_sum(td.complex(x, y), -1)),
            ("complex abs", lambda x, y: td.abs(td.complex(x, y)) <= 2.0),
        ]
    )  # fmt: skip
    inputs = [Input(r.choice(("float32", "float64")), shape, finite=True) for _ in range(2)]
    inputs[1].dtype = inputs[0].dtype
    return Call(text, fn, inputs, differentiable=False)


@call
def fourier(r: Random) -> Call:
    shape, name = dims(r, 1, 3), r.choice(["fft", "ifft", "rfft", "irfft", "fft2", "ifft2"])
    n = r.choice([None, None, min(max(number(r, 1, 9), -2), 60)])
    if name == "irfft" and n is None:
        n = 8  # of an open size it must be told
    at = axis(r, len(shape))
    rest = () if name.endswith("2") else (n, at)
    kinds = ("float32", "float64") if name == "rfft" else ("float32", "complex64", "float64")

    def transform(x: Any) -> Any:
        if name == "irfft" and x.shape[at] == 0:
            return td.zeros([8])  # NumPy's own function reads an element that is not there
        return td.convert_to_tensor(getattr(np.fft, name)(x, *rest))

    return Call(
        f"{name} {rest}",
        transform,
        [Input(r.choice(kinds), shape, finite=True)],
        differentiable=False,
        raises="anything",  # eagerly it is NumPy's function
    )


# -- counts ----------------------------------------------------------------------------------------


@call
def counts(r: Random) -> Call:
    size, bins = dim(r), min(max(number(r, 1, 8), -2), 60)
    least, most = (r.choice([None, min(max(number(r, 0, 9), -3), 60)]) for _ in range(2))
    values = Input("int32", (size,), 9)
    text, fn = r.choice(
        [
            (f"bincount {least} {most}", lambda i, x: td.math.bincount(i, None, least, most)),
            (f"weighted bincount {most}", lambda i, x: td.math.bincount(i, x, least, most)),
            (
                f"histogram {bins}",
                lambda i, x: td.histogram_fixed_width(x, [-2.0, 2.0], bins),
            ),
            (
                f"histogram bins {bins}",
                lambda i, x: td.histogram_fixed_width_bins(x, [-1.0, 1.0], bins),
            ),
        ]
    )
    return Call(text, fn, [values, Input("float32", (size,), finite=True)], differentiable=False)


# -- positions by arrays ---------------------------------------------------------------------------


def _positions(r: Random, shape: tuple[int, ...]) -> tuple[str, Any, list[Input]]:
    """A key made from index arrays and other parts: its text, what makes it, and the arrays."""
    parts: list[Any] = []
    inputs: list[Input] = []
    common = dims(r, 0, 2)
    for d in shape[: r.randint(1, len(shape))]:
        chance = r.random()
        if chance < 0.55:
            given = common if r.random() < 0.8 else tuple(1 for _ in common)
            inputs.append(Input(r.choice(("int32", "int64")), given, d))
            parts.append(None)
        elif chance < 0.8:
            parts.append(slice(r.choice([None, number(r, 0, d)]), None, r.choice([None, 1, 2, -1])))
        else:
            parts.append(number(r, -d, d - 1))

    def key(arrays: tuple[Any, ...]) -> Any:
        left = list(arrays)
        return tuple(left.pop(0) if p is None else p for p in parts)

    return str(parts), key, inputs


@call
def read_by_arrays(r: Random) -> Call:
    shape = dims(r, 1, 3)
    text, key, inputs = _positions(r, shape)
    return Call(
        f"x[{text}]",
        lambda x, *i: x[key(i)],
        [Input(r.choice(("float32", "int32")), shape), *inputs],
    )


@call
def write_by_arrays(r: Random) -> Call:
    shape = dims(r, 1, 3)
    text, key, inputs = _positions(r, shape)
    add = r.random() < 0.4 and "slice" not in text  # such a key may be for reading only

    def function(x: Any, v: Any, *i: Any) -> Any:
        k = key(i)
        return set_item(x, k, x[k] + v if add else v)

    one = Input("float32", ())
    return Call(
        f"x[{text}] {'+' * add}= v", function, [Input("float32", shape), one, *inputs], False
    )


@call
def write_of_parts(r: Random) -> Call:
    """Parts whose bounds are data, overlapping or not, read and written."""
    n = dim(r)
    text, fn = r.choice(
        [
            ("x[i:j] = y[i:j]", lambda x, y, i, j: set_item(x, slice(i, j), y[i:j])),
            ("x[i:] = x[:-i]", lambda x, y, i, j: set_item(x, slice(i, None), x[:-i])),
            ("x[:i] += x[j:j+i]", lambda x, y, i, j: set_item(x, slice(i), x[:i] + x[j : j + i])),
            ("x[i] = y[j]", lambda x, y, i, j: set_item(x, i, y[j])),
            ("x[i:j:2] = 1", lambda x, y, i, j: set_item(x, slice(i, j, 2), 1.0)),
            ("x[::-1][i:]", lambda x, y, i, j: td.reverse(x, [0])[i:] * y[: td.shape(x)[0] - i]),
            ("dot", lambda x, y, i, j: td.reduce_sum(x[i:j] * y[i:j])),
            ("x[y > 0] = i", lambda x, y, i, j: set_item(x, y > 0, td.cast(i, td.float32))),
        ]
    )  # fmt: skip
    place = Input("int32", (), max(n, 1))
    return Call(text, fn, [Input("float32", (n,)), Input("float32", (n,)), place, place], False)


@call
def loops(r: Random) -> Call:
    """Loops whose parts have sizes that only they know."""
    n, m = dim(r), dim(r)

    def over(step: Any) -> Any:
        def function(a: Any, x: Any, k: Any) -> Any:
            def body(i: Any, a: Any, x: Any) -> Any:
                return (i + 1, *step(i, a, x))

            zero, count = td.zeros_like(k), td.maximum(k, 1)  # what never runs is traced, too
            return td.while_loop(lambda i, a, x: i < count, body, [zero, a, x])[1:]

        return function

    matvec = td.linalg.matvec

    def corner(i: Any) -> Any:
        return slice(i, None), slice(i, None)

    text, step = r.choice(
        [
            ("row sums", lambda i, a, x: (a, set_item(x, i, td.reduce_sum(a[i, :i])))),
            ("prefixes", lambda i, a, x: (a, set_item(x, i, td.reduce_sum(x[:i]) + 1.0))),
            ("dots", lambda i, a, x: (a, set_item(x, i, x[i] - td.reduce_sum(a[i, :i] * x[:i])))),
            ("matvec", lambda i, a, x: (set_item(a, (i, slice(i)), matvec(a[:i, :i], x[:i])), x)),
            ("outer", lambda i, a, x: (set_item(a, corner(i), a[i:, i:] * 0.5), x)),
            ("rows", lambda i, a, x: (set_item(a, i, a[i - 1] + x), x)),
            ("elements", lambda i, a, x: (set_item(a, (i, i), a[i, 0] + x[i]), x)),
            ("products", lambda i, a, x: (a, x + matvec(td.matmul(a[:, :i], a[:i, :]), x))),
            ("maximum", lambda i, a, x: (a, set_item(x, i, td.reduce_max(a[i:, i])))),
            ("sorted", lambda i, a, x: (a, set_item(x, slice(i, None), td.sort(x[i:])))),
            ("columns", lambda i, a, x: (set_item(a, (slice(None), i), a[:, i] + x), x)),
        ]
    )  # fmt: skip
    shape = (n, n) if r.random() < 0.7 else (n, m)
    inputs = [
        Input("float32", shape, finite=True),
        Input("float32", (n,), finite=True),
        Input("int32", (), n + 1),
    ]
    return Call(f"loop of {text}", over(step), inputs, differentiable=False)


# -- lists and variables ---------------------------------------------------------------------------


@call
def arrays_of_tensors(r: Random) -> Call:
    n, shape = r.choice([0, 1, 2, 3, 5, 9]), dims(r, 0, 2)
    dynamic = r.random() < 0.5

    def array(x: Any, size: int | None = None) -> Any:
        count = td.shape(x)[0] if size is None else size
        return td.TensorArray(x.dtype, size=count, dynamic_size=dynamic)

    def written(x: Any, i: Any) -> Any:
        return array(x).unstack(x).write(i, x[0] * 2).stack()

    def squares(x: Any, i: Any) -> Any:
        def body(k: Any, a: Any) -> Any:
            return k + 1, a.write(k, x[k] * x[k])

        count = td.maximum(i, 1)  # the shape of a list that nothing was written to is not known
        return td.while_loop(lambda k, a: k < count, body, [td.zeros_like(i), array(x)])[1].stack()

    def sums(x: Any, i: Any) -> Any:
        a = array(x).unstack(x)

        def body(k: Any, total: Any) -> Any:
            return k + 1, total + a.read(k)

        zero = td.zeros_like(i)
        return td.while_loop(lambda k, t: k <= i, body, [zero, td.zeros(td.shape(x)[1:])])[1]

    text, fn = r.choice(
        [
            ("write", written),
            ("read", lambda x, i: array(x).unstack(x).read(i)),
            ("gather", lambda x, i: array(x).unstack(x).gather(td.stack([i, 0, i]))),
            ("scatter", lambda x, i: array(x).scatter(td.stack([i]), x[:1]).stack()),
            ("concat", lambda x, i: array(x).unstack(x).concat()),
            ("squares", squares),
            ("sums", sums),
            ("never written", lambda x, i: array(x, 3).write(i, x[0]).read(1)),
        ]
    )
    inputs = [Input("float32", (n, *shape)), Input("int32", (), max(n, 1))]
    return Call(f"TensorArray {text} {dynamic}", fn, inputs, differentiable=False)


@call
def variables(r: Random) -> Call:
    shape = tuple(max(d, 1) for d in dims(r, 1, 2))
    v = td.Variable(np.zeros(shape, np.float32))
    rest = shape[1:]

    def scattered(name: str) -> Any:
        def function(x: Any, i: Any, u: Any) -> Any:
            v.assign(x)
            getattr(v, name)(i[:, None], u)
            return v.read_value()

        return function

    def assigned(key: Any, add: bool = False) -> Any:
        def function(x: Any, i: Any, u: Any) -> Any:
            v.assign(x)
            k = key(i)
            before = v.read_value()
            v.assign(set_item(before, k, before[k] + 1.0 if add else 2.0))
            return v.read_value(), before

        return function

    text, fn = r.choice(
        [
            *((name, scattered(name)) for name in ("scatter_nd_add", "scatter_nd_update")),
            ("v[i[0]] = 2", assigned(lambda i: i[0])),
            ("v[:i[0]] += 1", assigned(lambda i: slice(0, i[0]), True)),
            ("v[i] = 2", assigned(lambda i: i)),
            ("v[1:] += 1", assigned(lambda i: slice(1, None), True)),
        ]
    )
    count = r.choice([0, 1, 1, 2, 3, 5])
    inputs = [
        Input("float32", shape),
        Input("int32", (count,), shape[0]),
        Input("float32", (count, *rest)),
    ]
    return Call(f"variable {text}", fn, inputs, differentiable=False)


@call
def drawn(r: Random) -> Call:
    shape, n = dims(r, 0, 3), min(max(number(r, 0, 5), -2), 40)
    return Call(
        f"stateless_categorical {n}",
        lambda x: td.random.stateless_categorical(x, n, [3, 4]),
        [Input("float32", shape, finite=True)],
        differentiable=False,
    )


@call
def windows(r: Random) -> Call:
    """Pools of other ranks than images."""
    shape = (*dims(r, 2, 4), r.choice([1, 2, 5]))
    rank = len(shape) - 2
    name, padding = r.choice(["avg_pool", "max_pool"]), r.choice(["SAME", "VALID"])
    size, stride = [r.randint(1, 4) for _ in range(rank)], [r.randint(1, 3) for _ in range(rank)]
    return Call(
        f"{name} {size} {stride} {padding}",
        lambda x: getattr(td.nn, name)(x, size, stride, padding),
        [Input("float32", shape)],
    )
