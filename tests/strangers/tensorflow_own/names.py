"""What TensorFlow's own tests import from its private modules, on treadle.

The table of `exported_names` says which public name a private one has; here it is looked up in
treadle. In a graph of ``compat.v1``, functions are those of TensorFlow 1 where these are others.
What has no public name is in `unexported`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable
from enum import EnumMeta
from pathlib import Path
from typing import Any

PRIVATE = "tensorflow.python."
# Modules that tests share. The one of all tests is `test_util`, beside this file.
_HELPER = re.compile(
    r"kernel_tests(\.|$)|^autograph\.tests(\.|$)|(test_utils?|test_base|_test_lib|_base)$|^framework\.(test_)?combinations$"
)


class Helpers(importlib.abc.MetaPathFinder):
    """Finds modules that tests share in the checkout: TensorFlow's package has few of them."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        inside = name.removeprefix(PRIVATE)
        if inside == name or not _HELPER.search(inside) or inside == "framework.test_util":
            return None
        place = self._checkout.joinpath(*name.split("."))
        if place.is_dir():
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        file = place.with_suffix(".py")
        return importlib.util.spec_from_file_location(name, file) if file.is_file() else None


class _ByMode(type):
    """A class whose objects are those of another class while operations go into a graph."""

    def _chosen(cls) -> Any:
        v1 = importlib.import_module("treadle.compat.v1")
        return vars(cls)["eager" if v1.executing_eagerly() else "graph"]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._chosen()(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, vars(cls)["eager"]) or isinstance(value, vars(cls)["graph"])

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._chosen(), name)

    def __mro_entries__(cls, bases: Any) -> Any:
        return (vars(cls)["eager"],)


def by_mode(eager: Any, graph: Any) -> Any:
    """A function that is another one while operations are written into a graph."""
    if eager is None or graph is None or eager is graph:
        return graph if eager is None else eager
    if inspect.isclass(eager):
        both = inspect.isclass(graph) and not isinstance(eager, EnumMeta)
        return _ByMode(eager.__name__, (), {"eager": eager, "graph": graph}) if both else eager
    if not callable(eager) or not callable(graph):
        return eager
    v1 = importlib.import_module("treadle.compat.v1")

    @functools.wraps(eager)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (eager if v1.executing_eagerly() else graph)(*args, **kwargs)

    return call


def _reached(place: str, names: Iterable[str]) -> Any:
    """What has one of the public names; None without one."""
    for name in names:
        try:
            return functools.reduce(getattr, name.split("."), importlib.import_module(place))
        except (AttributeError, ImportError):
            continue
    return None


def _takes_all_of(graph: Any, eager: Any) -> bool:
    """Whether a function takes the parameters of another one, in their order."""
    try:
        wanted = list(inspect.signature(eager).parameters)
        return [p for p in inspect.signature(graph).parameters if p in wanted] == wanted
    except (TypeError, ValueError):
        return False


def _generated(raw: str, parameters: list[str]) -> Callable[..., Any]:
    """A function of a module ``gen_..._ops``: `td.raw_ops` whose arguments may go by position."""
    operation = _reached("treadle.raw_ops", [raw])

    def call(*args: Any, **kwargs: Any) -> Any:
        if operation is None:
            raise AttributeError(f"treadle has no tf.raw_ops.{raw}")
        return operation(**dict(zip(parameters, args, strict=False)), **kwargs)

    return call


class Table:
    """Looks names up as `exported_names` found them."""

    def __init__(self, file: Path) -> None:
        self._table = json.loads(file.read_text())

    def found(self, inside: str, name: str) -> Any:
        """What treadle has for a name of a private module; None where it is not exported, and where
        treadle has none."""
        has = self._table.get(inside, {}).get(name)
        if has is None:
            return None
        if "raw" in has:
            return _generated(has["raw"], has["parameters"])
        eager, graph = _reached("treadle", has.get("v2", ())), None
        if "v1" in has:
            graph = _reached("treadle.compat.v1", has["v1"])
        elif eager is not None:
            graph = _reached("treadle.compat.v1", has["v2"])
            graph = graph if _takes_all_of(graph, eager) else None
        return by_mode(eager, graph)

    def missing(self, inside: str, name: str) -> str | None:
        """The public name of what treadle does not have."""
        has = self._table.get(inside, {}).get(name)
        return None if has is None else (has.get("v2") or has.get("v1") or [name])[0]


def install(table: Path, checkout: Path) -> None:
    """Let the private modules have these names, before those that libraries import."""
    from tests.strangers.tensorflow_own import test_util, unexported, unexported_data
    from treadle.compat.replacement import private
    from treadle.compat.replacement.absent import absent

    names, others = Table(table), private.found

    def found(inside: str, name: str) -> Any:
        if inside == "framework.test_util" and name in vars(test_util):
            return vars(test_util)[name]
        if name.startswith("gen_"):
            return importlib.import_module(f"{PRIVATE}ops.{name}")
        own = unexported.NAMES.get(inside, {}).get(name)
        own = unexported_data.NAMES.get(inside, {}).get(name) if own is None else own
        own = names.found(inside, name) if own is None else own
        own = others(inside, name) if own is None else own
        missing = names.missing(inside, name) if own is None else None
        if missing is not None and inside == "framework.dtypes":  # in lists of parameters
            return absent(f"tensorflow.{missing}", "treadle has no such dtype")
        if missing is not None:
            raise AttributeError(f"treadle has no tf.{missing}")
        return own

    private.found = found
    test_util.any_words_of_errors()
    sys.meta_path.insert(0, Helpers(checkout))
