"""Programs that iterate over datasets inside functions; see `programs.py`."""

from __future__ import annotations

from typing import Any

Tf = Any


def arguments_share_traces(tf: Tf) -> Any:
    @tf.function
    def total(dataset: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for x in dataset:
            result += tf.reduce_sum(x)
        return result

    make = tf.data.Dataset.range
    found = [total(d) for d in (make(3), make(5), make(5).batch(2), make(7).batch(3))]
    return found, total.experimental_get_tracing_count()


def iterators_share_traces(tf: Tf) -> Any:
    @tf.function
    def following(iterator: Any) -> Any:
        return next(iterator)

    a, b = iter(tf.data.Dataset.range(3)), iter(tf.data.Dataset.range(5))
    found = [following(i) for i in (a, a, b, a)]
    return found, following.experimental_get_tracing_count()


def iterator_at_the_end(tf: Tf) -> Any:
    @tf.function
    def following(iterator: Any) -> Any:
        return next(iterator)

    iterator = iter(tf.data.Dataset.range(1))
    return following(iterator), following(iterator)


def loop_without_autograph(tf: Tf) -> Any:
    @tf.function(autograph=False)
    def total(dataset: Any) -> Any:
        result = 0
        for x in dataset:
            result += x
        return result

    return total(tf.data.Dataset.range(3))


def enumerate_in_function(tf: Tf) -> Any:
    @tf.function
    def weighted(dataset: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for i, x in enumerate(dataset):
            result += i * x
        return result

    return weighted(tf.data.Dataset.range(4))


def zip_in_function(tf: Tf) -> Any:
    @tf.function
    def product(a: Any, b: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for x, y in zip(a, b):
            result += x * y
        return result

    return product(tf.data.Dataset.range(4), tf.data.Dataset.range(10))


def break_and_continue(tf: Tf) -> Any:
    @tf.function
    def some(dataset: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for x in dataset:
            if x == 2:
                continue
            if x > 5:
                break
            result += x
        return result

    return some(tf.data.Dataset.range(100))


def captured(tf: Tf) -> Any:
    dataset = tf.data.Dataset.range(4).map(lambda x: x * x)
    bodies = []

    @tf.function
    def total() -> Any:
        result = tf.constant(0, tf.int64)
        for x in dataset:
            bodies.append(1)
            result += x
        return result

    return total(), total(), len(bodies)


def made_from_a_tensor(tf: Tf) -> Any:
    @tf.function
    def total(count: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for x in tf.data.Dataset.range(count).batch(2):
            result += tf.reduce_sum(x)
        return result

    return total(tf.constant(5, tf.int64)), total(tf.constant(6, tf.int64))


def transformed_argument(tf: Tf) -> Any:
    @tf.function
    def total(dataset: Any, factor: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for x in dataset.map(lambda x: x * factor).filter(lambda x: x > factor):
            result += x
        return result

    return total(tf.data.Dataset.range(4), tf.constant(2, tf.int64))


def reduce_in_function(tf: Tf) -> Any:
    @tf.function
    def total(dataset: Any, factor: Any) -> Any:
        return dataset.reduce(tf.constant(0, tf.int64), lambda s, x: s + x * factor)

    return total(tf.data.Dataset.range(5), tf.constant(3, tf.int64))


def iterator_made_in_function(tf: Tf) -> Any:
    @tf.function
    def two(dataset: Any) -> Any:
        iterator = iter(dataset)
        first = next(iterator)
        return first, next(iterator)

    return two(tf.data.Dataset.range(5))


def iterator_after_break(tf: Tf) -> Any:
    @tf.function
    def following(iterator: Any) -> Any:
        for x in iterator:
            if x >= 2:
                break
        return next(iterator)

    return following(iter(tf.data.Dataset.range(9)))


def iterator_in_a_counted_loop(tf: Tf) -> Any:
    @tf.function
    def three(iterator: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for _ in tf.range(3):
            result += next(iterator)
        return result

    iterator = iter(tf.data.Dataset.range(9))
    return three(iterator), three(iterator)


def optional_in_function(tf: Tf) -> Any:
    @tf.function
    def or_minus_one(iterator: Any) -> Any:
        found = iterator.get_next_as_optional()
        if found.has_value():
            return found.get_value()
        return tf.constant(-1, tf.int64)

    return or_minus_one(iter(tf.data.Dataset.range(2))), or_minus_one(
        iter(tf.data.Dataset.range(0))
    )


def length_in_function(tf: Tf) -> Any:
    @tf.function
    def count(dataset: Any) -> Any:
        return len(dataset)

    return count(tf.data.Dataset.range(3))


def last_element(tf: Tf) -> Any:
    @tf.function
    def last(dataset: Any) -> Any:
        x = tf.constant(0, tf.int64)
        for x in dataset:
            pass
        return x

    return last(tf.data.Dataset.range(3)), last(tf.data.Dataset.range(0))


def nested_loops(tf: Tf) -> Any:
    @tf.function
    def total(dataset: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for _ in tf.range(2):
            for x in dataset:
                result += x
        return result

    return total(tf.data.Dataset.range(4))


def windows_in_function(tf: Tf) -> Any:
    @tf.function
    def digits(dataset: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for window in dataset.window(2):
            for x in window:
                result = result * 10 + x
        return result

    return digits(tf.data.Dataset.range(5))


def returned_dataset(tf: Tf) -> Any:
    @tf.function
    def same(dataset: Any) -> Any:
        return dataset

    dataset = tf.data.Dataset.range(3)
    return list(same(dataset).as_numpy_iterator())


def numpy_iterator_in_function(tf: Tf) -> Any:
    @tf.function
    def listed(dataset: Any) -> Any:
        return list(dataset.as_numpy_iterator())

    return listed(tf.data.Dataset.range(3))


def signature_of_a_dataset(tf: Tf) -> Any:
    spec = tf.data.DatasetSpec(tf.TensorSpec((), tf.int64))

    @tf.function(input_signature=[spec])
    def total(dataset: Any) -> Any:
        return dataset.reduce(tf.constant(0, tf.int64), lambda s, x: s + x)

    return total(tf.data.Dataset.range(4))


def training_loop(tf: Tf) -> Any:
    weights = tf.Variable([0.0, 0.0])

    @tf.function
    def train(dataset: Any) -> Any:
        loss = tf.constant(0.0)
        for x, y in dataset:
            with tf.GradientTape() as tape:
                error = tf.linalg.matvec(x, weights) - y
                loss = tf.reduce_mean(error * error)
            weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    x = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    dataset = tf.data.Dataset.from_tensor_slices((x, [1.0, 2.0, 3.0])).batch(2).repeat(5)
    return train(dataset), weights.numpy()


def flat_map_with_what_is_around(tf: Tf) -> Any:
    @tf.function
    def total(dataset: Any, factor: Any) -> Any:
        def scaled(x: Any) -> Any:
            return tf.data.Dataset.from_tensors(x * factor).repeat(2)

        flat = dataset.flat_map(scaled)
        turns = dataset.interleave(scaled, cycle_length=2)
        start = tf.constant(0, tf.int64)
        return flat.reduce(start, lambda s, x: s + x), turns.reduce(start, lambda s, x: s * 3 + x)

    dataset = tf.data.Dataset.range(4)
    return [total(dataset, tf.constant(n, tf.int64)) for n in (2, 5)]


def slices_of_a_symbolic_tensor(tf: Tf) -> Any:
    @tf.function
    def total(rows: Any) -> Any:
        dataset = tf.data.Dataset.from_tensor_slices(rows).map(lambda row: row * 2).batch(2)
        return dataset.reduce(tf.constant(0.0), lambda s, batch: s + tf.reduce_sum(batch))

    return [total(tf.ones([5])), total(tf.ones([3]))]


def next_in_a_branch(tf: Tf) -> Any:
    @tf.function
    def two(dataset: Any) -> Any:
        iterator = iter(dataset)
        first = next(iterator)
        if first > 0:
            second = next(iterator)
        else:
            second = first
        return first, second

    return two(tf.data.Dataset.range(1, 4)), two(tf.data.Dataset.range(4))


def datasets_in_a_dict(tf: Tf) -> Any:
    @tf.function
    def total(datasets: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for name in datasets:
            for x in datasets[name]:
                result += x
        return result

    return total({"a": tf.data.Dataset.range(3), "b": tf.data.Dataset.range(5)})


def signature_with_open_dims(tf: Tf) -> Any:
    @tf.function(input_signature=[tf.data.DatasetSpec(tf.TensorSpec((None,), tf.int64))])
    def total(dataset: Any) -> Any:
        result = tf.constant(0, tf.int64)
        for x in dataset:
            result += tf.reduce_sum(x)
        return result

    numbers = tf.data.Dataset.range(6)
    found = [total(numbers.batch(4)), total(numbers.batch(3, drop_remainder=True))]
    return found, total.experimental_get_tracing_count()


def signature_of_an_iterator(tf: Tf) -> Any:
    numbers = tf.data.Dataset.range(6)
    spec = tf.data.IteratorSpec(tf.TensorSpec((), tf.int64))

    @tf.function(input_signature=[spec])
    def following(iterator: Any) -> Any:
        return next(iterator)

    return following(iter(numbers))
