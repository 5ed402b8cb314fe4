"""Datasets of the rows of CSV files (``td.data.experimental``)."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import treadle as td
from treadle.data.dataset import Dataset
from treadle.data.elements import Leaves
from treadle.data.files import names_stage
from treadle.data.stages.files import Files
from treadle.data.stages.parallel import AUTOTUNE
from treadle.data.stages.stage import available_processors, invalid
from treadle.io.streams import compression
from treadle.io.tables import column_type, records, rows, values
from treadle.iteration import at, user_origin

_KINDS = (td.int32, td.int64, td.float32, td.float64, td.string)
_NAMES = ("int32", "int64", "float32", "float64", "string", "float", "double")


def _columns(defaults: Any) -> list[tuple[Any, Any]]:
    """The dtypes of columns, and the values of empty fields; a dtype stands for a column whose
    fields must be there. A string is a dtype where it is the name of one that columns have."""
    found = []
    for default in defaults:
        if isinstance(default, td.DType) or (
            default in _NAMES if isinstance(default, str) else default in _KINDS
        ):
            default = td.constant([], td.as_dtype(default))
        found.append(column_type(default))
    return found


def _read(
    name: str, kind: str, columns: Sequence[tuple[Any, Any]], header: bool, delimiter: str,
    quoted: bool, missing: str, chosen: Sequence[int] | None, encoding: str,
) -> Iterator[Leaves]:  # fmt: skip
    """The rows of a file as elements; what is wrong with one does not end the pass."""
    found = enumerate(records(name, kind, delimiter, quoted, encoding))

    def element(numbered: tuple[int, list[str] | ValueError]) -> Leaves:
        number, row = numbered
        if isinstance(row, ValueError):
            raise invalid(f"{name}, row {number}: {row}")
        given = values(row, columns, missing, chosen, f"{name}, row {number}")
        return tuple(
            [np.array(v, t.np_dtype) for v, (t, _) in zip(given, columns, strict=True)]
        )

    if header and next(found, None) is None:
        raise invalid(f"{name} is empty: it has no header")
    return map(element, found)


class CsvDataset(Dataset):
    """The rows of CSV files, tuples of scalars.

    Args:
        filenames: a name, a tensor or list of them, or a dataset of them, read one after another.
        record_defaults: for each column a dtype (float32, float64, int32, int64 or string), where
            its fields must be there, or the value of an empty field.
        compression_type: "" or None, "GZIP" or "ZLIB".
        header: whether the first row of a file is left out.
        field_delim: what is between fields.
        use_quote_delim: whether fields may stand in double quotes; then they may have several
            lines.
        na_value: what stands for an empty field, too.
        select_cols: the numbers of the columns that are wanted, rising.
        exclude_cols: those that are not, instead.
        buffer_size: accepted for TensorFlow programs.

    Raises:
        TypeError: the names are no strings.
        InvalidArgumentError: another compression; columns that are not rising, or not one default
            for each. While iterating: a row with another number of fields, a field that is missing
            or no such number; the text has the file and the row. The next element is the next row.
        NotFoundError: while iterating, there is no such file.
    """

    def __init__(
        self, filenames: Any, record_defaults: Any, compression_type: Any = None,
        buffer_size: Any = None, header: bool = False, field_delim: str = ",",
        use_quote_delim: bool = True, na_value: str = "", select_cols: Any = None,
        exclude_cols: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            _rows(
                filenames, record_defaults, compression_type, header, field_delim,
                use_quote_delim, na_value, select_cols, exclude_cols, "utf-8", 1,
            )
        )  # fmt: skip


def _rows(
    filenames: Any, defaults: Any, kind: Any, header: bool, delimiter: str, quoted: bool,
    missing: str, select: Any, exclude: Any, encoding: str, at_once: int,
) -> Files:  # fmt: skip
    """The stage of the rows of CSV files."""
    columns = _columns(defaults)
    chosen = None if select is None else [int(k) for k in select]
    if exclude is not None:
        if chosen is not None:
            raise invalid("CsvDataset: give select_cols or exclude_cols, not both")
        left_out = {int(k) for k in exclude}
        every = range(len(columns) + len(left_out))
        chosen = [k for k in every if k not in left_out]
    if chosen is not None and len(chosen) != len(columns):
        raise invalid("CsvDataset: select_cols should match output size")
    if chosen is not None and (chosen != sorted(set(chosen)) or min(chosen, default=0) < 0):
        raise invalid("CsvDataset: select_cols should be strictly increasing indices")
    read: Callable[[str], Iterator[Leaves]] = partial(
        _read, kind=compression(kind, "CsvDataset"), columns=columns, header=bool(header),
        delimiter=_text(delimiter), quoted=bool(quoted), missing=_text(missing),
        chosen=chosen, encoding=encoding,
    )  # fmt: skip
    spec = tuple(td.TensorSpec((), dtype) for dtype, _ in columns)
    return Files(names_stage(filenames, "CsvDataset"), read, at_once, spec)


def _text(value: Any) -> str:
    """A str, of a str, bytes or an eager tensor."""
    plain = value.numpy() if isinstance(value, td.Tensor) else value
    return plain.decode() if isinstance(plain, bytes) else str(plain)


# -- whole tables ----------------------------------------------------------------------------------


def make_csv_dataset(
    file_pattern: Any, batch_size: int, column_names: Any = None, column_defaults: Any = None,
    label_name: str | None = None, select_columns: Any = None, field_delim: str = ",",
    use_quote_delim: bool = True, na_value: str = "", header: bool = True,
    num_epochs: int | None = None, shuffle: bool = True, shuffle_buffer_size: int = 10000,
    shuffle_seed: Any = None, prefetch_buffer_size: Any = None, num_parallel_reads: Any = None,
    sloppy: bool = False, num_rows_for_inference: int | None = 100,
    compression_type: Any = None, ignore_errors: bool = False, encoding: str = "utf-8",
) -> Dataset:  # fmt: skip
    """Batches of rows of CSV files: dicts of the columns by name.

    Args:
        file_pattern: files, or patterns of the shell.
        batch_size: rows in a batch.
        column_names: the names of all columns; without them the first row of the first file.
        column_defaults: for each column that is wanted a dtype or the value of an empty field;
            without them the dtypes are found from the first rows, and fields may be empty: they are
            0 or "".
        label_name: the column of labels: elements are then (dict, labels).
        select_columns: names or numbers of the columns that are wanted.
        field_delim, use_quote_delim, na_value, compression_type: as for `CsvDataset`.
        header: whether the first row of each file has names.
        num_epochs: how many times the rows come; None: without end, with full batches only.
        shuffle, shuffle_buffer_size, shuffle_seed: see `Dataset.shuffle`; files are shuffled, too.
        prefetch_buffer_size: batches that are made ahead; AUTOTUNE for None.
        num_parallel_reads: how many files are read at once.
        sloppy: accepted for TensorFlow programs.
        num_rows_for_inference: how many rows the dtypes are found from; None for all.
        ignore_errors: whether rows with errors are left out.
        encoding: of the files.

    Raises:
        ValueError: no such files, names that are not unique or not those of the columns, rows of
            different lengths.
        InvalidArgumentError: as for `CsvDataset`.
    """
    patterns = [file_pattern] if isinstance(file_pattern, str | bytes) else list(file_pattern)
    names = td.io.gfile.glob([_text(p) for p in patterns])
    if not names:
        raise ValueError(f"No files match `file_pattern` {file_pattern}.{at(user_origin())}")
    kind = compression(compression_type, "make_csv_dataset")
    form: dict[str, Any] = {
        "kind": kind, "delimiter": field_delim, "quoted": use_quote_delim, "encoding": encoding
    }  # fmt: skip
    titles = _titles(names, partial(rows, **form), column_names, header)
    chosen = _chosen(titles, select_columns)
    if label_name is not None and label_name not in [titles[k] for k in chosen]:
        shown = [titles[k] for k in chosen]
        raise ValueError(
            f"`label_name` provided must be one of the columns: {shown}. Received: {label_name}."
            f"{at(user_origin())}"
        )
    if column_defaults is None:
        read = partial(records, **form)
        found = _sampled(names, read, header, len(titles), num_rows_for_inference)
        column_defaults = _inferred(found, chosen, na_value)
    at_once = 1 if num_parallel_reads is None else int(num_parallel_reads)
    if at_once == AUTOTUNE:
        at_once = available_processors()
    order = Dataset.from_tensor_slices(names)
    if shuffle:
        order = order.shuffle(len(names), shuffle_seed)
    dataset = Dataset(
        _rows(
            order, column_defaults, kind, header, field_delim, use_quote_delim, na_value, chosen,
            None, encoding, at_once,
        )
    )  # fmt: skip
    if ignore_errors:
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)

    def as_dict(*columns: Any) -> Any:
        features = OrderedDict(zip((titles[k] for k in chosen), columns, strict=True))
        return features if label_name is None else (features, features.pop(label_name))

    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(as_dict)
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _titles(names: list[str], read: Any, given: Any, header: bool) -> list[str]:
    """The names of the columns.

    Raises:
        ValueError: they are not unique, or other in another file.
    """
    if given is None and not header:
        raise ValueError(
            f"Cannot infer column names without a header line.{at(user_origin())}"
        )
    titles = [_text(t) for t in given] if given is not None else next(read(names[0]), [])
    if len(set(titles)) != len(titles):
        raise ValueError(f"Cannot have duplicate column names.{at(user_origin())}")
    for name in names if header and given is None else ():
        if next(read(name), None) != titles:
            raise ValueError(
                "All input CSV files should have the same column names in the header row. File "
                f"{name} has different column names.{at(user_origin())}"
            )
    return titles


def _chosen(titles: list[str], select: Any) -> list[int]:
    """The numbers of the columns that are wanted, rising.

    Raises:
        ValueError: there is no such column, or it is named twice.
    """
    if select is None:
        return list(range(len(titles)))
    found = []
    for one in select:
        if isinstance(one, str) and one not in titles:
            raise ValueError(f"Value '{one}' is not one of the columns {titles}{at(user_origin())}")
        found.append(titles.index(one) if isinstance(one, str) else int(one))
    if len(set(found)) != len(found) or not all(0 <= k < len(titles) for k in found):
        raise ValueError(f"`select_columns` {list(select)} must be unique{at(user_origin())}")
    return sorted(found)


def _sampled(
    names: list[str], read: Any, header: bool, count: int, most: int | None
) -> list[list[str]]:
    """The first rows, without those that cannot be split.

    Raises:
        ValueError: one has another number of fields.
    """
    def every() -> Iterator[list[str]]:
        for name in names:
            for number, row in enumerate(itertools.islice(read(name), int(header), None)):
                if isinstance(row, ValueError):
                    continue
                if len(row) != count:
                    raise ValueError(
                        f"Problem inferring types: row {number} of {name} has {len(row)} fields. "
                        f"Expected: {count}.{at(user_origin())}"
                    )
                yield row

    return list(itertools.islice(every(), most))


def _inferred(sample: list[list[str]], chosen: list[int], missing: str) -> list[Any]:
    """The defaults of columns of the first dtype that all their fields fit."""
    found = []
    for k in chosen:
        fields = {row[k] for row in sample} - {"", missing}
        kind = next(kind for kind in _KINDS if all(_fits(field, kind) for field in fields))
        kind = kind if fields else td.string
        found.append(td.constant(["" if kind is td.string else 0], kind))
    return found


def _fits(field: str, kind: Any) -> bool:
    if kind is td.string:
        return True
    try:
        if kind.is_integer:
            return bool(kind.min <= int(field) <= kind.max)
        number = float(field)
    except ValueError:
        return False
    return kind is td.float64 or abs(number) <= kind.max or not np.isfinite(number)
