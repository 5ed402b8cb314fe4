"""Random programs on strings: eager and compiled they give the same."""

import random

import numpy as np
import pytest

import treadle as td

PROGRAMS = 60


def with_a_branch(x):
    return td.cond(td.reduce_any(x == "a"), lambda: x + "T", lambda: x + "F")


def with_a_loop(x):
    return td.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a + td.as_string(i)), (0, x))[1]


def first_ones(x):
    """As many rows as the strings have bytes, at most."""
    total = td.strings.length(td.strings.reduce_join(x))
    return td.boolean_mask(x, td.range(td.shape(x)[0]) < total)


ANY_RANK = [
    lambda x: x + "!", lambda x: "é" + x, lambda x: td.where(x == "a", x, "z"), td.strings.upper,
    td.strings.strip, lambda x: td.strings.regex_replace(x, "[aeiou]", r"<\0>"), td.identity,
    lambda x: td.strings.join([x, x], "-"), lambda x: td.as_string(td.strings.length(x)),
    lambda x: td.as_string(td.strings.to_hash_bucket_fast(x, 10)), lambda x: td.stack([x, x + "?"]),
    lambda x: td.expand_dims(x, 0), lambda x: td.strings.substr(x, 0, 3), with_a_branch,
    lambda x: td.zeros_like(x) + x, lambda x: td.reshape(x, [-1]), with_a_loop,
]  # fmt: skip
VECTORS = [
    lambda x: x[::-1], lambda x: td.concat([x, x[:1]], 0), lambda x: td.gather(x, [0, 0]),
    lambda x: td.reverse(x, [0]), lambda x: td.strings.reduce_join(x, axis=0, separator=","),
    first_ones, td.transpose, lambda x: td.roll(x, 1, 0), lambda x: x[0],
    lambda x: td.tile(x, [2] + [1] * (x.ndim - 1)),
    lambda x: td.pad(x, [[1, 0]] + [[0, 0]] * (x.ndim - 1)),
]  # fmt: skip


def _pieces(x):
    pieces = td.strings.split(x, "-")
    return pieces if isinstance(pieces, td.Tensor) else pieces.to_tensor()


def choice(rng, x):
    known = [*ANY_RANK]
    if x.ndim:
        known += VECTORS
    if x.ndim < 3:
        known.append(lambda x: _pieces(x))
    return rng.choice(known)


def argument(rng):
    shape = rng.choice([(), (3,), (2, 2), (1, 3)])
    words = [rng.choice(["a", "b", "", "a-b", "é", "x y"]) for _ in range(int(np.prod(shape)))]
    return td.constant(np.array(words, object).reshape(shape))


def program(seed):
    """A function of a tensor of strings that gives all values on its way."""

    @td.autograph.experimental.do_not_convert
    def run(x):
        rng, found = random.Random(seed), []
        while len(found) < 6 and x.ndim < 5:
            x = choice(rng, x)(x)
            found.append(x)
        return found

    return run


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_compiled_programs_give_what_eager_ones_give(seed, monkeypatch):
    monkeypatch.setenv("TREADLE_STRICT", "1")
    run, x = program(seed), argument(random.Random(seed))
    for eager, compiled in zip(run(x), td.function(run)(x), strict=True):
        assert eager.dtype is compiled.dtype and eager.shape == compiled.shape
        assert np.asarray(eager).tolist() == np.asarray(compiled).tolist()
