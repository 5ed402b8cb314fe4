"""What dicts and sets do whose keys only the run knows, written as users write: traced with the
function that has the dict.

The entries of a dict are in lists, in the order in which they came: `keys`, `values`, and `alive`,
which is false for an entry that was removed. `slots` has a power of two of positions, twice as many
as there are entries at least, or -1. An entry is in the first slot behind its key's hash that was
free when it came.
"""

from __future__ import annotations

from typing import Any


def found(keys: Any, alive: Any, slots: Any, key: Any, hashed: Any) -> Any:
    """The position of a key's entry, or -1."""
    last = len(slots) - 1
    slot = hashed & last
    entry = slots[slot]
    # In tuples: a key may be a tuple itself, of which only the program can compare the parts.
    while entry >= 0 and not ((keys[entry], 0) == (key, 0) and alive[entry]):
        slot = (slot + 1) & last
        entry = slots[slot]
    return entry


def position_of(keys: Any, alive: Any, slots: Any, key: Any, hashed: Any) -> Any:
    """The position of a key's entry, which must be there."""
    entry = found(keys, alive, slots, key, hashed)
    if entry < 0:
        raise KeyError(key)
    return entry


def value_of(keys: Any, values: Any, alive: Any, slots: Any, key: Any, hashed: Any) -> Any:
    return values[position_of(keys, alive, slots, key, hashed)]


def value_or(
    keys: Any, values: Any, alive: Any, slots: Any, key: Any, hashed: Any, default: Any
) -> Any:
    entry = found(keys, alive, slots, key, hashed)
    value = default
    if entry >= 0:
        value = values[entry]
    return value


def with_entry(
    keys: Any, values: Any, alive: Any, slots: Any, hashes: Any, count: Any,
    key: Any, value: Any, hashed: Any,
) -> Any:  # fmt: skip
    """The lists with an entry for a key."""
    entry = found(keys, alive, slots, key, hashed)
    if entry >= 0:
        values[entry] = value
    else:
        entry = len(hashes)
        size = len(slots)
        if 2 * entry + 4 > size:
            if 2 * count < entry:  # most entries were removed: the others move into their places
                left = 0
                for i in range(entry):
                    if alive[i]:
                        keys[left], values[left], hashes[left] = keys[i], values[i], hashes[i]
                        alive[left] = True
                        left += 1
                for _ in range(entry - left):
                    keys.pop()
                    values.pop()
                    alive.pop()
                    hashes.pop()
                entry = left
            else:
                for _ in range(size):
                    slots.append(-1)
                size = 2 * size
            for i in range(size):
                slots[i] = -1
            for i in range(entry):
                slot = hashes[i] & (size - 1)
                while slots[slot] >= 0:
                    slot = (slot + 1) & (size - 1)
                slots[slot] = i
        keys.append(key)
        values.append(value)
        alive.append(True)
        hashes.append(hashed)
        count += 1
        slot = hashed & (size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = entry
    return keys, values, alive, slots, hashes, count


def without_entry(
    keys: Any, alive: Any, slots: Any, count: Any, key: Any, hashed: Any, must: bool
) -> Any:
    """The lists without the entry of a key, which must be there where `must` says so."""
    entry = found(keys, alive, slots, key, hashed)
    if entry >= 0:
        alive[entry] = False
        count -= 1
    elif must:
        raise KeyError(key)
    return alive, count


def living(parts: Any, alive: Any, kept: Any) -> Any:
    """`kept`, with the entries of a list that were not removed."""
    for i in range(len(alive)):
        if alive[i]:
            kept.append(parts[i])
    return kept


def last_entry(alive: Any) -> Any:
    """The position of the last entry that was not removed."""
    entry = len(alive) - 1
    while entry >= 0 and not alive[entry]:
        entry -= 1
    if entry < 0:
        raise KeyError("popitem(): dictionary is empty")
    return entry


def filled(table: Any, keys: Any, values: Any) -> Any:
    for i in range(len(keys)):
        table[keys[i]] = values[i]
    return table


def collected(table: Any, keys: Any) -> Any:
    for key in keys:
        table.add(key)
    return table


def is_subset(first: Any, second: Any) -> Any:
    holds = True
    for key in first:
        holds = holds and key in second
    return holds


def are_disjoint(first: Any, second: Any) -> Any:
    holds = True
    for key in first:
        holds = holds and key not in second
    return holds


def united(first: Any, second: Any) -> Any:
    made = first.copy()
    for key in second:
        made.add(key)
    return made


def common(first: Any, second: Any) -> Any:
    made = first.copy()
    for key in first:
        if key not in second:
            made.discard(key)
    return made


def difference(first: Any, second: Any) -> Any:
    made = first.copy()
    for key in second:
        made.discard(key)
    return made


def counts_added(first: Any, second: Any, sign: Any) -> Any:
    """``first + second`` of two `Counter`, or ``first - second``: what is positive."""
    made = first.copy()
    for key, count in second.items():
        made[key] = made.get(key, 0) + sign * count
    return positive(made)


def counts_common(first: Any, second: Any) -> Any:
    """``first & second`` of two `Counter`."""
    made = first.copy()
    for key, count in first.items():
        made[key] = min(count, second.get(key, 0))
    return positive(made)


def counts_united(first: Any, second: Any) -> Any:
    """``first | second`` of two `Counter`."""
    made = first.copy()
    for key, count in second.items():
        made[key] = max(made.get(key, 0), count)
    return positive(made)


def positive(counts: Any) -> Any:
    made = counts.copy()
    for key, count in counts.items():
        if count <= 0:
            made.discard(key)
    return made


def dict_of(source: Any, key: Any, value: Any, holds: Any) -> Any:
    """The entries of the items of a source that hold."""
    made: dict[Any, Any] = {}
    for item in source:
        if holds(item):
            made[key(item)] = value(item)
    return made


def set_of(source: Any, element: Any, holds: Any) -> Any:
    made = set()
    for item in source:
        if holds(item):
            made.add(element(item))
    return made


def counts_of(source: Any) -> Any:
    """How often each item comes."""
    made: dict[Any, Any] = {}
    for item in source:
        made[item] = made.get(item, 0) + 1
    return made


def most_common(counts: Any, n: Any) -> Any:
    """The entries with the most counts, those that came first before others."""
    found = sorted(counts.items(), key=lambda entry: -entry[1])
    return found if n is None else found[:n]


def same_keys(first: Any, second: Any) -> Any:
    """``first == second`` of two sets."""
    same = len(first) == len(second)
    if same:
        for key in first:
            same = same and key in second
    return same


def same_entries(first: Any, second: Any) -> Any:
    """``first == second`` of two dicts."""
    same = len(first) == len(second)
    if same:
        for key, value in first.items():
            if same:
                same = key in second
            if same:
                same = bool((second[key], 0) == (value, 0))
    return same
