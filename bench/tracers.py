#!/usr/bin/env python3
"""What a sample costs: gleaner-agent beside sadc and atop, under one load, in one run."""

import argparse
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

EXAMPLES = """examples:
  bench/tracers.py --agent target/release/gleaner-agent
  bench/tracers.py --agent target/release/gleaner-agent --json out/tracers.json
  bench/tracers.py --samples 10                        sadc and atop alone, quicker
"""

#: Uses a fifth of a CPU and 20 MiB that it touches: active in every sample, and the tracers get their turn.
BUSY = """
import os, time
memory = bytearray(os.urandom(20 << 20))
while os.getppid() == {parent}:
    until = time.process_time() + 0.02
    while time.process_time() < until:
        memory[::4096] = memory[::4096]
    time.sleep(0.08)
"""


@dataclass(frozen=True)
class Tracer:
    """A program that takes `{samples}` samples, `{interval}` seconds apart, and writes into `{folder}`."""

    name: str
    command: list[str]
    version: str


@dataclass(frozen=True)
class Run:
    """What one run of a tracer took, from start to end."""

    cpu_ms: float
    stored_bytes: int
    peak_rss_bytes: int


@dataclass(frozen=True)
class Cost:
    """What a tracer costs. CPU and bytes are those of a further sample: start and end are not in them."""

    tracer: str
    version: str
    cpu_ms_per_sample: float
    bytes_per_sample: float
    peak_rss_bytes: int


def main() -> int:
    args = arguments()
    # Ended by a signal, the load and the tracers are ended as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return bench(args)
    except KeyboardInterrupt:
        print("interrupted: nothing was measured to its end", file=sys.stderr)
        return 130
    except (OSError, RuntimeError) as error:
        print(f"tracers.py: {error}", file=sys.stderr)
        return 1


