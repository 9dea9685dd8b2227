#!/usr/bin/env python3
"""The commons beside its peers: caching proxies (nginx, varnish), rclone's mount, and the page cache alone.

commons.py [--only MEASURE ...] [--policies hash recruited-hash gms n-chance none] [--peers page-cache rclone nginx varnish] [--json FILE]

All hosts are network namespaces of this machine, with links of --mbit where a link matters; compare only figures of one run. Policies with a recruiter are gms, n-chance and
recruited-hash; hash has a fixed list of members. A policy that the program's configuration refuses is listed as not offered. The measures:

  second-epoch   all hosts read, each in an order of its own, files as large as --data-hosts hosts' memory, twice: the rate of the second time
  source-bytes   the same runs: bytes that the source sent, beside those before one caching proxy
  fleet-start    --fleet-hosts mounts read the same files in the same order at once: how often the source sent each block
  local-hit      a read of 64 KiB that the mount answers from local memory
  get            a read of 64 KiB that another host answers by one exchange, less the local hit, beside an NBD read of 64 KiB from gleaner-memoryd
  stream         a file read from beginning to end from the memory of one other host
  give-back      time until memoryd has given 1 GiB back (reclaim.py), alone and while a commons of two hosts streams on the same machine

A host has --memory-mib for blocks in every way. A commons divides them (--hold-share). Under hash, the service has both parts itself. Under gms and n-chance
(commons_lenders.py), a recruiter on a host of its own lists the members, and the service leases the part for other hosts' blocks from its host's
gleaner-memoryd: 102 MiB of 128 by default. One control group limits service and memory server to the same sum as the service of hash. An eighth of the
leases holds no blocks, since evicted blocks keep their places until they are sent. Before a measure begins, all members know each other, and have leases and
weights. The page cache has the memory as the limit of the reader's control group; rclone's cache of files has this size; a proxy has all hosts' memory, and
the hosts before it have none. The client before proxies and page cache is `gleaner-commons mount`, which hashes every block as the services do. Nothing is
pinned. Root only.
"""

import argparse
import contextlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from commons_hosts import BLOCK, ROOT, Data, Service, Site, unpack
from commons_lenders import in_slabs
from latency import fio

POLICIES = ("hash", "recruited-hash", "gms", "n-chance", "none")
PROXIES = ("nginx", "varnish")
PEERS = ("page-cache", "rclone", *PROXIES)
FILE_BYTES = 1 << 20
LARGE = "00000"
# Blocks that are read before the next look at the service's counters: more could not wait to be given to their homes.
WARMED_AT_ONCE = 128
# Reads that are left out: the first ones open connections.
FIRST_READS = 100
NBD_MIB, NBD_SECONDS = 256, 3


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"commons: {text}", file=sys.stderr)


def at(bins: dict[int, int], share: float) -> float:
    """Percentile of latencies by their number, in the bins' unit."""
    wanted, below = share * sum(bins.values()), 0
    for latency, count in sorted(bins.items()):
        below += count
        if below >= wanted:
            break
    return latency


def percentiles(latencies_us: list[float]) -> dict[str, float]:
    ordered = sorted(latencies_us)
    return {"p50": statistics.median(ordered), "p99": ordered[int(len(ordered) * 0.99)]}


def split(policy: str, memory_mib: int, hold_share: float) -> tuple[int, int]:
    """Memory of a host for blocks that it reads, and for those of other hosts, in MiB. Leases have whole slabs, and all policies the same split."""
    hold_mib = 0 if policy == "none" else in_slabs(memory_mib * hold_share)
    return memory_mib - hold_mib, hold_mib


