"""``cond`` and ``while``: Python control flow for eager values, graph nodes for symbolic ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from treadle.core import dtypes, errors, nest
from treadle.core.composite_spec import CompositeSpec
from treadle.core.context import context, recording, taping
from treadle.core.origin import at, user_origin
from treadle.core.shapes import UNKNOWN_SHAPE, Dim, TensorShape, fresh_symbol, stretched_of
from treadle.core.spec import ListSpec, Spec, TensorSpec, spec_text
from treadle.core.tensor import Tensor, UnrankedTensor, lacks_rank
from treadle.ops.control.open_ranks import LoopVariables, RankChanges, Results
from treadle.ops.conversion import constant, convert_to_tensor, has_dtype, is_symbolic
from treadle.ops.known_values import known_truth
from treadle.ops.lowering import Structure
from treadle.ops.registry import OPS, Op, register, run, run_with_regions
from treadle.ops.scalars import integer, number

NO_ATTRS: Mapping[str, Any] = MappingProxyType({})

Convert: TypeAlias = "Callable[[Callable[..., Any]], Callable[..., Any]]"


class _Conversion:
    """How AutoGraph, a layer above, converts functions that operators of control flow call."""

    convert: Convert | None = None


def set_conversion(convert: Convert) -> None:
    """Tell how functions are converted, so that conditions and loops in them may be tensors."""
    _Conversion.convert = convert


def traceable(what: str, *, always: bool = False, **functions: Any) -> Any:
    """A function of the user in the form that an operator of control flow calls: inside a trace
    the converted one.

    Args:
        what: the operator's name, for errors.
        always: the operator traces the function outside of traces, too.
        functions: one function by the name of the argument that it was given as.

    Raises:
        TypeError: it cannot be called.
    """
    _check_callables(what, **functions)
    (function,) = functions.values()
    convert = _Conversion.convert
    traced = always or context.recorder is not None
    return convert(function) if traced and convert is not None else function


def cond(
    pred: Any, true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """``true_fn()`` or ``false_fn()``, by a scalar boolean.

    With a concrete `pred`, or one that follows from known ranks and sizes, only the chosen function
    runs. With another one both are traced, and must return the same structure with the same dtypes,
    which may hold None where both have it. A result of two ranks is of unknown rank.

    Raises:
        TypeError: the branches return different structures or dtypes.
    """
    _check_callables("cond", true_fn=true_fn, false_fn=false_fn)
    assert true_fn is not None and false_fn is not None
    if has_dtype(pred):
        pred = as_predicate(pred, "cond")
    if not is_symbolic(pred):
        return true_fn() if bool(pred) else false_fn()
    known = None if hasattr(true_fn, "is_traced_always") else known_truth(pred)
    if known is not None:
        return true_fn() if known else false_fn()
    builder = context.recorder
    traced = [_trace(builder, fn, (), missing=True) for fn in (true_fn, false_fn)]
    structure = _same_branches(traced[0].structure, traced[1].structure)
    results = Results(*(branch.leaves for branch in traced))
    for branch in traced:
        with recording(branch.builder):
            values = map(branch.builder.use, results.values(branch.leaves))
            branch.builder.region.results = [x.value for x in values]
    found = iter(results.tensors(_finish(builder, COND, [pred], traced)))
    leaves = [None if leaf is None else next(found) for leaf in nest.flatten(structure)]
    return nest.pack(structure, leaves)


def _check_callables(op: str, **functions: Any) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"{op}: {name} is a function, not {function!r}{at(user_origin())}")


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
    checkpoint: bool = False,
) -> Any:
    """Repeat ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)``.

    Args:
        loop_vars: a list or tuple of nested structures; numbers become tensors while tracing.
        shape_invariants: the same structure of TensorShapes or TensorSpecs, for variables whose
            shape changes from one iteration to the next. Where the rank is unknown, it may change,
            too.
        maximum_iterations: an upper bound on the number of iterations.
        back_prop: False: in functions no gradient flows through the tensors that it gives.
        parallel_iterations, swap_memory, name: accepted for TensorFlow programs.
        checkpoint: in a function, the gradient keeps the loop variables of about sqrt(2 n) of n
            iterations, and computes what it needs of the others again. Not in TensorFlow.

    Raises:
        TypeError: the body returns another dtype than it was given or, outside of functions, a
            list where it was given a tuple; the variables or the shape invariants are no list.
        ValueError: the body returns a structure of another form, or changes a variable's shape and
            no shape invariant allows it; there are no loop variables.
    """
    _check_callables("while_loop", cond=cond, body=body)
    if parallel_iterations is not None and parallel_iterations <= 0:
        raise TypeError(f"'parallel_iterations' must be a positive integer.{at(user_origin())}")
    if not isinstance(loop_vars, list | tuple):
        raise TypeError(
            f"while_loop: loop_vars is a list or tuple, not {loop_vars!r}{at(user_origin())}"
        )
    if not loop_vars:
        raise ValueError(f"while_loop: 'loop_vars' must be provided.{at(user_origin())}")
    if not isinstance(shape_invariants, list | tuple | None):
        kind = type(shape_invariants).__name__
        raise TypeError(
            f"while_loop: shape_invariants is a list or tuple, not {kind}{at(user_origin())}"
        )
    wanted: Any = checkpoint
    if not isinstance(wanted, bool):
        kind = type(wanted).__name__
        raise TypeError(f"while_loop: checkpoint must be a bool, not {kind}{at(user_origin())}")
    start = tuple(loop_vars)
    if context.recorder is None:
        if maximum_iterations is not None:
            maximum_iterations = integer("while_loop: maximum_iterations", maximum_iterations)
        # Shape invariants are for graphs: TensorFlow's eager loops do not look at them, either.
        result = _run_loop(cond, body, start, maximum_iterations)
    else:
        result = staged_loop(
            cond, body, start, shape_invariants, maximum_iterations, checkpoint=checkpoint
        )
    return without_gradient(nest.rebuild(loop_vars, list(result)), back_prop)


def without_gradient(structure: Any, back_prop: bool) -> Any:
    """The results of a loop; where it has `back_prop` False, through which no gradient flows, as in
    TensorFlow's functions. Eagerly it does, and through arrays of tensors."""
    if back_prop or context.recorder is None:
        return structure

    def stopped(x: Any) -> Any:
        if lacks_rank(x):
            return UnrankedTensor(stopped(x.elements), x.extents)
        is_float = isinstance(x, Tensor) and not isinstance(x.spec, ListSpec)
        return run(OPS["stop_gradient"], x) if is_float and x.dtype.is_differentiable else x

    return nest.map_structure(stopped, structure)


