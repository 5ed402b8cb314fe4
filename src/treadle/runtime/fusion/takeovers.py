"""Which updates of a part of an array may happen in the array's own memory.

``y = update(x, ...)`` may overwrite x where nothing needs x afterwards. That is decided before
nodes are fused, because an update in place is a step of its own, and because readers of x that
come after the update in the program must not be fused with nodes that need its result. The schedule
asks again (`schedule.order`); where it has to refuse, the update works on a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from treadle.core.records import record
from treadle.core.shapes import symbol_name
from treadle.core.spec import TensorSpec
from treadle.core.switches import is_on
from treadle.graph.ir import Node, Region, Value
from treadle.ops.control.control_flow import COND, WHILE
from treadle.ops.shaping.joining import CONCAT
from treadle.ops.state import ASSIGN, READ
from treadle.runtime.precedence import Precedence
from treadle.runtime.roles import Role, changes_part, is_alias
from treadle.runtime.variable_order import earlier_uses

# The roles of nodes whose results have memory of their own, which nobody else holds.
_FRESH = frozenset(
    {Role.ARRAY, Role.VIEW, Role.LIBRARY, Role.UPDATE, Role.COND, Role.WHILE, Role.CALL,
     Role.COMPACTION, Role.SLICE, Role.LOOPS, Role.APPEND}
)  # fmt: skip
_MEMORY_ANYWAY = _FRESH - {Role.ARRAY, Role.VIEW}


@record
class Takeovers:
    """The result for one region.

    Attributes:
        source: value -> the operand of its node whose memory it takes over.
        before: node that overwrites an array -> the nodes that read the array.
        stored: nodes whose results must not be computed again where they are used, because an array
            that they read is overwritten before.
        rank: the places of the nodes in an order in which that is so; empty where the program's
            order is one.
        assigned: updates of a variable's value whose results are assigned to the variable, by
            themselves or after more updates.
    """

    source: dict[Value, Value] = field(default_factory=dict)
    before: dict[Node, list[Node]] = field(default_factory=dict)
    stored: set[Node] = field(default_factory=set)
    rank: dict[Node, int] = field(default_factory=dict)
    assigned: set[Node] = field(default_factory=set)

    @property
    def roles(self) -> dict[Node, Role]:
        """The roles of the nodes that write in place."""
        makers = [v.node for v in self.source if v.node is not None]
        found = {n: Role.UPDATE for n in makers if changes_part(n)}
        found |= dict.fromkeys(self.assigned, Role.UPDATE)
        return found | {n: Role.APPEND for n in makers if n.op is CONCAT}


def find_takeovers(
    region: Region, roles: Mapping[Node, Role], owned: Mapping[Value, Value]
) -> Takeovers:
    """The updates of a region that can happen in place.

    Args:
        owned: parameters whose memory belongs to the region, as the variables of a loop do.
    """
    some = any(changes_part(node) or _may_append(node) for node in region.walk())
    if not some or not is_on("takeovers"):
        return Takeovers()
    return _Search(region, roles, owned).run()


def storage(value: Value) -> Value:
    """The value that first named the memory: aliases are looked through."""
    while value.node is not None and is_alias(value.node) and value.node.inputs[0].spec.rank:
        value = value.node.inputs[0]
    return value


def passed_on(node: Node) -> Iterator[tuple[int, int]]:
    """(operand, output) for every operand whose memory an output of the node could take over."""
    for output in node.outputs:
        source = source_of(output)
        if source is not None:
            yield source, output.index


def source_of(value: Value) -> int | None:
    """The operand of its node whose memory a value could take over."""
    node = value.node
    if node is None:
        return None
    if changes_part(node) or _may_append(node):
        return 0
    if node.op is WHILE and _is_array(value):
        return _loop_source(node, value.index)
    if node.op is COND and _is_array(value):
        return _branch_source(node, value.index)
    return None


def followed(region: Region, result: Value) -> tuple[Value, bool]:
    """The value of the region whose memory a result could be in, and whether it is updated."""
    value, found = storage(result), False
    while value.node is not None and value.node.region is region:
        source = source_of(value)
        if source is None:
            break
        value, found = storage(value.node.inputs[source]), True
    return value, found


def _loop_source(node: Node, number: int) -> int | None:
    body = node.regions[1]
    param, result = body.params[number], body.results[number]
    root, updated = followed(body, result)
    return number if updated and root is param and param.spec is result.spec else None


def _branch_source(node: Node, number: int) -> int | None:
    """The operand that result `number` is in both branches, updated in one at least."""
    found: set[int] = set()
    changed = False
    for region in node.regions:
        result = region.results[number]
        root, updated = followed(region, result)
        others = [r for j, r in enumerate(region.results) if j != number]
        if root not in region.params or root.spec is not node.outputs[number].spec:
            return None
        if result.spec is not root.spec or any(storage(r) is root for r in others):
            return None  # the old one leaves the branch, too
        found.add(region.params.index(root))
        changed |= updated
    return 1 + found.pop() if changed and len(found) == 1 else None


def _may_append(node: Node) -> bool:
    """Whether the node puts something after all rows of its first operand."""
    return (
        node.op is CONCAT
        and node.attrs["axis"] == 0
        and len(node.inputs) > 1
        and isinstance(node.inputs[0].spec, TensorSpec)
        and node.inputs[0].spec.dtype is node.outputs[0].spec.dtype
    )


def _is_array(value: Value) -> bool:
    return isinstance(value.spec, TensorSpec) and value.spec.rank > 0


class _Search:
    def __init__(
        self, region: Region, roles: Mapping[Node, Role], owned: Mapping[Value, Value]
    ) -> None:
        self.region, self.owned = region, owned
        self.roles = dict(roles)
        self.position = {node: i for i, node in enumerate(region.nodes)}
        self.found = Takeovers()
        self.taken: set[Value] = set()
        self.readers: dict[Value, list[Node]] = {}  # of memory, by the value that names it
        self.consumers: dict[Value, list[Node]] = {}
        self.last_use: dict[Node, int] = {}  # the position of the last node that reads results
        self.unread: set[Node] = set()
        self.roots: dict[Value, Value] = {}  # array -> the first one in its memory
        self.lines: dict[Value, set[Value]] = {}
        for node in region.nodes:
            for value in dict.fromkeys(node.inputs):
                self.consumers.setdefault(value, []).append(node)
                if value.node is not None:
                    self.last_use[value.node] = self.position[node]
                if not (is_alias(node) and value.spec.rank):
                    self.readers.setdefault(storage(value), []).append(node)
        self.leaving = {storage(v) for v in region.results}
        self.shared = {storage(v) for n in region.nodes for v in _handed_through(n)}
        self.precedence = Precedence(region.nodes, self._followers())

    def _followers(self) -> dict[Node, list[Node]]:
        """For every node those that need its results, or use variables after it."""
        found = {node: list(self._uses(node)) for node in self.region.nodes}
        for node, earlier in earlier_uses(self.region.nodes).items():
            for before in earlier:
                found[before].append(node)
        return found

    def run(self) -> Takeovers:
        for node in self.region.nodes:
            for position, output in passed_on(node):
                self._consider(node, position, node.outputs[output])
            if changes_part(node) and self._is_assigned(node):
                self.found.assigned.add(node)
        if self.precedence.rank != self.position:
            self.found.rank = self.precedence.rank
        return self.found

    def _is_assigned(self, node: Node) -> bool:
        """Whether the node changes a part of a variable, alone or as the first of several."""
        read = node.inputs[0].node
        if read is None or read.op is not READ or read.region is not self.region:
            return False
        last: Node | None = node
        while last is not None:
            users = list(self._uses(last))
            if any(u.op is ASSIGN and u.inputs[0] is read.inputs[0] for u in users):
                return True
            (value,) = last.outputs
            last = next((u for u in users if changes_part(u) and u.inputs[0] is value), None)
        return False

    def _consider(self, node: Node, position: int, output: Value) -> None:
        memory = storage(node.inputs[position])
        if memory in self.taken:
            return
        if _may_append(node):
            allowed = node.inputs[0] is memory and self._grows(memory, output)
        else:
            allowed = output.spec is node.inputs[position].spec
        if not allowed or not self._may_overwrite(node, memory):
            return
        if sum(storage(v) is memory for v in node.inputs) > 1:
            return
        others = [r for r in self.readers.get(memory, ()) if r is not node]
        if self.precedence.follows_any(node, others):
            return
        self.found.source[output] = node.inputs[position]
        self.taken.add(memory)
        self.roots[output] = self.roots.get(memory, memory)
        self.found.before.setdefault(node, []).extend(others)
        for reader in others:
            self.precedence.add(reader, node)
            if self._is_read_after(reader, self.position[node]):
                self.found.stored.add(reader)
        if node.op is CONCAT:
            self.roles[node] = Role.APPEND
        elif changes_part(node):
            self.roles[node] = Role.UPDATE

    def _grows(self, memory: Value, output: Value) -> bool:
        """Whether an array, with the rows that were appended before, is a variable of the loop that
        only grows from one iteration to the next."""
        root = self.roots.get(memory, memory)
        result = self.owned.get(root)
        if result is None or root.spec is result.spec or symbol_name(root.spec.dims[0]) is None:
            return False
        return output in self._line(result)

    def _line(self, result: Value) -> set[Value]:
        """The values that a result of the region is in the memory of, if all are updated there."""
        if result not in self.lines:
            value = storage(result)
            found = self.lines[result] = {value}
            while (node := value.node) in self.position:
                source = source_of(value)
                if node is None or source is None:
                    break
                value = storage(node.inputs[source])
                found.add(value)
        return self.lines[result]

    def _may_overwrite(self, node: Node, memory: Value) -> bool:
        if memory in self.leaving or memory in self.shared:
            return False
        if memory.node is None:
            return memory in self.owned
        role = self.roles[memory.node]
        if role not in _FRESH or memory in _handed_through(memory.node):
            return False
        # A view is best left to its readers, unless it is stored anyway.
        chained = role in _MEMORY_ANYWAY or changes_part(memory.node)
        return chained or self.roles[node] is not Role.VIEW

    def _uses(self, node: Node) -> Iterator[Node]:
        for value in node.outputs:
            yield from self.consumers.get(value, ())

    def _is_read_after(self, node: Node, position: int) -> bool:
        """Whether a node after `position` reads the results, through views of them too.

        Positions only grow from one question to the next, and the roles up to them are final:
        nodes whose results nobody reads any more stay so.
        """
        seen, stack = {node}, [node]
        while stack:
            current = stack.pop()
            if self.last_use.get(current, -1) > position:
                return True
            for user in self._uses(current):
                moves = self.roles[user] in (Role.VIEW, Role.ALIAS)
                if moves and user not in seen and user not in self.unread:
                    seen.add(user)
                    stack.append(user)
        self.unread |= seen
        return False


def _handed_through(node: Node) -> Iterator[Value]:
    """Operands and results of a loop that are one array, which the loop does not change."""
    if node.op is WHILE:
        body = node.regions[1]
        for k, result in enumerate(body.results):
            if result is body.params[k]:
                yield node.inputs[k]
                yield node.outputs[k]
