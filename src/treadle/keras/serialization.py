"""Objects of Keras as plain data and back, by the names of their classes. Code is written for
lambdas only, and run where a program asks for it only (`lambdas`).

An object is ``{"module", "class_name", "config", "registered_name"}``, as in Keras 3.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

import treadle as td
from treadle.keras import lambdas
from treadle.modes import during, is_mode

_Kind = TypeVar("_Kind", bound=Callable[..., Any])

# The public modules whose classes are known, and what Keras calls those.
_MODULES = (
    "layers", "models", "optimizers", "losses", "metrics", "initializers", "regularizers",
    "constraints", "optimizers.schedules", "random", "dtype_policies", "quantizers", "utils",
    "distillation",
)
_AT_THE_TOP = ("models", "dtype_policies")  # whose classes Keras names by keras alone  # fmt: skip

# Arguments of Keras that are not provided, with the values that change nothing.
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "data_format": ("channels_last",), "dilation_rate": (1, [1], [1, 1]), "ema_momentum": (0.99,),
    "groups": (1,), "implementation": (1, 2), "renorm_momentum": (0.99,), "reset_after": (True,),
    "unit_forget_bias": (True,), "use_cudnn": ("auto",),
    "interpolation": ("nearest",),
    "zero_output_for_mask": (True,),
}  # fmt: skip

_OTHER_NAMES = {"Functional": "Model"}

_registered: dict[str, Any] = {}


class _Scope(threading.local):
    """The classes and functions that are known by name within `custom_object_scope`."""

    objects: Mapping[str, Any] = {}


_scope = is_mode(_Scope())


def register_keras_serializable(
    package: str = "Custom", name: str | None = None
) -> Callable[[_Kind], _Kind]:
    """Decorator: a class or function of the user is found when a model is loaded.

    Args:
        package: in front of the name, so that those of two programs differ.
        name: that of the class or function when omitted.

    Raises:
        ValueError: a class has no ``get_config``.
    """

    def register(value: _Kind) -> _Kind:
        if inspect.isclass(value) and not hasattr(value, "get_config"):
            raise ValueError(
                "Cannot register a class that does not have a get_config() method: "
                f"{value.__name__}"
            )
        _registered[f"{package}>{name or value.__name__}"] = value
        return value

    return register


class CustomObjectScope:
    """``with custom_object_scope({"Own": Own}):`` classes and functions are known by these names
    within the block."""

    def __init__(self, custom_objects: Mapping[str, Any] | None) -> None:
        self.custom_objects = dict(custom_objects or {})
        self._blocks: list[during] = []  # those that have begun: it may be entered again

    def __enter__(self) -> CustomObjectScope:
        known = {**_scope.objects, **self.custom_objects}
        self._blocks.append(during(_scope, "objects", known))
        self._blocks[-1].__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._blocks.pop().__exit__(*error)


custom_object_scope = CustomObjectScope


def get_custom_objects() -> dict[str, Any]:
    """What `register_keras_serializable` was given, by ``package>name``; programs may add to it."""
    return _registered


def get_registered_name(obj: Any) -> str:
    """The name that a class or function was registered by, or else its own."""
    return next((key for key, other in _registered.items() if other is obj), obj.__name__)


def get_registered_object(
    name: str, custom_objects: Mapping[str, Any] | None = None,
    module_objects: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """What has the name in the scope, among the registered objects or in the given ones; else
    None."""
    for known in (_scope.objects, _registered, custom_objects or {}, module_objects or {}):
        if name in known:
            return known[name]
    return None


def custom(identifier: Any) -> Any:
    """What a program gave this name (`get_custom_objects`, `custom_object_scope`), an object of it
    where that is a class; any other identifier as it is."""
    if not isinstance(identifier, str):
        return identifier
    found = get_registered_object(identifier)
    if found is None:
        return identifier
    return found() if isinstance(found, type) else found


def arguments_of(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments that an object was made with, by their names, defaults included."""
    signature = inspect.signature(type(value).__init__)
    bound = signature.bind(value, *args, **kwargs)
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for number, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind is parameter.VAR_KEYWORD:
            found |= bound.arguments[name]
        elif number and parameter.kind is not parameter.VAR_POSITIONAL:
            found[name] = bound.arguments[name]
    return found