def staged_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: tuple[Any, ...],
    shape_invariants: Any = None,
    maximum_iterations: Any = None,
    widen: bool = False,
    checkpoint: bool = False,
) -> tuple[Any, ...]:
    """Record a ``while`` node, see `while_loop`.

    Args:
        widen: where no invariant says otherwise, dims that the body changes are left open and the
            loop is traced again, until its variables keep their types. Without it only dims that
            were unknown on entry may change.
    """
    record = _record_segments if checkpoint else _record_loop
    if maximum_iterations is None:
        return record(cond, body, loop_vars, shape_invariants, widen)
    limit = number("while_loop: maximum_iterations", maximum_iterations, "iu")
    if isinstance(limit, int):  # no loop takes as many iterations as int64 has numbers
        wide = dtypes.int64 if abs(limit) > dtypes.int32.max else dtypes.int32
        limit = constant(max(min(limit, wide.max), wide.min), wide)
    result = record(
        lambda i, *v: (i < limit) & cond(*v),
        lambda i, *v: (i + 1, *_as_tuple(body(*v), len(v))),
        (constant(0, limit.dtype), *loop_vars),
        _with_counter(shape_invariants),
        widen,
    )
    return result[1:]


def _with_counter(invariants: Any) -> Any:
    """The shape invariants of loop variables behind a counter."""
    return None if invariants is None else (TensorShape(()), *invariants)


