#!/usr/bin/env python3
"""Disk space of a trace: rows and bytes of each table and column, per sample after the first."""

import argparse
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = """examples:
  bench/stored.py /var/lib/gleaner/trace.db            each table
  bench/stored.py --columns /var/lib/gleaner/trace.db  and each column, the dearest first
"""


@dataclass(frozen=True)
class Table:
    """Figures of one table. Rows and bytes are per sample, over all samples but the first."""

    name: str
    rows: float
    bytes: float
    #: Bytes by column, of values and their serial types; "(row)" is the overhead of each row.
    columns: dict[str, float]
    #: Share of the table's pages that holds no rows.
    unused_share: float


def tables(database: Path) -> tuple[int, list[Table]]:
    """Number of samples after the first, and the tables."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as trace:
        first, samples = trace.execute("SELECT min(sequence), count(*) - 1 FROM samples").fetchone()
        if samples < 1:
            raise RuntimeError(f"{database}: one sample is not enough to tell what a further one takes")
        names = [
            name
            for (name,) in trace.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            if name != "meta"
        ]
        return samples, [table(trace, name, first, samples) for name in names]


def table(trace: sqlite3.Connection, name: str, first: int, samples: int) -> Table:
    cursor = trace.execute(f'SELECT * FROM "{name}" WHERE sequence > ?', (first,))
    columns = [column[0] for column in cursor.description]
    has_rowid = "WITHOUT ROWID" not in trace.execute(
        "SELECT sql FROM sqlite_schema WHERE name = ?", (name,)
    ).fetchone()[0]
    sums = dict.fromkeys([*columns, "(row)"], 0)
    rows = 0
    for row in cursor:
        rows += 1
        header = 1
        for column, value in zip(columns, row):
            if has_rowid and column == "sequence":
                # INTEGER PRIMARY KEY is stored as the row's number; the record has a NULL.
                serial, content = 1, varint_bytes(value)
            else:
                serial, content = stored_bytes(value)
            header += serial
            sums[column] += serial + content
        # Overhead of a cell: its length, the header's length, and the page's two-byte pointer to the
        # cell.
        sums["(row)"] += 2 + (1 if header < 128 else 2) + varint_bytes(header + 40)
    share = "SELECT 1.0 * sum(unused) / sum(pgsize) FROM dbstat WHERE name = ?"
    return Table(
        name=name,
        rows=rows / samples,
        bytes=sum(sums.values()) / samples,
        columns={column: taken / samples for column, taken in sums.items()},
        unused_share=trace.execute(share, (name,)).fetchone()[0] or 0.0,
    )


def stored_bytes(value) -> tuple[int, int]:
    """Bytes of a value's serial type and of its content (SQLite's file format, 2.1)."""
    if value is None:
        return 1, 0
    if isinstance(value, str):
        content = len(value.encode())
        return varint_bytes(13 + 2 * content), content
    if isinstance(value, float):
        if not value.is_integer():
            return 1, 8
        value = int(value)  # stored by SQLite as an integer
    if value in (0, 1):
        return 1, 0
    magnitude = value if value >= 0 else -1 - value
    return 1, next(size for size in (1, 2, 3, 4, 6, 8) if magnitude < 1 << (8 * size - 1))


def varint_bytes(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


def markdown(database: Path) -> str:
    samples, found = tables(database)
    lines = [
        f"What gleaner-agent stored of each of {samples} samples after the first (rows' own bytes; a page's empty rest is apart):",
        "",
        "| table | rows | bytes | empty part of its pages |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [f"| {one.name} | {one.rows:.1f} | {one.bytes:,.0f} | {one.unused_share:.0%} |" for one in found]
    lines.append(f"| all | {sum(one.rows for one in found):.1f} | {sum(one.bytes for one in found):,.0f} | |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--columns", action="store_true", help="each column too")
    parser.add_argument("database", type=Path)
    args = parser.parse_args()
    try:
        samples, found = tables(args.database)
    except (sqlite3.Error, RuntimeError) as error:
        print(f"stored.py: {error}", file=sys.stderr)
        return 1
    print(f"{samples} samples after the first")
    print(f"{'table':32} {'rows':>8} {'bytes':>8} {'unused':>7}")
    for one in found:
        print(f"{one.name:32} {one.rows:8.1f} {one.bytes:8.1f} {one.unused_share:7.0%}")
    print(f"{'all':32} {'':8} {sum(one.bytes for one in found):8.1f}")
    if args.columns:
        cost = {f"{one.name}.{column}": taken for one in found for column, taken in one.columns.items()}
        for name, taken in sorted(cost.items(), key=lambda item: -item[1]):
            if taken > 0:
                print(f"{name:50} {taken:8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
