"""Operators of convolutions on a circle, which Fourier transforms make diagonal."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.shapes import Dim, TensorShape, product
from treadle.core.tensor import Tensor
from treadle.linear_operators.base import LinearOperator, held
from treadle.ops import asserts
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.unary import abs as absolute
from treadle.ops.elementwise.unary import log
from treadle.ops.indexing.repeating import roll
from treadle.ops.linalg import matrix_functions as matrices
from treadle.ops.linalg.fourier import FOURIER
from treadle.ops.reductions.reduction import reduce_mean, reduce_prod, reduce_sum
from treadle.ops.registry import run
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.permuting import reverse, swap_last
from treadle.ops.shaping.reshaping import reshape_to


class _Circulant(LinearOperator):
    """Circulant matrices, whose blocks are circulant in turn for depths above 1.

    Attributes:
        depth: how many axes an array has that a row of the matrices stands for.
    """

    parts, settings = ("_held",), ()
    depth = 1

    @property
    def event_axes(self) -> tuple[int, ...]:  # type: ignore[override]
        """See `LinearOperator`."""
        return (self.depth,)

    def __init__(
        self, spectrum: Any, input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = True,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._held = held(spectrum)
        kind = self._held.dtype
        if not (kind.is_complex or kind.is_floating):
            raise TypeError(self._text(f"spectrum must be floating or complex, not {kind.name}"))
        if is_square is False:
            raise self._wrong("a circulant matrix is square")
        if not kind.is_complex:
            if is_self_adjoint is False:
                raise self._wrong("a real spectrum always belongs to a self-adjoint operator")
            is_self_adjoint = True
        super().__init__(
            input_output_dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True,
            name,
        )  # fmt: skip
        if len(self._held.shape) < self.depth:
            raise self._wrong(
                f"spectrum must have at least {self.depth} axes, not shape {self._held.shape}"
            )

    @property
    def spectrum(self) -> Any:
        """The Fourier transforms of the convolutions' kernels, as they were given."""
        return self._held

    @property
    def block_depth(self) -> int:
        """How many axes of the spectrum belong to one matrix."""
        return self.depth

    @property
    def block_shape(self) -> TensorShape:
        """The sizes of these axes."""
        return TensorShape(self._block())

    def block_shape_tensor(self) -> Tensor:
        """The sizes of these axes as a vector of int32."""
        return stack([dims_tensor(d, dtypes.int32) for d in self._block()])

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """What is convolved with: the inverse transform of the spectrum, in the operator's
        dtype."""
        return self._real_or_complex(self._transformed(self._complex_spectrum(), inverse=True))

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> None:
        """Raise InvalidArgumentError unless kernels of this spectrum are real, up to roundings."""
        spectrum = self._complex_spectrum()
        axes = list(range(spectrum.ndim - self.depth, spectrum.ndim))
        turned = roll(reverse(spectrum, axes), [1] * self.depth, axes)
        largest = 1.0 + cast(reduce_sum(absolute(spectrum)), self.dtype.real_dtype)
        limit = self._rounding() * 100 * largest
        distance = cast(absolute(spectrum - conj(turned)), limit.dtype)
        asserts.assert_less_equal(distance, limit, message="Spectrum was not Hermitian")

    # -- how it is computed --------------------------------------------------------------------

    def _block(self) -> tuple[Dim, ...]:
        return self._numbers().dims[-self.depth :]

    def _numbers(self) -> Tensor:
        return convert_to_tensor(self._held)

    def _complex_spectrum(self) -> Tensor:
        numbers = self._numbers()
        if numbers.dtype.is_complex:
            return numbers
        wide = numbers.dtype is dtypes.float64
        return cast(numbers, dtypes.complex128 if wide else dtypes.complex64)

    def _transformed(self, x: Tensor, inverse: bool) -> Tensor:
        """The transforms along the last axes."""
        for axis in range(x.ndim - self.depth, x.ndim):
            x = run(FOURIER, x, inverse=inverse, axis=axis)
        if inverse:
            count = dims_tensor(product(x.dims[-self.depth :]), dtypes.int64)
            x = x / cast(count, x.dtype)
        return x

    def _real_or_complex(self, x: Tensor) -> Tensor:
        """Complex numbers in the operator's dtype: their real parts where that is real."""
        return cast(x, self.dtype)

    def _flat(self, x: Tensor) -> Tensor:
        """The axes of a block as one."""
        return reshape_to(x, (*x.dims[: -self.depth], product(x.dims[-self.depth :])))

    def _by_spectrum(self, x: Tensor, factor: Tensor) -> Tensor:
        """Columns of x multiplied by a factor of each frequency."""
        block = self._block()
        rows = cast(swap_last(x), factor.dtype)
        waves = self._transformed(reshape_to(rows, (*rows.dims[:-1], *block)), inverse=False)
        lead = factor.ndim - self.depth
        expanded = reshape_to(factor, (*factor.dims[:lead], 1, *block))
        found = self._flat(self._transformed(waves * expanded, inverse=True))
        return swap_last(self._real_or_complex(found))

    def _shape(self) -> Any:
        dims = self._numbers().dims
        size = product(dims[-self.depth :])
        return (*dims[: -self.depth], size, size)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        operand = matrices.adjoint(x) if adjoint_arg else x
        spectrum = self._complex_spectrum()
        return self._by_spectrum(operand, conj(spectrum) if adjoint else spectrum)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        operand = matrices.adjoint(rhs) if adjoint_arg else rhs
        spectrum = self._complex_spectrum()
        return self._by_spectrum(operand, 1 / (conj(spectrum) if adjoint else spectrum))

    def _diag_part(self) -> Tensor:
        middle = reduce_mean(self._flat(self._complex_spectrum()), -1, keepdims=True)
        return broadcast_dims(self._real_or_complex(middle), self._flat(self._numbers()).dims)

    def _trace(self) -> Tensor:
        return self._real_or_complex(reduce_sum(self._flat(self._complex_spectrum()), -1))

    def _determinant(self) -> Tensor:
        return self._real_or_complex(reduce_prod(self._flat(self._complex_spectrum()), -1))

    def _log_abs_determinant(self) -> Tensor:
        return reduce_sum(log(self._singular_values()), -1)

    def _eigvals(self) -> Tensor:
        return self._flat(self._numbers())

    def _singular_values(self) -> Tensor:
        return absolute(self._flat(self._numbers()))

    def _adjoint(self) -> LinearOperator:
        return self._like(conj(self._complex_spectrum()))

    def _inverse(self) -> LinearOperator:
        return self._like(1 / self._numbers())

    def _like(self, spectrum: Tensor) -> LinearOperator:
        return type(self)(
            spectrum, self.dtype, self.is_non_singular, self.is_self_adjoint,
            self.is_positive_definite,
        )  # fmt: skip

    def _times(self, other: LinearOperator) -> LinearOperator:
        # The real parts of a product are no product of real parts.
        if isinstance(other, _Circulant) and other.depth == self.depth and self.dtype.is_complex:
            product_of_both = self._complex_spectrum() * other._complex_spectrum()
            return type(self)(product_of_both, self.dtype)
        return super()._times(other)


