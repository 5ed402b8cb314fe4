"""td.test.TestCase: which assertions hold."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import program


class _Cases:
    """The names of assertions of a test case with whether they hold for arguments."""

    def __init__(self, tf):
        class Case(tf.test.TestCase):
            def runTest(self):
                pass

        self.case = Case()

    def __getattr__(self, name):
        def holds(*args, **kwargs):
            try:
                getattr(self.case, name)(*args, **kwargs)
            except AssertionError:
                return False
            return True

        return holds


@program
def equal_and_close(tf):
    c, x, nan = _Cases(tf), tf.constant([1.0, 2.0]), np.float32([1, np.nan])
    return [
        c.assertAllEqual(x, [1, 2]), c.assertAllEqual(x, [1, 3]), c.assertAllEqual(x, [[1, 2]]),
        c.assertAllEqual(nan, nan), c.assertAllEqual(3, 3), c.assertAllEqual(["a"], [b"a"]),
        c.assertAllEqual(tf.constant(["a", "b"]), ["a", "b"]),
        c.assertNotAllEqual(x, [1, 2]), c.assertNotAllEqual(x, [1, 3]),
        c.assertAllClose(x, [1, 2 + 1e-6]), c.assertAllClose(x, [1, 2.1]),
        c.assertAllClose(x, [1, 2.1], rtol=0.1), c.assertAllClose(x, [[1, 2]]),
        c.assertAllClose({"a": x, "b": 1.0}, {"a": [1, 2], "b": 1.0}),
        c.assertAllClose({"a": x}, {"b": x}), c.assertAllClose([x, [1.0]], [[1, 2], [1]]),
        c.assertAllClose((x, {"a": 1.0}), ([1, 2], {"a": 1.5})), c.assertAllClose(nan, nan),
        c.assertAllClose(np.float16([1]), np.float16([1.0005])),
        c.assertNotAllClose(x, [1, 2]), c.assertNotAllClose(x, [1, 3]),
        c.assertAllCloseAccordingToType(tf.cast(x, tf.bfloat16), [1.0, 2.01]),
        c.assertAllCloseAccordingToType(tf.cast(x, tf.float16), [1.0, 2.001]),
        c.assertAllCloseAccordingToType(x, [1.0, 2.001]),
        c.assertNear(1.0, 1.1, 0.2), c.assertNear(1.0, 1.5, 0.2),
        c.assertArrayNear([1.0, 2.0], [1.1, 2.1], 0.2), c.assertArrayNear([1.0], [1.5], 0.2),
        c.assertNDArrayNear(np.ones(2), np.ones(2) * 1.1, 0.2),
        c.assertNDArrayNear(np.ones(2), np.ones(2) * 2, 0.2),
    ]  # fmt: skip


@program
def elements_shapes_and_errors(tf):
    c, x = _Cases(tf), tf.constant([1.0, 2.0])

    def raises(error, wanted, raised):
        try:
            with c.case.assertRaisesWithPredicateMatch(error, wanted):
                if raised is not None:
                    raise raised
        except AssertionError:
            return "fails"
        except Exception as other:
            return type(other).__name__
        return "holds"

    return [
        c.assertAllGreater(x, 0), c.assertAllGreater(x, 1), c.assertAllGreaterEqual(x, 1),
        c.assertAllLess(x, 2), c.assertAllLessEqual(x, 2), c.assertAllInRange(x, 1, 2),
        c.assertAllInRange(x, 1, 2, open_lower_bound=True), c.assertAllInSet(x, [1, 2, 3]),
        c.assertAllInRange(x, 1, 2, open_upper_bound=True), c.assertAllInSet(x, [1]),
        c.assertShapeEqual(np.ones(2), x), c.assertShapeEqual(np.ones(3), x),
        c.assertDTypeEqual(np.ones(2), np.float64), c.assertDTypeEqual(np.ones(2), np.float32),
        c.assertLen([1, 2], 2), c.assertLen([1], 2), c.assertEmpty([]), c.assertEmpty([1]),
        c.assertNotEmpty([1]), c.assertNotEmpty([]), c.assertBetween(1, 0, 1),
        c.assertBetween(2, 0, 1), c.assertStartsWith("abc", "ab"), c.assertStartsWith("b", "ab"),
        c.assertEndsWith("abc", "bc"), c.assertEndsWith("b", "ab"),
        c.assertSameElements([1, 2, 1], [2, 1]), c.assertSameElements([1], [2]),
        raises(ValueError, "wr.ng", ValueError("is wrong")), raises(ValueError, "no", ValueError()),
        raises(ValueError, lambda e: e.args == (1,), ValueError(1)),
        raises(ValueError, "", KeyError(1)), raises(ValueError, "", None),
        c.case.evaluate({"a": x, "b": [tf.constant(2)]}),
        tf.test.is_gpu_available(), tf.test.gpu_device_name(), tf.test.is_built_with_rocm(),
        tf.test.is_cpu_target_available("x86"),
    ]  # fmt: skip


@program
def functions_are_evaluated(tf):
    class Case(tf.test.TestCase):
        def runTest(self):
            pass

    case, count = Case(), tf.Variable(0)
    found = case.evaluate([lambda: count.assign_add(1), {"a": lambda: lambda: count + 1}, count])
    case.assertItemsEqual([1, 2, 2], [2, 1, 2])
    return found


@program
def ragged_and_sparse_values(tf):
    c = _Cases(tf)
    rows, floats = tf.ragged.constant([[1], [2, 3]]), tf.ragged.constant([[1.0], [2.0, 3.0]])
    texts, places = tf.ragged.constant([["a"], ["b", "c"]]), tf.SparseTensor([[0]], [1], [2])
    return [
        c.assertAllEqual(rows, [[1], [2, 3]]), c.assertAllEqual([[1], [2, 3]], rows),
        c.assertAllEqual(rows, rows + 0), c.assertAllEqual(rows, [[1], [2, 4]]),
        c.assertAllEqual(rows, [[1, 2], [3]]), c.assertNotAllEqual(rows, [[1], [2, 4]]),
        c.assertAllClose(floats, [[1.0], [2.0, 3.0000001]]),
        c.assertAllClose(floats, [[1.0], [2.0, 4.0]]),
        c.assertAllEqual(texts, [[b"a"], [b"b", b"c"]]), c.assertAllEqual(places, places),
        c.assertAllEqual(places, tf.SparseTensor([[1]], [1], [2])),
    ]  # fmt: skip
