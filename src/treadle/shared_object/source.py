"""The C source of a library: the tables of its programs, and the functions of its header."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import Any

from treadle.runtime.cpu.library_text import SLOTS, TABLE
from treadle.runtime.cpu.matmul.byte_forms import multiplies_in_matrices
from treadle.runtime.cpu.matmul.pairs import has_matrix_registers
from treadle.runtime.cpu.matmul.tiles import TABLE_WORDS
from treadle.runtime.cpu.pool_memory import HEAD, PATIENCE, SLOT, patience
from treadle.runtime.cpu.program_entry import DONE, NO_MEMORY, WRONG_SHAPE
from treadle.runtime.standalone import Notice
from treadle.shared_object.c_text import literal, size
from treadle.shared_object.functions import Array, Function, variable_name
from treadle.shared_object.library import Library

_INCLUDES = ("pthread", "stdarg", "stdint", "stdio", "stdlib", "string", "time", "unistd")
_ALLOWED = '__attribute__((visibility("default")))'  # to be called from outside

# Instruction sets that C compilers can ask the processor for.
_CHECKED = frozenset(
    {"avx", "avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "avx512vnni", "bmi", "bmi2",
     "fma", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}
)  # fmt: skip

# What the words of a state table are that programs without Python use; others are NULL.
_FIXED = {
    "aligned_alloc": "aligned_alloc", "free": "free", "PyErr_CheckSignals": "no_signals",
    "clock_gettime": "clock_gettime", "launch": "TREADLE_POOL(launch)",
    "parallel": "TREADLE_POOL(parallel)", "python": "TREADLE_POOL(python)",
    "library": "library_table",
}  # fmt: skip


def source_text(library: Library) -> str:
    """The source."""
    functions = list(enumerate(library.functions))
    parts = [
        *(f"#include <{name}.h>" for name in _INCLUDES),
        f'#include "{library.prefix}.h"',
        "",
        *_constants(library),
        resources.files(__package__).joinpath("support.c").read_text(),
        *_declarations(library),
        *_library_table(library),
        *_variables(library),
        *(line for number, f in functions for line in _program(library, number, f)),
        *_common(library),
        *(line for number, f in functions for line in _function(number, f)),
    ]
    return "\n".join(["#define _GNU_SOURCE", *parts, ""])


def constant_symbol(number: int) -> str:
    """The array of a constant."""
    return f"treadle_constant_{number}"


def variable_symbol(number: int) -> str:
    """The array of a variable's elements."""
    return f"treadle_variable_{number}"


def _constants(library: Library) -> Iterator[str]:
    objects = library.objects
    spins = objects.target.tuning.spins
    known = {
        "DONE": DONE, "WRONG_SHAPE": WRONG_SHAPE, "NO_MEMORY": NO_MEMORY, "POOL_HEAD": HEAD,
        "POOL_SLOT": SLOT, "MOST_THREADS": objects.threads, "SPINS": spins,
        "POOL_PATIENCE": PATIENCE, "PATIENCE": patience(spins),
    }  # fmt: skip
    yield from (f"#define TREADLE_{name} {value}" for name, value in known.items())
    needs = sorted(_CHECKED & objects.target.features) if objects.target.is_x86 else []
    checks = " ".join(f"TREADLE_NEEDS({literal(name)})" for name in needs)
    yield f"#define TREADLE_INSTRUCTIONS {checks}"
    asks = has_matrix_registers(objects.target) or multiplies_in_matrices("ss8", objects.target)
    yield f"#define TREADLE_AMX {int(asks)}"
    (prefix,) = {long.removesuffix(short) for short, long in objects.pool.items()}
    yield f"#define TREADLE_POOL(name) {prefix}##name"
    yield ""


def _declarations(library: Library) -> Iterator[str]:
    """The functions and arrays of the other object files."""
    called = {
        key for f in library.functions for kind, key in f.program.words if kind == "function"
    }
    called |= {name for tiles in library.objects.tiles.values() for name in tiles.values()}
    yield from (f"void {name}(void);" for name in sorted(called))
    for run in dict.fromkeys(f.program.run for f in library.functions):
        yield f"int64_t {run}(void **state, int64_t *frame);"
    arrays = [constant_symbol(number) for number in range(len(library.constants))]
    arrays += [variable_symbol(number) for number in range(len(library.variables))]
    yield from (f"extern unsigned char {symbol}[];" for symbol in arrays)
    yield ""