def _run_loop(cond: Any, body: Any, loop_vars: tuple[Any, ...], limit: int | None) -> Any:
    count = 0
    loop_vars = nest.map_structure(_as_value, loop_vars)
    while bool(cond(*loop_vars)) and (limit is None or count < limit):
        after = _as_tuple(body(*loop_vars), len(loop_vars))
        _check_structure(loop_vars, after, check_types=True)
        loop_vars = nest.map_structure(_as_value, after)
        count += 1
    return loop_vars


def _check_structure(before: Any, after: Any, check_types: bool, kind: Any = None) -> None:
    """An error, of the class `kind` if it is given, where the body changes the structure."""
    try:
        nest.assert_same_structure(before, after, check_types)
    except (TypeError, ValueError) as error:
        raise (kind or type(error))(
            f"while_loop: the body returns another structure than loop_vars: {error}"
            f"{at(user_origin())}"
        ) from None


def _as_tuple(result: Any, length: int) -> tuple[Any, ...]:
    if isinstance(result, list | tuple) and (length != 1 or len(result) == 1):
        return tuple(result)
    return (result,)


def _record_segments(
    cond: Any, body: Any, loop_vars: tuple[Any, ...], invariants: Any, widen: bool
) -> tuple[Any, ...]:
    """The loop as a loop over segments of 1, 2, 3 ... iterations, whose gradient keeps the loop
    variables at the begin of every segment: n iterations have sqrt(2 n) segments, and none is
    longer, whatever n turns out to be."""

    def segment(length: Any, *before: Any) -> tuple[Any, ...]:
        result = _record_loop(
            lambda i, *v: (i < length) & cond(*v),
            lambda i, *v: (i + 1, *_as_tuple(body(*v), len(v))),
            (constant(0), *before),
            _with_counter(invariants),
            widen,
        )
        return (length + 1, *result[1:])

    result = _record_loop(
        lambda _, *v: cond(*v),
        segment,
        (constant(1), *loop_vars),
        _with_counter(invariants),
        widen,
        {"checkpoint": True},
    )
    return result[1:]


def _record_loop(
    cond: Any, body: Any, loop_vars: tuple[Any, ...], invariants: Any, widen: bool,
    attrs: Mapping[str, Any] = NO_ATTRS,
) -> tuple[Any, ...]:  # fmt: skip
    builder = context.recorder
    start = [_as_value(v) for v in nest.flatten(loop_vars)]
    variables = LoopVariables(start, _shapes_of(invariants, loop_vars), widen)
    found: list[Any] = []  # what the body gives, as it gives it

    def unpacked(flat: Sequence[Any]) -> Any:
        return nest.pack(loop_vars, variables.variables(flat))

    def run_cond(*flat: Any) -> Any:
        return [as_predicate(cond(*unpacked(flat)), "while_loop")]

    def run_body(*flat: Any) -> Any:
        found[:] = [_as_tuple(body(*unpacked(flat)), len(loop_vars))]
        return variables.after([_leaf(v) for v in nest.flatten(found[0])])

    while True:
        try:
            specs, traced, opened = _traced_loop(builder, run_cond, run_body, variables, widen)
            break
        except RankChanges:
            continue
    traced[1].structure = found[0]
    _check_loop(loop_vars, variables, specs, traced[1], opened, widen)
    outputs = _finish(builder, WHILE, variables.start, traced, attrs)
    return tuple(unpacked(outputs))


def _traced_loop(
    builder: Any, run_cond: Any, run_body: Any, variables: LoopVariables, widen: bool
) -> tuple[list[Spec], list[_Traced], set[Dim]]:
    """The specs of the values that a loop carries, its condition and body, and the symbols of dims
    that change."""
    specs, given, opened = _carried_specs(variables.start, variables.shapes)
    while True:
        traced = [_trace(builder, run_cond, specs), _trace(builder, run_body, specs)]
        after = [v.spec for v in traced[1].builder.region.results]
        count = len(opened)
        specs = _widened(specs, after, given, opened, widen)
        if len(opened) == count:
            return specs, traced, opened


