#!/usr/bin/env python3
"""Pages over NBD: gleaner-memoryd beside nbdkit, nbd-server and qemu-nbd, and beside a minimal server (nbd_floor.c).

nbd.py [--memoryd target/release/gleaner-memoryd] [--clerk target/release/gleaner-clerk] [--runs 5] [--seconds 2] [--size-mib 1024] [--json FILE]
nbd.py --transports tls [--gleaner target/release/gleaner] [...]

All of them serve the same amount of memory, written before, to the same client (fio's nbd engine), one at a time, the server on one CPU and the client on
another, in a separate network namespace with the kernel's oldest congestion control, reno: on some machines the default is bbr, which paces traffic over
loopback by its estimates. The clerk (over a Unix socket only) has its pages at a gleaner-memoryd over TCP, both on the servers' CPU, encrypted, without a copy
on disk: its cost is the difference to both. By TLS, memoryd and nbdkit have the same certificates, and the client is another user than root. *Beside a client with 64 in flight*: reads of one page at a time, while another client on the same CPU keeps 64
requests in flight. Every server runs each case in turn, repeatedly, and the median of the runs counts. Latency is fio's own, from submission to completion. A
run during which a hypervisor took more than --stolen percent of this machine's CPU time is repeated, at most ten times; then the run that lost least counts.
"""

import argparse
import contextlib
import ctypes
import dataclasses
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVER_CPU, CLIENT_CPU = "0", "1"
CLONE_NEWNET = 0x4000_0000
SERVERS = ("gleaner", "floor", "nbdkit", "nbd-server", "qemu-nbd", "clerk")
TRANSPORTS = ("tcp", "unix", "tls")
NOBODY = 65534
"""User of the client by TLS: libnbd reads root's certificates only from /etc/pki/libnbd, other users' also from their home."""
PATIENCE_S = 20
ATTEMPTS = 10


@dataclass(frozen=True)
class Case:
    """Requests of the client."""

    transport: str
    rw: str
    kib: int
    depth: int
    is_beside: bool = False
    """Another client keeps as many requests under way as it can."""


CASES = [
    Case(transport, rw, 4, depth) for transport in TRANSPORTS for rw in ("randread", "randwrite") for depth in (1, 16, 64)
] + [Case(transport, rw, 128, 8) for transport in TRANSPORTS for rw in ("read", "write")]
CASES += [Case(transport, "randread", 4, 1, is_beside=True) for transport in ("tcp", "unix")]


