"""Products of matrices that are finished before they are stored, by cuBLASLt.

The library comes with cuBLAS. CuPy has no calls of it, so it is called without. It chooses how to
compute a product from sizes, alignments and what follows, and may know no way: then it says so.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from typing import Any

from treadle.core import dtypes
from treadle.runtime.gpu.cublas import ELEMENT, ONE, ZERO, CublasError, sums_of
from treadle.runtime.gpu.finish import Ends, Finish
from treadle.runtime.gpu.product import Factor, Product

MOST_PLANS = 512  # one for each size and alignment that comes; the host keeps a few KB for each
_ALIGNMENT = 256  # bytes: the library distinguishes none beyond
_KEPT_ROWS = 8  # rows of what is kept begin at a multiple of so many elements
_NOT_SUPPORTED = 15

_POINTER, _INT, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
# The calls and the types of their parameters.
CALLS: dict[str, list[Any]] = {
    "cublasLtCreate": [_POINTER],
    "cublasLtMatmulDescCreate": [_POINTER, _INT, _INT],
    "cublasLtMatmulDescDestroy": [_POINTER],
    "cublasLtMatmulDescSetAttribute": [_POINTER, _INT, _POINTER, _SIZE],
    "cublasLtMatrixLayoutCreate": [
        _POINTER, _INT, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64,
    ],
    "cublasLtMatrixLayoutDestroy": [_POINTER],
    "cublasLtMatrixLayoutSetAttribute": [_POINTER, _INT, _POINTER, _SIZE],
    "cublasLtMatmulPreferenceCreate": [_POINTER],
    "cublasLtMatmulPreferenceDestroy": [_POINTER],
    "cublasLtMatmulPreferenceSetAttribute": [_POINTER, _INT, _POINTER, _SIZE],
    "cublasLtMatmulAlgoGetHeuristic": [*[_POINTER] * 7, _INT, _POINTER, _POINTER],
    "cublasLtMatmul": [*[_POINTER] * 14, _SIZE, _POINTER],
}  # fmt: skip
# Numbers of attributes and the types of their values: of an operation, a matrix and a choice.
OPERATION: dict[str, tuple[int, Any]] = {
    "TRANSA": (3, ctypes.c_int32), "TRANSB": (4, ctypes.c_int32), "EPILOGUE": (7, ctypes.c_uint32),
    "BIAS_POINTER": (8, ctypes.c_uint64), "EPILOGUE_AUX_POINTER": (11, ctypes.c_uint64),
    "EPILOGUE_AUX_LD": (12, ctypes.c_int64), "EPILOGUE_AUX_BATCH_STRIDE": (13, ctypes.c_int64),
}  # fmt: skip
LAYOUT: dict[str, tuple[int, Any]] = {
    "BATCH_COUNT": (5, ctypes.c_int32), "STRIDED_BATCH_OFFSET": (6, ctypes.c_int64),
}  # fmt: skip
PREFERENCE: dict[str, tuple[int, Any]] = {
    "MAX_WORKSPACE_BYTES": (1, ctypes.c_uint64), "REDUCTION_SCHEME_MASK": (3, ctypes.c_uint32),
    **{f"MIN_ALIGNMENT_{x}_BYTES": (5 + n, ctypes.c_uint32) for n, x in enumerate("ABCD")},
}  # fmt: skip
EPILOGUES = {"RELU": 2, "BIAS": 4, "GELU": 32, "AUX": 128}  # which are added up
_WHOLE_SUMS = 2  # parts of sums are added in the type that sums are computed in


class _Choice(ctypes.Structure):
    """``cublasLtMatmulHeuristicResult_t``."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8), ("workspace", _SIZE), ("state", _INT),
        ("waves", ctypes.c_float), ("reserved", _INT * 4),
    )  # fmt: skip


