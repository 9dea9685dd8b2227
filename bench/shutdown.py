#!/usr/bin/env python3
"""Ways in which lent memory becomes its owner's again, measured: time, bytes on the wire, page-ins and lost pages, beside the simulated policies of docs/servers.md.

shutdown.py [--programs target/release] [--only replicate migrate client-disk at-once] [--size-mib 256] [--runs 3] [--json FILE]

Hosts are namespaces on links of a stated rate (links.py): a client with a clerk, a recruiter, and three memory servers with a stand-in for their
agent (reclaim.py). All pages are at server1 (with two copies also at server2) when the other servers begin to lend. Then server1's memory is reclaimed:

replicate    two copies, no disk; the owner returns, and all memory is reclaimed at once
migrate      a copy on disk, on_revocation = "migrate"; the quota falls to 0, and memory is reclaimed in steps (shrink_step, shrink_every)
client-disk  the same with on_revocation = "disk"
at-once      a copy on disk; the owner returns

Meanwhile fio reads random pages, one at a time. *Owner* is the time until 99 % of the lent memory has left the memory server (/proc/PID/statm), *copies* the
time until all pages at servers have all their copies again, *wire* the bytes of the client's network device, page-ins included. *Before*, *during* and *after* are
the ten seconds before and after the event, and the time from then on. *Distinct* is the share of the servers' used room that has distinct pages. At the end
each page is compared with what was written: a lost page fails the bench. The client's disk is the modelled disk (disk.c), or the folder of --disk-folder. Root only.
"""

import argparse
import contextlib
import json
import math
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import disk
from daemons import running, settings, wait_until_none
from latency import attached
from links import ROOT, Network, call
from reclaim import FakeAgent, resident_bytes

SERVERS = ["server1", "server2", "server3"]
LEAVING = SERVERS[0]
PAGE_BYTES = 4096
RECRUITER_PORT = 7484
RECRUITER_URL = f"http://127.0.0.1:{RECRUITER_PORT}"
WINDOW_S = 10
"""Time before and after the event to which the figures refer, as in the simulation."""
SHARE = 0.99
PATIENCE_S = 120


@dataclass(frozen=True)
class Policy:
    """Settings of the clerk, and the event that reclaims the memory."""

    name: str
    copies: int
    has_disk: bool
    on_revocation: str
    is_owners_return: bool


POLICIES = [
    Policy("replicate", 2, False, "drop", True),
    Policy("migrate", 1, True, "migrate", False),
    Policy("client-disk", 1, True, "disk", False),
    Policy("at-once", 1, True, "migrate", True),
]
NAMES = [policy.name for policy in POLICIES]


def until(what: str, is_true) -> None:
    wait_until_none(lambda: "" if is_true() else what, PATIENCE_S)


class MemoryServer:
    """A memory server; it lends once its agent says that the host is idle."""

    def __init__(self, network: Network, name: str, parent: Path, args: argparse.Namespace, stack: contextlib.ExitStack):
        folder = parent / name
        folder.mkdir()
        self.host_id = f"{SERVERS.index(name) + 1:032x}"
        self.agent = FakeAgent(folder)
        stack.callback(self.agent.close)
        address, port = network.listen(name)
        keys = {
            "agent_socket": str(self.agent.path),
            "socket": str(folder / "memoryd.sock"),
            "state_folder": str(folder / "state"),
            "host_id": self.host_id,
            "recruiters": [RECRUITER_URL],
            "announce_every": "1s",
            "rise_after": "0s",
            "listen": f"{address}:{port}",
            "cap": f"{4 * args.size_mib}MiB",
            "shrink_step": args.shrink_step,
            "shrink_every": args.shrink_every,
        }
        config = folder / "memoryd.toml"
        config.write_text(settings(keys))
        command = network.inside(name, args.programs / "gleaner-memoryd", "run", "--config", config)
        self.process = stack.enter_context(running(command, folder / "said"))
        self.agent.ready()

    def resident_bytes(self) -> int:
        return resident_bytes(self.process.pid)


