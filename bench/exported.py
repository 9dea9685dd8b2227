#!/usr/bin/env python3
"""Where the bytes of a dataset go: each table's columns as they lie in its Arrow files, and the rest."""

import argparse
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa

EXAMPLES = """examples:
  bench/exported.py out/bench/dataset
  bench/exported.py --top 40 out/bench/dataset
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--top", type=int, default=25, metavar="N", help="columns to list [default: 25]")
    parser.add_argument("dataset", type=Path)
    args = parser.parse_args()
    columns: Counter[str] = Counter()
    rest: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    lengths: Counter[str] = Counter()
    for path in sorted(args.dataset.glob("*/date=*/*.arrow")):
        table = path.parent.parent.name
        lengths[table] += path.stat().st_size
        rest[table] += path.stat().st_size
        with pa.ipc.open_file(path) as file:
            for at in range(file.num_record_batches):
                batch = file.get_batch(at)
                rows[table] += batch.num_rows
                for name, taken in bodies(batch).items():
                    columns[f"{table}.{name}"] += taken
                    rest[table] -= taken
    if not lengths:
        print(f"exported.py: no Arrow file under {args.dataset}", file=sys.stderr)
        return 1
    samples = rows["samples"]
    print(f"{samples} samples; bytes a sample")
    print(f"{'table':16} {'rows':>8} {'columns':>9} {'schema, offsets':>16} {'all':>8}")
    for table, length in lengths.most_common():
        held = (length - rest[table]) / samples
        line = f"{rows[table] / samples:8.2f} {held:9.1f} {rest[table] / samples:16.1f} {length / samples:8.1f}"
        print(f"{table:16} {line}")
    held = sum(columns.values()) / samples
    whole = sum(lengths.values()) / samples
    print(f"{'all':16} {'':8} {held:9.1f} {whole - held:16.1f} {whole:8.1f}")
    for name, taken in columns.most_common(args.top):
        print(f"  {name:48} {taken / samples:8.1f}")
    return 0


def bodies(batch: pa.RecordBatch) -> dict[str, int]:
    """Each column's buffers as the file has them: compressed one by one with zstd, and padded."""
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    found = {}
    for name, column in zip(batch.schema.names, batch.columns):
        alone = pa.RecordBatch.from_arrays([column], names=[name])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, alone.schema, options=options) as stream:
            stream.write_batch(alone)
        messages = pa.ipc.MessageReader.open_stream(sink.getvalue())
        messages.read_next_message()  # the schema
        message = messages.read_next_message()
        found[name] = message.body.size
    return found


if __name__ == "__main__":
    sys.exit(main())
