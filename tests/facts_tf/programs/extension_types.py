"""Classes of the user as arguments, results and loop state: extension types, trace types."""

# TensorFlow knows the names of `typing` only.
# ruff: noqa: UP006, UP007, UP045

import typing

from tests.facts_tf.registry import outcome, program, raised


def masked(tf):
    class Masked(tf.experimental.ExtensionType):
        values: tf.Tensor
        mask: tf.Tensor

        def total(self):
            return tf.reduce_sum(tf.where(self.mask, self.values, 0))

        def __add__(self, other):
            return Masked(self.values + other, self.mask)

    return Masked


@program
def made_and_read(tf):
    m = masked(tf)([1, 2, 3], [True, False, True])
    return m.values, m.mask, m.total(), (m + 1).values, isinstance(m, tf.experimental.ExtensionType)


@program
def constructed(tf):
    M = masked(tf)
    return (
        M(values=[1], mask=[True]).values,
        M([1], mask=[True]).mask,
        raised(M, [1]),
        raised(M, [1], [True], [2]),
        raised(M, values=[1], mask=[True], more=1),
        raised(M, "a", object()),
    )


@program
def defaults_and_optionals(tf):
    class Options(tf.experimental.ExtensionType):
        scale: float = 1.0
        name: str = "x"
        flags: typing.Tuple[bool, ...] = ()
        table: typing.Mapping[str, tf.Tensor] = {}
        bias: typing.Optional[tf.Tensor] = None
        either: typing.Union[int, str] = 1

    a, b = Options(), Options(2.0, "y", (True, False), {"k": 3}, 4.0, "s")
    return (
        a.scale, a.name, a.flags, dict(a.table), a.bias, a.either,
        b.scale, b.name, b.flags, dict(b.table), b.bias, b.either,
        raised(Options, "a"), raised(Options, name=1), raised(Options, flags=(1,)),
        raised(Options, either=1.5),
    )  # fmt: skip


@program
def immutable(tf):
    m = masked(tf)([1], [True])

    def assign():
        m.values = tf.constant([2])

    def delete():
        del m.mask

    def add():
        m.more = 1

    return raised(assign), raised(delete), raised(add)


@program
def compared(tf):
    M = masked(tf)
    a, b, c = M([1, 2], [True, True]), M([1, 2], [True, True]), M([1, 3], [True, True])
    return a == b, a == c, a != c, raised(hash, a)


@program
def arguments_and_results(tf):
    M = masked(tf)
    traces = []

    @tf.function
    def f(m, n):
        traces.append(1)
        return m + n, m.total(), isinstance(m, M)

    first = f(M([1, 2], [True, False]), tf.constant(3))
    second = f(M([5, 6], [True, True]), tf.constant(4))
    third = f(M([1, 2, 3], [True, True, True]), tf.constant(0))
    return [(r[0].values, r[0].mask, r[1]) for r in (first, second, third)], len(traces)


@program
def static_fields_are_part_of_the_type(tf):
    class Scaled(tf.experimental.ExtensionType):
        x: tf.Tensor
        factor: int

        def value(self):
            return self.x * self.factor

    traces = []

    @tf.function
    def f(s):
        traces.append(s.factor)
        return s.value()

    return f(Scaled(2, 3)), f(Scaled(4, 3)), f(Scaled(4, 5)), traces


@program
def loop_state(tf):
    M = masked(tf)

    @tf.function
    def f(m, n):
        for i in tf.range(n):
            m = m + i
        return m

    result = f(M([1, 2], [True, False]), tf.constant(4))
    return result.values, result.mask


@program
def branches(tf):
    M = masked(tf)

    @tf.function
    def f(m, n):
        if n > 0:
            m = m + 1
        else:
            m = M(m.values * 2, tf.logical_not(m.mask))
        return m

    m = M([1, 2], [True, False])
    return [(r.values, r.mask) for r in (f(m, tf.constant(1)), f(m, tf.constant(-1)))]


@program
def staged_by_hand(tf):
    M = masked(tf)

    @tf.function
    def f(m):
        _, last = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + i), [0, m])
        return tf.cond(last.total() > 0, lambda: last, lambda: m)

    return f(M([1, 2], [True, True])).values


@program
def nested_types(tf):
    M = masked(tf)

    class Pair(tf.experimental.ExtensionType):
        first: M
        second: M
        weight: tf.Tensor = 2

        def both(self):
            return self.first.total() + self.weight * self.second.total()

    @tf.function
    def f(p):
        return Pair(p.second, p.first, p.weight + 1)

    p = Pair(M([1], [True]), M([5], [True]))
    return p.both(), f(p).both(), f(p).weight


@program
def validated(tf):
    class Square(tf.experimental.ExtensionType):
        x: tf.Tensor

        def __validate__(self):
            self.x.shape.assert_has_rank(2)
            assert self.x.shape[0] == self.x.shape[1], "not square"

    return Square([[1.0]]).x, raised(Square, [[1.0, 2.0]]), raised(Square, [1.0])


@program
def own_constructor(tf):
    class Angle(tf.experimental.ExtensionType):
        radians: tf.Tensor

        def __init__(self, degrees):
            self.radians = tf.constant(degrees) * 0.01

        @property
        def doubled(self):
            return self.radians * 2.0

    @tf.function
    def f(a):
        return a

    return Angle(90.0).radians, Angle(50.0).doubled, f(Angle(10.0)).radians