def has_unnamed_arguments(value: Any, args: tuple[Any, ...]) -> bool:
    """Whether an object was made with arguments by position that its constructor has no names for,
    and passes on to its base class."""
    parameters = inspect.signature(type(value).__init__).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(args) >= len(named)  # the first one is the object


def takes(kind: type, name: str) -> bool:
    """Whether a class can be made with an argument of that name."""
    if name in getattr(kind, "_weight_keywords", ()):
        return True
    for base in kind.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(base.__init__).parameters  # type: ignore[misc]
        if name in parameters:
            return True
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return False
        other = getattr(kind, "_passes_on_to", None)
        if other is not None and takes(other, name):
            return True
    return False


def describes_itself(kind: type) -> bool:
    """Whether a program says by `get_config` what makes an equal object of its class."""
    return not kind.get_config.__module__.startswith("treadle.")  # type: ignore[attr-defined]


def _named_by_program(kind: type) -> set[str]:
    """The arguments that the constructors of a program's classes name."""
    own = [vars(b)["__init__"] for b in kind.__mro__ if "__init__" in vars(b) and is_own(b)]
    return {name for init in own for name in inspect.signature(init).parameters}


def is_own(kind: type) -> bool:
    """Whether a class is a program's."""
    return kind is not object and not kind.__module__.startswith("treadle.")


def arguments_from(
    kind: type, config: Mapping[str, Any], objects: Collection[str] = (), custom_objects: Any = None
) -> dict[str, Any]:
    """What `from_config` gives the constructor of a class for a configuration.

    A program's class that has a `get_config` is given what that wrote, as Keras does: its
    constructor makes objects of the data in it. Others, and constructors of this package that it
    passes arguments on to, are given the objects.

    Args:
        objects: arguments that are objects for all classes.
    """
    own = _named_by_program(kind) if describes_itself(kind) else set()
    found = {}
    for key, value in config.items():
        if key in own and key not in objects:
            found[key] = value
            continue
        try:
            found[key] = deserialize_keras_object(value, custom_objects)
        except UnknownClassError:
            if kind.__module__.startswith("treadle."):
                raise
            found[key] = value  # the program's constructor may know the class
    return found


def serialize_keras_object(obj: Any) -> Any:
    """A value as plain data; objects by their class and ``get_config()``; lambdas, with a warning,
    by their code, which is not run where they are read unless that is asked for.

    Raises:
        TypeError: it has no config.
    """
    value = obj
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | td.Tensor | td.Variable):
        array = np.asarray(value)
        config = {"value": array.tolist(), "dtype": array.dtype.name}
        return {"class_name": "__numpy__", "config": config}
    if isinstance(value, bytes):
        return {"class_name": "__bytes__", "config": {"value": value.decode("utf-8")}}
    if isinstance(value, td.DType):
        return value.name
    if isinstance(value, td.TensorShape):
        return value.as_list()
    if isinstance(value, slice):
        config = {"start": value.start, "stop": value.stop, "step": value.step}
        return {"class_name": "__slice__", "config": config}
    if value is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    if isinstance(value, list | tuple):
        parts = [serialize_keras_object(v) for v in value]
        return tuple(parts) if isinstance(value, tuple) else parts
    if isinstance(value, Mapping) and not hasattr(value, "get_config"):
        if "class_name" in value and "config" in value:
            return _completed(value)
        return {str(k): serialize_keras_object(v) for k, v in value.items()}
    if hasattr(value, "get_config") and not isinstance(value, type):
        return _object(value)
    if lambdas.is_lambda(value):
        return lambdas.described(value, serialize_keras_object, of_layer=False)
    name = getattr(value, "__name__", None)
    if callable(value) and name is not None:
        known = next((key for key, other in _registered.items() if other is value), name)
        return {
            "module": "builtins", "class_name": "function", "config": name,
            "registered_name": known,
        }  # fmt: skip
    raise TypeError(
        f"{value!r} cannot be saved: it has no get_config(). Give it one, or use a function with a "
        "name, and keras.saving.register_keras_serializable()"
    )


def _completed(config: Mapping[str, Any]) -> dict[str, Any]:
    """What `get_config` gives for an object, with the module where Keras looks for its class; as it
    is for a class that only who reads it knows."""
    name = str(config["class_name"])
    found = {key: serialize_keras_object(v) for key, v in config.items() if key != "class_name"}
    if name.startswith("__") or "module" in config:
        return {"class_name": name} | found
    try:
        module = _module(_class_named(name))
    except UnknownClassError:
        return {"class_name": name} | found
    return {"module": module, "class_name": name} | found | {"registered_name": None}