def _library_table(library: Library) -> Iterator[str]:
    """What routines of treadle's library find their tiles and the threads through."""
    tables = library.objects.tiles
    for element, tiles in tables.items():
        rows = (f"    [{place}] = (void *){name}," for place, name in sorted(tiles.items()))
        length = TABLE_WORDS if tiles else 1
        yield f"static void *{element}_tiles[{length}] = {{"
        yield from rows if tiles else ["    NULL,"]
        yield "};"
    yield f"static int64_t calls_counted[{SLOTS}];"  # nobody reads them
    words = {
        "parallel": "(void *)TREADLE_POOL(parallel)",
        "limit": f"(void *)(intptr_t){library.objects.threads}",
        "counts": "calls_counted",
        **{f"{element}_tiles": f"{element}_tiles" for element in tables},
    }
    yield f"static void *library_table[] = {{{', '.join(words.get(w, 'NULL') for w in TABLE)}}};"
    yield ""


def _variables(library: Library) -> Iterator[str]:
    if not library.variables:
        return
    count = len(library.variables)
    yield f"static struct cell cells[{count}] = {{"
    yield from (f"    {{{variable_symbol(n)}, 0, NULL, 0, 0}}," for n in range(count))
    yield "};"
    for n, variable in enumerate(library.variables):
        dims = ", ".join(map(str, variable.spec.dims)) or "0"
        yield f"static const int64_t variable_shape_{n}[] = {{{dims}}};"
    yield f"static const struct {library.prefix}_variable_info infos[{count}] = {{"
    for n, (variable, value) in enumerate(zip(library.variables, library.values, strict=True)):
        name, kind = literal(variable_name(variable)), literal(variable.spec.dtype.name)
        yield f"    {{{name}, {kind}, {value.ndim}, variable_shape_{n}, {value.nbytes}}},"
    yield "};"
    yield ""


def _program(library: Library, number: int, f: Function) -> Iterator[str]:
    """The table of a program, and what it calls back."""
    notices = f.program.notices
    yield f"static const struct notice notices_{number}[] = {{"
    yield from map(_notice, notices or [Notice("check", "")])
    yield "};"
    yield f"static int64_t callback_{number}(int64_t number, int64_t *words, int64_t *frame)"
    yield "{"
    yield "    (void)frame;"
    yield f"    return take_notice(&notices_{number}[number], words);"
    yield "}"
    yield f"static void *state_{number}[] = {{"
    yield from (f"    {_word(library, number, f, kind, key)}," for kind, key in f.program.words)
    yield "};"
    uses = f"{int(bool(f.reads))}, {int(bool(f.writes))}"
    yield f"static const struct program program_{number} = {{"
    yield f"    {f.program.run}, state_{number}, {uses}, notices_{number},"
    yield "};"
    yield ""


def _notice(notice: Notice) -> str:
    """A notice; its words are signed integers of 64 bits."""
    words = notice.text.replace("{{", "").count("{}")
    text = notice.text.replace("%", "%%").format(*["%lld"] * words)
    return f"    {{{notice.kind.upper()}, {literal(text)}, {words}, {notice.number}}},"


def _word(library: Library, number: int, f: Function, kind: str, key: Any) -> str:
    if kind == "function":
        return f"(void *){key}"
    if kind == "constant":
        return constant_symbol(library.constant_numbers[number][key])
    if kind == "cell":
        graph = f.program.graph
        variable = graph.captures[key - len(graph.params) + len(graph.captures)]
        return f"&cells[{library.number_of(variable)}]"
    if key == "callback":
        return f"(void *)callback_{number}"
    name = _FIXED.get(key)
    return "NULL" if name is None else f"(void *){name}"


_COMMON = """\
{allowed} const char *{prefix}_error(void)
{{
    return error_text;
}}

{allowed} void {prefix}_free(void *data)
{{
    free(data);
}}

{allowed} int {prefix}_set_threads(int count)
{{
    return set_threads(count);
}}

{allowed} const char *{prefix}_version(void)
{{
    return {upper}_VERSION;
}}
"""

_ACCESS = """\
{allowed} const struct {prefix}_variable_info *{prefix}_variable_info(int variable)
{{
    return variable < 0 || variable >= {count} ? NULL : &infos[variable];
}}

{allowed} int {prefix}_get_variable(int variable, void *elements, size_t bytes)
{{
    size_t wanted = variable < 0 || variable >= {count} ? 0 : infos[variable].bytes;
    int status = check_variable(variable, {count}, bytes, wanted, elements);
    if (status != OK)
        return status;
    pthread_rwlock_rdlock(&variables_lock);
    memcpy(elements, cells[variable].data, bytes);
    pthread_rwlock_unlock(&variables_lock);
    return OK;
}}

{allowed} int {prefix}_set_variable(int variable, const void *elements, size_t bytes)
{{
    size_t wanted = variable < 0 || variable >= {count} ? 0 : infos[variable].bytes;
    int status = check_variable(variable, {count}, bytes, wanted, elements);
    if (status != OK)
        return status;
    pthread_rwlock_wrlock(&variables_lock);
    memcpy(cells[variable].data, elements, bytes);
    pthread_rwlock_unlock(&variables_lock);
    return OK;
}}
"""