class Clerk:
    """The client's device, and its status."""

    def __init__(self, network: Network, policy: Policy, folder: Path, disk_folder: Path | None, args: argparse.Namespace, stack: contextlib.ExitStack):
        self.device, self.state = folder / "clerk.sock", folder / "clerk-status.sock"
        keys = {
            "size": f"{args.size_mib}MiB",
            "listen": str(self.device),
            "status_socket": str(self.state),
            "disk_folder": str(disk_folder) if disk_folder else "none",
            "copies": policy.copies,
            "on_revocation": policy.on_revocation,
            "recruiters": [RECRUITER_URL],
            "client_name": "bench",
            # All pages fit into one lease, so that none is written before there is a lease for it.
            "lease_size": f"{args.size_mib * 5 // 4}MiB",
        }
        config = folder / "clerk.toml"
        config.write_text(settings(keys))
        command = [args.programs / "gleaner-clerk", "run", "--config", config]
        stack.enter_context(network.serving("client", "client", self.url, *command))

    @property
    def url(self) -> str:
        return f"nbd+unix:///?socket={self.device}"

    def status(self) -> dict:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE_S)
            connection.connect(str(self.state))
            said = b""
            while some := connection.recv(1 << 16):
                said += some
        return json.loads(said)

    def used_bytes(self, host_id: str) -> int:
        return sum(server["used_bytes"] for server in self.status()["servers"] if server["host"] == host_id and server["state"] == "up")

    def room_bytes(self) -> int:
        """Room of the leases that can be used now."""
        return sum(server["size_bytes"] for server in self.status()["servers"] if server["state"] == "up")


@contextlib.contextmanager
def disk_folder(policy: Policy, folder: Path, args: argparse.Namespace):
    """Folder for the clerk's copy on disk: the modelled disk with a file system, or the given folder."""
    if not policy.has_disk:
        yield None
        return
    if args.disk_folder:
        with tempfile.TemporaryDirectory(prefix="gleaner-bench-", dir=args.disk_folder) as name:
            yield Path(name)
        return
    # A small export with the seeks of the whole disk.
    keys = {"size": 4 * args.size_mib << 20, "span": disk.PARTITION_BYTES}
    with disk.serving(folder, **keys) as served, attached(args.programs / "gleaner-clerk", served) as device:
        # Without a journal, and completely made: otherwise the kernel writes to the disk meanwhile.
        call("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", "-m", "0", device)
        mounted = folder / "disk"
        mounted.mkdir()
        call("mount", device, mounted)
        try:
            yield mounted
        finally:
            call("umount", mounted)


def reclaim(server: MemoryServer, policy: Policy) -> None:
    if policy.is_owners_return:
        server.agent.owner_returns()
    else:
        # With such a headroom the quota is 0, and the owner is still away.
        server.agent.idle(headroom_share=1.0)


def page_ins(log: Path, event_ms: float) -> dict[str, list[float]]:
    """Latencies in us of fio's log, by the phase in which a page-in began."""
    phases = {"before": (event_ms - WINDOW_S * 1000, event_ms), "during": (event_ms, event_ms + WINDOW_S * 1000)}
    phases["after"] = (phases["during"][1], math.inf)
    found: dict[str, list[float]] = {phase: [] for phase in phases}
    for line in log.read_text().splitlines():
        ended_ms, ns = (int(word) for word in line.split(",")[:2])
        began_ms = ended_ms - ns / 1e6
        for phase, (begin, end) in phases.items():
            if begin <= began_ms < end:
                found[phase].append(ns / 1000)
    return found


def percentile(values: list[float], share: float) -> float | None:
    values = sorted(values)
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else None


def owner_ms(samples: list[tuple[float, int]]) -> float | None:
    """Time in ms at which the resident memory has fallen by 99 % of its whole fall; absent if it did not fall by half."""
    first, least = samples[0][1], min(resident for _, resident in samples)
    if first - least < first / 2:
        return None
    enough = first - SHARE * (first - least)
    return next(ms for ms, resident in samples if resident <= enough)


def lost_pages(clerk: Clerk, image: Path, copy: Path) -> int:
    """Pages that cannot be read, or read otherwise than they were written."""
    # Unreadable sectors become zeroes; the image is random, so that they differ.
    call("qemu-img", "convert", "--salvage", "-f", "raw", "-O", "raw", clerk.url, copy)
    count = 0
    with image.open("rb") as written, copy.open("rb") as read:
        while page := written.read(PAGE_BYTES):
            count += page != read.read(PAGE_BYTES)
    return count


