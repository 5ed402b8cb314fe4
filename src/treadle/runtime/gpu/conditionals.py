"""Loops and branches inside of CUDA graphs: conditional nodes, whose graphs the device repeats, or
passes over, as a number in its memory tells.

CuPy records what is asked for in a stream as a graph, but has no calls for such nodes, so they are
put into the graph by the driver's library. Each call is named with its version, whose arguments do
not change from one driver to the next.

    record ... | a kernel hands the node its number | node | the stream records into the graph of
    the node ... | the kernel again, for a loop | the stream goes on recording behind the node
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from treadle.runtime.gpu.driver import CannotRecord, Work

OLDEST_DRIVER = 12040  # that has loops, too
NAME = "td_decide"
# The function is part of CUDA, and known to its compiler without a header.
KERNEL = f"""
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(
    unsigned long long handle, unsigned int value);
extern "C" __global__ void {NAME}(
    unsigned long long when_true, unsigned long long when_false, const bool* flag) {{
  const bool found = *flag;
  if (when_true) cudaGraphSetConditional(when_true, found);
  if (when_false) cudaGraphSetConditional(when_false, !found);
}}
"""

_CONDITIONAL_NODE, _IF, _WHILE = 13, 0, 1
_IS_RECORDING = 1
_THIS_THREAD = 1  # the mode of recordings: other threads may go on working
_REPLACE = 1  # what is recorded next depends on the given nodes alone


class _Conditional(ctypes.Structure):
    """``CUDA_CONDITIONAL_NODE_PARAMS``."""

    _fields_ = (
        ("handle", c_uint64), ("type", c_int), ("size", c_uint), ("graphs", POINTER(c_void_p)),
        ("context", c_void_p),
    )  # fmt: skip


class _Parameters(ctypes.Structure):
    """``CUgraphNodeParams``."""

    _fields_ = (
        ("type", c_int), ("reserved", c_int * 3), ("conditional", _Conditional),
        ("others", ctypes.c_char * (29 * 8 - ctypes.sizeof(_Conditional))), ("end", c_uint64),
    )  # fmt: skip


# Arguments of the calls. A node is a pointer, and so is what describes an edge to it.
_CALLS: dict[str, tuple[Any, ...]] = {
    "cuCtxGetCurrent": (POINTER(c_void_p),),
    "cuStreamGetCaptureInfo_v3": (
        c_void_p, POINTER(c_int), POINTER(c_uint64), POINTER(c_void_p), POINTER(c_void_p),
        POINTER(c_void_p), POINTER(c_size_t),
    ),
    "cuGraphConditionalHandleCreate": (POINTER(c_uint64), c_void_p, c_void_p, c_uint, c_uint),
    "cuGraphAddNode_v2": (
        POINTER(c_void_p), c_void_p, c_void_p, c_void_p, c_size_t, POINTER(_Parameters),
    ),
    "cuStreamUpdateCaptureDependencies_v2": (
        c_void_p, POINTER(c_void_p), c_void_p, c_size_t, c_uint,
    ),
    "cuStreamBeginCaptureToGraph": (
        c_void_p, c_void_p, POINTER(c_void_p), c_void_p, c_size_t, c_int,
    ),
    "cuStreamEndCapture": (c_void_p, POINTER(c_void_p)),
}  # fmt: skip


def has_conditionals(library: Any, version: int) -> bool:
    """Whether a driver's library has the calls."""
    return version >= OLDEST_DRIVER and all(hasattr(library, name) for name in _CALLS)


