"""Whether the kernel lets this process use the matrix registers of AMX.

Their 8 KiB are part of what a thread keeps when another one runs, so Linux gives them to the
processes that ask (Documentation/arch/x86/xstate.rst). The answer holds for all threads of the
process, those that are there already among them, and for its children.
"""

from __future__ import annotations

import ctypes
import functools
import sys

_ARCH_PRCTL = 158  # the number of the system call on x86-64
_ARCH_REQ_XCOMP_PERM = 0x1023
_TILE_DATA = 18  # the number of the registers' part of the state


@functools.cache
def may_use_amx() -> bool:
    """Ask once. A kernel older than 5.16, a sandbox, or a stack for signals that is too small for
    the registers make it refuse; products are computed without them then."""
    if not sys.platform.startswith("linux"):
        return False
    call = ctypes.CDLL(None).syscall
    call.argtypes, call.restype = [ctypes.c_long] * 3, ctypes.c_long
    return int(call(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _TILE_DATA)) == 0