def measured(policy: Policy, folder: Path, args: argparse.Namespace) -> dict:
    """One run of a policy."""
    size_bytes = args.size_mib << 20
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Network(["client", "recruiter", *SERVERS], args.gbit_per_s * 1000))
        config = folder / "recruiter.toml"
        address = f"{network.address('recruiter')}:{RECRUITER_PORT}"
        config.write_text(f'local_listen = "{address}"\nlocal_access = "all"\nannounce_every = "1s"\nreserve_share = 0.0\n')
        command = network.inside("recruiter", args.programs / "gleaner-recruiter", "run", "--config", config)
        stack.enter_context(running(command, folder / "recruiter.log"))
        for name in ("client", *SERVERS):
            # The other addresses of the loopback device lie on the host's port (links.py).
            for words in ("link set lo up", "address del 127.0.0.1/8 dev lo", "address add 127.0.0.1/32 dev lo"):
                network.run(name, "ip", *words.split())
            forward = [sys.executable, Path(__file__).with_name("forward.py"), f"127.0.0.1:{RECRUITER_PORT}", address]
            stack.enter_context(running(network.inside(name, *forward), folder / f"{name}-forward.log"))
        servers = {name: MemoryServer(network, name, folder, args, stack) for name in SERVERS}
        for name in SERVERS[: policy.copies]:
            servers[name].agent.idle()
        clerk = Clerk(network, policy, folder, stack.enter_context(disk_folder(policy, folder, args)), args, stack)
        until("the first leases", lambda: clerk.room_bytes() >= policy.copies * size_bytes)
        image = folder / "image"
        image.write_bytes(os.urandom(size_bytes))
        call("nbdcopy", "--flush", image, clerk.url)
        leaving = servers[LEAVING]
        until(f"all pages at {LEAVING}", lambda: clerk.used_bytes(leaving.host_id) >= size_bytes)
        for name in SERVERS[policy.copies :]:
            servers[name].agent.idle()
        status = clerk.status()
        used = sum(server["used_bytes"] for server in status["servers"])
        return observed(network, policy, clerk, leaving, folder, args) | {
            "distinct_share": status["stored_bytes"] / used,
            "lost_pages": lost_pages(clerk, image, folder / "copy"),
            "pages": size_bytes // PAGE_BYTES,
        }


def observed(network: Network, policy: Policy, clerk: Clerk, leaving: MemoryServer, folder: Path, args: argparse.Namespace) -> dict:
    """Figures of the event, under a load of page-ins."""
    log = folder / "load"
    words = ["fio", "--name=pages", "--ioengine=nbd", f"--uri={clerk.url}", "--rw=randread", "--bs=4k", "--iodepth=1", "--norandommap"]
    words += [f"--size={args.size_mib}m", "--time_based", f"--runtime={2 * WINDOW_S + args.after_s + 1}", "--continue_on_error=read"]
    words += [f"--write_lat_log={log}", "--log_unix_epoch=1"]
    read = clerk.status()["counters"]["reads_count"]
    load = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        until("page-ins", lambda: clerk.status()["counters"]["reads_count"] > read)
        bytes_at = [network.bytes("client")]
        time.sleep(WINDOW_S)
        bytes_at.append(network.bytes("client"))
        moved = clerk.status()["counters"]["moved_pages_count"]
        copies = Copies(clerk)
        samples = [(0.0, leaving.resident_bytes())]
        event_ms, begin = time.time() * 1000, time.monotonic()
        reclaim(leaving, policy)
        copies.start()
        while (passed_s := time.monotonic() - begin) < WINDOW_S:
            samples.append((passed_s * 1000, leaving.resident_bytes()))
            time.sleep(min(max(passed_s / 50, 1e-4), 5e-3))
        bytes_at.append(network.bytes("client"))
        said = load.communicate(timeout=WINDOW_S + args.after_s + PATIENCE_S)[0]
    finally:
        load.kill()
        load.wait()
    copies.end()
    found = page_ins(Path(f"{log}_lat.1.log"), event_ms)
    if not all(found.values()):
        raise SystemExit(f"fio read no pages in a phase: { {phase: len(times) for phase, times in found.items()} }: {said}")
    counters = clerk.status()["counters"]
    row = {"owner_ms": owner_ms(samples), "copies_ms": copies.ms, "moved_pages": counters["moved_pages_count"] - moved}
    row |= {"failed_requests": counters["failed_requests_count"]}
    for phase, (before, after) in zip(("before", "during"), zip(bytes_at, bytes_at[1:])):
        row[f"wire_{phase}_bytes"] = after - before
    for phase, times in found.items():
        row |= {f"{phase}_page_ins": len(times)}
        row |= {f"{phase}_p{percent}_us": percentile(times, percent / 100) for percent in (50, 99)}
    return row


