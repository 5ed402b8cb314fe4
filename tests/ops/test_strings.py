"""String tensors, eager and in compiled programs. What TensorFlow gives is in tests/facts_tf."""

import threading
import warnings

import numpy as np
import pytest

import treadle as td
from treadle.core.tensor import StringTensor, Tensor
from treadle.graph.parser import parse_graph
from treadle.ops.registry import OPS
from treadle.runtime import compile
from treadle.runtime.graph_key import graph_key
from treadle.runtime.options import Options
from treadle.runtime.words import StringExecutable, Words

WORDS = ["b", "a", "", "é", "a\0b", "a"]


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch):
    """A graph that cannot be compiled is an error here, not a warning."""
    monkeypatch.setenv("TREADLE_STRICT", "1")


def same(a, b):
    a, b = (np.asarray(x) for x in (a, b))
    return a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


def alike(function, *arguments):
    """What a function gives eagerly, compiled and interpreted, which must be equal."""
    traced = td.function(function)
    eager = td.nest.flatten(function(*arguments), expand_composites=True)
    concrete = traced.get_concrete_function(*arguments)
    assert concrete.executable.mode == "native"
    interpreted = compile(concrete.graph, Options(interpret=True))
    inputs = [np.asarray(x) for x in arguments]
    for found in (traced(*arguments), traced(*arguments), interpreted.run(inputs)):
        for x, y in zip(td.nest.flatten(found, expand_composites=True), eager, strict=True):
            assert same(x, y), (x, y)
    return eager


def test_strings_are_tensors_of_their_own_class():
    assert type(td.constant("a")) is StringTensor and type(td.constant(1)) is Tensor
    assert td.constant("a").dtype is td.string and td.string.np_dtype == np.dtype(object)
    assert td.constant("a")._numpy().item() == b"a"


def moved(s, i):
    m = td.reshape(s, [2, 3])
    return [
        s[1:], s[i], m[:, i], td.gather(s, [i, 0]), td.gather_nd(m, [[0, i]]), s[::-2],
        m[..., None],
        td.concat([s, s], 0), td.stack([s, s], axis=1), *td.unstack(m), td.split(s, 3)[1],
        td.reverse(m, [1]), td.transpose(m), td.tile(s, [2]), td.expand_dims(s, 1), td.shape(m),
        td.squeeze(td.expand_dims(s, 1)), td.identity(s), td.broadcast_to(s[i], [2, 2]),
        td.where(s == "a", s, "z"), td.boolean_mask(s, s != "a"),
        td.boolean_mask(m, m[0] == "a", axis=1), td.pad(m, [[1, 0], [0, 2]]),
        td.pad(s, [[0, 1]], constant_values="p"), td.repeat(s, [1, 2, 0, 1, 1, 1]),
        td.roll(s, 2, 0), td.zeros_like(m), td.fill([2], s[0]), td.one_hot([0, i], 3, s[0], s[1]),
        td.tensor_scatter_nd_update(s, [[i]], ["q"]),
        s + "!", "<" + s + m[0, 0], s == td.reverse(s, [0]), s != "",
        td.reduce_sum(td.cast(s == "a", td.int32)),
    ]  # fmt: skip


def test_moving_elements():
    alike(moved, td.constant(WORDS), td.constant(2))


def test_equal_strings_of_different_sources_are_equal():
    captured = td.constant(["ab", "b", ""])
    alike(
        lambda s: [(s + "b") == captured, s == "a", captured == "ab"], td.constant(["a", "b", ""])
    )


def nested_loops(words, n):
    text, count = td.constant(""), 0
    for i in td.range(n):
        for word in words:
            if word == "a":
                text += "A"
            elif td.cast(i, td.int32) % 2 == 0:
                text = word + text
                count += 1
        if text == "never":
            break
    return text, count


def test_loops_and_branches_carry_strings():
    for n in (0, 1, 3):
        found = td.function(nested_loops)(td.constant(WORDS), td.constant(n))
        text, count = "", 0
        for i in range(n):
            for word in WORDS:
                if word == "a":
                    text += "A"
                elif i % 2 == 0:
                    text, count = word + text, count + 1
        assert found[0].numpy() == text.encode() and found[1].numpy() == count


def test_a_loop_on_strings_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        td.function(nested_loops)(td.constant(WORDS), td.constant(2))


def test_python_texts_become_strings_where_a_tensor_decides():
    @td.function
    def f(x):
        size = "small"
        if x > 2:
            size = "big"
        return size

    assert [f(td.constant(x)).numpy() for x in (1, 3)] == [b"small", b"big"]


def test_lists_of_strings():
    def f(n):
        items = td.TensorArray(td.string, size=4, element_shape=[])
        for i in td.range(n):
            items = items.write(i, td.constant("x") + td.where(i > 1, "big", "small"))
        return items.stack()

    found = td.function(f)(td.constant(3)).numpy().tolist()
    assert found == [b"xsmall", b"xsmall", b"xbig", b""]


