"""What Keras's own tests import from its private modules, on treadle.

Keras says beside its functions and classes under which public names they are exported; here these
names are looked up in treadle. The modules that tests share are those of Keras's wheel.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import sys
import types
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from treadle.keras.models.model import Functional
from treadle.keras.ops.operations import KINDS, FunctionOperation, Kind

PRIVATE = "keras.src"
INTS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
FLOATS = ("bfloat16", "float16", "float32", "float64")


def exported(source: Path) -> dict[str, dict[str, list[str]]]:
    """For each module below ``keras/src``, by its dotted name, the public names of what it defines.

    Args:
        source: the folder ``keras/src`` of a wheel.
    """
    table: dict[str, dict[str, list[str]]] = {}
    for file in sorted(source.rglob("*.py")):
        text = "" if file.stem.endswith("_test") else file.read_text()
        if "keras_export" not in text:
            continue
        inside = ".".join(file.relative_to(source).with_suffix("").parts)
        for node in ast.parse(text).body:
            for decorator in getattr(node, "decorator_list", ()):
                names = _exported_as(decorator)
                if names:
                    table.setdefault(inside, {})[node.name] = names  # type: ignore[attr-defined]
    return table


def _exported_as(decorator: ast.expr) -> list[str]:
    if not isinstance(decorator, ast.Call) or getattr(decorator.func, "id", "") != "keras_export":
        return []
    given = ast.literal_eval(decorator.args[0])
    return [given] if isinstance(given, str) else list(given)


class _Absent(type):
    """A name that treadle does not have: a test that uses it is left out, not one beside it."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise unittest.SkipTest(f"private: {cls.__name__}")

    def __setitem__(cls, key: Any, value: Any) -> None:
        raise unittest.SkipTest(f"private: {cls.__name__}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise unittest.SkipTest(f"private: {cls.__name__}.{name}")


def _public(name: str) -> Any:
    """What treadle has under a public name of Keras; None without it."""
    place, *rest = name.split(".")
    assert place == "keras", name
    try:
        return functools.reduce(getattr, rest, importlib.import_module("treadle.keras"))
    except AttributeError:
        return None


def _tensorflow() -> Any:
    """What programs import as tensorflow."""
    import treadle as td

    there = importlib.util.find_spec("tensorflow") is not None
    return importlib.import_module("tensorflow") if there else td


def _operations_of(kind: Kind) -> Callable[..., Any]:
    """What Keras's class of the calls of a function is here: it takes the settings."""
    parameters = kind.signature.parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names = [p.name for p in parameters if p.name not in kind.tensors and p.kind not in variable]

    def make(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        operation = FunctionOperation(kind, dict(zip(names, args, strict=False)) | kwargs)
        operation._name = name or operation._name
        return operation

    return make


def _known() -> dict[str, dict[str, Any]]:
    """Private helpers of Keras that tests use, by their modules."""
    import treadle as td
    from treadle.keras import lambdas, masks, naming
    from treadle.keras.models import training

    keras = td.keras

    def is_kind(kind: str) -> Callable[[Any], bool]:
        return lambda dtype: kind in keras.backend.standardize_dtype(dtype)

    def as_array(x: Any) -> Any:
        if isinstance(x, td.SparseTensor):
            return td.sparse.to_dense(td.sparse.reorder(x)).numpy()
        if isinstance(x, td.RaggedTensor):
            return x.to_tensor().numpy()
        return np.asarray(x.numpy() if isinstance(x, td.Variable) else x)

    def unchanged(x: Any, dtype: Any = None) -> Any:
        return x

    class Trainer(training.Trainer):
        """What a layer is mixed in with, as a model is."""

        def __init__(self) -> None:
            self._compiled, self._functions, self._added_metrics = None, {}, {}
            self.distribute_strategy = td.distribute.get_strategy()

    common = {
        "KerasTensor": keras.KerasTensor, "Variable": keras.Variable,
        "standardize_dtype": keras.backend.standardize_dtype, "is_float_dtype": is_kind("float"),
        "is_int_dtype": is_kind("int"), "result_type": keras.backend.result_type,
        "ALLOWED_DTYPES": (
            *FLOATS, *INTS, "bool", "string", "float8_e4m3fn", "float8_e5m2", "complex64",
            "complex128",
        ),
        "FLOAT_TYPES": FLOATS, "INT_TYPES": INTS, "BOOL_TYPES": ("bool",),
        "FLOAT8_TYPES": ("float8_e4m3fn", "float8_e5m2"),
        "COMPLEX_TYPES": ("complex64", "complex128"),
    }  # fmt: skip
    return {
        "backend": common | {
            "backend": lambda: "tensorflow", "is_tensor": td.is_tensor,
            "convert_to_numpy": as_array, "SUPPORTS_SPARSE_TENSORS": True,
            "SUPPORTS_RAGGED_TENSORS": True, "IS_THREAD_SAFE": True,
            "SUPPORTS_COMPLEX_DTYPES": True, "DATA_FORMAT": "channels_last",
            "random": keras.random, "numpy": keras.ops.numpy, "nn": keras.ops.nn,
            "linalg": keras.ops.linalg, "image": keras.ops.image,
            "set_keras_mask": masks.set_mask, "get_keras_mask": masks.mask_of,
        },
        "backend.tensorflow.trainer": {"TensorFlowTrainer": Trainer},
        "backend.config": {"backend": lambda: "tensorflow"},
        "backend.common": common, "backend.common.dtypes": common,
        "backend.common.variables": common, "backend.common.keras_tensor": common,
        "backend.common.name_scope": {
            "current_path": lambda: naming.path_of(naming.scopes.owners),
        },
        "ops": {"random": keras.random},
        "saving.saving_lib": {
            "load_model": keras.saving.load_model, "save_model": keras.saving.save_model,
            "save_weights_only": keras.saving.save_weights,
            "load_weights_only": keras.saving.load_weights, "_VARS_FNAME": "model.weights",
            "_CONFIG_FILENAME": "config.json", "_METADATA_FILENAME": "metadata.json",
        },
        "saving.serialization_lib": {
            "SafeModeScope": lambda safe_mode=True: lambdas.running(safe_mode is False),
        },
        "backend.common.global_state": {"clear_session": keras.utils.clear_session},
        "models": {"Functional": Functional}, "models.functional": {"Functional": Functional},
        "utils": {"removesuffix": str.removesuffix, "removeprefix": str.removeprefix},
        "utils.backend_utils": {
            "convert_tf_tensor": unchanged, "in_tf_graph": lambda: False,
        },
        "utils.python_utils": {"removesuffix": str.removesuffix},
        "utils.module_utils": {"tensorflow": _tensorflow()},
    }  # fmt: skip


class Names:
    """Looks names of private modules up.

    Args:
        source: the folder ``keras/src`` of a wheel.
        table: what `exported` gave.
    """

    def __init__(self, source: Path, table: dict[str, dict[str, list[str]]]) -> None:
        self.source, self.table, self.known = source, table, _known()
        # What the module of the same public name has, and where functions of the backend are.
        places = "keras.backend keras.ops keras.random keras.config keras"
        self.further = {"backend": places.split()}

    def found(self, inside: str, name: str) -> Any:
        """What treadle has for a name of a private module; an absent class where it has none."""
        if name in self.known.get(inside, {}):
            return self.known[inside][name]
        below = f"{inside}.{name}".strip(".")
        if name not in self.table.get(inside, {}) and self.is_module(below):
            return importlib.import_module(f"{PRIVATE}.{below}")
        if inside.partition(".")[0] == "ops" and name in KINDS:
            return _operations_of(KINDS[name])
        for public in self._names(inside, name):
            value = _public(public)
            if value is not None:
                return value
        top = inside.partition(".")[0]
        for place in [f"keras.{inside}" if inside else "keras", *self.further.get(top, ())]:
            value = getattr(_public(place), name, None)
            if value is not None and not isinstance(value, types.ModuleType):
                return value
        return _Absent(f"{PRIVATE}.{below}", (), {})

    def _names(self, inside: str, name: str) -> list[str]:
        """The public names of a name in a module, or in the modules of a package."""
        own = self.table.get(inside, {}).get(name)
        if own is not None:
            return own
        below = f"{inside}." if inside else ""
        return [
            public for module, names in self.table.items() if module.startswith(below)
            for public in names.get(name, ())
        ]  # fmt: skip

    def is_module(self, inside: str) -> bool:
        """Whether Keras has a module or a package of that name."""
        place = self.source.joinpath(*inside.split("."))
        return place.is_dir() or place.with_suffix(".py").is_file()


class _Module(types.ModuleType):
    """A private module of Keras."""

    names: Names

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.names.found(self.__name__.removeprefix(PRIVATE).strip("."), name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds private modules: those that tests share in the wheel, the others in treadle."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != PRIVATE and not name.startswith(f"{PRIVATE}."):
            return None
        inside = name.removeprefix(PRIVATE).strip(".")
        file = self.names.source.joinpath(*inside.split(".")).with_suffix(".py")
        shared = inside.startswith("testing.") or inside.endswith("_test")
        if shared and file.is_file():
            return importlib.util.spec_from_file_location(name, file)
        if inside == "testing":
            init = self.names.source / "testing" / "__init__.py"
            places = [str(init.parent)]
            return importlib.util.spec_from_file_location(
                name, init, submodule_search_locations=places
            )
        if inside and not self.names.is_module(inside):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        module = _Module(spec.name)
        module.names = self.names
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing: the module looks its names up when they are asked for."""


def _absent_module(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__getattr__ = lambda inner: _Absent(f"{name}.{inner}", (), {})  # type: ignore[method-assign]
    return module


def install(source: Path, table: dict[str, dict[str, list[str]]]) -> None:
    """Let ``keras.src`` be treadle's, in this process, where ``keras`` is so already."""
    for name in [n for n in sys.modules if n == PRIVATE or n.startswith(f"{PRIVATE}.")]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder(Names(source, table)))
    absent: set[str] = set()  # what few tests need, of files that import it
    for other in ("grain", "jax", "jax.numpy", "torch", "torch.utils", "torch.utils.data"):
        top = other.partition(".")[0]
        if top in absent or importlib.util.find_spec(top) is None:
            absent.add(top)
            sys.modules[other] = _absent_module(other)
    with contextlib.suppress(ImportError):  # tests begin with it, before devices are there
        context: Any = importlib.import_module("tensorflow.python.eager.context")
        context._reset_context = lambda: None
    conftest: Any = types.ModuleType("conftest")
    conftest.skip_if_backend = lambda name, reason: pytest.mark.skipif(
        name == "tensorflow", reason=reason
    )
    sys.modules["conftest"] = conftest
    module = importlib.import_module(PRIVATE)
    vars(importlib.import_module("keras"))["src"] = module
