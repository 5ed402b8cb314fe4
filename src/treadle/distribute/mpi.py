"""The workers of a program: processes that MPI started together, reached through mpi4py."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
from typing import Any

import numpy as np

from treadle.core import errors, locks
from treadle.core.tensor import NDArray
from treadle.distribute.lookout import Lookout
from treadle.ops.control.collectives import NATIVE, set_communicator
from treadle.runtime.collectives import counted, set_function, set_way

# Variables of the environment that launchers of MPI set: how many processes they started.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS")

_FAILED = ctypes.CFUNCTYPE(None, ctypes.c_int)
_LONGEST_END = 5.0  # seconds: MPI ends the others in that time, or this process ends alone


def started_by_mpi() -> bool:
    """Whether a launcher of MPI started several processes."""
    return any(os.environ.get(name, "1") not in ("", "1") for name in _SIZES)


class Workers:
    """The processes, of which this is one.

    Attributes:
        rank: the number of this process.
        size: how many there are.
        hosts: the name of each one's machine.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD.Dup()
        self._comm.Set_errhandler(mpi.ERRORS_RETURN)
        self.rank, self.size = int(self._comm.rank), int(self._comm.size)
        if self.size > 1 and mpi.Query_thread() != mpi.THREAD_MULTIPLE:
            raise errors.FailedPreconditionError(
                None, None,
                "MPI was begun for one thread: leave mpi4py.rc.thread_level as it is, 'multiple'",
            )  # fmt: skip
        about = (socket.gethostname(), os.getpid())
        self._processes: list[tuple[str, int]] = self._comm.allgather(about)
        self.hosts = [host for host, _ in self._processes]
        self._operations = {"sum": mpi.SUM, "min": mpi.MIN, "max": mpi.MAX}
        self._failed = _FAILED(self._fail)  # lives as long as programs may call it
        self._offer_to_programs()
        self.lookout = Lookout(self.rank, self._processes, self.say, self.end)
        if self.size > 1:
            self.lookout.begin(self.from_first)
            sys.excepthook = _Ending(self, sys.excepthook)

    def _offer_to_programs(self) -> None:
        """Tell compiled programs what to call."""
        library = ctypes.CDLL(self._mpi.__file__)  # with the library of MPI that it is linked to
        function = getattr(library, "MPI_Allreduce_c", None) or library.MPI_Allreduce
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        failed = ctypes.cast(self._failed, ctypes.c_void_p).value or 0
        set_function(address, self._handle(self._comm), failed)
        for how, operation in self._operations.items():
            for dtype in NATIVE:
                datatype = self._handle(self._datatype(dtype.np_dtype))
                set_way(how, dtype, datatype, self._handle(operation))

    def _handle(self, made: Any) -> int:
        """The handle of C that an object of mpi4py stands for: an int or a pointer."""
        kind = ctypes.c_int if self._mpi._sizeof(made) == 4 else ctypes.c_ssize_t
        return int(kind.from_address(self._mpi._addressof(made)).value)

    def _datatype(self, dtype: np.dtype[Any]) -> Any:
        return self._mpi._typedict[dtype.char]

    # -- exchanges ---------------------------------------------------------------------------------

    def all_reduce(self, array: NDArray, how: str) -> NDArray:
        """The arrays of all workers combined, "sum", "min" or "max"."""
        given = np.asarray(array, order="C")
        found = np.empty_like(given)
        kind = self._datatype(given.dtype)
        with counted():
            self._checked(
                self._comm.Allreduce, [given, kind], [found, kind], self._operations[how]
            )
        return found

    def all_gather(self, array: NDArray) -> NDArray:
        """The arrays of all workers along a new first axis; they have one shape."""
        given = np.asarray(array, order="C")
        found = np.empty((self.size, *given.shape), given.dtype)
        byte = self._mpi.BYTE
        with counted():
            sent, got = given.reshape(-1).view(np.uint8), found.reshape(-1).view(np.uint8)
            self._checked(self._comm.Allgather, [sent, byte], [got, byte])
        return found

    def from_first(self, value: Any) -> Any:
        """An object as the first worker has it."""
        with counted():
            return self._checked(self._comm.bcast, value)

    def _checked(self, exchange: Any, *args: Any) -> Any:
        try:
            return exchange(*args)
        except self._mpi.Exception as error:
            self._fail(error.Get_error_code())
            raise

    # -- the end -----------------------------------------------------------------------------------

    def _fail(self, code: int) -> None:
        """An exchange has failed: no worker can go on."""
        text = self._mpi.Get_error_string(code).splitlines()[0]
        self.lookout.report(f"worker {self.rank}: an exchange with the others failed: {text}")

    def say(self, text: str) -> None:
        """Tell the user why all workers end."""
        sys.stderr.write(f"\ntreadle: all {self.size} workers end: {text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """End all workers."""
        alone = threading.Timer(_LONGEST_END, os._exit, (1,))
        alone.daemon = True
        alone.start()
        self._mpi.COMM_WORLD.Abort(1)


class _Ending:
    """`sys.excepthook` of a worker: an error that nobody handles ends the others, too."""

    def __init__(self, workers: Workers, before: Any) -> None:
        self._workers, self._before = workers, before

    def __call__(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        self._before(kind, error, trace)
        first, *_ = [*str(error).splitlines(), ""]
        rank = self._workers.rank
        self._workers.say(f"worker {rank} ended with {kind.__name__}: {first}")
        self._workers.end()


@locks.made_once
def workers() -> Workers | None:
    """The workers; None where this process is alone and mpi4py is not installed.

    Raises:
        ImportError: MPI started several processes, and mpi4py is not installed.
    """
    try:
        from mpi4py import MPI
    except ImportError as error:
        if started_by_mpi():
            raise ImportError(
                "MultiWorkerMirroredStrategy needs mpi4py where MPI starts several workers: "
                f"pip install treadle[mpi] ({error})"
            ) from error
        return None
    found = Workers(MPI)
    set_communicator(found)
    return found