def test_variables_of_strings():
    v, w = td.Variable(["a", "b"]), td.Variable("")

    @td.function
    def f(x):
        for i in td.range(2):
            w.assign(w + v[i])
        v.assign(x + v)
        return w.value()

    assert f(td.constant(["1", "2"])).numpy() == b"ab"
    assert f(td.constant(["3", "4"])).numpy() == b"ab1a2b"
    assert v.numpy().tolist() == [b"31a", b"42b"]
    before = v.value()
    v.assign(["x", "y"])
    assert before.numpy().tolist() == [b"31a", b"42b"] and v[1].numpy() == b"y"


def test_a_variable_of_strings_as_an_argument():
    f = td.function(lambda v: v.assign(v + "!").value())
    v, w = td.Variable("a"), td.Variable("b")
    assert [f(x).numpy() for x in (v, w, v)] == [b"a!", b"b!", b"a!!"]


def test_python_functions_take_and_give_strings():
    seen = []

    def python(x):
        seen.append(x)
        return np.array([s[::-1] for s in x], object)

    spec = td.TensorSpec([None], td.string)

    @td.function
    def f(x):
        y = td.numpy_function(python, [x + "1"], spec)
        return td.py_function(lambda t, u: td.concat([t, u], 0), [y, x], spec)

    found = f(td.constant(["ab", "c"]))
    assert found.numpy().tolist() == [b"1ba", b"1c", b"ab", b"c"]
    assert seen[0].dtype == object and seen[0].tolist() == [b"ab1", b"c1"]


def test_a_function_called_by_a_program_has_strings_of_its_own():
    inner = td.function(lambda s: s + "?" + "other constants")

    @td.function
    def f(s):
        called = td.py_function(inner, [s], td.TensorSpec([], td.string))
        return called + "!", s + "?"

    found = [x.numpy() for x in f(td.constant("a"))]
    assert found == [b"a?other constants!", b"a?"]


def test_calls_in_threads():
    f = td.function(lambda s, t: (s + t, td.reverse(s, [0])))
    failures = []

    def work(k):
        for i in range(50):
            a, b = [f"{k}.{i}.{j}" for j in range(5)], [f"{i}-{k}"] * 5
            x, y = f(td.constant(a), td.constant(b))
            wanted = [(p + q).encode() for p, q in zip(a, b, strict=True)]
            if x.numpy().tolist() != wanted or y.numpy().tolist() != [p.encode() for p in a[::-1]]:
                failures.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_traces():
    f = td.function(lambda s: s + "!")
    for words in (["a"], ["b"], ["a", "b"], ["a", "b", "c"]):
        assert f(td.constant(words)).numpy().tolist() == [w.encode() + b"!" for w in words]
        assert same(f(np.array(words)), f(td.constant(words)))
        assert same(f(np.array(words, object)), f(td.constant(words)))
    assert f(td.constant("a")).numpy() == b"a!"
    other = td.function(lambda s: s + "?")
    assert other(td.constant(["a"])).numpy().tolist() == [b"a?"]


def test_calls_after_the_first_use_a_plan(monkeypatch):
    f = td.function(lambda s, x: (s + "!", x * 2.0))
    arguments = td.constant(["a"]), td.constant(1.0)
    f(*arguments), f(*arguments)
    monkeypatch.setattr(f, "_call_slowly", None, raising=True)
    assert f(*arguments)[0].numpy().tolist() == [b"a!"]


def test_gradients_pass_by_strings():
    f = td.function(lambda x, s: (td.where(s == "double", 2.0 * x, x), s + "!"))
    x, s = td.constant([1.0, 2.0]), td.constant(["double", "no"])
    with td.GradientTape() as tape:
        tape.watch([x])
        y, text = f(x, s)
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 1.0]
    assert text.numpy().tolist() == [b"double!", b"no!"]
    with td.GradientTape() as tape:
        tape.watch(x)
        y = f(x, s)[0]
    assert tape.gradient(y, s) is None


def test_programs_on_disk_of_strings_and_numbers_differ():
    """Both graphs are ``x + 1`` on int64 for the compiler, where strings have numbers."""
    f = td.function(lambda x, y: x + y)
    words, more = td.constant(["a"]), td.constant(["b"])
    numbers = td.constant([1], td.int64)
    of_strings = f.get_concrete_function(words, more).executable.graph
    of_numbers = f.get_concrete_function(numbers, numbers).executable.graph
    assert graph_key(of_strings) != graph_key(of_numbers)
    assert f(words, more).numpy().tolist() == [b"ab"]
    assert f(numbers, numbers).numpy().tolist() == [2]


def test_a_run_keeps_no_strings():
    words = Words([b""])
    array = np.array([[b"a", b""], [b"b", b"a"]], object)
    numbers = words.encoded(array)
    assert numbers.tolist() == [[1, 0], [2, 1]] and same(words.decoded(numbers), array)
    executable = td.function(lambda s: s + "!").get_concrete_function(td.constant("a")).executable
    assert isinstance(executable, StringExecutable)
    executable.run([np.array(b"new", object)])
    assert executable.constants == [b"", b"!"]


