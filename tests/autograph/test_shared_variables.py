"""Functions and handlers that read a variable which a branch or loop assigns."""

import contextlib
import functools

import pytest

import treadle as td


def loops(x):
    s = td.constant(0.0)

    def add(v):
        return v + s

    for _ in td.range(3):
        s = s + 1.0
        x = add(x)
    return x, s, add(x)


def conditions_and_branches(x):
    s = td.constant(0.0)
    add = lambda v: v + s
    while add(x) < 10.0:
        if x > 2.0:
            s += 2.0
        else:
            s, x = s + 1.0, x + 1.0
        x = add(x)
    return x, s, add(x)


def nested_loops(x):
    a, b = x, td.constant(1.0)

    def total():
        return a + b

    for _ in td.range(3):
        a = a * 2.0
        for _ in td.range(2):
            b = b + total()
            if b > 20.0:
                break
    return a, b, total()


def python_loops(x):
    best = x

    def better(v):
        return v > best

    for v in (1.0, 5.0, 3.0):
        if better(td.constant(v)):
            best = td.constant(v)
    return (best,)


def writers(x):
    """An inner function assigns the variable as well."""
    s = td.constant(1.0)

    def double():
        nonlocal s
        s = s * 2.0

    for _ in td.range(2):
        s = s + x
        double()
    return s, x


def one_branch(x):
    s = x

    def read():
        return s * 2.0

    if x > 1.0:
        s = s + 10.0
    return s, read()


@pytest.mark.parametrize(
    "program", [loops, conditions_and_branches, nested_loops, python_loops, writers, one_branch]
)
@pytest.mark.parametrize("x", [0.5, 1.0, 3.0])
def test_they_read_what_the_run_has_assigned(program, x):
    x = td.constant(x)
    wanted = [float(v) for v in program(x)]
    assert [float(v) for v in td.function(program)(x)] == wanted
    assert [float(v) for v in td.function(program).get_concrete_function(x)(x)] == wanted


def test_gradients_reach_through_them():
    @td.function
    def cubed(x):
        s = x

        def double():
            return s * 2.0

        with td.GradientTape() as tape:
            tape.watch(x)
            for _ in td.range(2):
                s = s * x
            y = double()
        return y, tape.gradient(y, x)

    assert [float(v) for v in cubed(td.constant(3.0))] == [54.0, 54.0]


def test_the_generated_code_assigns_the_variable_itself():
    code = td.autograph.to_code(loops)
    assert "nonlocal s" in code
    assert "places=[ag__.outer(lambda: s)]" in code
    assert "nonlocal" not in td.autograph.to_code(lambda_at_once)
    assert "nonlocal" not in td.autograph.to_code(read_afterwards)


def read_afterwards(x):
    """The reader is defined behind the loop: the variable stays the loop's state."""
    s = td.constant(0.0)
    for _ in td.range(3):
        s += x

    def read():
        return s

    return read()


def lambda_at_once(x):
    """A lambda that is called at once reads a variable that stays the loop's state."""
    s = td.constant(0.0)
    for _ in td.range(3):
        s += 1.0
        x = td.map_fn(lambda v: v * s, x)
    return x


def target_of_a_loop(x):
    def read():
        return k

    for k in td.range(2):
        x = x + td.cast(read(), td.float32)
    return x, td.cast(k + read(), td.float32)


def target_without_value(x):
    """Nothing reads the target after a loop that ran no iteration."""

    def read():
        return k

    for k in td.range(td.cast(x, td.int32)):
        x = x + td.cast(read(), td.float32)
    return x, x


def lambdas_of_iterations(x):
    for k in td.range(3):
        add = lambda v: v + td.cast(k, td.float32)
        x = add(x)
    return (x,)


def partial_objects(x):
    s = x
    add = functools.partial(lambda k, v: s * k + v, 2.0)
    for _ in td.range(2):
        s = s + 1.0
        x = add(x)
    return x, s


def methods_of_inner_classes(x):
    s = x

    class Reader:
        def read(self):
            return s

    reader = Reader()
    for _ in td.range(2):
        s = s + 1.0
        x = x + reader.read()
    return x, s


def generators(x):
    s = x
    terms = (s * k for k in (1.0, 2.0))
    for _ in range(2):
        s = s + 1.0
        x = x + next(terms)
    return x, s


def functions_in_functions(x):
    s = x

    def make():
        return lambda: s

    made = []
    for _ in range(2):
        made.append(make())
        s = s + 1.0
    return tuple(read() for read in made)


