#!/usr/bin/env python3
"""A reader of files for commons.py: it obeys one JSON object a line on standard input, and answers each with one.

reads.py FOLDER
  {"do": "epoch", "seed": 1}                          reads all files whole, in an order that the seed shuffles: seconds, bytes
  {"do": "blocks", "path": "00000", "indexes": [7]}   reads these blocks of 64 KiB of one file, one by one: latencies_us
  {"do": "stream", "path": "00000"}                   reads a file from its beginning to its end: seconds, bytes
"""

import json
import os
import random
import sys
import time
from pathlib import Path

BLOCK = 64 << 10
PIECE = 1 << 20


def whole(path: Path, buffer: bytearray) -> int:
    total = 0
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            total += count
    return total


def epoch(files: list[Path], seed: int) -> dict:
    order = random.Random(seed).sample(files, len(files))
    buffer = bytearray(PIECE)
    begin = time.monotonic()
    total = sum(whole(path, buffer) for path in order)
    return {"seconds": time.monotonic() - begin, "bytes": total}


def blocks(path: Path, indexes: list[int]) -> dict:
    buffer, latencies_us = bytearray(BLOCK), []
    descriptor = os.open(path, os.O_RDONLY)
    try:
        for index in indexes:
            begin = time.perf_counter_ns()
            count = os.preadv(descriptor, [buffer], index * BLOCK)
            latencies_us.append((time.perf_counter_ns() - begin) / 1000)
            if count != BLOCK:
                raise OSError(f"{path}: {count} bytes of block {index}")
    finally:
        os.close(descriptor)
    return {"latencies_us": latencies_us}


def main() -> None:
    folder = Path(sys.argv[1])
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    print(json.dumps({"files": len(files)}), flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        match wanted["do"]:
            case "epoch":
                found = epoch(files, wanted["seed"])
            case "blocks":
                found = blocks(folder / wanted["path"], wanted["indexes"])
            case "stream":
                begin = time.monotonic()
                total = whole(folder / wanted["path"], bytearray(PIECE))
                found = {"seconds": time.monotonic() - begin, "bytes": total}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
