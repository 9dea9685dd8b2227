#!/usr/bin/env python3
"""Regularity of the agent's messages while other processes use the CPUs.

Each CPU runs busy loops of normal priority, and one at SCHED_RR 1, the memory server's priority, that works for a share of each 20 ms.
Agents run one after the other. A listener of a higher priority records the time of each message at the agent's socket; three seconds of
silence count as the owner's return.

example:
  bench/heartbeat.py target/release/gleaner-agent --seconds 60
"""

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SILENT_AFTER_S = 3
# Works for a share of each 20 ms.
BURSTS = """
import sys, time
busy_s = 0.02 * float(sys.argv[1])
while True:
    end_s = time.monotonic() + busy_s
    while time.monotonic() < end_s:
        pass
    time.sleep(0.02 - busy_s)
"""


def begin(arguments: argparse.Namespace) -> None:
    print(f"{'program':<40} {'messages':>8} {'largest gap ms':>15} {'silences':>9}")
    for program in arguments.programs:
        gaps_s = gaps(program, arguments.seconds, arguments.loops, arguments.share, arguments.interval)
        silences = sum(gap_s >= SILENT_AFTER_S for gap_s in gaps_s)
        row = {"program": program, "messages": len(gaps_s), "largest_gap_ms": round(max(gaps_s) * 1000, 1), "silences": silences}
        if arguments.json:
            print(json.dumps(row))
        else:
            print(f"{program[-40:]:<40} {row['messages']:>8} {row['largest_gap_ms']:>15} {silences:>9}", flush=True)


def gaps(gleaner_agent: str, seconds: float, loops: int, share: float, interval: str) -> list[float]:
    """Times between consecutive messages, in seconds; the end of the measurement counts as a message."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        root = Path(folder)
        for name in ("dev/input", "dev/pts", "run/user", "sys"):
            (root / name).mkdir(parents=True)
        (root / "agent.toml").write_text("")
        os.mkfifo(root / "dev/input/event0")
        options = ["--config", str(root / "agent.toml"), "--database", str(root / "trace.db"), "--socket", str(root / "agent.sock")]
        options += ["--dev-root", str(root / "dev"), "--sys-root", str(root / "sys"), "--run-root", str(root / "run")]
        start(running, [gleaner_agent, *options, "run", "--sample-interval", interval])
        listener = connect(root / "agent.sock")
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))
        for cpu in os.sched_getaffinity(0):
            on = ["taskset", "-c", str(cpu), "chrt"]
            for _ in range(loops):
                start(running, [*on, "-o", "0", sys.executable, "-c", "while True: pass"])
            start(running, [*on, "-r", "1", sys.executable, "-c", BURSTS, str(share)])
        end_s = time.monotonic() + seconds
        times_s = [time.monotonic()]
        while (left_s := end_s - time.monotonic()) > 0:
            listener.settimeout(left_s)
            with contextlib.suppress(TimeoutError):
                if not listener.recv(65536):
                    sys.exit(f"{gleaner_agent} ended")
                times_s.append(time.monotonic())
        times_s.append(time.monotonic())
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return [later_s - before_s for before_s, later_s in zip(times_s, times_s[1:], strict=False)]


def start(running: contextlib.ExitStack, command: list[str]) -> None:
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    running.callback(process.wait)
    running.callback(process.kill)


def connect(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    limit_s = time.monotonic() + 30
    while True:
        try:
            listener.connect(str(path))
            return listener
        except OSError as why:
            if time.monotonic() > limit_s:
                sys.exit(f"no agent at {path}: {why}")
            time.sleep(0.05)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM", help="built gleaner-agent")
    parser.add_argument("--seconds", type=float, default=60, help="of each program [60]")
    parser.add_argument("--loops", type=int, default=20, help="busy loops of normal priority on each CPU [20]")
    parser.add_argument("--share", type=float, default=0.5, help="of each CPU, at SCHED_RR 1, below 1 [0.5]")
    parser.add_argument("--interval", default="90s", help="of samples, which are taken at normal priority [90s]")
    parser.add_argument("--json", action="store_true", help="a line of JSON a program")
    begin(parser.parse_args())
