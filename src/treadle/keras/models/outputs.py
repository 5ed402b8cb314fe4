"""What belongs to which output of a model: labels, weights, losses and metrics.

Outputs may be a tensor or any nested structure of tensors. The leaves of a structure are in Keras's
order: dicts in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from treadle.keras import losses, tree

_Path = tuple[Any, ...]


class Term(NamedTuple):
    """A loss of an output, or of several of them.

    Attributes:
        path: the keys and positions that lead to it.
        factor: what the loss is multiplied by; None: nothing.
        name: of the output.
    """

    path: _Path
    loss: losses.Loss
    factor: Any
    name: str


def output_names(model: Any, pred: Any) -> list[str]:
    """The names of the leaves of a model's outputs: keys of dicts, names of the layers that give
    them."""
    if not tree.is_nested(pred):
        return _layer_names(model, 1) or ["output_1"]
    paths = [path for path, _ in tree.flatten_with_path(pred)]
    found = _composed(paths, _layer_names(model, len(paths)))
    if len(set(found)) == len(paths):
        return found
    return _composed(paths, [f"output_{n + 1}" for n in range(len(paths))])


def _composed(paths: Sequence[_Path], layers: Sequence[str]) -> list[str]:
    """Keys and positions joined by slashes, with layers' names for the last positions."""
    return [
        "/".join(map(str, (*path[:-1], layer if isinstance(path[-1], int) else path[-1])))
        for path, layer in zip(paths, layers, strict=False)
    ]


def _layer_names(model: Any, count: int) -> list[str]:
    """The names of the layers that give a functional model's outputs; none of other models."""
    network = getattr(model, "_layer_network", None)
    if network is None or len(network.targets) != count:
        return []
    return [str(target.node.layer.name) for target in network.targets]


def at(structure: Any, path: _Path) -> Any:
    """What a path leads to."""
    for key in path:
        is_field = isinstance(key, str) and hasattr(structure, "_fields")
        structure = getattr(structure, key) if is_field else structure[key]
    return structure


def of_leaves(given: Any, pred: Any, names: Sequence[str], shared: bool = False) -> list[Any]:
    """What each leaf of the outputs is given: by a structure like theirs, by a dict of names, by a
    list, or (`shared`) by one for all.

    Raises:
        ValueError: there are parts for another number of outputs, or for others.
    """
    count = len(names)
    if given is None:
        return [None] * count
    if isinstance(given, Mapping) and set(given) <= set(names):
        return [given.get(name) for name in names]
    if isinstance(given, Mapping) and not _is_deep(pred):
        unknown = [name for name in given if name not in names]
        raise ValueError(f"No output is called {unknown}: the outputs are {list(names)}")
    if tree.is_nested(given):
        flat = tree.flatten(given)
        if len(flat) != count:
            raise ValueError(
                f"{len(flat)} parts for the {count} outputs of the model: {', '.join(names)}"
            )
        return flat
    if count == 1 or shared:
        return [given] * count
    raise ValueError(
        f"The model has {count} outputs ({', '.join(names)}): labels, losses and factors are lists "
        f"or dicts, not {type(given).__name__}"
    )


def _is_deep(pred: Any) -> bool:
    """Whether outputs are structures of structures."""
    return tree.is_nested(pred) and any(len(path) > 1 for path, _ in tree.flatten_with_path(pred))


def labels_of(y: Any, pred: Any, names: Sequence[str], loss: Any) -> Any:
    """Labels in the structure of the outputs; None where there are none.

    Args:
        loss: what `compile` was given: labels may be those of the outputs alone that have a loss.
    """
    wanted = None if loss is None else [part is not None for part in tree.flatten(loss)]
    flat = None if y is None or isinstance(y, Mapping) else tree.flatten(y)
    count = len(names)
    partial = (
        flat is not None and wanted is not None and len(flat) < count == len(wanted)
        and sum(wanted) == len(flat)
    )  # fmt: skip
    if partial:
        assert flat is not None and wanted is not None
        rest = iter(flat)
        leaves = [next(rest) if has else None for has in wanted]
    else:
        leaves = of_leaves(y, pred, names)
    return tree.pack_sequence_as(pred, leaves) if tree.is_nested(pred) else leaves[0]


def terms(loss: Any, factors: Any, pred: Any, names: Sequence[str]) -> list[Term]:
    """The losses of a model's outputs.

    Args:
        loss: one for all leaves; or a structure like that of the outputs, a dict by their names, or
            a list. A list where the outputs have something else means that each of its losses
            counts, and a loss where they have a structure takes that as a whole.
        factors: a structure like that of the losses, a list of as many, or a number.

    Raises:
        ValueError, KeyError: there are losses for other outputs, or another number of factors.
    """
    if isinstance(loss, Mapping) and not isinstance(pred, Mapping):
        unknown = [name for name in loss if name not in names]
        if unknown:
            raise ValueError(
                f"No output is called {unknown}: the outputs are {list(names)}. Expected keys "
                f"{list(names)} in loss dict, but found loss.keys()={list(loss)}"
            )
        if isinstance(factors, Mapping):
            factors = [factors.get(name) for name in names]
        loss = [loss.get(name) for name in names]
    elif not tree.is_nested(loss):
        if isinstance(factors, Mapping | list | tuple):
            factors = of_leaves(factors, pred, names)
        loss = [loss] * len(names)
    pred_names = tree.pack_sequence_as(pred, names) if tree.is_nested(pred) else names[0]
    return list(_terms(loss, _paired(loss, factors), pred_names, ()))


