"""Analysis on a Spark cluster by ranges of hosts, and simulation by runs.

Each task of Spark runs the package's own code on the hosts of one range, or some runs of a simulation: every executor
needs the package, and the dataset's folder under the same path. Spark repeats lost tasks; a repeated task returns the
same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _gleaner, commands
from ._frames import needed
from ._options import AnyPath
from .findings import Document, Findings
from .parts import Work, analyze_in_parts, analyze_range, finished, tasks

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Unpack

    from ._options import AnalyzeOptions
    from .dataset import Dataset

# Parts that one task merges, and that the driver merges at the end.
_MERGED = 32
_ROWS = "part long, bytes binary"


def analyze(
    spark: SparkSession | None,
    dataset: Dataset | AnyPath,
    parts: int | None = None,
    *,
    records: AnyPath | None = None,
    **options: Unpack[AnalyzeOptions],
) -> Findings:
    """Analyses a dataset on Spark, and returns the findings of :func:`gleaner.analyze`, byte for byte.

    ``parts`` is the number of tasks (default: one for 64 hosts). With more than 32 parts, further tasks merge them before
    the driver does, so that the driver's memory holds few parts. Without Spark (``spark=None``) the tasks run in
    processes of this machine: :func:`gleaner.analyze_in_parts`. ``records``, a folder of the driver, and ``options`` are
    those of :func:`gleaner.analyze`.

    Spark needs pyarrow: ``pip install 'gleaner[spark]'``. Raises :class:`gleaner.Error` before the first task for wrong
    options; Spark's own exception, with the same text in it, for a task that failed repeatedly.
    """
    if spark is None:
        return analyze_in_parts(dataset, parts, records=records, **options)
    needed("pyarrow", "spark")
    whole = tasks(dataset, parts, options)
    rows = _rows(spark, analyze_range, whole)
    count = len(whole)
    while count > _MERGED:
        count = -(-count // _MERGED)
        grouped = rows.selectExpr(f"part div {_MERGED} as part", "part as at", "bytes").repartition(count, "part")
        rows = grouped.mapInArrow(_merging(), _ROWS)
    return finished(_collected(rows), records)


def simulate(spark: SparkSession | None, scenario: AnyPath, parts: int, **options: Any) -> Document:
    """Simulates a scenario on Spark, and returns the document of :func:`gleaner.simulate`, byte for byte.

    ``parts`` is the number of tasks; more tasks than runs gain nothing. ``options`` are those of
    :func:`gleaner.simulate`. Every executor needs a scenario's file and its streams under the same path, too. Without
    Spark (``spark=None``) the tasks run in processes of this machine. For wrong options, a :class:`gleaner.Error` or
    Spark's own exception, with the same text in it, is raised.
    """
    if spark is None:
        return commands.simulate(scenario, parts=parts, **options)
    needed("pyarrow", "spark")

    def on_spark(work: Work, whole: Sequence[Any]) -> Iterable[bytes]:
        return _collected(_rows(spark, work, whole))

    return commands.simulate(scenario, parts=parts, executor=on_spark, **options)


def _rows(spark: SparkSession, work: Work, whole: Sequence[Any]) -> DataFrame:
    """Data frame of one row per task, each in a partition of its own: the task's index and the part that it returns."""
    return spark.range(0, len(whole), numPartitions=len(whole)).mapInArrow(_working(work, whole), _ROWS)


def _collected(rows: DataFrame) -> list[bytes]:
    """Parts of all rows, in the order of their indices."""
    found = {row["part"]: bytes(row["bytes"]) for row in rows.collect()}
    return [found[part] for part in sorted(found)]


def _working(work: Work, whole: Sequence[Any]) -> Callable[[Iterable[RecordBatch]], Iterator[RecordBatch]]:
    """Function of a task: the part for each index of ``whole``."""

    def working(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                yield row(at, work(whole[at]))

    return working


def _merging() -> Callable[[Iterable[RecordBatch]], Iterator[RecordBatch]]:
    """Function of a task that merges the parts of each group among its rows."""

    def merging(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        groups: dict[int, dict[int, bytes]] = {}
        for batch in batches:
            for group, at, part in zip(*(column.to_pylist() for column in batch.columns)):
                groups.setdefault(group, {})[at] = part
        for group, parts in groups.items():
            yield row(group, _gleaner.merge([parts[at] for at in sorted(parts)]))

    return merging


def row(part: int, content: bytes) -> Any:
    """Record batch of one row: a part's index and its bytes."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([part], pa.int64()), pa.array([content], pa.binary())], ["part", "bytes"])
