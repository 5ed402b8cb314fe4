"""The numbers that NumPy's older generator and Python's draw, as functions of its state.

Both generators are a Mersenne Twister. A `State` has its 624 words and the place of the next one in
one array, in either order, as they are in memory. The functions are written for arrays and numbers,
as users write theirs: a jitted function that draws numbers calls them while it is traced, so that
drawing is a part of its program. They draw the words that NumPy and Python draw, in the same order,
and make the same numbers of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_WORDS, _NEAR = 624, 397
_UPPER, _LOWER, _TWIST = 0x80000000, 0x7FFFFFFF, 0x9908B0DF
_ALL = 0xFFFFFFFF


class State(NamedTuple):
    """The state of a generator.

    Attributes:
        words: the 624 words, and the place of the next one among them.
        first, place: where the words begin, and where that place is.
        held, kept: NumPy draws normal numbers by twos: whether the second one is held, and it.
    """

    words: Any
    first: int
    place: int
    held: Any = None
    kept: Any = None


def _refill(words: Any, first: int) -> None:
    """The next 624 words."""
    for i in range(_WORDS):
        y = (int(words[first + i]) & _UPPER) | (int(words[first + (i + 1) % _WORDS]) & _LOWER)
        near = int(words[first + (i + _NEAR) % _WORDS])
        words[first + i] = near ^ (y >> 1) ^ ((y & 1) * _TWIST)


def _word(state: Any) -> Any:
    """32 random bits, as an int."""
    words, first, place = state.words, state.first, state.place
    if words[place] == _WORDS:
        _refill(words, first)
        words[place] = 0
    y = int(words[first + int(words[place])])
    words[place] += 1
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return y ^ (y >> 18)


def _two_words(state: Any) -> Any:
    """64 random bits, as an int. A loop has them, so that programs have a word's code once."""
    bits, count = 0, 0
    while count < 2:
        bits = (bits << 32) | _word(state)
        count += 1
    return bits


def _double(state: Any) -> Any:
    """A number of [0, 1): 27 bits of a word, and 26 of the next one."""
    bits = _two_words(state)
    high, low = (bits >> 37) & 0x7FFFFFF, (bits >> 6) & 0x3FFFFFF
    return (high * 67108864.0 + low) / 9007199254740992.0


def _normal(state: Any) -> Any:
    """A number of the standard normal distribution, by the polar method."""
    held, kept = state.held, state.kept
    if held[0] != 0:
        found = float(kept[0])
        held[0], kept[0] = 0, 0.0
    else:
        x, y, square = 0.0, 0.0, 0.0
        while square >= 1.0 or square == 0.0:
            x = 2.0 * _double(state) - 1.0
            y = 2.0 * _double(state) - 1.0
            square = x * x + y * y
        factor = math.sqrt(-2.0 * math.log(square) / square)
        held[0], kept[0] = 1, factor * x
        found = factor * y
    return found


def _exponential(state: Any) -> Any:
    return -math.log(1.0 - _double(state))


def _up_to(state: Any, most: Any) -> Any:
    """An int from 0 to `most`: as many bits as it has, until they are not more."""
    mask = most
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> shift
    value = 0
    if most > _ALL:
        value = _two_words(state) & mask
        while value > most:
            value = _two_words(state) & mask
    elif most > 0:
        value = _word(state) & mask
        while value > most:
            value = _word(state) & mask
    return value


def filled(state: Any, draw: Any, size: Any, dtype: Any = np.float64) -> Any:
    """One number that `draw` gives, or an array of them."""
    if size is None:
        return draw(state)
    made = np.empty(size, dtype)
    flat = made.reshape(-1)
    for i in range(len(flat)):
        flat[i] = draw(state)
    return made


def shape_of(size: Any, *parameters: Any) -> Any:
    """The shape of a result for parameters that may be arrays."""
    if size is not None or all(np.ndim(p) == 0 for p in parameters):
        return size
    return np.broadcast_shapes(*(np.shape(p) for p in parameters))


def mixed(array: Any, state: Any, up_to: Any) -> None:
    """Shuffle an array along its first axis; `up_to` draws an int from 0 to another one."""
    for i in range(len(array) - 1, 0, -1):
        j = up_to(state, i)
        held = array[i].copy()
        array[i] = array[j]
        array[j] = held


def shuffled(state: Any, x: Any, up_to: Any) -> None:
    """`mixed`, of an array or a list."""
    if isinstance(x, np.ndarray):
        mixed(x, state, up_to)
    else:
        items = [*x]
        for i in range(len(items) - 1, 0, -1):
            j = up_to(state, i)
            items[i], items[j] = items[j], items[i]
        x[:] = items


def permuted(state: Any, x: Any, up_to: Any) -> Any:
    """The parts of an array along its first axis in another order, or the ints below a number."""
    if np.ndim(x) == 1:
        made = np.array(x)
        mixed(made, state, up_to)
        return made
    order = np.arange(len(x) if np.ndim(x) else x)
    mixed(order, state, up_to)
    return np.asarray(x)[order] if np.ndim(x) else order


