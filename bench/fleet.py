#!/usr/bin/env python3
"""A fleet's collectors: the cost of N hosts, each with its own certificate and connection.

fleet.py [--hosts 10000] [--seconds 300]      a sample each, every 90 s: CPU, memory, time to acknowledge
fleet.py --hosts 1000 --backlog 960           a day each at once: time until acknowledged, and until in the dataset
fleet.py --hosts 100000 --collectors 6 --connect-seconds 900 --interval-seconds 900 --seconds 900
                                              six collectors on one dataset, each with a sixth of the hosts

Certificates take some 10 ms each, for the disk, and are kept in --pki for the next run. A process has a limited number of
descriptors: the bench starts as many load generators as the hosts need, and each collector must have few enough hosts.
Collectors and load generators share this machine's CPUs: look at the CPU time and at `acknowledged_connected_ms`, which
leaves out TLS handshakes. Give the hosts time to connect: handshakes cost CPU time on both sides. Where the machine has too
few CPUs for a sample of each host every 90 s, --interval-seconds makes samples rarer.
"""

import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import resource
import shutil
import socket
import tempfile
import threading
import time
import urllib.request

from collector import certify, cost, running, seal, swarm

#: Descriptors of a process besides its connections.
OTHER_DESCRIPTORS = 200
#: Hosts' connections that share a source address (HOSTS_OF_ADDRESS in collector/examples/swarm/main.rs), of 254 addresses.
MOST_HOSTS = 254 * 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--collectors", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--interval-seconds", type=int, default=90)
    parser.add_argument("--connect-seconds", type=int, default=90)
    parser.add_argument("--backlog", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--pki", type=pathlib.Path, help="folder of certificates (default: in --folder)")
    args = parser.parse_args()
    if args.hosts > MOST_HOSTS:
        raise SystemExit(f"{MOST_HOSTS} hosts are the most that the loopback network's addresses allow")
    most = descriptors() - OTHER_DESCRIPTORS
    if -(-args.hosts // args.collectors) > most:
        raise SystemExit(f"a collector has {most} descriptors for its hosts here: more --collectors, or a higher `ulimit -n`")
    folder = args.folder or pathlib.Path(tempfile.mkdtemp(prefix="gleaner-bench-"))
    try:
        folder.mkdir(exist_ok=True)
        args.pki = args.pki or folder / "pki"
        certify(args.pki, args.hosts)
        print(json.dumps(measured(folder, args, most), indent=2))
    finally:
        if args.folder is None:
            shutil.rmtree(folder)


def measured(folder: pathlib.Path, args: argparse.Namespace, most: int) -> dict:
    """Figures of one run, with those of each collector and load generator. A load generator has `most` hosts."""
    with contextlib.ExitStack() as stack:
        collectors = [stack.enter_context(one) for one in started(folder, args)]
        how = ["--connect-seconds", args.connect_seconds, "--seconds", args.seconds]
        how += ["--interval-seconds", args.interval_seconds]
        if args.backlog:
            how = ["--backlog", args.backlog, "--at-once", args.at_once]
        begin = time.monotonic()
        urls = ",".join(tls for _, tls, _ in collectors)
        with watched([local for _, _, local in collectors]) as peak:
            found = sent(["--pki", args.pki, "--url", urls, *how], args.hosts, most)
        found["connections_at_once"] = peak[0]
        for _, _, local in collectors:
            seal(local)
        found["sealed_s"] = time.monotonic() - begin
        each = [cost(process.pid) | state(local) for process, _, local in collectors]
        if args.collectors == 1:
            return found | each[0]
        return found | {"group": group(collectors[0][2]), "collectors": each}


def sent(how: list, hosts: int, most: int) -> dict:
    """Sums of the load generators, which run side by side with at most `most` hosts each, and the times of each of them."""
    with concurrent.futures.ThreadPoolExecutor() as threads:
        firsts = range(0, hosts, most)
        runs = [threads.submit(swarm, *how, "--first", n, "--hosts", min(most, hosts - n)) for n in firsts]
        found = [run.result() for run in runs]
    if len(found) == 1:
        return found[0]
    sums = {key: sum(one[key] for one in found) for key in ["hosts", "batches", "rows", "sent_bytes", "retries", "failures"]}
    return sums | {"seconds": max(one["seconds"] for one in found), "load_generators": found}


@contextlib.contextmanager
def watched(addresses: list[str]):
    """The most connections that all collectors had at once, counted every 5 s, as the one item of a list."""
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(5):
            with contextlib.suppress(OSError):  # a collector too busy to answer is asked again
                peak[0] = max(peak[0], sum(status(local)["connections_count"] for local in addresses))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def status(local: str) -> dict:
    return json.load(urllib.request.urlopen(f"http://{local}/v1/status", timeout=60))


def started(folder: pathlib.Path, args: argparse.Namespace) -> list:
    """Context managers of the collectors. Several collectors have names, one dataset, and each other as peers."""
    shutil.rmtree(folder / "data", ignore_errors=True)
    if args.collectors == 1:
        limit = f"connections_limit = {max(20_000, args.hosts + OTHER_DESCRIPTORS)}\n"
        return [running(folder, args.pki, more=limit)]
    shutil.rmtree(folder / "dataset", ignore_errors=True)
    ports = free_ports(args.collectors)
    peers = json.dumps([f"https://localhost:{port}" for port in ports])
    limit = args.hosts // args.collectors + OTHER_DESCRIPTORS
    made = []
    for number, port in enumerate(ports, 1):
        own = folder / f"collector-{number}"
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir()
        more = (
            f'name = "collector-{number}"\ndataset = "{folder}/dataset"\nconnections_limit = {max(20_000, limit)}\n'
            f"[peers]\nurls = {peers}\n"
        )
        made.append(running(own, args.pki, port, more))
    return made


def free_ports(count: int) -> list[int]:
    """Ports at which no program listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def state(local: str) -> dict:
    """Rejected requests and connections of a collector by reason, and its part of the dataset."""
    text = urllib.request.urlopen(f"http://{local}/metrics").read().decode()
    rejected = {}
    for line in text.splitlines():
        if line.startswith("gleaner_collector_rejected_requests_total{"):
            labels, value = line.rsplit(" ", 1)
            reason = labels.split('reason="')[1].split('"')[0]
            if float(value):
                rejected[reason] = int(float(value))
    overview = group(local)["collectors"][0]["overview"]
    return {"rejected": rejected, "hosts": overview["hosts_count"], "rows": overview["dataset_rows_count"]}


def group(local: str) -> dict:
    return json.load(urllib.request.urlopen(f"http://{local}/v1/collectors"))


def descriptors() -> int:
    """Descriptors that a process may have. Raises this process's limit to that, which all processes inherit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


if __name__ == "__main__":
    main()
