"""Functions that read a variable which a branch or loop assigns after they were defined."""

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
    k = td.constant(0)

    def read():
        return k

    for k in td.range(2):
        x = x + td.cast(read(), td.float32)
    return x


def test_targets_of_loops_are_refused_by_name():
    with pytest.raises(TypeError, match=r"the function in line \d+ uses 'k', which it assigns"):
        td.function(target_of_a_loop)(td.constant(1.0))


def kept_in_a_loop(x):
    s = td.constant(0.0)
    readers = []
    for _ in td.range(2):
        s = s + x
        readers.append(lambda: s)
    return readers[0]()


def test_functions_kept_by_a_loop_are_refused():
    with pytest.raises(TypeError, match="which it assigns"):
        td.function(kept_in_a_loop)(td.constant(1.0))
