"""Tables as lazy frames of Polars, which hand their filters and columns to the dataset's reader.

Polars passes the filter of a query as one expression that judges each row by itself. Conjuncts on ``host_id`` are
evaluated on the list of hosts; comparisons of ``time`` with a constant bound the time. Both only leave out rows that the
filter drops anyway: the filter is applied to the remaining rows. An expression that is not recognised is therefore slower,
and no less correct.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from ._frames import batches, needed

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Rows of a frame: batches, each of one host and day, are put together.
_ROWS = 100_000


def scan(rows: Any, name: str) -> LazyFrame:
    """Lazy frame of a table's rows."""
    pl, pa = needed("polars", "polars"), needed("pyarrow", "polars")
    plugins = needed("polars.io.plugins", "polars")
    schema = pl.from_arrow(pa.schema(rows).empty_table()).schema

    def read(
        columns: list[str] | None, condition: Expr | None, rows_count: int | None, batch_rows: int | None
    ) -> Iterator[DataFrame]:
        result = list(schema) if columns is None else columns
        needs, selection = list(result), {}
        if condition is not None:
            needs += [column for column in condition.meta.root_names() if column not in needs]
            selection = narrowing(pl, rows, condition)
        # Frames without columns would have no rows to count.
        for frame in frames(pl, pa, rows.narrowed(needs or ["time"], **selection), batch_rows or _ROWS):
            if condition is not None:
                frame = frame.filter(condition)
            frame = frame.select(result)
            if rows_count is not None:
                frame = frame.head(rows_count)
                rows_count -= frame.height
            yield frame
            if rows_count == 0:
                return

    frame: LazyFrame = plugins.register_io_source(read, schema=schema)
    return frame


def frames(pl: Any, pa: Any, rows: Any, least_rows: int) -> Iterator[DataFrame]:
    """Frames of at least ``least_rows`` rows each, except the last. There is one even if there are no rows."""
    schema = pa.schema(rows)
    waiting: list[Any] = []
    for batch in batches(rows):
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= least_rows:
            yield pl.from_arrow(pa.Table.from_batches(waiting, schema))
            waiting = []
    yield pl.from_arrow(pa.Table.from_batches(waiting, schema))


def narrowing(pl: Any, rows: Any, condition: Expr) -> dict[str, Any]:
    """Hosts and times outside of which the condition holds for no row."""
    hosts: set[str] | None = None
    firsts, ends = [], []
    for conjunct in conjuncts(condition):
        columns = set(conjunct.meta.root_names())
        if columns == {"host_id"}:
            known = sorted(rows.hosts() if hosts is None else hosts)
            hosts = set(pl.DataFrame({"host_id": known}, schema={"host_id": pl.String}).filter(conjunct)["host_id"])
        elif columns == {"time"}:
            first_ms, end_ms = bounds(pl, conjunct)
            firsts += [] if first_ms is None else [first_ms]
            ends += [] if end_ms is None else [end_ms]
    return {"hosts": hosts, "from_ms": max(firsts, default=None), "until_ms": min(ends, default=None)}


def conjuncts(condition: Expr) -> list[Expr]:
    """Expressions that the condition joins by ``&``."""
    inputs = condition.meta.pop()
    if len(inputs) == 2:
        for left, right in (inputs, inputs[::-1]):
            if condition.meta.eq(left & right):
                return [*conjuncts(left), *conjuncts(right)]
    return [condition]


def bounds(pl: Any, comparison: Expr) -> tuple[int | None, int | None]:
    """First time, and end of the time, that satisfy a comparison of ``time``; ``None``: no limit, or not recognised.

    In ms since 1970-01-01 UTC; the end is excluded. A limit may leave more than the comparison, and never less.
    """
    inputs = comparison.meta.pop()
    constants = [part for part in inputs if not part.meta.root_names()]
    time = pl.col("time")
    if len(inputs) != len(constants) + 1 or not any(part.meta.eq(time) for part in inputs):
        return None, None
    if len(constants) == 1:
        moment = constants[0]
        for compare, flipped in _COMPARISONS:
            if comparison.meta.eq(compare(time, moment)) or comparison.meta.eq(flipped(moment, time)):
                first_ms, end_ms = limits(pl, moment)
                return (
                    first_ms if compare in (operator.ge, operator.gt, operator.eq) else None,
                    end_ms if compare in (operator.le, operator.lt, operator.eq) else None,
                )
    if len(constants) == 2:
        for low, high in (constants, constants[::-1]):
            if any(comparison.meta.eq(time.is_between(low, high, closed)) for closed in _CLOSED):
                return limits(pl, low)[0], limits(pl, high)[1]
    return None, None


_COMPARISONS = [
    (operator.ge, operator.le),
    (operator.gt, operator.lt),
    (operator.le, operator.ge),
    (operator.lt, operator.gt),
    (operator.eq, operator.eq),
]
_CLOSED = ("both", "left", "right", "none")


def limits(pl: Any, moment: Expr) -> tuple[int | None, int | None]:
    """Milliseconds that begin at or before a moment, and after it."""
    value = pl.select(moment).item()
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None, None
    time_ms = (value - _EPOCH) // timedelta(milliseconds=1)
    return time_ms, time_ms + 1
