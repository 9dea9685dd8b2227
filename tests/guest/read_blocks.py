#!/usr/bin/env python3
"""Reads blocks of 64 KiB of a mounted folder, and compares them with those of the sealed folder.

read_blocks.py SEALED SHOWN FILE FIRST COUNT: reads COUNT blocks of FILE, from block FIRST on, all at the same time.
read_blocks.py SEALED SHOWN: four readers read random blocks of all files, until SIGTERM.
Prints as JSON how many blocks were right, wrong, and failed (EIO), and the time of the longest read. Another error than EIO ends
the program.
"""

import concurrent.futures
import errno
import json
import os
import random
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

BLOCK_BYTES = 64 << 10
READERS = 4


@dataclass
class Counts:
    right: int = 0
    wrong: int = 0
    failed: int = 0
    slowest_s: float = 0.0

    def add(self, other: "Counts") -> None:
        self.right += other.right
        self.wrong += other.wrong
        self.failed += other.failed
        self.slowest_s = max(self.slowest_s, other.slowest_s)


def read_block(sealed: Path, shown: Path, name: str, index: int) -> Counts:
    """Reads one block by a descriptor of its own."""
    with (sealed / name).open("rb") as file:
        wanted = os.pread(file.fileno(), BLOCK_BYTES, index * BLOCK_BYTES)
    assert wanted, f"{name} has no block {index}"
    shown_file = os.open(shown / name, os.O_RDONLY)
    begin_s = time.monotonic()
    try:
        found = os.pread(shown_file, BLOCK_BYTES, index * BLOCK_BYTES)
    except OSError as e:
        if e.errno != errno.EIO:
            raise
        return Counts(failed=1, slowest_s=time.monotonic() - begin_s)
    finally:
        os.close(shown_file)
    taken_s = time.monotonic() - begin_s
    return Counts(right=int(found == wanted), wrong=int(found != wanted), slowest_s=taken_s)


def read_at_once(sealed: Path, shown: Path, name: str, blocks: range) -> Counts:
    all_counts = Counts()
    with concurrent.futures.ThreadPoolExecutor(len(blocks)) as pool:
        for counts in pool.map(lambda index: read_block(sealed, shown, name, index), blocks):
            all_counts.add(counts)
    return all_counts


def read_randomly(sealed: Path, shown: Path) -> Counts:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    files = [path for path in sealed.rglob("*") if path.is_file() and path.stat().st_size]
    places = [(str(path.relative_to(sealed)), index) for path in files for index in range(-(-path.stat().st_size // BLOCK_BYTES))]

    def reader(_: int) -> Counts:
        counts = Counts()
        while not ended.is_set():
            counts.add(read_block(sealed, shown, *random.choice(places)))
        return counts

    all_counts = Counts()
    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(reader, number) for number in range(READERS)]
        ended.wait()
        for one in readers:
            all_counts.add(one.result())
    return all_counts


def main() -> None:
    sealed, shown = map(Path, sys.argv[1:3])
    if len(sys.argv) > 3:
        first, count = map(int, sys.argv[4:6])
        counts = read_at_once(sealed, shown, sys.argv[3], range(first, first + count))
    else:
        counts = read_randomly(sealed, shown)
    print(json.dumps(asdict(counts)))


if __name__ == "__main__":
    main()
