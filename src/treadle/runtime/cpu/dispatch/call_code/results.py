"""Arrays become tensors, elements numbers, and what the caller gets is put together."""

from __future__ import annotations

from treadle.runtime.cpu.builder.function import Target
from treadle.runtime.cpu.builder.types import F64, I8, I64, pointer
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.dispatch import call_plan
from treadle.runtime.cpu.dispatch.call_code.call import Call


def write_results(c: Call) -> None:
    f = c.f
    with f.loop("wrapping", w=0) as wrapping:
        w = wrapping["w"]
        wrapping.run_while(w.ult(c.output_count))
        _wrap(c, w)
        wrapping.again(w + 1)
    count, table = c.plan["items"], c.plan["item_table"]
    with f.loop("itemizing", g=0) as itemizing:
        g = itemizing["g"]
        itemizing.run_while(g.ult(count))
        item = _item(c, table.at(g), g)
        c.items[g] = item
        itemizing.again(g + 1)
    _pack(c, count)


def _wrap(c: Call, w: Value) -> None:
    """An array becomes a tensor, an element of the frame a number."""
    f, table = c.f, c.table
    of_object = c.structs.of_object
    output = c.output_table.at(w)
    form, place = output["form"], c.made.at(w)
    array, value = place.load(), c.frame.at(output["word"])
    wrapped, number = f.block("wrapped"), f.block("number_made", object=of_object)
    numbers = call_plan.INT, call_plan.REAL, call_plan.COMPLEX, call_plan.BOOL
    forms = (call_plan.WRAPPED, call_plan.SCALAR, *numbers)
    blocks = [f.block(f"form{form}") for form in forms]
    ways: dict[int, Target] = dict(zip(forms, blocks, strict=True))
    f.switch(form, ways, wrapped)
    maybe, scalar, integer, real, complex_, boolean = blocks
    f.begin(scalar)
    dtype = output["dtype"]
    f.jump(number(f.call(table["new_scalar"], value, dtype, None)))
    f.begin(integer)
    word = value.load()
    f.jump(number(f.call(table["PyLong_FromLongLong"], word)))
    f.begin(real)
    double = value.as_pointer(F64)
    x = double.load()
    f.jump(number(f.call(table["PyFloat_FromDouble"], x)))
    f.begin(complex_)
    re, im = double[0], double[1]
    f.jump(number(f.call(table["PyComplex_FromDoubles"], re, im)))
    f.begin(boolean)
    bit = value.as_pointer(I8).load().zext(I64)
    f.jump(number(f.call(table["PyBool_FromLong"], bit)))
    f.begin(number)
    place.store(number["object"])
    f.branch(number["object"].ne(None), wrapped, c.fail_late(0))
    f.begin(maybe)  # a tensor that is used again?
    f.refuse(array["type"].eq(table["Tensor"]), wrapped, "wrap")
    tensor_type, alloc = table["Tensor"], table["PyType_GenericAlloc"]
    tensor = f.call(alloc, tensor_type, 0)
    f.require(tensor.ne(None), c.fail_late(0), "fill_tensor")
    spec = output["spec"]
    f.call(c.incref, spec)
    tensor["tensor_array"] = array
    tensor["tensor_spec"] = spec
    place.store(tensor)
    f.call(c.helper("park"), table, c.spares, w, tensor)
    f.jump(wrapped)
    f.begin(wrapped)


def _item(c: Call, item: Value, g: Value) -> Value:
    """What the caller gets at one place: a result, an argument, a view, a value known before."""
    f = c.f
    kind, number, known = item["kind"], item["number"], item["object"]
    put = f.block("put", object=c.structs.of_object)
    kinds = (call_plan.RESULT, call_plan.AGAIN, call_plan.INPUT, call_plan.VIEW)
    taken, again, given, view = blocks = [f.block(f"item{kind}") for kind in kinds]
    known_item = f.block("known_item")
    f.switch(kind, dict(zip(kinds, blocks, strict=True)), known_item)
    f.begin(taken)  # the only one to have it is the caller
    result = c.made.at(number)
    only = result.load()
    result.store(None)
    f.jump(put(only))
    for block, objects in ((again, c.items), (given, c.inputs)):
        f.begin(block)
        once_more = objects[number]
        f.call(c.incref, once_more)
        f.jump(put(once_more))
    f.begin(view)
    seen = c.inputs[number]
    made = f.call(c.table["PyObject_CallOneArg"], known, seen)
    f.branch(made.ne(None), put(made), c.fail_late(g))
    f.begin(known_item)
    f.call(c.incref, known)
    f.jump(put(known))
    f.begin(put)
    return put["object"]


def _pack(c: Call, count: Value) -> None:
    """Return the items in the container that the function gives."""
    f, table = c.f, c.table
    form = c.plan["kind"]
    single, nothing, failed = f.block("single"), f.block("nothing"), f.block("unpacked")
    as_list, as_tuple, as_dict = f.block("as_list"), f.block("as_tuple"), f.block("as_dict")
    ways: dict[int, Target] = {
        call_plan.SINGLE: single, call_plan.LIST_RESULT: as_list, call_plan.TUPLE_RESULT: as_tuple,
        call_plan.PACKED_RESULT: as_tuple, call_plan.DICT_RESULT: as_dict,
    }  # fmt: skip
    f.switch(form, ways, nothing)
    f.begin(single)
    only = c.items.load()
    c.done()
    f.ret(only)
    f.begin(nothing)
    c.done()
    none = table["None"]
    f.call(c.incref, none)
    f.ret(none)
    of_object = c.structs.of_object
    fill = f.block("fill", sequence=of_object, places=pointer(of_object))
    f.begin(as_list)
    made = f.call(table["PyList_New"], count)
    f.require(made.ne(None), failed, "list_made")
    f.jump(fill(made, made["list_items"]))
    f.begin(as_tuple)
    made = f.call(table["PyTuple_New"], count)
    f.require(made.ne(None), failed, "tuple_made")
    f.jump(fill(made, made.place("tuple_items")))
    f.begin(fill)
    f.copy(fill["places"], c.items, count << 3)
    packed = f.block("packed")
    f.refuse(form.eq(call_plan.PACKED_RESULT), packed, "filled")
    c.done()
    f.ret(fill["sequence"])
    f.begin(packed)  # Python puts the items where they belong
    packer, call = c.plan["packer"], table["PyObject_CallOneArg"]
    structure = f.call(call, packer, fill["sequence"])
    c.done()
    f.call(c.decref, fill["sequence"])
    f.ret(structure)
    f.begin(as_dict)
    _pack_dict(c, count, failed)
    f.begin(failed)
    c.done()
    c.drop(c.items, 0, count)
    f.ret(None)


def _pack_dict(c: Call, count: Value, failed: Target) -> None:
    f, table = c.f, c.table
    new_dict, set_item, keys = table["PyDict_New"], table["PyDict_SetItem"], c.plan["keys"]
    made = f.call(new_dict)
    f.require(made.ne(None), failed, "dict_made")
    with f.loop("entries", e=0) as entries:
        e, lost = entries["e"], f.block("lost")
        entries.run_while(e.ult(count))
        key, value = keys[e], c.items[e]
        status = f.call(set_item, made, key, value)
        f.require(status.eq(0), lost, "entry_set")
        f.call(c.decref, value)
        entries.again(e + 1)
    c.done()
    f.ret(made)
    f.begin(lost)
    c.done()
    f.call(c.decref, made)
    c.drop(c.items, e, count)
    f.ret(None)