class CublasLt:
    """Calls of cuBLASLt in one stream of the current device.

    Args:
        library: cuBLASLt.
        stream: the stream's handle.
        workspace, size: memory of the device, and its bytes, that products may use.
    """

    def __init__(self, library: ctypes.CDLL, stream: int, workspace: int, size: int) -> None:
        self.library, self.stream = library, stream
        self.workspace, self.size = workspace, size
        self.handle = _POINTER()
        self.call("cublasLtCreate", ctypes.byref(self.handle))
        self.plans: OrderedDict[Any, Plan | None] = OrderedDict()

    def finished_product(self, product: Product, ends: Ends) -> bool:
        """See `treadle.runtime.gpu.driver.Driver.finished_product`."""
        if ends.finish.keeps and product.n % _KEPT_ROWS:
            return False
        plan = self._plan(product, ends)
        if plan is not None:
            plan(product, ends)
        return plan is not None

    def _plan(self, product: Product, ends: Ends) -> Plan | None:
        """How products of such sizes and alignments are computed; None where there is no way."""
        p = product
        addresses = p.b.address, p.a.address, ends.out, ends.bias, ends.kept
        key = (
            p.dtype, p.batch, p.m, p.n, p.k, p.a.turned, p.a.lead, p.a.step, p.b.turned, p.b.lead,
            p.b.step, p.step, p.tensor_float, ends.finish, *map(_alignment, addresses),
        )  # fmt: skip
        if key not in self.plans:
            self.plans[key] = Plan.of(self, product, ends)
            if len(self.plans) > MOST_PLANS:
                self.plans.popitem(last=False)
        self.plans.move_to_end(key)
        return self.plans[key]

    def call(self, name: str, *arguments: Any) -> None:
        """
        Raises:
            CublasError: the library refuses the call.
        """
        status = self.status(name, *arguments)
        if status:
            raise CublasError(f"{name} gives status {status}")

    def status(self, name: str, *arguments: Any) -> int:
        function = getattr(self.library, name)
        function.argtypes = CALLS[name]
        return int(function(*arguments))

    def made(self, kind: str, *arguments: Any) -> Description:
        """A new description, of an operation, a matrix or a choice."""
        place = _POINTER()
        self.call(f"cublasLt{kind}Create", ctypes.byref(place), *arguments)
        return Description(self, kind, place)


class Description:
    """An object of the library, which ends with this one."""

    def __init__(self, lt: CublasLt, kind: str, place: ctypes.c_void_p) -> None:
        self.lt, self.kind, self.place = lt, kind, place

    def set(self, attribute: tuple[int, Any], value: int) -> None:
        """Give an attribute a value."""
        number, kind = attribute
        given = kind(value)
        size = ctypes.sizeof(given)
        name = f"cublasLt{self.kind}SetAttribute"
        self.lt.call(name, self.place, number, ctypes.byref(given), size)

    def __del__(self) -> None:
        self.lt.status(f"cublasLt{self.kind}Destroy", self.place)


