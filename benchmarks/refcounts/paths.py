"""The paths of calls: each makes a function of no arguments that is one call.

`native` paths never enter Python code once they are warm; the others do (keyword arguments, errors,
callbacks) and are repeated less often.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import treadle as td

Call = Callable[[], Any]


class Path(NamedTuple):
    """A way through the machinery of calls.

    Attributes:
        native: the call never enters Python code.
        slowness: by how much it is to be repeated less often than others of its kind.
    """

    make: Callable[[], Call]
    native: bool
    slowness: int = 1


PATHS: dict[str, Path] = {}


def path(native: bool, slowness: int = 1) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
    """Decorator: list the function's path under its name."""

    def listed(make: Callable[[], Call]) -> Callable[[], Call]:
        PATHS[make.__name__] = Path(make, native, slowness)
        return make

    return listed


def tensor(*values: float) -> td.Tensor:
    return td.constant(np.array(values, np.float32))


def function(python: Callable[..., Any]) -> Any:
    return td.function(python, autograph=False)


def expecting(kind: type[BaseException], call: Call) -> Call:
    """A call that must fail."""

    def attempt() -> None:
        try:
            call()
        except kind:
            return
        raise AssertionError(f"no {kind.__name__}")

    return attempt


# -- arguments and results ---------------------------------------------------------------------


@path(native=True)
def a_tensor() -> Call:
    f, x = function(lambda x: x + 1.0), tensor(1, 2, 3, 4)
    return lambda: f(x)


@path(native=True)
def an_array() -> Call:
    f, x = function(lambda x: x + 1.0), np.ones(4, np.float32)
    return lambda: f(x)


@path(native=True)
def a_tensor_without_a_spec() -> Call:
    f, array = function(lambda x: x + 1.0), np.ones(4, np.float32)
    return lambda: f(td.constant(array))


@path(native=True)
def three_tensors() -> Call:
    f, x = function(lambda x, y, z: x * y + z), tensor(1, 2, 3, 4)
    return lambda: f(x, x, x)


@path(native=True)
def a_list_of_20() -> Call:
    f, xs = function(lambda xs: [x + 1.0 for x in xs]), [tensor(i) for i in range(20)]
    return lambda: f(xs)


@path(native=True)
def a_tuple() -> Call:
    f, xs = function(lambda xs: tuple(x + 1.0 for x in xs)), (tensor(1), tensor(2))
    return lambda: f(xs)


@path(native=True)
def a_dict_of_20() -> Call:
    f = function(lambda d: {k: v + 1.0 for k, v in d.items()})
    d = {f"key{i}": tensor(i) for i in range(20)}
    return lambda: f(d)


@path(native=True)
def nested_arguments() -> Call:
    f = function(lambda d: d["x"]["y"][0] + d["z"])
    d = {"x": {"y": [tensor(1)]}, "z": tensor(5)}
    return lambda: f(d)


@path(native=True)
def python_scalars() -> Call:
    f, x = function(lambda x, n, r, s, none, flag: x * n + r), tensor(1, 2)
    number, text = int("123456789"), "".join(["a long ", "text"])
    return lambda: f(x, number, float("2.5"), text, None, True)


@path(native=True)
def nothing_returned() -> Call:
    f, x = function(lambda x: None), tensor(1, 2)
    return lambda: f(x)


@path(native=True)
def a_large_result() -> Call:
    f, x = function(lambda x: x + 1.0), td.ones([70_000])
    return lambda: f(x)


@path(native=True)
def results_that_are_held() -> Call:
    f, x = function(lambda x: [x + 1.0, x * 2.0]), tensor(1, 2)
    held: deque[Any] = deque(maxlen=5)
    return lambda: held.append(f(x))


@path(native=True)
def results_that_are_passed_on() -> Call:
    f, g = function(lambda x: x * 0.5), function(lambda x: x + 1.0)
    state = [tensor(1, 2)]

    def call() -> None:
        state[0] = f(g(state[0]))

    return call


@path(native=True)
def many_signatures() -> Call:
    f, xs = function(lambda x: x + 1.0), [td.ones([n + 1]) for n in range(8)]
    return lambda: [f(x) for x in xs]


@path(native=True)
def a_method() -> Call:
    class Owner:
        scale = 2.0

        @td.function(autograph=False)
        def times(self, x: Any) -> Any:
            return x * self.scale

    owner, x = Owner(), tensor(1, 2)
    return lambda: owner.times(x)


@path(native=False)
def keyword_arguments() -> Call:
    f, x = function(lambda x, y, n=2: x * n + y), tensor(1, 2)
    return lambda: f(x, y=x, n=3)


@path(native=False)
def defaults() -> Call:
    f, x = function(lambda x, n=2, *, shift=1.0: x * n + shift), tensor(1, 2)
    return lambda: f(x)


@path(native=False)
def an_object_known_by_identity() -> Call:
    f, x = function(lambda x, dtype: td.cast(x, dtype)), tensor(1, 2)
    return lambda: f(x, td.int32)


@path(native=False)
def nested_results() -> Call:
    f, x = function(lambda x: (x, [x + 1.0, {"a": x}])), tensor(1, 2)
    return lambda: f(x)


@path(native=False)
def a_concrete_function() -> Call:
    concrete, x = function(lambda x: x + 1.0).get_concrete_function(tensor(1, 2)), tensor(1, 2)
    return lambda: concrete(x)


# -- what programs do --------------------------------------------------------------------------


@path(native=True)
def a_variable_written() -> Call:
    v, x = td.Variable(np.zeros(4, np.float32)), tensor(1, 2, 3, 4)
    f = function(lambda x: v.assign_add(x))
    return lambda: f(x)


