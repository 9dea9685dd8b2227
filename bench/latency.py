#!/usr/bin/env python3
"""Distributions of the latency of one page, for the comparison with Anemone (docs/evaluation.md): random and sequential reads and writes of 4 KiB, one
at a time, over links of stated rates.

latency.py [--programs target/release] [--links loopback 1 10] [--paths memoryd relay nbdkit clerk zram disk] [--runs 3] [--seconds 3] [--json FILE] [--figure FILE]
latency.py --read FILE --figure FILE     draws the results of an earlier --json, without measuring

*memoryd* and *nbdkit* are memory servers on another host, *relay* is nbdkit's plugin nbd on a third host before memoryd, in the place of a central engine,
and *clerk* is a clerk on the client's host with its pages at memoryd, encrypted, without a copy on disk. *zram* and *disk* (disk.c, 10 GB) are on
the client's host and have no link. Hosts are namespaces (links.py). Access by *nbd*: fio's nbd engine; *direct* and *cached*: the block device that
`gleaner-clerk attach` makes (zram: its own), with and without O_DIRECT; *swap*: major faults of swap_faults.c. Nothing is pinned. All runs of a case
are one distribution. Root only.
"""

import argparse
import contextlib
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cdf
import disk
from links import ROOT, Loopback, Network, call
from swap import NAME, limited, single_pages, swap

PATHS = ("memoryd", "relay", "nbdkit", "clerk", "zram", "disk")
WITHOUT_LINK = ("zram", "disk")
PATTERNS = {"randread": "random reads", "read": "sequential reads", "randwrite": "random writes", "write": "sequential writes"}
HOSTS = ["client", "engine", "server"]
BINS_PER_DECADE = 50
CACHED_WRITES = 1000


@contextlib.contextmanager
def served(network: Network, path: str, folder: Path, args: argparse.Namespace):
    """Runs a path's servers; yields the NBD address, and the Unix socket if it has one."""
    size = f"{args.size_mib}MiB"
    with contextlib.ExitStack() as stack:
        if path == "disk":
            socket = stack.enter_context(disk.serving(folder))
            yield f"nbd+unix:///?socket={socket}", socket
            return
        address, port = network.listen("server")
        if path == "nbdkit":
            command = ["nbdkit", "-f", "-i", address, "-p", port, "memory", f"{args.size_mib}M"]
        else:
            command = [args.programs / "gleaner-memoryd", "standalone", size, "--listen", f"{address}:{port}"]
        url = stack.enter_context(network.serving("server", "client", network.url("server"), *command))
        if path == "relay":
            address, port = network.listen("engine")
            relay = ["nbdkit", "-f", "-i", address, "-p", port, "nbd", f"uri={url}"]
            url = stack.enter_context(network.serving("engine", "client", network.url("engine"), *relay))
        if path != "clerk":
            yield url, None
            return
        socket = folder / "clerk.sock"
        sockets = ["--listen", socket, "--status-socket", f"{socket}.status"]
        # A tenth of the server's memory is for the slots of pages that are written again.
        words = ["run", "--size", f"{args.size_mib * 9 // 10}MiB", "--disk-folder", "none", "--server", url, *sockets]
        url = f"nbd+unix:///?socket={socket}"
        stack.enter_context(network.serving("client", "client", url, args.programs / "gleaner-clerk", *words))
        yield url, socket


@contextlib.contextmanager
def attached(clerk: Path, socket: Path):
    """Block device of an NBD export."""
    made = call(clerk, "attach", "--socket", socket, "--name", NAME, "--json")
    try:
        yield json.loads(made)["device"]
    finally:
        call(clerk, "detach", NAME)


@contextlib.contextmanager
def zram(size_mib: int):
    """Block device of compressed memory; None if this kernel has none."""
    control = Path("/sys/class/zram-control")
    if not control.exists() and (load := shutil.which("modprobe")):
        subprocess.run([load, "-q", "zram"], check=False)
    if not control.exists():
        print("no zram on this kernel", file=sys.stderr)
        yield None
        return
    number = (control / "hot_add").read_text().strip()
    try:
        Path(f"/sys/block/zram{number}/disksize").write_text(f"{size_mib}M")
        yield f"/dev/zram{number}"
    finally:
        (control / "hot_remove").write_text(number)