class LinearOperatorCirculant(_Circulant):
    """The operator of circulant matrices: each column is the one before, moved down by one place.

    Products are convolutions on a circle, by Fourier transforms.

    Args:
        spectrum: [..., n], floats or complex numbers: the Fourier transform of the first column.
        input_output_dtype: the operator's dtype. Where it is real, the real parts count.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`; it
            is square, and self-adjoint where the spectrum is real.

    Raises:
        TypeError: the spectrum holds other numbers.
        ValueError: it has too few axes, or something is said not to hold that does.
    """


class LinearOperatorCirculant2D(_Circulant):
    """The operator of block circulant matrices with circulant blocks: convolutions of images on a
    torus.

    Args:
        spectrum: [..., n0, n1]; the matrices have n0 * n1 rows.
        input_output_dtype, is_non_singular, is_self_adjoint, is_positive_definite, is_square: see
            `LinearOperatorCirculant`.

    Raises:
        TypeError, ValueError: as for `LinearOperatorCirculant`.
    """

    depth = 2


class LinearOperatorCirculant3D(_Circulant):
    """The operator of nested block circulant matrices: convolutions of volumes.

    Args:
        spectrum: [..., n0, n1, n2]; the matrices have n0 * n1 * n2 rows.
        input_output_dtype, is_non_singular, is_self_adjoint, is_positive_definite, is_square: see
            `LinearOperatorCirculant`.

    Raises:
        TypeError, ValueError: as for `LinearOperatorCirculant`.
    """

    depth = 3
