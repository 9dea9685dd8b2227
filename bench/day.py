#!/usr/bin/env python3
"""Size of a day of a trace, without waiting for a day: recorded samples are written repeatedly until the day is full.

The first sample, which has the complete state, is written once, as in a day. The others are repeated with
shifted times, one transaction each, into a database with the same schema. Its pages are then counted, so that
their empty parts and the schema itself are included. The result holds for days like the recorded time.
"""

import argparse
import itertools
import sqlite3
import sys
import tempfile
from pathlib import Path

EXAMPLES = """examples:
  bench/day.py /var/lib/gleaner/trace.db
  gleaner-agent run --sample-interval 90s --samples 41 --database /tmp/trace.db; bench/day.py /tmp/trace.db
"""

DAY_MS = 86_400_000

#: Rows of one transaction: by table, each row as column → value.
Record = dict[str, list[dict]]


def bytes_per_sample(database: Path) -> tuple[int, float]:
    """Number of samples per day, and bytes per sample, at the trace's interval."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as trace:
        trace.row_factory = sqlite3.Row
        records = list(recorded(trace))
        if len(records) < 2:
            raise RuntimeError(f"{database}: one sample does not make a day")
        (interval_ms,) = trace.execute("SELECT sample_interval_ms FROM hosts ORDER BY sequence DESC").fetchone()
        ddl = [sql for (sql,) in trace.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
    samples = max(1, DAY_MS // interval_ms)
    with tempfile.TemporaryDirectory(prefix="day-") as folder:
        day = sqlite3.connect(Path(folder) / "day.db", isolation_level=None)
        day.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;" + ";".join(ddl))
        rest = itertools.cycle(records[1:])
        sequence = 0
        for number in range(samples):
            record = records[0] if number == 0 else next(rest)
            sequence = write(day, record, sequence, number * interval_ms)
        (pages,) = day.execute("PRAGMA page_count").fetchone()
        (page_bytes,) = day.execute("PRAGMA page_size").fetchone()
        day.close()
    return samples, pages * page_bytes / samples


def recorded(trace: sqlite3.Connection):
    """Rows of each sample, including rows written with it (hosts, gaps)."""
    names = [name for (name,) in trace.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    names = [name for name in names if "sequence" in columns(trace, name)]
    names.sort(key=lambda name: name != "samples")  # rows that refer to samples follow
    before = 0
    for (sequence,) in trace.execute("SELECT sequence FROM samples ORDER BY 1").fetchall():
        query = 'SELECT * FROM "{}" WHERE sequence > ? AND sequence <= ?'
        yield {
            name: [dict(row) for row in trace.execute(query.format(name), (before, sequence))] for name in names
        }
        before = sequence


def columns(trace: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in trace.execute(f'PRAGMA table_info("{table}")')]


def write(day: sqlite3.Connection, record: Record, last: int, moved_ms: int) -> int:
    """Writes one transaction with sequence numbers after `last`; returns the last number."""
    numbers = sorted({row["sequence"] for rows in record.values() for row in rows})
    numbers = {taken: last + 1 + at for at, taken in enumerate(numbers)}
    day.execute("BEGIN")
    for table, rows in record.items():
        for row in rows:
            row = {name: moved(name, value, moved_ms) for name, value in row.items()}
            row["sequence"] = numbers[row["sequence"]]
            marks = ", ".join("?" * len(row))
            # Rows that are written only once already exist in later rounds.
            statement = f'INSERT OR IGNORE INTO "{table}" ({", ".join(row)}) VALUES ({marks})'
            day.execute(statement, list(row.values()))
    day.execute("COMMIT")
    return max(numbers.values())


def moved(name: str, value, moved_ms: int):
    is_time = name == "time_ms" or name.endswith("_time_ms") or name == "boottime_ms"
    return value + moved_ms if is_time and value is not None else value


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("database", type=Path)
    args = parser.parse_args()
    try:
        samples, weight = bytes_per_sample(args.database)
    except (sqlite3.Error, RuntimeError) as error:
        print(f"day.py: {error}", file=sys.stderr)
        return 1
    print(f"{weight:,.0f} bytes a sample over a day of {samples} samples")
    return 0


if __name__ == "__main__":
    sys.exit(main())
