"""Random numbers that are drawn until one is accepted, and random orders.

Each number has a stream of Philox's counter of its own, which begins at a counter that its position
decides (`treadle.ops.random.rejection` says where, and does the same with NumPy). So threads may
share the numbers in any way.

A *stream* is an array of words: the two halves of its counter, its key, and how many of its uniform
and normal numbers are drawn but not used; these are in the array `kept`, the uniform ones first.
Each group of words gives two numbers, of which the last one is used first.
"""

from __future__ import annotations

import math

from treadle.ops.random.arrays import COUNTERS_PER_NUMBER, SMALLEST
from treadle.ops.random.permutations import CONSTANT, LEAST_BITS, SEQUENCE
from treadle.ops.random.philox import KEY_STEPS, MULTIPLIERS, ROUNDS
from treadle.ops.random.rejection import COUNTERS_PER_FEW, MANY
from treadle.runtime.routines.language import (
    BITS,
    SIGNED,
    WHOLE,
    Apart,
    Array,
    I,
    R,
    T,
    at,
    ceil,
    cos,
    exp,
    f64,
    floor,
    i32,
    i64,
    local,
    log,
    log1p,
    select,
    sin,
    singly,
    sqrt,
    u64,
)  # fmt: skip
from treadle.runtime.routines.series import HALF_LOG_TURN, beyond

LOW, HIGH, KEY, UNIFORM, NORMAL = 0, 1, 2, 3, 4  # the words of a stream
STREAM_WORDS, KEPT = 5, 4
FIRST_MULTIPLIER, SECOND_MULTIPLIER = MULTIPLIERS
FIRST_STEP, SECOND_STEP = KEY_STEPS
NAN = math.nan
# Numbers of the methods, on any machine.
WORD = 0xFFFFFFFF
TOP = 0xFFFFF  # bits of a fraction in its upper word
UNIT = 2.0**-52
TURN = 2.0 * math.pi
THIRD = 1.0 / 3.0
SMALL_FACTORIALS = 10.0  # below, factorials are products
EXACT = 9.0  # up to here TensorFlow's binomial numbers use exact factorials


# -- streams ---------------------------------------------------------------------------------------


def group(low: u64, high: u64, key: u64, words: Array[u64]) -> None:
    """The four words of 32 bits of a counter."""
    c0, c1, c2, c3 = low & WORD, low >> 32, high & WORD, high >> 32
    k0, k1 = key & WORD, key >> 32
    for _ in range(ROUNDS):
        p0, p1 = c0 * FIRST_MULTIPLIER, c2 * SECOND_MULTIPLIER
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & WORD, (p0 >> 32) ^ c3 ^ k1, p0 & WORD
        k0, k1 = (k0 + FIRST_STEP) & WORD, (k1 + SECOND_STEP) & WORD
    words[0], words[1], words[2], words[3] = c0, c1, c2, c3


def begin(stream: Array[u64], state: Array[i64], start: i64) -> None:
    """The stream that begins so many counters behind a generator's state."""
    low = u64(state[0])
    stream[LOW] = low + u64(start)
    stream[HIGH] = u64(state[1]) + select(low + u64(start) < low, u64(1), u64(0))
    stream[KEY] = u64(state[2])
    stream[UNIFORM] = u64(0)
    stream[NORMAL] = u64(0)


def draw_units(stream: Array[u64], drawn: Array[f64]) -> None:
    """The next two numbers of [0, 1)."""
    words = local(u64, 4)
    group(stream[LOW], stream[HIGH], stream[KEY], words)
    stream[LOW] += 1
    if stream[LOW] == 0:
        stream[HIGH] += 1
    drawn[0] = f64(i64((words[0] & TOP) << 32 | words[1])) * UNIT
    drawn[1] = f64(i64((words[2] & TOP) << 32 | words[3])) * UNIT


def next_uniform(stream: Array[u64], kept: Array[f64]) -> f64:
    if stream[UNIFORM] == 0:
        draw_units(stream, kept)
        stream[UNIFORM] = u64(2)
    stream[UNIFORM] -= 1
    return kept[i64(stream[UNIFORM])]


def next_normal(stream: Array[u64], kept: Array[f64]) -> f64:
    if stream[NORMAL] == 0:
        normals = at(kept, 2)
        draw_units(stream, normals)
        radius = sqrt(-2.0 * log(max(normals[0], SMALLEST)))
        angle = TURN * normals[1]
        normals[0] = sin(angle) * radius
        normals[1] = cos(angle) * radius
        stream[NORMAL] = u64(2)
    stream[NORMAL] -= 1
    return kept[2 + i64(stream[NORMAL])]


# -- gamma -----------------------------------------------------------------------------------------


