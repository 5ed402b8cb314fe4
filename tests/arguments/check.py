"""Random calls of the public functions: eagerly and in a function, with the same outcome."""

from __future__ import annotations

import inspect
import re
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import treadle as td
from tests.arguments import surface
from tests.arguments.values import Context, right, wrong

COMPILED_EVERY = 6  # the others run in the interpreter, with the same graph
# NotImplementedError: a name that is not supported, and NumPy given a tensor without a value.
DOCUMENTED = (td.errors.OpError, TypeError, ValueError, MemoryError, NotImplementedError)
# Python's own words about a call that does not fit a signature; the traceback ends at the call.
SIGNATURE = re.compile(
    r"missing \d+ required|takes (from )?\d+|unexpected keyword|multiple values for"
    r"|positional argument"
)
LOCATION = re.compile(r"\n  at .+:\d+, in ")
# A graph has no values where Python needs them, and no objects of Python.
LIMITS = (
    td.errors.InaccessibleTensorError,
    td.errors.OperatorNotAllowedInGraphError,
)
LIMIT_TEXTS = (
    "eager",
    "a Python value",
    "is symbolic",
    "symbolic tensor",
    "known while tracing",
    "only a run",
    "is not known",
    "unknown rank",
    "of known",
    "not known here",
    "cannot be read by NumPy",
)
RELATIVE = {"f2": 2e-2, "f4": 3e-4, "f8": 1e-9, "c8": 3e-4, "c16": 1e-9}
EQUALITIES = ("operator.eq", "operator.ne")
FOLDS = ("map_fn", "scan", "foldl", "foldr")
MOST = 1 << 16  # elements that are compared


