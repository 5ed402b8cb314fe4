import pytest

import treadle as td
from treadle.runtime.cpu.jit import jit


def relu_or_double(x):
    # a comment that survives
    if td.reduce_sum(x) > 0.0:
        x = x * 2.0
    return x


SPEC = td.TensorSpec([4], td.float32)


def test_order_of_the_stages():
    found = list(td.inspect.stages(relu_or_double, SPEC))
    assert found[:4] == ["source", "autograph", "graph", "graph after passes"]
    assert len(found) > 4


def test_every_stage_says_something():
    found = td.inspect.stages(relu_or_double, SPEC)
    assert all(text.strip() for text in found.values())
    assert found["source"].startswith("def relu_or_double(x):\n    # a comment that survives\n")
    assert "ag__.if_stmt" in found["autograph"]
    assert "cond" in found["graph"]


def test_decorated_and_concrete_functions_show_the_same_graph():
    decorated = td.function(relu_or_double)
    concrete = decorated.get_concrete_function(SPEC)
    expected = str(concrete.graph)
    assert td.inspect.stages(decorated, SPEC)["graph"] == expected
    assert td.inspect.stages(concrete)["graph"] == expected
    assert "source" not in td.inspect.stages(concrete)


def test_passes_can_be_seen_at_work():
    found = td.inspect.stages(lambda x: x * 1.0 + (x - x), SPEC)
    assert found["graph"] != found["graph after passes"]


def test_a_stage_is_written_when_it_is_read(monkeypatch):
    written, assembly = [], jit().assembly
    monkeypatch.setattr(jit(), "assembly", lambda text: written.append(text) or assembly(text))
    found = td.inspect.stages(relu_or_double, SPEC)
    assert "assembly" in found and "define" in found["llvm"] and not written
    text, modules = found["assembly"], len(written)
    assert text and modules
    assert found["assembly"] == text and len(written) == modules


def test_readable():
    text = repr(td.inspect.stages(relu_or_double, SPEC))
    assert text.startswith("== source ==\ndef relu_or_double(x):")
    assert "\n\n== graph ==\n" in text


def test_a_missing_argument_is_a_type_error():
    with pytest.raises(TypeError, match="x"):
        td.inspect.stages(relu_or_double)


def test_nothing_is_run():
    counter = td.Variable(0)

    def count():
        return counter.assign_add(1)

    td.inspect.stages(count)
    assert int(counter.read_value()) == 0
