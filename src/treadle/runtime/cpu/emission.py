"""Machine code from LLVM text, on any number of threads at once.

llvmlite holds one lock around every call, so that one thread at a time would generate code. LLVM
itself needs no more than a context and a target machine for each thread: the calls that take
long are made without that lock, and without the GIL.

Python raises the KeyboardInterrupt of a Ctrl-C in the main thread, between any two instructions:
in llvmlite's code it would come between freeing an object and noting that it is free. So the main
thread lets another one work and waits for it (`on_another_thread`).
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from treadle.core.safe_thread import SafeThread
from treadle.runtime.cpu.target import Target, llvm_binding

OPTIMIZE = "; optimize\n"  # the first line of modules that LLVM's passes improve
STRAIGHT = "; straight\n"  # the first line of modules that are too long to be improved
_OBJECT, _ASSEMBLY = 1, 0
_LEVEL = 2  # of LLVM's pipeline

_R = TypeVar("_R")
_machines: dict[str, list[Any]] = {}  # those that no thread uses, by the target's key


def object_file(text: str, target: Target) -> bytes:
    """The object file of a module.

    LLVM's passes run only where the text asks for them (`OPTIMIZE`): kernels are written in the
    shape that the code generator wants. Its own passes take more than linear time in the length of
    a function and are left out where the text says that little is gained by them (`STRAIGHT`).

    Raises:
        RuntimeError: the text is not valid LLVM IR.
    """
    return on_another_thread(lambda: _emit(text, target, _OBJECT))


def assembly_text(text: str, target: Target) -> str:
    """The assembly of a module, for people to read."""
    return on_another_thread(lambda: _emit(text, target, _ASSEMBLY)).decode()


def on_another_thread(work: Callable[[], _R]) -> _R:
    """What `work` gives or raises, done where no interrupt comes. If one comes here meanwhile, the
    work goes on and its result is dropped. No fork comes before its end."""
    if threading.current_thread() is not threading.main_thread():
        with _forks.put_off():
            return work()
    results: list[_R] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            with _forks.put_off():
                results.append(work())
        except BaseException as problem:
            problems.append(problem)

    thread = SafeThread(target=run, name="treadle-llvm")
    try:
        thread.start()
    except RuntimeError:  # the interpreter is ending, or there are too many threads
        run()
    else:
        thread.join()
    if problems:
        raise problems.pop()
    return results[0]


class _Forks:
    """Forks wait for the threads that are in the middle of LLVM's work: the child would find LLVM's
    and llvmlite's locks taken, by threads that do not exist there."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.at_work: set[int] = set()

    @contextlib.contextmanager
    def put_off(self) -> Iterator[None]:
        me = threading.get_ident()
        with self.changed:
            self.at_work.add(me)
        try:
            yield
        finally:
            with self.changed:
                self.at_work.discard(me)
                self.changed.notify_all()

    def before(self) -> None:
        """No thread begins such work before the fork is over."""
        self.changed.acquire()
        while self.at_work - {threading.get_ident()}:
            self.changed.wait()

    def in_parent(self) -> None:
        self.changed.release()

    def in_child(self) -> None:
        self.changed, self.at_work = threading.Condition(), set()


_forks = _Forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_forks.before, after_in_parent=_forks.in_parent, after_in_child=_forks.in_child
    )


def _emit(text: str, target: Target, kind: int) -> bytes:
    llvm = llvm_binding()
    if text.startswith(STRAIGHT):
        target = dataclasses.replace(target, opt=0)
    # The module holds its context: whatever exception comes between two instructions, the module
    # goes first and the context after it.
    with _parse(llvm, text, llvm.create_context()) as module:
        with llvm.ffi.OutputString() as error:
            if _unlocked(llvm, "LLVMPY_VerifyModule")(module, error):
                raise RuntimeError(str(error))  # invalid IR would end the process later
        if text.startswith(OPTIMIZE):
            _optimize(llvm, module, target)
        with llvm.ffi.OutputString() as error:
            emit = _unlocked(llvm, "LLVMPY_TargetMachineEmitToMemory")
            with _machine(target) as machine:
                buffer = emit(machine, module, kind, error)
            if not buffer:
                raise RuntimeError(str(error))
        lib = llvm.ffi.lib
        try:
            start, size = lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer)
            return ctypes.string_at(start, size)
        finally:
            lib.LLVMPY_DisposeMemoryBuffer(buffer)


def _optimize(llvm: Any, module: Any, target: Target) -> None:
    """LLVM's standard passes, in place. Floating arithmetic keeps its order and its rounding."""
    with _machine(target) as machine:
        module.triple, module.data_layout = target.triple, str(machine.target_data)
        options = llvm.create_pipeline_tuning_options(_LEVEL)
        options.loop_vectorization, options.slp_vectorization = True, False
        options.loop_interleaving = options.loop_unrolling = True
        builder = llvm.create_pass_builder(machine, options)
        passes = builder.getModulePassManager()
        _unlocked(llvm, "LLVMPY_RunNewModulePassManager")(passes, module, builder)


def _parse(llvm: Any, text: str, context: Any) -> Any:
    with llvm.ffi.OutputString() as error:
        parse = _unlocked(llvm, "LLVMPY_ParseAssembly")
        module = llvm.module.ModuleRef(parse(context, text.encode(), error), context)
        if error:
            module.close()
            raise RuntimeError(f"LLVM IR parsing error\n{error}")
    return module


def _unlocked(llvm: Any, name: str) -> Any:
    """A function of LLVM without llvmlite's lock; with it where llvmlite keeps them otherwise."""
    function = getattr(llvm.ffi.lib, name)
    return getattr(function, "_cfn", function)


@contextlib.contextmanager
def _machine(target: Target) -> Iterator[Any]:
    """A machine for a target that nobody else uses: emission is not reentrant, and making a machine
    takes time."""
    free = _machines.setdefault(target.key, [])
    try:
        machine = free.pop()
    except IndexError:
        machine = target.machine()
    yield machine
    free.append(machine)
