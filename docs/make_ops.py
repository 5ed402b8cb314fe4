"""Writes ops.md from the samples of tests/ops: ``PYTHONPATH=src:. python docs/make_ops.py``."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from pathlib import Path

from tests.ops.samples import WITHOUT, Facts, accepted, all_ops, calls, facts
from treadle.core.dtypes import DType
from treadle.ops.batching.families import rule_of
from treadle.ops.lowering import ListForm
from treadle.ops.onnx.forms import give_forms
from treadle.ops.python_functions import USER_CODE
from treadle.ops.registry import Op
from treadle.runtime.gpu.routines import has_form
from treadle.runtime.gpu.routines.arrays import TRANSFORMS

INTRODUCTION = """\
# Ops

Every op of the registry, and what running its samples (`tests/ops/`) tells of it;
`tests/ops/test_every_op.py` and the tests of the tables hold the values.
`PYTHONPATH=src:. python docs/make_ops.py` writes this page.

- **eager**: runs outside of functions; what does not is written while functions are traced, or by
  a pass.
- **gradient**: of first and second order, against finite differences; "rule": there is one, which
  no sample checks here; "—": there is none, for the reason below the table.
- **batched**: computed for all examples of a batch at once; "loop": one by one, with a notice, for
  the reason below the table; "—": no example is given to it.
- **CPU**: "native": code of the program, or replaced by such; "callback": the program calls the
  NumPy form, for the reason below the table; "both": it depends on dtype, shape or use.
- **GPU**: by the op's record: "device": kernels or libraries compute it there; "host": NumPy does,
  after a copy; "both": it depends on dtype, shape or use. [gpu.md](gpu.md) tells of it; no sample
  has run on a GPU.
- **open dims**: works when no dim of the arguments is known.
- **ONNX**: has a form there, see [onnx.md](onnx.md).
- **dtypes**: what the sample's call takes in place of its main dtype.
"""

HEAD = """\
| op | eager | gradient | batched | CPU | GPU | open dims | ONNX | dtypes |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""