def after_an_early_return(x):
    """What follows an ``if`` that returns becomes a branch, which assigns the variable."""
    s = x

    def read():
        return s

    if x > 2.0:
        return x, read()
    s = s * 3.0
    return s, read()


def defined_in_a_branch(x):
    if x is not None:
        read = lambda: s
    else:
        read = lambda: 2.0 * s
    s = x
    for _ in td.range(2):
        s = s + read()
    return s, read()


def finally_block(x):
    y = x
    try:
        while x < 10.0:
            x = x * 2.0
    finally:
        y = x + 1.0
    return x, y


def handler(x):
    try:
        for _ in td.range(2):
            x = x + 1.0
        raise ValueError
    except ValueError:
        x = x * 2.0
    return (x,)


def return_before_else(x):
    for _ in td.range(2):
        try:
            if x > 2.0:
                return (x,)
            x = x + 1.0
        except ValueError:
            x = x * 0.0
        else:
            x = x * 2.0
    return (x,)


def with_targets(x):
    def read():
        return v

    with contextlib.nullcontext(x * 3.0) as v:
        for _ in td.range(2):
            v = v + 1.0
            x = x + read()
    return x, read()


def two_scopes(x):
    count = td.constant(0)

    def run(x):
        nonlocal count
        for count in td.range(3):
            x = x + td.cast(count, td.float32)
        return x

    return run(x), td.cast(count, td.float32)


PROGRAMS = [
    target_of_a_loop, target_without_value, lambdas_of_iterations, partial_objects,
    methods_of_inner_classes, generators, functions_in_functions, after_an_early_return,
    defined_in_a_branch, finally_block, handler, return_before_else, with_targets, two_scopes,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("x", [0.5, 1.0, 3.0])
def test_functions_and_handlers_read_what_python_reads(program, x):
    x = td.constant(x)
    wanted = [float(v) for v in program(x)]
    assert [float(v) for v in td.autograph.to_graph(program)(x)] == wanted
    assert [float(v) for v in td.function(program)(x)] == wanted


def test_an_exception_leaves_variables_as_they_are():
    """Where Python runs the loop, the handler sees the iterations before the error."""

    def f(items):
        count = td.constant(0)
        try:
            for item in items:
                count = count + 1
                if item is None:
                    raise ValueError
        except ValueError:
            return count * 10
        return count

    assert int(td.function(f)([1, 2, None, 3])) == f([1, 2, None, 3]) == 30


def test_a_read_of_a_variable_without_value_is_an_error():
    def f(n):
        def read():
            return k

        for k in td.range(n):
            pass
        return read()

    assert int(td.function(f)(td.constant(3))) == 2
    with pytest.raises(td.errors.InvalidArgumentError, match="'k' is used before it has a value"):
        td.function(f)(td.constant(0))


def kept_in_a_loop(x):
    s = td.constant(0.0)
    readers = []
    for _ in td.range(2):
        s = s + x
        readers.append(lambda: s)
    return readers[0]()


def test_functions_kept_by_a_loop_are_refused():
    with pytest.raises(TypeError, match="can only hold tensors and numbers"):
        td.function(kept_in_a_loop)(td.constant(1.0))


def raised_in_a_branch(x):
    try:
        if x > 2.0:
            raise ValueError("large")
        x = x + 1.0
    except ValueError:
        x = x * 10.0
    return x


def raised_in_a_loop(x):
    try:
        for _ in td.range(td.cast(x, td.int32)):
            raise ValueError("an item")
    except ValueError:
        x = x * 10.0
    return x


@pytest.mark.parametrize("program", [raised_in_a_branch, raised_in_a_loop])
def test_exceptions_of_some_runs_are_not_caught(program):
    """The handler would run whatever the tensor is."""
    with pytest.raises(td.autograph.StagingError, match="ValueError was raised in a "):
        td.function(program)(td.constant(1.0))
    assert float(td.autograph.to_graph(program)(td.constant(0.5))) == float(
        program(td.constant(0.5))
    )


def test_handlers_around_python_branches_catch():
    @td.function
    def f(x, large):
        try:
            if large:
                raise ValueError("large")
            if x > 0.0:
                x = x + 1.0
        except ValueError:
            x = x * 10.0
        return x

    assert float(f(td.constant(2.0), True)) == 20.0
    assert float(f(td.constant(2.0), False)) == 3.0
