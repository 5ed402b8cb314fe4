"""A call on its way through the trampoline: the values and blocks that its stages share."""

from __future__ import annotations

from treadle.runtime.cpu.builder.function import Block, Callee, Function
from treadle.runtime.cpu.builder.types import I64
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.dispatch.structs import Structs


class Call:
    """The trampoline's function while it is written.

    Args:
        f: the function; `function`, `args`, `count`, `names` are its parameters.
        structs: the layout of objects and records.
        helpers: the functions that it calls.

    Attributes:
        portable: the block that passes the call on to Python.
        raised: the block that returns while an exception is set.
        fail_making: the block for results without memory.
        fail_late: the block for objects that could not be made; its parameter says how many items
            there are by then.
    """

    # entry
    table: Value
    first: Value  # plan
    room: Value  # words of each array here
    overflow: Value
    frame: Value
    bases: Value  # what items of arguments are read from
    inputs: Value  # objects of the call that the program reads or that are held
    starts: Value
    ends: Value
    made: Value  # results
    items: Value  # what the caller gets
    # checks
    plan: Value
    held: Value  # how many inputs there are
    # outputs
    output_count: Value
    output_table: Value
    incref: Value
    decref: Value
    holds: Value
    spares: Value
    handler_before: Value
    making: Value  # the number of the result that is being made
    # program
    status: Value

    def __init__(
        self, f: Function, structs: Structs, helpers: Unit,
        function: Value, args: Value, count: Value, names: Value,
    ) -> None:  # fmt: skip
        self.f, self.structs, self.helpers = f, structs, helpers
        self.function, self.args, self.count, self.names = function, args, count, names
        self.portable, self.raised = f.block("portable"), f.block("raised")
        self.fail_making = f.block("fail_making")
        self.fail_late = f.block("fail_late", items=I64)

    def helper(self, name: str) -> Callee:
        return self.helpers[name]

    def put_address(self, word: Value, place: Value) -> None:
        """Write an address to a word of the program's frame."""
        self.frame.at(word).as_pointer(place.type).store(place)

    def done(self) -> None:
        """The plan is not needed any more, nor are the inputs."""
        done = self.helper("done")
        self.f.call(done, self.plan, self.holds, self.decref, self.inputs, self.held)

    def drop(self, objects: Value, first: Value | int, last: Value) -> None:
        """Drop references."""
        self.f.call(self.helper("drop"), self.decref, objects, first, last)


def rank_of(array: Value) -> Value:
    """The rank of an ndarray as a word."""
    return array["array_rank"].sext(I64)


def require_equal(f: Function, a: Value, b: Value, count: Value, otherwise: Block) -> None:
    """Go on where the first elements of two arrays are the same, else to the block."""
    with f.loop("equal", n=0) as loop:
        n = loop["n"]
        loop.run_while(n.ult(count))
        following = n + 1
        f.branch(a[n].eq(b[n]), loop.next(following), otherwise)
