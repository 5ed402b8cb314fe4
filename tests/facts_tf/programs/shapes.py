"""TensorShape and TensorSpec, with dims and ranks that are not known."""

from __future__ import annotations

from tests.facts_tf.registry import outcome, program, raised


def shapes(tf):
    S = tf.TensorShape
    return [S(None), S([]), S([2, 3]), S([None, 3]), S([2, None]), S([None]), S([4])]


def each(tf, what):
    return [outcome(what, shape) for shape in shapes(tf)]


def pairs(tf, what):
    return [[outcome(what, a, b) for b in shapes(tf)] for a in shapes(tf)]


@program
def dimensions(tf):
    a, b = tf.TensorShape([2, None]).dims
    sums = [(a + 1).value, (a * b).value]
    numbers = [a.value, b.value, int(a), str(a), str(b), a == 2, b == 2, *sums]
    names = ("dimension_value", "dimension_at_index")
    value, at = (getattr(tf.compat, name) for name in names)
    return [numbers, value(a), value(b), value(3), value(None), at(tf.TensorShape(None), 1).value,
            at(tf.TensorShape([2, 3]), 1).value, tf.TensorShape([a, b]),
            len(tf.zeros([2, 3]).shape.dims)]  # fmt: skip


@program
def python_values(tf):
    c = tf.compat
    return [
        c.as_bytes("a"), c.as_bytes(b"a"), c.as_text(b"a"), c.as_text("a"), c.as_str(b"a"),
        c.as_str_any(b"a"), c.as_str_any(3), c.path_to_str("a"), c.path_to_str(3),
        raised(c.as_bytes, 3), raised(c.as_text, 3), isinstance(3, c.integral_types),
        isinstance(3.0, c.real_types), isinstance(3j, c.complex_types),
        isinstance("a", c.bytes_or_text_types), c.forward_compatible(2020, 1, 1),
        c.v2.reduce_sum([1, 2]),
    ]  # fmt: skip


@program
def attributes(tf):
    found = []
    for what in (
        lambda s: s.rank,
        lambda s: s.ndims,
        lambda s: s.as_list(),
        lambda s: s.is_fully_defined(),
        lambda s: s.num_elements(),
        lambda s: str(s),
        lambda s: repr(s),
        lambda s: bool(s),
        lambda s: s.dims is None,
        lambda s: s.assert_is_fully_defined(),
    ):
        found.append(each(tf, what))
    return found


@program
def length_and_iteration(tf):
    kinds = (len, list, tuple, lambda s: s[0], lambda s: s[-1], lambda s: s[5], lambda s: [*s])
    return [each(tf, kind) for kind in kinds]


@program
def slices(tf):
    cuts = [slice(None), slice(1, None), slice(None, 1), slice(0, 2), slice(-1, None)]
    cuts += [slice(None, -1), slice(0, 0), slice(1, 3), slice(0, 2, 2), slice(None, None, 2)]
    return [[outcome(lambda s=s, c=c: s[c]) for c in cuts] for s in shapes(tf)]


@program
def merged(tf):
    return pairs(tf, lambda a, b: a.merge_with(b))


@program
def concatenated(tf):
    return pairs(tf, lambda a, b: a.concatenate(b)), pairs(tf, lambda a, b: a + b)


@program
def concatenated_with_sequences(tf):
    S = tf.TensorShape
    return [
        outcome(lambda: S(None) + [2]),
        outcome(lambda: [2] + S(None)),
        outcome(lambda: [2] + S([3])),
        outcome(lambda: S([3]) + (None, 1)),
        outcome(lambda: S([3]).concatenate(None)),
    ]


@program
def compatible(tf):
    return pairs(tf, lambda a, b: a.is_compatible_with(b)), pairs(
        tf, lambda a, b: raised(a.assert_is_compatible_with, b)
    )


@program
def most_specific(tf):
    return pairs(tf, lambda a, b: a.most_specific_compatible_shape(b))


@program
def equal(tf):
    return pairs(tf, lambda a, b: a == b), pairs(tf, lambda a, b: a != b)


@program
def equal_to_other_things(tf):
    S = tf.TensorShape
    others = [None, [], [2, 3], (2, 3), [None, 3], 4, "x", [4]]
    return [[outcome(lambda s=s, o=o: s == o) for o in others] for s in shapes(tf)], [
        outcome(lambda: S(None) != None),  # noqa: E711
        outcome(lambda: S([2]) in [S(None), S([2])]),
    ]


@program
def hashed(tf):
    S = tf.TensorShape
    table = {S(None): "none", S([]): "scalar", S([2, None]): "matrix"}
    return table[S(None)], table[S([])], table[S([2, None])], len({S(None), S(None), S([1])})


@program
def same_rank(tf):
    return (
        pairs(tf, lambda a, b: raised(a.assert_same_rank, b)),
        each(tf, lambda s: s.with_rank(2)),
        each(tf, lambda s: s.with_rank_at_least(1)),
        each(tf, lambda s: s.with_rank_at_most(1)),
        each(tf, lambda s: raised(s.assert_has_rank, 1)),
    )


@program
def subtypes(tf):
    return pairs(tf, lambda a, b: a.is_subtype_of(b)), pairs(
        tf, lambda a, b: a.most_specific_common_supertype([b])
    )


@program
def made_of(tf):
    S = tf.TensorShape
    values = [None, 3, [3], (), "a", [-1], [None, None], S(None), 1.5, [1.5], ["b"]]
    return [outcome(S, v) for v in values]


@program
def converted(tf):
    return each(tf, tf.convert_to_tensor), each(tf, lambda s: tf.zeros(s))


@program
def specs_of_unknown_rank(tf):
    S, T = tf.TensorShape, tf.TensorSpec
    a, b = T(None, tf.float32), T(shape=None)
    return (
        a.shape,
        a == b,
        a == T(S(None), tf.float32),
        hash(a) == hash(b),
        a.dtype,
        b.name,
        T(None, tf.int32, name="n").name,
        a == T([], tf.float32),
    )


@program
def compatible_specs(tf):
    T = tf.TensorSpec
    a = T(None, tf.float32)
    others = [T([], tf.float32), T([2, None], tf.float32), T(None, tf.int32), T([2], tf.int32)]
    others += [tf.constant(1.0), tf.ones([2, 3]), tf.constant(1)]
    return [outcome(a.is_compatible_with, o) for o in others], [
        outcome(o.is_compatible_with, a) for o in others[:4]
    ]


@program
def related_specs(tf):
    T = tf.TensorSpec
    specs = [T(None), T([]), T([2, 3]), T([None, 3]), T([4], tf.int32), T(None, tf.int32)]

    def names(found):
        return found if found is None or isinstance(found, str) else (found.shape, found.dtype)

    return (
        [[outcome(a.is_subtype_of, b) for b in specs] for a in specs],
        [[names(outcome(a.most_specific_common_supertype, [b])) for b in specs] for a in specs],
        [[names(outcome(a.most_specific_compatible_type, b)) for b in specs] for a in specs],
    )


@program
def specs_of_values(tf):
    S = tf.TensorSpec
    x = tf.ones([2, 3])
    found = [S.from_tensor(x), S.from_spec(S([2], tf.int32), name="n"), tf.type_spec_from_value(x)]
    return [(type(s).__name__, s.shape, s.dtype, s.name) for s in found], [
        isinstance(found[0], tf.TypeSpec),
        raised(tf.type_spec_from_value, object()),
        found[0].value_type.__name__,
        tf.type_spec_from_value(tf.Variable([1.0], shape=tf.TensorShape(None))).shape,
    ]