class Copies(threading.Thread):
    """Time from the start until the pages at servers have all their copies again, after some did not."""

    def __init__(self, clerk: Clerk):
        super().__init__(daemon=True)
        self.clerk, self.ms, self.is_over = clerk, None, threading.Event()

    def run(self) -> None:
        begin, has_lacked = time.monotonic(), False
        while not self.is_over.wait(0.05):
            status = self.clerk.status()
            has_lacked |= not status["has_all_copies"]
            if has_lacked and status["has_all_copies"]:
                self.ms = (time.monotonic() - begin) * 1000
                return

    def end(self) -> None:
        self.is_over.set()
        self.join()


def medians(runs: list[dict]) -> dict:
    """Medians of the runs; the sum of the lost pages, since none may be lost in any run."""
    row = {}
    for key in runs[0]:
        values = [run[key] for run in runs if run[key] is not None]
        row[key] = round(statistics.median(values), 3) if len(values) == len(runs) else None
    return row | {"lost_pages": sum(run["lost_pages"] for run in runs)}


def table(rows: list[dict]) -> str:
    columns = {
        "shutdown": lambda row: row["shutdown"],
        "owner, ms": lambda row: shown(row["owner_ms"], 1),
        "copies, ms": lambda row: shown(row["copies_ms"], 0),
        "wire before / during, MB": lambda row: f"{row['wire_before_bytes'] / 1e6:.1f} / {row['wire_during_bytes'] / 1e6:.1f}",
        "page-in before, p50 / p99 us": lambda row: latency(row, "before"),
        "during": lambda row: latency(row, "during"),
        "after": lambda row: latency(row, "after"),
        "distinct": lambda row: f"{row['distinct_share']:.0%}",
        "lost": lambda row: f"{row['lost_pages']} of {row['pages']:.0f}",
    }
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(cell(row) for cell in columns.values()) + " |" for row in rows)])


def shown(value: float | None, digits: int) -> str:
    """A figure, or a dash for one that was not reached during the run."""
    return "-" if value is None else f"{value:.{digits}f}"


def latency(row: dict, phase: str) -> str:
    return f"{shown(row[f'{phase}_p50_us'], 0)} / {shown(row[f'{phase}_p99_us'], 0)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", metavar="DIR", help="where gleaner-memoryd, gleaner-recruiter and gleaner-clerk are")
    parser.add_argument("--only", nargs="+", default=NAMES, choices=NAMES, help="policies [all]")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--size-mib", type=int, default=256, help="of the pages [256]")
    parser.add_argument("--gbit-per-s", type=int, default=1, choices=[1, 10], help="rate of each link [1]")
    parser.add_argument("--after-s", type=int, default=5, help="time from the tenth second after the event on [5]")
    parser.add_argument("--shrink-step", default="64MiB", help="memory that is reclaimed in a step [64MiB]")
    parser.add_argument("--shrink-every", default="100ms", help="time between steps [100ms]")
    parser.add_argument("--disk-folder", type=Path, metavar="DIR", help="the clerk's copy goes there instead of the modelled disk")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    args = parser.parse_args()
    if args.size_mib % 8:
        parser.error("--size-mib: a multiple of 8, so that a lease of five quarters has whole slabs")
    tools = {"fio": "fio", "nbdkit": "nbdkit", "nbdcopy": "libnbd-bin", "qemu-img": "qemu-utils", "ip": "iproute2", "mkfs.ext4": "e2fsprogs"}
    for tool, package in tools.items():
        call(ROOT / "tests/need", tool, package)
    rows = []
    for policy in (policy for policy in POLICIES if policy.name in args.only):
        runs = []
        for number in range(args.runs):
            with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as name:
                runs.append(measured(policy, Path(name), args))
            print(f"{policy.name}: run {number + 1} of {args.runs}", file=sys.stderr, flush=True)
        rows.append({"shutdown": policy.name, **medians(runs)})
    print(table(rows))
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        settings = {"size_mib": args.size_mib, "gbit_per_s": args.gbit_per_s, "runs": args.runs}
        settings |= {"shrink_step": args.shrink_step, "shrink_every": args.shrink_every}
        args.json.write_text(json.dumps({"shutdown": {**settings, "rows": rows}}, indent=1))
    if lost := [row["shutdown"] for row in rows if row["lost_pages"]]:
        raise SystemExit(f"pages were lost by {', '.join(lost)}")


if __name__ == "__main__":
    main()