KINDS = {
    "floats": ("float16", "bfloat16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
    "integers": ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    "bool": ("bool",),
}


def dtypes_text(found: list[DType]) -> str:
    """Names of kinds whose dtypes are all there, and of single ones."""
    names, parts = [d.name for d in found], []
    for kind, members in KINDS.items():
        if all(m in names for m in members):
            parts.append(kind)
            names = [n for n in names if n not in members]
    return ", ".join([*parts, *names]) or "—"


def gradient_text(op: Op, known: Facts) -> str:
    if op.gradient is None:
        return "—"
    return ("rule", "first", "first, second")[known.order]


def why_no_gradient(op: Op) -> str | None:
    """Why an op stops gradients; None where it has one, or regions that do."""
    if op.gradient is not None or op.regions:
        return None
    if op.no_gradient is not None:
        return op.no_gradient
    if op.why_called == USER_CODE:
        return "what Python does in it is not known"
    if "draws" in op.tags:
        return "what it draws depends on no tensor of numbers but the state, or only in steps"
    if op.effect is not None:
        return "it acts on something outside of the program"
    if "strings" in op.tags:
        return "it reads or writes strings"
    call = calls().get(op.name)
    if call is None:
        return "programs have it only after gradients are made, or for sizes and constants"
    inputs, attrs = call
    specs = op.infer(*(x.spec for x in inputs), **attrs)
    if not any(_is_smooth(s.dtype) for s in (specs if isinstance(specs, tuple) else (specs,))):
        return "its results are whole numbers or bools"
    if not any(_is_smooth(x.dtype) for x in inputs):
        return "no tensor among its arguments has floating or complex numbers"
    raise ValueError(f"the record of {op.name} does not say why it has no gradient")


def _is_smooth(dtype: DType) -> bool:
    return dtype.is_floating or dtype.is_complex


def batched_text(op: Op, known: Facts) -> str:
    if op.regions or rule_of(op) is not None:
        return "yes"
    return "loop" if why_looped(op, known) else "—"


def takes_tensors(op: Op) -> bool:
    return any(p.kind <= p.VAR_POSITIONAL for p in signature(op.infer).parameters.values())


def why_looped(op: Op, known: Facts) -> str | None:
    """Why examples are computed one by one; None for what no example is given to."""
    if not takes_tensors(op) or known.sample is None and op.name not in calls():
        return None
    if "draws" in op.tags:  # a generator's state is the same for all examples
        return None
    if op.effect is not None:
        return "it acts on something outside of the program, for one example after the other"
    if isinstance(op.lower, ListForm):
        return "the lists of all examples have one length"
    if "dynamic" in op.tags or op.why_called is None:
        return "elements tell the shapes of its results, which differ between examples"
    return "the NumPy form that programs call takes one example"


def place_text(op: Op) -> str:
    if op.why_called is None or "asserts" in op.tags:
        return "native"
    return "callback" if op.lower is None and op.parts is None else "both"


def device_text(op: Op) -> str:
    """Where programs for GPUs compute an op."""
    place = place_text(op)
    if place == "native" or has_form(op) or getattr(op.lower, "name", "") in TRANSFORMS:
        return "device"
    return "host" if place == "callback" else place


def row(op: Op, known: Facts) -> str:
    cells = [
        f"`{op.name}`",
        "yes" if op.name in calls() else "—",
        gradient_text(op, known),
        batched_text(op, known),
        place_text(op),
        device_text(op),
        "yes" if known.open_sample else "—",
        "yes" if op.onnx else "—",
        dtypes_text(accepted(op)),
    ]
    return f"| {' | '.join(cells)} |\n"


def family(op: Op) -> str:
    """The folder of the op's module in ``treadle.ops``."""
    parts = op.infer.__module__.split(".")
    return parts[2] if parts[1] == "ops" and len(parts) > 3 else "others"


def section(title: str, ops: list[Op]) -> Iterator[str]:
    yield f"\n## {title}\n\n{HEAD}"
    for op in ops:
        yield row(op, facts()[op.name])
    reasons: dict[str, list[str]] = {}
    for op in ops:
        if place_text(op) != "native":
            reasons.setdefault(op.why_called or "", []).append(f"`{op.name}`")
    if reasons:
        yield "\nPrograms call the NumPy form because\n\n"
    for why, names in reasons.items():
        yield f"- {why}: {', '.join(names)}\n"
    constant: dict[str, list[str]] = {}
    for op in ops:
        if (why := why_no_gradient(op)) is not None:
            constant.setdefault(why, []).append(f"`{op.name}`")
    if constant:
        yield "\nThere is no gradient because\n\n"
    for why, names in constant.items():
        yield f"- {why}: {', '.join(names)}\n"
    looped: dict[str, list[str]] = {}
    for op in ops:
        if batched_text(op, known := facts()[op.name]) == "loop":
            looped.setdefault(why_looped(op, known) or "", []).append(f"`{op.name}`")
    if looped:
        yield "\nExamples are computed one by one because\n\n"
    for why, names in looped.items():
        yield f"- {why}: {', '.join(names)}\n"


def page() -> str:
    """The text of the page."""
    give_forms()
    families: dict[str, list[Op]] = {}
    for name, op in sorted(all_ops().items()):
        if name not in WITHOUT:
            families.setdefault(family(op), []).append(op)
    lines = [INTRODUCTION]
    for title, ops in sorted(families.items(), key=lambda pair: (pair[0] == "others", pair[0])):
        lines += section(title, ops)
    lines.append("\n## Ops without samples\n\n")
    lines += [f"- `{name}`: {why}\n" for name, why in sorted(WITHOUT.items())]
    return "".join(lines)


if __name__ == "__main__":
    (Path(__file__).parent / "ops.md").write_text(page())