def _widened(
    specs: Sequence[Spec],
    after: Sequence[Spec],
    given: Sequence[bool],
    opened: set[Dim],
    every: bool,
) -> list[Spec]:
    """The specs with new symbols, added to `opened`, for dims that the body changes: those that
    were unknown on entry, and with `every` all where no invariant was `given`."""
    if len(specs) != len(after):
        return list(specs)  # reported by _check_loop

    def dim(before: Dim, now: Dim) -> Dim:
        if before in stretched_of(now) or before in opened:  # a run checks that it stays
            return before
        if isinstance(before, int) and not every:
            return before
        symbol = fresh_symbol()
        opened.add(symbol)
        return symbol

    return [
        spec
        if fixed or type(spec) is not TensorSpec or spec.rank != now.rank
        else spec.with_dims(dim(b, a) for b, a in zip(spec.dims, now.dims, strict=True))
        for spec, now, fixed in zip(specs, after, given, strict=True)
    ]


def _as_value(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else convert_to_tensor(value)


def _shapes_of(invariants: Any, loop_vars: Any) -> list[TensorShape | None] | None:
    """The shape invariant of each leaf of the loop variables."""
    if invariants is None:
        return None
    count = len(nest.flatten(loop_vars))
    invariants = _of_composites(invariants, loop_vars)
    shapes = [s.shape if isinstance(s, Spec) else s for s in _flat_shapes(invariants)]
    if len(shapes) != count:
        raise ValueError(
            f"while_loop: {len(shapes)} shape invariants for {count} loop variables"
            f"{at(user_origin())}"
        )
    return shapes


def _of_composites(invariants: Any, loop_vars: Any) -> Any:
    """The invariants with the types of sparse and ragged tensors and of IndexedSlices in the places
    of TensorShapes: that of a sparse tensor's dense shape, a ragged tensor's own one, and the one
    of the rows of slices.

    Raises:
        TypeError: the type of such a variable is another class's.
        ValueError: such a variable is not of its type.
    """
    spec = getattr(loop_vars, "_type_spec", None)
    if isinstance(spec, CompositeSpec) and invariants is not None:
        if isinstance(invariants, TensorShape):
            invariants = spec.as_invariant(invariants)
        if not isinstance(invariants, CompositeSpec):
            return invariants
        if not isinstance(invariants, type(spec)):
            raise TypeError(
                f"while_loop: a {type(loop_vars).__name__} has the shape invariant {invariants!r}: "
                f"give it a {type(spec).__name__} or a TensorShape{at(user_origin())}"
            )
        if not invariants.is_compatible_with(spec):
            raise ValueError(
                f"while_loop: a loop variable is a {spec!r}, which its shape invariant "
                f"{invariants!r} does not allow{at(user_origin())}"
            )
        return invariants
    parts = nest.children(loop_vars)
    given = None if isinstance(invariants, TensorShape | Spec) else nest.children(invariants)
    if parts is None or given is None or len(parts) != len(given):
        return invariants
    return [_of_composites(own, part) for (_, own), (_, part) in zip(given, parts, strict=True)]


def _carried_specs(
    start: Sequence[Tensor], shapes: Sequence[TensorShape | None] | None
) -> tuple[list[Spec], list[bool], set[Dim]]:
    """The specs of the loop variables inside the loop, which of them an invariant gave, and the
    symbols that stand for its unknown dims."""
    specs: list[Spec] = [t.spec for t in start]
    given = [False] * len(specs)
    opened: set[Dim] = set()
    if shapes is None:
        return specs, given, opened
    for i, (spec, shape) in enumerate(zip(specs, shapes, strict=True)):
        if shape is None or (shape.rank is None and isinstance(spec, ListSpec)):
            continue
        if shape.rank is None:  # the rank stays as long as the body keeps it
            shape = TensorShape([None] * spec.rank)
        if not shape.is_compatible_with(spec.shape):
            continue  # nobody looks at it in TensorFlow: the variable keeps its shape
        given[i] = True
        dims = [d if isinstance(d, int) else fresh_symbol() for d in shape.exact]
        opened.update(d for d in dims if not isinstance(d, int))
        specs[i] = spec.with_dims(dims)
    return specs, given, opened


def _flat_shapes(invariants: Any) -> list[Any]:
    """Leaves of a structure of shapes: TensorShapes, Specs, and None for what keeps its own."""
    if invariants is None or isinstance(invariants, TensorShape | Spec):
        return [invariants]
    parts = nest.children(invariants)
    if parts is None:
        return [TensorShape(invariants)]
    return [leaf for _, child in parts for leaf in _flat_shapes(child)]


class _Traced:
    """A traced branch or body: its builder, the structure that it returned and its tensors."""

    def __init__(self) -> None:
        self.builder: Any = None
        self.structure: Any = None
        self.leaves: list[Tensor] = []


def _trace(
    builder: Any, fn: Callable[..., Any], specs: Sequence[Spec], missing: bool = False
) -> _Traced:
    """Trace a body or condition, or with `missing` a branch, which may return None where it has
    nothing and is given its results later."""
    traced = _Traced()

    def run(*params: Any) -> list[Tensor]:
        with taping(()):  # outer tapes see the whole node, not what is inside
            traced.structure = fn(*params)
            leaves = nest.flatten(traced.structure)
            traced.leaves = [_leaf(v) for v in leaves if v is not None or not missing]
            return [] if missing else traced.leaves

    traced.builder = builder.trace_region(run, specs)
    return traced


def _leaf(value: Any) -> Tensor:
    if value is None:
        raise TypeError(
            f"A loop's body or condition returned None where a tensor is needed{at(user_origin())}"
        )
    return _as_value(value)


def _finish(
    builder: Any, op: Op, operands: list[Any], traced: list[_Traced],
    attrs: Mapping[str, Any] = NO_ATTRS,
) -> list[Tensor]:  # fmt: skip
    """Record the node with the outer values that its regions captured as further operands."""
    children = [t.builder for t in traced]
    builder.hoist_reads(children)
    captured = builder.align_captures(children)
    regions = [c.region for c in children]
    return list(run_with_regions(op, [*operands, *captured], regions, **attrs))


def record_while(
    builder: Any, start: Sequence[Tensor], condition: Any, body: Any
) -> tuple[Tensor, ...]:
    """Record a ``while`` node of two regions that were traced.

    Args:
        start: the loop variables before the first iteration.
        condition, body: builders of the regions, whose first parameters are the loop variables.
    """
    builder.hoist_reads([condition, body])
    captured = builder.align_captures([condition, body])
    regions = [condition.region, body.region]
    return run_with_regions(WHILE, [*start, *captured], regions, rolled=True)


def as_predicate(value: Any, what: str) -> Tensor:
    """A condition as a scalar bool; of one with axes of one element each, as far as they are known,
    its only element."""
    pred = convert_to_tensor(value)
    if lacks_rank(pred):
        pred = pred.elements
    if pred.ndim and not any(isinstance(d, int) and d != 1 for d in pred.dims):
        pred = run(OPS["reshape"], pred, shape=())
    check_predicate(pred, what)
    return pred


def check_predicate(pred: Tensor, what: str) -> None:
    """Raise an InvalidArgumentError unless `pred` is a scalar bool."""
    if pred.dtype is not dtypes.bool or pred.ndim != 0:
        raise errors.DtypeError(
            None, None,
            f"{what}: the condition must be a scalar bool tensor, got {spec_text(pred.spec)}; use "
            f"a comparison, or td.reduce_any / td.reduce_all on a vector{at(user_origin())}",
        )  # fmt: skip


def _same_branches(a: Any, b: Any) -> Any:
    try:
        nest.assert_same_structure(a, b)
        _check_missing(a, b)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"cond: the branches return different structures: {error}{at(user_origin())}"
        ) from None
    return a


