"""Whole small programs whose shapes only a run knows, as users of tf.function write them."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program


def traced(tf, *specs, **options):
    """A decorator: a function of tensors of these shapes and dtypes."""
    signature = [tf.TensorSpec(shape, dtype) for shape, dtype in specs]
    return tf.function(input_signature=signature, **options)


def ramp(tf, *shape):
    return tf.reshape(tf.range(float(np.prod(shape))), shape)


# -- batches --------------------------------------------------------------------------------------


@program
def batches_padded_to_a_bucket(tf):
    @traced(tf, ([None, None], tf.float32), ([None], tf.int32))
    def f(x, bounds):
        longest = tf.shape(x)[1]
        fits = tf.boolean_mask(bounds, bounds >= longest)
        width = tf.reduce_min(fits)
        return tf.pad(x, [[0, 0], [0, width - longest]])

    bounds = tf.constant([2, 4, 8])
    return [f(ramp(tf, 2, n), bounds) for n in (1, 3, 4, 7)]


@program
def a_last_batch_filled_up(tf):
    @traced(tf, ([None, 2], tf.float32), ([], tf.int32))
    def f(x, size):
        missing = size - tf.shape(x)[0]
        filled = tf.concat([x, tf.zeros([missing, 2])], 0)
        weights = tf.concat([tf.ones([tf.shape(x)[0]]), tf.zeros([missing])], 0)
        return filled, weights, tf.reduce_sum(filled * weights[:, tf.newaxis])

    return [f(ramp(tf, n, 2), 3) for n in (1, 3)] + [outcome(f, ramp(tf, 4, 2), 3)]


@program
def batches_split_into_parts(tf):
    @traced(tf, ([None, 3], tf.float32), ([], tf.int32))
    def f(x, parts):
        rows = tf.shape(x)[0] // parts
        whole = x[: rows * parts]
        means = tf.reduce_mean(tf.reshape(whole, [parts, rows, 3]), 1)
        return means, x[rows * parts :]

    return [f(ramp(tf, 7, 3), n) for n in (1, 2, 3, 7)]


@program
def sequences_as_windows(tf):
    @traced(tf, ([None], tf.float32), ([], tf.int32), ([], tf.int32))
    def f(x, width, step):
        count = tf.maximum(0, (tf.size(x) - width) // step + 1)
        places = tf.range(count)[:, None] * step + tf.range(width)[None, :]
        windows = tf.gather(x, places)
        return windows, tf.reduce_sum(windows, axis=1)

    return [f(ramp(tf, n), w, s) for n, w, s in ((6, 2, 1), (7, 3, 2), (2, 3, 1))]


# -- ragged, sparse and masks ---------------------------------------------------------------------


@program
def ragged_rows_made_dense(tf):
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    def f(rows):
        dense = rows.to_tensor(-1.0)
        lengths = rows.row_lengths()
        mask = tf.sequence_mask(lengths, tf.shape(dense)[1])
        total = tf.reduce_sum(tf.where(mask, dense, 0.0), 1)
        return dense, mask, total / tf.cast(tf.maximum(lengths, 1), tf.float32)

    return [f(tf.ragged.constant(r)) for r in ([[1.0], [2.0, 3.0]], [[1.0, 2.0, 3.0], [], [4.0]])]


@program
def rows_of_values_and_lengths(tf):
    @traced(tf, ([None], tf.int32), ([None], tf.int32))
    def f(values, lengths):
        longest = tf.reduce_max(lengths)
        places = tf.where(tf.sequence_mask(lengths, longest))
        return tf.scatter_nd(places, values, tf.cast([tf.size(lengths), longest], tf.int64))

    return f([1, 2, 3], [1, 2]), f([4, 5, 6, 7], [0, 3, 1]), outcome(f, [1, 2], [1, 2])


@program
def a_sparse_batch_made_dense(tf):
    @tf.function(input_signature=[tf.SparseTensorSpec([None, None], tf.float32)])
    def f(x):
        dense = tf.sparse.to_dense(x)
        return dense, tf.sparse.reduce_sum(x, 1), tf.matmul(dense, dense, transpose_b=True)

    def sparse(shape, places):
        values = [float(i + 1) for i in range(len(places))]
        return tf.SparseTensor(places, values, shape)

    return f(sparse([2, 3], [[0, 1], [1, 2]])), f(sparse([3, 1], [[2, 0]]))


@program
def a_mask_until_nothing_is_left(tf):
    @traced(tf, ([None], tf.float32))
    def f(x):
        rounds = 0
        while tf.size(x) > 1:
            mean = tf.reduce_mean(x)
            x = tf.boolean_mask(x, x < mean)
            rounds += 1
        return x, rounds

    return f([3.0, 1.0, 2.0, 9.0, 4.0]), f([5.0]), f([1.0, 1.0])


@program
def non_maximum_suppression_by_hand(tf):
    @traced(tf, ([None, 2], tf.float32), ([None], tf.float32), ([], tf.float32))
    def f(spans, scores, limit):
        order = tf.argsort(scores, direction="DESCENDING")
        kept = tf.zeros([0], tf.int32)
        while tf.size(order) > 0:
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(order, tf.TensorShape([None])), (kept, tf.TensorShape([None]))]
            )
            best, rest = order[0], order[1:]
            kept = tf.concat([kept, [best]], 0)
            a, b = spans[best], tf.gather(spans, rest)
            low, high = tf.maximum(a[0], b[:, 0]), tf.minimum(a[1], b[:, 1])
            both = tf.maximum(high - low, 0.0)
            union = (a[1] - a[0]) + (b[:, 1] - b[:, 0]) - both
            order = tf.boolean_mask(rest, both / union < limit)
        return kept

    spans = [[0.0, 2.0], [0.5, 2.5], [4.0, 6.0], [5.9, 8.0]]
    return [f(spans, [0.3, 0.9, 0.5, 0.4], limit) for limit in (0.1, 0.9, 0.01)]


@program
def the_rows_that_pass_two_masks(tf):
    @traced(tf, ([None, 2], tf.float32), ([None], tf.bool), ([None], tf.bool))
    def f(x, first, second):
        a, b = tf.boolean_mask(x, first), tf.boolean_mask(x, second)
        pairs = a[:, None, :] - b[None, :, :]
        return tf.reduce_sum(pairs**2, -1), tf.concat([a, b], 0)

    x = ramp(tf, 3, 2)
    return (
        f(x, [True, False, True], [False, True, True]),
        f(x, [False] * 3, [True] * 3),
        f(x, [True, False, False], [True, True, True]),
    )


# -- sums of what masks leave, which may be of one size or of two ---------------------------------


def masked_pair(tf, combine, refused=True):
    """What is given for pairs of masks; with `refused` also for sizes that do not broadcast."""

    @traced(tf, ([None], tf.float32), ([None], tf.bool), ([None], tf.bool))
    def f(x, first, second):
        return combine(tf.boolean_mask(x, first), tf.boolean_mask(x, second))

    x, t, n = [1.0, 2.0, 3.0], True, False
    masks = [([t, n, t], [n, t, t]), ([t, n, n], [t, t, n]), ([t, t, t], [n, n, t]), ([n] * 3,) * 2]
    masks += [([n, n, n], [t, n, n])]
    if refused:
        masks += [([t, t, n], [t, t, t]), ([n, n, n], [t, t, n])]
    return [outcome(f, x, a, b) for a, b in masks]


@program
def sums_of_what_two_masks_leave(tf):
    return masked_pair(tf, lambda a, b: a + b)


@program
def comparisons_of_what_two_masks_leave(tf):
    return masked_pair(tf, lambda a, b: (a < b, tf.reduce_all(a >= b)))


@program
def equality_of_what_two_masks_leave(tf):
    return masked_pair(tf, lambda a, b: tf.reduce_all(a == b), refused=False)


@program
def inequality_of_what_two_masks_leave(tf):
    return masked_pair(tf, lambda a, b: tf.reduce_any(a != b), refused=False)


@program
def choices_of_what_two_masks_leave(tf):
    return masked_pair(tf, lambda a, b: tf.where(a > 1.5, b, 0.0))


@program
def choices_of_three_open_sizes(tf):
    return masked_pair(tf, lambda a, b: tf.where(a > 1.5, b, tf.range(2.0)[: tf.size(a)]))


@program
def products_with_open_batches(tf):
    def product(a, b):
        return tf.matmul(a[:, None, None] * tf.ones([2, 3]), b[:, None, None] + ramp(tf, 3, 2))

    return masked_pair(tf, product)


@program
def added_up_with_what_does_not_broadcast(tf):
    return masked_pair(tf, lambda a, b: tf.add_n([a, b]))


@program
def shapes_that_broadcast(tf):
    return masked_pair(tf, lambda a, b: tf.broadcast_dynamic_shape(tf.shape(a), tf.shape(b)))


@program
def gradients_of_what_two_masks_leave(tf):
    @traced(tf, ([None], tf.float32), ([None], tf.bool), ([None], tf.bool))
    def f(x, first, second):
        with tf.GradientTape() as tape:
            tape.watch(x)
            a, b = tf.boolean_mask(x, first), tf.boolean_mask(x, second)
            y = tf.reduce_sum(a * b * tf.maximum(a, b))
        return tape.gradient(y, x)

    x, t, n = [1.0, 2.0, 3.0], True, False
    masks = (([t, n, t], [n, t, t]), ([t, n, n], [t, t, n]), ([t, t, t], [n, n, t]), ([n] * 3,) * 2)
    return [outcome(f, x, a, b) for a, b in masks]


@program
def parts_of_two_vectors(tf):
    @traced(tf, ([None], tf.float32), ([None], tf.float32), ([], tf.int32), ([], tf.int32))
    def f(x, y, n, m):
        return x[:n] + y[:m], x[:n] * y[-m:], tf.equal(x[:n], y[:m])

    x, y = [1.0, 2.0, 3.0], [10.0, 20.0, 30.0]
    calls = ((2, 2), (1, 3), (3, 1), (0, 1), (1, 1), (2, 3))
    return [outcome(f, x, y, *map(tf.constant, c)) for c in calls]


@program
def equal_arguments_of_other_shapes(tf):
    @traced(tf, ([None, None], tf.int32), ([None, None], tf.int32))
    def f(x, y):
        return x == y

    @traced(tf, ([None, None], tf.int32), ([None, None], tf.int32))
    def g(x, y):
        return x != y, 1

    rows = [[[1, 2]], [[1, 2], [1, 3]], [[1, 2, 3]], [[1]]]
    return [outcome(h, a, b) for h in (f, g) for a in rows for b in rows]


@program
def assertions_of_shapes(tf):
    @traced(tf, ([None, None], tf.float32), ([None, None], tf.float32))
    def f(x, y):
        tf.debugging.assert_equal(tf.shape(x)[0], tf.shape(y)[0])
        tf.debugging.assert_shapes([(x, ("n", "k")), (y, ("n", "m"))])
        return tf.concat([x, y], 1)

    return f(ramp(tf, 2, 1), ramp(tf, 2, 2)), outcome(f, ramp(tf, 2, 1), ramp(tf, 3, 2))


# -- loops that grow what they carry --------------------------------------------------------------


@program
def a_loop_that_appends_rows(tf):
    @traced(tf, ([], tf.int32))
    def f(n):
        rows = tf.zeros([0, 2])
        for i in tf.range(n):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(rows, tf.TensorShape([None, 2]))]
            )
            rows = tf.concat([rows, tf.cast([[i, i * i]], tf.float32)], 0)
        return rows, tf.shape(rows)

    return f(0), f(1), f(4)


@program
def a_loop_that_doubles(tf):
    def body(i, x):
        return i + 1, tf.concat([x, x + 1.0], 0)

    @traced(tf, ([], tf.int32), ([None], tf.float32))
    def f(n, x):
        shapes = [tf.TensorShape([]), tf.TensorShape([None])]
        return tf.while_loop(lambda i, x: i < n, body, [0, x], shapes)

    return f(3, [1.0]), f(0, [1.0, 2.0]), f(2, [])


@program
def a_loop_of_any_rank(tf):
    @traced(tf, ([], tf.int32), ([2], tf.float32))
    def f(n, x):
        shapes = [tf.TensorShape([]), tf.TensorShape(None)]
        _, y = tf.while_loop(
            lambda i, _: i < n, lambda i, y: (i + 1, tf.expand_dims(y, 0) * 2.0), [0, x], shapes
        )
        return y, tf.rank(y), tf.shape(y)

    return f(0, [1.0, 2.0]), f(1, [1.0, 2.0]), f(3, [1.0, 2.0])


@program
def a_loop_over_tensors_of_any_rank(tf):
    @traced(tf, (None, tf.float32), ([], tf.int32))
    def f(x, n):
        total = x
        for i in tf.range(n):
            total = total + x * tf.cast(i, tf.float32)
        return total

    return f(1.0, 3), f([1.0, 2.0], 2), f([[1.0], [2.0]], 0)


@program
def a_loop_over_results_of_python(tf):
    @traced(tf, ([None], tf.float32), ([], tf.int32))
    def f(x, n):
        y = tf.numpy_function(lambda a: a[None], [x], tf.float32)
        for _ in tf.range(n):
            y = tf.numpy_function(lambda a: a[None] + a.dtype.type(1), [y], tf.float32)
        return y, tf.reduce_sum(y), tf.rank(y)

    return f([1.0, 2.0], 0), f([1.0, 2.0], 2), f([], 1)


@program
def a_loop_whose_rank_changes_without_leave(tf):
    @traced(tf, ([2], tf.float32), ([], tf.int32))
    def f(x, n):
        for _ in tf.range(n):
            x = tf.expand_dims(x, 0)
        return x

    return outcome(f, [1.0, 2.0], 1)


@program
def primes_by_a_sieve(tf):
    @traced(tf, ([], tf.int32))
    def f(limit):
        numbers, primes = tf.range(2, limit), tf.zeros([0], tf.int32)
        while tf.size(numbers) > 0:
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[
                    (numbers, tf.TensorShape([None])), (primes, tf.TensorShape([None])),
                ]
            )
            prime = numbers[0]
            primes = tf.concat([primes, prime[None]], 0)
            numbers = tf.boolean_mask(numbers, numbers % prime != 0)
        return primes

    return f(2), f(30)


@program
def collatz_paths(tf):
    @traced(tf, ([], tf.int32))
    def f(n):
        path = tf.TensorArray(tf.int32, 0, dynamic_size=True)
        path = path.write(0, n)
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            path = path.write(path.size(), n)
        return path.stack()

    return f(1), f(6)


# -- lists of tensors -----------------------------------------------------------------------------


@program
def arrays_of_rows_of_other_lengths(tf):
    @traced(tf, ([], tf.int32))
    def f(n):
        rows = tf.TensorArray(tf.int32, n, infer_shape=False, element_shape=[None])
        for i in tf.range(n):
            rows = rows.write(i, tf.range(i + 1))
        return rows.concat(), rows.read(n - 1), rows.size()

    return f(1), f(3)


@program
def arrays_of_rows_stacked_with_open_sizes(tf):
    @traced(tf, ([None, None], tf.float32))
    def f(x):
        rows = tf.TensorArray(tf.float32, tf.shape(x)[0])
        rows = rows.unstack(x)
        found = tf.TensorArray(tf.float32, rows.size())
        for i in tf.range(rows.size()):
            found = found.write(i, tf.reverse(rows.read(i), [0]))
        return found.stack()

    return f(ramp(tf, 2, 3)), f(ramp(tf, 1, 1)), f(ramp(tf, 3, 2))


@program
def rows_mapped_to_lengths_of_their_own(tf):
    @traced(tf, ([None], tf.int32))
    def f(lengths):
        rows = tf.map_fn(
            lambda n: tf.range(n) * n, lengths,
            fn_output_signature=tf.RaggedTensorSpec([None], tf.int32),
        )
        return rows, rows.to_tensor(), tf.reduce_sum(rows, 1)

    return f([2, 0, 3]), f([1])


@program
def rows_mapped_to_open_sizes(tf):
    @traced(tf, ([None, None], tf.float32), ([], tf.int32))
    def f(x, n):
        return tf.map_fn(lambda row: tf.concat([row[:n], [tf.reduce_sum(row)]], 0), x)

    return f(ramp(tf, 2, 3), 1), f(ramp(tf, 3, 2), 2), f(ramp(tf, 1, 4), 0)


@program
def sums_over_rows_by_scan(tf):
    @traced(tf, ([None, None], tf.float32))
    def f(x):
        run = tf.scan(lambda a, row: a * 0.5 + row, x, initializer=tf.zeros(tf.shape(x)[1]))
        return run, tf.foldl(lambda a, row: tf.maximum(a, row), x)

    return f(ramp(tf, 3, 2)), f(ramp(tf, 1, 3))


# -- searches -------------------------------------------------------------------------------------


@program
def a_beam_search(tf):
    table = tf.constant(np.log([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.1, 0.8, 0.1]]), tf.float32)

    @traced(tf, ([], tf.int32), ([], tf.int32))
    def f(width, steps):
        paths, scores = tf.zeros([1, 1], tf.int32), tf.zeros([1])
        for _ in tf.range(steps):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[
                    (paths, tf.TensorShape([None, None])), (scores, tf.TensorShape([None])),
                ]
            )
            each = scores[:, None] + tf.gather(table, paths[:, -1])
            flat = tf.reshape(each, [-1])
            scores, picked = tf.math.top_k(flat, tf.minimum(width, tf.size(flat)))
            parents, tokens = picked // 3, picked % 3
            paths = tf.concat([tf.gather(paths, parents), tokens[:, None]], 1)
        return paths, scores

    return f(2, 3), f(4, 2), f(1, 0)


@program
def a_greedy_decoder(tf):
    table = tf.constant([[0.1, 0.7, 0.2], [0.3, 0.1, 0.6], [0.9, 0.05, 0.05]])

    @traced(tf, ([None], tf.int32), ([], tf.int32))
    def f(first, most):
        tokens, done = first[:, None], tf.zeros(tf.shape(first), tf.bool)
        while not tf.reduce_all(done) and tf.shape(tokens)[1] < most:
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(tokens, tf.TensorShape([None, None]))]
            )
            following = tf.argmax(tf.gather(table, tokens[:, -1]), 1, tf.int32)
            following = tf.where(done, 0, following)
            done = done | (following == 0)
            tokens = tf.concat([tokens, following[:, None]], 1)
        return tokens, done

    return f([0, 1, 2], 9), f([2], 9), f([0], 2)


@program
def breadth_first_search(tf):
    @traced(tf, ([None, None], tf.bool), ([], tf.int32))
    def f(edges, start):
        count = tf.shape(edges)[0]
        distance = tf.fill([count], -1)
        distance = tf.tensor_scatter_nd_update(distance, [[start]], [0])
        border, steps = start[None], 0
        while tf.size(border) > 0:
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(border, tf.TensorShape([None]))]
            )
            steps += 1
            reached = tf.reduce_any(tf.gather(edges, border), 0) & (distance < 0)
            border = tf.cast(tf.where(reached)[:, 0], tf.int32)
            updates = tf.fill(tf.shape(border), steps)
            distance = tf.tensor_scatter_nd_update(distance, border[:, None], updates)
        return distance

    edges = np.zeros((5, 5), bool)
    for a, b in ((0, 1), (0, 2), (2, 3)):
        edges[a, b] = edges[b, a] = True
    return f(edges, 0), f(edges, 4), f(edges, 3)


@program
def longest_common_subsequence(tf):
    @traced(tf, ([None], tf.int32), ([None], tf.int32))
    def f(a, b):
        row = tf.zeros([tf.size(b) + 1], tf.int32)
        for x in a:
            hits = tf.cast(b == x, tf.int32) + row[:-1]
            best = tf.scan(lambda left, up: tf.maximum(left, up), tf.maximum(hits, row[1:]), 0)
            row = tf.concat([[0], best], 0)
        return row[-1]

    return f([1, 2, 3, 4], [2, 4, 1]), f([1, 3, 5, 7], [3, 1, 7]), f([1], [2, 1])


# -- images and tensors of any rank ---------------------------------------------------------------


@program
def an_image_of_unknown_rank(tf):
    @traced(tf, (None, tf.uint8))
    def f(image):
        if tf.rank(image) == 2:
            image = tf.expand_dims(image, -1)
        image = tf.image.convert_image_dtype(image, tf.float32)
        image.set_shape([None, None, None])
        image = tf.image.resize_with_crop_or_pad(image, 2, 2)
        return image, tf.reduce_mean(image)

    gray = np.arange(12, dtype=np.uint8).reshape(3, 4)
    return outcome(f, gray), f(gray[..., None])


@program
def a_file_that_is_an_image(tf):
    data = tf.io.encode_png(tf.constant(np.arange(12, dtype=np.uint8).reshape(2, 2, 3)))

    @traced(tf, ([], tf.string))
    def f(data):
        image = tf.image.decode_image(data)
        if tf.shape(image)[-1] == 1:
            image = tf.tile(image, [1, 1, 3])
        image = tf.ensure_shape(image, [None, None, 3])
        image = tf.image.resize(image, [4, tf.shape(image)[1]])
        return tf.image.flip_left_right(image) / 255.0

    return f(data)


@program
def thumbnails_that_keep_their_ratio(tf):
    @traced(tf, ([None, None, 1], tf.float32), ([], tf.int32))
    def f(image, side):
        size = tf.shape(image)[:2]
        ratio = tf.cast(side, tf.float32) / tf.cast(tf.reduce_max(size), tf.float32)
        small = tf.cast(tf.round(tf.cast(size, tf.float32) * ratio), tf.int32)
        image = tf.image.resize(image, small, method="nearest")
        return tf.image.pad_to_bounding_box(image, 0, 0, side, side)

    return f(ramp(tf, 2, 4, 1), 2), f(ramp(tf, 6, 3, 1), 4)


@program
def flattened_but_for_the_last_axis(tf):
    @traced(tf, (None, tf.float32))
    def f(x):
        shape = tf.shape(x)
        rows = tf.reshape(x, [-1, shape[-1]])
        found = tf.matmul(rows, tf.ones([2, 3]))
        return tf.reshape(found, tf.concat([shape[:-1], [3]], 0))

    return f(ramp(tf, 2)), f(ramp(tf, 3, 2)), f(ramp(tf, 2, 1, 2)), outcome(f, ramp(tf, 3))


@program
def one_batch_axis_for_all(tf):
    @traced(tf, (None, tf.float32), ([], tf.int32))
    def f(x, kept):
        shape = tf.shape(x)
        outer, inner = shape[:-kept], shape[-kept:]
        flat = tf.reshape(x, tf.concat([[-1], inner], 0))
        normed = flat - tf.reduce_mean(flat, axis=0, keepdims=True)
        return tf.reshape(normed, tf.concat([outer, inner], 0))

    return f(ramp(tf, 2, 3), 1), f(ramp(tf, 2, 1, 3), 1), f(ramp(tf, 2, 2, 2), 2)


@program
def axes_moved_to_the_end(tf):
    @traced(tf, (None, tf.float32), ([], tf.int32))
    def f(x, axis):
        rank = tf.rank(x)
        order = tf.concat([tf.range(axis), tf.range(axis + 1, rank), [axis]], 0)
        return tf.transpose(x, order)

    return f(ramp(tf, 2, 3), 0), f(ramp(tf, 2, 3), 1), f(ramp(tf, 2, 1, 3), 0), f(ramp(tf, 2), 0)


@program
def sums_over_all_axes_but_the_first(tf):
    @traced(tf, (None, tf.float32))
    def f(x):
        total = tf.reduce_sum(x, axis=tf.range(1, tf.rank(x)))
        return total, tf.reduce_max(tf.abs(x)), tf.size(x)

    return f(ramp(tf, 3)), f(ramp(tf, 2, 3)), f(ramp(tf, 2, 1, 2)), outcome(f, tf.constant(1.0))


@program
def weights_beside_any_number_of_axes(tf):
    @traced(tf, (None, tf.float32), ([None], tf.float32))
    def f(x, weights):
        ones = tf.ones([tf.rank(x) - 1], tf.int32)
        shaped = tf.reshape(weights, tf.concat([tf.shape(weights), ones], 0))
        return x * shaped

    calls = (((2,), [1.0, 2.0]), ((2, 2), [1.0, 3.0]), ((2, 1, 2), [0.0, 1.0]))
    return [f(ramp(tf, *shape), weights) for shape, weights in calls]


@program
def shapes_set_and_ensured(tf):
    shapes = []

    @traced(tf, (None, tf.float32), ([None, None], tf.float32))
    def f(x, y):
        x = tf.ensure_shape(x, [None, 2])
        y.set_shape([2, None])
        z = tf.matmul(x, y)
        shapes.append((x.shape, y.shape, z.shape))
        return z

    return f(ramp(tf, 1, 2), ramp(tf, 2, 3)), outcome(f, ramp(tf, 2), ramp(tf, 2, 3)), shapes


@program
def a_result_of_either_rank(tf):
    @traced(tf, ([None, None], tf.float32), ([], tf.bool))
    def f(x, whole):
        y = tf.cond(whole, lambda: x, lambda: tf.reduce_sum(x, 1))
        return y * 2.0, tf.rank(y), tf.reduce_sum(y)

    return f(ramp(tf, 2, 3), True), f(ramp(tf, 2, 3), False)


# -- other everyday programs ----------------------------------------------------------------------


@program
def attention_with_open_lengths(tf):
    @traced(tf, ([None, None, 2], tf.float32), ([None, None, 2], tf.float32), ([None], tf.int32))
    def f(q, k, lengths):
        scores = tf.matmul(q, k, transpose_b=True) / tf.sqrt(2.0)
        mask = tf.sequence_mask(lengths, tf.shape(k)[1])[:, None, :]
        weights = tf.nn.softmax(tf.where(mask, scores, -1e9))
        causal = tf.linalg.band_part(tf.ones([tf.shape(q)[1], tf.shape(k)[1]]), -1, 0)
        return tf.matmul(weights * causal, k)

    long = f(ramp(tf, 1, 2, 2), ramp(tf, 1, 3, 2), [2])
    return long, f(ramp(tf, 2, 1, 2), ramp(tf, 2, 2, 2), [1, 2])


@program
def positions_added_to_embeddings(tf):
    table = tf.reshape(tf.range(8.0), [4, 2])

    @traced(tf, ([None, None], tf.int32))
    def f(ids):
        found = tf.nn.embedding_lookup(table, ids)
        places = tf.range(tf.shape(ids)[1])
        waves = tf.sin(tf.cast(places, tf.float32)[:, None] / tf.constant([1.0, 10.0]))
        return found + waves, tf.one_hot(ids, tf.reduce_max(ids) + 1)

    return f([[0, 1, 2]]), f([[3], [1]])


@program
def words_of_a_sentence_counted(tf):
    @traced(tf, ([None], tf.string))
    def f(lines):
        words = tf.strings.split(lines).flat_values
        unique, places, counts = tf.unique_with_counts(words)
        best = tf.argsort(counts, direction="DESCENDING", stable=True)
        return tf.gather(unique, best), tf.gather(counts, best), places

    return f(["a b a", "c"]), f(["x"])


@program
def groups_and_their_means(tf):
    @traced(tf, ([None], tf.int32), ([None, None], tf.float32))
    def f(keys, rows):
        unique, groups = tf.unique(keys)
        sums = tf.math.unsorted_segment_sum(rows, groups, tf.size(unique))
        counts = tf.math.bincount(groups, minlength=tf.size(unique), dtype=tf.float32)
        means = sums / counts[:, None]
        return unique, means, rows - tf.gather(means, groups)

    return f([5, 7, 5], ramp(tf, 3, 2)), f([1], ramp(tf, 1, 3))


@program
def polynomials_multiplied(tf):
    @traced(tf, ([None], tf.float32), ([None], tf.float32))
    def f(a, b):
        count = tf.size(a) + tf.size(b) - 1
        table = a[:, None] * b[None, :]
        places = tf.range(tf.size(a))[:, None] + tf.range(tf.size(b))[None, :]
        flat = tf.reshape(places, [-1])
        return tf.math.unsorted_segment_sum(tf.reshape(table, [-1]), flat, count)

    return f([1.0, 2.0], [1.0, 1.0, 3.0]), f([2.0], [5.0])


@program
def power_iteration_until_it_settles(tf):
    @traced(tf, ([None, None], tf.float32))
    def f(a):
        x = tf.ones([tf.shape(a)[0], 1])
        change = tf.constant(1.0)
        while change > 1e-6:
            y = tf.matmul(a, x)
            y = y / tf.norm(y)
            change = tf.norm(y - x)
            x = y
        return tf.matmul(tf.matmul(x, a, transpose_a=True), x)

    return f([[2.0, 0.0], [0.0, 1.0]]), f([[3.0]])


@program
def a_cache_of_keys_that_grows(tf):
    @traced(tf, ([None, 2], tf.float32))
    def f(steps):
        cache = tf.zeros([0, 2])
        out = tf.TensorArray(tf.float32, tf.shape(steps)[0])
        i = 0
        for x in steps:
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(cache, tf.TensorShape([None, 2]))]
            )
            cache = tf.concat([cache, x[None]], 0)
            scores = tf.linalg.matvec(cache, x)
            out = out.write(i, tf.linalg.matvec(cache, tf.nn.softmax(scores), transpose_a=True))
            i += 1
        return out.stack()

    return f(ramp(tf, 1, 2)), f(ramp(tf, 3, 2) / 4.0)


@program
def a_pipeline_of_padded_batches(tf):
    rows = tf.data.Dataset.range(5).map(lambda n: tf.range(n))
    batches = rows.padded_batch(2, padded_shapes=[None], padding_values=tf.constant(-1, tf.int64))

    @tf.function
    def total(batches):
        found = tf.constant(0, tf.int64)
        for batch in batches:
            mask = batch >= 0
            found += tf.reduce_sum(tf.where(mask, batch, 0)) * tf.cast(tf.shape(batch)[1], tf.int64)
        return found

    return list(batches), total(batches)


@program
def a_square_cut_out_of_a_matrix(tf):
    @traced(tf, ([None, None], tf.float32), ([2], tf.int32), ([], tf.int32))
    def f(x, corner, side):
        cut = tf.slice(x, corner, [side, side])
        again = tf.tensor_scatter_nd_update(
            x, tf.stack(tf.meshgrid(tf.range(side), tf.range(side), indexing="ij"), -1), cut
        )
        return cut, again, tf.linalg.diag_part(cut), tf.linalg.trace(cut)

    return f(ramp(tf, 3, 4), [1, 2], 2), f(ramp(tf, 2, 2), [0, 0], 1), outcome(
        f, ramp(tf, 2, 2), [1, 1], 2
    )