@dataclass
class Call:
    """A call: the function, and its arguments by position and name."""

    name: str
    function: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        given = [told(a) for a in self.args] + [f"{k}={told(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({', '.join(given)})"


@dataclass
class Outcome:
    """What a call gave: its results, or the exception that it raised."""

    results: list[Any]
    error: BaseException | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {str(self.error)[:400]}"
        return ", ".join(told(x, True) for x in self.results)[:400]


@dataclass
class Fault:
    seed: int
    text: str
    kind: str
    what: str


def told(x: Any, values: bool = False) -> str:
    """A short text for an argument or result."""
    if isinstance(x, np.ndarray):
        shown = np.array2string(x, threshold=12, separator=",") if values or x.size < 7 else "..."
        notes = "" if x.flags.c_contiguous and x.flags.writeable and x.flags.aligned else " odd"
        return f"array({x.dtype}{list(x.shape)}{notes} {shown})"
    if isinstance(x, td.Tensor | td.Variable):
        return f"{type(x).__name__} {told(np.asarray(x.numpy()), values)}"
    if type(x) is list and _depth(x) > 9:
        return f"a list {_depth(x)} deep"
    if isinstance(x, list | tuple):
        inner = ", ".join(told(y, values) for y in x)
        return f"[{inner}]" if isinstance(x, list) else f"({inner},)"
    text = re.sub(r" at 0x\w+", "", repr(x))  # an object's address differs from call to call
    return text[:80].encode("ascii", "backslashreplace").decode()


def _depth(x: Any) -> int:
    depth = 0
    while type(x) is list and x:
        x, depth = x[0], depth + 1
    return depth


def chosen(seed: int) -> tuple[str, Random]:
    """The function of a seed, and what draws its arguments: functions that others join keep their
    calls."""
    names = sorted(surface.functions())
    turn, position = divmod(seed, len(names))
    return names[position], Random(f"{names[position]} {turn}")


def seed_of(name: str, turn: int) -> int:
    """The seed of a function's call of this number."""
    names = sorted(surface.functions())
    return turn * len(names) + names.index(name)


def make(seed: int) -> Call:
    """The call of a seed, its arguments made anew each time."""
    name, r = chosen(seed)
    context = Context(r, name)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter in surface.parameters(name):
        kind = parameter.kind
        if parameter.name == "self" or (name.startswith("operator.") and not args):
            value = _self(context, name)
        elif kind is parameter.VAR_POSITIONAL:
            args += [right(context, parameter) for _ in range(r.choice((0, 1, 1, 2)))]
            continue
        elif kind is parameter.VAR_KEYWORD:
            continue
        elif parameter.default is not parameter.empty and r.random() < 0.65:
            continue
        else:
            value = right(context, parameter)
        if kind is parameter.KEYWORD_ONLY or len(args) < _before(name, parameter):
            kwargs[parameter.name] = value
        else:
            args.append(value)
    _spoil(context, args, kwargs, name)
    return Call(name, surface.functions()[name], args, kwargs)


def _before(name: str, parameter: inspect.Parameter) -> int:
    """How many parameters come before one."""
    return [p.name for p in surface.parameters(name)].index(parameter.name)


def _self(context: Context, name: str) -> Any:
    from tests.arguments.values import array

    dtype = "float32" if context.dtype == "string" else context.dtype
    x = array(context.r, context.shape, dtype)
    if x.ndim and name.endswith(".searchsorted"):  # in others the places are not determined
        x = np.sort(x)
    return td.Variable(x) if name.startswith("Variable") else td.constant(x)


def _spoil(context: Context, args: list[Any], kwargs: dict[str, Any], name: str) -> None:
    """Replace arguments by wrong ones: none in a quarter of the calls, else one: which of two is
    refused first is not the same everywhere."""
    r = context.r
    if name.startswith("operator."):
        kwargs.clear()
    first = 1 if name.startswith(("Tensor.", "Variable.", "operator.")) else 0
    for _ in range(r.choice((0, 1, 1, 1))):
        places: list[Any] = [*range(first, len(args)), *kwargs]
        if not places or r.random() < 0.04:
            if r.random() < 0.5 and not name.startswith("operator."):
                kwargs[r.choice(("nme", "out", "axis"))] = wrong(context)
            elif len(args) > first and not name.startswith("operator."):
                args.pop()
            continue
        place = r.choice(places)
        (args if isinstance(place, int) else kwargs)[place] = wrong(context)


def _leaves(call: Call) -> Iterator[tuple[Any, Any, Any]]:
    """(container, key, value) for all arrays and tensors among the arguments and their lists."""
    for holder in (call.args, call.kwargs):
        for key, value in list(enumerate(holder) if isinstance(holder, list) else holder.items()):
            if isinstance(value, list) and len(value) < 9:
                yield from ((value, i, v) for i, v in enumerate(value) if _traceable(v))
            elif _traceable(value):
                yield holder, key, value


def _traceable(x: Any) -> bool:
    if isinstance(x, td.Tensor):
        return True
    return (
        isinstance(x, np.ndarray)
        and x.dtype.isnative
        and (x.dtype.kind in "fiub?c" or x.dtype == td.bfloat16.np_dtype)
        and x.dtype.char not in "gG"
    )


def prepared(
    seed: int, traced: bool
) -> tuple[Call, list[Any], Callable[..., list[Any]], list[Any]]:
    """The call of a seed, the arrays that are arguments of the function around it, this function,
    and a list for the results that are no tensors."""
    call = make(seed)
    r = Random(str(call))
    moved = [leaf for leaf in _leaves(call) if r.random() < 0.8]
    arrays = [value for _, _, value in moved]
    aside: list[Any] = []

    def function(*tensors: Any) -> list[Any]:
        for (holder, key, _), x in zip(moved, tensors, strict=True):
            holder[key] = x
        flat = list(_flat(call.function(*call.args, **call.kwargs)))
        aside[:] = [None if isinstance(y, td.Tensor) else y for y in flat]
        return [y for y in flat if isinstance(y, td.Tensor)]

    return call, arrays, function, aside


def _flat(x: Any) -> Iterator[Any]:
    for y in td.nest.flatten(x, expand_composites=True):
        if isinstance(y, td.Variable):
            yield td.convert_to_tensor(y)
        elif isinstance(y, np.ndarray | np.generic | int | float | complex | str | bytes):
            yield np.asarray(td.constant(y).numpy())
        else:
            yield y if isinstance(y, td.Tensor) else type(y)


def run(seed: int, traced: bool, compiled: bool, open_sizes: bool = False) -> Outcome:
    call, arrays, function, aside = prepared(seed, traced)
    signature = open_signature(seed, arrays) if open_sizes else None
    try:
        if not traced:
            given = function(*map(td.constant, arrays))
        else:
            inner = _with_late_sizes(seed, function) if open_sizes else function
            whole = td.function(inner, autograph=False, input_signature=signature)
            if compiled:
                given = whole(*arrays) if signature is None else whole(*map(td.constant, arrays))
            else:
                given = interpreted(whole, arrays)
    except Exception as error:
        return Outcome([], error)
    given = iter(given)
    found = [next(given) if y is None else y for y in aside]
    variables = [x for x in (*call.args, *call.kwargs.values()) if isinstance(x, td.Variable)]
    try:
        read = [np.asarray(y.numpy()) if td.is_tensor(y) else y for y in (*found, *variables)]
    except MemoryError as error:
        return Outcome([], error)
    return Outcome(read)


def open_signature(seed: int, arrays: list[Any]) -> list[td.TensorSpec]:
    """A signature of the arrays of a call that leaves some of their sizes open."""
    r = Random(f"{seed} open")
    arrays = [td.constant(a) for a in arrays]
    shapes = [[None if r.random() < 0.6 else n for n in a.shape] for a in arrays]
    return [td.TensorSpec(shape, a.dtype) for shape, a in zip(shapes, arrays, strict=True)]


def _with_late_sizes(seed: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, for some seeds of tensors of which only the run knows how many rows they have:
    those that a mask selects, which are all."""
    if Random(f"{seed} late").random() < 0.6:
        return function

    def of_selected_rows(*tensors: Any) -> Any:
        return function(*map(_all_rows, tensors))

    return of_selected_rows


def _all_rows(x: td.Tensor) -> td.Tensor:
    if not x.shape.rank or x.shape[0] is not None:
        return x
    return td.boolean_mask(x, td.range(td.shape(x)[0]) >= 0)


def interpreted(whole: Any, arrays: list[Any]) -> list[Any]:
    from treadle.runtime import interpreter

    graph = whole.get_concrete_function(*arrays).graph
    values = [td.constant(a)._buffer for a in arrays]
    captured = [c._buffer if isinstance(c, td.Tensor) else c for c in graph.captures]
    return [td.constant(y) for y in interpreter.run(graph, [*values, *captured])]


def check(seed: int, counts: Counter[str]) -> Iterator[Fault]:
    """Make the call of a seed in both ways."""
    call = make(seed)
    text = str(call)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        eager = run(seed, False, False)
        graph = run(seed, True, Random(text).randrange(COMPILED_EVERY) == 0)
    yield from faults(seed, call, text, eager, graph, counts)


def check_open(seed: int, counts: Counter[str]) -> Iterator[Fault]:
    """Make the call of a seed eagerly, and compiled for a signature with open sizes."""
    call = make(seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        signature = open_signature(seed, prepared(seed, True)[1])
        if not any(spec.symbols() for spec in signature):
            counts["nothing to leave open"] += 1
            return
        eager = run(seed, False, False)
        graph = run(seed, True, True, True)
    text = f"{call} with {', '.join(map(str, signature))}"
    yield from faults(seed, call, text, eager, graph, counts)


def faults(
    seed: int, call: Call, text: str, eager: Outcome, graph: Outcome, counts: Counter[str]
) -> Iterator[Fault]:
    """What is wrong with the outcomes of a call."""
    counts["calls"] += 2
    counts["accepted" if eager.error is None else "refused"] += 1
    kinds = [poor(o.error) if o.error else "" for o in (eager, graph)]
    for way, kind, outcome in zip(("eager", "graph"), kinds, (eager, graph), strict=True):
        if kind and (way == "eager" or kind != kinds[0]):
            where = traceback.extract_tb(outcome.error.__traceback__)[-1]
            if where.filename.endswith("values.py"):
                continue  # raised by a function of the user's
            place = f"{where.filename.rpartition('treadle/')[2]}:{where.name}"
            yield Fault(seed, text, f"{way}: {kind}", f"{place}: {outcome}")
    difference = differ(call, eager, graph)
    if difference and call.name == "tuple":
        counts["given back"] += 1  # whatever it is, eagerly: as in TensorFlow
    elif difference and call.name in EQUALITIES and _is_spread(eager, graph):
        counts["shapes that do not broadcast"] += 1  # docs/deviations.md
    elif difference and call.name in FOLDS and _is_not_called(call.args):
        counts["functions not called"] += 1  # eagerly, for few elements: as in TensorFlow
    elif difference == "other values" and call.name.startswith("linalg.") and _is_not_finite(call):
        counts["matrices that are not finite"] += 1  # LAPACK says nothing of them
    elif difference and any("Singular" in str(o.error) for o in (eager, graph)):
        counts["singular but for rounding"] += 1
    elif difference and any(isinstance(o.error, MemoryError) for o in (eager, graph)):
        counts["memory in one way"] += 1  # NumPy makes arrays that programs do without
    elif difference and is_limit(eager, graph):
        counts["limits of graphs"] += 1
    elif difference:
        yield Fault(seed, text, difference, f"{eager}  <>  {graph}")


def _is_spread(eager: Outcome, graph: Outcome) -> bool:
    """Whether a graph has in many elements what is one number eagerly."""
    if len(eager.results) != 1 or len(graph.results) != 1 or eager.results[0].ndim:
        return False
    return bool((graph.results[0] == eager.results[0]).all())


def _is_not_finite(call: Call) -> bool:
    arrays = [np.asarray(x) for x in call.args if isinstance(x, np.ndarray | td.Tensor)]
    return any(a.dtype.kind in "fc" and not np.isfinite(a).all() for a in arrays)


def _is_not_called(args: list[Any]) -> bool:
    """Whether there are so few elements that Python calls no function for them."""
    shapes = [np.shape(x) for x in args[1:2] if not isinstance(x, list)]
    return any(0 in shape or shape[:1] == (1,) for shape in shapes)


def poor(error: BaseException) -> str:
    """What is wrong with an exception; empty where nothing is."""
    text = str(error)
    if not isinstance(error, DOCUMENTED):
        return f"raised {type(error).__name__}"
    if not text.strip():
        return f"{type(error).__name__} without a text"
    if LOCATION.search(text) or SIGNATURE.search(text):
        return ""
    return f"{type(error).__name__} without a line"


def is_limit(eager: Outcome, graph: Outcome) -> bool:
    """Whether a graph was refused as it has no values where Python needs them."""
    if graph.error is None:
        return False
    return isinstance(graph.error, LIMITS) or any(t in str(graph.error) for t in LIMIT_TEXTS)


def differ(call: Call, eager: Outcome, graph: Outcome) -> str:
    """How two outcomes differ; empty where they do not."""
    if (eager.error is None) != (graph.error is None):
        return "refused in graphs" if graph.error else "accepted in graphs"
    if eager.error is not None:
        a, b = type(eager.error), type(graph.error)
        alike = issubclass(a, b) or issubclass(b, a)
        return "" if alike else f"{a.__name__}, in graphs {b.__name__}"
    if len(eager.results) != len(graph.results):
        return "another number of results"
    for x, y in zip(eager.results, graph.results, strict=True):
        if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
            if type(x) is not type(y):
                return "a result of another type"
        elif x.dtype != y.dtype or (x.shape != y.shape and "unique" not in call.name):
            return "another dtype or shape"
        elif surface.compares_values(call.name):
            if call.name.startswith(("signal.", "linalg.")) or "fft" in call.name:
                mixed = 2 if call.name.startswith("linalg.") else 1
                if call.name.endswith("nd"):  # a transform along any axes
                    mixed = x.ndim
                x, y = finite_rows(x, mixed), finite_rows(y, mixed)
            elif "conv" in call.name and x.dtype.kind == "f":
                # Programs leave out the products of padding and a filter's infinities.
                x, y = (np.where(np.isfinite(x) & np.isfinite(y), z, 0) for z in (x, y))
            narrow = call.name.startswith("image.")
            least = _size_of_terms(call) if "cross_entropy" in call.name else 0.0
            if narrow and x.shape == y.shape and x.dtype.kind in "iu" and _of_few_bits(call):
                # Eager operations round before they cut off what is no whole number.
                x, y = x.astype(np.float64), y.astype(np.float64)
                if np.allclose(x, y, rtol=RELATIVE["f2"], atol=1):
                    continue
            if x.shape != y.shape or not close(x, y, narrow, least):
                return "other values"
    return ""


def _size_of_terms(call: Call) -> float:
    """The largest finite number among the arguments where they have few bits, else 0.

    A cross-entropy is a sum of terms as large as its logits. Labels beyond 0 and 1 let the terms
    cancel, so that what is left of a sum of 8 or 11 bits is the rounding of its terms: eager
    operations round each term, a program only the result.
    """
    found = (np.abs(a[np.isfinite(a)]).max(initial=0) for a in _of_few_bits(call))
    return float(max(found, default=0))


def _of_few_bits(call: Call) -> list[np.ndarray]:
    """The arguments of float16 and bfloat16, as float64 arrays; those with an element only."""
    given = (*call.args, *call.kwargs.values())
    arrays = [np.asarray(x) for x in given if isinstance(x, np.ndarray | td.Tensor | td.Variable)]
    few = [a for a in arrays if a.dtype.itemsize == 2 and a.dtype.kind in "fV" and a.size]
    return [a.astype(np.float64) for a in few]


def finite_rows(x: np.ndarray, mixed: int) -> np.ndarray:
    """The rows that are finite, in units of their largest element.

    Transforms mix the elements of a row, decompositions those of a matrix: an element that is not
    finite spoils all along the last `mixed` axes.
    """
    if x.dtype.kind not in "fc" or not x.ndim or not x.size:
        return x
    axes = tuple(range(max(x.ndim - mixed, 0), x.ndim))
    rows = x[np.isfinite(x).all(axes)].reshape(-1, x.shape[-1])
    return rows / np.maximum(np.abs(rows).max(-1, keepdims=True, initial=0), 1)


def close(x: np.ndarray, y: np.ndarray, narrow: bool, least: float = 0.0) -> bool:
    """Whether values are equal up to rounding, measured by the largest of them.

    Args:
        narrow: they may have been rounded to float32, in which images are changed whatever their
            dtype, as in TensorFlow.
        least: what the values are measured by where none of them is as large.
    """
    if x.dtype.kind in "iubO":
        return bool(np.array_equal(x, y))
    if x.dtype.kind not in "fcV":
        return True
    relative = RELATIVE.get(x.dtype.str[1:], 2e-2)
    if narrow:
        relative = max(relative, RELATIVE["f4"])
    if x.dtype.kind == "V":
        x, y = x.astype(np.float32), y.astype(np.float32)
    x, y = x.reshape(-1)[:MOST], y.reshape(-1)[:MOST]
    sizes = np.abs(x[np.isfinite(x)]).astype(np.float64)
    scale = min(max(float(sizes.max(initial=0)), least, 1e-3), 1e3)
    return np.allclose(x, y, rtol=relative, atol=relative * scale, equal_nan=True)
