"""What was made is dropped; the exception is set, or another path takes the call."""

from __future__ import annotations

from treadle.runtime.cpu.builder.function import Block
from treadle.runtime.cpu.dispatch.call_code.call import Call
from treadle.runtime.cpu.program_entry import EXHAUSTED, INTERRUPTED, RAISED


def write_failure(c: Call, bad: Block) -> None:
    f = c.f
    f.begin(bad)  # the program was not done
    c.drop(c.made, 0, c.output_count)
    leave, fails, interrupted = f.block("leave"), f.block("fails"), f.block("interrupted")
    f.switch(c.status, {RAISED: fails, EXHAUSTED: fails, INTERRUPTED: interrupted}, leave)
    f.begin(leave)
    c.done()
    f.jump(c.portable)
    f.begin(fails)
    failed, call = c.plan["failed"], c.table["PyObject_CallNoArgs"]
    failure = f.call(call, failed)
    c.done()
    f.refuse(failure.eq(None), c.raised, "set_error")
    # it is set here, so that no frame of treadle's is in its traceback
    f.call(c.table["PyErr_SetObject"], failure["type"], failure)
    f.call(c.decref, failure)
    f.ret(None)
    f.begin(interrupted)
    c.done()
    f.jump(c.raised)
    f.begin(c.raised)
    f.ret(None)
    f.begin(c.fail_making)  # there is no memory: the other path tries, and explains
    f.call(c.table["PyErr_Clear"])
    f.call(c.helper("other_handler"), c.table, c.handler_before)
    c.drop(c.made, 0, c.making)
    c.done()
    f.jump(c.portable)
    f.begin(c.fail_late)  # results are in `made`, and the first ones in `items`
    c.done()
    c.drop(c.items, 0, c.fail_late["items"])
    c.drop(c.made, 0, c.output_count)
    f.ret(None)
