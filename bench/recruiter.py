#!/usr/bin/env python3
"""The recruiter with ten thousand hosts, each with its own WebSocket, and clients that request leases.

recruiter.py [--hosts 10000] [--seconds 60] [--rates 10,50,100] [--tls]

Hosts announce themselves every 10 s, with rising and falling quotas, and on every grant; they grant by the real rules
(recruiter/examples/lending_swarm). CPU and memory are those of the recruiter, from /proc, once all hosts are linked. Time to
grant is the client's, from the time at which its request was due.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RELEASE = ROOT / "target/release"
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rates", default="10,50,100", help="leases asked for a second, a run each")
    parser.add_argument("--tls", action="store_true", help="hosts by mutual TLS (their certificates are made first: minutes)")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there as well")
    args = parser.parse_args()
    # Each connection takes a file descriptor in both processes.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < args.hosts + 100:
        raise SystemExit(f"{hard} file descriptors are too few for {args.hosts} hosts: raise `ulimit -Hn`")
    runs = [measured(args, float(rate)) for rate in args.rates.split(",")]
    print(table(runs))
    text = json.dumps({"recruiter": runs}, indent=2)
    print(text)
    if args.json:
        args.json.write_text(text)


def measured(args: argparse.Namespace, rate: float) -> dict:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gleaner-bench-"))
    try:
        pki = folder / "pki"
        if args.tls:
            # Certificates are made beforehand, since they are not measured.
            subprocess.run([RELEASE / "examples/lending_swarm", "--pki", pki, "--hosts", str(args.hosts), "--seconds", "0"], check=True)
        with running(folder, pki if args.tls else None) as (process, listen, local):
            empty = cost(process.pid)
            command = [RELEASE / "examples/lending_swarm", "--url", listen, "--local", local, "--hosts", str(args.hosts)]
            command += ["--seconds", str(args.seconds), "--rate", str(rate)]
            if args.tls:
                command += ["--pki", str(pki)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as swarm:
                wait_for_line(swarm, "begin")
                before, begin = cost(process.pid), time.monotonic()
                wait_for_line(swarm, "end")
                after, seconds = cost(process.pid), time.monotonic() - begin
                found = json.loads(swarm.stdout.readline())
            return {
                "rate": rate,
                **found,
                "recruiter": {
                    "cpu_percent": 100 * (after["cpu_s"] - before["cpu_s"]) / seconds,
                    "rss_mib": after["rss_mib"],
                    "peak_rss_mib": after["peak_rss_mib"],
                    "empty_rss_mib": empty["rss_mib"],
                    "linking_cpu_s": before["cpu_s"] - empty["cpu_s"],
                },
            }
    finally:
        shutil.rmtree(folder)


def wait_for_line(process: subprocess.Popen, wanted: str) -> None:
    for line in process.stdout:
        if line.strip() == wanted:
            return
    raise SystemExit(f"the swarm ended with {process.wait()} before it said {wanted!r}")


@contextlib.contextmanager
def running(folder: pathlib.Path, pki: pathlib.Path | None):
    """A recruiter with full access on loopback; its process, its address for hosts, and its address for clients."""
    config = folder / "recruiter.toml"
    lines = ['local_listen = "127.0.0.1:0"', 'local_access = "all"', "connections_limit = 20000"]
    if pki:
        lines += ['listen = "127.0.0.1:0"', f'pki = "{pki}"']
    config.write_text("\n".join(lines) + "\n")
    log = folder / "recruiter.log"
    with log.open("w") as file:
        process = subprocess.Popen([RELEASE / "gleaner-recruiter", "run", "--config", config], stderr=file)
    try:
        addresses, expected = [], 2 if pki else 1
        while len(addresses) < expected:
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.05)
            addresses = re.findall(r"listening on https?://(\S+)\n", log.read_text())
        yield process, addresses[0], addresses[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def cost(pid: int) -> dict:
    """CPU time and memory that a process has used so far."""
    ticks = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("VmHWM", "VmRSS"))}
    return {
        "cpu_s": (int(ticks[11]) + int(ticks[12])) / TICKS,
        "rss_mib": kib["VmRSS"] / 1024,
        "peak_rss_mib": kib["VmHWM"] / 1024,
    }


def table(runs: list[dict]) -> str:
    head = "| hosts | TLS | leases asked/s | announcements/s | granted | refused | failed | p50 ms | p99 ms | max ms | CPU % | RSS MiB |"
    lines = [head, "|" + " --- |" * 12]
    for run in runs:
        clients, recruiter = run["clients"], run["recruiter"]
        ms = {name: "—" if value is None else f"{value:.1f}" for name, value in clients["granted_ms"].items()}
        cells = [
            run["hosts"], "yes" if run["tls"] else "no", f"{run['rate']:.0f}", f"{run['announcements_per_second']:.0f}",
            clients["granted"], clients["refused"], clients["failures"], ms["p50"], ms["p99"], ms["max"],
            f"{recruiter['cpu_percent']:.0f}", f"{recruiter['rss_mib']:.0f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
