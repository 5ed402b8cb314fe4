"""Variable forwarding."""

import pytest

from tests.graph.passes.helpers import check, check_unchanged
from treadle.core.spec import TensorSpec
from treadle.graph.passes.forwarding import forward_variables
from treadle.ops.registry import OPS, Op

HEAD = "(%p: bool[], %x: f32[]) captures (%v: ref f32[], %w: ref f32[]) {\n"


def test_reads_give_what_was_assigned_or_read() -> None:
    check(
        forward_variables,
        HEAD
        + """
          %0: f32[] = read_variable(%v)
          %1: f32[] = read_variable(%v)
          %2: f32[] = add(%0, %1)
          assign_variable(%v, %2)
          %3: f32[] = read_variable(%v)
          %4: f32[] = read_variable(%w)
          %5: f32[] = add(%3, %4)
          return %5
        }""",
        HEAD
        + """
          %0: f32[] = read_variable(%v)
          %2: f32[] = add(%0, %0)
          assign_variable(%v, %2)
          %4: f32[] = read_variable(%w)
          %5: f32[] = add(%2, %4)
          return %5
        }""",
    )


def test_assignments_before_an_assertion_stay() -> None:
    check_unchanged(
        forward_variables,
        HEAD
        + """
          assign_variable(%v, %x)
          assert(%p, %x) {message='', summarize=3}
          %0: f32[] = add(%x, %x)
          assign_variable(%v, %0)
          return
        }""",
    )


def test_overwritten_and_idle_assignments_go() -> None:
    check(
        forward_variables,
        HEAD
        + """
          %0: f32[] = read_variable(%w)
          assign_variable(%w, %0)
          assign_variable(%v, %0)
          assign_variable(%w, %x)
          print(%x) {message=''}
          assign_variable(%v, %x)
          return
        }""",
        HEAD
        + """
          assign_variable(%w, %x)
          print(%x) {message=''}
          assign_variable(%v, %x)
          return
        }""",
    )


@pytest.mark.parametrize("writes", [True, False])
def test_a_branch_that_writes_ends_what_is_known(writes: bool) -> None:
    seen = "%9: f32[] = read_variable(%v)\nprint(%9) {message=''}"
    inner = "assign_variable(%v, %x)" if writes else seen
    text = (
        HEAD
        + f"""
      %0: f32[] = read_variable(%v)
      %1: f32[] = cond(%p, %x, %v)
        then(%x: f32[], %v: ref f32[]) {{
          {inner}
          return %x
        }}
        else(%x: f32[], %v: ref f32[]) {{ return %x }}
      %2: f32[] = read_variable(%v)
      return %0, %1, %2
    }}"""
    )
    if writes:
        check_unchanged(forward_variables, text)
    else:
        after = text.replace("%2: f32[] = read_variable(%v)", "").replace("%1, %2", "%1, %0")
        check(forward_variables, text, after)


def test_an_assignment_before_a_loop_that_reads_stays() -> None:
    check_unchanged(
        forward_variables,
        HEAD
        + """
          assign_variable(%v, %x)
          %0: f32[] = while(%x, %v)
            condition(%a: f32[], %v: ref f32[]) {
              %1: f32[] = read_variable(%v)
              %2: bool[] = less(%a, %1)
              return %2
            }
            body(%a: f32[], %v: ref f32[]) {
              %1: f32[] = add(%a, %a)
              return %1
            }
          assign_variable(%v, %0)
          return
        }""",
    )


def test_a_python_callback_may_touch_any_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    callback = Op("test_callback", lambda x: TensorSpec((), x.dtype), lambda x: x, effect="io")
    monkeypatch.setitem(OPS, "test_callback", callback)
    check_unchanged(
        forward_variables,
        HEAD
        + """
          assign_variable(%v, %x)
          %0: f32[] = test_callback(%x)
          %1: f32[] = read_variable(%v)
          assign_variable(%v, %0)
          return %1
        }""",
    )