def bench(args: argparse.Namespace) -> int:
    tracers = list(known_tracers(args.agent))
    seconds = len(tracers) * (args.samples + 3) * args.interval
    print(f"about {seconds:.0f} s", file=sys.stderr)
    with load(args.asleep, args.busy, seconds):
        processes = sum(entry.isdigit() for entry in os.listdir("/proc"))
        costs = [measure(tracer, args.samples, args.interval) for tracer in tracers]
    conditions = {
        "processes": processes,
        "asleep": args.asleep,
        "busy": args.busy,
        "samples": args.samples,
        "interval_s": args.interval,
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
    }
    print(table(conditions, costs))
    if args.json:
        result = {"conditions": conditions, "tracers": [asdict(cost) for cost in costs]}
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", type=Path, metavar="FILE", help="gleaner-agent, built in release")
    parser.add_argument("--samples", type=int, default=40, metavar="N", help="[default: 40]")
    parser.add_argument("--interval", type=int, default=1, metavar="S", help="seconds [default: 1]")
    parser.add_argument("--asleep", type=int, default=300, metavar="N", help="[default: 300]")
    parser.add_argument("--busy", type=int, default=5, metavar="N", help="[default: 5]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    args = parser.parse_args()
    if args.samples < 1 or args.interval < 1:
        parser.error("at least one sample, at least one second apart")
    return args


def known_tracers(agent: Path | None):
    """sadc comes first: the others are compared with it."""
    sadc = shutil.which("sadc", path="/usr/lib/sysstat:/usr/lib64/sa:" + os.environ["PATH"])
    atop = shutil.which("atop")
    if not sadc or not atop:
        raise RuntimeError("sadc or atop is missing: apt-get install sysstat atop")
    command = [sadc, "-S", "XALL", "{interval}", "{samples}", "{folder}/sadc"]
    yield Tracer("sadc -S XALL", command, version_of([sadc, "-V"]))
    for name, options in [("atop -w", []), ("atop -R -w (PSS)", ["-R"])]:
        command = [atop, *options, "-w", "{folder}/atop", "{interval}", "{samples}"]
        yield Tracer(name, command, version_of([atop, "-V"]))
    if agent:
        run = ["run", "--interval", "{interval}s", "--samples", "{samples}"]
        command = [str(agent.resolve()), *run, "--database", "{folder}/trace.db"]
        yield Tracer("gleaner-agent run", command, version_of([str(agent.resolve()), "--version"]))


def version_of(command: list[str]) -> str:
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    words = (said.stdout + said.stderr).split()
    return next((word.strip(",;") for word in words if word[0].isdigit()), "unknown")


@contextmanager
def load(asleep: int, busy: int, seconds: float):
    """Processes that are there while the tracers run; ended by pid, and by themselves should this die."""
    sleeping = ["sleep", str(int(seconds) + 600)]
    spinning = [sys.executable, "-c", BUSY.format(parent=os.getpid())]
    children = []
    try:
        for command in [sleeping] * asleep + [spinning] * busy:
            children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        yield
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()


def measure(tracer: Tracer, samples: int, interval: int) -> Cost:
    """A run of one sample is taken off: what is left is the further samples' alone."""
    print(f"  {tracer.name} …", file=sys.stderr)
    first = run(tracer, 1, interval)
    whole = run(tracer, 1 + samples, interval)
    return Cost(
        tracer=tracer.name,
        version=tracer.version,
        cpu_ms_per_sample=(whole.cpu_ms - first.cpu_ms) / samples,
        bytes_per_sample=(whole.stored_bytes - first.stored_bytes) / samples,
        peak_rss_bytes=whole.peak_rss_bytes,
    )


def run(tracer: Tracer, samples: int, interval: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="tracers-") as folder:
        values = {"samples": samples, "interval": interval, "folder": folder}
        command = [part.format(**values) for part in tracer.command]
        # Without ATOPACCT, atop would turn on process accounting for the whole machine.
        environment = os.environ | {"ATOPACCT": "", "LC_ALL": "C.UTF-8"}
        start = time.monotonic()
        with tempfile.TemporaryFile() as said:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment
            )
            try:
                peak_rss_bytes, status, usage = watch(child)
            finally:
                if child.returncode is None:
                    child.kill()
                    child.wait()
            said.seek(0)
            if status != 0:
                words = said.read().decode(errors="replace").strip()
                raise RuntimeError(f"{' '.join(command)} ended with {status}: {words}")
        if time.monotonic() - start < 0.9 * (samples - 1) * interval:
            raise RuntimeError(f"{tracer.name} ended before it had taken {samples} samples")
        stored = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        return Run((usage.ru_utime + usage.ru_stime) * 1000, stored, peak_rss_bytes)


def watch(child: subprocess.Popen) -> tuple[int, int, resource.struct_rusage]:
    """Waits for the child. Its peak RSS is its own word (VmHWM) shortly before its end: ru_maxrss would
    hold this program's as well, of which the child was a copy before it became the tracer."""
    peak_rss_bytes = 0
    while True:
        try:
            status = Path(f"/proc/{child.pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            status = ""
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                peak_rss_bytes = int(line.split()[1]) * 1024
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return peak_rss_bytes, child.returncode, usage
        time.sleep(0.1)


def table(conditions: dict, costs: list[Cost]) -> str:
    head = ["tracer", "version", "CPU ms/sample", "x sadc", "bytes/sample", "x sadc", "peak RSS MiB", "x sadc"]
    reference = costs[0]
    rows = [head]
    for cost in costs:
        row = [cost.tracer, cost.version]
        for value, base, text in [
            (cost.cpu_ms_per_sample, reference.cpu_ms_per_sample, f"{cost.cpu_ms_per_sample:.2f}"),
            (cost.bytes_per_sample, reference.bytes_per_sample, f"{cost.bytes_per_sample:,.0f}"),
            (cost.peak_rss_bytes, reference.peak_rss_bytes, f"{cost.peak_rss_bytes / 2**20:.1f}"),
        ]:
            row += [text, f"{value / base:.1f}" if base > 0 else "-"]
        rows.append(row)
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "{processes} processes ({asleep} asleep and {busy} busy of them the bench's), {samples} samples at "
        "{interval_s} s, {cpus} CPUs, kernel {kernel}".format(**conditions)
    ]
    for row in rows:
        cells = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
