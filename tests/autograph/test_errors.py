"""Errors of conversion and staging: type, the user's file and line, usable afterwards."""

from __future__ import annotations

import linecache

import pytest

import treadle as td


def line_of(fn, offset):
    return f"{__file__}:{fn.python_function.__code__.co_firstlineno + offset}"


def test_undefined_in_one_branch():
    @td.function
    def f(x, read):
        if x > 0:
            y = x
        if read:
            return y
        return x

    with pytest.raises(UnboundLocalError) as e:
        f(td.constant(1.0), True)
    assert "'y'" in str(e.value) and line_of(f, 2) in str(e.value) and line_of(f, 5) in str(e.value)
    assert f(td.constant(1.0), False).numpy() == 1.0  # not read: no error


def test_branches_of_different_dtypes():
    @td.function
    def f(x):
        if x > 0:
            y = td.cast(x, td.int32)
        else:
            y = x
        return y

    with pytest.raises(TypeError) as e:
        f(td.constant(1.0))
    text = str(e.value)
    assert "'y'" in text and "int32" in text and "float32" in text and line_of(f, 2) in text


def test_loop_variable_changes_dtype():
    @td.function
    def f(x):
        s = 0
        while x > 0:
            s = x
            x = x - 1
        return s

    with pytest.raises(TypeError) as e:
        f(td.constant(1.0))
    assert "'s'" in str(e.value) and line_of(f, 3) in str(e.value)


def test_loop_variable_changes_shape():
    @td.function
    def f(x):
        s = x
        while td.reduce_sum(s) < 10:
            s = td.stack([s, s])
        return s

    with pytest.raises(ValueError) as e:
        f(td.constant([1.0]))
    assert "'s'" in str(e.value) and "(1,)" in str(e.value) and "(2, 1)" in str(e.value)


def test_generator_is_refused():
    def f(x):
        yield x

    with pytest.raises(NotImplementedError, match="test_errors.py:"):
        td.function(f)(td.constant(1))


def test_no_source():
    namespace = {}
    exec("def f(x):\n    return x if x > 0 else -x\n", namespace)
    with pytest.raises(ValueError, match="source code of f"):
        td.function(namespace["f"])(td.constant(1))


def test_statement_that_must_stay_python():
    @td.function
    def f(n):
        count = 0
        while count < n:
            count += len(locals()) > 0
        return count

    with pytest.raises(TypeError, match=r"it calls locals\(\)"):
        f(td.constant(3))
    assert f(3).numpy() == 3


def test_do_not_convert():
    @td.autograph.experimental.do_not_convert
    def f(x):
        return x if x > 0 else -x

    assert td.autograph.to_graph(f) is f
    with pytest.raises(TypeError):
        td.function(f)(td.constant(1))


class Counter:
    def __init__(self):
        self.__step = td.constant(2.0)
        self.count = 0

    @td.function
    def run(self, x):
        for _ in td.range(3):
            x = x + self.__step
        return x

    @td.function
    def conditional_state(self, x):
        if x > 0:
            self.count = self.count + 1
        else:
            self.count = self.count + 10
        return self.count

    def base(self, x):
        return x * 2


class Derived(Counter):
    def base(self, x):
        if x > 1:
            return super().base(x)
        return x


def test_methods_private_names_super_and_attribute_state():
    assert Counter().run(td.constant(1.0)).numpy() == 7.0
    assert td.function(Derived().base)(td.constant(3.0)).numpy() == 6.0
    assert Counter().conditional_state(td.constant(-1.0)).numpy() == 10


def test_list_that_is_no_variable_filled_in_a_loop_over_tensors():
    class Box:
        out = []

    @td.function
    def f(n):
        for i in range(n):
            Box.out.append(i * 2)
        return td.stack(Box.out)

    with pytest.raises(TypeError, match="loop of 'f'.*TensorArray") as e:
        f(td.constant(3))
    assert line_of(f, 4) in str(e.value)


def test_filter_of_a_set_comprehension_must_be_pythons():
    with pytest.raises(TypeError, match="test_errors.py:"):
        td.function(lambda x: {k for k in range(3) if x > k})(td.constant(1))


@pytest.mark.parametrize("prefix", ["async def f(x):", "async def f(x):\n    await x\n"])
def test_async_is_refused(prefix, tmp_path):
    text = f"{prefix}\n    return x\n"
    path = tmp_path / "module.py"
    path.write_text(text)
    namespace = {}
    exec(compile(text, str(path), "exec"), namespace)
    with pytest.raises(NotImplementedError, match="module.py:1"):
        td.function(namespace["f"])(td.constant(1))


def test_source_kept_by_linecache_as_shells_do():
    text = "def f(x):\n    return x if x > 0 else -x\n"
    linecache.cache["<ipython-input-7>"] = (len(text), None, text.splitlines(True), "")
    namespace = {}
    exec(compile(text, "<ipython-input-7>", "exec"), namespace)
    assert td.function(namespace["f"])(td.constant(-2)).numpy() == 2
