"""Programs with the ops that the tables of cases cannot say: control flow, lists, variables,
strings, random numbers, Python functions, iterators, and what the compiler writes itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import treadle as td
from tests.ops.cases_nn import pulled
from treadle.numpy_staging.signals import convolve
from treadle.ops.collections.lists import list_add, list_new, list_push, list_stack, list_unstack
from treadle.ops.control.collectives import ALL_GATHER, ALL_REDUCE
from treadle.ops.indexing.updates import set_item
from treadle.ops.registry import run


@dataclass(frozen=True)
class Program:
    """A function of tensors that gives a tensor, or a structure of them.

    Attributes:
        arrays: its arguments: floating point numbers where it is differentiable.
        differentiable: whether its gradients, first and second, are those of its values.
        batched: whether it is computed for all examples of a batch at once; None: it has no
            examples, as its result depends on no argument alone.
        open_dims: whether it works when no dim of the arguments is known.
        close: whether results in functions are close to eager ones, but not bitwise the same.
    """

    name: str
    fn: Callable[..., Any]
    arrays: tuple[Any, ...]
    differentiable: bool = True
    batched: bool | None = True
    open_dims: bool = True
    close: bool = False

    def __str__(self) -> str:
        return self.name


X = np.linspace(-1.2, 1.7, 6).reshape(2, 3)
ROW = np.array([0.3, -0.8, 1.1])


def branch(x: Any) -> Any:
    return td.cond(td.reduce_sum(x) > 0.0, lambda: td.sin(x), lambda: x * x)


def loop(x: Any) -> Any:
    return td.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, td.sin(y) * x), (0, x))[1]


def mapped(x: Any) -> Any:
    return td.map_fn(lambda row: row * td.reduce_sum(row), x)


def rows_of_a_list(x: Any) -> Any:
    rows = td.TensorArray(x.dtype, size=2, element_shape=[3]).unstack(x)
    return rows.write(0, rows.read(1) * x[0]).stack()


def scattered_rows(x: Any) -> Any:
    rows = td.TensorArray(x.dtype, size=3, dynamic_size=True, element_shape=[3])
    return rows.scatter([2, 0], td.sin(x)).gather([0, 2, 0])


def joined_rows(x: Any) -> Any:
    rows = td.TensorArray(x.dtype, size=2, infer_shape=False).split(x * x, [1, 1])
    return rows.concat()


def grown_rows(x: Any) -> Any:
    rows = td.TensorArray(x.dtype, size=0, dynamic_size=True, element_shape=[3])
    for k in range(3):
        rows = rows.write(k, x[k % 2] * float(k))
    return rows.stack() * td.cast(rows.size(), x.dtype)


def popped_rows(x: Any) -> Any:
    @td.function
    def rows(x: Any) -> Any:
        kept = []
        for i in td.range(3):
            kept.append(x[i % 2] * td.cast(i, x.dtype))
        last = kept.pop()
        return td.stack(kept) * last

    return rows(x)


def added_lists(x: Any) -> Any:
    return list_stack(list_add(list_unstack(x), list_unstack(x * x)), [3])


def pushed(x: Any) -> Any:
    return list_stack(list_push(list_new(td.TensorSpec([3], x.dtype)), x[0] * x[1]), [3])


def list_taken_twice(x: Any) -> Any:
    """The gradients of two readers of a list are added element by element."""
    items = list_unstack(x * x)
    return list_stack(items, [3]) * td.reverse(list_stack(items, [3]), [0])


@td.custom_gradient
def clipped(x: Any) -> Any:
    return x * x, lambda dy: 2.0 * x * dy


def one_part_of_open_bounds(x: Any, part: Any) -> Any:
    """A part whose bounds only a run knows, which is set, and one that is read."""
    start = td.cast(td.reduce_sum(x * 0.0), td.int32) + 1
    changed = set_item(x, slice(start, start + 2), part)
    return changed * 2.0, changed[start:] * 3.0


def multiplied(h: Any, x: Any) -> Any:
    """A factor that all products of a loop share."""

    @td.function
    def result(h: Any, factor: Any) -> Any:
        for _ in td.range(4):
            h = td.matmul(h, factor)
        return h

    return result(h, td.matmul(x, x, transpose_a=True) / 9.0)


def accumulated(x: Any) -> Any:
    """Rows that a loop adds to in place."""

    @td.function
    def total(x: Any) -> Any:
        rows = td.zeros([3, 3], x.dtype)
        for i in td.range(4):
            rows = set_item(rows, i % 3, rows[i % 3] + x[i % 2])
        return rows

    return total(x)


def added_segments(x: Any) -> Any:
    """Sums over rows that a loop adds to in place."""

    @td.function
    def total(x: Any) -> Any:
        sums = td.zeros([3, 3], x.dtype)
        for i in td.range(3):
            sums += td.math.unsorted_segment_sum(x * x, td.stack([i, 0]), 3)
        return sums

    return total(x)


def read_parts(x: Any) -> Any:
    """Parts of bounds that only a run knows, whose gradients a loop adds up in place."""

    @td.function
    def total(x: Any) -> Any:
        found = td.zeros([], x.dtype)
        n = td.cast(td.reduce_sum(x * 0.0), td.int32)
        for i in td.range(3):
            found += td.reduce_sum(td.sin(x[n + i // 2 : n + i + 1]))
        return found

    return total(x)


def read_parts_by_number(x: Any) -> Any:
    """Parts whose bounds the number of the iteration tells."""

    @td.function
    def total(x: Any) -> Any:
        found = td.zeros([], x.dtype)
        for i in td.range(3):
            found += td.reduce_sum(td.sin(x[i : i + td.minimum(i, 1) + 1]))
        return found

    return total(x)


def rows_of_several_shapes(x: Any) -> Any:
    """A list that the gradient of a function needs, whose elements differ in shape."""

    @td.function
    def total(x: Any) -> Any:
        rows = td.TensorArray(
            x.dtype, size=0, dynamic_size=True, infer_shape=False, element_shape=[None, 3]
        )
        for i in td.range(3):
            rows = rows.write(i, x[:i] * x[:i])
        found = td.zeros([], x.dtype)
        for i in td.range(3):
            found += td.reduce_sum(td.sin(rows.read(i)))
        return found

    return total(x)


def written_elements(x: Any) -> Any:
    n = td.cast(td.reduce_sum(x * 0.0), td.int32)
    rows = x
    for i in td.range(n + 3):
        rows = set_item(rows, (i % 2, i), rows[i % 2, i] * 2.0 + 1.0)
    return rows


def sounds(x: Any) -> Any:
    file = td.audio.encode_wav(td.reshape(x / 2, [-1, 1]), 8000)
    return [td.strings.length(file), *td.audio.decode_wav(file)]


KNOWN_WORDS = td.lookup.StaticHashTable(
    td.lookup.KeyValueTensorInitializer(["a", "ab", "b"], [3, 4, 5], td.string, td.int64), -1
)


NUMERIC = [
    Program("added_segments", added_segments, (X,)),
    Program("read_parts", read_parts, (np.linspace(-1.0, 2.0, 12).reshape(4, 3),), batched=False),
    Program("read_parts_by_number", read_parts_by_number,
            (np.linspace(-1.0, 2.0, 12).reshape(4, 3),)),
    Program("written_elements", written_elements, (X,)),
    Program("numpy_unique", lambda x: np.unique(x, axis=0) * 2.0, (X,), batched=False),
    Program("rows_of_several_shapes", rows_of_several_shapes, (X,)),
    Program("cond", branch, (X,)),
    Program("all_reduce", lambda x: run(ALL_REDUCE, td.sin(x), how="sum", workers=1), (X,)),
    Program("all_gather", lambda x: run(ALL_GATHER, td.sin(x), workers=1), (X,)),
    Program("while", loop, (X,), close=True),
    Program("map_fn", mapped, (X,)),
    Program("tensor_array", rows_of_a_list, (X,)),
    Program("tensor_array_scatter", scattered_rows, (X,)),
    Program("tensor_array_concat", joined_rows, (X,), open_dims=False),
    Program("tensor_array_grows", grown_rows, (X,)),
    Program("list_pop", popped_rows, (X,)),
    Program("list_add", added_lists, (X,)),
    Program("list_push", pushed, (X,)),
    Program("list_taken_twice", list_taken_twice, (X,)),
    Program("custom_gradient", clipped, (X,)),
    Program("stop_gradient", lambda x: td.stop_gradient(x) + x * x, (X,), differentiable=False),
    Program("dynamic_slice_update", one_part_of_open_bounds, (np.ones((4, 3)), X), batched=False),
    Program("index_add", accumulated, (X,)),
    Program("matmul_panels", multiplied, (np.ones((100, 3)), X)),
    Program("convolve", convolve, (ROW, np.array([0.5, -1.5])), open_dims=False),
    Program("py_function", lambda x: td.py_function(lambda t: t * t, [x], td.float64, shape=[3]),
            (ROW,), batched=False, open_dims=False),
]  # fmt: skip


# -- programs of other kinds ---------------------------------------------------------------------

WORDS = np.array([["a b", "", "éÉ"], ["-b,", " x ", "12.5"]], object)


def strings(s: Any) -> Any:
    t = td.strings
    return [
        t.length(s), t.lower(s), t.upper(s), t.strip(s), t.substr(s, 0, 2), t.split(s[0], " "),
        t.regex_replace(s, "a", "<\\0>"), t.join([s, "-", s]), t.regex_full_match(s, ".?"),
        t.format("{}: {}", [1, s]), t.reduce_join(s, separator=","), t.to_hash_bucket(s, 7),
        t.to_hash_bucket_fast(s, 1000), t.to_hash_bucket_strong(s, 9, [1, 2]),
        td.as_string(t.length(s)), t.to_number(s[1, 2], td.float64),
        td.scatter_nd([[1], [0], [1]], td.stack([s[0, 0], s[0, 1], s[1, 0]]), [2]),
        *td.nest.flatten(td.sparse.cross([s, td.sparse.from_dense(s)])),
    ]  # fmt: skip


def random_numbers(seed: Any) -> Any:
    r = td.random
    return [
        r.stateless_uniform([4], seed), r.stateless_normal([2, 3], seed),
        r.stateless_truncated_normal([5], seed),
        r.stateless_uniform([3], seed, minval=None, maxval=None, dtype=td.int32),
        r.stateless_uniform([3], seed, minval=0, maxval=9, dtype=td.int32),
    ]  # fmt: skip


def families_of_random_numbers(x: Any) -> Any:
    r, seed = td.random, [1, 2]
    with td.GradientTape() as tape:
        tape.watch(x)
        gamma = r.stateless_gamma([3], seed, x[1] + 2.0, dtype=x.dtype)
    return [
        gamma, tape.gradient(gamma, x), r.stateless_poisson([3], seed, x[1] + 2.0),
        r.stateless_binomial([3], seed, x[1] * 0.0 + 9.0, x[1] * 0.0 + 0.5),
        r.stateless_parameterized_truncated_normal([3], seed, td.cast(x[1], td.float32)),
        r.experimental.index_shuffle(5, [1, 2], 9), r.experimental.stateless_shuffle(x, seed),
    ]  # fmt: skip


def shuffled(x: Any) -> Any:
    GENERATOR.reset_from_seed(3)
    td.random.set_seed(5)
    rows = td.sort(td.random.shuffle(x), axis=0)  # each call of a program draws another order
    return rows, GENERATOR.normal([2]), GENERATOR.uniform([2])


def uniques(x: Any) -> Any:
    return td.unique(td.constant([3, 1, 3, 2])), td.where(x > 0.0)


def unique_parts(x: Any) -> Any:
    return td.raw_ops.UniqueV2(x=td.round(x), axis=[0])


def changed_table(x: Any) -> Any:
    table = td.lookup.experimental.MutableHashTable(td.int64, x.dtype, -1.0)
    keys = td.constant([4, 2, 7], td.int64)
    values = td.reshape(x, [-1])[:3]
    with td.init_scope():
        before = table.size()
    table.insert(keys, values)
    table.remove(keys[:1])
    return [before, table.size(), table.lookup(keys), *table.export()]


def counted(x: Any) -> Any:
    return td.math.bincount(td.cast(x * x, td.int32), minlength=4, maxlength=4)


GENERATOR = td.random.Generator.from_seed(3)
VARIABLE = td.Variable(X)
OPEN = td.Variable(ROW, shape=td.TensorShape(None))


def variables(x: Any) -> Any:
    VARIABLE.assign(x * 2.0)
    OPEN.assign(x[0])
    VARIABLE.scatter_mul(td.IndexedSlices(x[:1], [1]))
    VARIABLE.scatter_div(td.IndexedSlices(x[:1], [0]))
    return VARIABLE + 1.0, OPEN.read_value() * 2.0


def printed(x: Any) -> Any:
    td.print(x[0], output_stream="file:///dev/null")
    td.debugging.assert_less(x, 10.0)
    return x * 2.0


def numpy_functions(x: Any) -> Any:
    return td.numpy_function(lambda a: a + 1.0, [x], td.float64, shape=[2, 3]), td.numpy_function(
        lambda a: a.sum(), [x], td.float64, stateful=False, shape=[]
    )


def settled(x: Any) -> Any:
    y = td.py_function(lambda t: t * 2.0, [x], td.float64)
    y.set_shape([2, 3])
    return y * 1.0


def called_by_the_run(x: Any) -> Any:
    y = td.py_function(lambda t: t * 2.0, [x], td.float64)
    return td.ensure_shape(td.transpose(y), [3, 2])


def elements_of_a_dataset(x: Any) -> Any:
    total = td.zeros([3], x.dtype)
    for row in td.data.Dataset.from_tensor_slices(X).map(lambda row: row * 2.0):
        total = total + row * x[0]
    size = td.data.Dataset.from_tensor_slices(x).cardinality()
    first = iter(td.data.Dataset.from_tensor_slices(x)).get_next_as_optional()
    return total, size, first.get_value()


def ranges(x: Any) -> Any:
    n = td.cast(td.reduce_sum(x * 0.0), td.int32) + 3
    return td.range(n) * 2, td.range(1, n, 2), td.zeros([n]) + 1.0


def checked_positions(x: Any) -> Any:
    """Positions that only a run knows, in a loop and outside of one."""
    total = td.zeros([], x.dtype)
    n = td.cast(td.reduce_sum(x * 0.0), td.int32)
    for i in td.range(n + 3):
        total += x[n + i % 2, i]
    return total, td.gather(x, [n, n + 1]), x[n], td.gather_nd(x, [[n, n]])


def whole_numbers(x: Any) -> Any:
    n = td.cast(td.reduce_sum(x * 0.0), td.int32)
    return td.constant([7, 8]) // (n + 2), td.constant([7, 8]) ** (n + 2)


def files_of_images(pixels: Any) -> Any:
    io = td.io
    png, jpeg = io.encode_png(pixels), io.encode_jpeg(pixels)
    found = [io.decode_png(png), io.decode_jpeg(jpeg), io.extract_jpeg_shape(jpeg)]
    return [*found, td.strings.length(png) > 0, io.is_jpeg(jpeg)]


def boxes(x: Any) -> Any:
    image = td.image
    corners = td.constant([[0.0, 0.0, 0.5, 0.5], [0.1, 0.1, 0.6, 0.6], [0.5, 0.5, 1.0, 1.0]])
    scores = td.cast(x[0], td.float32)
    overlaps = td.constant([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    pixels = td.reshape(td.cast(x, td.float32), [1, 2, 3, 1])
    part = image.stateless_sample_distorted_bounding_box([8, 8, 3], corners[None], [1, 2], 0.1)
    return [
        image.draw_bounding_boxes(pixels, corners[None], td.ones([1, 1])), *part,
        image.non_max_suppression(corners, scores, 2),
        image.non_max_suppression_overlaps(overlaps, scores, 2),
        *image.non_max_suppression_padded(corners, scores, 2, pad_to_max_output_size=True),
        *image.combined_non_max_suppression(
            corners[None, :, None], scores[None, :, None], 2, 2
        ),
    ]  # fmt: skip


def encodings(s: Any) -> Any:
    io, flat = td.io, td.reshape(s, [-1])
    return [
        io.decode_raw(td.constant(["abcd", "efgh"]), td.int16), io.encode_base64(flat),
        io.decode_base64(io.encode_base64(flat)), io.decode_compressed(flat),
        *io.decode_csv(td.constant(["1,2.5", "3,4.5"]), [[0], [0.0]]),
    ]  # fmt: skip


def characters(s: Any) -> Any:
    t, flat = td.strings, td.reshape(s, [-1])
    return [
        t.bytes_split("abc"), t.unicode_transcode(flat, "UTF-8", "UTF-16-BE"),
        t.unicode_decode("aé", "UTF-8"), t.unicode_encode(td.constant([97, 233]), "UTF-8"),
        t.ngrams(flat, 2), t.unsorted_segment_join(flat, [0, 1, 0, 1, 0, 1], 2),
        td.fingerprint(flat), t.unicode_encode(t.unicode_decode(flat, "UTF-8"), "UTF-8"),
        t.split(flat, "b").flat_values, td.sets.union([[1, 2]], [[2, 3]]).values,
    ]  # fmt: skip


def label_sequences(x: Any) -> Any:
    frames = td.fill([td.shape(x)[1]], td.shape(x)[0])
    (greedy,), _ = td.nn.ctc_greedy_decoder(x, frames)
    (best, second), score = td.nn.ctc_beam_search_decoder(x, frames, 6, 2)
    distance = td.edit_distance(best, greedy, normalize=False)
    return [best.values, best.dense_shape, second.indices, score, distance]


def transforms(x: Any) -> Any:
    signal = td.signal
    return signal.irfft(signal.rfft(x)), td.abs(signal.fft(td.cast(x, td.complex64)))


def examples(s: Any) -> Any:
    io, train = td.io, td.train
    features = train.Features(feature={"a": train.Feature(int64_list=train.Int64List(value=[1]))})
    given = train.Example(features=features).SerializeToString()
    return [
        io.parse_single_example(given, {"a": io.FixedLenFeature([], td.int64)})["a"],
        io.serialize_tensor(s), io.decode_json_example("{}"),
        td.ensure_shape(io.parse_tensor(io.serialize_tensor(s), td.string), s.shape),
        io.deserialize_many_sparse(io.serialize_many_sparse(td.sparse.from_dense(s)), td.string),
    ]  # fmt: skip


def files(s: Any) -> Any:
    td.io.write_file("/dev/null", s[0, 0])
    return td.io.read_file(__file__), td.io.matching_files(__file__)


OTHERS = [
    Program("files_of_images", files_of_images, (np.arange(48, dtype=np.uint8).reshape(4, 4, 3),)),
    Program("boxes", boxes, (X,)),
    Program("encodings", encodings, (WORDS,)),
    Program("examples", examples, (WORDS,)),
    Program("characters", characters, (WORDS,), open_dims=False),
    Program("files", files, (WORDS,)),
    Program("strings", strings, (WORDS,)),
    Program("sounds", sounds, (X.astype(np.float32),), differentiable=False),
    Program("rows_of_words", KNOWN_WORDS.lookup, (WORDS,)),
    Program("stateless_random", random_numbers, (np.array([1, 2], np.int32),), close=True),
    Program("random_families", families_of_random_numbers, (X,), close=True),
    Program("shuffle", shuffled, (X,)),
    Program("unique", uniques, (X,)),
    Program("unique along an axis", unique_parts, (X,)),
    Program("changed_table", changed_table, (X,), batched=False),
    Program("bincount", counted, (X,)),
    Program("variables", variables, (X,)),
    Program("print", printed, (X,)),
    Program("numpy_function", numpy_functions, (X,)),
    Program("set_shape", settled, (X,)),
    Program("late_call", called_by_the_run, (X,), batched=False, open_dims=False),
    Program("dataset", elements_of_a_dataset, (X,)),
    Program("ranges", ranges, (X,)),
    Program("checked_positions", checked_positions, (X,)),
    Program("whole_numbers", whole_numbers, (X,)),
    Program("label_sequences", label_sequences, (np.sin(np.arange(24.0) * 5).reshape(4, 2, 3),)),
    Program("transforms", transforms, (np.ones((2, 8), np.float32),), open_dims=False, close=True),
    Program("masked_pooling",
            lambda dy, x: pulled(lambda t: td.nn.max_pool2d(td.nn.relu(t), 2, 2, "VALID"))(dy, x),
            (np.ones((1, 2, 2, 1)), np.linspace(-2, 3, 16).reshape(1, 4, 4, 1))),
]  # fmt: skip
