"""``td.test``: a class for tests of tensors, what is asked of the machine, and gradients checked by
finite differences."""

from __future__ import annotations

import contextlib
import os
import platform
import random
import re
import shutil
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import treadle as td
from treadle.autodiff.checking import (
    GradientError,
    check_gradients,
    compute_gradient,
)
from treadle.names import missing_in
from treadle.runtime.gpu import discovery
from treadle.test import experimental

__all__ = [
    "GradientError",
    "TestCase",
    "check_gradients",
    "compute_gradient",
    "experimental",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_cpu_target_available",
    "is_gpu_available",
    "main",
]

_SEED = 87654321
Arrays = Any

# As TensorFlow's, the class of test cases has all methods of absl's, where absl is installed.
if TYPE_CHECKING:
    _TestCase = unittest.TestCase
else:
    try:
        from absl.testing.absltest import TestCase as _TestCase
    except ImportError:
        _TestCase = unittest.TestCase


def main(argv: list[str] | None = None) -> None:
    """Run the tests of the program, as `unittest.main` does."""
    unittest.main(module="__main__", argv=argv)


def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Whether programs see a GPU, of a compute capability such as (8, 0) at least."""
    seen = td.config.get_visible_devices("GPU")
    found = (td.config.experimental.get_device_details(gpu)["compute_capability"] for gpu in seen)
    return any(capability >= (min_cuda_compute_capability or (0, 0)) for capability in found)


def gpu_device_name() -> str:
    """The name of the first GPU, "/device:GPU:0"; empty where there is none."""
    found = td.config.list_logical_devices("GPU")
    return found[0].name if found else ""


def is_built_with_gpu_support() -> bool:
    """Whether CuPy is installed, by which programs reach GPUs, whether there is one or not."""
    return discovery.is_installed()


def is_built_with_cuda() -> bool:
    """Whether CuPy is installed, by which programs reach GPUs, whether there is one or not."""
    return discovery.is_installed()


def is_built_with_rocm() -> bool:
    """Whether programs can run on a GPU of ROCm: False."""
    return False


def is_built_with_xla() -> bool:
    """Whether functions are compiled by XLA: False, treadle has a compiler of its own."""
    return False


_FAMILIES = {
    "x86": ("x86_64", "amd64", "i386", "i686"), "aarch64": ("aarch64", "arm64"),
    "arm": ("arm", "armv7l"), "ppc": ("ppc64", "ppc64le"), "s390x": ("s390x",),
}  # fmt: skip


def is_cpu_target_available(target: str) -> bool:
    """Whether the processor is of a family: "x86", "aarch64", "arm", "ppc" or "s390x"."""
    return platform.machine().lower() in _FAMILIES.get(target, (target,))


def _array(value: Any) -> Any:
    """An array of a tensor, number or list; floats of 16 bits as wider ones."""
    found = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    return found.astype(np.float32) if found.dtype.name == "bfloat16" else found


def _taken_apart(value: Any) -> Any:
    """Ragged tensors as lists and sparse ones as their parts; other values themselves."""
    if isinstance(value, td.RaggedTensor):
        return value.to_list()
    if isinstance(value, td.SparseTensor):
        return value.indices, value.values, value.dense_shape
    return value


def _is_nested(value: Any) -> bool:
    """Whether a structure is compared part by part: dicts, and lists of arrays of other shapes."""
    if isinstance(value, Mapping):
        return True
    if not isinstance(value, list | tuple):
        return False
    if any(_is_nested(v) for v in value):
        return True
    return len({np.shape(_array(v)) for v in value}) > 1


def _no_session(graph: Any, config: Any, known: dict[Any, Any] | None) -> Any:
    return None


class _AtOnce:
    """In the place of a session where operations have run already."""

    def __init__(self, case: Any) -> None:
        self._case = case

    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        """The values of tensors.

        Raises:
            RuntimeError: something is to be fed: there is no graph.
        """
        if kwargs.pop("feed_dict", None) or args or kwargs:
            raise RuntimeError(
                "feed_dict is not supported when eager execution is enabled (in this case, "
                "sess.run(t) is shorthand for t.numpy()"
            )
        return self._case.evaluate(fetches)


class TestCase(_TestCase):
    """A `unittest.TestCase` that compares tensors, arrays and lists, and nested structures of them.

    Random numbers have the same seeds at the beginning of every test. Private names begin with two
    underscores: classes of programs may have methods of the same names as these.
    """

    __test__ = False  # pytest collects the classes that are derived from it
    # What `compat.v1.test` knows of graphs: the session for one, or None where operations run at
    # once; and the graph that a value belongs to.
    _session_of_graph: ClassVar[Callable[..., Any]] = staticmethod(_no_session)
    _graph_of: ClassVar[Callable[..., Any]] = staticmethod(lambda value: None)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.__test__ = True

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self.__folder: str | None = None
        self.__sessions: dict[Any, Any] = {}  # by their graphs

    def setUp(self) -> None:
        super().setUp()
        random.seed(_SEED)
        np.random.seed(_SEED)  # noqa: NPY002 (the programs' numbers)
        td.random.set_seed(_SEED)
        older = sys.modules.get("treadle.compat.v1.graph")
        if older is not None and not older.thread.graphs:  # what the last test made is not seen
            older.reset_default_graph()

    def get_temp_dir(self) -> str:
        """A folder of the test, which is removed when the test has ended."""
        if self.__folder is None:
            self.__folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, self.__folder, ignore_errors=True)
        return self.__folder

    def evaluate(self, tensors: Any) -> Any:
        """Tensors of a structure as arrays and NumPy's numbers; functions in it are called. What
        belongs to a graph the default session computes, or the `cached_session` of the test."""
        graphs = (self._graph_of(part) for part in td.nest.flatten(tensors))
        graph = next((graph for graph in graphs if graph is not None), None)
        if graph is not None:
            session = self._session_of_graph(graph, None, self.__sessions)
            with session.as_default():
                return session.run(tensors)

        def evaluated(part: Any) -> Any:
            if callable(part):
                return self.evaluate(part())
            return part.numpy() if hasattr(part, "numpy") else part

        return td.nest.map_structure(evaluated, tensors)

    def evaluate_if_both_tensors(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Two tensors as arrays, which are computed together; other values as they are."""
        return self.evaluate((a, b)) if td.is_tensor(a) and td.is_tensor(b) else (a, b)

    def _GetNdArray(self, a: Any) -> Any:
        """An array of a tensor, which a session computes where it belongs to a graph, or of a
        list. Classes of libraries call it, and have their own."""
        return np.asarray(a if self._graph_of(a) is None else self.evaluate(a))

    @contextlib.contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[Any]:
        """What the block writes to a stream of the process, such as ``sys.stdout``: its
        ``contents()`` are what was written so far."""
        path = os.path.join(self.get_temp_dir(), f"writes_to_{stream.fileno()}")
        stream.flush()
        before = os.dup(stream.fileno())

        def contents() -> str:
            stream.flush()
            return Path(path).read_text()

        try:
            with open(path, "w") as file:
                os.dup2(file.fileno(), stream.fileno())
            yield SimpleNamespace(contents=contents)
        finally:
            stream.flush()
            os.dup2(before, stream.fileno())
            os.close(before)

    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Any]:
        """Inside of ``with td.Graph().as_default()`` a session that runs its operations; elsewhere
        accepted for TensorFlow programs, as operations run at once."""
        session = self._session_of_graph(graph, config, None)
        with contextlib.nullcontext() if session is None else session:
            yield session

    @contextlib.contextmanager
    def cached_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Any]:
        """`session`, but for a graph the same one throughout the test: variables keep their values
        from block to block. Where operations run at once, as TensorFlow: `run` gives their values.
        """
        session = self._session_of_graph(graph, config, self.__sessions)
        if session is None:
            yield _AtOnce(self)
            return
        with session.graph.as_default(), session.as_default():
            yield session

    def test_session(self, *args: Any, **kwargs: Any) -> Any:
        """`cached_session`, by a name that `unittest` takes for that of a test."""
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")
        return self.cached_session(*args, **kwargs)

    assertItemsEqual = unittest.TestCase.assertCountEqual

    # -- equal and close -------------------------------------------------------------------------

    def __pairs(self, a: Any, b: Any, msg: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
        """The arrays of two structures side by side, with where they are."""
        a, b = (_taken_apart(x if self._graph_of(x) is None else self.evaluate(x)) for x in (a, b))
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertIsInstance(a, Mapping, msg)
            self.assertIsInstance(b, Mapping, msg)
            self.assertCountEqual(a, b, msg)
            for key in a:
                yield from self.__pairs(a[key], b[key], msg, f"{path}[{key!r}]")
        elif _is_nested(a) or _is_nested(b):
            self.assertEqual(len(a), len(b), msg)
            for k, (x, y) in enumerate(zip(a, b, strict=True)):
                yield from self.__pairs(x, y, msg, f"{path}[{k}]")
        else:
            x, y = _array(a), _array(b)
            text = f"shapes {x.shape} and {y.shape} differ{path and f' at {path}'}"
            self.assertEqual(x.shape, y.shape, self._formatMessage(msg, text))
            yield x, y, path

    def __check(self, good: Any, what: str, x: Any, y: Any, path: str, msg: Any) -> None:
        if not np.all(good):
            places = np.argwhere(~np.atleast_1d(good))[:5].tolist()
            text = f"{what}{path and f' at {path}'}, first at {places}:\n{x}\n{y}"
            self.fail(self._formatMessage(msg, text))

    def assertAllEqual(self, a: Arrays, b: Arrays, msg: Any = None) -> None:
        """The same shapes and elements; NaN is equal to NaN."""
        for x, y, path in self.__pairs(a, b, msg):
            self.__check(_equal(x, y), "not equal", x, y, path, msg)

    def assertNotAllEqual(self, a: Arrays, b: Arrays, msg: Any = None) -> None:
        """Another shape, or an element that differs."""
        if self.__holds(self.assertAllEqual, a, b):
            self.fail(self._formatMessage(msg, f"The two values are equal at all elements: {a}"))

    def assertAllClose(
        self, a: Arrays, b: Arrays, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """The same shapes, and ``|a - b| <= atol + rtol * |b|``."""
        for x, y, path in self.__pairs(a, b, msg):
            good = np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
            self.__check(good, f"not close (rtol={rtol}, atol={atol})", x, y, path, msg)

    def assertNotAllClose(
        self, a: Arrays, b: Arrays, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """Another shape, or an element that is not close."""
        if self.__holds(self.assertAllClose, a, b, rtol, atol):
            self.fail(self._formatMessage(msg, f"The two values are close at all elements: {a}"))

    def assertAllCloseAccordingToType(
        self, a: Arrays, b: Arrays, rtol: float = 1e-6, atol: float = 1e-6,
        float_rtol: float = 1e-6, float_atol: float = 1e-6, half_rtol: float = 1e-3,
        half_atol: float = 1e-3, bfloat16_rtol: float = 1e-2, bfloat16_atol: float = 1e-2,
        msg: Any = None,
    ) -> None:  # fmt: skip
        """`assertAllClose` with the limits of the narrower of the dtypes."""
        leaves = (*td.nest.flatten(a), *td.nest.flatten(b))
        names = {getattr(getattr(x, "dtype", None), "name", "") for x in leaves}
        for name, more in (
            ("float32", (float_rtol, float_atol)), ("complex64", (float_rtol, float_atol)),
            ("float16", (half_rtol, half_atol)), ("bfloat16", (bfloat16_rtol, bfloat16_atol)),
        ):  # fmt: skip
            if name in names:
                rtol, atol = max(rtol, more[0]), max(atol, more[1])
        self.assertAllClose(a, b, rtol, atol, msg)

    def __holds(self, check: Callable[..., None], *args: Any) -> bool:
        try:
            check(*args)
        except self.failureException:
            return False
        return True

    def assertNear(self, f1: float, f2: float, err: float, msg: Any = None) -> None:
        """Two numbers differ by at most `err`."""
        text = f"{f1!r} and {f2!r} differ by more than {err}"
        good = f1 == f2 or abs(f1 - f2) <= err
        self.assertTrue(good, self._formatMessage(msg, text))

    def assertArrayNear(
        self, farray1: Sequence[float], farray2: Sequence[float], err: float, msg: Any = None
    ) -> None:
        """Two sequences of numbers differ by at most `err`."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for a, b in zip(farray1, farray2, strict=True):
            self.assertNear(float(a), float(b), err, msg)

    def assertNDArrayNear(
        self, ndarray1: Arrays, ndarray2: Arrays, err: float, msg: Any = None
    ) -> None:
        """The Euclidean distance of two arrays is below `err`."""
        distance = float(np.linalg.norm(_array(ndarray1) - _array(ndarray2)))
        text = f"the distance is {distance}, not below {err}"
        self.assertLess(distance, err, self._formatMessage(msg, text))

    # -- elements --------------------------------------------------------------------------------

    def assertAllGreater(self, a: Arrays, comparison_target: Any) -> None:
        """Every element is greater than the target."""
        x = _array(a)
        self.__check(x > comparison_target, f"not > {comparison_target}", x, "", "", None)

    def assertAllGreaterEqual(self, a: Arrays, comparison_target: Any) -> None:
        """Every element is greater than the target or equal to it."""
        x = _array(a)
        self.__check(x >= comparison_target, f"not >= {comparison_target}", x, "", "", None)

    def assertAllLess(self, a: Arrays, comparison_target: Any) -> None:
        """Every element is less than the target."""
        x = _array(a)
        self.__check(x < comparison_target, f"not < {comparison_target}", x, "", "", None)

    def assertAllLessEqual(self, a: Arrays, comparison_target: Any) -> None:
        """Every element is less than the target or equal to it."""
        x = _array(a)
        self.__check(x <= comparison_target, f"not <= {comparison_target}", x, "", "", None)

    def assertAllInRange(
        self, target: Arrays, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:  # fmt: skip
        """Every element is between the bounds, or equal to one that is not open."""
        x = _array(target)
        above = x > lower_bound if open_lower_bound else x >= lower_bound
        below = x < upper_bound if open_upper_bound else x <= upper_bound
        what = f"not in {'(' if open_lower_bound else '['}{lower_bound}, {upper_bound}"
        self.__check(above & below, f"{what}{')' if open_upper_bound else ']'}", x, "", "", None)

    def assertAllInSet(self, target: Arrays, expected_set: Any) -> None:
        """Every element is one of the set."""
        x = _array(target)
        self.__check(np.isin(x, list(expected_set)), f"not in {expected_set}", x, "", "", None)

    # -- shapes and dtypes -----------------------------------------------------------------------

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: Any = None) -> None:
        """Two arrays or tensors have the same shape."""
        self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """An array, a tensor or a list has a dtype."""
        found = target if hasattr(target, "dtype") else self._GetNdArray(target)
        self.assertEqual(td.as_dtype(found.dtype), td.as_dtype(expected_dtype))

    # -- errors ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """The block raises an exception for which the predicate holds, or whose text has a match of
        the regular expression."""
        wanted = expected_err_re_or_predicate
        try:
            yield
        except Exception as error:
            good = isinstance(error, exception_type) and (
                wanted(error) if callable(wanted) else re.search(wanted, str(error))
            )
            if not good:
                raise AssertionError(f"{error!r} is not as expected: {wanted!r}") from error
            return
        self.fail(f"{exception_type} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """The block raises an `OpError` such as `assertRaisesWithPredicateMatch` tells."""
        return self.assertRaisesWithPredicateMatch(td.errors.OpError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(
        self, exception_type: Any = td.errors.InvalidArgumentError
    ) -> Any:
        """The block raises an error that says that shapes do not fit together."""
        return self.assertRaisesWithPredicateMatch(
            exception_type,
            r"Incompatible shapes|Dimensions must be equal|required broadcastable shapes",
        )

    # -- Python's values, as absl has them -------------------------------------------------------

    def assertLen(self, container: Any, expected_len: int, msg: Any = None) -> None:
        """A container has so many elements."""
        self.assertEqual(len(container), expected_len, msg)

    def assertEmpty(self, container: Any, msg: Any = None) -> None:
        """A container has no elements."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: Any = None) -> None:
        """A container has an element."""
        self.assertNotEqual(len(container), 0, msg)

    def assertBetween(self, value: Any, minv: Any, maxv: Any, msg: Any = None) -> None:
        """A value is between two others, or equal to one."""
        text = self._formatMessage(msg, f"{value!r} is not between {minv!r} and {maxv!r}")
        self.assertTrue(minv <= value <= maxv, text)

    def assertStartsWith(self, actual: Any, expected_start: Any, msg: Any = None) -> None:
        """A string begins with another."""
        text = self._formatMessage(msg, f"{actual!r} does not begin with {expected_start!r}")
        self.assertTrue(actual.startswith(expected_start), text)

    def assertEndsWith(self, actual: Any, expected_end: Any, msg: Any = None) -> None:
        """A string ends with another."""
        text = self._formatMessage(msg, f"{actual!r} does not end with {expected_end!r}")
        self.assertTrue(actual.endswith(expected_end), text)

    def assertSameElements(self, expected_seq: Any, actual_seq: Any, msg: Any = None) -> None:
        """Two sequences have the same elements, however often."""
        self.assertEqual(set(expected_seq), set(actual_seq), msg)


def _equal(x: Any, y: Any) -> Any:
    if x.dtype.kind in "OSU" or y.dtype.kind in "OSU":
        return _encoded(x) == _encoded(y)
    both_nan = (x != x) & (y != y)
    return (x == y) | both_nan


def _encoded(x: Any) -> Any:
    """Strings as bytes."""
    found = [s.encode() if isinstance(s, str) else s for s in x.reshape(-1).tolist()]
    return np.array(found, object).reshape(x.shape)


__getattr__ = missing_in(__name__)
