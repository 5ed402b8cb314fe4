"""What the generated code looks like, and that it passes ruff."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap

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
}


@pytest.mark.parametrize("fn", GOLDEN, ids=lambda f: f.__name__)
def test_text(fn):
    assert td.autograph.to_code(fn) == textwrap.dedent(GOLDEN[fn]).lstrip("\n")


@pytest.mark.parametrize("fn", REFERENCE, ids=lambda f: f.__name__)
def test_at_most_twice_the_lines(fn):
    lines = td.autograph.to_code(fn).strip().splitlines()
    assert len(lines) <= 2.0 * len(inspect.getsource(fn).strip().splitlines())


def test_ruff_accepts_the_generated_code(tmp_path):
    head = "import treadle as td\nfrom treadle.autograph import operators as ag__\n\n\n"
    text = head + "\n\n".join(map(td.autograph.to_code, REFERENCE))
    path = tmp_path / "generated.py"
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", str(path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


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
