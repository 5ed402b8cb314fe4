"""The plans one after another, and the checks of the arguments by each."""

from __future__ import annotations

from treadle.runtime.cpu.builder.function import Block, Target
from treadle.runtime.cpu.builder.types import I64, pointer
from treadle.runtime.cpu.builder.values import Operand, Value
from treadle.runtime.cpu.dispatch import call_plan
from treadle.runtime.cpu.dispatch.call_code.call import Call, rank_of, require_equal
from treadle.runtime.cpu.program_layout import CELL

_CONTIGUOUS_ALIGNED, _WRITABLE = 0x0101, 0x0400  # NumPy's flags of arrays
_EQ = 2  # Python's number of the comparison


def write_checks(c: Call) -> None:
    """Leave `c.plan` as the plan that takes the call; `portable` where none does."""
    f = c.f
    attempt = f.block("attempt", plan=c.structs.plan.pointer)
    miss, begin = f.block("miss"), f.block("begin")
    f.jump(attempt(c.first))
    f.begin(attempt)
    c.plan = attempt["plan"]
    f.branch(c.plan.eq(None), c.portable, begin)
    f.begin(miss)
    f.jump(attempt(c.plan["next"]))
    f.begin(begin)
    same_count = c.plan["count"].eq(c.count)
    f.require(same_count & c.plan["room"].ule(c.room), miss, "keywords")
    _require_names(c, miss)
    words = c.plan["words"]
    f.copy(c.frame, c.plan["frame"], words << 3)
    checks, table = c.plan["checks"], c.plan["check_table"]
    with f.loop("checking", i=0, held=0, opened=1) as checking:
        checking.run_while(checking["i"].ult(checks))
        one = _Check(c, miss, table.at(checking["i"]), checking["held"], checking["opened"])
        one.write()
        checking.again(checking["i"] + 1, one.passed["held"], one.passed["opened"])
    c.held = checking["held"]


def _require_names(c: Call, miss: Block) -> None:
    """Keywords: the same tuple of names, or one of the same names."""
    f, prepare = c.f, c.f.block("prepare")
    wanted = c.plan["names"]
    f.refuse(wanted.eq(c.names), prepare, "both_named")
    f.refuse(wanted.eq(None) | c.names.eq(None), miss, "count_names")
    wanted_count, count = wanted["size"], c.names["size"]
    f.require(wanted_count.eq(count), miss)
    require_equal(f, c.names.place("tuple_items"), wanted.place("tuple_items"), count, miss)
    f.jump(prepare)
    f.begin(prepare)