def _object(value: Any) -> dict[str, Any]:
    kind = getattr(value, "_saved_as", None) or (_module(type(value)), type(value).__name__)
    own = type(value).__module__.startswith("treadle.")
    known = get_registered_name(type(value))  # Keras looks by it for classes of programs
    registered = None if own and known == type(value).__name__ else known
    found = {
        "module": kind[0], "class_name": kind[1],
        "config": serialize_keras_object(value.get_config()), "registered_name": registered,
    }  # fmt: skip
    built = getattr(value, "get_build_config", None)
    if built is not None and (config := built()) is not None:
        found["build_config"] = serialize_keras_object(config)
    return found


def _places() -> Iterator[tuple[str, Any]]:
    for name in _MODULES:
        module: Any = td.keras
        for part in name.split("."):
            module = getattr(module, part)
        yield name, module


def _in(module: Any, name: str) -> Any:
    """What a module has by a name, also where it imports this only when it is used."""
    if name in vars(module):
        return vars(module)[name]
    return getattr(module, name) if name in dir(module) else None


def _module(kind: Any) -> str:
    for name, module in _places():
        if _in(module, getattr(kind, "__name__", "")) is kind:
            top = name in _AT_THE_TOP and hasattr(td.keras, kind.__name__)
            return "keras" if top else f"keras.{name}"
    return str(getattr(kind, "__module__", None))


class UnknownClassError(ValueError):
    """A class or function that a configuration names is not known."""


def _class_named(name: str, module: str | None = None, registered: str | None = None) -> Any:
    """The class or function of a name: the user's, or one of Keras."""
    for key in (registered, name):
        for objects in (_scope.objects, _registered):
            if key is not None and key in objects:
                return objects[key]
    name = _OTHER_NAMES.get(name, name)
    if module is not None:  # Keras names some of its layers in a module of old names
        module = module.replace("keras._legacy.", "keras.")
    owned = [key for key in _registered if key.rpartition(">")[2] == name]
    if len(owned) == 1 and not str(module).startswith("keras"):
        return _registered[owned[0]]
    for place, where in _places():
        found = _in(where, name)
        fits = module is None or place in (*_AT_THE_TOP, module.removeprefix("keras."))
        if _is_known(found) and (fits or "src" in str(module)):
            return found
    raise UnknownClassError(
        f"Could not find {name!r} of module {module!r}: it is none of this package's. Give "
        f"custom_objects={{{name!r}: ...}}, or decorate it with "
        "@keras.saving.register_keras_serializable() before loading"
    )


