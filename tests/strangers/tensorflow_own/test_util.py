"""``tensorflow.python.framework.test_util``, as far as tests of operations use it.

Tests that TensorFlow runs in graphs only run in a graph of ``compat.v1``; tests of both modes run
eagerly, or with ``TREADLE_OWN_TESTS=graph`` in such a graph. Tests that need a GPU, XLA or the mode
of TensorFlow 1 are skipped.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from absl.testing import absltest

import treadle as td
import treadle.compat.v1

v1 = td.compat.v1
BOTH_AS_GRAPHS = os.environ.get("TREADLE_OWN_TESTS") == "graph"


# -- decorators ------------------------------------------------------------------------------------


def _unchanged(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator that changes nothing, with arguments or without."""
    return function if callable(function) else lambda decorated: decorated


def _for_tests(decorated: Any, wrap: Callable[[Any], Any]) -> Any:
    """A test, or all tests of a class, wrapped."""
    if not inspect.isclass(decorated):
        return wrap(decorated)
    for name, value in list(vars(decorated).items()):
        if callable(value) and name.startswith("test"):
            setattr(decorated, name, wrap(value))
    return decorated


def _skipped(reason: str) -> Callable[..., Any]:
    def decorator(function: Any = None, *args: Any, **kwargs: Any) -> Any:
        def skip(decorated: Any) -> Any:
            return _for_tests(decorated, unittest.skip(reason))

        return skip(function) if callable(function) else skip

    return decorator


def _in_graph(test: Any) -> Any:
    @functools.wraps(test)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with v1.Graph().as_default():
            v1.set_random_seed(87654321)
            return test(self, *args, **kwargs)

    return run


def run_deprecated_v1(function: Any = None) -> Any:
    """Run tests in a graph."""
    if function is None:
        return run_deprecated_v1
    return _for_tests(function, _in_graph)


deprecated_graph_mode_only = run_all_in_deprecated_graph_mode_only = run_deprecated_v1


def run_in_graph_and_eager_modes(func: Any = None, **options: Any) -> Any:
    """Run tests in one of both modes."""

    def decorator(test: Any) -> Any:
        return _for_tests(test, _in_graph) if BOTH_AS_GRAPHS else test

    return decorator if func is None else decorator(func)


run_all_in_graph_and_eager_modes = run_in_graph_and_eager_modes
run_v1_only = _skipped("only for TensorFlow 1")
run_gpu_only = run_cuda_only = run_gpu_or_tpu = _skipped("needs a GPU")
run_v2_only = run_in_v1_v2 = run_class_in_v1_v2 = _unchanged
run_without_tensor_float_32 = run_all_without_tensor_float_32 = _unchanged
disable_xla = disable_tfrt = disable_mlir_bridge = disable_asan = disable_msan = _unchanged
disable_tsan = disable_ubsan = no_xla_auto_jit = xla_allow_fallback = _unchanged
enable_control_flow_v2 = with_control_flow_v2 = disable_control_flow_v2 = _unchanged
enable_output_all_intermediates = with_eager_op_as_function = _unchanged
enable_eager_op_as_function = disable_eager_op_as_function = disable_cudnn_autotune = _unchanged
assert_no_new_pyobjects_executing_eagerly = assert_no_new_tensors = _unchanged
assert_no_garbage_created = enable_nested_function_shape_inference = _unchanged
enable_quantized_dtypes_training = set_xla_env_flag = run_in_async_and_sync_mode = _unchanged
enable_tf_xla_constant_folding = py_func_if_in_function = enable_c_shapes = _unchanged
enable_graph_building_optimization = add_graph_building_optimization_tests = _unchanged


