"""What the generated code looks like, and that it passes ruff."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import treadle as td


def square_if_positive(x):
    if x > 0:
        x = x * x
    else:
        x = 0
    return x


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps > 100:
            break
    return steps


def newton(x):
    """Square root."""
    y = x  # first guess
    while td.abs(y * y - x) > 1e-4:
        y = 0.5 * (y + x / y)
    return y


def nested(xs, ys):
    total = 0.0
    for x in xs:
        for y in ys:
            if x == y:
                continue
            total += x * y
    return total


def first_above(xs, limit):
    for x in xs:
        if x > limit:
            return x
    return limit


def rnn(cell, xs, h):
    states = td.TensorArray(td.float32, size=5)
    for t in td.range(5):
        h = cell(xs[t], h)
        states = states.write(t, h)
    return states.stack(), h


def train_step(model, optimizer, x, y):
    with td.GradientTape() as tape:
        loss = td.reduce_mean((model(x) - y) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


REFERENCE = [square_if_positive, collatz, newton, nested, first_above, rnn, train_step]
GOLDEN = {
    square_if_positive: """
        def square_if_positive(x):
            x = ag__.if_stmt(x > 0, lambda: x * x, lambda: 0)
            return x
        """,
    collatz: """
        def collatz(n):
            steps = 0

            def body(n, steps, done):
                n = ag__.if_stmt(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1)
                steps += 1
                done = steps > 100  # break
                return n, steps, done

            _, steps, _ = ag__.while_stmt(
                lambda n, steps, done: n != 1, body, n, steps, False, until=UNTIL
            )
            return steps
        """.replace("UNTIL", "lambda n, steps, done: done"),
    newton: '''
        def newton(x):
            """Square root."""
            y = x  # first guess

            def body(y):
                y = 0.5 * (y + x / y)
                return y

            y = ag__.while_stmt(lambda y: td.abs(y * y - x) > 1e-4, body, y)
            return y
        ''',
    nested: """
        def nested(xs, ys):
            total = 0.0

            def body(x, total):
                def body(y, total):
                    def otherwise(total):
                        total += x * y
                        return total

                    return ag__.if_stmt(x == y, lambda total: total, otherwise, total)

                return ag__.for_stmt(ys, body, total)

            total = ag__.for_stmt(xs, body, total)
            return total
        """,
    first_above: """
        def first_above(xs, limit):
            def body(x, result, returned):
                return ag__.if_stmt(x > limit, lambda: (x, True), lambda: (result, returned))

            result, returned = ag__.for_stmt(
                xs, body, ag__.undefined("return value"), False, until=UNTIL
            )
            return ag__.if_stmt(returned, lambda: result, lambda: limit)
        """.replace("UNTIL", "lambda result, returned: returned"),
    rnn: """
        def rnn(cell, xs, h):
            states = td.TensorArray(td.float32, size=5)

            def body(t, h, states):
                h = ag__.call(cell)(xs[t], h)
                states = states.write(t, h)
                return h, states

            h, states = ag__.for_stmt(td.range(5), body, h, states)
            return states.stack(), h
        """,
    train_step: """
        def train_step(model, optimizer, x, y):
            with td.GradientTape() as tape:
                loss = td.reduce_mean((ag__.call(model)(x) - y) ** 2)
            grads = tape.gradient(loss, model.trainable_variables)
            ag__.call(optimizer.apply_gradients)(zip(grads, model.trainable_variables))
            return loss
        """,
}


@pytest.mark.parametrize("fn", GOLDEN, ids=lambda f: f.__name__)
def test_text(fn):
    assert td.autograph.to_code(fn) == textwrap.dedent(GOLDEN[fn]).lstrip("\n")


def arguments(fn):
    """What to call a reference function with, made anew for each call."""
    if fn is rnn:
        xs = td.reshape(td.range(15.0), [5, 3]) / 15.0
        return (lambda x, h: td.tanh(x + h)), xs, td.zeros(3)
    if fn is train_step:
        td.random.set_seed(3)
        model = td.keras.Sequential([td.keras.layers.Dense(1, kernel_initializer="ones")])
        x = td.reshape(td.range(6.0), [2, 3]) / 6.0
        model(x)
        return model, td.keras.optimizers.SGD(0.1), x, td.constant([[1.0], [0.0]])
    vector = td.constant([1.0, 2.0, 3.0])
    return {
        square_if_positive: (td.constant(3),),
        collatz: (td.constant(27),),
        newton: (td.constant(2.0),),
        nested: (vector, td.constant([1.0, 5.0])),
        first_above: (vector, td.constant(1.5)),
    }[fn]


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The generated code of all reference functions, as a module that was imported."""
    folder = tmp_path_factory.mktemp("generated")
    head = "import treadle as td\nfrom treadle.autograph import operators as ag__\n\n\n"
    path = folder / "generated.py"
    path.write_text(head + "\n\n".join(map(td.autograph.to_code, REFERENCE)))
    specification = importlib.util.spec_from_file_location("generated", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("fn", REFERENCE, ids=lambda f: f.__name__)
def test_same_results(fn, generated):
    expected = td.nest.flatten(fn(*arguments(fn)))
    imported = getattr(generated, fn.__name__)
    for call in (imported, td.function(imported, autograph=False), td.function(fn)):
        found = td.nest.flatten(call(*arguments(fn)))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("fn", REFERENCE, ids=lambda f: f.__name__)
def test_at_most_twice_the_lines(fn):
    lines = td.autograph.to_code(fn).strip().splitlines()
    assert len(lines) <= 2.0 * len(inspect.getsource(fn).strip().splitlines())


def test_ruff_accepts_the_generated_code(generated):
    path = generated.__file__
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", str(path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def continue_at_a_text(words):
    out = ""
    for word in words:
        if word == "skip":
            continue
        out += word
    return out


def with_nested_function(x):
    def inner(y):  # behind the header
        # its own comment
        if y > 0:
            y = y * 2  # doubled

        return y

    # before the return
    return inner(x)


def two_reasons_to_stop(x):
    y = x
    for _ in range(5):
        y = y * x
        if y > 30.0:
            return y + x
    return y


def inner_break(n):
    count = 0
    for k in range(2, n):
        prime = True
        for d in range(2, k):
            if k % d == 0:
                prime = False
                break
        count += prime
    return count


MORE = {
    continue_at_a_text: """
        def continue_at_a_text(words):
            out = ""

            def body(word, out):
                def otherwise(out):
                    out += word
                    return out

                return ag__.if_stmt(word == "skip", lambda out: out, otherwise, out)

            out = ag__.for_stmt(words, body, out)
            return out
        """,
    with_nested_function: """
        def with_nested_function(x):
            def inner(y):  # behind the header
                # its own comment
                def then(y):
                    y = y * 2  # doubled
                    return y

                y = ag__.if_stmt(y > 0, then, lambda y: y, y)

                return y

            # before the return
            return inner(x)
        """,
    two_reasons_to_stop: """
        def two_reasons_to_stop(x):
            y = x

            def body(_, y, result, returned):
                y = y * x
                result, returned = ag__.if_stmt(y > 30.0, BRANCHES)
                return y, result, returned

            y, result, returned = ag__.for_stmt(
                range(5),
                body,
                y,
                ag__.undefined("return value"),
                False,
                until=lambda y, result, returned: returned,
            )
            return ag__.if_stmt(returned, lambda: result, lambda: y)
        """.replace("BRANCHES", "lambda: (y + x, True), lambda: (result, returned)"),
    inner_break: """
        def inner_break(n):
            count = 0

            def body(k, count):
                prime = True

                def body(d, prime, done):
                    return ag__.if_stmt(k % d == 0, lambda: (False, True), lambda: (prime, done))

                prime, _ = ag__.for_stmt(
                    ag__.range(2, k), body, prime, False, until=lambda prime, done: done
                )
                count += prime
                return count

            count = ag__.for_stmt(ag__.range(2, n), body, count)
            return count
        """,
}


@pytest.mark.parametrize("fn", MORE, ids=lambda f: f.__name__)
def test_text_of_more_functions(fn):
    assert td.autograph.to_code(fn) == textwrap.dedent(MORE[fn]).lstrip("\n")


def test_evident_python_is_left_alone():
    def f(x, y=None):
        if y is None:
            return x
        if isinstance(x, str):
            return y
        for i in range(3):
            x = x + i
        return x

    assert "ag__" not in td.autograph.to_code(f)
    assert td.autograph.to_graph(f) is f
