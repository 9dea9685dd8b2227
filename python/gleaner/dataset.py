"""Datasets and their tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _gleaner
from ._frames import batches, needed
from ._options import AnyPath, Time, is_url, path_of, several, time

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from typing_extensions import Unpack

    from ._options import AnalyzeOptions
    from .findings import Document, Findings

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Dataset:
    """A dataset in a folder or on an object store. Every call reads the dataset as it is at that moment."""

    def __init__(self, path: AnyPath) -> None:
        self._path = path_of(path)
        _gleaner.tables(self._path)  # raises if this is no dataset

    @property
    def path(self) -> Path | str:
        """Folder of the dataset, or its URL (a ``str``)."""
        return self._path if is_url(self._path) else Path(self._path)

    def __fspath__(self) -> str:
        return self._path

    def hosts(self) -> list[str]:
        """Ids of the hosts, sorted. The table ``hosts`` has their names."""
        return _gleaner.hosts(self._path)

    def tables(self) -> dict[str, int]:
        """Number of rows of each table, by the table's name."""
        return dict(_gleaner.tables(self._path))

    def span(self) -> tuple[datetime, datetime] | None:
        """Times of the first and the last sample, in UTC; ``None`` if there are no samples."""
        span = _gleaner.span(self._path)
        return None if span is None else (_utc(span[0]), _utc(span[1]))

    def table(
        self,
        name: str,
        *,
        hosts: str | Iterable[str] | None = None,
        columns: str | Iterable[str] | None = None,
        from_: Time | None = None,
        until: Time | None = None,
    ) -> Table:
        """Selects rows and columns of a table; files without selected rows are not opened.

        ``hosts`` are ids or names, ``columns`` names in the order of the result (default: all), ``from_`` the earliest
        time and ``until`` the end, itself excluded. Nothing is read yet. Raises :class:`gleaner.Error` for a table,
        column, host's name or time that does not exist.
        """
        return Table(self, name, hosts=hosts, columns=columns, from_=from_, until=until)

    def analyze(self, *, records: AnyPath | None = None, **options: Unpack[AnalyzeOptions]) -> Findings:
        """Analyses the dataset: see :func:`gleaner.analyze`."""
        from .commands import analyze

        return analyze(self, records=records, **options)

    def explain(self, host: str, at: Time | None = None, *, headroom: float | None = None) -> Document:
        """Explains a host's figures at one time: see :func:`gleaner.explain`."""
        from .commands import explain

        return explain(self, host, at, headroom=headroom)

    def report(self, output: AnyPath | None = None, **options: Any) -> Path:
        """Writes a report: see :func:`gleaner.report`."""
        from .commands import report

        return report(self, output, **options)

    def __repr__(self) -> str:
        return f"gleaner.open({self._path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and self._place() == other._place()

    def __hash__(self) -> int:
        return hash(self._place())

    def _place(self) -> str:
        return self._path.rstrip("/") if is_url(self._path) else os.path.realpath(self._path)


class Table:
    """Selected rows of a dataset's table, ordered by day, host and time; made by :meth:`Dataset.table`.

    Times are milliseconds in UTC, absent values are null, and the fields' metadata have units. The rows are those that
    the dataset had when the table was selected. Any library that reads Arrow's PyCapsule interface
    (``__arrow_c_stream__``) reads a table without pyarrow.
    """

    def __init__(
        self,
        dataset: Dataset,
        name: str,
        *,
        hosts: str | Iterable[str] | None = None,
        columns: str | Iterable[str] | None = None,
        from_: Time | None = None,
        until: Time | None = None,
    ) -> None:
        self._dataset, self._name = dataset, name
        self._selection: dict[str, Any] = {
            "hosts": None if hosts is None else several(hosts),
            "columns": None if columns is None else several(columns),
            "from_": None if from_ is None else time(from_),
            "until": None if until is None else time(until),
        }
        self._rows = _gleaner.read(os.fspath(dataset), name, **self._selection)

    @property
    def dataset(self) -> Dataset:
        """Dataset of the table."""
        return self._dataset

    @property
    def name(self) -> str:
        """Name of the table."""
        return self._name

    @property
    def rows_at_most(self) -> int:
        """Upper limit for the number of rows; exact if all rows are selected."""
        return self._rows.rows_at_most

    @property
    def schema(self) -> pyarrow.Schema:
        """Schema of the rows; a field's metadata have its unit and meaning."""
        return needed("pyarrow", "arrow").schema(self._rows)

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Reads the rows in batches, each of one day and host; memory is bounded by the largest batches."""
        return batches(self._rows)

    def arrow(self) -> pyarrow.Table:
        """Reads the rows into a ``pyarrow.Table``."""
        return needed("pyarrow", "arrow").Table.from_batches(self.batches(), schema=self.schema)

    def pandas(self) -> pandas.DataFrame:
        """Reads the rows into a pandas ``DataFrame``."""
        needed("pandas", "pandas")
        frame: pandas.DataFrame = self.arrow().to_pandas()
        return frame

    def polars(self) -> polars.LazyFrame:
        """A Polars ``LazyFrame`` of the rows; nothing is read before it is collected.

        A query reads only the columns that it needs, and only the hosts and times that its filters on ``host_id`` and
        ``time`` leave.
        """
        from ._polars import scan

        return scan(self._rows, self._name)

    def __arrow_c_schema__(self) -> object:
        """Capsule of the schema, by Arrow's PyCapsule interface."""
        return self._rows.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Capsule of a stream of the rows, by Arrow's PyCapsule interface."""
        return self._rows.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        selection = [f", {name}={value!r}" for name, value in self._selection.items() if value is not None]
        return f"{self._dataset!r}.table({self._name!r}{''.join(selection)})"


def _utc(time_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=time_ms)