def gamma(
    state: Array[i64], alpha: Array[T], found: Apart[T], samples: i64, members: i64, first: i64,
    last: i64,
) -> None:  # fmt: skip
    """Numbers [streams, samples, members], for alpha [streams, members]."""
    stream = local(u64, STREAM_WORDS)
    kept = local(f64, KEPT)
    for place in singly(first, last):
        member = place % members
        sample = place // members % samples
        number = place // members // samples
        start = (member * samples + sample) * COUNTERS_PER_NUMBER
        begin(stream, at(state, 3 * number), start)
        found[place] = T(gamma_number(f64(alpha[number * members + member]), stream, kept))


def gamma_number(a: f64, stream: Array[u64], kept: Array[f64]) -> f64:
    """By Marsaglia and Tsang's method."""
    if a == 1.0:
        return -log1p(-next_uniform(stream, kept))  # exponentially distributed
    if not (a >= 0.0):
        return NAN
    small = a < 1.0  # the numbers of a + 1 are scaled down
    d = a + select(small, f64(2.0 * THIRD), f64(-THIRD))
    c = THIRD / sqrt(d)
    result = f64(0)
    while True:
        x = next_normal(stream, kept)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            u = next_uniform(stream, kept)
            square = x * x
            if u < 1.0 - 0.0331 * square * square or log(u) < 0.5 * square + d * (1.0 - v + log(v)):
                result = d * v
                break
    if small:
        result *= pow(next_uniform(stream, kept), 1.0 / a)
    return result


# -- counts ----------------------------------------------------------------------------------------


def poisson(
    state: Array[i64], rate: Array[T], found: Apart[R], samples: i64, members: i64, first: i64,
    last: i64,
) -> None:  # fmt: skip
    """Counts [streams, samples, members], for rates [streams, members]."""
    stream = local(u64, STREAM_WORDS)
    kept = local(f64, KEPT)
    for place in singly(first, last):
        member = place % members
        sample = place // members % samples
        number = place // members // samples
        start = (member * samples + sample) * COUNTERS_PER_NUMBER
        begin(stream, at(state, 3 * number), start)
        found[place] = counted(poisson_number(f64(rate[number * members + member]), stream, kept))


def counted(x: f64) -> R:
    """A whole number as a result; what no integer holds becomes the smallest, as in NumPy."""
    if WHOLE and not (abs(x) < f64(R(1) << (BITS - 2)) * 2.0):
        return R(-1) << (BITS - 1)
    return R(x)


def poisson_number(rate: f64, stream: Array[u64], kept: Array[f64]) -> f64:
    """By Knuth's method, or by Hörmann's transformed rejection."""
    count = f64(0)
    if rate < MANY:
        product, least = f64(1), exp(-rate)
        while True:
            product *= next_uniform(stream, kept)
            if not (product > least):
                return count
            count += 1.0
    if not (rate >= MANY):
        return count
    b = 0.931 + 2.53 * sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse, box = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0)
    while True:
        u = next_uniform(stream, kept) - 0.5
        v = next_uniform(stream, kept)
        side = 0.5 - abs(u)
        k = floor((2.0 * a / side + b) * u + rate + 0.43)
        if side >= 0.07 and v <= box:
            return k
        if k >= 0.0 and not (side < 0.013 and v > side):
            ratio = log(v * inverse / (a / (side * side) + b))
            if ratio <= -rate + k * log(rate) - log_factorial(k):
                return k


def log_factorial(k: f64) -> f64:
    """The logarithm of k!."""
    if k < SMALL_FACTORIALS:
        product, factor = f64(1), f64(2)
        while factor <= k:
            product *= factor
            factor += 1.0
        return log(product)
    x = k + 1.0
    return (x - 0.5) * log(x) - x + HALF_LOG_TURN + beyond(x)


def binomial(
    state: Array[i64], counts: Array[T], probs: Array[T], found: Apart[R], samples: i64,
    members: i64, first: i64, last: i64,
) -> None:  # fmt: skip
    """Numbers of successes [streams, samples, members], for parameters [streams, members]."""
    stream = local(u64, STREAM_WORDS)
    kept = local(f64, KEPT)
    for place in singly(first, last):
        member = place % members
        sample = place // members % samples
        number = place // members // samples
        count, prob = counts[number * members + member], probs[number * members + member]
        rare = prob  # the probability of the outcome that is not the likelier one
        if prob > 0.5:
            rare = 1.0 - prob
        many = count * rare >= MANY
        apart = select(many, COUNTERS_PER_NUMBER, COUNTERS_PER_FEW)
        begin(stream, at(state, 3 * number), (member * samples + sample) * apart)
        result = f64(0)
        if count > 0.0 and prob > 0.0 and prob < 1.0:
            if many:
                result = many_successes(f64(count), f64(rare), stream, kept)
            else:
                result = successes(f64(count), f64(rare), stream, kept)
            if prob > 0.5:
                result = f64(count) - result
        else:
            if prob >= 1.0 and count > 0.0:
                result = f64(count)
            if prob != prob:
                result = f64(prob)
        found[place] = counted(result)


