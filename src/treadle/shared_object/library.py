"""A library: its functions, their variables and constants, and what it is called."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.digests import digest
from treadle.core.locks import cached_property
from treadle.ops.state import Variable
from treadle.runtime.standalone import Objects
from treadle.shared_object.c_text import Names
from treadle.shared_object.functions import Function, all_variables, variable_name
from treadle.version import __version__

# What the header has beside functions and variables.
RESERVED = (
    "error", "failed", "free", "get_variable", "h", "invalid", "no_memory", "ok", "set_threads",
    "set_variable", "status", "variable", "variable_info", "variables", "version",
)  # fmt: skip


class Library:
    """What header, source and data are written of.

    Attributes:
        prefix: what all names in C begin with.
        file: the name of the shared object.
        objects: the machine code.
        functions: in the order in which they were given.
        variables: those of all functions.
        values: the values of the variables that they begin with.
        constants: the arrays that programs read, each once; constant_numbers: which of them are a
            program's own, in its order, for each function.
    """

    def __init__(self, prefix: str, file: str, objects: Objects, functions: list[Function]) -> None:
        self.prefix, self.file, self.objects, self.functions = prefix, file, objects, functions
        self.variables = all_variables(functions)
        self.values = [np.asarray(v.numpy(), order="C") for v in self.variables]
        known: dict[str, int] = {}
        self.constants: list[np.ndarray[Any, Any]] = []
        self.constant_numbers: list[list[int]] = []
        for function in functions:
            numbers = []
            for array in function.program.constants:
                key = digest(array.tobytes())
                if key not in known:
                    known[key] = len(known)
                    self.constants.append(array)
                numbers.append(known[key])
            self.constant_numbers.append(numbers)

    @cached_property
    def variable_names(self) -> list[str]:
        """The constants of C for the numbers of the variables."""
        taken = [*(f"{self.prefix}_{own}" for own in RESERVED)]
        taken += [name for f in self.functions for name in (f.c_name, f"{f.c_name}_init")]
        names = Names(*taken, in_capitals=True)
        return [
            names.of(f"{self.prefix}_{variable_name(v)}".upper()) for v in self.variables
        ]

    def number_of(self, variable: Variable) -> int:
        """The number of a variable."""
        return next(i for i, v in enumerate(self.variables) if v is variable)

    @property
    def words(self) -> dict[str, Any]:
        """What texts of the library say of it."""
        target = self.objects.target
        return {
            "prefix": self.prefix,
            "upper": self.prefix.upper(),
            "file": f"{self.prefix}.h",
            "library": self.file,
            "version": __version__,
            "machine": f"{target.triple} ({target.cpu})",
            "threads": self.objects.threads,
            "fingerprint": self.fingerprint,
        }

    @cached_property
    def fingerprint(self) -> str:
        """Tells libraries apart whose functions differ in C, or are made by another treadle."""
        said = [__version__, self.prefix]
        for f in self.functions:
            said += [f.c_name, *(f"{a.name} {a.text}" for a in (*f.arguments, *f.results))]
        said += [*self.variable_names, *(repr(v.spec) for v in self.variables)]
        return digest("\n".join(said), 16)
