"""The order of a region's units, and which updates happen in place.

Units run when their operands are there; effects keep program order. A value that is only a name
for a variable's memory must be used before the variable is overwritten: where the graph allows
it, its users are moved before the write; otherwise the value is copied when it is read. The
same holds for the loop variables of a loop body, which are cells of memory as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from treadle.core.records import record
from treadle.core.spec import ListSpec
from treadle.graph.ir import Node, Value
from treadle.graph.rewrite import mentioned_symbols, told_symbols
from treadle.kernel.ir import Expr, Load, postorder
from treadle.ops.collections.lists import LIST_STACK
from treadle.runtime.fusion.fuse import Fusion, Unit
from treadle.runtime.fusion.takeovers import storage
from treadle.runtime.precedence import Precedence
from treadle.runtime.roles import Role, is_alias
from treadle.runtime.schedule.lists import changes_list
from treadle.runtime.variable_order import earlier_uses, handles_touched


@record
class Order:
    """A region's schedule.

    Attributes:
        units: in execution order.
        in_place: new value -> the old value of the same cell that its kernel overwrites.
        taken: value -> the operand of its node (an update, branch or loop) whose memory it takes.
        assigned: values that their kernel writes straight into a variable: value -> handle.
        snapshots: values read from a cell that must be copied when they are read.
        owned: units that may change the list that is their first operand, and (loop, number)
            of lists that a loop may take over as its loop variables, or (branch, number) of those
            that the blocks of a branch may change.
        shown: units that stack a list which does not change any more: its memory is the array.
    """

    units: list[Unit]
    in_place: dict[Value, Value] = field(default_factory=dict)
    taken: dict[Value, Value] = field(default_factory=dict)
    assigned: dict[Value, Value] = field(default_factory=dict)
    snapshots: set[Value] = field(default_factory=set)
    owned: set[Unit | tuple[Unit, int]] = field(default_factory=set)
    shown: set[Unit] = field(default_factory=set)

    def stays(self, new: Value, old: Value) -> bool:
        """Whether `new` ends up in the memory of `old` by updates in place alone."""
        value = new
        while value is not old:
            before = self.taken.get(value) or self.in_place.get(value)
            if before is None:
                return False
            value = storage(before)
        return True


def order_units(
    fusion: Fusion, carried: Mapping[Value, Value] | None = None, lists: Sequence[Value] = (),
    unified: bool = True,
) -> Order:  # fmt: skip
    """Order the units of a region.

    Args:
        carried: for a loop body, old value (a parameter) -> new value (a result) of every array
            that the loop could update in place.
        lists: parameters of a loop body or branch that are lists which belong to it.
        unified: whether the host computes in the memory of the device. Where it waits for sizes,
            it reads as many at once as possible.
    """
    orderer = _Orderer(fusion, dict(carried or {}), set(lists))
    return orderer.run(orderer.close_to_program() if unified else orderer.by_sizes())


class _Orderer:
    def __init__(self, fusion: Fusion, carried: dict[Value, Value], lists: set[Value]) -> None:
        self.fusion, self.region, self.carried = fusion, fusion.region, carried
        self.lists = lists
        self.units = fusion.units
        # Kernels may stand anywhere between their first and last nodes, other units may not.
        self.program = sorted(
            (u for u in fusion.units if u.role is not Role.ARRAY), key=lambda u: u.position
        )
        self.maker: dict[Value, Unit] = {
            v: u for u in self.units for n in u.nodes for v in n.outputs
        }
        self.users = self._find_users()
        self.leaving = self._find_leaving()
        self.replaced = Counter(self.carried.values())
        self.order = Order([])
        self.overwritten: set[Value] = set()  # arrays that are updated in place afterwards
        # unit -> those that must follow it, whatever is updated in place
        self.after: dict[Unit, dict[Unit, None]] = {u: {} for u in self.units}
        self._order_operands()
        self._order_symbols()
        self._order_effects()
        self._order_variables()
        self.precedence = Precedence(self.close_to_program(), self.after)

    def run(self, wanted: Sequence[Unit]) -> Order:
        """The order as close as possible to the wanted one."""
        self._update_carried()
        self._update_parts()
        self._update_variables()
        self._update_lists()
        self.order.units = self.precedence.sorted(wanted)
        return self.order

    def close_to_program(self) -> list[Unit]:
        """The units in the order of the program."""
        return sorted(self.units, key=lambda u: u.position)

    def by_sizes(self) -> list[Unit]:
        """First the units that need no size that masks tell, then those that need such sizes, then
        those that need sizes of masks that need such sizes, and so on."""
        depth = dict.fromkeys(self.precedence.sorted(self.close_to_program()), 0)
        for unit, least in depth.items():
            tells = unit.role is Role.COMPACTION
            for follower in self.precedence.after[unit]:
                depth[follower] = max(depth[follower], least + tells)
        return sorted(self.units, key=lambda u: (depth[u], u.position))

    def _follow(self, unit: Unit, earlier: Iterable[Unit]) -> None:
        """Let a unit run after others."""
        for before in earlier:
            if before is not unit:
                self.precedence.add(before, unit)

    # -- who uses a value's memory -----------------------------------------------------------

    def _find_users(self) -> dict[Value, list[Unit]]:
        """The units that read each value, through aliases as well."""
        users: dict[Value, list[Unit]] = {}
        for unit in reversed(self.units):
            for value in self.fusion.loads[unit]:
                users.setdefault(value, []).append(unit)
            node = unit.nodes[0]
            if unit.role is Role.ALIAS:
                below = users.setdefault(node.inputs[0], [])
                below += users.get(node.outputs[0], [])
        return users

    def _find_leaving(self) -> set[Value]:
        """The values that leave the region, themselves or as aliases."""
        leaving = set(self.region.results)
        for node in reversed(self.region.nodes):
            if is_alias(node) and node.outputs[0] in leaving:
                leaving.add(node.inputs[0])
        return leaving

    # -- program order of effects ------------------------------------------------------------

    def _order_operands(self) -> None:
        for unit in self.units:
            for value in self.fusion.loads[unit]:
                maker = self.maker.get(value)
                if maker is not None and maker is not unit:
                    self.after[maker].setdefault(unit)

    def _order_symbols(self) -> None:
        """A unit that mentions a size runs after the one whose result tells it."""
        known = {s for p in self.region.params for s in p.spec.symbols()}
        tells: dict[str, Unit] = {}
        for unit in self.close_to_program():
            for node in unit.nodes:
                for name in told_symbols(node) - known:
                    tells.setdefault(name, unit)
        if not tells:
            return
        for unit in self.units:
            for name in self._mentioned(unit):
                if tells.get(name, unit) is not unit:
                    self.after[tells[name]].setdefault(unit)

    def _mentioned(self, unit: Unit) -> set[str]:
        """The symbols in the unit's nodes, and in the views that are computed inside it."""
        return set().union(*map(mentioned_symbols, self.fusion.computed(unit)))

    def _order_effects(self) -> None:
        single = {u.nodes[0]: u for u in self.units if u.role in (Role.SCALAR, Role.UPDATE)}
        last: Unit | None = None
        for unit in self.program:
            if unit.role not in (Role.READ, Role.ASSIGN) and any(n.has_effect for n in unit.nodes):
                if last is not None:
                    self.after[last].setdefault(unit)
                last = unit
                checked = single.get(unit.nodes[0].attrs.get("of", unit.nodes[0]))
                if checked is not None:  # it relies on the check before it
                    self.after[unit].setdefault(checked)

    def _order_variables(self) -> None:
        """A unit that writes a variable runs after all units that used it before, and before all
        that use it later. This comes first: it decides which users of old values can precede a
        write."""
        of_node = {unit.nodes[0]: unit for unit in self.program}
        for node, earlier in earlier_uses(list(of_node)).items():
            for before in earlier:
                self.after[of_node[before]].setdefault(of_node[node])

    # -- cells -------------------------------------------------------------------------------

    def _update_carried(self) -> None:
        """Let kernels of a loop body overwrite the loop variable that they replace."""
        for old, new in self.carried.items():
            writer = self.maker.get(new)
            alone = self.replaced[new] == 1 and old not in self.leaving
            if writer is not None and alone and self._fits_in_place(writer, new, old):
                readers = [u for u in self.users.get(old, ()) if u is not writer]
                if self._precede(readers, writer):
                    self.order.in_place[new] = old

    def _update_parts(self) -> None:
        """Let updates of a part, and branches and loops with such updates, overwrite the array."""
        replaced = set(self.order.in_place.values())
        for new, old in self.fusion.takeovers.source.items():
            writer, memory = self.maker.get(new), storage(old)
            if writer is None or memory in self.leaving or memory in replaced:
                continue
            readers = [u for u in self.users.get(memory, ()) if u is not writer]
            if self._precede(readers, writer):
                self.order.taken[new] = old
                self.overwritten.add(memory)

    def _fits_in_place(self, writer: Unit, new: Value, old: Value) -> bool:
        """Whether the writer's kernel reads `old` only where it writes `new`."""
        if writer.group is None or new not in self.fusion.stores[writer]:
            return False
        if new.spec is not old.spec or new in self.order.in_place or new in self.order.assigned:
            return False
        if writer.role is Role.LIBRARY:
            operands = self.fusion.operands(writer.nodes[0])
            if any(storage(v) is old for v in operands):
                return False  # the routine reads it all the time
        group = writer.group
        roots: list[Expr] = [group.values[v] for v in self.fusion.stores[writer]]
        return all(
            expr.index == group.index[new] and expr.valid is None
            for expr in postorder(roots)
            if isinstance(expr, Load) and group.build.buffers[expr.buffer] is old
        ) and self._stored_together(writer, new)

    def _stored_together(self, writer: Unit, new: Value) -> bool:
        """Whether a kernel reads no element of the array again after it has written it: all stores
        of the kernel belong to one loop, and only one of them follows reductions."""
        group = writer.group
        assert group is not None
        stores = self.fusion.stores[writer]
        if any(group.index[v] != group.index[new] for v in stores):
            return False
        return not group.reduced or (group.rowwise and len(stores) == 1)

    def _precede(self, readers: Sequence[Unit], writer: Unit) -> bool:
        """Make `readers` run before `writer`; False (and no change) where that is impossible."""
        others = [r for r in readers if r is not writer]
        if self.precedence.follows_any(writer, others):
            return False
        self._follow(writer, others)
        return True

    def _update_variables(self) -> None:
        """Order the reads and writes of every variable."""
        last_write: dict[Value, Unit] = {}
        reads: dict[Value, list[tuple[Value, Unit]]] = {}
        barrier: Unit | None = None
        touched: dict[Value, Unit] = {}
        for unit in self.program:
            node = unit.nodes[0]
            if node.runs_user_code:
                self._follow(unit, (*touched.values(), *last_write.values()))
                for handle in list(reads):
                    self._write(unit, handle, reads.pop(handle))
                last_write.clear()
                barrier = unit
                continue
            for handle, written in handles_touched(node):
                earlier = last_write.get(handle, barrier)
                touched[handle] = unit
                if not written:
                    self._follow(unit, [] if earlier is None else [earlier])
                    if unit.role is Role.READ:
                        reads.setdefault(handle, []).append((node.outputs[0], unit))
                    else:
                        reads.setdefault(handle, []).append((handle, unit))
                else:
                    pairs = reads.pop(handle, [])
                    last_write[handle] = self._assign(unit, handle, pairs, earlier)
                    if unit.role is Role.ASSIGN and self._names_cell(node):
                        reads[handle] = [(node.inputs[1], unit)]  # it names the cell from now on

    def _names_cell(self, node: Node) -> bool:
        """Whether the kernel that makes an assigned value writes it into this very variable."""
        handle, value = node.inputs
        return self.order.assigned.get(value) is handle

    def _assign(
        self, unit: Unit, handle: Value, pairs: list[tuple[Value, Unit]], before: Unit | None
    ) -> Unit:
        """The unit that writes a variable: the one whose kernel computes the value, else `unit`,
        which copies it."""
        writer = self._in_kernel(unit, handle, pairs, before)
        if writer is None:
            writer = unit
            self._follow(unit, [] if before is None else [before])
            self._write(unit, handle, pairs)
        return writer

    def _in_kernel(
        self, unit: Unit, handle: Value, pairs: list[tuple[Value, Unit]], before: Unit | None
    ) -> Unit | None:
        node = unit.nodes[0]
        if unit.role is not Role.ASSIGN or self.fusion.is_register(node.inputs[1]):
            return None
        new = node.inputs[1]
        line = self._line(new)
        first = line[-1]
        writer = self.maker.get(first)
        if writer is None or any(v.spec.dims != handle.spec.dims for v in line):
            return None
        if writer.role is Role.UPDATE:
            fits = self._updates_variable(writer, first, pairs)
        else:
            fits = writer.group is not None and self._fits_variable(writer, first, pairs)
        if not fits or new in self.overwritten:
            return None
        readers = [reader for _, reader in pairs]
        readers += [u for v, _ in pairs for u in self.users.get(v, ()) if u is not writer]
        if before is not None and before is not writer:
            readers.append(before)
        if any(v in self.leaving for v, _ in pairs) or not self._precede(readers, writer):
            return None
        self.order.assigned.update(dict.fromkeys(line, handle))
        for value, _ in pairs:
            if value is not handle and value.spec is first.spec:
                self.order.in_place[first] = value
        return self.maker[new]

    def _line(self, new: Value) -> list[Value]:
        """An array with those before it whose memory updates of parts have taken over, the latest
        first: the first one may be made in the memory of a variable, and all others follow. Where
        a later one is refused when the program runs, those before it stay in the variable, as
        after assignments one by one."""
        line = [new]
        while line[-1] in self.order.taken:
            before = storage(self.order.taken[line[-1]])
            if self.maker[line[-1]].role is not Role.UPDATE or before not in self.maker:
                return [new]
            line.append(before)
        return line

    def _updates_variable(self, writer: Unit, new: Value, pairs: list[tuple[Value, Unit]]) -> bool:
        """Whether an update changes a part of the array that was read from the variable before."""
        olds = [v for v, unit in pairs if unit.role is Role.READ]
        inputs = writer.nodes[0].inputs
        taken = new in self.order.taken or new in self.order.assigned
        return (
            not taken
            and len(olds) == sum(u.role in (Role.READ, Role.ASSIGN) for _, u in pairs) == 1
            and inputs[0] is olds[0]
            and sum(storage(v) is olds[0] for v in inputs) == 1
        )

    def _fits_variable(self, writer: Unit, new: Value, pairs: list[tuple[Value, Unit]]) -> bool:
        if new in self.order.assigned or new in self.order.in_place:
            return False  # it is written somewhere else
        if new not in self.fusion.stores[writer]:
            return False
        olds = [v for v, unit in pairs if unit.role in (Role.READ, Role.ASSIGN)]
        if len(olds) > 1:  # forwarding leaves one read between two writes
            return False
        if not olds:
            group = writer.group
            return group is not None and (not group.reduced or group.rowwise)
        return self._fits_in_place(writer, new, olds[0])

    def _write(self, writer: Unit, handle: Value, pairs: list[tuple[Value, Unit]]) -> None:
        """All uses of values read from the variable precede `writer`, or they are copied."""
        for value, reader in pairs:
            self._follow(writer, [reader])
            if reader.role not in (Role.READ, Role.ASSIGN) or self.fusion.is_register(value):
                continue
            users = self.users.get(value, [])
            inside = writer in users and writer.role is not Role.ASSIGN
            others = [u for u in users if u is not writer and u is not reader]
            if value in self.leaving or inside or not self._precede(others, writer):
                self._keep_apart(value, reader)

    def _keep_apart(self, value: Value, reader: Unit) -> None:
        """`value` is read after its variable is written: it gets memory of its own."""
        if reader.role is Role.READ:
            self.order.snapshots.add(value)
        else:  # the assignment becomes a copy
            for made in self._line(value):
                self.order.assigned.pop(made, None)
                self.order.in_place.pop(made, None)

    # -- lists -------------------------------------------------------------------------------

    def _update_lists(self) -> None:
        """Find the units after which nobody needs the list that they change."""
        for unit in self.units:
            node = unit.nodes[0]
            if unit.role is Role.LIST and changes_list(node):
                if self._is_last(node.inputs[0], unit):
                    self.order.owned.add(unit)
            elif unit.role in (Role.WHILE, Role.COND):
                count = len(node.outputs) if unit.role is Role.WHILE else len(node.inputs)
                for i, value in enumerate(node.inputs[:count]):
                    if isinstance(value.spec, ListSpec) and self._is_last(value, unit):
                        self.order.owned.add((unit, i))

        for unit in self.units:
            stacks = unit.role is Role.LIST and unit.nodes[0].op is LIST_STACK
            if stacks and self._stays_as_it_is(unit.nodes[0].inputs[0]):
                self.order.shown.add(unit)

    def _stays_as_it_is(self, items: Value) -> bool:
        """Whether the list was made here, and nobody who gets it changes it."""
        maker = self.maker.get(items)
        if maker is None or maker.role not in (Role.WHILE, Role.LIST) or items in self.leaving:
            return False
        for unit in self.users.get(items, ()):
            node = unit.nodes[0]
            if unit.role is Role.LIST and not changes_list(node):
                continue
            if unit.role is not Role.WHILE or items in node.inputs[: len(node.outputs)]:
                return False
        return True

    def _is_last(self, items: Value, unit: Unit) -> bool:
        """Whether the list was made here and `unit` can run after everybody else who uses it."""
        maker = self.maker.get(items)
        if (maker is None and items not in self.lists) or items in self.leaving:
            return False
        if unit.nodes[0].inputs.count(items) > 1:
            return False
        others = [u for u in self.users.get(items, ()) if u is not unit]
        if any(
            (u in self.order.owned) or ((u, i) in self.order.owned)
            for u in others
            for i in range(len(u.nodes[0].inputs))
        ):
            return False
        return self._precede(others, unit)
