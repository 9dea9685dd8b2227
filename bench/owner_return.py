#!/usr/bin/env python3
"""Delay until a listener learns of the owner's return: from a key press to the agent's message.

The keyboard is a pipe under a --dev-root, the terminal a pseudo-terminal with a process. The owner counts
as away after 300 ms, and a sample is taken every --interval, so that many presses happen during a sample.

examples:
  bench/owner_return.py --agent target/release/gleaner-agent
  bench/owner_return.py --agent target/release/gleaner-agent --trials 50 --busy 4 --json out/owner_return.json
"""

import argparse
import json
import os
import pty
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RETURN_WATCH_AFTER_MS = 300


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0],
        epilog=__doc__[__doc__.index("examples") :],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--agent", type=Path, required=True, metavar="FILE", help="gleaner-agent, built in release")
    parser.add_argument("--trials", type=int, default=200, metavar="N", help="presses of each kind [200]")
    parser.add_argument("--interval", default="100ms", metavar="TIME", help="time between samples [100ms]")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="processes that use CPU meanwhile [0]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser.parse_args()


class Keyboard:
    """A pipe in place of an event device: each press is one struct input_event."""

    name = "input"

    def __init__(self, dev: Path):
        node = dev / "input/event0"
        os.mkfifo(node)
        self.fd = os.open(node, os.O_RDWR)

    def press(self) -> None:
        now = time.time_ns()
        os.write(self.fd, struct.pack("=qqHHi", now // 10**9, now % 10**9 // 1000, 1, 0, 1))

    def close(self) -> None:
        os.close(self.fd)


class Terminal:
    """A pseudo-terminal on which a program reads the input."""

    name = "terminal"

    def __init__(self, dev: Path):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp("cat", ["cat"])
        while Path(f"/proc/{self.pid}/comm").read_text() != "cat\n":
            time.sleep(0.01)
        terminal = os.readlink(f"/proc/{self.pid}/fd/0")
        (dev / "pts" / Path(terminal).name).symlink_to(terminal)

    def press(self) -> None:
        os.write(self.fd, b"\n")
        # Discard the echo, so that the terminal's buffer does not fill up.
        os.read(self.fd, 4096)

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class Trial:
    def __init__(self, pressed_ns: int):
        self.pressed_ns = pressed_ns
        self.told_ms = 0.0
        self.in_sample = False


def run(agent: Path, source_of: type, trials: int, interval: str) -> list[Trial]:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for folder in ("dev/input", "dev/pts", "sys", "run"):
            (root / folder).mkdir(parents=True)
        (root / "agent.toml").write_text(f'return_watch_after = "{RETURN_WATCH_AFTER_MS}ms"\n')
        source = source_of(root / "dev")
        command = [str(agent.resolve()), "run", "--sample-interval", interval]
        command += ["--config", str(root / "agent.toml"), "--database", str(root / "trace.db"), "--socket", str(root / "agent.sock")]
        command += ["--dev-root", str(root / "dev"), "--sys-root", str(root / "sys"), "--run-root", str(root / "run")]
        tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            return press(listen(root / "agent.sock"), source, trials)
        finally:
            tracer.terminate()
            tracer.wait()
            source.close()


def listen(path: Path):
    listener = socket.socket(socket.AF_UNIX)
    listener.settimeout(30)
    until = time.monotonic() + 30
    while True:
        try:
            listener.connect(str(path))
            return listener.makefile("r")
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def press(messages, source, trials: int) -> list[Trial]:
    done: list[Trial] = []
    dice = random.Random(1)
    waiting: Trial | None = None
    while len(done) < trials or not done[-1].told_ms or waiting:
        line = messages.readline()
        heard_ns = time.time_ns()
        message = json.loads(line)
        if message["type"] == "owner" and "absence_ms" in message and done and not done[-1].told_ms:
            done[-1].told_ms = (heard_ns - done[-1].pressed_ns) / 1e6
        if message["type"] != "sample":
            continue
        if waiting is not None:  # the first sample after a press says whether it was being taken then
            begun_ns = message["time_ms"] * 10**6
            if waiting.pressed_ns < begun_ns + message["agent_wall_us"] * 1000:
                waiting.in_sample = waiting.pressed_ns >= begun_ns
                waiting = None
        elif len(done) < trials and (message["owner_idle_ms"] or 0) >= RETURN_WATCH_AFTER_MS:
            time.sleep(dice.uniform(0, 0.15))
            waiting = Trial(time.time_ns())
            done.append(waiting)
            source.press()
    return done


def figures(trials: list[Trial]) -> dict:
    told_ms = sorted(trial.told_ms for trial in trials)
    if not told_ms:
        return {"trials": 0}
    at = lambda share: told_ms[min(len(told_ms) - 1, int(share * len(told_ms)))]
    return {"trials": len(told_ms), "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": told_ms[-1]}


def main() -> int:
    args = arguments()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.busy)]
    found = []
    try:
        for source in (Keyboard, Terminal):
            trials = run(args.agent, source, args.trials, args.interval)
            in_sample = [trial for trial in trials if trial.in_sample]
            found.append({"source": source.name, "presses": "all"} | figures(trials))
            found.append({"source": source.name, "presses": "during a sample"} | figures(in_sample))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    print("| source | presses | trials | p50 ms | p99 ms | max ms |\n| --- | --- | --- | --- | --- | --- |")
    for row in found:
        times = " | ".join(f"{row[key]:.2f}" if key in row else "" for key in ("p50_ms", "p99_ms", "max_ms"))
        print(f"| {row['source']} | {row['presses']} | {row['trials']} | {times} |")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
