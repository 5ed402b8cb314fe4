"""Where source text comes from: shells, cells, exec, files that change."""

from __future__ import annotations

import importlib
import linecache
import os
import pty
import re
import subprocess
import sys
import textwrap

import pytest

import treadle as td

SOURCE = os.path.dirname(os.path.dirname(td.__file__))


def environment(**more):
    return os.environ | {"PYTHONPATH": SOURCE, "TERM": "dumb", "NO_COLOR": "1"} | more


def define(text, filename, **names):
    """Run `text` as a shell would: its lines go to linecache under a made-up file name."""
    text = textwrap.dedent(text)
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"__name__": "__main__", "td": td} | names
    exec(compile(text, filename, "exec"), namespace)
    return namespace


# -- exec and cells -------------------------------------------------------------------------------


def test_exec_with_linecache():
    f = define("def f(x):\n    return x if x > 0 else -x\n", "<exec 1>")["f"]
    assert td.function(f)(td.constant(-3)).numpy() == 3


def test_cells_share_names_and_are_redefined():
    first = define("def f(x):\n    return g(x) if x > 0 else x\n", "<cell 1>")
    first["g"] = define("def g(x):\n    return x + 1 if x > 5 else x - 1\n", "<cell 2>")["g"]
    compiled = td.function(first["f"])
    assert compiled(td.constant(7)).numpy() == 8
    again = define("def f(x):\n    return g(x) * 2 if x > 0 else x\n", "<cell 3>", g=first["g"])
    assert td.function(again["f"])(td.constant(7)).numpy() == 16
    assert compiled(td.constant(2)).numpy() == 1


def test_a_file_name_that_now_has_another_text():
    old = define("def f(x):\n    return x if x > 0 else -x\n", "<reused>")["f"]
    new = define("def f(x):\n    return x if x > 0 else -2 * x\n", "<reused>")["f"]
    assert td.function(new)(td.constant(-3)).numpy() == 6
    with pytest.raises(ValueError, match=r"source code of f \(<reused>:1\)"):
        td.function(old)(td.constant(-3))


def test_no_source_at_all():
    namespace = {}
    exec("def f(x):\n    return x if x > 0 else -x\n", namespace)
    with pytest.raises(ValueError) as e:
        td.function(lambda x: namespace["f"](x) + 1)(td.constant(1))
    for part in ("source code of f", "<string>:1", "into a file", "do_not_convert"):
        assert part in str(e.value)


def test_text_of_a_command():
    text = """
import treadle as td
@td.function
def f(x):
    return x if x > 0 else -x
print(f(td.constant(-3)).numpy())
exec("def g(x):\\n    return x if x > 0 else -x")
try:
    td.function(g)(td.constant(1))
except ValueError as error:
    print("source code of g" in str(error))
"""
    ran = subprocess.run(
        [sys.executable, "-c", text], env=environment(), capture_output=True, text=True
    )
    assert ran.stdout.split() == ["3", "True"], ran.stderr


# -- files that change ----------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A function that writes a module's text and imports it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "changing_module.py"

    def write(text):
        path.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        return path

    yield write
    sys.modules.pop("changing_module", None)


BEFORE = """
    def f(x):
        if x > 0:
            return x
        return -x
    """


def test_body_edited_after_the_import(module):
    module(BEFORE)
    f = importlib.import_module("changing_module").f
    module(BEFORE.replace("-x", "-2 * x"))
    with pytest.raises(ValueError, match="the file was changed since. Reload the module"):
        td.function(f)(td.constant(-3))


def test_lines_moved_after_the_import(module):
    module(BEFORE)
    f = importlib.import_module("changing_module").f
    module("# comment\nimport os\n" + textwrap.dedent(BEFORE) + "\n\ndef g(x):\n    return x\n")
    assert td.function(f)(td.constant(-3)).numpy() == 3


def test_reloaded(module):
    module(BEFORE)
    imported = importlib.import_module("changing_module")
    assert td.function(imported.f)(td.constant(-3)).numpy() == 3
    module(BEFORE.replace("-x", "-2 * x"))
    importlib.reload(imported)
    assert td.function(imported.f)(td.constant(-3)).numpy() == 6


def test_operator_or_constant_edited(module):
    for edit in (("x > 0", "x >= 0"), ("> 0", "> 1"), ("return x", "return abs(x)")):
        sys.modules.pop("changing_module", None)
        module(BEFORE)
        f = importlib.import_module("changing_module").f
        module(BEFORE.replace(*edit))
        with pytest.raises(ValueError, match="the file was changed"):
            td.function(f)(td.constant(-3))