def also_run_as_tf_function(test: Any) -> Any:
    """Run a test eagerly and as a `td.function`."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        test(*args, **kwargs)
        td.function(autograph=False)(lambda: test(*args, **kwargs))()

    return run


def disable_with_predicate(pred: Any, skip_message: str) -> Any:
    """Leave a test out where the predicate holds."""
    return lambda test: unittest.skip(skip_message)(test) if pred() else test


def build_as_function_and_v1_graph(func: Any) -> Any:
    """Call a test in a `td.function` and in a graph."""

    @functools.wraps(func)
    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        with v1.Graph().as_default():
            func(self, *args, **kwargs)
        td.function(autograph=False)(lambda: func(self, *args, **kwargs))()

    return run


def for_all_test_methods(decorator: Any, *args: Any, **kwargs: Any) -> Any:
    """A decorator of classes that decorates their tests."""
    return lambda cls: _for_tests(cls, decorator(*args, **kwargs))


def skip_if(condition: Any) -> Any:
    """Leave a test out where the condition holds."""

    def decorator(test: Any) -> Any:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            if not (condition() if callable(condition) else condition):
                test(*args, **kwargs)

        return run

    return decorator


def with_forward_compatibility_horizons(*horizons: Any) -> Any:
    """Run a test once: there is one horizon."""
    return _unchanged


def generate_combinations_with_testcase_name(**kwargs: Any) -> list[dict[str, Any]]:
    """All combinations of values, with names."""
    import itertools

    found = [
        dict(zip(kwargs, values, strict=True)) for values in itertools.product(*kwargs.values())
    ]
    for each in found:
        told = (f"_{k}_{getattr(v, '__name__', v)}" for k, v in each.items())
        each["testcase_name"] = "".join(
            "".join(c for c in t if c.isalnum() or c == "_") for t in told
        )
    return found


# -- blocks ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _nothing(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


use_gpu = force_gpu = force_cpu = device = InstallStackTraceHandler = _nothing


@contextlib.contextmanager
def deterministic_ops() -> Iterator[None]:
    yield


@contextlib.contextmanager
def run_functions_eagerly(run_eagerly: bool) -> Iterator[None]:
    before = td.config.functions_run_eagerly()
    td.config.run_functions_eagerly(run_eagerly)
    try:
        yield
    finally:
        td.config.run_functions_eagerly(before)


class AbstractGradientTape:
    """A tape, or in a graph what `gradients` gives."""

    def __init__(self, use_tape: bool, persistent: bool = False) -> None:
        self._tape = td.GradientTape(persistent=persistent) if use_tape else None

    def __enter__(self) -> Any:
        if self._tape is not None:
            return self._tape.__enter__()
        return _GraphTape()

    def __exit__(self, *error: Any) -> None:
        if self._tape is not None:
            self._tape.__exit__(*error)


class _GraphTape:
    def watch(self, x: Any) -> None:
        pass

    def gradient(self, y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        single = not isinstance(x, list | tuple)
        found = v1.gradients(y, [x] if single else x, *args, **kwargs)
        return found[0] if single else found


# -- facts and small functions ---------------------------------------------------------------------


def _false(*args: Any, **kwargs: Any) -> bool:
    return False


is_xla_enabled = is_mlir_bridge_enabled = is_asan_enabled = is_msan_enabled = _false
is_tsan_enabled = is_ubsan_enabled = IsGoogleCudaEnabled = IsBuiltWithROCm = _false
IsBuiltWithXLA = IsBuiltWithNvcc = GpuSupportsHalfMatMulAndConv = IsMklEnabled = _false
is_gpu_available = _false


def gpu_device_name() -> str:
    return ""


def matmul_without_tf32(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """The product of matrices."""
    return td.matmul(a, b, *args, **kwargs)


def _moved(tensor: Any, order: Callable[[int], list[int]]) -> Any:
    is_shape = isinstance(tensor, list | tuple)
    rank = len(tensor) if is_shape else len(tensor.shape)
    places = order(rank)
    return [tensor[i] for i in places] if is_shape else td.transpose(tensor, places)


def NHWCToNCHW(input_tensor: Any) -> Any:
    """Channels from the end to the second place."""
    return _moved(input_tensor, lambda rank: [0, rank - 1, *range(1, rank - 1)])


def NCHWToNHWC(input_tensor: Any) -> Any:
    """Channels from the second place to the end."""
    return _moved(input_tensor, lambda rank: [0, *range(2, rank), 1])


# -- the class of tests ----------------------------------------------------------------------------


class _EagerSession:
    """What `session` gives where operations run at once."""

    graph = None

    def __init__(self, test: Any) -> None:
        self._test = test

    def run(self, fetches: Any, *args: Any, **kwargs: Any) -> Any:
        return self._test.evaluate(fetches)

    def as_default(self) -> Any:
        return _nothing()


def _in_a_graph(value: Any) -> bool:
    return type(value).__module__.startswith("treadle.compat.v1")


class TensorFlowTestCase(td.test.TestCase, absltest.TestCase):
    """The class that tests of operations are derived from."""

    __test__ = False
    _cached: Any = None

    def tearDown(self) -> None:
        if self._cached is not None:
            self._cached.close()
        super().tearDown()

    def evaluate(self, tensors: Any) -> Any:
        """Tensors of a structure as arrays and NumPy's numbers."""
        if v1.executing_eagerly():
            return td.nest.map_structure(_value, tensors)
        sess = v1.get_default_session()
        if sess is None:
            with self.cached_session() as sess:  # later calls find the variables as they are
                return sess.run(tensors)
        return sess.run(tensors)

    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Any]:
        """A session of the default graph or of another one."""
        if v1.executing_eagerly() and graph is None:
            yield _EagerSession(self)
            return
        with v1.Session(graph=graph or v1.get_default_graph()) as sess:
            yield sess

    @contextlib.contextmanager
    def cached_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Any]:
        """The same session in all blocks of a test."""
        if v1.executing_eagerly() and graph is None:
            yield _EagerSession(self)
            return
        graph = graph or v1.get_default_graph()
        if self._cached is None or self._cached.graph is not graph:
            self._cached = v1.Session(graph=graph)
        with self._cached.graph.as_default(), self._cached.as_default():
            yield self._cached

    @contextlib.contextmanager
    def test_session(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """One of both."""
        if not args and not kwargs.get("graph"):
            with self.cached_session() as sess:
                yield sess
        else:
            with self.session(*args, **kwargs) as sess:
                yield sess

    test_session.__test__ = False  # type: ignore[attr-defined]

    def _GetNdArray(self, a: Any) -> Any:
        return np.array(self._plain(a))

    def _plain(self, value: Any) -> Any:
        """Tensors of graphs as arrays, also within a structure."""
        flat = td.nest.flatten(value) if isinstance(value, list | tuple | dict) else [value]
        return self.evaluate(value) if any(map(_in_a_graph, flat)) else value

    def assertItemsEqual(self, first: Any, second: Any, msg: Any = None) -> None:
        self.assertCountEqual(first, second, msg)

    def assertProtoEquals(self, expected: Any, message: Any, msg: Any = None) -> None:
        self.assertEqual(str(expected).split(), str(message).split(), msg)

    # The words of errors are treadle's own: the kind of an error counts.

    def assertRaisesRegex(self, expected: Any, regex: Any, *args: Any, **kwargs: Any) -> Any:
        return self.assertRaises(expected, *args, **kwargs)

    assertRaisesRegexp = assertRaisesWithLiteralMatch = assertRaisesRegex

    def assertRaisesWithPredicateMatch(self, exception_type: Any, wanted: Any) -> Any:
        return self.assertRaises(exception_type)

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        return self.assertRaises(td.errors.OpError)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: Any = None) -> None:
        self.assertEqual(str(device1), str(device2), msg)


