"""Programs with a bug each, for test_traceback_frames. Their lines are what is compared."""

# ruff: noqa
import treadle as td


def bad_shape(x):
    return td.matmul(x, x)  # tracing


def bad_index(x, i):
    return td.gather(x, i)  # running


class Model:
    def __init__(self, k):
        self.k = k

    def __call__(self, x, i):
        return self.step(x, i) * self.k

    def step(self, x, i):
        if i > 0:
            y = self.inner(x, i)
        else:
            y = x[0]
        return y

    def inner(self, x, i):
        return bad_index(x, i)

    @property
    def prop(self):
        return bad_shape(td.ones([3]))

    @staticmethod
    def static(x, i):
        return bad_index(x, i)


def method(x, i):
    return Model(2.0)(x, i)


def static(x, i):
    return Model.static(x, i)


def prop(x, i):
    return Model(2.0).prop + x


def in_lambda(x, i):
    pick = lambda y, j: bad_index(y, j)
    return pick(x, i)


def lambda_argument(x, i):
    return (lambda f: f(x, i))(bad_index)


def in_loop(x, i):
    total = 0.0
    for k in td.range(3):
        total = total + bad_index(x, i + k)
    return total


def in_loop_shape(x, i):
    while i < 9:
        x = bad_shape(x)
        i = i + 1
    return x


def in_branch(x, i):
    if i > 0:
        if td.reduce_sum(x) > 0:
            y = bad_index(x, i)
        else:
            y = x[0]
    else:
        y = x[0]
    return y


def in_branch_shape(x, i):
    if i > 0:
        y = x
    elif i > -5:
        y = bad_shape(x)
    else:
        y = x
    return y


def in_condition(x, i):
    if bad_index(x, i) > 0:
        return x
    return -x


def in_while_condition(x, i):
    while bad_index(x, i) > 0:
        x = x - 1.0
    return x


def in_comprehension(x, i):
    return [bad_index(x, i + k) for k in range(2)]


def in_conditional_expression(x, i):
    return bad_index(x, i) if i > 0 else x[0]


def and_or(x, i):
    return x[0] > 0 and bad_index(x, i) > 0


def gradient(x, i):
    with td.GradientTape() as tape:
        tape.watch(x)
        y = in_branch(x, i)
    return tape.gradient(y, x)


def gradient_shape(x, i):
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return bad_shape(tape.gradient(y, x))


def python_part(a):
    table = {}
    return table[int(a)]


def py_function(x, i):
    return td.py_function(python_part, [i], td.TensorSpec([], td.float32))


def python_error(x, i):
    for k in range(3):
        if k == 2:
            raise ValueError("k is 2")
        x = x + 1.0
    return x


def python_error_in_branch(x, i):
    if i > 0:
        python_error(x, i)
    return x


def raising_in_with(x, i):
    with td.GradientTape():
        for k in td.range(2):
            x = bad_shape(x)
    return x


def try_finally(x, i):
    try:
        y = bad_shape(x)
    finally:
        z = 1
    return y


def nested_function(x, i):
    def inner(y):
        def innermost(z):
            return bad_index(z, i)

        return innermost(y)

    return inner(x)


def multi_line(x, i):
    return td.add(
        x,
        bad_index(
            x,
            i,
        ),
    )


def assertion(x, i):
    assert i < 0, "negative please"
    return x


def recursion(x, i, n=3):
    if n == 0:
        return bad_index(x, i)
    return recursion(x, i, n - 1)


def decorated(x, i):
    return function_inside(x, i) + 1.0


@td.function
def function_inside(x, i):
    return bad_index(x, i)


def while_loop(x, i):
    return td.while_loop(lambda k: k < 3, lambda k: [k + bad_index(td.cast(x, td.int32), i)], [0])


def cond(x, i):
    return td.cond(i > 0, lambda: bad_index(x, i), lambda: x[0])


def early_return(x, i):
    for k in td.range(3):
        if k == 1:
            return bad_index(x, i)
    return x[0]


def with_break(x, i):
    while True:
        x = x + bad_index(x, i)
        if x[0] > 5:
            break
    return x


def division(x, i):
    return 1 // (i - i)


def update(x, i):
    y = td.identity(x)
    return td.tensor_scatter_nd_update(y, [[i + 9]], [1.0])


def starred(x, i):
    a, *rest = bad_shape(x), x, i
    return a


def walrus(x, i):
    if (y := bad_index(x, i)) > 0:
        return y
    return x[0]


def generator_argument(x, i):
    return sum(bad_index(x, i) for k in range(2))


def in_default(x, i):
    def f(y=bad_shape(x)):
        return y

    return f()


def fstring(x, i):
    return td.constant(len(f"{bad_shape(x)}"))


PROGRAMS = [
    method,
    static,
    prop,
    in_lambda,
    lambda_argument,
    in_loop,
    in_loop_shape,
    in_branch,
    in_branch_shape,
    in_condition,
    in_while_condition,
    in_comprehension,
    in_conditional_expression,
    and_or,
    gradient,
    gradient_shape,
    py_function,
    python_error,
    python_error_in_branch,
    raising_in_with,
    try_finally,
    nested_function,
    multi_line,
    assertion,
    recursion,
    decorated,
    while_loop,
    cond,
    early_return,
    with_break,
    division,
    update,
    starred,
    walrus,
    generator_argument,
    in_default,
    fstring,
]