class Servers:
    """All servers, one at a time, each with its own contents."""

    def __init__(self, args: argparse.Namespace, folder: Path):
        self.args, self.folder = args, folder
        self.pid = 0
        """Process of the server that clients use."""
        self.bytes = args.size_mib << 20
        self.floor = folder / "nbd_floor"
        subprocess.run(["cc", "-O2", "-pthread", "-o", self.floor, ROOT / "bench/nbd_floor.c"], check=True)
        subprocess.run([ROOT / "tests/unpack", ROOT / "target/nbd-server", "nbd-server", "libnl-genl-3-200", "libnl-3-200"], check=True)

    def certify(self) -> None:
        """Certificates of server and client, with the names that libnbd and nbdkit expect, in the client's home."""
        pki, made = self.folder / "pki", self.folder / "issued"
        made.mkdir()
        issue = [self.args.gleaner, "pki", "issue", "--pki", pki]
        for command in (
            [self.args.gleaner, "pki", "init", pki, "--name", "localhost"],
            [*issue, "--collector", "--name", "localhost", "-o", made / "server"],
            [*issue, "--client", "standalone", "-o", made / "client"],
        ):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.certificates.mkdir(parents=True)
        shutil.copy(pki / "authority.crt", self.certificates / "ca-cert.pem")
        for side in ("server", "client"):
            for kind, to in (("crt", "cert"), ("key", "key")):
                shutil.copy(made / f"{side}.{kind}", self.certificates / f"{side}-{to}.pem")
        for file in self.certificates.iterdir():
            os.chown(file, NOBODY, NOBODY)
        self.folder.chmod(0o711)
        os.environ["HOME"] = str(self.folder)

    @property
    def certificates(self) -> Path:
        return self.folder / ".pki/libnbd"

    def command(self, name: str, port: int | None, path: Path, is_tls: bool) -> list[str]:
        """Command that serves at `port` on loopback, or at the Unix socket `path` if there is no port."""
        if name == "gleaner":
            listen = f"127.0.0.1:{port}" if port else str(path)
            tls = ["--tls", *(self.certificates / file for file in ("server-cert.pem", "server-key.pem", "ca-cert.pem"))]
            return [self.args.memoryd, "standalone", f"{self.args.size_mib}MiB", "--listen", listen, *(tls if is_tls else [])]
        if name == "clerk":
            paths = ["--listen", path, "--status-socket", f"{path}.status"]
            return [self.args.clerk, "run", "--size", f"{self.args.size_mib}MiB", "--disk-folder", "none", "--server", self.clerks_server, *paths]
        if name == "floor":
            return [self.floor, str(port or path), str(self.bytes)]
        if name == "nbdkit":
            tls = ["--tls=require", f"--tls-certificates={self.certificates}", "--tls-verify-peer"] if is_tls else []
            return ["nbdkit", "-f", *tls, *(["-p", str(port), "-i", "127.0.0.1"] if port else ["-U", path]), "memory", str(self.bytes)]
        # The other servers serve files; these are in memory.
        file = self.folder / f"{name}.img"
        with file.open("wb") as made:
            made.truncate(self.bytes)
        if name == "qemu-nbd":
            return ["qemu-nbd", "-t", "-f", "raw", "-e", "16", "-x", "", *(["-p", str(port), "-b", "127.0.0.1"] if port else ["-k", path]), file]
        where = f"port = {port}\nlistenaddr = 127.0.0.1" if port else f"unixsock = {path}\nport = {free_port()}\nlistenaddr = 127.0.0.1"
        config = self.folder / "nbd-server.conf"
        config.write_text(f"[generic]\nallowlist = true\n{where}\n[default]\nexportname = {file}\n")
        return [ROOT / "target/nbd-server/bin/nbd-server", "-C", config, "-p", self.folder / "nbd-server.pid"]

    @contextlib.contextmanager
    def running(self, name: str, transport: str):
        if name == "clerk":
            with self.alone("gleaner", "tcp") as self.clerks_server, self.alone(name, transport) as url:
                yield url
        else:
            with self.alone(name, transport) as url:
                yield url

    @contextlib.contextmanager
    def alone(self, name: str, transport: str):
        path = self.folder / f"{name}.sock"
        port = None if transport == "unix" else free_port()
        command = ["taskset", "-c", SERVER_CPU, *map(str, self.command(name, port, path, transport == "tls"))]
        libraries = ROOT / "target/nbd-server/lib/x86_64-linux-gnu"
        log = (self.folder / f"{name}.log").open("wb")
        process = subprocess.Popen(command, stdout=log, stderr=log, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH": str(libraries)})
        export = "default" if name == "nbd-server" else ""
        daemon = self.folder / f"{name}.pid"  # nbd-server forks into the background
        try:
            await_socket(process, port, path, self.folder / f"{name}.log")
            self.pid = int(daemon.read_text()) if daemon.exists() else process.pid
            tcp = f"nbds://localhost:{port}/{export}" if transport == "tls" else f"nbd://127.0.0.1:{port}/{export}"
            yield tcp if port else f"nbd+unix:///{export}?socket={path}"
        finally:
            if daemon.exists():
                os.kill(int(daemon.read_text()), signal.SIGTERM)
                daemon.unlink(missing_ok=True)
            process.terminate()
            process.wait(PATIENCE_S)
            log.close()
            path.unlink(missing_ok=True)
            (self.folder / f"{name}.img").unlink(missing_ok=True)


def is_measured(name: str, transport: str) -> bool:
    """The clerk has a Unix socket only, and by TLS only memoryd and nbdkit are compared."""
    return name in ("gleaner", "nbdkit") if transport == "tls" else (name, transport) != ("clerk", "tcp")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_socket(process: subprocess.Popen, port: int | None, path: Path, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and not process.poll():
        family, at = (socket.AF_INET, ("127.0.0.1", port)) if port else (socket.AF_UNIX, str(path))
        with socket.socket(family) as probe, contextlib.suppress(OSError):
            probe.connect(at)
            return
        time.sleep(0.02)
    raise SystemExit(f"{process.args}: does not listen:\n{log.read_text()}")


def client(url: str, size_mib: int, *more: str) -> list[str]:
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if url.startswith("nbds:") else []
    command = [*user, "taskset", "-c", CLIENT_CPU, "fio", "--name=pages", "--ioengine=nbd", f"--uri={url}", f"--size={size_mib}m", "--output-format=json"]
    return [*command, *more]


def fio(url: str, size_mib: int, *more: str) -> dict:
    ended = subprocess.run(client(url, size_mib, *more), capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"fio at {url}: {ended.stdout}{ended.stderr}")
    return json.loads(ended.stdout[ended.stdout.index("{") :])["jobs"][0]


@contextlib.contextmanager
def greedy(url: str, args: argparse.Namespace):
    """Runs a client with 64 page requests in flight; it is already at work when the body starts."""
    options = ["--rw=randread", "--bs=4k", "--iodepth=64", "--time_based", f"--runtime={args.seconds + 60}", "--status-interval=1"]
    process = subprocess.Popen(client(url, args.size_mib, *options), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        process.stdout.readline()
        yield
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def stolen() -> tuple[int, int]:
    """Ticks that a hypervisor took although there was work here, and all ticks (proc(5), /proc/stat)."""
    user, nice, system, idle, io_wait, irq, soft_irq, steal = map(int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9])
    return steal, user + nice + system + idle + io_wait + irq + soft_irq + steal


def cpu_s(pid: int) -> float:
    """CPU time of a process and of its children that have ended, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def measured(url: str, pid: int, case: Case, args: argparse.Namespace) -> dict:
    attempts = []
    while len(attempts) < ATTEMPTS and (not attempts or attempts[-1]["stolen_percent"] > args.stolen):
        before = stolen()
        attempt = measured_once(url, pid, case, args)
        steal, ticks = (after - begin for after, begin in zip(stolen(), before))
        attempts.append(attempt | {"stolen_percent": 100 * steal / max(ticks, 1)})
    best = min(attempts, key=lambda attempt: attempt["stolen_percent"])
    return best | {"attempts": len(attempts)}


def measured_once(url: str, pid: int, case: Case, args: argparse.Namespace) -> dict:
    if case.is_beside:
        with greedy(url, args):
            return measured_once(url, pid, dataclasses.replace(case, is_beside=False), args)
    begin_s = cpu_s(pid)
    job = fio(
        url, args.size_mib, f"--rw={case.rw}", f"--bs={case.kib}k", f"--iodepth={case.depth}", "--time_based", f"--runtime={args.seconds}",
        "--lat_percentiles=1", "--clat_percentiles=0", "--randseed=1",
    )  # fmt: skip
    found = job["write" if case.rw.endswith("write") else "read"]
    used_s = cpu_s(pid) - begin_s
    percentile = found["lat_ns"]["percentile"]
    return {
        "iops": found["iops"],
        "p50_us": percentile["50.000000"] / 1000,
        "p99_us": percentile["99.000000"] / 1000,
        "server_cpu_us": used_s * 1e6 / max(found["total_ios"], 1),
    }


def enter_own_network() -> None:
    """Gives this process and its later children a separate loopback (unshare(2); Python has it from 3.12 on)."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise SystemExit(f"a network namespace: {os.strerror(ctypes.get_errno())}; run it as root")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memoryd", type=Path, default=ROOT / "target/release/gleaner-memoryd", metavar="FILE")
    parser.add_argument("--clerk", type=Path, default=ROOT / "target/release/gleaner-clerk", metavar="FILE")
    parser.add_argument("--gleaner", type=Path, default=ROOT / "target/release/gleaner", metavar="FILE", help="makes the certificates for tls")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="of each run")
    parser.add_argument("--size-mib", type=int, default=1024)
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=list(SERVERS))
    parser.add_argument("--transports", nargs="+", choices=TRANSPORTS, default=["tcp", "unix"])
    parser.add_argument("--kib", nargs="+", type=int, choices=[4, 128], default=[4, 128], help="sizes of requests")
    parser.add_argument("--stolen", type=float, default=2, metavar="PERCENT", help="of CPU time that others may have had meanwhile")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    args = parser.parse_args()
    for tool, package in (("fio", "fio"), ("nbdkit", "nbdkit"), ("qemu-nbd", "qemu-utils"), ("taskset", "util-linux"), ("ip", "iproute2")):
        subprocess.run([ROOT / "tests/need", tool, package], check=True)
    folder = Path(tempfile.mkdtemp(prefix="gleaner-bench-", dir="/dev/shm"))
    results: dict[Case, dict[str, list[dict]]] = {}
    try:
        servers = Servers(args, folder)
        if "tls" in args.transports:
            servers.certify()
        enter_own_network()
        for run in range(args.runs):
            for transport in args.transports:
                for name in (name for name in args.servers if is_measured(name, transport)):
                    with servers.running(name, transport) as url:
                        fio(url, args.size_mib, "--rw=write", "--bs=1m")
                        for case in (case for case in CASES if case.transport == transport and case.kib in args.kib):
                            results.setdefault(case, {}).setdefault(name, []).append(measured(url, servers.pid, case, args))
            print(f"run {run + 1} of {args.runs}", flush=True)
    finally:
        shutil.rmtree(folder)
    rows = [{**vars(case), "server": name, **median(runs)} for case, servers in results.items() for name, runs in servers.items()]
    print(table(rows))
    worst = max(run["stolen_percent"] for servers in results.values() for runs in servers.values() for run in runs)
    again = sum(run["attempts"] - 1 for servers in results.values() for runs in servers.values() for run in runs)
    print(f"\n{again} runs were done again for CPU time that was stolen; the most that one which counts lost: {worst:.1f} %")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({"nbd": rows}, indent=2))