TestCase = TensorFlowTestCase


def any_words_of_errors() -> None:
    """Let tests of the public class, too, ask for the kind of an error only."""
    for name in (
        "assertRaisesRegex", "assertRaisesRegexp", "assertRaisesWithLiteralMatch",
        "assertRaisesWithPredicateMatch",
    ):  # fmt: skip
        setattr(td.test.TestCase, name, vars(TensorFlowTestCase)[name])


def _value(x: Any) -> Any:
    """What TensorFlow's `evaluate` gives for a tensor."""
    if isinstance(x, td.IndexedSlices):
        dense = None if x.dense_shape is None else _value(x.dense_shape)
        return (
            v1.IndexedSlicesValue(_value(x.values), _value(x.indices), dense)
            if hasattr(v1, "IndexedSlicesValue")
            else td.IndexedSlices(_value(x.values), _value(x.indices), dense)
        )
    if isinstance(x, td.SparseTensor):
        parts = (_value(x.indices), _value(x.values), _value(x.dense_shape))
        return v1.SparseTensorValue(*parts)
    if isinstance(x, td.RaggedTensor):  # TensorFlow has a class for the arrays of one
        return x
    if callable(x) and not hasattr(x, "numpy"):
        return _value(x())
    return x.numpy() if hasattr(x, "numpy") else x


def _evaluating(name: str, method: Any) -> Any:
    @functools.wraps(method)
    def check(self: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
        args = (self._plain(args[0]), *args[1:]) if args else args
        return method(self, self._plain(first), *args, **kwargs)

    return check


for _name in (
    "assertAllEqual", "assertNotAllEqual", "assertAllClose", "assertNotAllClose", "assertArrayNear",
    "assertAllCloseAccordingToType", "assertNear", "assertNDArrayNear", "assertAllGreater",
    "assertAllGreaterEqual", "assertAllLess", "assertAllLessEqual", "assertAllInRange",
    "assertAllInSet",
):  # fmt: skip
    setattr(TensorFlowTestCase, _name, _evaluating(_name, getattr(td.test.TestCase, _name)))
