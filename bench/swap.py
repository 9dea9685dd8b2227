#!/usr/bin/env python3
"""Faults on pages swapped out to a server's memory, through `gleaner-clerk attach`: how long a program waits for a page.

swap.py [--programs target/release] [--socket PATH] [--method fuse] [--runs 5] [--seconds 5] [--size-mib 256] [--zswap PERCENT] [--json FILE]

A process (swap_faults.c) that `gleaner-clerk run` gives a quarter of the memory that it needs reads its pages in random order and times every
major fault; the kernel's read-ahead is off meanwhile (vm.page-cluster), so that a fault is one page. The swap area is the export of a
standalone memoryd at a Unix socket, or of the server at --socket. *Read*: pages are only read, and their copies on the device stay
valid. *Write*: each page is also written, and therefore swapped out again. With --zswap, the kernel's zswap is before the area, with a pool of this
share of the memory; pages read from the pool and from the area are counted (/proc/vmstat). Nothing is pinned: kernel threads are involved. Root only.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = f"bench-{os.getpid()}"
READ_AHEAD = Path("/proc/sys/vm/page-cluster")
ZSWAP = Path("/sys/module/zswap/parameters")
VMSTAT = Path("/proc/vmstat")
READ_FROM = {"pool_reads": "zswpin", "area_reads": "pswpin"}
"""Pages read from zswap's pool and from the swap area, by their counters."""
PATIENCE_S = 60


@contextlib.contextmanager
def standalone(memoryd: Path, size_mib: int, socket: Path):
    """A memoryd that serves twice that size, so that the area does not fill up."""
    process = subprocess.Popen([memoryd, "standalone", f"{2 * size_mib}MiB", "--listen", socket], stdout=subprocess.PIPE)
    try:
        if not process.stdout.readline():
            raise SystemExit("gleaner-memoryd does not serve")
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@contextlib.contextmanager
def swap(clerk: Path, options: list):
    """Swap by `gleaner-clerk attach`, with these options."""
    subprocess.run([clerk, "attach", "--name", NAME, "--swap", "--json", *options], check=True, stdout=subprocess.PIPE)
    try:
        yield
    finally:
        subprocess.run([clerk, "detach", NAME], check=True, stdout=subprocess.DEVNULL)


def limited(clerk: Path, local_mib: int, command: list) -> list[str]:
    """Command that runs another one with this much local memory, the rest in swap."""
    return list(map(str, [clerk, "run", "--by", "swap", "--local", f"{local_mib}MiB", "--", *command]))


@contextlib.contextmanager
def single_pages():
    before = READ_AHEAD.read_text()
    READ_AHEAD.write_text("0")
    try:
        yield
    finally:
        READ_AHEAD.write_text(before)


@contextlib.contextmanager
def zswap(percent: int | None):
    """The kernel's zswap with a pool of this share of the memory, or as it is; swap devices must be switched on inside."""
    if percent is None:
        yield
        return
    if not ZSWAP.exists():
        raise SystemExit("this kernel has no zswap (CONFIG_ZSWAP)")
    wanted = {"max_pool_percent": str(percent), "enabled": "Y"}
    before = {key: (ZSWAP / key).read_text().strip() for key in wanted}
    try:
        for key, value in wanted.items():
            (ZSWAP / key).write_text(value)
        yield
    finally:
        for key, value in before.items():
            (ZSWAP / key).write_text(value)


def counted(counter: str) -> int:
    """Pages by a counter of the kernel; 0 if it has no such counter."""
    lines = (line.split() for line in VMSTAT.read_text().splitlines())
    return next((int(count) for name, count in lines if name == counter), 0)


def run_once(program: Path, kind: str, args: argparse.Namespace) -> dict:
    """Faults of one process."""
    # The extra room is for the locked tables.
    command = limited(args.programs / "gleaner-clerk", args.size_mib // 4 + 8, [program, kind, args.size_mib << 20, args.seconds])
    before = {key: counted(counter) for key, counter in READ_FROM.items()}
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"swap_faults ended with {ended.returncode}: {ended.stderr}")
    faults_us = sorted(int(line) / 1000 for line in ended.stdout.split())
    if len(faults_us) < 1000:
        raise SystemExit(f"{len(faults_us)} faults only: nothing was swapped out")
    at = lambda share: faults_us[min(len(faults_us) - 1, int(len(faults_us) * share))]
    return {"faults": len(faults_us), "p50_us": at(0.5), "p90_us": at(0.9), "p99_us": at(0.99), "max_us": faults_us[-1]} | {
        key: counted(counter) - before[key] for key, counter in READ_FROM.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", metavar="DIR", help="where gleaner-memoryd and gleaner-clerk are")
    parser.add_argument("--socket", type=Path, help="swap on what is served here [default: a standalone memoryd]")
    parser.add_argument("--method", choices=["kernel", "fuse"], help="gleaner-clerk's --method")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="of each run")
    parser.add_argument("--size-mib", type=int, default=256, help="what the process wants; it gets a quarter")
    parser.add_argument("--zswap", type=int, metavar="PERCENT", help="switch zswap on, with a pool of this share of the memory")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as folder, contextlib.ExitStack() as stack:
        program = Path(folder) / "swap_faults"
        subprocess.run(["cc", "-O2", "-o", program, ROOT / "bench/swap_faults.c"], check=True)
        socket = args.socket
        if not socket:
            socket = Path(folder) / "pages.sock"
            stack.enter_context(standalone(args.programs / "gleaner-memoryd", args.size_mib, socket))
        stack.enter_context(zswap(args.zswap))
        method = ["--method", args.method] if args.method else []
        stack.enter_context(swap(args.programs / "gleaner-clerk", ["--socket", socket, *method]))
        stack.enter_context(single_pages())
        runs = {kind: [] for kind in ("read", "write")}
        for number in range(args.runs):
            for kind, done in runs.items():
                done.append(run_once(program, kind, args))
            print(f"run {number + 1} of {args.runs}", flush=True)
    rows = {kind: {key: round(statistics.median(run[key] for run in done), 1) for key in done[0]} for kind, done in runs.items()}
    print("| | faults a run | p50 us | p90 us | p99 us | longest us | read from pool | from area |\n|" + " --- |" * 8)
    for kind, row in rows.items():
        print(f"| {kind} | " + " | ".join(f"{value:.0f}" for value in row.values()) + " |")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({"swap": [{"pages": kind, **row} for kind, row in rows.items()]}, indent=2))


if __name__ == "__main__":
    main()