@path(native=True)
def work_without_the_gil() -> Call:
    f, x = function(lambda x: td.reduce_sum(td.matmul(x, x), 1)), td.ones([40, 40])
    return lambda: f(x)


@path(native=True)
def a_loop() -> Call:
    f, x = td.function(_loop), tensor(1, 2)
    n = td.constant(4)
    return lambda: f(x, n)


def _loop(x: Any, n: Any) -> Any:
    for _ in td.range(n):
        x = x * 0.5 + 1.0
    return x


@path(native=False)
def a_list_in_a_loop() -> Call:
    f, x = td.function(_collect), tensor(1, 2)
    n = td.constant(4)
    return lambda: f(x, n)


def _collect(x: Any, n: Any) -> Any:
    found = []
    for i in td.range(n):
        found.append(x * td.cast(i, td.float32))
    return found[-1]


@path(native=False)
def a_callback() -> Call:
    f = function(lambda x: td.numpy_function(np.sort, [x], td.TensorSpec([2])) + 1.0)
    x = tensor(2, 1)
    return lambda: f(x)


@path(native=False)
def recursion_through_a_callback() -> Call:
    """The callback calls the function again, three deep."""
    inner = function(lambda x: td.numpy_function(again, [x], td.TensorSpec([])))

    def again(a: Any) -> Any:
        return np.float32(0) if a <= 0 else np.asarray(inner(td.constant(a - np.float32(1))))

    x = td.constant(np.float32(2))
    return lambda: inner(x)


@path(native=False)
def random_numbers() -> Call:
    generator = td.random.Generator.from_seed(1)
    f = function(lambda: generator.normal([5]))
    return f  # type: ignore[no-any-return]


@path(native=False)
def a_gradient() -> Call:
    w = td.Variable(np.ones(3, np.float32))
    f, x = function(lambda x: td.reduce_sum(x * w * w)), tensor(1, 2, 3)

    def call() -> Any:
        with td.GradientTape() as tape:
            y = f(x)
        return tape.gradient(y, w)

    return call


# -- eager operators ---------------------------------------------------------------------------


@path(native=True)
def eager_operators() -> Call:
    x, y = tensor(1, 2, 3, 4), tensor(5, 6, 7, 8)
    return lambda: (x + y, x - y, x * y, x / y)


@path(native=True)
def eager_operators_with_numbers() -> Call:
    x = tensor(1, 2, 3, 4)
    return lambda: (x + 1.0, 2.0 - x, x * 3, 1 / x)


@path(native=False)
def eager_operators_left_to_python() -> Call:
    x, y = tensor(1, 2, 3, 4), tensor(5)
    return lambda: (x + y, x - [1.0, 2.0, 3.0, 4.0], x > y, -x)


@path(native=False)
def eager_operators_that_fail() -> Call:
    x, y = tensor(1, 2, 3, 4), tensor(5, 6)
    shapes = expecting(td.errors.InvalidArgumentError, lambda: x + y)
    types = expecting(TypeError, lambda: x + None)
    return lambda: (shapes(), types())


# -- calls that fail ---------------------------------------------------------------------------


@path(native=False)
def an_index_out_of_range() -> Call:
    f = function(lambda x, i: x[i])
    x, good, bad = tensor(1, 2), td.constant(1), td.constant(7)
    f(x, good)
    return expecting(td.errors.InvalidArgumentError, lambda: f(x, bad))


@path(native=False)
def a_callback_that_raises() -> Call:
    fails = [False]

    def python(a: Any) -> Any:
        if fails[0]:
            raise ZeroDivisionError("as it was")
        return a

    f = function(lambda x: td.numpy_function(python, [x], td.TensorSpec([2])) * 2.0)
    x = tensor(1, 2)
    for _ in range(4):
        f(x)
    fails[0] = True
    return expecting(td.errors.UnknownError, lambda: f(x))


@path(native=False)
def wrong_numbers_of_arguments() -> Call:
    f, x = function(lambda x, y: x + y), tensor(1, 2)
    f(x, x)
    few = expecting(TypeError, lambda: f(x))
    many = expecting(TypeError, lambda: f(x, x, x))
    names = expecting(TypeError, lambda: f(x, z=x))
    return lambda: (few(), many(), names())


@path(native=False)
def wrong_arguments() -> Call:
    """Those that an input signature refuses."""
    f = td.function(
        lambda x: x + 1.0, input_signature=[td.TensorSpec([2], td.float32)], autograph=False
    )
    x, longer = tensor(1, 2), tensor(1, 2, 3)
    f(x)
    shape = expecting((TypeError, ValueError), lambda: f(longer))  # type: ignore[arg-type]
    kind = expecting((TypeError, ValueError), lambda: f("text"))  # type: ignore[arg-type]
    return lambda: (shape(), kind())


@path(native=False, slowness=100)  # it takes 10 ms until a loop looks for signals
def an_interrupted_loop() -> Call:
    """A signal's exception ends a loop that would not end."""
    f = td.function(_halve)
    x = td.constant(np.float32(1))
    f(td.constant(np.float32(3)))

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    def call() -> None:
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        f(x)

    return expecting(KeyboardInterrupt, call)


def _halve(x: Any) -> Any:
    while x < 2.0:
        x = x * 0.5
    return x


@path(native=True)
def an_equality_that_is_asked_for() -> Call:
    """Dicts and texts that differ in one place from those of the plan before."""
    f, x = function(lambda x, d, s: x * d["n"]), tensor(1, 2)
    texts = ["".join(["text", str(i)]) for i in range(3)]
    dicts = [{"n": i} for i in (1000, 2000)]
    return lambda: [f(x, d, s) for d in dicts for s in texts]
