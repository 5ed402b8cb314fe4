"""AutoGraph: variables that functions, classes and handlers share with branches and loops."""

from __future__ import annotations

import contextlib
import functools

from tests.facts_tf.registry import outcome, program

NUMBERS = ((1.0, 0), (2.0, 1), (1.5, 5))


def each(tf, f):
    """What a function gives for each pair of numbers when it is traced."""
    traced = tf.function(f)
    return [outcome(traced, tf.constant(x), tf.constant(n)) for x, n in NUMBERS]


def twice(g):
    @functools.wraps(g)
    def both(*args):
        return g(g(*args))

    return both


@program
def target_read(tf):
    def f(x, n):
        k = tf.constant(0)

        def read():
            return k

        for k in tf.range(n):
            x = x + tf.cast(read(), tf.float32)
        return x, read()

    return each(tf, f)


@program
def target_read_lambda(tf):
    def f(x, n):
        k = tf.constant(0)
        read = lambda: k * 2
        for k in tf.range(n):
            x = x + tf.cast(read(), tf.float32)
        return x

    return each(tf, f)


@program
def target_unbound_before(tf):
    def f(x, n):
        def read():
            return k

        for k in tf.range(n):
            x = x + tf.cast(read(), tf.float32)
        return x

    return each(tf, f)


@program
def unbound_body_var(tf):
    def f(x, n):
        def read():
            return s

        for i in tf.range(n):
            s = x * tf.cast(i, tf.float32)
            x = x + read()
        return x

    return each(tf, f)


@program
def unbound_branch_var(tf):
    def f(x, n):
        def read():
            return s

        if n > 2:
            s = x
        else:
            s = x + 1.0
        return read()

    return each(tf, f)


@program
def lambda_in_loop_called(tf):
    def f(x, n):
        for i in tf.range(n):
            g = lambda v: v + tf.cast(i, tf.float32)
            x = g(x)
        return x

    return each(tf, f)


@program
def lambda_reads_loop_var_after(tf):
    def f(x, n):
        s = x
        for i in tf.range(n):
            s = s + 1.0
            h = lambda: s * 2.0
            x = x + h()
        return x, s

    return each(tf, f)


@program
def loop_in_try(tf):
    def f(x, n):
        try:
            for i in tf.range(n):
                x = x + 1.0
        finally:
            x = x * 2.0
        return x

    return each(tf, f)


@program
def loop_in_try_finally_read(tf):
    def f(x, n):
        y = x
        try:
            for i in tf.range(n):
                x = x + 1.0
        finally:
            y = x * 2.0
        return x, y

    return each(tf, f)


@program
def loop_in_try_except_read(tf):
    def f(x, n):
        try:
            for i in tf.range(n):
                x = x + 1.0
        except ValueError:
            x = x * 2.0
        return x

    return each(tf, f)


@program
def try_in_while_cond(tf):
    def f(x, n):
        try:
            while x < 10.0:
                x = x * 2.0 + 1.0
        except ValueError:
            x = x * 0.0
        else:
            x = x + 1.0
        return x

    return each(tf, f)


@program
def nonlocal_target(tf):
    def f(x, n):
        k = tf.constant(0)

        def run(x):
            nonlocal k
            for k in tf.range(n):
                x = x + tf.cast(k, tf.float32)
            return x

        x = run(x)
        return x, k

    return each(tf, f)


@program
def inner_reads_target_while(tf):
    def f(x, n):
        v = x

        def use():
            return v * 2.0

        for v in tf.stack([x, x + 1.0]):
            x = x + use()
        return x, v, use()

    return each(tf, f)


@program
def reader_defined_in_branch(tf):
    def f(x, n):
        s = x
        if n is not None:

            def read():
                return s
        else:

            def read():
                return s * 2.0

        for i in tf.range(n):
            s = s + 1.0
            x = x + read()
        return x

    return each(tf, f)


@program
def reader_partial(tf):
    def f(x, n):
        s = x
        r = functools.partial(lambda k: s * k, 2.0)
        for i in tf.range(n):
            s = s + 1.0
            x = x + r()
        return x

    return each(tf, f)


@program
def reader_class_method(tf):
    def f(x, n):
        s = x

        class R:
            def get(self):
                return s

        r = R()
        for i in tf.range(n):
            s = s + 1.0
            x = x + r.get()
        return x

    return each(tf, f)


@program
def lambda_kept_in_loop_after(tf):
    def f(x, n):
        g = None
        for i in tf.range(n):
            g = lambda: x  # noqa: F841
            x = x + 1.0
        return x

    return each(tf, f)


@program
def two_loops_same_target(tf):
    def f(x, n):
        k = tf.constant(7)

        def read():
            return tf.cast(k, tf.float32)

        for k in tf.range(n):
            x = x + read()
        for k in tf.range(2):
            x = x * read() + 1.0
        return x, read()

    return each(tf, f)


@program
def with_target_shared(tf):
    def f(x, n):
        v = x

        def read():
            return v

        with contextlib.nullcontext(x * 3.0) as v:  # noqa: F811
            for i in tf.range(n):
                v = v + 1.0
                x = x + read()
        return x

    return each(tf, f)


@program
def except_name_shared(tf):
    def f(x, n):
        e = x

        def read():
            return e

        try:
            raise ValueError
        except ValueError as e:  # noqa: F811
            assert e is not x
        e = x
        for i in tf.range(n):
            e = e + 1.0
            x = x + read()
        return x

    return each(tf, f)


@program
def try_in_loop_continue(tf):
    def f(x, n):
        for i in tf.range(n):
            try:
                if i == 1:
                    continue
                x = x + 1.0
            finally:
                x = x * 2.0
            x = x - 1.0
        return x

    return each(tf, f)


@program
def decorated_inner(tf):
    def f(x, n):
        s = x

        @twice
        def add(v):
            return v + s

        for i in tf.range(n):
            s = s + 1.0
            x = add(x)
        return x

    return each(tf, f)


@program
def default_lambda(tf):
    def f(x, n):
        for i in tf.range(n):
            g = lambda v, k=i: v + tf.cast(k, tf.float32)
            x = g(x)
        return x

    return each(tf, f)


@program
def raise_in_branch(tf):
    def f(x, n):
        try:
            if n > 2:
                raise ValueError
            x = x + 1.0
        except ValueError:
            x = x * 10.0
        return x

    return each(tf, f)


@program
def raise_in_called(tf):
    def g(n):
        if n > 2:
            raise ValueError
        return n

    def f(x, n):
        try:
            x = x + tf.cast(g(n), tf.float32)
        except ValueError:
            x = x * 10.0
        return x

    return each(tf, f)


@program
def return_in_try_else(tf):
    def f(x, n):
        try:
            if n > 2:
                return x
        except ValueError:
            x = x * 2.0
        else:
            x = x * 10.0
        return x + 1.0

    return each(tf, f)


@program
def early_return_reader(tf):
    def f(x, n):
        s = x

        def read():
            return s

        if n > 2:
            return x
        s = s * 3.0
        return read()

    return each(tf, f)


@program
def early_return_class(tf):
    def f(x, n):
        s = x

        class K:
            def go(self):
                return s

        k = K()
        if n > 2:
            return x
        s = s * 3.0
        return k.go()

    return each(tf, f)