def test_compiled_piece_by_piece(tmp_path):
    """As notebooks that are kept as files run: a part does not see the imports above it."""
    path = tmp_path / "pieces.py"
    head = "import treadle as td\n"
    body = "def f(x):\n    return td.abs(x) if x > 0 else td.square(x)\n"
    path.write_text(head + body)
    names = {}
    exec(compile(head, str(path), "exec"), names)
    exec(compile("\n" + body, str(path), "exec"), names)
    assert td.function(names["f"])(td.constant(-3)).numpy() == 9


def test_file_deleted(module):
    path = module(BEFORE)
    f = importlib.import_module("changing_module").f
    path.unlink()
    with pytest.raises(ValueError, match="its file is gone"):
        td.function(f)(td.constant(-3))


# -- sessions -------------------------------------------------------------------------------------

TYPED = """
import treadle as td
@td.function
def f(x):
    while x < 9: x = x + 4
    return x

print("FIRST", f(td.constant(-1)).numpy())
def f(x): return x * 2 if x > 0 else x

print("AGAIN", td.function(f)(td.constant(3)).numpy())
g = td.function(lambda x: x if x > 0 else -x); h = td.function(lambda x: x * 3 if x > 0 else x)
print("LAMBDAS", g(td.constant(-4)).numpy(), h(td.constant(2)).numpy())
f = td.function(
    lambda x: x + 1 if x > 0
    else x - 1)
print("LINES", f(td.constant(-4)).numpy())
"""
EXPECTED = ["FIRST 11", "AGAIN 6", "LAMBDAS 4 6", "LINES -5"]


def typed(lines, environment):
    """What an interactive Python prints on a terminal on which the lines are typed.

    A line is typed when Python has asked for it. Nothing is waited for by the clock: each wait
    ends with a prompt, or with the end of the process.
    """
    terminal, theirs = pty.openpty()
    python = subprocess.Popen(
        [sys.executable, "-q"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    printed = b""

    def read(until):
        """Read on until the pattern is printed or the process has closed the terminal."""
        nonlocal printed
        start = len(printed)
        while not until.search(printed, start):
            try:
                more = os.read(terminal, 65536)
            except OSError:  # Linux says so at the end
                return
            if not more:
                return
            printed += more

    prompt, typed_prompt = re.compile(rb">>> "), re.compile(rb"\n[^\n]*(?:>>>|\.\.\.) ")
    read(prompt)
    for line in lines:
        os.write(terminal, line.encode() + b"\n")
        read(typed_prompt)
    os.write(terminal, b"print('E' + 'ND')\n")
    read(re.compile(rb"END"))
    os.write(terminal, b"exit()\n")
    read(re.compile(rb"(?!)"))  # to the end
    os.close(terminal)
    python.wait()
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed.decode(errors="replace"))


def results(printed):
    found = re.findall(r"(FIRST|AGAIN|LAMBDAS|LINES)((?: -?\d+)+)", printed)
    return [name + values for name, values in found]


# Python 3.13 has another prompt too, which indents by itself.
PROMPTS = ["basic", "indenting"] if sys.version_info >= (3, 13) else ["basic"]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_typed_into_a_terminal(prompt):
    lines = TYPED.strip().split("\n")
    if prompt == "basic":
        found = typed(lines, environment(PYTHON_BASIC_REPL="1"))
    else:
        found = typed([line.strip() for line in lines], environment(TERM="xterm"))
    assert results(found) == EXPECTED


@pytest.mark.parametrize("magic", [[], ["%load_ext autoreload", "%autoreload 2"]])
def test_ipython(magic, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import treadle as td\n\ndef s(x):\n    return x if x > 0 else -x * 7\n")
    cells = "\n".join(magic) + TYPED
    cells += f"%run {script}\nprint('FIRST', td.function(s)(td.constant(-1)).numpy())\n"
    cells += "%time h = td.function(lambda x: x * 5 if x > 0 else x)\n"
    cells += "print('AGAIN', h(td.constant(2)).numpy())\n"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--no-confirm-exit"],
        input=cells,
        capture_output=True,
        text=True,
        env=environment(IPYTHONDIR=str(tmp_path)),
    )
    assert results(done.stdout) == [*EXPECTED, "FIRST 7", "AGAIN 10"], done.stdout


def test_piped_in():
    done = subprocess.run(
        [sys.executable, "-i", "-q"],
        input=TYPED,
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert results(done.stdout) == EXPECTED, done.stderr
