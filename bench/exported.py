#!/usr/bin/env python3
"""Distribution of a dataset's bytes: each table's columns in its Arrow files, and the rest."""

import argparse
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa

EXAMPLES = """examples:
  bench/exported.py out/bench/dataset
  bench/exported.py --top 40 out/bench/dataset
"""


#: Compression level of the Rust writer (zstd's default); pyarrow's default is 1.
ARROW_RS_LEVEL = 3


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--top", type=int, default=25, metavar="N", help="columns to list [default: 25]")
    parser.add_argument("dataset", type=Path)
    args = parser.parse_args()
    try:
        print(markdown(args.dataset, args.top))
    except RuntimeError as error:
        print(f"exported.py: {error}", file=sys.stderr)
        return 1
    return 0


def markdown(dataset: Path, top: int) -> str:
    columns: Counter[str] = Counter()
    held: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    lengths: Counter[str] = Counter()
    for path in sorted(dataset.glob("*/date=*/*.arrow")):
        table = path.parent.parent.name
        lengths[table] += path.stat().st_size
        with pa.ipc.open_file(path) as file:
            for at in range(file.num_record_batches):
                batch = file.get_batch(at)
                rows[table] += batch.num_rows
                for name, taken in bodies(batch).items():
                    columns[f"{table}.{name}"] += taken
                    held[table] += taken
    samples = rows["samples"]
    if samples == 0:
        raise RuntimeError(f"no sample under {dataset}")
    lines = [
        f"Bytes a sample of {samples} exported, where they lie:",
        "",
        "| table | rows | columns | schema and offsets | all |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for table, length in lengths.most_common():
        cells = [rows[table], held[table], length - held[table], length]
        lines.append(f"| {table} | " + " | ".join(f"{cell / samples:,.1f}" for cell in cells) + " |")
    cells = [sum(rows.values()), sum(held.values()), sum(lengths.values()) - sum(held.values()), sum(lengths.values())]
    lines.append("| all | " + " | ".join(f"{cell / samples:,.1f}" for cell in cells) + " |")
    dearest = ", ".join(f"{name} {taken / samples:.1f}" for name, taken in columns.most_common(top))
    return "\n".join([*lines, "", f"The dearest columns: {dearest}."]) + "\n"


def bodies(batch: pa.RecordBatch) -> dict[str, int]:
    """Each column's buffers as in the file: compressed one by one with zstd, and padded."""
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=ARROW_RS_LEVEL))
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
