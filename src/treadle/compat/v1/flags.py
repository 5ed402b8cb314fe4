"""``td.compat.v1.flags``: arguments of the command line by names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.names import missing_in


class Error(Exception):
    """Something is wrong with a flag."""


class UnparsedFlagAccessError(Error, AttributeError):
    """A flag was read before the command line was."""


class DuplicateFlagError(Error):
    """Two flags of one name."""


class IllegalFlagValueError(Error):
    """A value that the flag does not take."""


class Flag:
    """A flag.

    Attributes:
        value, default: what it is and was.
        help: what it means.
        present: whether the command line has it.
    """

    def __init__(self, name: str, default: Any, help: str, parse: Callable[[str], Any],
                 short_name: str | None = None) -> None:  # fmt: skip
        self.name, self.default, self.help, self.parse = name, default, help, parse
        self.value, self.short_name, self.present = default, short_name, 0
        self.is_list = False


class FlagValues:
    """The flags as attributes. They are read from the command line when one is asked for first, or
    by `app.run`."""

    def __init__(self) -> None:
        self.__dict__["_flags"] = {}
        self.__dict__["_parsed"] = False
        self.__dict__["_required"] = set()

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Read the flags of a command line.

        Returns:
            What is no flag, the program's name first.

        Raises:
            Error: a flag is not known, has no value or one that it does not take, or is missing.
        """
        rest, waiting = list(argv[:1]), list(argv[1:])
        while waiting:
            text = waiting.pop(0)
            if text == "--":
                rest += waiting
                break
            if not text.startswith("-") or text == "-":
                rest.append(text)
                continue
            name, has_value, value = text.lstrip("-").partition("=")
            name = name.replace("-", "_")
            flag, negated = self._found(name)
            if flag is None:
                if known_only:
                    rest.append(text)
                    continue
                raise Error(f"Unknown command line flag '{name}'")
            if flag.parse is _boolean and not has_value:
                value = "false" if negated else "true"
            elif not has_value:
                if not waiting:
                    raise Error(f"Missing value for flag --{name}")
                value = waiting.pop(0)
            self._set(flag, value)
        self.__dict__["_parsed"] = True
        missing = [n for n in sorted(self._required) if self._flags[n].value is None]
        if missing:
            raise IllegalFlagValueError(
                "".join(
                    f"flag --{n}=None: --{n} must have a value" for n in missing
                )
            )
        return rest

    def _found(self, name: str) -> tuple[Flag | None, bool]:
        flags: dict[str, Flag] = self._flags
        by_short = {f.short_name: f for f in flags.values() if f.short_name}
        found = flags.get(name) or by_short.get(name)
        if found is None and name.startswith("no") and name[2:] in flags:
            return flags[name[2:]], True
        return found, False

    def _set(self, flag: Flag, text: str) -> None:
        try:
            value = flag.parse(text)
        except (ValueError, TypeError) as error:
            raise IllegalFlagValueError(f"flag --{flag.name}={text}: {error}") from None
        if flag.is_list:
            value = [*(flag.value if flag.present else []), value]
        flag.value, flag.present = value, flag.present + 1

    def define(self, flag: Flag) -> None:
        """Add a flag.

        Raises:
            DuplicateFlagError: there is one of this name with another default.
        """
        there = self._flags.get(flag.name)
        if there is not None and (there.default, there.help) != (flag.default, flag.help):
            raise DuplicateFlagError(f"The flag '{flag.name}' is defined twice.{at(user_origin())}")
        if there is None:
            self._flags[flag.name] = flag

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._flags:
            raise AttributeError(name)
        if not self._parsed:
            self(sys.argv, known_only=True)
        return self._flags[name].value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags:
            raise AttributeError(name)
        self._flags[name].value = value

    def __delattr__(self, name: str) -> None:
        if name not in self._flags:
            raise AttributeError(name)
        del self._flags[name]

    def __getitem__(self, name: str) -> Flag:
        return self._flags[name]  # type: ignore[no-any-return]

    def __contains__(self, name: str) -> bool:
        return name in self._flags

    def __iter__(self) -> Any:
        return iter(self._flags)

    def __len__(self) -> int:
        return len(self._flags)

    def __dir__(self) -> list[str]:
        return sorted(self._flags)

    def flag_values_dict(self) -> dict[str, Any]:
        """All values by their names."""
        return {name: flag.value for name, flag in self._flags.items()}

    def is_parsed(self) -> bool:
        """Whether a command line was read."""
        return bool(self._parsed)

    def mark_as_parsed(self) -> None:
        self.__dict__["_parsed"] = True

    def mark_required(self, name: str) -> None:
        """Say that a flag must have a value."""
        self._required.add(name)


FLAGS = FlagValues()


def _boolean(text: Any) -> bool:
    if isinstance(text, bool):
        return text
    if str(text).lower() in ("true", "t", "1", "yes", "y"):
        return True
    if str(text).lower() in ("false", "f", "0", "no", "n"):
        return False
    raise ValueError(f"Non-boolean argument to boolean flag: {text!r}")


def _definer(parse: Callable[[str], Any], kind: str, is_list: bool = False) -> Callable[..., None]:
    def define(name: str, default: Any, help: str, flag_values: Any = None,
               short_name: str | None = None, required: bool = False, **more: Any) -> None:
        low, high = more.pop("lower_bound", None), more.pop("upper_bound", None)

        def bounded(text: str) -> Any:
            value = parse(text)
            if (low is not None and value < low) or (high is not None and value > high):
                raise ValueError(f"{value} is not in [{low}, {high}]")
            return value

        chosen = parse if low is None and high is None else bounded
        if default is not None and not is_list:
            try:
                default = chosen(default)
            except (ValueError, TypeError) as error:
                raise IllegalFlagValueError(f"flag --{name}={default}: {error}") from None
        flag = Flag(name, default, help, chosen, short_name)
        flag.is_list = is_list
        (flag_values or FLAGS).define(flag)
        if required:
            (flag_values or FLAGS).mark_required(name)

    define.__doc__ = f"Define a flag that is {kind}."
    return define


def _listed(text: Any) -> list[str]:
    return list(text) if isinstance(text, list | tuple) else [
        p.strip() for p in str(text).split(",")
    ]


DEFINE_string = _definer(str, "a text")
DEFINE_integer = _definer(int, "an integer")
DEFINE_float = _definer(float, "a number")
DEFINE_bool = DEFINE_boolean = _definer(_boolean, "true or false")
DEFINE_list = _definer(_listed, "texts between commas")
DEFINE_multi_string = _definer(str, "a text, any number of times", is_list=True)
DEFINE_multi_integer = _definer(int, "an integer, any number of times", is_list=True)
DEFINE_multi_float = _definer(float, "a number, any number of times", is_list=True)


def DEFINE_enum(name: str, default: Any, enum_values: Sequence[str], help: str,
                flag_values: Any = None, **more: Any) -> None:  # fmt: skip
    """Define a flag that is one of some texts."""

    def parse(text: str) -> str:
        if text not in enum_values:
            raise ValueError(f"value should be one of <{'|'.join(enum_values)}>")
        return text

    _definer(parse, "one of some texts")(name, default, help, flag_values, **more)


def mark_flag_as_required(flag_name: str, flag_values: FlagValues = FLAGS) -> None:
    """Say that a flag must have a value."""
    flag_values.mark_required(flag_name)


def mark_flags_as_required(flag_names: Sequence[str], flag_values: FlagValues = FLAGS) -> None:
    """Say that flags must have values."""
    for name in flag_names:
        flag_values.mark_required(name)

__getattr__ = missing_in(__name__)
