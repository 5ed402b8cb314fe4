"""Records of tables split into their fields (CSV)."""

from __future__ import annotations

from collections.abc import Callable

_QUOTE, _BREAKS = '"', "\r\n"


def split_fields(
    record: str, delimiter: str, quoted: bool, further: Callable[[], str] = lambda: ""
) -> list[str]:
    """The fields of a record.

    Args:
        delimiter: what is between fields.
        quoted: whether fields may stand in double quotes, in which a quote is written twice.
        further: gives the next line, with the line break before it, for a field in quotes that
            goes on there; "" where there is none.

    Raises:
        ValueError: a quote or a line break within a field without quotes, more behind a field in
            quotes, or a field in quotes without an end.
    """
    if not quoted or _QUOTE not in record:
        return [_plain(field, quoted) for field in record.split(delimiter)]
    fields, place = [], 0
    while True:
        while record[place : place + 1] in ("\r", "\n"):
            place += 1
        if record.startswith(_QUOTE, place):
            field, record, place = _in_quotes(record, place + 1, further)
        else:
            end = record.find(delimiter, place)
            end = len(record) if end < 0 else end
            field, place = _plain(record[place:end], quoted), end
        fields.append(field)
        if place == len(record):
            return fields
        if not record.startswith(delimiter, place):
            raise ValueError("Quote inside a string has to be escaped by another quote")
        place += len(delimiter)


def _plain(field: str, quoted: bool) -> str:
    """A field without quotes around it."""
    field = field.lstrip(_BREAKS)
    if (quoted and _QUOTE in field) or "\n" in field or "\r" in field:
        raise ValueError("Unquoted fields cannot have quotes or line breaks inside")
    return field


def _in_quotes(record: str, start: int, further: Callable[[], str]) -> tuple[str, str, int]:
    """A field whose first quote is before `start`; the record with the lines that the field needed,
    and the place behind its last quote."""
    parts, seen = [], start
    while True:
        end = record.find(_QUOTE, seen)
        if end < 0:
            more = further()
            if not more:
                raise ValueError("Reached the end without the closing quote of a field")
            seen, record = len(record), record + more
            continue
        parts.append(record[start:end])
        if not record.startswith(_QUOTE, end + 1):
            return _QUOTE.join(parts), record, end + 1
        start = seen = end + 2


__all__ = ["split_fields"]
