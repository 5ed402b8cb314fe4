"""Classes of products: what is found out for one of a class holds for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core.records import record
from treadle.runtime.cpu.alike import Alike
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, WHOLE_BYTES
from treadle.runtime.cpu.matmul.byte_forms import operand_bytes
from treadle.runtime.cpu.matmul.candidates import all_choices, cost
from treadle.runtime.cpu.matmul.pairs import HALF
from treadle.runtime.cpu.matmul.tiling import Choice, Product, rule
from treadle.runtime.cpu.target import Target

MOST_BYTES = 128 << 20  # of operands and results: nobody has as much to spare for trying out
_EXACT = 32  # rows that count one by one; of more, the first binary digits count
_DIGITS = 4  # so classes are a few percent wide
_NUMBERS = (
    "batch", "m", "n", "k", "transpose_a", "transpose_b", "stride_a", "stride_b", "pairs", "lda",
    "ldb",
)  # fmt: skip


@record(frozen=True)
class Products(Alike):
    """Products that are alike (`class_of`), by the one that stands for them."""

    product: Product

    @property
    def element(self) -> str:
        return self.product.element

    @property
    def name(self) -> str:
        numbers = (getattr(self.product, name) for name in _NUMBERS)
        shown = ("-" if n is None else str(n) for n in numbers)
        return " ".join(["matmul", self.element, *shown])

    @staticmethod
    def named(name: str) -> Products:
        """The class of a `name`.

        Raises:
            ValueError: there is none.
        """
        kind, element, *shown = name.split() or [""]
        numbers: list[Any] = [None if n == "-" else int(n) for n in shown]
        if kind != "matmul" or element not in ELEMENT_BYTES:
            raise ValueError(f"{name!r} names no class of products")
        if len(numbers) != len(_NUMBERS) or None in numbers[:-2]:
            raise ValueError(f"{name!r} does not have the numbers of a product")
        return Products(Product(element, *numbers))

    @property
    def title(self) -> str:
        """Sizes as m x n x k, type and form."""
        p = self.product
        signs = {"s": "int8", "u": "uint8"}
        names = {"float": "float32", "double": "float64"} | {
            element: f"{signs[element[0]]} by {signs[element[1]]}" for element in WHOLE_BYTES
        }
        kind = "pairs of bfloat16" if p.pairs else names.get(p.element, p.element)
        turned = [f"{n} transposed" for n in "ab" if getattr(p, f"transpose_{n}")]
        many = f"{p.batch} of " if p.batch != 1 else ""
        return " ".join([f"{many}{p.m}x{p.n}x{p.k}", kind, *turned])

    @property
    def sizes(self) -> tuple[int, int, int]:
        return sizes(self.product)

    def rule(self, target: Target) -> Choice:
        return rule(self.product, target)

    def forms(self, target: Target, threads: int) -> set[Choice]:
        return all_choices(self.product, target, threads)

    def form(self, numbers: Sequence[int]) -> Choice:
        return Choice(*numbers)

    def cost(self, form: Choice, target: Target, threads: int) -> float:
        return cost(self.product, form, target, threads)


def class_of(product: Product) -> Products | None:
    """The class of a product; None where its sizes are not known, or where it is of a form that
    nobody tries out.

    The number of rows, which is the size of a batch in most programs, counts in about ten steps to
    each power of two. All else counts exactly: which lines collide in a cache depends on it.
    """
    known = [getattr(product, name) for name in _NUMBERS[:-2]]
    if product.inner is not None or product.panel_width or not all(type(d) is int for d in known):
        return None
    rows: list[Any] = [product.lda, product.ldb]
    if any(d is not None and type(d) is not int for d in rows) or 0 in known[:4]:
        return None
    m = _rounded(known[1])
    lda = product.lda
    if product.transpose_a and lda is None:
        m = known[1]  # it is the distance of A's rows, too
    found = Product(
        product.element, known[0], m, known[2], known[3], known[4], known[5],
        known[6], known[7], known[8], lda, product.ldb,
    )  # fmt: skip
    return Products(found) if sum(sizes(found)) <= MOST_BYTES else None


def sizes(product: Product) -> tuple[int, int, int]:
    """Bytes of the operands and of the result."""
    p, element = product, operand_bytes(product.element)
    result = HALF if p.pairs else ELEMENT_BYTES[p.element]
    numbers: list[Any] = [p.batch, p.m, p.n, p.k, p.stride_a, p.stride_b, *p.rows]
    batch, m, n, k, step_a, step_b, row_a, row_b = numbers
    count_a, length_a = (k, m) if p.transpose_a else (m, k)
    count_b, length_b = (n, k) if p.transpose_b else (k, n)
    a = (batch - 1) * step_a + (count_a - 1) * row_a + length_a
    b = (batch - 1) * step_b + (count_b - 1) * row_b + length_b
    return a * element, b * element, batch * m * n * result


def _rounded(rows: int) -> int:
    if rows <= _EXACT:
        return rows
    step = 1 << rows.bit_length() - _DIGITS
    return -(-rows // step) * step
