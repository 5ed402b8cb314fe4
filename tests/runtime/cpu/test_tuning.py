"""Candidates for products and convolutions: all give the same bits in their own memory; the fastest
one is kept."""

import dataclasses
import itertools
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.machines import MACHINES, RUNNABLE
from treadle.cli import main
from treadle.core.object_cache import ObjectCache
from treadle.ops.image.windows import spans
from treadle.runtime.cpu import alike, chosen, company, learning, winners
from treadle.runtime.cpu.alike import MOST, slot_of
from treadle.runtime.cpu.chosen import alike_of
from treadle.runtime.cpu.convolution import FORWARD, TO_FILTER, TO_INPUT
from treadle.runtime.cpu.convolution.classes import MOST_BYTES
from treadle.runtime.cpu.convolution.classes import class_of as convolutions_alike
from treadle.runtime.cpu.convolution.tiling import Form, Geometry, columns_of
from treadle.runtime.cpu.convolution.winograd_tiling import takes_winograd
from treadle.runtime.cpu.library_code import calls_counted
from treadle.runtime.cpu.matmul.candidates import all_choices, cost
from treadle.runtime.cpu.matmul.classes import Products, class_of
from treadle.runtime.cpu.matmul.pairs import multiplies_pairs
from treadle.runtime.cpu.matmul.tiles import lanes
from treadle.runtime.cpu.matmul.tiling import Choice, Product, rule, tiling_of
from treadle.runtime.cpu.target import host, this_machine, using
from treadle.runtime.cpu.thread_count import planned_workers
from treadle.runtime.cpu.trials import _LINE, ENOUGH, ROUNDS, Contest, Scratch, Trial, routine_of

PRODUCTS = [
    Product("float", 1, 28, 70, 1100),
    Product("float", 1, 60, 300, 65, 1, 0),
    Product("float", 1, 28, 96, 40, 0, 1),
    Product("float", 3, 28, 64, 33, 0, 0, 28 * 33, 33 * 64),
    Product("double", 1, 28, 32, 50),
]
PAIRS = Product("i32", 1, 33, 50, 40, pairs=1)
NUMPY = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}


def text_of(product):
    return alike.text_of(Products(product), planned_workers())


def result(calls, choice, operands):
    """The bytes that a choice gives, in memory of the planned size between others' bytes."""
    scratch = Scratch(calls)
    for array, values in zip(scratch.arrays, operands, strict=False):
        array[:] = values
    scratch.arrays[2] = np.full(len(scratch.arrays[2]) + 64, 7, scratch.arrays[2].dtype)
    trial = Trial(calls, choice, [scratch], 1)
    trial.space[:] = 0xA5
    trial.run()
    begin = -trial.space.ctypes.data % _LINE
    size = routine_of(calls, choice, 1, 0)[0].workspace(1)
    assert (trial.space[begin + size :] == 0xA5).all() and (trial.space[:begin] == 0xA5).all()
    assert (scratch.arrays[2][-64:] == 7).all()
    return scratch.arrays[2].tobytes()