def successes(number: f64, prob: f64, stream: Array[u64], kept: Array[f64]) -> f64:
    """How many geometric numbers, each the tries up to one success, fit into all tries."""
    tries, result, failing = f64(0), f64(0), log1p(-prob)
    while True:
        tries += ceil(log(next_uniform(stream, kept)) / failing)
        if not (tries <= number):
            return result
        result += 1.0


def many_successes(number: f64, prob: f64, stream: Array[u64], kept: Array[f64]) -> f64:
    """By Hörmann's transformed rejection."""
    deviation = sqrt(number * prob * (1.0 - prob))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    box = 0.92 - 4.2 / b
    scale = (2.83 + 5.1 / b) * deviation
    mode = floor((number + 1.0) * prob)
    odds = prob / (1.0 - prob)
    while True:
        u = next_uniform(stream, kept) - 0.5
        v = next_uniform(stream, kept)
        side = 0.5 - abs(u)
        k = floor((2.0 * a / side + b) * u + number * prob + 0.5)
        if side >= 0.07 and v <= box:
            return k
        if k >= 0.0 and k <= number:
            ratio = log(v * scale / (a / (side * side) + b))
            limit = (mode + 0.5) * log((mode + 1.0) / (odds * (number - mode + 1.0)))
            limit += (number + 1.0) * log((number - mode + 1.0) / (number - k + 1.0))
            limit += (k + 0.5) * log(odds * (number - k + 1.0) / (k + 1.0))
            limit += beyond_stirling(mode) + beyond_stirling(number - mode)
            limit -= beyond_stirling(k) + beyond_stirling(number - k)
            if ratio <= limit:
                return k


def beyond_stirling(k: f64) -> f64:
    """What Stirling's formula leaves out of log(k!)."""
    x = k + 1.0
    if k <= EXACT:
        return log_factorial(k) - (k + 0.5) * log(x) + x - HALF_LOG_TURN
    square = x * x
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / x


# -- orders ----------------------------------------------------------------------------------------


def order(
    state: Array[i64], found: Apart[I], n: i64, rows: i64, first: i64, last: i64
) -> None:
    """Random orders of 0 to n - 1, `rows` of each stream: each place in turn exchanges its number
    with one of those behind it, or keeps it."""
    words = local(u64, 4)
    for row in singly(first, last):
        stream = at(state, 3 * (row // rows))
        target = at(found, row * n)
        for k in range(n):
            target[k] = I(k)
        used = row % rows * n  # words of the stream
        for place in singly(n):
            if (used & 3) == 0 or place == 0:
                low = u64(stream[0]) + u64(used >> 2)
                carry = select(low < u64(stream[0]), u64(1), u64(0))
                group(low, u64(stream[1]) + carry, u64(stream[2]), words)
            other = place + i64(words[used & 3] % u64(n - place))
            number = target[place]
            target[place] = target[other]
            target[other] = number
            used += 1


def shuffled(
    index: Array[T], seed: Array[I], most: Array[T], found: Apart[T], status: Array[i32],
    rounds: i64, first: i64, last: i64,
) -> None:  # fmt: skip
    """Where positions from 0 to `most` are in orders that seeds of three words decide. status: 1
    for a position beyond."""
    for k in singly(first, last):
        good = index[k] <= most[k]
        if SIGNED:
            good = good & (index[k] >= 0)
        status[k] = i32(not good)
        found[k] = T(0)
        if good and most[k] != 0:
            found[k] = T(enciphered(u64(index[k]), u64(most[k]), at(seed, 3 * k), rounds))


def enciphered(position: u64, most: u64, seed: Array[I], rounds: i64) -> u64:
    """The block cipher of `treadle.ops.random.permutations`, until it gives a position."""
    size = u64(1)
    while ((most - 1) >> size) != 0:
        size += 1
    half = max(size + size % 2, LEAST_BITS) // 2
    if (most >> (2 * half)) != 0:  # a power of two needs one bit more
        half += 1
    mask = (u64(1) << half) - 1
    while True:
        left, right = position >> half, position & mask
        words = mask & WORD
        k0, k1, k2 = u64(seed[0]) & words, u64(seed[1]) & words, u64(seed[2]) & words
        sequence = mask & SEQUENCE
        for step in range(rounds):
            if step % 2 == 0:
                left = left ^ mixed(right, half, mask) ^ k0
            else:
                right = right ^ mixed(left, half, mask) ^ k0
            moved = turned(k2, half - 3, half, mask) ^ turned(k2, half - 4, half, mask)
            k0, k1, k2 = k1, k2, (mask & CONSTANT) ^ (sequence & 1) ^ k0 ^ moved
            sequence = sequence >> 1
        position = left << half | right
        if position <= most:
            return position


def mixed(word: u64, half: u64, mask: u64) -> u64:
    both = turned(word, u64(1), half, mask) & turned(word, u64(8), half, mask)
    return both ^ turned(word, u64(2), half, mask)


def turned(word: u64, count: u64, half: u64, mask: u64) -> u64:
    """The bits of a word moved to the left around its end."""
    return (word << count | word >> (half - count)) & mask