@program
def inherited(tf):
    class Base(tf.experimental.ExtensionType):
        x: tf.Tensor

        def twice(self):
            return self.x * 2

    class Derived(Base):
        y: tf.Tensor

        def all(self):
            return self.twice() + self.y

    d = Derived(1, 2)
    return d.all(), tf.function(lambda v: v.all())(d), Derived(x=3, y=4).twice()


@program
def specs(tf):
    M = masked(tf)
    m = M([1, 2], [True, False])
    spec = tf.type_spec_from_value(m)
    wide = M.Spec(values=tf.TensorSpec([None], tf.int32), mask=tf.TensorSpec([None], tf.bool))
    f = tf.function(lambda v: v.total(), input_signature=[wide])
    return (
        type(spec).__name__,
        spec.values.shape,
        spec.mask.dtype,
        spec == tf.type_spec_from_value(M([3, 4], [True, True])),
        spec == tf.type_spec_from_value(M([3], [True])),
        wide.is_compatible_with(m),
        spec.is_compatible_with(M([1], [True])),
        [f(m), f(M([1, 2, 3], [True] * 3))],
        f.experimental_get_tracing_count(),
        isinstance(spec, tf.TypeSpec),
    )


@program
def gradients_through_types(tf):
    class Point(tf.experimental.ExtensionType):
        x: tf.Tensor
        y: tf.Tensor

    p = Point(2.0, 3.0)
    with tf.GradientTape() as tape:
        tape.watch(p.x)
        z = p.x * p.x * p.y
    return tape.gradient(z, p.x)


@program
def flattened(tf):
    m = masked(tf)([1], [True])
    return (
        len(tf.nest.flatten(m)),
        tf.nest.map_structure(lambda t: t, m) is m,
        len(tf.nest.flatten(m, expand_composites=True)),
    )


@program
def replaced(tf):
    class Point(tf.experimental.ExtensionType):
        x: tf.Tensor
        y: int = 1

    p = Point(2.0)
    return repr(Point.__name__), p.x, p.y, outcome(lambda: Point(p.x, 5).y)


@program
def bad_definitions(tf):
    E = tf.experimental.ExtensionType

    def unannotated():
        class A(E):
            x = 1

        return A

    def unknown():
        class A(E):
            x: object

        return A

    def of_lists():
        class A(E):
            x: typing.List[int]

        return A

    def wrong_default():
        class A(E):
            x: int = "a"

        return A

    def reserved():
        class A(E):
            Spec: int

        return A

    return [raised(f) for f in (unannotated, unknown, of_lists, wrong_default, reserved)]


def fruit(tf):
    class FruitType(tf.types.experimental.TraceType):
        def __init__(self, kind, color):
            self.kind, self.color = kind, color

        def is_subtype_of(self, other):
            return self == other

        def most_specific_common_supertype(self, others):
            return self if all(self == other for other in others) else None

        def placeholder_value(self, context=None):
            return Fruit(self.kind, self.color)

        def __hash__(self):
            return hash((self.kind, self.color))

        def __eq__(self, other):
            return isinstance(other, FruitType) and (self.kind, self.color) == (
                other.kind,
                other.color,
            )

    class Fruit:
        def __init__(self, kind, color, label=""):
            self.kind, self.color, self.label = kind, color, label

        def __tf_tracing_type__(self, context):
            return FruitType(self.kind, self.color)

    return Fruit


@program
def trace_types(tf):
    Fruit = fruit(tf)
    traces = []

    @tf.function
    def f(item):
        traces.append((item.kind, item.color))
        return tf.constant(len(traces))

    values = [Fruit("apple", "red"), Fruit("apple", "red"), Fruit("apple", "green")]
    values += [Fruit("pear", "green"), Fruit("apple", "red")]
    return [f(v) for v in values], traces


@program
def trace_types_in_structures(tf):
    Fruit = fruit(tf)
    traces = []

    @tf.function
    def f(items, x):
        traces.append(len(items))
        return x + len(items[0].kind)

    x = tf.constant(1)
    return [
        f([Fruit("fig", "blue")], x),
        f([Fruit("fig", "blue", "another")], x),
        f([Fruit("lime", "green")], x),
    ], traces


@program
def trace_types_of_wider_values(tf):
    class AtMost(tf.types.experimental.TraceType):
        def __init__(self, limit):
            self.limit = limit

        def is_subtype_of(self, other):
            return isinstance(other, AtMost) and self.limit <= other.limit

        def most_specific_common_supertype(self, others):
            if not all(isinstance(other, AtMost) for other in others):
                return None
            return AtMost(max([self.limit, *(other.limit for other in others)]))

        def placeholder_value(self, context=None):
            return Limit(self.limit)

        def __hash__(self):
            return hash(self.limit)

        def __eq__(self, other):
            return isinstance(other, AtMost) and self.limit == other.limit

    class Limit:
        def __init__(self, limit):
            self.limit = limit

        def __tf_tracing_type__(self, context):
            return AtMost(self.limit)

    traces = []

    @tf.function
    def f(item):
        traces.append(item.limit)
        return tf.constant(item.limit)

    return [f(Limit(n)) for n in (5, 3, 5, 8, 2, 6)], traces


@program
def protocol(tf):
    Fruit = fruit(tf)
    P = tf.types.experimental.SupportsTracingProtocol
    return isinstance(Fruit("a", "b"), P), isinstance(1, P)