def without_shapes(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A layer's description without a `build_config` of shapes alone, for a model whose calls tell
    them again."""
    built = entry.get("build_config") or {}
    plain = set(built) <= {"input_shape", "shapes_dict"}
    return {key: v for key, v in entry.items() if key != "build_config" or not plain}


def deserialize_keras_object(
    config: Any, custom_objects: Mapping[str, Any] | None = None, safe_mode: bool = True,
    module_objects: Mapping[str, Any] | None = None, printable_module_name: str = "object",
) -> Any:  # fmt: skip
    """What `serialize_keras_object` was given; arrays come back as arrays.

    Args:
        custom_objects: classes and functions of the user, by name.
        safe_mode: False: the code of lambdas is run.
        module_objects: those of a library, by name. A mere name gives the function, or an object
            of the class.
        printable_module_name: accepted for libraries for Keras 2.

    Raises:
        ValueError: a class is not known, an argument is not supported, or it is a lambda, whose
            code is not to be run.
    """
    if not safe_mode:
        with lambdas.running():
            return deserialize_keras_object(config, custom_objects, True, module_objects)
    if module_objects is not None:
        if isinstance(config, str):
            return _of_library(config, custom_objects or {}, module_objects)
        custom_objects = {**module_objects, **_registered, **(custom_objects or {})}
    if custom_objects:
        with custom_object_scope(custom_objects):
            return deserialize_keras_object(config)
    if isinstance(config, list | tuple):
        parts = [deserialize_keras_object(c) for c in config]
        return tuple(parts) if isinstance(config, tuple) else parts
    if not isinstance(config, dict):
        return config
    if "class_name" not in config or "config" not in config:
        return {key: deserialize_keras_object(v) for key, v in config.items()}
    name, inner = config["class_name"], config["config"]
    special = _SPECIAL.get(name)
    if special is None and name == "function" and not isinstance(inner, str):
        raise TypeError(f"Expected 'config' to be a non-null str, got {inner!r}")
    if special is None and name != "function" and not isinstance(inner, dict):
        raise TypeError(f"Expected 'config' to be a dict, got {inner!r} for {name!r}")
    if special is not None:
        return special(inner)
    if name == "function":
        return _function(inner, config.get("registered_name"))
    return _made(config, name, inner)


def _of_library(name: str, custom: Mapping[str, Any], own: Mapping[str, Any]) -> Any:
    """What a name means to a library: the user's object of it as it is, or the library's own, made
    where that is a class; what is no such name has been read before."""
    found = get_registered_object(name, custom)
    if found is None:
        found = own.get(name, name)
        return found() if isinstance(found, type) else found
    return found


def _made(config: Mapping[str, Any], name: str, inner: dict[str, Any]) -> Any:
    module, known = config.get("module"), config.get("registered_name")
    kind = _class_named(name, module, known)
    _check_registered(kind, name, known)
    own = kind.__module__.startswith("treadle.")
    if own and not getattr(kind, "_takes_any_config", False):
        inner = supported(inner, functools.partial(takes, kind), name)
    found = kind.from_config(inner) if hasattr(kind, "from_config") else kind(**inner)
    built = config.get("build_config")
    if built and hasattr(found, "build_from_config"):
        found.build_from_config(built)
    return found


def _check_registered(found: Any, name: str, registered: Any) -> None:
    """Refuse what is of this package where a file says that a program registered it."""
    if not registered or registered in (name, "function") or registered in _registered:
        return
    if getattr(found, "__module__", "").startswith("treadle.") and name not in _scope.objects:
        raise ValueError(
            f"registered_name={registered!r} resolved to a Keras built-in, {name!r}: the program "
            "that wrote it registered a class or function of its own, which is not registered here"
        )


def supported(
    config: dict[str, Any], is_taken: Callable[[str], bool], where: str
) -> dict[str, Any]:
    """A config without the arguments that are not provided and change nothing.

    Args:
        is_taken: whether there is an argument of a name.
        where: for errors.

    Raises:
        ValueError: an argument that is not provided changes something.
    """
    found = {}
    for name, value in config.items():
        if is_taken(name):
            found[name] = value
        elif value not in (None, False, [], {}) and value not in _HARMLESS.get(name, ()):
            raise ValueError(f"{where}: {name}={value!r} is not supported")
    return found


def _is_known(found: Any) -> bool:
    """Whether it is a class of this package that is made of a config, and no helper of it."""
    own = getattr(found, "__module__", "").startswith("treadle.keras.")
    return own and isinstance(found, type) and hasattr(found, "get_config")


def _function(name: str, registered: Any) -> Any:
    for key in (registered, name):
        for objects in (_scope.objects, _registered):
            if key in objects:
                return objects[key]
    for module in (td.keras.activations, td.keras.losses, td.keras.metrics):
        if name in vars(module):
            _check_registered(vars(module)[name], name, registered)
            return vars(module)[name]
    owned = [value for key, value in _registered.items() if key.rpartition(">")[2] == name]
    if len(owned) == 1:
        return owned[0]
    raise ValueError(
        f"Could not find function {name!r}: give custom_objects={{{name!r}: ...}}, or decorate it "
        "with @keras.saving.register_keras_serializable() before loading"
    )


def _lambda(config: dict[str, Any]) -> Any:
    lambdas.check_runs(config)
    return lambdas.function_of({k: deserialize_keras_object(v) for k, v in config.items()})


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "__numpy__": lambda c: np.array(c["value"], td.as_dtype(c["dtype"]).np_dtype),
    "__tensor__": lambda c: td.constant(c["value"], c["dtype"]),
    "__bytes__": lambda c: c["value"].encode("utf-8"),
    "__tuple__": lambda c: tuple(deserialize_keras_object(v) for v in c),
    "__slice__": lambda c: slice(c["start"], c["stop"], c["step"]),
    "__ellipsis__": lambda c: Ellipsis,
    "__lambda__": _lambda,
}