class _Check:
    """One check of a plan, of a kind that is known when the call comes.

    Args:
        record: the check's record.
        held, opened: how many inputs and containers the checks before have found.

    Attributes:
        passed: the block of a check that holds, with both numbers after it.
    """

    def __init__(self, c: Call, miss: Block, record: Value, held: Value, opened: Value) -> None:
        self.c, self.f, self.miss, self.record = c, c.f, miss, record
        self.held, self.opened = held, opened
        of_object = c.structs.of_object
        self.passed = c.f.block("passed", held=I64, opened=I64)
        # an object that the call holds, and the memory that it reads there
        self.keep = c.f.block("keep", object=of_object, start=I64, end=I64)
        self.boxed = c.f.block("boxed", at=I64)  # a number whose value is inside the object
        self.described = c.f.block("described", array=of_object)  # an array is compared
        self.input = c.f.block("input", array=of_object)  # an array that fits
        self.sized = c.f.block("sized", items=pointer(of_object))  # a container is compared

    def write(self) -> None:
        f, record = self.f, self.record
        self.kind = record["kind"]
        number, self.index, self.key = record["base"], record["index"], record["key"]
        self.a = record["a"]
        self.base = self.c.bases[number]
        hold, captured, distinct, written, look = (
            f.block(name) for name in ("hold", "captured", "distinct", "written", "look")
        )
        ways: dict[int, Target] = {
            call_plan.HELD: hold, call_plan.CAPTURED: captured, call_plan.DISTINCT: distinct,
            call_plan.WRITTEN: written,
        }  # fmt: skip
        f.switch(self.kind, ways, look)
        f.begin(hold)
        owner = self.a.to_pointer()
        f.jump(self.keep(owner.skip(record["b"], self.c.structs.of_object).load(), 0, 0))
        f.begin(captured)  # memory that the function reads besides its inputs
        f.jump(self.keep(self.c.table["None"], self.a, record["b"]))
        f.begin(distinct)
        self._distinct()
        f.begin(written)
        self._written()
        f.begin(look)
        self._look()
        self._input()
        self._values()
        self._containers()
        f.begin(self.passed)

    def _pass(self, held: Operand = None, opened: Operand = None) -> None:
        """The check holds; the numbers are as before where they are not given."""
        self.f.jump(self._passed(held, opened))

    def _passed(self, held: Operand = None, opened: Operand = None) -> Target:
        return self.passed(
            self.held if held is None else held, self.opened if opened is None else opened
        )

    def _distinct(self) -> None:
        """The newest input is none of those before it."""
        f, inputs = self.f, self.c.inputs
        newest = self.held - 1
        given = inputs[newest]
        with f.loop("differing", q=0) as differing:
            q = differing["q"]
            differing.run_while(q.ult(newest))
            following = q + 1
            f.branch(inputs[q].ne(given), differing.next(following), self.miss)
        self._pass()

    def _written(self) -> None:
        """Input a may be written and shares memory with no other: the program takes it as a
        variable of its own."""
        f, c, a = self.f, self.c, self.a
        array = c.inputs[a]
        writable = (array["array_flags"] & _WRITABLE).ne(0)
        start, end = c.starts[a], c.ends[a]
        f.require(writable, self.miss, "apart")
        with f.loop("places", other=0) as places:
            other = places["other"]
            places.run_while(other.ult(self.held))
            following = other + 1
            f.refuse(c.inputs[other].eq(array), places.next(following), "compare_places")
            other_start, other_end = c.starts[other], c.ends[other]
            overlap = other_start.ult(end) & start.ult(other_end)
            f.branch(overlap, self.miss, places.next(following))
        slot, cell = self.record["slot"], self.record["b"]
        place = c.frame.at(cell)
        c.put_address(slot, place)
        variable = place.as_pointer(CELL)
        variable["data"] = start.to_pointer()
        variable["array"] = array
        self._pass()

    def _look(self) -> None:
        """The object that is checked: an item of a sequence or a dict."""
        f, c = self.f, self.c
        by_key, by_index = f.block("by_key"), f.block("by_index")
        found = f.block("found", object=c.structs.of_object)
        f.branch(self.key.ne(None), by_key, by_index)
        f.begin(by_index)
        f.jump(found(self.base[self.index]))
        f.begin(by_key)
        of_dict = self.base.as_pointer(c.structs.object)
        item = f.call(c.table["PyDict_GetItemWithError"], of_dict, self.key)
        f.require(item.eq(None), found(item), "lacking")
        error = f.call(c.table["PyErr_Occurred"])
        f.branch(error.eq(None), self.miss, c.raised)
        f.begin(found)
        self.x = found["object"]
        self.type = self.x["type"]
        kinds = {
            call_plan.TENSOR: self._tensor, call_plan.ARRAY: None, call_plan.SAME: self._same,
            call_plan.BOXED: self._boxed, call_plan.INTEGER: self._integer,
        }  # fmt: skip
        self.cases = {kind: f.block(f"case{kind}") for kind in (*kinds, *_VALUES, *_CONTAINERS)}
        f.switch(self.kind, self.cases, c.portable)
        for kind, write in kinds.items():
            if write is not None:
                f.begin(self.cases[kind])
                write()

    def _require_type(self, name: str) -> None:
        """Go on with an object of exactly this type."""
        self.f.require(self.type.eq(self.c.table[name]), self.miss, f"is_{name}")

    def _tensor(self) -> None:
        """A tensor of that spec, or an array, or a NumPy scalar for a tensor of rank 0."""
        f, c, x = self.f, self.c, self.x
        maybe_array = self.cases[call_plan.ARRAY]
        f.require(self.type.eq(c.table["Tensor"]), maybe_array, "tensor")
        array, spec = x["tensor_array"], x["tensor_spec"]
        f.refuse(spec.to_word().eq(self.a), self.input(array), "unnamed")
        f.branch(spec.eq(c.table["None"]), self.described(array), self.miss)
        f.begin(maybe_array)
        f.refuse(self.type.eq(c.table["ndarray"]), self.described(x), "scalar")
        shape = self.record["c"]
        scalar, at = shape["scalar"], shape["scalar_at"]
        f.branch(self.type.eq(scalar), self.boxed(at), self.miss)

    def _same(self) -> None:
        """The same object as input a."""
        known = self.c.inputs[self.a]
        self.f.branch(self.x.eq(known), self.input(self.x), self.miss)

    def _boxed(self) -> None:
        """A number whose value is inside the object, of the type a."""
        f, c = self.f, self.c
        type_ = self.a.to_pointer(c.structs.of_object)
        at = self.record["b"]
        f.branch(self.type.eq(type_), self.boxed(at), self.miss)
        f.begin(self.boxed)
        place = self.x.skip(self.boxed["at"])
        c.put_address(self.record["slot"], place)
        f.jump(self.keep(self.x, 0, 0))

    def _integer(self) -> None:
        """A Python int of 64 bits: the program reads it in the frame."""
        f, c = self.f, self.c
        self._require_type("int")
        value = f.call(c.table["PyLong_AsLongLongAndOverflow"], self.x, c.overflow)
        f.require(c.overflow.load().eq(0), self.miss)
        place = c.frame.at(self.a)
        place.store(value)
        c.put_address(self.record["slot"], place)
        self._pass()

    def _input(self) -> None:
        """Arrays: dtype, rank, layout and dims are compared; what fits is an input."""
        f, c, record = self.f, self.c, self.record
        f.begin(self.described)
        array = self.described["array"]
        dtype, wanted = array["array_dtype"].to_word(), record["b"]
        f.require(dtype.eq(wanted), self.miss, "ranked")
        shape = record["c"]
        rank = shape["rank"]
        same_rank = rank.eq(rank_of(array))
        layout = array["array_flags"] & _CONTIGUOUS_ALIGNED
        f.require(same_rank & layout.eq(_CONTIGUOUS_ALIGNED), self.miss, "measure")
        require_equal(f, array["array_dims"], shape.place("dims"), rank, self.miss)
        f.jump(self.input(array))
        f.begin(self.input)
        taken = self.input["array"]
        data = taken["array_data"]
        size = record["c"]["bytes"]
        start = data.to_word()
        end = start + size
        c.put_address(record["slot"], data)
        f.jump(self.keep(taken, start, end))
        f.begin(self.keep)
        c.inputs[self.held] = self.keep["object"]
        c.starts[self.held] = self.keep["start"]
        c.ends[self.held] = self.keep["end"]
        self._pass(held=self.held + 1)

    def _values(self) -> None:
        """Values that the plan is for: floats by their bits, others by comparison."""
        f, c, x = self.f, self.c, self.x
        f.begin(self.cases[call_plan.FLOAT])
        self._require_type("float")
        bits = x.place("float_value").as_pointer(I64).load()
        f.branch(bits.eq(self.a), self._passed(), self.miss)
        f.begin(self.cases[call_plan.VALUE])
        wanted = self.a.to_pointer(c.structs.of_object)
        f.refuse(x.eq(wanted), self._passed(), "other")
        type_ = self.record["b"].to_pointer(c.structs.of_object)
        f.require(self.type.eq(type_), self.miss, "equal")
        answer = f.call(c.table["PyObject_RichCompareBool"], x, wanted, _EQ)
        f.branch(answer.eq(1), self._passed(), self.miss)

    def _containers(self) -> None:
        """Lists, tuples and dicts of that length: their items are checked by later checks."""
        f, c, x = self.f, self.c, self.x
        f.begin(self.cases[call_plan.LIST])
        self._require_type("list")
        f.jump(self.sized(x["list_items"]))
        f.begin(self.cases[call_plan.TUPLE])
        self._require_type("tuple")
        f.jump(self.sized(x.place("tuple_items")))
        f.begin(self.cases[call_plan.DICT])  # its length follows the header, as that of a list
        self._require_type("dict")
        f.jump(self.sized(x.as_pointer(c.structs.of_object)))
        f.begin(self.sized)
        f.require(x["size"].eq(self.a), self.miss, "open")
        c.bases[self.opened] = self.sized["items"]
        self._pass(opened=self.opened + 1)


_VALUES = (call_plan.FLOAT, call_plan.VALUE)
_CONTAINERS = (call_plan.LIST, call_plan.TUPLE, call_plan.DICT)