def _check_missing(a: Any, b: Any) -> None:
    """ValueError where one structure has None and the other has not."""
    pairs = zip(nest.flatten_with_paths(a), nest.flatten_with_paths(b), strict=True)
    for (path, x), (_, y) in pairs:
        if (x is None) != (y is None):
            place = f" at {path}" if path else ""
            raise ValueError(f"only one of them returns None{place}")


def _check_loop(
    loop_vars: Any, variables: LoopVariables, specs: Sequence[Spec], body: _Traced,
    opened: set[Dim], widen: bool,
) -> None:  # fmt: skip
    _check_structure(loop_vars, body.structure, widen, TypeError if widen else None)
    paths = variables.of_values([path for path, _ in nest.flatten_with_paths(loop_vars)])
    for path, before, value in zip(paths, specs, body.builder.region.results, strict=True):
        after = value.spec
        if after.dtype is not before.dtype or type(after) is not type(before):
            raise TypeError(
                f"while_loop: loop_vars{path} is {spec_text(before)} before an iteration and "
                f"{spec_text(after)} after it; cast it to one dtype{at(user_origin())}"
            )
        if not isinstance(before, ListSpec) and not _dims_fit(before.dims, after.dims, opened):
            raise ValueError(
                f"while_loop: loop_vars{path} has shape {before.shape} before an iteration and "
                f"{after.shape} after it; give shape_invariants with None for the dims that "
                f"change, one which its first value fits{at(user_origin())}"
            )