class Conditionals:
    """Conditional nodes in what a stream records.

    Args:
        library: of the driver.
        stream: the stream's handle.
        decide: launches the kernel of `KERNEL` with these numbers: two handles, of which one may
            be 0, and an address.
    """

    def __init__(self, library: Any, stream: int, decide: Callable[[int, int, int], None]) -> None:
        self.stream, self.decide = c_void_p(stream), decide
        self.calls: dict[str, Any] = {}
        for name, arguments in _CALLS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, c_int
            self.calls[name] = function

    def choose(self, flag: int, then: Work, otherwise: Work | None) -> None:
        """See `treadle.runtime.gpu.driver.Driver`. Two nodes, since drivers before CUDA 13 mix up
        the two graphs of one. Their numbers are set at once: the first may change the bool."""
        handles = [self._handle(), 0 if otherwise is None else self._handle()]
        self.decide(handles[0], handles[1], flag)
        yes = self._add(_IF, handles[0])
        no = None if otherwise is None else self._add(_IF, handles[1])
        last = (yes if no is None else no)[0]
        self._record(yes[1], last, then)
        if no is not None and otherwise is not None:
            self._record(no[1], last, otherwise)

    def repeat(self, flag: int, body: Work) -> None:
        """See `treadle.runtime.gpu.driver.Driver`."""
        handle = self._handle()
        self.decide(handle, 0, flag)
        node, graph = self._add(_WHILE, handle)

        def once() -> None:
            body()
            self.decide(handle, 0, flag)

        self._record(graph, node, once)

    def _do(self, name: str, *arguments: Any) -> None:
        status = self.calls[name](*arguments)
        if status:
            raise CannotRecord(f"{name}: error {status} of the driver")

    def _recorded(self) -> tuple[c_void_p, c_void_p, c_void_p, c_size_t]:
        """The graph that the stream records into, and the nodes that the next one depends on, with
        their edges and number."""
        status, number, graph = c_int(), c_uint64(), c_void_p()
        nodes, edges, count = c_void_p(), c_void_p(), c_size_t()
        found = [ctypes.byref(x) for x in (status, number, graph, nodes, edges, count)]
        self._do("cuStreamGetCaptureInfo_v3", self.stream, *found)
        if status.value != _IS_RECORDING:
            raise CannotRecord("the stream records no more")
        return graph, nodes, edges, count

    def _context(self) -> c_void_p:
        context = c_void_p()
        self._do("cuCtxGetCurrent", ctypes.byref(context))
        return context

    def _handle(self) -> int:
        """A new number of the device, which decides about a node."""
        handle, (graph, *_) = c_uint64(), self._recorded()
        name = "cuGraphConditionalHandleCreate"
        self._do(name, ctypes.byref(handle), graph, self._context(), 0, 0)
        return handle.value

    def _add(self, kind: int, handle: int) -> tuple[c_void_p, c_void_p]:
        """A node behind what was recorded by now, and its graph."""
        graph, nodes, edges, count = self._recorded()
        given = _Parameters(type=_CONDITIONAL_NODE)
        given.conditional.handle, given.conditional.type = handle, kind
        given.conditional.size, given.conditional.context = 1, self._context()
        node = c_void_p()
        name = "cuGraphAddNode_v2"
        self._do(name, ctypes.byref(node), graph, nodes, edges, count, ctypes.byref(given))
        name = "cuStreamUpdateCaptureDependencies_v2"
        self._do(name, self.stream, ctypes.byref(node), None, 1, _REPLACE)
        return node, c_void_p(given.conditional.graphs[0])

    def _record(self, inner: c_void_p, node: c_void_p, work: Work) -> None:
        """Record work into the graph of a node; the stream goes on behind `node` then, also where
        the work failed."""
        whole, ended, begin = c_void_p(), c_void_p(), "cuStreamBeginCaptureToGraph"
        self._do("cuStreamEndCapture", self.stream, ctypes.byref(whole))
        self._do(begin, self.stream, inner, None, None, 0, _THIS_THREAD)
        is_done = False
        try:
            work()
            is_done = True
        finally:
            end = self.calls["cuStreamEndCapture"](self.stream, ctypes.byref(ended))
            go_on = self.calls[begin](
                self.stream, whole, ctypes.byref(node), None, 1, _THIS_THREAD
            )
            if is_done and (end or go_on):
                raise CannotRecord(f"a graph inside of another: errors {end}, {go_on}")
