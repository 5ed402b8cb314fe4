"""match statements whose subjects, patterns and guards are tensors."""

from __future__ import annotations

import dataclasses
import enum

from tests.corpus.registry import case, python, smooth


class Limits:
    low = 2
    high = 6


class Kind(enum.Enum):
    A = 1
    B = 2


@dataclasses.dataclass
class Point:
    x: object
    y: object


@case(2, 5, 6, 7, -1)
def match_literals(n):
    match n:
        case 2:
            r = 1
        case 5 | 6:
            r = 2
        case -1:
            r = 3
        case _:
            r = 4
    return r


@case(2, 7, 4)
def match_returns(n):
    match n:
        case 2:
            return 10
        case k if k > 6:
            return k
    return -1


@case(2, 6, 3)
def match_dotted_names(n):
    match n:
        case Limits.low:
            return 1
        case Limits.high as k:
            return k * 10
        case other:
            return other + 100


@case((2, 1), (5, 0), (1, 0))
def match_tuple_of_values(a, b):
    match (a, b):
        case (2, second):
            r = second
        case (first, 0) if first > 3:
            r = first * 2
        case _:
            r = -1
    return r


@case((2, 1), (5, 0))
def match_mapping_of_values(a, b):
    match {"k": a, "l": b}:
        case {"k": 2, "l": value}:
            r = value
        case {"k": value, **rest}:
            r = value * 2 + rest["l"]
    return r


@case((2, 1), (5, 2), (7, 3), (3, 7))
def match_class_of_values(a, b):
    match Point(a, b):
        case Point(2, y=other) | Point(other, 2):
            r = other
        case Point(x, y) if x > y:
            r = x - y
        case _:
            r = 100
    return r


@case(7)
def match_in_tensor_loop(n):
    s = 0
    for i in range(n):
        match i:
            case 0:
                continue
            case 5:
                break
            case 2 | 3:
                s += 10
        s += i
    return s


@case((3, 1), (1, 3))
def match_guard_only(a, b):
    match a:
        case _ if a > b:
            return 1
        case _:
            return 2


@case((3, 1), (1, 3), (4, 4))
def match_binds_before_its_guard(a, b):
    match a:
        case k if k > b:
            pass
        case _:
            pass
    return k


@case((3, 1), (1, 3))
def match_nested_structure(a, b):
    match [Point(a, b), (1, 2, 3)]:
        case [Point(x=1, y=y), (_, *rest)]:
            return y * 10 + len(rest)
        case [Point(x=x), [first, *_]]:
            return x * 100 + first


@case((3, 1), (0, 3))
def match_in_branch(a, b):
    if a > b:
        match b:
            case 1:
                a = a * 10
            case _:
                a = a * 20
    return a


@case((3, 1), (0, 3))
def match_expression_subject(a, b):
    match a + b:
        case 4:
            match a - b:
                case 2:
                    return 1
                case _:
                    return 2
        case _:
            return 3


@case(3, 8)
def match_changes_its_subject(n):
    match n:
        case 3:
            n = 8
        case 8:
            n = 3
    return n


@smooth(0.5, 2.5)
def gradient_of_match(x):
    match x:
        case v if v > 1.0:
            return v * v
        case v:
            return v * 3.0


@python(Kind.A, Kind.B, 3, None, True, 1.5, "text", b"bytes", 2j)
def match_everything(v):
    match v:
        case Kind.A:
            return "A"
        case Kind():
            return "kind"
        case True | False:
            return "bool"
        case None:
            return "none"
        case 3 | 1.5:
            return "number"
        case "text" | b"bytes":
            return "text"
        case -1 + 2j | 2j:
            return "complex"


@python([1, 2], [1], ((1, 2, 3),), [0, [5]], "ab", {})
def match_sequences(v):
    match v:
        case [1, x]:
            return x
        case [1]:
            return "one"
        case (1, *rest):
            return rest
        case [0, [x]] if x > 4:
            return -x
        case []:
            return "empty"
        case _:
            return "other"


@python(3, "x")
def match_refused_for_tensors(v):
    match (v, v):
        case (int(n), _) | (_, int(n)) if n > 2:
            return n
        case (a, b) if a == b:
            return a
