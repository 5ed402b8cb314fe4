"""Functions' converted twins: made from templates, which are remembered here and kept on disk.

The twin shares the original's globals, closure cells and defaults, so rebinding a name is seen.
"""

from __future__ import annotations

import linecache
import types

from treadle.autograph import facts, logs, memory, stored
from treadle.autograph.generated import AG
from treadle.autograph.template import Template
from treadle.core.origin import LINE_MAPS

_templates = memory.by_code()  # of code objects: lists of templates


def twin(function: types.FunctionType, operators: types.ModuleType) -> types.FunctionType:
    """The converted form of a function; the function itself where nothing is to convert.

    Args:
        operators: the module that the generated code calls.

    Raises:
        ConversionError: there is no source, or it has a statement that cannot be converted.
    """
    known = memory.twin_of(function)
    if known is None:
        template = template_of(function)
        made = None if template.code is None else instantiate(function, template.code, operators)
        memory.note_twin(function, made)
    else:
        made = known[1]
    return function if made is None else made


def template_of(
    function: types.FunctionType, recursive: bool = True, optional: bool = False,
    stacked: bool = False,
) -> Template:  # fmt: skip
    """The generated text and code for a function, made once per code object and set of facts.

    Args:
        optional: whether variables may be None in some runs (`converters.comparisons`).
        stacked: whether a function that calls itself becomes a loop with a stack
            (`converters.recursion`).
    """
    of_code = _templates.setdefault(function.__code__, {})
    key = (function.__code__.co_filename, id(function.__globals__), recursive, optional, stacked)
    made: list[Template] = of_code.setdefault(key, [])
    for template in made:
        if facts.hold(function, template.asked):
            return template
    made.append(_make_template(function, recursive, optional, stacked))
    return made[-1]


def _make_template(
    function: types.FunctionType, recursive: bool, optional: bool, stacked: bool
) -> Template:
    code = function.__code__
    key = stored.key_of(function, recursive, optional, stacked)
    known = None if key is None else stored.load(key, function, _filename(code))
    if known is not None:
        template = known
    else:
        from treadle.autograph.conversion import convert

        template = convert(function, recursive, optional, _filename(code), stacked)
        if key is not None:
            stored.keep(key, template)
    logs.tell_conversion(code, None if template.code is None else template.text)
    return template if template.code is None else _shown(template, template.code, code)


def _filename(code: types.CodeType) -> str:
    """The name under which `linecache` shall know the generated text."""
    return f"<autograph of {code.co_name} at {code.co_filename}:{code.co_firstlineno}>"


def _shown(template: Template, made: types.CodeType, original: types.CodeType) -> Template:
    """Let debuggers find the text, and errors the source, for as long as the code is alive."""
    filename = _filename(original)
    while filename in LINE_MAPS:
        filename = filename[:-1] + "'>"
    made = _named(made, filename)
    linecache.cache[filename] = (len(template.text), None, template.lines, filename)
    LINE_MAPS[filename] = {
        number: (template.source, line, name)
        for number, (line, name) in enumerate(template.origins, 1)
    }
    memory.forget_with(made, filename)
    return template._replace(code=made)


def _named(code: types.CodeType, filename: str) -> types.CodeType:
    """The code, and the code objects inside it, under a file name."""
    if code.co_filename == filename:
        return code
    constants = (
        _named(c, filename) if isinstance(c, types.CodeType) else c for c in code.co_consts
    )
    return code.replace(co_filename=filename, co_consts=tuple(constants))


def instantiate(
    function: types.FunctionType, code: types.CodeType, operators: types.ModuleType
) -> types.FunctionType:
    """`function` with the converted `code`: it shares globals, closure cells and defaults."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[AG] = types.CellType(operators)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__annotations__ = function.__annotations__
    made.__doc__ = function.__doc__
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    return made
