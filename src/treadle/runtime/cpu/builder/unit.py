"""Functions that belong together, and the text of a module that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from treadle.runtime.cpu.builder.function import Callee, Function
from treadle.runtime.cpu.builder.types import VOID, BuildError, Signature, Type
from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.target import Target

Body: TypeAlias = Callable[..., None]  # writes a function, given it and its parameters


class Unit:
    """Collects functions, each written by a Python function that is called at once:

        unit = Unit()

        @unit.function(I64, a=I64, b=I64)
        def twice_sum(f: Function, a: Value, b: Value) -> None:
            f.ret((a + b) << 1)

    `twice_sum` is what other functions of the unit call then.
    """

    def __init__(self) -> None:
        self._declarations: dict[str, None] = {}
        self._variables: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        self._callees: dict[str, Callee] = {}

    def function(
        self, result: Type = VOID, /, *, internal: bool = True, attributes: str = "",
        **parameters: Type,
    ) -> Callable[[Body], Callee]:  # fmt: skip
        """Decorator: the function that the body writes. `internal` where only this unit calls it.

        Raises:
            BuildError: there is one of that name already, or its blocks do not fit together.
        """

        def decorated(body: Body) -> Callee:
            return self.add(body.__name__, body, parameters, result, internal, attributes)

        return decorated

    def add(
        self, name: str, body: Body, parameters: Mapping[str, Type], result: Type = VOID,
        internal: bool = True, attributes: str = "",
    ) -> Callee:  # fmt: skip
        """The same for a function whose name is made."""
        if name in self._functions:
            raise BuildError(f"there are two functions {name}")
        type_ = Signature(result, tuple(parameters.values()))
        fn = Function(name, type_, tuple(parameters))
        body(fn, *fn.parameters.values())
        self._functions[name] = fn.text("internal" if internal else "", attributes)
        self._declarations |= fn.declarations
        self._callees[name] = Callee(name, type_)
        return self._callees[name]

    def __getitem__(self, name: str) -> Callee:
        """A function of the unit."""
        return self._callees[name]

    def variable(self, name: str, body: str) -> None:
        """A variable of the module: ``internal global ptr null``."""
        self._variables[name] = body

    def external(self, name: str, result: Type, *parameters: Type) -> Callee:
        """A function that is defined elsewhere."""
        listed = ", ".join(p.text for p in parameters)
        self._declarations[f"{result.text} @{name}({listed})"] = None
        return Callee(name, Signature(result, parameters))

    def add_to(self, module: Module) -> None:
        """Define everything in a module, unless it has it.

        Raises:
            BuildError: the module has another function of the same name.
        """
        for declaration in self._declarations:
            module.declare(declaration)
        for name, body in self._variables.items():
            module.variable(name, body)
        for name, text in self._functions.items():
            module.define(name, text)
            if module.functions[name] != text:
                raise BuildError(f"the module has another function {name}")

    def text(self, target: Target, *others: Unit) -> str:
        """A module of these functions and those of other units."""
        module = Module(target)
        for unit in (self, *others):
            unit.add_to(module)
        return module.text()
