"""Whether the driver calls CuPy as its sources want it: their parameters are recorded, since CuPy's
compiled functions do not tell them, and CuPy is seldom installed where tests run."""

import ast
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.gpu.made_up_cupy import NAMES, Cupy
from treadle.runtime.gpu import cupy_driver, discovery

TOLD = json.loads(Path(__file__).with_name("cupy_signatures.json").read_text())["parameters"]
OTHERS = {"load", "launch"}  # names that functions of ours have, too


def parameters(name: str) -> list[str] | None:
    """Those of what a call names: a function, a method, or a class."""
    found = [p for key, p in TOLD.items() if key.removesuffix(".__init__").endswith(f".{name}")]
    return found[0] if len(found) == 1 else None


def calls(module: Any) -> Iterator[tuple[str, ast.Call]]:
    """Calls of something that is an attribute, but not of the object itself."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "self"):
                yield node.func.attr, node


def misfit(call: ast.Call, wanted: list[str]) -> str:
    """What is wrong with a call; "" where it fits."""
    names = [p.rstrip("=") for p in wanted]
    given = names[: len(call.args)] + [k.arg or "" for k in call.keywords]
    if len(call.args) > len(names) or len(set(given)) < len(given) or set(given) - set(names):
        return f"gives {given}, of {names}"
    missing = [p for p in wanted if not p.endswith("=") and p not in given]
    return f"lacks {missing}" if missing else ""


def test_calls_have_the_parameters_of_cupys_sources() -> None:
    seen = set()
    for module in (cupy_driver, discovery):
        for name, call in calls(module):
            wanted = parameters(name)
            if wanted is not None and name not in OTHERS:
                seen.add(name)
                assert not misfit(call, wanted), f"{name} in line {call.lineno}"
    assert {
        "memcpyAsync", "memcpyPeerAsync", "memsetAsync", "launchKernel", "funcSetAttribute",
        "UnownedMemory", "MemoryPointer", "Stream", "Event", "begin_capture", "set_limit",
        "compile_using_nvrtc", "using_allocator", "deviceGetPCIBusId", "getDeviceProperties",
    } <= seen  # fmt: skip


@pytest.mark.parametrize("text", ["f(1, 2, 3)", "f(1)", "f(1, 2, c=3)", "f(1, 2, b=3)"])
def test_what_does_not_fit_is_found(text: str) -> None:
    call: Any = ast.parse(text, mode="eval").body
    assert misfit(call, ["a", "b"])
    assert not misfit(call, ["a", "b=", "c="]) or "b=3" in text


def test_the_made_up_cupy_takes_what_the_real_one_takes() -> None:
    module = Cupy().module
    for key, wanted in TOLD.items():
        path, _, name = key.removeprefix("cupy.").rpartition(".")
        found: Any = module
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is None or (name != "__init__" and not hasattr(found, name)):
            continue  # the made-up one lacks what the driver gets from others
        assert name == "__init__" or name in NAMES[f"cupy.{path}"], key
        own = list(inspect.signature(getattr(found, name)).parameters.values())
        own = own[1:] if own and own[0].name == "self" else own
        if any(p.kind is p.VAR_POSITIONAL for p in own):
            continue
        most = len(wanted)
        needed = sum(p.default is p.empty for p in own)
        assert needed <= most and len(own) <= most, key