# -- numpy.random ----------------------------------------------------------------------------------


def random_sample(state: Any, size: Any = None) -> Any:
    return filled(state, _double, size)


def rand(state: Any, *dims: Any) -> Any:
    return filled(state, _double, dims if dims else None)


def randn(state: Any, *dims: Any) -> Any:
    return filled(state, _normal, dims if dims else None)


def standard_normal(state: Any, size: Any = None) -> Any:
    return filled(state, _normal, size)


def standard_exponential(state: Any, size: Any = None) -> Any:
    return filled(state, _exponential, size)


def uniform(state: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    return low + (high - low) * filled(state, _double, shape_of(size, low, high))


def normal(state: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    return loc + scale * filled(state, _normal, shape_of(size, loc, scale))


def exponential(state: Any, scale: Any = 1.0, size: Any = None) -> Any:
    return scale * filled(state, _exponential, shape_of(size, scale))


def lognormal(state: Any, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
    found = normal(state, mean, sigma, size)
    return np.exp(found) if np.ndim(found) else math.exp(found)


def randint(state: Any, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
    if high is None:
        low, high = 0, low
    low, most = int(low), int(high) - 1 - int(low)
    if most < 0:
        raise ValueError("low >= high")
    if size is None:
        found = low + _up_to(state, most)
        return found if dtype is int else np.array(found, dtype)[()]
    made = np.empty(size, np.int64)
    flat = made.reshape(-1)
    for i in range(len(flat)):
        flat[i] = low + _up_to(state, most)
    return made.astype(dtype)


def shuffle(state: Any, x: Any) -> None:
    shuffled(state, x, _up_to)


def permutation(state: Any, x: Any) -> Any:
    return permuted(state, x, _up_to)


def choice(state: Any, a: Any, size: Any = None, replace: Any = True, p: Any = None) -> Any:
    count = len(a) if np.ndim(a) else a
    if not replace:
        if p is not None:
            raise NotImplementedError("replace=False with p=")
        total = 1 if size is None else int(np.prod(size))
        if total > count:
            raise ValueError("Cannot take a larger sample than population when 'replace=False'")
        places = permutation(state, count)[:total]
        places = places[0] if size is None else places.reshape(size)
    elif p is None:
        places = randint(state, 0, count, size)
    else:
        shares = np.cumsum(np.asarray(p))
        places = np.searchsorted(shares / shares[-1], filled(state, _double, size), side="right")
        places = int(places) if size is None else places
    return np.asarray(a)[places] if np.ndim(a) else places


def seed(state: Any, value: Any) -> None:
    """The words that NumPy makes of an int."""
    words, first, held, kept = state.words, state.first, state.held, state.kept
    if value < 0 or value > _ALL:
        raise ValueError("Seed must be between 0 and 2**32 - 1")
    word = int(value)
    for i in range(_WORDS):
        words[first + i] = word
        word = (1812433253 * (word ^ (word >> 30)) + i + 1) & _ALL
    words[state.place] = _WORDS
    held[0], kept[0] = 0, 0.0


OF_NUMPY: dict[str, Callable[..., Any]] = {
    "random_sample": random_sample, "random": random_sample, "sample": random_sample,
    "ranf": random_sample, "rand": rand, "randn": randn, "standard_normal": standard_normal,
    "standard_exponential": standard_exponential, "uniform": uniform, "normal": normal,
    "exponential": exponential, "lognormal": lognormal, "randint": randint, "shuffle": shuffle,
    "permutation": permutation, "choice": choice, "seed": seed,
}  # fmt: skip
WITH_NORMALS = (randn, standard_normal, normal, lognormal, seed)  # they take all of the state


# -- Python's random -------------------------------------------------------------------------------


def _below(state: Any, count: Any) -> Any:
    """An int from 0 to ``count - 1``: the upper bits of a word, as many as `count` has."""
    bits = 0
    while count >> bits:
        bits += 1
    if bits > 32:
        raise OverflowError("random ints of more than 32 bits are not drawn in jitted functions")
    value = _word(state) >> (32 - bits)
    while value >= count:
        value = _word(state) >> (32 - bits)
    return value


def python_random(state: Any) -> Any:
    return _double(state)


def python_uniform(state: Any, a: Any, b: Any) -> Any:
    return a + (b - a) * _double(state)


def randrange(state: Any, start: Any, stop: Any = None, step: Any = 1) -> Any:
    if stop is None:
        start, stop = 0, start
    count = (stop - start + step - 1) // step if step > 0 else (stop - start + step + 1) // step
    if count <= 0:
        raise ValueError("empty range in randrange")
    return start + step * _below(state, count)


def python_randint(state: Any, a: Any, b: Any) -> Any:
    return randrange(state, a, b + 1)


def python_choice(state: Any, seq: Any) -> Any:
    place = _below(state, len(seq))
    if isinstance(seq, np.ndarray):
        return seq[place]
    items = [*seq]
    return items[place]


def python_shuffle(state: Any, x: Any) -> None:
    items = [*x]
    for i in range(len(items) - 1, 0, -1):
        j = _below(state, i + 1)
        items[i], items[j] = items[j], items[i]
    x[:] = items


def expovariate(state: Any, lambd: Any = 1.0) -> Any:
    return _exponential(state) / lambd


def normalvariate(state: Any, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
    z, done = 0.0, False
    while not done:
        first = _double(state)
        second = 1.0 - _double(state)
        z = 4 * math.exp(-0.5) / math.sqrt(2.0) * (first - 0.5) / second
        done = z * z / 4.0 <= -math.log(second)
    return mu + z * sigma


def getrandbits(state: Any, k: Any) -> Any:
    if k > 62:
        raise OverflowError("random ints of more than 62 bits are not drawn in jitted functions")
    if k <= 32:
        return _word(state) >> (32 - k)
    low = _word(state)
    return low | ((_word(state) >> (64 - k)) << 32)


def choices(
    state: Any, population: Any, weights: Any = None, *, cum_weights: Any = None, k: Any = 1
) -> Any:
    items, found = [*population], []
    if weights is None and cum_weights is None:
        for _ in range(k):
            found.append(items[int(_double(state) * len(items))])
    else:
        sums = np.cumsum(np.array(weights)) if cum_weights is None else np.array(cum_weights)
        for _ in range(k):
            place = np.searchsorted(sums, _double(state) * float(sums[-1]), side="right")
            found.append(items[min(int(place), len(items) - 1)])
    return found


def sample(state: Any, population: Any, k: Any) -> Any:
    items = [*population]
    count, few = len(items), 21
    if k > 5:
        few += 4 ** math.ceil(math.log(k * 3, 4))
    if count > few:
        raise NotImplementedError("random.sample of few of many items: use np.random.choice")
    found = []
    for i in range(k):
        j = _below(state, count - i)
        found.append(items[j])
        items[j] = items[count - i - 1]
    return found


def triangular(state: Any, low: Any = 0.0, high: Any = 1.0, mode: Any = None) -> Any:
    u, c = _double(state), 0.5
    if high == low:
        return low
    if mode is not None:
        c = (mode - low) / (high - low)
    if u > c:
        u, c, low, high = 1.0 - u, 1.0 - c, high, low
    return low + (high - low) * math.sqrt(u * c)


def lognormvariate(state: Any, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
    return math.exp(normalvariate(state, mu, sigma))


def paretovariate(state: Any, alpha: Any) -> Any:
    return (1.0 - _double(state)) ** (-1.0 / alpha)


def weibullvariate(state: Any, alpha: Any, beta: Any) -> Any:
    return alpha * (-math.log(1.0 - _double(state))) ** (1.0 / beta)


def python_seed(state: Any, a: Any) -> None:
    """The words that Python makes of an int: Matsumoto's and Nishimura's, of an array of words."""
    words, first = state.words, state.first
    size = abs(int(a))
    low, high = size & _ALL, size >> 32
    word = 19650218
    for i in range(_WORDS):
        words[first + i] = word
        word = (1812433253 * (word ^ (word >> 30)) + i + 1) & _ALL
    i, j = 1, 0
    for _ in range(_WORDS):
        before = int(words[first + i - 1])
        key = high + 1 if j == 1 else low
        mixed_in = ((before ^ (before >> 30)) * 1664525) & _ALL
        words[first + i] = ((int(words[first + i]) ^ mixed_in) + key) & _ALL
        i, j = i + 1, 1 - j if high > 0 else 0
        if i >= _WORDS:
            words[first] = words[first + _WORDS - 1]
            i = 1
    for _ in range(_WORDS - 1):
        before = int(words[first + i - 1])
        mixed_in = ((before ^ (before >> 30)) * 1566083941) & _ALL
        words[first + i] = ((int(words[first + i]) ^ mixed_in) - i) & _ALL
        i += 1
        if i >= _WORDS:
            words[first] = words[first + _WORDS - 1]
            i = 1
    words[first] = _UPPER
    words[state.place] = _WORDS


OF_PYTHON: dict[str, Callable[..., Any]] = {
    "random": python_random, "uniform": python_uniform, "randrange": randrange,
    "randint": python_randint, "choice": python_choice, "shuffle": python_shuffle,
    "expovariate": expovariate, "normalvariate": normalvariate, "seed": python_seed,
    "getrandbits": getrandbits, "choices": choices, "sample": sample, "triangular": triangular,
    "lognormvariate": lognormvariate, "paretovariate": paretovariate,
    "weibullvariate": weibullvariate,
}  # fmt: skip