def median(runs: list[dict]) -> dict:
    return {key: round(statistics.median(run[key] for run in runs), 1) for key in runs[0]}


def table(rows: list[dict]) -> str:
    """One row per case; for each server IOPS (128 KiB: MiB/s), p50 and p99, and its CPU time per request (of one client alone)."""
    names = list(dict.fromkeys(row["server"] for row in rows))
    lines = ["| | " + " | ".join(f"{name}: k/s (MiB/s), p50 / p99, CPU us" for name in names) + " |", "| --- |" + " --- |" * len(names)]
    cases = list(dict.fromkeys(Case(*(row[key] for key in ("transport", "rw", "kib", "depth", "is_beside"))) for row in rows))
    for case in cases:
        cells = []
        for name in names:
            row = next((row for row in rows if row["server"] == name and all(row[key] == value for key, value in vars(case).items())), None)
            if row is None:
                cells.append("-")
                continue
            rate = f"{row['iops'] / 1000:.1f}" if case.kib == 4 else f"{row['iops'] * case.kib / 1024:.0f}"
            cpu = "" if case.is_beside else f", {row['server_cpu_us']:.1f}"
            cells.append(f"{rate}, {row['p50_us']:.0f} / {row['p99_us']:.0f}{cpu}")
        beside = " beside a client with 64 in flight" if case.is_beside else ""
        lines.append(f"| {case.transport} {case.rw} {case.kib} KiB, {case.depth}{beside} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