class Bench:
    """Runs measures, and collects their rows."""

    def __init__(self, args: argparse.Namespace, folder: Path):
        self.args, self.folder = args, folder
        self.rows: list[dict] = []
        self.epochs_of: dict[str, list[dict]] = {}
        self.data_of: dict[tuple[int, int], Data] = {}
        site = self.site(1, 1, FILE_BYTES, None)
        self.policies = [policy for policy in args.policies if site.is_offered(policy)]
        for policy in args.policies:
            if policy not in self.policies:
                self.add("policies", policy, "not offered")

    def add(self, measure: str, way: str, figure: str, value: float | None = None, unit: str = "", most: float | None = None, least: float | None = None):
        row = {"measure": measure, "way": way, "figure": figure, "value": value, "unit": unit, "most": most, "least": least}
        if most is not None or least is not None:
            row["is_met"] = (most is None or value <= most) and (least is None or value >= least)
        self.rows.append(row)

    def site(self, hosts_count: int, files_count: int, file_bytes: int, mbit_per_s: int | None) -> Site:
        key = (files_count, file_bytes)
        if key not in self.data_of:
            progress(f"{files_count} files of {file_bytes >> 20} MiB")
            own = self.folder / f"files-{files_count}-{file_bytes}"
            own.mkdir()
            self.data_of[key] = Data(self.args.programs / "gleaner-commons", own, files_count, file_bytes)
        return Site(self.args, self.folder, self.data_of[key], hosts_count, mbit_per_s)

    # Many hosts

    def start(self, site: Site, stack: contextlib.ExitStack, way: str, memory_mib: int, hold_share: float) -> list[Service]:
        """All workstations, which read in this way."""
        numbers = range(len(site.workstations))
        enter = stack.enter_context
        if way in PROXIES:
            url = enter(site.proxy(way, memory_mib * len(numbers)))
            return [enter(site.alone(number, url, None)) for number in numbers]
        if way == "page-cache":
            return [enter(site.alone(number, site.source, memory_mib)) for number in numbers]
        if way == "rclone":
            return [enter(site.rclone(number, memory_mib)) for number in numbers]
        return enter(site.sharing(way, [split(way, memory_mib, hold_share)] * len(numbers)))

    def read(self, site: Site, services: list[Service], seeds: list[int]) -> dict:
        """All workstations read all files at once."""
        before = site.source_bytes()
        for service, seed in zip(services, seeds):
            service.reader.order(do="epoch", seed=seed)
        answers = [service.reader.answer() for service in services]
        if any(answer["bytes"] != site.data.bytes for answer in answers):
            raise SystemExit(f"a reader has read {answers} instead of {site.data.bytes} bytes")
        longest_s = max(answer["seconds"] for answer in answers)
        megabytes = sum(answer["bytes"] for answer in answers) / 1e6
        return {"seconds": longest_s, "mb_per_s": megabytes / longest_s, "source_bytes": site.source_bytes() - before}

    def epochs(self, way: str) -> list[dict]:
        """Figures of two epochs, of one run of each way."""
        if way not in self.epochs_of:
            args = self.args
            files_count = round(args.data_hosts * args.memory_mib) * (1 << 20) // FILE_BYTES
            with self.site(args.hosts, files_count, FILE_BYTES, args.mbit) as site, contextlib.ExitStack() as stack:
                services = self.start(site, stack, way, args.memory_mib, args.hold_share)
                self.epochs_of[way] = []
                for epoch in range(2):
                    progress(f"{way}: epoch {epoch + 1}")
                    seeds = [1000 * epoch + number for number in range(args.hosts)]
                    self.epochs_of[way].append(self.read(site, services, seeds) | {"data_bytes": site.data.bytes})
        return self.epochs_of[way]

    def second_epoch(self) -> None:
        ways = [*self.policies, *(peer for peer in self.args.peers if peer not in PROXIES)]
        for way in ways:
            for number, epoch in enumerate(self.epochs(way), 1):
                self.add("second-epoch", way, f"epoch {number}", epoch["mb_per_s"], "MB/s")
        if "page-cache" in ways:
            base = self.epochs("page-cache")[1]["mb_per_s"]
            for policy in self.policies:
                ratio = self.epochs(policy)[1]["mb_per_s"] / base
                self.add("second-epoch", policy, "rate / page cache alone", ratio, "×", least=None if policy == "none" else 3)

    def source_bytes(self) -> None:
        proxies = [peer for peer in self.args.peers if peer in PROXIES]
        sent = {}
        for way in [*self.policies, *proxies]:
            epochs = self.epochs(way)
            sent[way] = sum(epoch["source_bytes"] for epoch in epochs)
            self.add("source-bytes", way, "bytes of both epochs / bytes of the files", sent[way] / epochs[0]["data_bytes"], "×")
        for policy in self.policies:
            for proxy in proxies:
                most = None if policy == "none" else 1.1
                self.add("source-bytes", policy, f"bytes / {proxy}'s", sent[policy] / sent[proxy], "×", most=most)

    def fleet_start(self) -> None:
        args = self.args
        for way in [*self.policies, *(peer for peer in args.peers if peer in PROXIES)]:
            progress(f"{way}: {args.fleet_hosts} mounts at once")
            with self.site(args.fleet_hosts, args.fleet_mib, FILE_BYTES, args.mbit) as site, contextlib.ExitStack() as stack:
                services = self.start(site, stack, way, 2 * args.fleet_mib, 0.5)
                found = self.read(site, services, [1] * args.fleet_hosts)
                times = found["source_bytes"] / site.data.bytes
                most = 1.1 if way in self.policies and way != "none" else None
                self.add("fleet-start", way, "source reads of a block", times, "", most=most)
                self.add("fleet-start", way, "until the last host has all", found["seconds"], "s")

    # Two hosts

    def sharing(self) -> list[str]:
        return [policy for policy in self.policies if policy != "none"]

    @contextlib.contextmanager
    def pair(self, policy: str, local_mib: int):
        """Two hosts, of which the second holds all blocks of one file, and the first none."""
        mib = self.args.pair_mib
        with self.site(2, 1, mib << 20, None) as site, contextlib.ExitStack() as stack:
            first, second = stack.enter_context(site.sharing(policy, [(local_mib, 0), (mib + 16, in_slabs(mib + 16))]))
            progress(f"{policy}: the second host reads {mib} MiB")
            blocks_count = (mib << 20) // BLOCK
            for begin in range(0, blocks_count, WARMED_AT_ONCE):
                indexes = list(range(begin, min(begin + WARMED_AT_ONCE, blocks_count)))
                second.reader.ask(do="blocks", path=LARGE, indexes=indexes)
                settle([first, second])
            yield site, first, second, blocks_count
            source = first.status()["fetched_blocks_count"]
            if source > blocks_count // 100:
                raise SystemExit(f"{policy}: the first host read {source} of {blocks_count} blocks from the source, not from the other host")

    def random_reads(self, service: Service, blocks_count: int) -> dict[str, float]:
        indexes = random.Random(1).sample(range(blocks_count), blocks_count)
        answer = service.reader.ask(do="blocks", path=LARGE, indexes=indexes)
        return percentiles(answer["latencies_us"][FIRST_READS:])

    def local_hit(self) -> None:
        mib = self.args.pair_mib
        with self.site(1, 1, mib << 20, None) as site, site.service(0, "none", mib + 16, 0) as service:
            service.reader.ask(do="stream", path=LARGE)
            progress("local hits")
            found = self.random_reads(service, (mib << 20) // BLOCK)
        self.add("local-hit", "none", "p50 of 64 KiB", found["p50"], "us", most=60)
        self.add("local-hit", "none", "p99 of 64 KiB", found["p99"], "us")

    def get(self) -> None:
        for policy in self.sharing():
            with self.pair(policy, 0) as (site, first, second, blocks_count):
                hit = self.random_reads(second, blocks_count)
                before = first.status()["cluster_blocks_count"]
                read = self.random_reads(first, blocks_count)
                came = first.status()["cluster_blocks_count"] - before
                progress("NBD reads")
                url, server = site.url("ws1"), self.args.programs / "gleaner-memoryd"
                listen = "{}:{}".format(*site.listen("ws1"))
                with site.serving("ws1", "ws0", url, server, "standalone", f"{NBD_MIB}MiB", "--listen", listen):
                    client = site.entering("ws0", "fio", "--ioengine=nbd", f"--uri={url}")
                    size_bytes = (NBD_MIB << 20) * 8 // 10
                    fio(client, size_bytes, "--rw=write", "--bs=1m", "--lat_percentiles=1")
                    options = ["--rw=randread", "--bs=64k", "--iodepth=1", "--time_based", f"--runtime={NBD_SECONDS}"]
                    nbd = fio(client, size_bytes, *options, "--lat_percentiles=1", "--clat_percentiles=0", "--norandommap")
            nbd_us, get_us = at(nbd, 0.5) / 1000, read["p50"] - hit["p50"]
            self.add("get", policy, "share of reads that another host answered", came / blocks_count, "", least=0.99)
            self.add("get", policy, "p50 through the mount", read["p50"], "us")
            self.add("get", policy, "p99 through the mount", read["p99"], "us", most=2000)
            self.add("get", policy, "p50 less that of a local hit", get_us, "us")
            self.add("get", "memoryd", "p50 of an NBD read", nbd_us, "us")
            self.add("get", "memoryd", "p99 of an NBD read", at(nbd, 0.99) / 1000, "us")
            self.add("get", policy, "p50 less that of a local hit / NBD read", get_us / nbd_us, "×", most=3)

    def stream(self) -> None:
        for policy in self.sharing():
            with self.pair(policy, self.args.pair_mib // 4) as (_, first, _, _):
                rates = []
                for _ in range(self.args.runs):
                    progress(f"{policy}: stream")
                    found = first.reader.ask(do="stream", path=LARGE)
                    rates.append(found["bytes"] / found["seconds"] / 1e6)
            self.add("stream", policy, f"median of {self.args.runs} passes", statistics.median(rates), "MB/s", least=250)

    def reclaimed_ms(self, name: str) -> float:
        """Median time in which memoryd has given all memory back, by its own log."""
        progress(f"give-back: {name}")
        made = self.folder / f"{name}.json"
        words = ["--memoryd", self.args.programs / "gleaner-memoryd", "--sizes", 1, "--trials", self.args.trials, "--pages", "huge", "--busy", 0, "--json", made]
        command = [sys.executable, ROOT / "bench/reclaim.py", *words]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        return json.loads(made.read_text())[0]["told_all_ms"]["p50"]

    def give_back(self) -> None:
        alone_ms = self.reclaimed_ms("alone")
        self.add("give-back", "alone", "median", alone_ms, "ms")
        for policy in self.sharing():
            with self.pair(policy, self.args.pair_mib // 4) as (_, first, _, _):
                is_over = threading.Event()

                def stream(reader=first.reader, is_over=is_over) -> None:
                    while not is_over.is_set():
                        reader.ask(do="stream", path=LARGE)

                thread = threading.Thread(target=stream)
                thread.start()
                try:
                    beside_ms = self.reclaimed_ms(f"beside-{policy}")
                finally:
                    is_over.set()
                    thread.join()
            self.add("give-back", policy, "median beside streaming hosts", beside_ms, "ms")
            self.add("give-back", policy, "beside / alone", beside_ms / alone_ms, "×", most=1.1)


MEASURES = {
    "second-epoch": Bench.second_epoch,
    "source-bytes": Bench.source_bytes,
    "fleet-start": Bench.fleet_start,
    "local-hit": Bench.local_hit,
    "get": Bench.get,
    "stream": Bench.stream,
    "give-back": Bench.give_back,
}


def settle(services: list[Service]) -> None:
    """Waits until the services have nothing to tell each other."""
    before = None
    while (now := [service.cluster() for service in services]) != before:
        before = now
        time.sleep(0.3)


def table(rows: list[dict]) -> str:
    lines = ["| measure | way | figure | value | aim | met |", "| --- | --- | --- | ---: | --- | --- |"]
    for row in rows:
        value = "" if row["value"] is None else f"{row['value']:,.{0 if row['value'] >= 100 else 2}f} {row['unit']}".rstrip()
        aim = f"≤ {row['most']}" if row["most"] is not None else f"≥ {row['least']}" if row["least"] is not None else ""
        met = {True: "yes", False: "no", None: ""}[row.get("is_met")]
        lines.append(f"| {row['measure']} | {row['way']} | {row['figure']} | {value} | {aim} | {met} |")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", metavar="DIR", help="where gleaner, gleaner-commons, gleaner-memoryd and gleaner-recruiter are")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES), metavar="MEASURE", help="[all]")
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), metavar="POLICY", help=f"[{' '.join(POLICIES)}]")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="[all]")
    parser.add_argument("--hosts", type=int, default=4, help="of the epochs [4]")
    parser.add_argument("--memory-mib", type=int, default=128, help="of each host, for blocks [128]")
    parser.add_argument("--data-hosts", type=float, default=3, help="size of the files, in hosts' memory [3]")
    parser.add_argument("--hold-share", type=float, default=0.8, help="of a host's memory, for other hosts' blocks [0.8]")
    parser.add_argument("--mbit", type=int, default=400, help="rate of each link of the epochs and the fleet's start, in Mbit/s [400]")
    parser.add_argument("--fleet-hosts", type=int, default=8, help="[8]")
    parser.add_argument("--fleet-mib", type=int, default=64, help="files of the fleet's start [64]")
    parser.add_argument("--pair-mib", type=int, default=128, help="file of the measures with two hosts [128]")
    parser.add_argument("--runs", type=int, default=3, help="passes of stream [3]")
    parser.add_argument("--trials", type=int, default=10, help="reclaims of give-back [10]")
    parser.add_argument("--peer-timeout", metavar="TIME", help="the commons' key peer_timeout [its default]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well, after each measure")
    args = parser.parse_args()
    args.programs = args.programs.resolve()
    return args


def main() -> None:
    args = arguments()
    tools = [("nsenter", "util-linux"), ("curl", "curl"), ("fio", "fio"), ("nbdinfo", "libnbd-bin"), ("fusermount3", "fuse3"), ("cc", "gcc")]
    for tool, package in tools:
        subprocess.run([ROOT / "tests/need", tool, package], check=True)
    for name in {"nginx", *args.peers} - {"page-cache"}:
        unpack(name)
    with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as folder:
        bench = Bench(args, Path(folder))
        for name in args.only:
            MEASURES[name](bench)
            if args.json:
                args.json.parent.mkdir(parents=True, exist_ok=True)
                settings = {key: value for key, value in vars(args).items() if key not in ("programs", "json")}
                args.json.write_text(json.dumps({"commons": bench.rows, "settings": settings}, indent=2) + "\n")
    print(table(bench.rows))


if __name__ == "__main__":
    main()