def operands_of(product):
    random = np.random.default_rng(0)
    kind = np.float16 if product.pairs else NUMPY[product.element]
    found = []
    for size in Products(product).sizes[:2]:
        if product.pairs:  # the upper halves of floats
            words = random.standard_normal(size // 2).astype(np.float32).view(np.uint32) >> 16
            found.append(words.astype(np.uint16).view(np.int32))
        elif np.issubdtype(kind, np.integer):
            found.append(random.integers(-99, 99, size // kind().itemsize).astype(kind))
        else:
            found.append(random.standard_normal(size // kind().itemsize).astype(kind))
    return found


@pytest.mark.parametrize("name", ["host", *RUNNABLE])
@pytest.mark.parametrize("product", [*PRODUCTS, PAIRS], ids=text_of)
def test_all_choices_give_the_same_bits(product, name):
    target = RUNNABLE.get(name, host())
    if name != "host" and product not in PRODUCTS[:2]:
        pytest.skip("the same code for other types")
    if product.pairs and not multiplies_pairs(target):
        pytest.skip("no instruction for pairs")
    with using(target):
        every = all_choices(product, target, 2)
        operands = operands_of(product)
        wanted = result(Products(product), rule(product, target), operands)
        for choice in sorted(every, key=str)[:: 1 if name == "host" else 4]:
            assert result(Products(product), choice, operands) == wanted, choice
    assert len(every) > 2 or product.pairs


def convolution(op, x, filters, strides=(1, 1), padding="SAME", dilations=(1, 1), element="float"):
    """The class of an op on images x; the outputs follow from the rest."""
    attrs = {"strides": strides, "padding": padding, "dilations": dilations}
    rows, columns = spans(x[1:3], filters[:2], strides, padding, dilations)
    y = (x[0], rows.count, columns.count, filters[3])
    found = convolutions_alike(op, Geometry.of(element, x, filters, y, attrs))
    assert found is not None
    return found


GEOMETRIES = {
    "edges": ((2, 14, 14, 30), (5, 5, 30, 46)),
    "winograd": ((2, 15, 14, 48), (5, 3, 48, 96)),
    "frames": ((2, 20, 17, 5), (3, 3, 5, 70)),
    "strides": ((1, 15, 15, 9), (3, 3, 9, 40), (2, 2)),
    "dilated groups": ((1, 12, 12, 20), (3, 2, 10, 66), (1, 1), ((2, 1), (0, 3)), (2, 1)),
    "double": ((1, 14, 14, 16), (3, 3, 16, 40), (1, 1), "VALID", (1, 1), "double"),
}


@pytest.mark.parametrize("name", ["host", *RUNNABLE])
@pytest.mark.parametrize("op", [FORWARD, TO_INPUT, TO_FILTER])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_all_forms_give_the_same_bits(geometry, op, name):
    if name != "host" and geometry not in ("edges", "strides", "winograd"):
        pytest.skip("the same code for others")
    target = RUNNABLE.get(name, host())
    with using(target):
        calls = convolution(op, *GEOMETRIES[geometry])
        dtype, random = NUMPY[calls.element], np.random.default_rng(0)
        sizes = calls.sizes[:2]
        operands = [random.standard_normal(n // dtype().itemsize).astype(dtype) for n in sizes]
        wanted = result(calls, calls.rule(target), operands)
        every = calls.forms(target, 1)
        for form in every:
            assert result(calls, form, operands) == wanted, form
    names = [field.name for field in dataclasses.fields(Form)]
    differ = {name for name in names if len({getattr(form, name) for form in every}) > 1}
    wide = columns_of(op, calls.geometry) > lanes(target, calls.element)
    copied = takes_winograd(op, calls.geometry)  # into panels, which nothing asks for ahead
    assert copied == (geometry == "winograd")
    assert differ >= (set() if copied else {"ahead"}) | ({"vectors"} if wide else set())
    assert op == TO_FILTER or "strip" in differ
    packs = op == FORWARD and geometry != "dilated groups" and not copied
    assert ("pack" in differ) == packs


def test_candidates_have_what_mattered_on_other_processors():
    """Tiles of 14 rows by 2 vectors or wide ones, copies of B, by a loop or by tiles, and of A or
    none, how far ahead B's rows are fetched (see the second processor in the findings)."""
    every = all_choices(Product("float", 1, 128, 512, 784), MACHINES["avx512"], 2)
    assert {c.vectors for c in every} >= {2, 4}
    assert len({(c.pack, c.pack_a) for c in every}) == 6
    assert {c.by_rows for c in every} == {0, 1}
    assert len({c.ahead for c in every}) >= 4 and 0 in {c.ahead for c in every}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("product", PRODUCTS, ids=text_of)
def test_the_rule_comes_first_and_the_dear_ones_are_left_out(product, name):
    target = MACHINES[name]
    found = Products(product).candidates(target, 2)
    assert len(found) <= MOST and len(set(found)) == len(found)
    if not found:
        return
    assert found[0] == rule(product, target)
    costs = [cost(product, c, target, 2) for c in found[1:]]
    left = all_choices(product, target, 2) - set(found)
    assert costs == sorted(costs)
    assert not left or min(cost(product, c, target, 2) for c in left) >= max(costs, default=0)
    for choice in found:  # every tile that it needs exists
        tiling = tiling_of(product, target, choice=choice)
        assert tiling.needs and tiling.space >= 0


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("op", [FORWARD, TO_INPUT, TO_FILTER])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_forms_of_convolutions_are_ranked(geometry, op, name):
    """The rule's comes first; each of the others changes one thing, or the tile's two extents."""
    target = MACHINES[name]
    calls = convolution(op, *GEOMETRIES[geometry])
    first, *others = calls.candidates(target, 2)
    assert first == calls.rule(target) and len(others) < MOST
    costs = [calls.cost(form, target, 2) for form in others]
    assert costs == sorted(costs) and min(costs) > 0
    numbers = dataclasses.asdict(first)
    for form in others:
        changed = {name for name, n in dataclasses.asdict(form).items() if n != numbers[name]}
        assert len(changed) == 1 or changed == {"vectors", "tall"}


def test_low_tiles_cost_more():
    """One vector across a tile loads as much of A for half of the products."""
    calls, here = convolution(FORWARD, *GEOMETRIES["edges"]), MACHINES["avx512"]
    first = calls.rule(here)
    narrow = dataclasses.replace(first, vectors=1)
    assert calls.cost(narrow, here, 1) > calls.cost(first, here, 1)


def test_nothing_to_choose():
    target = MACHINES["avx512"]
    dots, none = Product("float", 1, 1, 100, 900, 0, 1), Product("float", 1, 0, 100, 900)
    for product in (dots, none, Product("float", 1, 64, 100, 90, panel_width=32)):
        assert not Products(product).candidates(target, 2)
    dim = td.TensorShape([None])[0]
    known = convolution(FORWARD, *GEOMETRIES["edges"]).geometry
    assert convolutions_alike(FORWARD, dataclasses.replace(known, x=(1, dim, 14, 32))) is None
    assert class_of(Product("float", 1, dim, 100, 90)) is None


# -- classes ---------------------------------------------------------------------------------------


def test_names_of_classes():
    for product in (*PRODUCTS, PAIRS):
        found = class_of(product)
        assert found is not None and alike_of(alike.text_of(found, 4)) == found
        assert 0 <= slot_of(alike.text_of(found, 4)) < len(calls_counted())
    assert class_of(Product("float", 1, 100, 64, 64)) == class_of(Product("float", 1, 98, 64, 64))
    assert class_of(Product("float", 1, 30, 64, 64)) != class_of(Product("float", 1, 31, 64, 64))
    assert class_of(Product("float", 1, 100, 64, 64)) != class_of(Product("float", 1, 100, 65, 64))
    turned = [class_of(Product("float", 1, m, 64, 64, 1, 0)) for m in (98, 100)]
    assert turned[0] != turned[1]  # it is the distance of A's rows
    assert class_of(Product("float", 1, 1 << 14, 1 << 14, 1 << 14)) is None  # too much memory


@pytest.mark.parametrize("op", [FORWARD, TO_INPUT, TO_FILTER])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_names_of_convolutions(geometry, op):
    found = convolution(op, *GEOMETRIES[geometry])
    again = alike_of(alike.text_of(found, 2))
    assert (again.op, again.geometry.numbers) == (op, found.geometry.numbers)
    assert again.name == found.name and again.sizes == found.sizes
    assert again.forms(host(), 2) == found.forms(host(), 2)


def test_convolutions_differ_in_the_number_of_images():
    x, *others = GEOMETRIES["edges"]
    some, many = (convolution(FORWARD, (n, *x[1:]), *others) for n in (1000, 2000))
    assert some == many and sum(some.sizes) < 2 * MOST_BYTES
    dim = td.TensorShape([None])[0]
    assert convolution(FORWARD, (dim, *x[1:]), *others) == some
    assert convolution(FORWARD, x, *others) != some


@pytest.mark.parametrize(
    "text", ["", "matmul", "matmul float 1 2 threads=2", "conv2d float 1 threads=2", "a b c=d",
     "matmul float threads=2", "conv3d float " + "1 " * 16 + "threads=2"]
)
def test_texts_that_name_no_class(text):
    with pytest.raises(ValueError, match=r"."):
        alike_of(text)


# -- on disk ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of winners, which are in use."""
    monkeypatch.setattr(winners, "default_cache", lambda: ObjectCache(tmp_path))
    monkeypatch.setenv("TREADLE_TUNE", "1")
    monkeypatch.setattr(winners, "_kept", winners._read)
    if winners._place() is None:
        pytest.skip("nobody can tell which processor this is")
    return tmp_path


A = Product("float", 1, 64, 96, 80)


def other_choice():
    found = Products(A).forms(this_machine(), planned_workers())
    return min(found, key=lambda choice: (choice.vectors, str(choice)))


def test_winners_are_chosen(folder, monkeypatch):
    text, none = chosen.chosen(Products(A), this_machine())
    assert (text, none) == (text_of(A), None)
    winners.keep(text, dataclasses.astuple(other_choice()))
    assert chosen.chosen(Products(A), this_machine()) == (text, other_choice())
    assert chosen.chosen(Products(A), dataclasses.replace(this_machine(), opt=1)) == (text, None)
    with winners.using({}):
        assert chosen.chosen(Products(A), this_machine()) == (text, None)
    winners.keep("another", (1, 2))
    assert chosen.chosen(Products(A), this_machine()) == (text, other_choice())
    monkeypatch.setenv("TREADLE_TUNE", "0")
    assert chosen.chosen(Products(A), this_machine()) == (text, None)


@pytest.mark.parametrize("numbers", [(), (1, 2), (99, 0, 0, 0, 0), (1, 0, 0, 0, -5)])
def test_what_is_no_candidate_is_not_chosen(folder, numbers):
    winners.keep(text_of(A), numbers)
    assert chosen.chosen(Products(A), this_machine()) == (text_of(A), None)


def test_winners_of_a_fresh_process(tmp_path):
    """The first choice that a process makes is one from disk."""
    text, numbers = text_of(A), dataclasses.astuple(other_choice())
    code = (
        "import sys, numpy as np, treadle as td\n"
        "from treadle.runtime.cpu import winners\n"
        f"if 'keep' in sys.argv: winners.keep({text!r}, {numbers!r})\n"
        "x = np.ones((64, 80), np.float32), np.ones((80, 96), np.float32)\n"
        "f = td.function(lambda a, b: td.matmul(a, b)).get_concrete_function(*x)\n"
        "print(f(*x).numpy().sum(), f.executable.program.table.keys)\n"
    )
    env = {**os.environ, "TREADLE_CACHE_DIR": str(tmp_path), "TREADLE_TUNE": "1"}
    env |= {"TREADLE_STORE_PROGRAMS": "1", "TREADLE_STRICT": "1"}
    env.pop("TREADLE_TARGET", None)

    def output(*arguments):
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return done.stdout

    if winners._place() is None:
        pytest.skip("nobody can tell which processor this is")
    first = output()
    output("keep")
    assert "x1" in output() and "x1" not in first


def test_a_damaged_file_is_no_file(folder):
    winners.keep("a", (1,))
    (file,) = folder.glob("*.o")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert winners.known() == {}
    winners.default_cache().store(winners.KIND, winners._place(), b"N")
    assert winners.known() == {}


def test_programs_on_disk_know_their_winners(folder):
    text, here = text_of(A), this_machine()
    assert winners.are_current({text: ""}, here)
    winners.keep(text, dataclasses.astuple(other_choice()))
    assert not winners.are_current({text: ""}, here)
    assert winners.are_current(dict(chosen.made_with(text, other_choice())), here)
    assert not winners.are_current({text: "1 2"}, here)
    assert winners.are_current({text: ""}, dataclasses.replace(here, opt=1))
    assert text in winners.seen


@pytest.mark.parametrize("op", [FORWARD, TO_INPUT, TO_FILTER])
def test_programs_use_the_form_of_a_convolution(op):
    """The routine that a program calls has the winner's numbers, and counts images."""
    x, filters = (np.ones(s, np.float32) for s in GEOMETRIES["edges"])
    calls = convolution(op, *GEOMETRIES["edges"])
    text = alike.text_of(calls, planned_workers())
    form = min(calls.forms(this_machine(), 1), key=lambda form: form.vectors)

    def bits(x, filters):
        with td.GradientTape() as tape:
            tape.watch([x, filters])
            y = td.nn.conv2d(x, filters, 1, "SAME")
        return [y, *tape.gradient(y, [x, filters])]

    def run():
        concrete = td.function(bits, autograph=False).get_concrete_function(x, filters)
        found = [tensor.numpy().tobytes() for tensor in concrete(x, filters)]
        return found, concrete.executable.program.table.keys

    before, names = run()
    count = calls_counted()[slot_of(text)]
    with winners.using({text: dataclasses.astuple(form)}):
        after, others = run()
    assert before == after and names != others
    assert calls_counted()[slot_of(text)] == count + len(x)


def test_programs_use_the_choice():
    a, b = (np.random.default_rng(0).standard_normal(s) for s in ((64, 80), (80, 96)))
    a, b = a.astype(np.float32), b.astype(np.float32)

    def product():
        concrete = td.function(lambda x, y: td.matmul(x, y)).get_concrete_function(a, b)
        return concrete(a, b).numpy(), concrete.executable.program.table.keys

    before, names = product()
    count = calls_counted()[slot_of(text_of(A))]
    with winners.using({text_of(A): dataclasses.astuple(other_choice())}):
        after, others = product()
    assert before.tobytes() == after.tobytes()
    assert names != others and any("x1," in str(n) or str(n).endswith("x1')") for n in others)
    assert calls_counted()[slot_of(text_of(A))] == count + 1


# -- what is tried out -----------------------------------------------------------------------------


class Clock:
    """Each look takes as long as the test says."""

    def __init__(self, times):
        self.now, self.times = 0.0, times

    def __call__(self):
        self.now += next(self.times)
        return self.now


def contest(seconds):
    """A contest after all of its steps. The run of a form takes so many seconds: by its place among
    the candidates and by the number of its runs."""
    found = Contest(Products(A), this_machine(), 2)
    runs = dict.fromkeys(found.forms, 0)

    def taken(trial):
        runs[trial.form] += 1
        return seconds(found.forms.index(trial.form), runs[trial.form])

    found._time = taken
    for _ in found.steps():
        pass
    return found


@pytest.mark.parametrize("gain", [1.5, 1.01, 0.5])
def test_the_fastest_candidate_wins_where_it_is_worth_it(gain):
    found = contest(lambda place, run: [1.0, 1 / gain, 1.1][min(place, 2)])
    assert found.winner == found.forms[gain == 1.5]
    if gain == 1.5:
        assert found.gains[found.winner] == pytest.approx(1.5)


def test_what_is_fast_now_and_then_does_not_win():
    found = contest(lambda place, run: 1.0 if place != 1 else 0.5 if run % 2 else 1.05)
    assert found.winner == found.forms[0]


def test_what_is_fast_in_one_place_only_does_not_win():
    """The best form runs in other memory and in company, too."""
    found = contest(lambda place, run: 1.0 if place != 1 or run > ROUNDS else 0.5)
    assert found.winner == found.forms[0] and found.gains[found.forms[1]] == 1.0


@pytest.mark.parametrize("calls", [Products(A), None])
def test_the_best_form_is_timed_in_company(calls, monkeypatch):
    """Another thread computes the other share of a product, or images of its own."""
    calls = calls or convolution(FORWARD, *GEOMETRIES["edges"])
    found, made, real = Contest(calls, this_machine(), 2), [], Trial.__init__

    def init(self, alike, form, scratch, workers, worker=None):
        made.append((self, scratch, worker))
        real(self, alike, form, scratch, workers, worker)

    monkeypatch.setattr(Trial, "__init__", init)
    runs = {}
    monkeypatch.setattr(Trial, "run", lambda self: runs.update({self: runs.get(self, 0) + 1}))
    before = found._time
    found._time = lambda trial: before(trial) and (1.0 if trial.form == found.forms[0] else 0.5)
    spent, threads = company.seconds_spent() - time.thread_time(), threading.active_count()
    for _ in found.steps():
        pass
    (alone, where, _), (helper, places, worker) = made[-2:]
    assert worker == 0 and helper.form == alone.form == found.winner != found.forms[0]
    assert runs[helper] > ROUNDS and runs[alone] > ROUNDS
    assert (places is where) == isinstance(calls, Products)
    assert company.seconds_spent() - time.thread_time() > spent
    assert threading.active_count() == threads


def test_runs_take_operands_in_turn():
    alike, here = Products(A), this_machine()
    scratch = [Scratch(alike) for _ in range(3)]
    trial = Trial(alike, alike.rule(here), scratch, 1)
    for number in range(5):
        for one in scratch:
            one.arrays[2][:] = -1
        trial.run()
        assert [bool((one.arrays[2] == A.k).all()) for one in scratch] == [
            place == number % 3 for place in range(3)
        ]


def test_a_run_is_timed_as_often_as_is_enough():
    found = Contest(Products(A), this_machine(), 2, clock=Clock(itertools.repeat(ENOUGH / 4)))
    trial = Trial(found.alike, found.forms[0], [Scratch(found.alike)], 2)
    assert found._time(trial) == pytest.approx(ENOUGH / 4)


def test_hopeless_candidates_are_not_tried_again():
    found = Contest(Products(A), this_machine(), 2)
    calls = {}
    times = iter([t for _ in range(1000) for t in (0.0, 1.0)])
    found._clock = Clock(times)
    real = found._time

    def slow(trial):
        calls[trial.form] = calls.get(trial.form, 0) + 1
        return real(trial) * (1 if trial.form == found.forms[0] else 2)

    found._time = slow
    for _ in found.steps():
        pass
    assert calls.pop(found.forms[0]) == ROUNDS and set(calls.values()) == {2}


def test_products_that_take_much_of_the_time_matter(monkeypatch):
    here, text = this_machine(), text_of(A)
    counts = [0] * len(calls_counted())
    monkeypatch.setattr(chosen, "calls_counted", lambda: counts)
    monkeypatch.setattr(winners, "seen", {text: None, text_of(PRODUCTS[0]): None})
    one = cost(A, rule(A, here), here, 1)
    assert chosen.class_that_matters(here, (), one * 100) is None
    counts[slot_of(text)] = 100
    assert chosen.class_that_matters(here, (), one * 101) is None
    found = chosen.class_that_matters(here, (), one * 99)
    assert found == (text, Products(A), planned_workers())
    assert chosen.class_that_matters(here, {text}, one * 99) is None
    counts[slot_of(text_of(PRODUCTS[0]))] = 10_000
    assert chosen.class_that_matters(here, (), one * 99)[0] == text_of(PRODUCTS[0])


def test_the_background_keeps_what_won(folder, monkeypatch):
    here, measuring = this_machine(), "treadle.runtime.cpu.measuring.Measurement"
    monkeypatch.setattr(winners, "seen", {text_of(A): None})
    calls_counted()[slot_of(text_of(A))] += 1 << 40
    try:
        monkeypatch.setattr(f"{measuring}.steps", lambda self: iter(()))
        monkeypatch.setattr(f"{measuring}.found", None, raising=False)
        monkeypatch.setattr("treadle.runtime.cpu.target.keep", lambda found: None)
        assert not all(itertools.islice(learning._learn(), 500))  # in the end it waits for more
    finally:
        calls_counted()[slot_of(text_of(A))] -= 1 << 40
    kept = winners._read(winners._place())
    assert Choice(*kept[text_of(A)]) in all_choices(A, here, planned_workers())


# -- treadle tune ----------------------------------------------------------------------------------

MODULE = """
import treadle as td

def two(x, w, v):
    return td.matmul(td.nn.relu(td.matmul(x, w)), v)

def none(x):
    return x + 1
"""


def test_tune_prints_what_it_gained(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tuned_functions.py").write_text(MODULE)
    out = tmp_path / "tuned.json"
    arguments = ["float32[40,72]", "float32[72,56]", "float32[56,88]"]
    command = ["tune", "tuned_functions:two", "--args", *arguments, "--json", str(out)]
    try:
        assert main(command) == 0
    finally:
        sys.modules.pop("tuned_functions", None)
    shown = capsys.readouterr().out
    assert "40x56x72" in shown and "40x88x56" in shown
    rows = json.loads(out.read_text())["routines"]
    assert len(rows) == 2 and all(row["before_us"] >= row["now_us"] > 0 for row in rows)
    assert all((row["gain"] > 1) == bool(row["change"]) for row in rows)
    assert len(winners._read(winners._place())) == 2


def test_nothing_to_tune(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "untuned_functions.py").write_text(MODULE)
    assert main(["tune", "untuned_functions:none", "--args", "float32[4]"]) == 0
    assert "no product or convolution" in capsys.readouterr().out
    assert main(["tune", "untuned_functions:two"]) == 2
    assert "--args" in capsys.readouterr().err