def fio(words: list, size_bytes: int, *options: str) -> dict[int, int]:
    """Requests by latency in ns."""
    common = ["--name=pages", f"--size={size_bytes}", "--output-format=json+", "--buffer_compress_percentage=50", "--refill_buffers"]
    ended = subprocess.run([*map(str, words), *common, *options], capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {ended.stdout}{ended.stderr}")
    job = json.loads(ended.stdout[ended.stdout.index("{") :])["jobs"][0]
    found = next(job[way] for way in ("read", "write") if job[way]["total_ios"])
    return {int(ns): count for ns, count in found["lat_ns"]["bins"].items() if count}


def cases(words: list, size_bytes: int, args: argparse.Namespace, is_cached: bool = False) -> dict[str, dict[int, int]]:
    options = ["--bs=4k", "--iodepth=1", f"--runtime={args.seconds}", "--lat_percentiles=1", "--clat_percentiles=0", "--norandommap"]
    # Written to the page cache in a second, random pages would keep the modelled disk busy for an hour.
    ends = {rw: f"--number_ios={CACHED_WRITES}" if is_cached and rw.endswith("write") else "--time_based" for rw in PATTERNS}
    return {rw: fio(words, size_bytes, f"--rw={rw}", ends[rw], *options) for rw in PATTERNS}


def faults(args: argparse.Namespace, program: Path) -> dict[int, int]:
    """Page faults by latency in ns, of a process with a quarter of the memory that it needs."""
    size_mib = args.size_mib // 2
    command = limited(args.programs / "gleaner-clerk", size_mib // 4 + 8, [program, "read", size_mib << 20, args.seconds])
    bins: dict[int, int] = {}
    for line in call(*command).split():
        bins[int(line)] = bins.get(int(line), 0) + 1
    return bins


def block(device: str, is_direct: bool) -> list:
    return ["fio", "--ioengine=psync", f"--filename={device}", f"--direct={int(is_direct)}"]


def measure(network: Network, link: str, path: str, folder: Path, args: argparse.Namespace):
    """Yields access, pattern and distribution of every case of a path."""
    with contextlib.ExitStack() as stack:
        size_bytes = (args.size_mib << 20) * 8 // 10
        if path == "zram":
            device = stack.enter_context(zram(args.size_mib))
            if device is None:
                return
        else:
            url, socket = stack.enter_context(served(network, path, folder, args))
            client = network.inside("client", "fio", "--ioengine=nbd", f"--uri={url}")
            if path == "disk":
                size_bytes = disk.PARTITION_BYTES
            else:
                fio(client, size_bytes, "--rw=write", "--bs=1m", "--lat_percentiles=1")
            for rw, bins in cases(client, size_bytes, args).items():
                yield "nbd", rw, bins
            if socket is None:
                return
            device = stack.enter_context(attached(args.programs / "gleaner-clerk", socket))
        if path == "zram":
            fio(block(device, True), size_bytes, "--rw=write", "--bs=1m", "--lat_percentiles=1")
        for access in ("direct", "cached"):
            for rw, bins in cases(block(device, access == "direct"), size_bytes, args, access == "cached").items():
                yield access, rw, bins


def measure_swap(network: Network, folder: Path, args: argparse.Namespace):
    """The same of page faults on swap at a clerk."""
    program = folder / "swap_faults"
    call("cc", "-O2", "-o", program, ROOT / "bench/swap_faults.c")
    with served(network, "clerk", folder, args) as (_, socket), swap(args.programs / "gleaner-clerk", ["--socket", socket]), single_pages():
        yield "swap", "randread", faults(args, program)


def figures(bins: dict[int, int]) -> dict:
    """Mean, deviation, percentiles and shares of a distribution, and its bins by us."""
    count = sum(bins.values())
    mean_ns = sum(ns * n for ns, n in bins.items()) / count
    variance = sum((ns - mean_ns) ** 2 * n for ns, n in bins.items()) / count

    def percentile_us(share: float) -> float:
        below = 0
        for ns, n in sorted(bins.items()):
            below += n
            if below >= share * count:
                return ns / 1000
        return max(bins) / 1000

    coarse: dict[float, int] = {}
    for ns, n in sorted(bins.items()):
        us = round(10 ** (math.ceil(math.log10(ns) * BINS_PER_DECADE) / BINS_PER_DECADE) / 1000, 2)
        coarse[us] = coarse.get(us, 0) + n
    return {
        "count": count,
        "mean_us": round(mean_ns / 1000, 1),
        "sd_us": round(math.sqrt(variance) / 1000, 1),
        **{f"p{percent}_us": round(percentile_us(percent / 100), 1) for percent in (50, 90, 99)},
        "share_below_100_us": round(sum(n for ns, n in bins.items() if ns < 100_000) / count, 3),
        "share_5_to_10_ms": round(sum(n for ns, n in bins.items() if 5_000_000 <= ns < 10_000_000) / count, 3),
        "bins": list(coarse.items()),
    }


def figure(rows: list[dict], path: Path) -> None:
    """One panel for each pattern, by path and access, on the link of 1 Gbit/s; and one of the page cache."""
    panels: dict[str, dict[str, cdf.Bins]] = {}
    for row in rows:
        if row["access"] == "cached" or row["link"] not in ("1 Gbit/s", "none") or (row["access"] == "nbd" and row["path"] in ("clerk", "disk")):
            continue
        panels.setdefault(PATTERNS[row["rw"]], {})[f"{row['path']}, {row['access']}"] = row["bins"]
    cached = {f"{row['path']}, {PATTERNS[row['rw']]}": row["bins"] for row in rows if row["access"] == "cached" and row["path"] in ("clerk", "disk") and row["link"] in ("1 Gbit/s", "none")}
    if cached:
        panels["through the page cache"] = cached
    if not panels:
        raise SystemExit(f"{path}: no figure: it shows links of 1 Gbit/s and devices without a link, and nothing of these was measured")
    cdf.draw(panels, "Share of requests for a page that took no longer than a time, by path", path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", metavar="DIR", help="where gleaner-memoryd and gleaner-clerk are")
    parser.add_argument("--links", nargs="+", default=["loopback", "1", "10"], choices=["loopback", "1", "10"], help="rates in Gbit/s")
    parser.add_argument("--paths", nargs="+", default=PATHS, choices=PATHS)
    parser.add_argument("--no-swap", action="store_true", help="do not measure page faults")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="of each case")
    parser.add_argument("--size-mib", type=int, default=512, help="of each server's memory")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="write an SVG of the distributions there")
    parser.add_argument("--read", type=Path, metavar="FILE", help="measure nothing: draw the figure from the results of an earlier --json")
    args = parser.parse_args()
    if args.read:
        if not args.figure:
            parser.error("--read needs --figure")
        figure(json.loads(args.read.read_text())["latency"]["rows"], args.figure)
        return
    for tool, package in (("fio", "fio"), ("nbdkit", "nbdkit"), ("nbdinfo", "libnbd-bin"), ("ip", "iproute2"), ("cc", "gcc")):
        call(ROOT / "tests/need", tool, package)
    distributions: dict[tuple, dict[int, int]] = {}

    def add(path: str, link: str, found) -> None:
        for access, rw, bins in found:
            whole = distributions.setdefault((path, link, access, rw), {})
            for ns, count in bins.items():
                whole[ns] = whole.get(ns, 0) + count

    with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as name:
        folder = Path(name)
        for run in range(args.runs):
            for link in args.links:
                label = "loopback" if link == "loopback" else f"{link} Gbit/s"
                network = Loopback(HOSTS) if link == "loopback" else Network(HOSTS, int(link) * 1000)
                with network:
                    for path in (path for path in args.paths if path not in WITHOUT_LINK):
                        add(path, label, measure(network, label, path, folder, args))
                    if "clerk" in args.paths and not args.no_swap:
                        add("clerk", label, measure_swap(network, folder, args))
            with Loopback(HOSTS) as network:
                for path in (path for path in args.paths if path in WITHOUT_LINK):
                    add(path, "none", measure(network, "none", path, folder, args))
            print(f"run {run + 1} of {args.runs}", file=sys.stderr, flush=True)
    keys = ("path", "link", "access", "rw")
    rows = [dict(zip(keys, case)) | figures(bins) for case, bins in distributions.items()]
    print("| path | link | access | requests | mean us | sd us | p50 us | p90 us | p99 us | 5 to 10 ms |\n|" + " --- |" * 10)
    for row in rows:
        numbers = " | ".join(f"{row[key]:.1f}" for key in ("mean_us", "sd_us", "p50_us", "p90_us", "p99_us"))
        print(f"| {row['path']} | {row['link']} | {row['access']} | {PATTERNS[row['rw']]} | {numbers} | {row['share_5_to_10_ms']:.0%} |")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({"latency": {"runs": args.runs, "seconds": args.seconds, "rows": rows}}, indent=1))
    if args.figure:
        figure(rows, args.figure)


if __name__ == "__main__":
    main()
