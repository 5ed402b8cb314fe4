"""Conversions: one for each set of facts about a function's names, kept on disk."""

import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import treadle as td
from treadle.autograph import conversion, memory, stored, twins
from treadle.core import object_cache
from treadle.core.plain_data import from_bytes, to_bytes


def around(inner):
    def outer(x):
        return inner(x)

    return outer


def mine(x):
    if td.reduce_sum(x) > 0:
        return x * 2.0
    return x * 3.0


@pytest.mark.parametrize("functions", [(td.tanh, mine), (mine, td.tanh)])
def test_a_closure_with_another_callee_has_its_own_conversion(functions):
    x = td.constant([1.0, 2.0])
    for inner in functions:
        expected = inner(x)
        np.testing.assert_allclose(td.function(around(inner))(x), expected, rtol=1e-6)


def test_closures_with_like_callees_share_a_conversion():
    first, second = (twins.template_of(around(f)) for f in (td.tanh, td.sin))
    assert first is second


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_STORE_PROGRAMS", "1")
    cache = object_cache.ObjectCache(tmp_path / "cache")
    monkeypatch.setattr(stored, "default_cache", lambda: cache)
    monkeypatch.setattr(object_cache, "default_cache", lambda: cache)
    monkeypatch.setattr(stored, "may_have_changed", lambda name: False)
    return tmp_path


@pytest.fixture
def conversions(monkeypatch):
    """The names of the functions that are converted, not found."""
    found, convert = [], conversion.convert

    def noted(function, *rest):
        found.append(function.__name__)
        return convert(function, *rest)

    monkeypatch.setattr(conversion, "convert", noted)
    return found


def module_of(folder, text, **names):
    """The names of a module with a text in a file that is always the same."""
    path = folder / "user_code.py"
    path.write_text(textwrap.dedent(text))
    scope = {"td": td, "__name__": "user_code", **names}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope


BRANCH = """
    def f(x):
        if td.reduce_sum(x) > 0:  # positive
            y = g(x)
        else:
            y = x * 3.0
        return y
    """


def test_a_conversion_is_found_again(folder, conversions):
    made = twins.template_of(module_of(folder, BRANCH, g=td.tanh)["f"])
    found = twins.template_of(module_of(folder, BRANCH, g=td.tanh)["f"])
    assert conversions == ["f"]
    assert found.code is not None and found.code.co_code == made.code.co_code
    assert found[:4] == made[:4] and found.asked == made.asked
    assert "# positive" in found.text


def test_what_is_found_runs_and_names_the_source(folder, conversions):
    text = BRANCH.replace("x * 3.0", "td.reshape(x, [2])")
    for _ in range(2):
        f = td.function(module_of(folder, text, g=td.tanh)["f"])
        np.testing.assert_allclose(f(td.constant([1.0, 1.0])), np.tanh([1.0, 1.0]), rtol=1e-6)
        with pytest.raises(td.errors.InvalidArgumentError, match=r"user_code\.py:6, in f: y = td"):
            f(td.constant([1.0]))
        td.clear_caches()
    assert conversions == ["f"]


def test_other_facts_are_converted_anew(folder, conversions):
    for g in (td.tanh, mine, mine, td.sin):
        f = td.function(module_of(folder, BRANCH, g=g)["f"])
        x = td.constant([2.0])
        np.testing.assert_allclose(f(x), g(x), rtol=1e-6)
    assert conversions.count("f") == 3  # one is kept for each text: the last


@pytest.mark.parametrize("change", [("3.0", "4.0"), ("# positive", "# above 0"), ("def", "\ndef")])
def test_a_changed_text_is_converted_anew(folder, conversions, change):
    twins.template_of(module_of(folder, BRANCH, g=td.tanh)["f"])
    changed = textwrap.dedent(BRANCH).replace(*change)
    scope = module_of(folder, changed, g=td.tanh)
    template = twins.template_of(scope["f"])
    assert conversions == ["f", "f"]
    assert change[1].strip() in template.text


def test_nothing_is_kept_of_files_that_may_have_changed(folder, conversions, monkeypatch):
    monkeypatch.setattr(stored, "may_have_changed", lambda name: True)
    for _ in range(2):
        twins.template_of(module_of(folder, BRANCH, g=td.tanh)["f"])
    assert conversions == ["f", "f"]


def test_a_second_process_does_not_import_the_converters(tmp_path):
    (tmp_path / "user.py").write_text(textwrap.dedent(BRANCH.replace("g(x)", "x")))
    code = (
        "import sys, treadle as td, user\nuser.td = td\n"
        "print(float(td.function(user.f)(td.constant([2.0]))[0]))\n"
        "print('gast' in sys.modules, 'llvmlite' in sys.modules)\n"
    )
    environment = {
        "PYTHONPATH": f"src:{tmp_path}",
        "TREADLE_CACHE_DIR": str(tmp_path / "cache"),
        "PATH": "",
    }

    def process():
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    first, second = process(), process()
    assert first[:2] == ["2.0", "True"]
    assert second[:2] == ["2.0", "False"]


def stored_entry(folder):
    """The function of a module, and the key and the plain form of its conversion on disk."""
    function = module_of(folder, BRANCH, g=td.tanh)["f"]
    twins.template_of(function)
    key = stored.key_of(function, True, False, False)
    return function, key, from_bytes(stored.default_cache().load("conversion", key))


HOSTILE = [
    "RAN.append(1)\n",
    "def f(x, y=RAN.append(1)):\n    return ag__.x\n",
    "@RAN.append\ndef f(x):\n    return x\nRAN.append(1)\n",
    "def f(x): return x\ndef f(x): return x\n",
    "class f: RAN.append(1)\n",
    "def f(x, y): return x\n",
    "def f(*x): return x\n",
    "def f(x", "", "\0", "f" * 10 + "(" * 100_000, "-" * 100_000 + "1", "x" + ".y" * 100_000,
    "lambda x: " * 10_000 + "x", "def f(x):\n" + " if x:\n" * 200,
]  # fmt: skip
RAN = []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_not_run_and_not_used(folder, conversions, monkeypatch, text):
    function, key, (_, *rest) = stored_entry(folder)
    function.__globals__["RAN"] = RAN
    monkeypatch.setattr("builtins.RAN", RAN, raising=False)
    stored.default_cache().store("conversion", key, to_bytes((text, *rest)))
    memory.forget()
    template = twins.template_of(function)
    assert "ag__" in template.text and "positive" in template.text
    assert conversions == ["f", "f"] and not RAN


@pytest.mark.parametrize("seed", range(3))
def test_damaged_conversions_with_right_checksums(folder, seed):
    function, key, plain = stored_entry(folder)
    r, whole = random.Random(seed), to_bytes(plain)
    for _ in range(150):
        data = bytearray(whole[: r.choice([len(whole), r.randrange(len(whole))])])
        for _ in range(r.randint(1, 4)):
            if data:
                data[r.randrange(len(data))] = r.randrange(256)
        stored.default_cache().store("conversion", key, bytes(data))
        found = stored.load(key, function, "<generated>")
        assert found is None or found[4] is None or found[4].co_argcount == 1
    for k in range(len(plain)):
        for other in (None, 1, "x", [], [1], {}, b"", ((), ()), True):
            wrong = (*plain[:k], other, *plain[k + 1 :])
            stored.default_cache().store("conversion", key, to_bytes(wrong))
            found = stored.load(key, function, "<generated>")
            assert found is None or len(found) == len(twins.Template._fields)
