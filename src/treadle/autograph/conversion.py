"""From a Python function to its converted form: the whole pipeline, in order."""

from __future__ import annotations

import ast
import functools
import types
from typing import Any

import gast

from treadle.autograph import build, checks, comments, parsing, resolution
from treadle.autograph.analysis.activity import local_names, parameters, scope_of
from treadle.autograph.analysis.definedness import definedness
from treadle.autograph.analysis.jumps import statements
from treadle.autograph.analysis.liveness import liveness
from treadle.autograph.analysis.walking import walk
from treadle.autograph.converters.chains import split_chains
from treadle.autograph.converters.deletions import mark_deletions
from treadle.autograph.converters.expressions import Expressions
from treadle.autograph.converters.functional import Functional
from treadle.autograph.converters.handlers import refuse_of_branches
from treadle.autograph.converters.items import Items
from treadle.autograph.converters.jumps import lower_jumps
from treadle.autograph.converters.left_to_python import decide_python
from treadle.autograph.converters.matching import Matching
from treadle.autograph.converters.options import Refuse, take_options
from treadle.autograph.converters.outer import Outer
from treadle.autograph.converters.scoping import explicit_super, is_generator, mangle
from treadle.autograph.converters.sequencing import Sequencing
from treadle.autograph.converters.shared_variables import (
    Readers,
    check_reads,
    shared_variables,
    without_value,
)
from treadle.autograph.errors import ConversionError
from treadle.autograph.facts import Facts
from treadle.autograph.generated import code_of, moved_lines
from treadle.autograph.line_numbers import names_by_line, separate_lines
from treadle.autograph.names import Names
from treadle.autograph.printing import print_function
from treadle.autograph.template import Template


def convert(
    function: types.FunctionType, recursive: bool, optional: bool, filename: str,
    stacked: bool = False,
) -> Template:  # fmt: skip
    """The converted form of a function, its code compiled under a file name.

    Args:
        optional: whether variables may be None in some runs.
        stacked: whether a function that calls itself becomes a loop with a stack.

    Raises:
        ConversionError: there is no source, or it has a statement that cannot be converted, or
            its statements and expressions are nested too deeply.
    """
    source = parsing.find(function)
    try:
        return _template(function, source, recursive, optional, filename, stacked)
    except RecursionError:
        code = function.__code__
        raise ConversionError(
            f"{code.co_qualname} is nested too deeply to be converted: split long chains of elif, "
            f"and, or and operators into parts ({code.co_filename}:{code.co_firstlineno})"
        ) from None


def _template(
    function: types.FunctionType, source: parsing.Source, recursive: bool, optional: bool,
    filename: str, stacked: bool,
) -> Template:  # fmt: skip
    checks.check(source)
    root = gast.ast_to_gast(source.node)
    root, asked = _convert(root, function, source, recursive, optional, stacked)
    printed = print_function(root, source.lines)
    lines = [line + "\n" for line in printed.lines]
    if f"{build.AG}." not in printed.text:
        return Template(printed.text, source.filename, lines, [], None, asked, [])
    code = function.__code__
    tree = ast.parse(printed.text, filename).body[0]
    names = names_by_line(tree, root)
    origins = [
        (origin, names.get(number, code.co_name))
        for number, origin in enumerate(printed.origins, 1)
    ]
    for line, shown in separate_lines(tree, root, printed):
        origins.append((line, names.get(shown, code.co_name)))
        lines.append(lines[shown - 1])
    moved = moved_lines(tree, printed.text)
    made = code_of(tree, filename, code)
    return Template(printed.text, source.filename, lines, origins, made, asked, moved)


def _convert(
    root: Any, function: types.FunctionType, source: parsing.Source, recursive: bool,
    optional: bool, stacked: bool,
) -> tuple[Any, dict[str, Facts]]:  # fmt: skip
    """The pipeline for a function and those defined inside it. Gives the new tree, and the facts
    about names that were asked for."""
    nodes = list(walk(root))
    used = {n.id for n in nodes if isinstance(n, gast.Name)}
    used |= {n.name for n in nodes if isinstance(n, gast.FunctionDef | gast.ClassDef)}
    names = Names(used | {build.AG})
    if not isinstance(root, gast.Lambda):
        comments.attach(root, source.lines)  # first: the tree is still as in the source
    if optional:
        from treadle.autograph.converters.optional import convert_optional

        root = convert_optional(root, function, names, stacked)
    if source.class_name is not None:
        mangle(root, source.class_name)
    resolver = resolution.Resolver(function, root)
    if isinstance(root, gast.Lambda):
        root.body = Expressions(resolver, set(), recursive).visit(root.body)
        return root, resolver.asked
    root.decorator_list = []
    if "__class__" in function.__code__.co_freevars:
        explicit_super(root)
    refuse = functools.partial(checks.refusal, source)
    return _Function(root, resolver, names, recursive, refuse).convert(), resolver.asked


