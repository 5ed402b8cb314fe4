"""The C header of a library."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.shapes import SymbolicDim, product
from treadle.ops.state import Variable
from treadle.shared_object.c_text import comment
from treadle.shared_object.functions import Array, Function, variable_name
from treadle.shared_object.library import Library

_HEAD = """\
/*
 * {file}: {count} in {library}.
 *
 * treadle {version} wrote both, for {machine}.
 * The library needs no Python. It may be linked with a program, or loaded with dlopen.
 *
 * Arrays are in row-major order, aligned to their elements, and do not overlap. A call gets a
 * struct with the arguments and with places for the results:
 *
 *     struct {prefix}_FUNCTION call = {upper}_FUNCTION_INIT;
 *     call.x.data = ...; call.x.shape[0] = ...;
 *     if ({prefix}_FUNCTION(&call) != {upper}_OK)
 *         fputs({prefix}_error(), stderr);
 *
 * `data` of a result is memory of the caller with room for `room` elements; or NULL: the library
 * allocates the result then, and the caller gives it back with {prefix}_free. The call writes the
 * sizes of results to `shape`. Functions may be called by several threads at once.
 */
#ifndef {upper}_H
#define {upper}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* What functions return. */
enum {prefix}_status {{
    {upper}_OK = 0,
    {upper}_INVALID = 1,  /* an argument has a wrong shape, or there is no room for a result */
    {upper}_FAILED = 2,   /* a check of the program failed: an assertion, a position out of range;
                             or the processor lacks instructions */
    {upper}_NO_MEMORY = 3
}};

/* Why the last call of this thread that did not return {upper}_OK failed. */
const char *{prefix}_error(void);

/* Free a result that the library allocated. */
void {prefix}_free(void *data);

/* How many threads share the work of a call: 1 at first, at most {threads}; 0: one for each
 * processor. Results do not depend on it. */
int {prefix}_set_threads(int count);

/* What the library was made of: {upper}_VERSION where it is the one of this header. */
#define {upper}_VERSION "{fingerprint}"
const char *{prefix}_version(void);
"""

_VARIABLES = """
/* Variables: what functions remember from call to call. */
enum {prefix}_variable {{
{members}
    {upper}_VARIABLES = {count} /* how many there are */
}};

struct {prefix}_variable_info {{
    const char *name, *dtype;
    int rank;
    const int64_t *shape;
    size_t bytes;
}};

/* NULL where there is no variable of that number. */
const struct {prefix}_variable_info *{prefix}_variable_info(int variable);

/* Copy the elements of a variable, which are so many bytes. */
int {prefix}_get_variable(int variable, void *elements, size_t bytes);
int {prefix}_set_variable(int variable, const void *elements, size_t bytes);
"""

_TAIL = """
#ifdef __cplusplus
}
#endif

#endif
"""


def header_text(library: Library) -> str:
    """The header."""
    count = len(library.functions)
    words = library.words | {"count": "one function" if count == 1 else f"{count} functions"}
    parts = [_HEAD.format(**words)]
    if library.variables:
        members = [
            f"    {library.variable_names[number]} = {number}, /* {comment(variable_text(v))} */"
            for number, v in enumerate(library.variables)
        ]
        parts.append(
            _VARIABLES.format(
                prefix=library.prefix, upper=library.prefix.upper(), count=len(members),
                members="\n".join(members),
            )  # fmt: skip
        )
    parts += [_function_text(f) for f in library.functions]
    return "".join(parts) + _TAIL


def variable_text(variable: Variable) -> str:
    """A variable's name, dtype and sizes."""
    sizes = ", ".join(map(str, variable.spec.dims))
    return f"{variable_name(variable)}, {variable.spec.dtype.name} [{sizes}]"


def _function_text(function: Function) -> str:
    lines = ["", "/*", f" * {comment(function.name)}"]
    for title, arrays in (("Arguments", function.arguments), ("Results", function.results)):
        if arrays:
            lines += [" *", f" * {title}:"]
            lines += [f" *     {a.name}: {comment(a.text)}" for a in arrays]
    written = {id(v) for v in function.writes}
    read = [v for v in function.reads if id(v) not in written]
    for verb, variables in (("reads", read), ("changes", function.writes)):
        if variables:
            lines += [" *", *_wrapped(f"It {verb}", variables)]
    lines += [" */", f"struct {function.c_name} {{"]
    members = [_argument(a) for a in function.arguments] + [_result(a) for a in function.results]
    lines += [f"    {member}" for member in members or ["char unused;"]]
    lines += ["};"]
    known = [_argument_start(a) for a in function.arguments]
    known += [_result_start(a) for a in function.results]
    lines.append(f"#define {function.c_name.upper()}_INIT {{{', '.join(known or ['0'])}}}")
    lines.append(f"int {function.c_name}(struct {function.c_name} *call);")
    return "\n".join(lines) + "\n"


def _wrapped(text: str, variables: Sequence[Variable]) -> list[str]:
    """A sentence of variables, in lines of a comment."""
    lines: list[str] = []
    line = f" * {text}"
    for i, variable in enumerate(variables):
        word = comment(variable_name(variable)) + (", " if i < len(variables) - 1 else ".")
        if len(line) + 1 + len(word) > 98:
            lines, line = [*lines, line.rstrip()], " *"
        line = f"{line} {word.rstrip()}"
    return [*lines, line]


def _argument(a: Array) -> str:
    if not a.rank:
        return f"{a.type} {a.name}; /* {comment(a.text)} */"
    return f"struct {{ const {a.type} *data; int64_t shape[{a.rank}]; }} {a.name};"


def _result(a: Array) -> str:
    if not a.rank:
        return f"{a.type} {a.name}; /* {comment(a.text)} */"
    return f"struct {{ {a.type} *data; int64_t room; int64_t shape[{a.rank}]; }} {a.name};"


def _sizes(a: Array) -> str:
    """The sizes that are known; 0 for others."""
    return ", ".join("0" if isinstance(d, SymbolicDim) else str(d) for d in a.spec.dims)


def _argument_start(a: Array) -> str:
    return f"{{NULL, {{{_sizes(a)}}}}}" if a.rank else "0"


def _result_start(a: Array) -> str:
    if not a.rank:
        return "0"
    room = product(a.spec.dims)
    return f"{{NULL, {0 if isinstance(room, SymbolicDim) else room}, {{{_sizes(a)}}}}}"