def _paired(loss: Any, factors: Any) -> Any:
    """Factors in the structure of the losses."""
    flat = tree.flatten(loss)
    if factors is None or isinstance(factors, int | float):
        return tree.pack_sequence_as(loss, [factors] * len(flat))
    if isinstance(factors, Mapping) and isinstance(loss, Mapping):
        own = {key: factors.get(key) for key in loss}
        if all(not tree.is_nested(loss[key]) or own[key] is None for key in loss):
            return {key: _paired(loss[key], own[key]) if tree.is_nested(loss[key]) else own[key]
                    for key in loss}  # fmt: skip
    given = tree.flatten(factors)
    if len(given) != len(flat):
        raise ValueError(
            f"`loss_weights` must match the number of losses, got {len(flat)} losses and "
            f"{len(given)} weights."
        )
    return tree.pack_sequence_as(loss, given)


def _terms(loss: Any, factor: Any, names: Any, path: _Path) -> Iterator[Term]:
    """The terms of a part of the losses, for a part of the outputs of which there are the names."""
    if loss is None:
        return
    if not tree.is_nested(loss):
        yield Term(path, losses.as_loss(loss), factor, _name(path, names))
        return
    if isinstance(loss, Mapping):
        if not isinstance(names, Mapping) or any(key not in names for key in loss):
            raise KeyError(
                f"The path: {(*path, *loss)} in the `loss` argument, can't be found in either the "
                "model's output (`y_pred`) or in the labels (`y_true`)."
            )
        for key, part in loss.items():
            yield from _terms(part, factor[key], names[key], (*path, key))
        return
    leaves = tree.flatten_with_path(names)
    pairs = list(zip(loss, factor, strict=True))
    if len(loss) == len(leaves) and not any(map(tree.is_nested, loss)):
        for (part, own), (place, name) in zip(pairs, leaves, strict=True):
            yield from _terms(part, own, name, path + place)
    elif not isinstance(names, type(loss)):
        for part, own in pairs:
            yield from _terms(part, own, names, path)
    elif len(loss) > len(names):
        raise KeyError(
            f"The path: {(*path, len(names))} in the `loss` argument, can't be found in the "
            f"model's output (`y_pred`): it has {len(names)} parts"
        )
    else:
        for number, (part, own) in enumerate(pairs):
            yield from _terms(part, own, names[number], (*path, number))


def _name(path: _Path, names: Any) -> str:
    """The name of an output, or of several."""
    if not tree.is_nested(names):
        return str(names)
    return "/".join(map(str, path)) or "_".join(map(str, tree.flatten(names)))


def metrics_of(given: Any, pred: Any, names: Sequence[str], argument: str) -> list[list[Any]]:
    """The metrics of each leaf of the outputs.

    Args:
        given: a list for the only output; or a list of lists, a dict by names, or a structure like
            that of the outputs.
        argument: its name, for errors.

    Raises:
        ValueError: there are metrics for other outputs.
    """
    count = len(names)
    if given is None or (tree.is_nested(given) and not given):
        return [[] for _ in names]
    if count == 1:
        if isinstance(given, Mapping) and not set(given) <= {*names}:
            raise _invalid(argument, given, names)
        return [[m for m in tree.flatten(given) if m is not None]]
    if isinstance(given, Mapping) and set(given) <= set(names):
        return [_listed(given.get(name)) for name in names]
    if isinstance(given, list | tuple) and len(given) == count and not _is_deep(pred):
        return [_listed(part) for part in given]
    if isinstance(given, list | tuple) and not _is_deep(pred):
        raise ValueError(
            f"compile: {len(given)} entries of metrics for {count} outputs: a list has one for "
            "each output, a dict those of some"
        )
    try:
        found: list[list[Any]] = []
        tree.map_structure_up_to(
            tree.lists_to_tuples(pred), lambda part: found.append(_listed(part)),
            tree.lists_to_tuples(given),
        )  # fmt: skip
    except (ValueError, TypeError):
        raise _invalid(argument, given, names) from None
    return found


def _invalid(argument: str, given: Any, names: Sequence[str]) -> ValueError:
    return ValueError(
        f"Invalid `{argument}`. It is a dict or a list for the outputs of the model, "
        f"{list(names)}, or has their structure. Received: {argument}={given}"
    )


def _listed(given: Any) -> list[Any]:
    """Metrics as a list; none for None."""
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]
