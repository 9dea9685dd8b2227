#!/usr/bin/env python3
"""A stream through one cache: gleaner-simulator's replay beside libCacheSim (libcachesim of PyPI) on the same trace. Misses must be equal.

cache.py [--replay target/release/examples/replay] [--trace FILE] [--requests 5000000] [--objects 500000] [--runs 5] [--json FILE]

The trace is oracleGeneral, in memory: FILE, or generated (Zipf with exponent 1, sizes log-normal around 5 KB, ids far apart). Both programs are
pinned to one CPU and run alternately; the median of the runs counts. Time is the CPU time of reading and replaying, measured by the programs themselves: without the
start of Python, and without the creation of libCacheSim's cache. Its hash table is tried at its default (2^24 buckets) and at the power of two next to the trace's
number of objects; both are shown, and the ratio is to the faster one.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
CPU = "1"
RECORD = [("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")]

# Script for a separate Python: trace, policy, capacity, hash power.
THEIRS = """
import json, sys, time
import libcachesim as lcs
path, policy, capacity, power = sys.argv[1:]
by_bytes = capacity.endswith("B")
reader = lcs.TraceReader(path, lcs.TraceType.ORACLE_GENERAL_TRACE, lcs.ReaderInitParam(ignore_obj_size=not by_bytes, ignore_size_zero_req=False))
algorithm = {"lru": lcs.LRU, "fifo": lcs.FIFO, "sieve": lcs.Sieve}[policy]
cache = algorithm(cache_size=int(capacity.removesuffix("B")), default_ttl=0, hashpower=int(power))
began = time.process_time()
misses, missed_bytes = cache.process_trace(reader)
print("\\n" + json.dumps({"seconds": time.process_time() - began, "misses": misses, "missed_bytes": missed_bytes}))
"""


def made(path: Path, requests: int, objects: int) -> None:
    dice = np.random.default_rng(1)
    weights = np.cumsum(1 / np.arange(1, objects + 1))
    drawn = np.searchsorted(weights / weights[-1], dice.random(requests))
    ids = dice.integers(0, 1 << 63, objects, dtype=np.uint64)
    sizes = np.minimum(np.exp(dice.normal(8.5, 1.2, objects)), 1 << 20).astype(np.uint32) + 1
    trace = np.zeros(requests, dtype=RECORD)
    trace["time"], trace["object"], trace["size"], trace["next"] = np.arange(requests) // 1000, ids[drawn], sizes[drawn], -1
    trace.tofile(path)


def ours(args: argparse.Namespace, path: Path, policy: str, capacity: str) -> dict:
    command = ["taskset", "-c", CPU, args.replay, path, policy, capacity]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def theirs(path: Path, policy: str, capacity: str, power: int) -> dict:
    command = ["taskset", "-c", CPU, sys.executable, "-c", THEIRS, str(path), policy, capacity, str(power)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replay", type=Path, default=ROOT / "target/release/examples/replay", metavar="FILE")
    parser.add_argument("--trace", type=Path, metavar="FILE")
    parser.add_argument("--requests", type=int, default=5_000_000)
    parser.add_argument("--objects", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    args = parser.parse_args()
    subprocess.run([ROOT / "tests/need", "taskset", "util-linux"], check=True)
    folder = Path(tempfile.mkdtemp(prefix="gleaner-bench-", dir="/dev/shm"))
    try:
        path = folder / "trace.oracleGeneral"
        if args.trace:
            shutil.copyfile(args.trace, path)
        else:
            made(path, args.requests, args.objects)
        trace = np.fromfile(path, dtype=RECORD)
        _, first = np.unique(trace["object"], return_index=True)
        objects, in_all = len(first), int(trace["size"][first].astype(np.int64).sum())
        near = max(objects - 1, 1).bit_length()
        print(f"{len(trace)} requests for {objects} objects of {in_all} bytes")
        capacities = [str(max(objects * percent // 100, 1)) for percent in (1, 10, 50)] + [f"{in_all // 10}B"]
        cases = [(policy, capacity) for policy in ("lru", "fifo", "sieve") for capacity in capacities]
        del trace, first
        found: dict[tuple, dict[str, list[float]]] = {case: {"ours": [], "default": [], "near": []} for case in cases}
        misses = {}
        for run in range(args.runs):
            for policy, capacity in cases:
                mine = ours(args, path, policy, capacity)
                misses[policy, capacity] = mine["misses"]
                found[policy, capacity]["ours"].append(mine["seconds"])
                for name, power in (("default", 24), ("near", near)):
                    peer = theirs(path, policy, capacity, power)
                    found[policy, capacity][name].append(peer["seconds"])
                    same = mine["misses"] == round(peer["misses"] * mine["requests"])
                    if capacity.endswith("B"):
                        same &= abs(mine["missed_bytes"] / mine["bytes"] - peer["missed_bytes"]) < 1e-12
                    if not same:
                        raise SystemExit(f"{policy} {capacity}: {mine} here, {peer} there")
            print(f"run {run + 1} of {args.runs}", flush=True)
    finally:
        shutil.rmtree(folder)
    rows = []
    for (policy, capacity), seconds in found.items():
        rate = {name: round(mine["requests"] / statistics.median(runs) / 1e6, 2) for name, runs in seconds.items()}
        peer = max(rate["default"], rate["near"])
        rows.append({"policy": policy, "capacity": capacity, "misses": misses[policy, capacity], **rate, "ratio": round(rate["ours"] / peer, 2)})
    print("| policy | capacity | misses | ours, M/s | libCacheSim, M/s | the same, hashpower near | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        print("| " + " | ".join(str(row[key]) for key in ("policy", "capacity", "misses", "ours", "default", "near", "ratio")) + " |")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({"cache": rows}, indent=2))


if __name__ == "__main__":
    main()