class _Function:
    """Converts one function definition in place."""

    def __init__(
        self,
        node: Any,
        resolver: resolution.Resolver,
        names: Names,
        recursive: bool,
        refuse: Refuse,
    ) -> None:
        self.node = node
        self.resolver = resolver
        self.names = names
        self.recursive = recursive
        self.refuse = refuse

    def convert(self) -> Any:
        node = self.node
        inner = self.convert_inner()
        take_options(node.body, self.resolver, self.refuse)
        inner |= self.simplify()
        self.update_items()
        decide_python(node.body)
        node.body = lower_jumps(node.body, self.names)
        in_cells = shared_variables(node, self.resolver.used_up, self.names.given)
        live = liveness(node.body)
        local = frozenset(local_names(node))  # flags of jumps included
        defined = definedness(node.body, frozenset(parameters(node.args)), local)
        kept = list(walk(node))  # ids in `live` and `defined` stay taken
        unset = without_value(node.body, in_cells, defined)
        check_reads(node.body, unset)
        outer = Outer(node, in_cells, unset)
        expressions = Expressions(self.resolver, inner, self.recursive)
        node.body = [expressions.visit(s) for s in node.body]
        refuse_of_branches(node.body)
        functional = Functional(live, defined, self.names, outer, unset)
        node.body = functional.block(node.body)
        self.mark_undefined(functional)
        managed = (functional.managed | defined.deleted) - self.names.given
        _CheckLoads(defined.doubtful, managed).visit(node)
        del kept
        return node

    def simplify(self) -> set[str]:
        """Write statements in terms of simpler ones. Returns the names of functions it makes."""
        body = self.node.body
        matching = Matching(body, self.names)
        matching.block(body)
        split_chains(body, self.names)
        Sequencing(self.names).block(body)
        mark_deletions(body)
        return matching.helpers

    def update_items(self) -> None:
        """Assignments to items become assignments to variables, which the analyses then see."""
        body = self.node.body
        readers = Readers(body, self.resolver.used_up, self.names.given)
        Items(
            local_names(self.node) | set(scope_of(self.node).declared),
            self.resolver.containers(self.node),
            self.names,
            readers.share,
            self.resolver.is_harmless,
            self.resolver.builtin(build.load("slice")) is not None,
        ).block(body)

    def convert_inner(self) -> set[str]:
        """Convert nested functions; gives the names that stand for nothing but these."""
        found: dict[str, int] = {}
        for node in statements(self.node.body):
            if isinstance(node, gast.FunctionDef) and not is_generator(node):
                inner = self.resolver.inner(node)
                _Function(node, inner, self.names, self.recursive, self.refuse).convert()
                if not node.decorator_list:
                    found[node.name] = found.get(node.name, 0) + 1
            elif isinstance(node, gast.ClassDef):
                self.convert_methods(node)
        stores = [n.id for n in walk(self.node) if isinstance(n, gast.Name)
                  and not isinstance(n.ctx, gast.Load)]  # fmt: skip
        return {name for name in found if name not in stores}

    def convert_methods(self, node: Any) -> None:
        """Convert the methods of a class that is defined inside the function."""
        node.converted = True  # printed anew
        for inner in statements(node.body):
            if isinstance(inner, gast.ClassDef):
                self.convert_methods(inner)
            elif isinstance(inner, gast.FunctionDef) and not is_generator(inner):
                explicit_super(inner)
                resolver = self.resolver.inner(inner)
                _Function(inner, resolver, self.names, self.recursive, self.refuse).convert()

    def mark_undefined(self, functional: Functional) -> None:
        body = self.node.body
        at = body[0]
        start = 1 if ast.get_docstring(gast.gast_to_ast(self.node)) is not None else 0
        marks = [build.assign([n], build.undefined(n), at) for n in functional.entry]
        body[start:start] = marks


class _CheckLoads(gast.NodeTransformer):  # type: ignore[misc]
    """Reads of variables that may be undefined: ``y`` becomes ``ag__.defined(y)``."""

    def __init__(self, doubtful: dict[int, str], managed: set[str]) -> None:
        self.doubtful = doubtful
        self.managed = managed

    def visit_Name(self, node: Any) -> Any:
        if self.doubtful.get(id(node)) in self.managed:
            return build.operator("defined", node)
        return node
