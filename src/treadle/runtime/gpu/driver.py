"""What programs ask of a GPU: the few calls through which they reach its driver.

`cupy_driver.py` has them by CuPy. The tests have them on the processor, where kernels run through
the shim and what goes to the host and back is counted (`tests/runtime/gpu/recorder.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from treadle.runtime.gpu.cudnn import Convolution
    from treadle.runtime.gpu.finish import Ends
    from treadle.runtime.gpu.kernels import KernelCode
    from treadle.runtime.gpu.machine import Gpu
    from treadle.runtime.gpu.product import Product

Array = np.ndarray[Any, Any]
Work = Callable[[], None]  # asks the driver for something


class CannotRecord(RuntimeError):
    """Some work cannot be recorded after all."""


class Memory(Protocol):
    """Some bytes of the device, which are given back with the last reference to the object.

    Attributes:
        address: of the first byte, a multiple of 256.
    """

    @property
    def address(self) -> int: ...


class Recording(Protocol):
    """Work that was recorded once and is submitted again as a whole."""

    def submit(self) -> None: ...


class Needs(NamedTuple):
    """What each thread of a compiled function takes of a multiprocessor.

    Attributes:
        registers: of 4 bytes.
        local: bytes of memory of its own, for arrays and what registers have no room for.
    """

    registers: int
    local: int


class Mark(Protocol):
    """A point among the work of a device."""

    def wait(self) -> None:
        """Wait until the device has got there."""


class Communicator(Protocol):
    """Some devices, one or several of this process, that exchange values. Each call is made once
    for those of this process, and is then part of the work of each; all processes make the same
    calls in the same order.

    The operands are a pair of addresses for each device of this process, in their order: of what it
    gives, and of what it gets.
    """

    def all_reduce(
        self, operands: Sequence[tuple[int, int]], count: int, dtype: Any, how: str
    ) -> None:
        """Combine arrays, by "sum", "min" or "max"; all get the same bits."""

    def all_gather(self, operands: Sequence[tuple[int, int]], size: int) -> None:
        """All get the bytes that each gives, one after the other."""

    def broadcast(self, operands: Sequence[tuple[int, int]], size: int, root: int) -> None:
        """All get the bytes that the one of this number gives."""


class Driver(Protocol):
    """One device. Whatever it is asked to do happens in the order in which it was asked, all
    of it in one stream: nothing waits but `download` and `synchronize`. Only `copy_ahead` has a
    stream of its own.

    Attributes:
        gpu: the record that code is fitted to.
        library: the module with NumPy's functions for arrays of the device (`cupy`), which
            routines are written with.
    """

    @property
    def gpu(self) -> Gpu: ...

    @property
    def library(self) -> Any: ...

    def active(self) -> AbstractContextManager[None]:
        """Within, the other methods may be called: the device is this thread's current one."""

    def computing(self) -> AbstractContextManager[None]:
        """Within, functions of `library` take memory as `allocate` does; those of its ``linalg``
        wait for the device and raise LinAlgError for matrices that they refuse."""

    def allocate(self, size: int) -> Memory:
        """Memory for so many bytes, at least one.

        Raises:
            MemoryError: the device has no room for it, although all unused memory was given back.
        """

    def memory_use(self) -> dict[str, int]:
        """Bytes: "current" is in use, "peak" was the most at once, "kept" waits to be used."""

    def reset_peak(self) -> None:
        """Let the peak begin at what is in use now."""

    def give_back(self) -> None:
        """Give the device the memory that is kept, so that other programs have it."""

    def array(
        self, address: int, dtype: Any, shape: Sequence[int], strides: Sequence[int] | None = None
    ) -> Any:
        """Memory as an array of `library`: it keeps nothing alive.

        Args:
            strides: bytes from element to element along each axis; None: in row-major order.
        """

    def exported(self, owner: object, address: int, dtype: Any, shape: Sequence[int]) -> Any:
        """Memory as an array of `library` that keeps `owner` alive. What was asked for before is
        done before another library reads it through its protocols (DLPack)."""

    def imported(self, external: Any) -> tuple[Any, int, Any, tuple[int, ...]] | None:
        """What keeps the elements of an array of another library alive, their address, dtype and
        shape, contiguous in row-major order; None where it is not on this device.

        Not called within `active`: `library` takes the stream of the caller for that in which its
        own arrays were made, whose work is to be done first."""

    def upload(self, address: int, array: Array) -> None:
        """Copy the elements of a C-contiguous array to the device. The array may change at once."""

    def download(self, array: Array, address: int) -> None:
        """Copy elements from the device into a C-contiguous array, and wait for them."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes from one address of the device to another."""

    def copy_from(self, other: Any, target: int, source: int, size: int) -> None:
        """Copy bytes from an address of another device of the same kind of driver, whose work this
        does not wait for: see `mark` and `follow`."""

    @property
    def identity(self) -> str:
        """Which GPU of its machine the device is a part of."""

    def nccl_missing(self) -> str | None:
        """Why no library exchanges values with other devices; None where one does."""

    def communicator(self, drivers: Sequence[Any]) -> Communicator:
        """What lets a library exchange values between devices of this process.

        Raises:
            UnavailableError: there is no such library, or the devices are parts of one.
        """

    def joined_communicator(
        self, rank: int, size: int, agree: Callable[[bytes | None], bytes]
    ) -> Communicator:
        """The same between processes, which have a device each and call this together.

        Args:
            rank: the number of this process; size: how many there are.
            agree: gives every process the bytes that the first one has.

        Raises:
            UnavailableError: there is no such library.
        """

    def allocate_ahead(self, size: int) -> tuple[Memory, Memory]:
        """Memory of the host that `copy_ahead` reads, and of the device that it writes. Any thread
        may ask for it, and for copies, also while another one works or records.

        Raises:
            MemoryError: there is no room for it.
        """

    def copy_ahead(self, target: int, source: int, size: int, after: Mark | None) -> Mark:
        """Copy bytes to the device, after a mark of the other work and beside what follows it. The
        mark that this gives is at the end of the copy."""

    def mark(self) -> Mark:
        """A mark behind everything that was asked for by now."""

    def follow(self, mark: Mark) -> None:
        """What is asked for from now on happens after a mark of `copy_ahead`, or of another
        device."""

    def clear(self, address: int, size: int) -> None:
        """Fill bytes with zeros."""

    def open_products(self) -> None:
        """Let the library that multiplies matrices take the memory that it needs. The first product
        does so too, but none may be the first one while work is recorded."""

    def product(self, product: Product) -> None:
        """Multiply matrices."""

    def finished_product(self, product: Product, ends: Ends) -> bool:
        """Multiply matrices and finish the results, which go to ``ends.out``; False where no
        library of the device does both: nothing was done."""

    def convolution(self, asked: Convolution) -> Callable[..., None] | None:
        """What lets a library of the device compute a convolution, given the addresses of images,
        filters and outputs, and of the vector that ``asked.finish`` adds; None where no library
        does. The first call for a convolution takes time and memory: none may be recorded then."""

    def triangles(self, matrix: Any) -> tuple[Any, Any, Any]:
        """(P, L, U) of a square array of `library`, which is ``P @ L @ U``: P puts rows in another
        order, L and U are a lower triangle with ones in its diagonal and an upper one."""

    def eigenvectors(self, matrices: Any) -> tuple[Any, Any] | None:
        """The complex eigenvalues [..., n] of arrays [..., n, n] of `library`, and the eigenvectors
        in columns, of length 1; None where the version of the library has no function for it."""

    def load(self, codes: Sequence[KernelCode]) -> list[list[Any]]:
        """Compile kernels; the functions of the stages of each, for `launch`.

        Raises:
            Unsupported: the compiler of the device refuses them; the message has its words.
        """

    def needs(self, function: Any) -> Needs | None:
        """What one of these functions takes; None where the device does not tell."""

    def launch(
        self, function: Any, blocks: int, threads: int, shared: int, parameters: int
    ) -> None:
        """Run a stage of a kernel.

        Args:
            shared: bytes of memory that the threads of a block share.
            parameters: the address of an array of pointers, one to each parameter; what they point
                to is read at once.
        """

    def synchronize(self) -> None:
        """Wait until the device has done everything."""

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        """What is raised where some work cannot be recorded: `end_recording` is to be called, and
        the work to be done without."""

    def begin_recording(self) -> None:
        """Record what is asked for from now on by this thread, instead of doing it."""

    def choose(self, flag: int, then: Work, otherwise: Work | None) -> None:
        """In a recording, where the device `decides`: do what `then` asks for where the bool at an
        address is true by the time that the device gets there, else what `otherwise` asks for.

        Raises:
            CannotRecord: the device refuses it; `end_recording` is to be called.
        """

    def repeat(self, flag: int, body: Work) -> None:
        """The same: do what `body` asks for as long as the bool is true, which is looked at before
        each time."""

    def end_recording(self) -> Recording | None:
        """What was recorded; None where some of it cannot be."""