def _dims_fit(before: Sequence[Dim], after: Sequence[Dim], opened: set[Dim]) -> bool:
    """A dim that is known on entry must stay so; an opened one may be anything."""
    return len(before) == len(after) and all(
        b in stretched_of(a) or b in opened for b, a in zip(before, after, strict=True)
    )


def _infer_cond(pred: Spec, *operands: Spec, regions: Sequence[Any]) -> tuple[Spec, ...]:
    then, otherwise = ([v.spec for v in r.results] for r in regions)
    merged = []
    for i, (a, b) in enumerate(zip(then, otherwise, strict=True)):
        if isinstance(a, ListSpec) and isinstance(b, ListSpec) and a.dtype is b.dtype:
            merged.append(_merged_list(a, b))
            continue
        if a.dtype is not b.dtype or a.rank != b.rank or type(a) is not type(b):
            raise TypeError(
                f"cond: result {i} is {spec_text(a)} in one branch and {spec_text(b)} in the "
                f"other; both must have one dtype and rank{at(user_origin())}"
            )
        dims = [x if x == y else fresh_symbol() for x, y in zip(a.dims, b.dims, strict=True)]
        merged.append(a.with_dims(dims))
    return tuple(merged)


def _merged_list(a: ListSpec, b: ListSpec) -> ListSpec:
    """What either branch gives: its elements have the shape that one branch knows and the other
    has not learned yet."""
    for one, other in ((a, b), (b, a)):
        if one is other or one.dims == UNKNOWN_SHAPE:
            return other
    return ListSpec(UNKNOWN_SHAPE, a.dtype)


def _infer_while(
    *inputs: Spec, regions: Sequence[Any], checkpoint: bool = False, rolled: bool = False
) -> tuple[Spec, ...]:
    """`checkpoint`: the gradient computes an iteration again from its loop variables; `rolled`:
    results have the bits of the iterations one after the other, without a loop."""
    condition, body = regions
    if len(condition.results) != 1 or condition.results[0].spec is not TensorSpec((), dtypes.bool):
        raise errors.InvalidArgumentError(
            None, None, "while: the condition must give one bool scalar"
        )
    return tuple(p.spec for p in body.params[: len(body.results)])


_RUNS_REGIONS = frozenset({"control_flow"})
COND = register(
    Op(
        "cond", _infer_cond, lower=Structure.COND, tags=_RUNS_REGIONS, regions=("then", "else"),
        takes_variables=True,
    )
)  # fmt: skip
WHILE = register(
    Op(
        "while", _infer_while, lower=Structure.WHILE, tags=_RUNS_REGIONS,
        regions=("condition", "body"), takes_variables=True,
    )
)  # fmt: skip
