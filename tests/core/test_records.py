"""Records are dataclasses, whenever their methods are written."""

import copy
import dataclasses
import threading
from typing import Any, ClassVar

import pytest

from treadle.core.records import record


def test_they_are_dataclasses() -> None:
    @record
    class Point:
        """A point."""

        x: int
        y: int = 2
        names: list[str] = dataclasses.field(default_factory=list)

    assert "__eq__" not in Point.__dict__
    p = Point(1)
    assert (p.x, p.y, p.names) == (1, 2, [])
    assert repr(p) == "test_they_are_dataclasses.<locals>.Point(x=1, y=2, names=[])"
    assert p == Point(1, 2, []) != Point(2)
    assert Point(1).names is not p.names
    assert dataclasses.replace(p, x=5) == Point(5)
    assert [f.name for f in dataclasses.fields(p)] == ["x", "y", "names"]
    assert copy.deepcopy(p) == p
    with pytest.raises(TypeError, match="missing"):
        Point()
    with pytest.raises(TypeError, match="unhashable"):
        hash(p)


def test_fields() -> None:
    class Base:
        shared: ClassVar[int] = 1

    @record
    class Point(Base):
        x: int
        kind: ClassVar[str] = "point"
        y: int = dataclasses.field(default=2, repr=False)

    @record
    class Named(Point):
        x: float
        name: "str" = ""

    @record
    class Wrong:
        items: list[int] = []

    assert Named(1).y == Point.y == 2 and Point.kind == "point" and dataclasses.is_dataclass(Point)
    x, y, name = dataclasses.fields(Named(1))
    assert (x.name, x.type, x.default) == ("x", float, dataclasses.MISSING)
    assert (y.name, y.default, y.repr) == ("y", 2, False)
    assert (name.name, name.type, name.default, name.init) == ("name", "str", "", True)
    match Named(3, name="a"):
        case Named(1):
            raise AssertionError
        case Named(3, 2, found):
            assert found == "a"
    with pytest.raises(ValueError, match="items"):
        Wrong()


def test_frozen_ones_and_options() -> None:
    @record(frozen=True)
    class Key:
        a: int

        def __post_init__(self) -> None:
            assert self.a >= 0

    @record(eq=False, repr=False)
    class Thing:
        a: int

    assert {Key(1): 2}[Key(1)] == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Key(1).a = 2  # type: ignore[misc]
    with pytest.raises(AssertionError):
        Key(-1)
    assert Thing(1) != Thing(1) and "object at" in repr(Thing(1))


def test_fields_that_are_not_arguments() -> None:
    @record(frozen=True)
    class Made:
        a: int
        b: int = dataclasses.field(init=False, compare=False)
        c: list[int] = dataclasses.field(init=False, default_factory=list)
        d: int = dataclasses.field(default=4, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", self.a + 1)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Made) and self.a == other.a

    made = Made(1)
    assert (made.a, made.b, made.c, made.d) == (1, 2, [], 4)
    assert repr(made).endswith("Made(a=1, b=2, c=[])")
    assert made == Made(1, 5) != Made(2)
    with pytest.raises(TypeError):
        Made(1, b=3)  # type: ignore[call-arg]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.a


def test_classes_that_derive_from_others() -> None:
    @record
    class Base:
        a: int
        places: list[int] = dataclasses.field(default_factory=list, kw_only=True)

    @record
    class Derived(Base):
        b: int

    class Plain(Base):
        def __init__(self) -> None:
            super().__init__(7)

    assert Derived(1, 2) == Derived(a=1, b=2) != Derived(1, 2, places=[3])
    with pytest.raises(TypeError):
        Derived(1, 2, [3])  # type: ignore[misc]
    assert Plain().a == 7 and Base(3).a == 3


def test_the_first_ones_of_several_threads() -> None:
    for _ in range(20):

        @record
        class Point:
            x: int
            y: int

        start, made = threading.Barrier(4), []

        def make(kind: Any = Point, start: Any = start, made: Any = made) -> None:
            start.wait()
            made.append(kind(1, 2))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Point(1, 2)] * 4