def _common(library: Library) -> Iterator[str]:
    """What does not depend on the functions, and the end of the library."""
    words = library.words | {"allowed": _ALLOWED, "count": len(library.variables)}
    yield _COMMON.format(**words)
    if library.variables:
        yield _ACCESS.format(**words)
    yield "__attribute__((destructor)) static void free_workspaces(void)"
    yield "{"
    for number in range(len(library.functions)):
        yield f"    free(__atomic_exchange_n(&state_{number}[0], NULL, __ATOMIC_SEQ_CST));"
    yield "}"
    yield ""


def _function(number: int, f: Function) -> Iterator[str]:
    """A function of the header: checks its arguments, has room for results, and calls."""
    signature = f.program.signature
    yield f"{_ALLOWED} int {f.c_name}(struct {f.c_name} *call)"
    yield "{"
    yield "    int status;"
    yield "    if (call == NULL)"
    yield f'        return refuse(INVALID, "{f.c_name}: there is no struct of the call");'
    symbols = {}
    by_number = {a.number: a for a in f.arguments}
    for k, source in enumerate(signature.symbols):
        symbols[source.name] = f"size_{k}"
        argument = by_number[source.argument].name
        yield f"    const int64_t size_{k} = call->{argument}.shape[{source.axis}];"
        yield f"    (void)size_{k};"
    for a in f.arguments:
        if a.rank:
            yield from _argument_check(f, a, symbols)
    yield from _results(f, symbols)
    words = [_argument_word(by_number[n]) for n in signature.arguments]
    words += [_result_word(f.results[n]) for n in signature.outputs]
    words += [f"size_{k}" for k in range(len(signature.symbols))]
    yield f"    int64_t frame[] = {{{', '.join(words) or '0'}}};"
    count = len(f.results)
    yield f"    status = run(&program_{number}, frame, {'results' if count else 'NULL'}, {count});"
    if any(a.rank for a in f.results):
        yield "    if (status == OK) {"
        for a in f.results:
            if a.rank:
                yield f"        call->{a.name}.data = results[{a.number}].made;"
        yield "    }"
    yield "    return status;"
    yield "}"
    yield ""


def _argument_check(f: Function, a: Array, symbols: dict[str, str]) -> Iterator[str]:
    wanted = ", ".join(size(d, symbols) for d in a.spec.dims)
    yield f"    const int64_t wanted_{a.name}[] = {{{wanted}}};"
    name, expected = literal(f"{f.c_name}: {a.name}"), literal(a.text)
    yield f"    status = check_argument({name}, {expected}, call->{a.name}.data,"
    yield f"                            call->{a.name}.shape, wanted_{a.name}, {a.rank},"
    yield f"                            sizeof({a.type}));"
    yield "    if (status != OK)"
    yield "        return status;"


def _results(f: Function, symbols: dict[str, str]) -> Iterator[str]:
    """The results, and room for those whose sizes are known."""
    if not f.results:
        return
    yield f"    struct result results[{len(f.results)}] = {{"
    for a in f.results:
        name = literal(f"{f.c_name}: {a.name}")
        place = f"call->{a.name}"
        if a.rank:
            memory = f"{place}.data, {place}.room, {place}.shape, {a.rank}"
            yield f"        {{{name}, {memory}, sizeof({a.type}), NULL}},"
        else:
            yield f"        {{{name}, &{place}, 1, NULL, 0, sizeof({a.type}), &{place}}},"
    yield "    };"
    told = [a for a in f.results if a.rank and f.is_told(a)]
    for a in told:
        for axis, dim in enumerate(a.spec.dims):
            yield f"    call->{a.name}.shape[{axis}] = {size(dim, symbols)};"
    if told:
        taken = " || ".join(f"(status = take_room(&results[{a.number}])) != OK" for a in told)
        yield f"    if ({taken}) {{"
        yield f"        give_back(results, {len(f.results)});"
        yield "        return status;"
        yield "    }"


def _argument_word(a: Array) -> str:
    return f"word_of(call->{a.name}.data)" if a.rank else f"word_of(&call->{a.name})"


def _result_word(a: Array) -> str:
    return f"word_of(results[{a.number}].made)" if a.rank else f"word_of(&call->{a.name})"
