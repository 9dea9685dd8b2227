#!/usr/bin/env python3
"""Recording and analysis of memory references: `gleaner curve record` beside the native program, records a second, and the error and speed of a
sample (SHARDS) beside the exact curve and libCacheSim's mrcProfiler.

models.py [--gleaner target/release/gleaner] [--distances target/release/examples/distances] [--mrc-profiler FILE] [--runs 3] [--json FILE]

Programs: sort, sqlite3 and python3 with inputs that this script makes. Recording is CPU time under QEMU over CPU time of the native run, as
`gleaner curve record` measures both. The script compiles the plugin references.so next to gleaner (simulator/recorder/build).

libCacheSim's mrcProfiler is built from PyPI's source package of libcachesim (bench/mrc_profiler), since the wheels lack it; --mrc-profiler names another
build. Both SHARDS keep 8,192 objects of the same generated stream, and give the miss ratio at each hundredth of its objects. Runs of ours (exact, then the
sample) and of mrcProfiler alternate. Ours is CPU time from opening the file; mrcProfiler's is the CPU time of its process. Its sizes are given in objects, so
that it does not read the stream once more to count them. The errors are means over the sizes, against our exact miss ratios.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from cache import RECORD, made

ROOT = Path(__file__).resolve().parent.parent
SQL = """
create table t(a integer primary key, b integer, c text);
insert into t with recursive n(x) as (select 1 union all select x+1 from n where x<400000)
  select x, abs(x * 2654435761 % 1000003), hex(x * 40503) from n;
create index i on t(b);
select sum(length(c)) from t where b between 1000 and 500000;
select count(*), max(c) from t group by b % 1000 order by 1 limit 3;
"""
SAID = re.compile(r"Recording took ([\d.]+) s of CPU \(([\d.]+) times native\); ([\d,]+) records were analysed in ([\d.]+) s")


def programs(folder: Path) -> dict[str, list[str]]:
    dice = np.random.default_rng(1)
    (folder / "big").write_text("\n".join(f"{n:016x}{n * 7:016x}" for n in dice.integers(0, 1 << 60, 700_000).tolist()) + "\n")
    (folder / "queries.sql").write_text(SQL)
    return {
        "sort": ["sort", "-S", "512M", "-o", str(folder / "sorted"), str(folder / "big")],
        "sqlite3": ["sqlite3", ":memory:", f".read {folder / 'queries.sql'}"],
        "python3": [os.path.realpath(sys.executable), "-c", "print(sum(i * i for i in range(3_000_000)))"],
    }


def recorded(gleaner: Path, command: list[str], curve: Path) -> dict:
    done = subprocess.run([gleaner, "curve", "record", "-o", curve, "--", *command], capture_output=True, text=True, check=True)
    found = SAID.search(done.stdout)
    if not found:
        raise SystemExit(f"{command[0]}: {done.stdout}{done.stderr}")
    cpu_s, times, records, seconds = (float(text.replace(",", "")) for text in found.groups())
    return {"cpu_s": cpu_s, "times_native": times, "records": records, "records_per_s": records / seconds}


def analysed(args: argparse.Namespace, how: str, trace: Path) -> dict:
    return json.loads(subprocess.run([args.distances, how, trace], stdout=subprocess.PIPE, check=True).stdout)


def theirs(profiler: Path, trace: Path, sizes: list[int]) -> dict:
    options = ["--algo=LRU", "--profiler=SHARDS", "--profiler-params=FIX_SIZE,8192,42", "--ignore-obj-size", "--size=" + ",".join(f"{size}B" for size in sizes)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([profiler, trace, "oracleGeneral", *options], capture_output=True, text=True, check=True, cwd=trace.parent)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ratios = [float(line.split("\t")[1]) for line in done.stdout.splitlines() if re.match(r"\d+B\t", line)]
    if len(ratios) != len(sizes):
        raise SystemExit(f"mrcProfiler gave {len(ratios)} of {len(sizes)} miss ratios: {done.stdout}{done.stderr}")
    return {"seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "miss_ratios": ratios}


def compared(args: argparse.Namespace, profiler: Path, trace: Path) -> dict:
    runs: dict[str, list[dict]] = {"exact": [], "sampled": [], "mrcProfiler": []}
    for _ in range(args.runs):
        for how in ("exact", "sampled"):
            runs[how].append(analysed(args, how, trace))
        count = runs["exact"][0]["objects"]
        sizes = [max(count * percent // 100, 1) for percent in range(1, 101)]
        runs["mrcProfiler"].append(theirs(profiler, trace, sizes))
    rates = {how: args.requests / statistics.median(run["seconds"] for run in runs[how]) for how in runs}
    exact = runs["exact"][0]["miss_ratios"]
    errors = {
        how: statistics.mean(abs(a - b) for a, b in zip(exact, runs[how][0]["miss_ratios"], strict=True)) for how in ("sampled", "mrcProfiler")
    }
    return {"requests_per_s": rates, "mean_absolute_error": errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gleaner", type=Path, default=ROOT / "target/release/gleaner", metavar="FILE")
    parser.add_argument("--distances", type=Path, default=ROOT / "target/release/examples/distances", metavar="FILE")
    parser.add_argument("--mrc-profiler", type=Path, metavar="FILE", help="libCacheSim's mrcProfiler [default: bench/mrc_profiler builds it]")
    parser.add_argument("--requests", type=int, default=5_000_000)
    parser.add_argument("--objects", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    args = parser.parse_args()
    for command, package in ((f"qemu-{os.uname().machine}", "qemu-user"), ("sqlite3", "sqlite3")):
        subprocess.run([ROOT / "tests/need", command, package], check=True)
    subprocess.run([ROOT / "simulator/recorder/build", args.gleaner.parent], check=True)
    profiler = args.mrc_profiler
    if not profiler:
        profiler = Path(subprocess.run([ROOT / "bench/mrc_profiler"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
    figures: dict = {"begun_s": time.time(), "programs": {}, "analysis": {}}
    with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as name:
        folder = Path(name)
        for program, command in programs(folder).items():
            runs = [recorded(args.gleaner, command, folder / "curve") for _ in range(args.runs)]
            row = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
            figures["programs"][program] = row
            print(f"{program:8} {row['times_native']:5.1f} times native CPU, {row['records'] / 1e6:6.1f} million records, {row['records_per_s'] / 1e6:5.1f} million/s")

        trace = folder / "trace.oracleGeneral"
        made(trace, args.requests, args.objects)
        assert trace.stat().st_size == args.requests * np.dtype(RECORD).itemsize
        analysis = figures["analysis"] = compared(args, profiler, trace)
        rates = analysis["requests_per_s"]
        for how, rate in rates.items():
            error = analysis["mean_absolute_error"].get(how)
            print(f"{how:12} {rate / 1e6:6.1f} million requests/s" + ("" if error is None else f", mean absolute error of the miss ratio {error:.4f}"))
        print(f"our sample beside mrcProfiler's: {rates['sampled'] / rates['mrcProfiler']:.2f} times its speed")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