@pytest.mark.parametrize(
    "name", ["exp", "reduce_sum", "sort", "matmul", "less", "negative", "relu"]
)
def test_ops_without_strings_name_themselves(name):
    s = td.constant([["a"]])
    function = {"relu": td.nn.relu}.get(name) or getattr(td, name)
    arguments = [s, s] if name in ("matmul", "less") else [s]
    for call in (function, td.function(lambda *x: function(*x))):
        with pytest.raises(td.errors.InvalidArgumentError, match=rf"{name}\(str\[1, 1\]") as error:
            call(*arguments)
        assert isinstance(error.value, TypeError) and "string" in str(error.value)


def test_every_op_knows_whether_it_takes_strings():
    """An op that tells nothing refuses strings, eagerly too, whatever NumPy would do."""
    s = td.constant(["b", "a"])
    for op in (OPS["cumsum"], OPS["reduce_max"], OPS["argmax"], OPS["sort"]):
        assert not op.takes_strings
    for call in (
        td.cumsum,
        td.reduce_max,
        td.argmax,
        td.math.bincount if False else td.reduce_prod,
    ):
        with pytest.raises(td.errors.InvalidArgumentError):
            call(s)


def test_graphs_of_strings_print_and_parse():
    long = td.constant([f"word {i}" for i in range(40)])
    f = td.function(
        lambda s: (s + "'\"\n", td.constant(["a", "\0é"]), long[3] + td.constant(long.numpy()))
    )
    graph = f.get_concrete_function(td.constant("x")).graph
    assert "str[2](b'a', b'\\x00\\xc3\\xa9')" in str(graph)
    assert str(parse_graph(str(graph), graph.captures)) == str(graph)


def test_print(capsys):
    @td.function
    def f(s):
        td.print(s, "and", s[0], [s[1]], output_stream="stdout")
        td.print(s[0], output_stream="stdout")

    f(td.constant(["a", 'é"']))
    assert capsys.readouterr().out == '["a" "é""] and "a" ["é""]\na\n'


# -- td.strings ----------------------------------------------------------------------------------


def functions_of_strings(s, n):
    t = td.strings
    return [
        t.length(s), t.length(s, "UTF8_CHAR"), t.lower(s, "utf-8"), t.upper(s), t.strip(s),
        t.substr(s, 0, n), t.split(s, "b"), t.regex_replace(s, "a", "<\\0>"), t.join([s, "-", s]),
        t.regex_full_match(s, ".?"), t.format("{}: {}", [n, s]), t.reduce_join(s, separator=","),
        t.to_hash_bucket_fast(s, 1000), t.to_hash_bucket(s, 7),
        td.as_string(td.cast(n, td.float32)),
        t.to_number(t.join([td.as_string(n), "5"], "."), td.float64), t.split(s[0])[0],
    ]  # fmt: skip


def test_functions_of_strings():
    alike(functions_of_strings, td.constant(WORDS), td.constant(2))


def test_functions_of_strings_with_open_dims():
    spec = td.TensorSpec([None, None], td.string)

    @td.function(input_signature=[spec])
    def f(s):
        return td.strings.reduce_join(s, axis=1), td.strings.split(s, ","), td.strings.length(s)

    for rows in ([["a,b", "c"]], [["x"], ["y,z,"]]):
        joined, pieces, lengths = f(td.constant(rows))
        assert joined.numpy().tolist() == ["".join(row).encode() for row in rows]
        assert lengths.numpy().tolist() == [[len(s) for s in row] for row in rows]
        assert pieces.to_list() == [[s.encode().split(b",") for s in row] for row in rows]


def test_errors_in_a_program_name_op_strings_and_line():
    @td.function
    def f(s):
        return td.strings.to_number(s)

    f(td.constant(["1"]))
    with pytest.raises(td.errors.InvalidArgumentError) as error:
        f(td.constant(["one"]))
    text = str(error.value)
    assert text.startswith("string_to_number(str[1]): StringToNumberOp could not")
    assert "one" in text and "return td.strings.to_number(s)" in text


def test_what_is_not_there_says_what_to_use():
    with pytest.raises(AttributeError, match="unicodedata"):
        td.strings.unicode_script


@pytest.mark.parametrize("shape", [[4], [4, 2]])
def test_scattered_strings_are_put_behind_one_another(shape):
    rng = np.random.default_rng(0)
    positions = rng.integers(0, 4, [6, 1])
    words = np.array([f"w{i}" for i in range(6 * int(np.prod(shape[1:])))]).reshape(6, *shape[1:])
    wanted = np.full(shape, "", object)
    for position, word in zip(positions[:, 0], words, strict=True):
        wanted[position] = wanted[position] + word.astype(object)

    def scattered(positions, words):
        return td.scatter_nd(positions, words, shape)

    for f in (scattered, td.function(scattered)):
        found = f(td.constant(positions), td.constant(words.tolist()))
        assert found.numpy().astype(str).tolist() == wanted.tolist()
