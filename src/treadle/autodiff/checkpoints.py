"""Rules for a loop with ``checkpoint=True``, whose iterations run twice."""

from __future__ import annotations

from treadle.core import errors
from treadle.core.origin import Origin, at
from treadle.core.spec import ListSpec
from treadle.graph.ir import Node, Region, Value
from treadle.ops.lowering import ListForm


def require_repeatable(loop: Node) -> None:
    """Raise where the gradient of a checkpointed loop cannot compute its iterations again.

    Raises:
        InvalidArgumentError: an iteration prints, writes a variable, draws from a generator or the
            like, or reads elements of a list that it carries.
    """
    body = loop.regions[1]
    for node in body.walk():
        if node.op.effect not in (None, "read") and "asserts" not in node.op.tags:
            _refuse(node.op.name, node.origin, "has an effect, which would happen twice")
    for node in _reads_of_carried(body, set(body.params[: len(body.results)])):
        what = "reads an element of a list that the loop carries, which is not kept"
        _refuse(node.op.name, node.origin, what)


def _refuse(name: str, origin: Origin | None, why: str) -> None:
    raise errors.InvalidArgumentError(
        None, None,
        f"a loop with checkpoint=True computes its iterations again for the gradient, but {name} "
        f"in it {why}{at(origin)}; leave checkpoint out, or move it out of the loop",
    )  # fmt: skip


def _reads_of_carried(region: Region, carried: set[Value]) -> list[Node]:
    """The nodes that read elements of the lists in `carried`, or of later versions of these."""
    lists = {v for v in carried if isinstance(v.spec, ListSpec)}
    found: list[Node] = []
    for node in region.nodes:
        taken = [v for v in node.inputs if v in lists]
        if not taken:
            continue
        if node.regions:
            for inner in node.regions:
                pairs = zip(inner.params, node.region_inputs, strict=True)
                found += _reads_of_carried(inner, {p for p, v in pairs if v in lists})
        elif not isinstance(node.op.lower, ListForm) or node.op.lower.reads_elements:
            found.append(node)
        lists.update(v for v in node.outputs if isinstance(v.spec, ListSpec))
    return found