class Plan:
    """A product as cuBLASLt computes it.

    The library stores matrices column by column: to it each of ours is its transpose. So it
    multiplies the transposes in the other order; the vector along our columns lies along its rows.
    """

    def __init__(
        self, lt: CublasLt, operation: Description, layouts: list[Description], choice: _Choice,
        numbers: tuple[Any, Any],
    ) -> None:  # fmt: skip
        self.lt, self.operation, self.layouts = lt, operation, layouts
        self.choice, self.numbers = choice, numbers

    @classmethod
    def of(cls, lt: CublasLt, p: Product, ends: Ends) -> Plan | None:
        """The plan for a product; None where the library has none."""
        element, sums, wide = ELEMENT[p.dtype], *sums_of(p.dtype, p.tensor_float)
        scale = ELEMENT[dtypes.float64 if wide == 8 else dtypes.float32]
        operation = lt.made("MatmulDesc", sums, scale)
        operation.set(OPERATION["TRANSA"], p.b.turned)
        operation.set(OPERATION["TRANSB"], p.a.turned)
        operation.set(OPERATION["EPILOGUE"], epilogue(ends.finish))
        if ends.finish.keeps:
            operation.set(OPERATION["EPILOGUE_AUX_LD"], p.n)
            operation.set(OPERATION["EPILOGUE_AUX_BATCH_STRIDE"], p.step)
        _set_addresses(operation, ends)
        factors: list[tuple[Factor, int, int]] = [(p.b, p.k, p.n), (p.a, p.m, p.k)]
        layouts = [_layout(lt, element, p.batch, *_stored(*given)) for given in factors]
        layouts.append(_layout(lt, element, p.batch, p.n, p.m, p.n, p.step))
        a, b, d = layouts
        wanted = lt.made("MatmulPreference")
        wanted.set(PREFERENCE["MAX_WORKSPACE_BYTES"], lt.size)
        wanted.set(PREFERENCE["REDUCTION_SCHEME_MASK"], _WHOLE_SUMS)
        addresses = p.b.address, p.a.address, ends.out, ends.out
        for name, address in zip("ABCD", addresses, strict=True):
            wanted.set(PREFERENCE[f"MIN_ALIGNMENT_{name}_BYTES"], _alignment(address))
        choice, found = _Choice(), ctypes.c_int()
        status = lt.status(
            "cublasLtMatmulAlgoGetHeuristic", lt.handle, operation.place, a.place, b.place, d.place,
            d.place, wanted.place, 1, ctypes.byref(choice), ctypes.byref(found),
        )  # fmt: skip
        if status not in (0, _NOT_SUPPORTED):
            raise CublasError(f"cublasLtMatmulAlgoGetHeuristic gives status {status}")
        if status or not found.value or choice.state:
            return None
        return cls(lt, operation, layouts, choice, (ONE[wide], ZERO[wide]))

    def __call__(self, p: Product, ends: Ends) -> None:
        """Let the device compute it."""
        lt, byref = self.lt, ctypes.byref
        _set_addresses(self.operation, ends)
        a, b, d = (layout.place for layout in self.layouts)
        one, zero = self.numbers
        lt.call(
            "cublasLtMatmul", lt.handle, self.operation.place, byref(one), p.b.address, a,
            p.a.address, b, byref(zero), ends.out, d, ends.out, d, byref(self.choice.algorithm),
            lt.workspace, lt.size, lt.stream,
        )  # fmt: skip


def epilogue(finish: Finish) -> int:
    """The library's number of it."""
    found = EPILOGUES["BIAS"] if finish.bias else 0
    if finish.activation:
        found |= EPILOGUES[finish.activation.upper()]
    return found | (EPILOGUES["AUX"] if finish.keeps else 0)


def _set_addresses(operation: Description, ends: Ends) -> None:
    if ends.bias:
        operation.set(OPERATION["BIAS_POINTER"], ends.bias)
    if ends.kept:
        operation.set(OPERATION["EPILOGUE_AUX_POINTER"], ends.kept)


def _stored(factor: Factor, rows: int, columns: int) -> tuple[int, int, int, int]:
    """The rows and columns of a factor's matrices as the library sees them in memory, the elements
    from column to column, and from matrix to matrix."""
    if factor.turned:
        rows, columns = columns, rows
    return columns, rows, factor.lead, factor.step


def _layout(
    lt: CublasLt, element: int, batch: int, rows: int, columns: int, lead: int, step: int
) -> Description:
    made = lt.made("MatrixLayout", element, rows, columns, lead)
    if batch > 1:
        made.set(LAYOUT["BATCH_COUNT"], batch)
        made.set(LAYOUT["STRIDED_BATCH_OFFSET"], step)
    return made


def _alignment(address: int) -> int:
    """The largest power of two that divides an address, as far as it matters."""
    return min(address & -address or _ALIGNMENT, _ALIGNMENT)
