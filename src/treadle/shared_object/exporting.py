"""Export of functions and models to a native shared object."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.records import record
from treadle.core.spec import ResourceSpec
from treadle.runtime.cpu.target import named
from treadle.runtime.cpu.thread_count import MOST_THREADS, planned_workers
from treadle.runtime.standalone import Objects
from treadle.shared_object.building import build, compiler_for
from treadle.shared_object.c_text import Names
from treadle.shared_object.functions import described
from treadle.shared_object.header import header_text
from treadle.shared_object.library import RESERVED, Library
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.exported import concrete_of
from treadle.train import atomic


@record(frozen=True)
class Exported:
    """What `export` has written.

    Attributes:
        library: the shared object.
        header: the C header.
        functions: the names of the functions in C, by the names that they were given.
    """

    library: Path
    header: Path
    functions: dict[str, str]


def export(
    functions: Any, path: Any, /, *args: Any, target: str = "native", threads: int | None = None,
    name: str | None = None, compiler: str | None = None,
) -> Exported:  # fmt: skip
    """Compile functions or a model ahead of time: a shared object and a C header beside it, which
    need neither Python nor treadle.

    The functions are traced, but not run. Variables are part of the library, with the values that
    they have now; functions that assign them change the library's own, and the header has functions
    that read and set them. Other tensors are constants. Sizes that a signature leaves open are
    given by the caller in C.

    Args:
        functions: a Python function, one decorated with `td.function`, a concrete function, or a
            model; or a dict of names in C and functions, each alone or in a tuple before what its
            ``get_concrete_function`` takes.
        path: the file of the library, such as ``lib/libmodel.so``. The header, ``lib/model.h``, is
            beside it.
        args: what ``get_concrete_function`` of a single function takes: `TensorSpec`s and Python
            values. May be omitted for concrete functions, functions with an `input_signature`
            and models of known inputs.
        target: the machine that runs the library: "native" for this very processor; "x86-64",
            "x86-64-v2", "x86-64-v3" or "x86-64-v4" for any processor of that level; "aarch64" for
            any 64-bit Arm. See `TREADLE_TARGET` for sizes of caches.
        threads: the most that a call may use (``NAME_set_threads``); as many as this machine has
            processors when omitted. Each has workspace of its own.
        name: what all names in C begin with; the name of the file without ``lib`` when omitted.
        compiler: the command of the C compiler that links. When omitted: the environment variable
            ``CC``, cc, gcc or clang; for another architecture ``aarch64-linux-gnu-gcc``, or clang
            with lld.

    Returns:
        The paths of library and header, and the names of the functions in C.

    Raises:
        UnimplementedError: a function needs Python: it calls Python code, works with strings, or
            has an op without machine code. The text names the op and its line.
        InvalidArgumentError: a function takes or returns variables, or there is no function.
        FailedPreconditionError: there is no C compiler for the target, or it fails.
        ValueError: the target is unknown.
        TypeError: the path is none.
    """
    library_path = _path(path)
    machine = named(target)
    command = compiler_for(machine, compiler)
    workers = _workers(threads)
    prefix = _prefix(name, library_path)
    if not isinstance(functions, Mapping):
        functions = {_own_name(functions): (functions, *args)}
    elif args:
        raise _invalid("arguments of several functions stand beside each: (function, spec, ...)")
    if not functions:
        raise _invalid("there is no function to export")
    objects = Objects(machine, workers)
    made, names = [], Names(*(f"{prefix}_{own}" for own in RESERVED), in_capitals=True)
    for key, given in functions.items():
        function, *specs = given if isinstance(given, tuple) else (given,)
        concrete = concrete_of(function, specs, {})
        _check(concrete)
        c_name = names.of(f"{prefix}_{key}")
        made.append(described(key, c_name, concrete, objects.add(concrete.graph)))
    library = Library(prefix, library_path.name, objects, made)
    header = header_text(library)
    data = build(library, header, command)
    header_path = library_path.with_name(f"{prefix}.h")
    atomic.write(library_path, [data], "shared object")
    atomic.write(header_path, [header.encode()], "header")
    return Exported(library_path, header_path, {f.name: f.c_name for f in made})


def _invalid(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"shared_object.export: {text}{at(user_origin())}")


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        kind = type(path).__name__
        text = f"shared_object.export: the path of the library is expected, not an object of {kind}"
        raise TypeError(f"{text}{at(user_origin())}")
    return Path(path)


def _workers(threads: int | None) -> int:
    count = planned_workers() if threads is None else threads
    if not isinstance(count, int) or not 1 <= count <= MOST_THREADS:
        what = count if isinstance(count, int) else f"an object of {type(count).__name__}"
        raise _invalid(f"threads must be from 1 to {MOST_THREADS}, not {what}")
    return count


def _prefix(name: str | None, path: Path) -> str:
    """What all names in C begin with."""
    found = path.name.partition(".")[0].removeprefix("lib") if name is None else name
    if not re.fullmatch(r"[A-Za-z]\w*", found, re.ASCII):
        raise _invalid(f"{found!r} cannot begin a name in C; give another with name=...")
    return found


def _own_name(function: Callable[..., Any]) -> str:
    """What a function that is exported alone is called."""
    if isinstance(function, ConcreteFunction):
        return function.name
    found = getattr(function, "__name__", None) or getattr(function, "name", None)
    return found if isinstance(found, str) and found.isidentifier() else "call"


def _check(concrete: ConcreteFunction) -> None:
    for value in (*concrete.graph.arguments, *concrete.graph.results):
        if isinstance(value.spec, ResourceSpec):
            raise _invalid(f"{concrete.name} takes or returns a variable")
