"""Extension types as elements of datasets. (Annotations of the class are read as they are made.)"""

from tests.facts_tf.registry import outcome, program, raised


def masked(tf):
    class Masked(tf.experimental.BatchableExtensionType):
        values: tf.Tensor
        mask: tf.Tensor
        unit: str = "m"

        def total(self):
            return tf.reduce_sum(tf.where(self.mask, self.values, 0.0))

    return Masked


def three(tf, kind):
    return kind(
        tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        tf.constant([[True, False], [True, True], [False, True]]),
    )


def parts(elements):
    return [(e.values, e.mask, e.unit) for e in elements]


@program
def slices_and_batches(tf):
    data = tf.data.Dataset.from_tensor_slices(three(tf, masked(tf)))
    return (
        parts(data), parts(data.batch(2)), parts(data.batch(2).unbatch()),
        parts(data.cache().prefetch(1).skip(1)), parts(data.concatenate(data).take(4)),
        parts(tf.data.Dataset.from_tensors(three(tf, masked(tf)))),
    )  # fmt: skip


@program
def element_specs(tf):
    spec = tf.data.Dataset.from_tensor_slices(three(tf, masked(tf))).batch(2).element_spec
    return spec.values, spec.mask, spec.unit, isinstance(spec, tf.experimental.ExtensionTypeSpec)


@program
def functions_of_elements(tf):
    Masked = masked(tf)
    data = tf.data.Dataset.from_tensor_slices(three(tf, Masked))
    return (
        list(data.map(lambda m: m.total())),
        parts(data.map(lambda m: Masked(m.values * 2.0, m.mask, "km"))),
        parts(data.filter(lambda m: m.total() > 2.0)),
        data.reduce(0.0, lambda s, m: s + m.total()),
        list(data.map(lambda m: (m, 1)).map(lambda m, n: m.total() + tf.cast(n, tf.float32))),
        [(m.values, n) for m, n in tf.data.Dataset.zip((data, tf.data.Dataset.range(2)))],
    )


@program
def loops_in_functions(tf):
    data = tf.data.Dataset.from_tensor_slices(three(tf, masked(tf)))

    @tf.function
    def total(elements):
        s = 0.0
        for m in elements:
            s += m.total()
        return s

    @tf.function
    def first(iterator):
        return next(iterator).total()

    iterator = iter(data)
    return total(data), first(iterator), first(iterator)


@program
def generators(tf):
    Masked = masked(tf)
    spec = Masked.Spec(tf.TensorSpec([3, 2]), tf.TensorSpec([3, 2], tf.bool), "m")
    made = tf.data.Dataset.from_generator(
        lambda: iter([three(tf, Masked)]), output_signature=spec
    )
    return parts(made)


@program
def mapped_without_datasets(tf):
    Masked = masked(tf)
    m = three(tf, Masked)
    spec = Masked.Spec(tf.TensorSpec([2]), tf.TensorSpec([2], tf.bool), "m")
    doubled = tf.map_fn(lambda m: Masked(m.values * 2.0, m.mask), m, fn_output_signature=spec)
    return (
        tf.map_fn(lambda m: m.total(), m, fn_output_signature=tf.float32),
        tf.vectorized_map(lambda m: m.total(), m), doubled.values, doubled.unit,
    )  # fmt: skip


@program
def other_elements(tf):
    Masked = masked(tf)
    data = tf.data.Dataset
    short = Masked([[1.0]], [[True], [False]])
    return raised(data.from_tensor_slices, short), outcome(
        lambda: list(data.from_tensors(three(tf, Masked)).map(lambda m: None))
    )
