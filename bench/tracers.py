#!/usr/bin/env python3
"""The cost of a sample: gleaner-agent beside its peers, under one load, in one run."""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import complete
import known
import stored
from group import LOOK_SECONDS, Group, adopt_orphans
from known import Tracer
from load import Busy, load

EXAMPLES = """examples:
  bench/tracers.py --agent target/release/gleaner-agent
  bench/tracers.py --agent target/release/gleaner-agent --output out/bench
  bench/tracers.py --agent target/release/gleaner-agent --only gleaner --samples 10
"""

#: Samples of the run that checks the load's files by their paths.
CHECKED_SAMPLES = 5


@dataclass(frozen=True)
class Run:
    """Cost of one run of a tracer, from start to end."""

    cpu_ms: float
    stored_bytes: int
    peak_rss_bytes: int


@dataclass(frozen=True)
class Cost:
    """Cost of a tracer. CPU and bytes are those of an additional sample: start and end are excluded."""

    tracer: str
    version: str
    configuration: str
    cpu_ms_per_sample: float
    bytes_per_sample: float
    peak_rss_bytes: int


def main() -> int:
    args = arguments()
    # If a signal ends this program, the load and the tracers are ended as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        adopt_orphans()
        return bench(args)
    except KeyboardInterrupt:
        print("interrupted: nothing was measured to its end", file=sys.stderr)
        return 130
    except (OSError, RuntimeError) as error:
        print(f"tracers.py: {error}", file=sys.stderr)
        return 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", type=Path, metavar="FILE", required=True, help="gleaner-agent, built in release")
    parser.add_argument("--samples", type=int, default=40, metavar="N", help="[default: 40]")
    parser.add_argument("--interval", type=int, default=1, metavar="S", help="seconds [default: 1]")
    parser.add_argument("--asleep", type=int, default=300, metavar="N", help="[default: 300]")
    parser.add_argument("--busy", type=int, default=5, metavar="N", help="[default: 5]")
    parser.add_argument("--only", metavar="WORD", help="tracers with this word in their name, beside sadc")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write tracers.md and tracers.json there")
    args = parser.parse_args()
    if args.samples < 1 or args.interval < 1:
        parser.error("at least one sample, at least one second apart")
    return args


def bench(args: argparse.Namespace) -> int:
    agent = known.agent(args.agent.resolve())
    tracers = [*known.peers(args.only), agent]
    if args.only:
        tracers = [t for t in tracers if t is tracers[0] or args.only in t.name]
    seconds = (len(tracers) * (args.samples + 5) + CHECKED_SAMPLES) * args.interval
    print(f"about {seconds:.0f} s", file=sys.stderr)
    known.PEERS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tracers-", dir=known.PEERS) as scratch, load(
        Path(scratch) / "load", args.asleep, args.busy, seconds
    ) as busy:
        processes = sum(entry.isdigit() for entry in os.listdir("/proc"))
        bench_of = Bench(Path(scratch), args.interval, busy)
        bench_of.check(agent.in_plain())
        costs = [bench_of.measure(tracer, args.samples) for tracer in tracers]
    conditions = {
        "processes": processes,
        "asleep": args.asleep,
        "busy": args.busy,
        "samples": args.samples,
        "interval_s": args.interval,
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    text = table(conditions, costs) + "\n" + bench_of.stored
    print(text)
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        (args.output / "tracers.md").write_text(text)
        result = {"conditions": conditions, "tracers": [asdict(cost) for cost in costs]}
        (args.output / "tracers.json").write_text(json.dumps(result, indent=2) + "\n")
    for fault in bench_of.faults[:20]:
        print(f"tracers.py: the agent's trace is not complete: {fault}", file=sys.stderr)
    return 1 if bench_of.faults else 0


class Bench:
    """Runs tracers one after the other."""

    def __init__(self, scratch: Path, interval: int, busy: list[Busy]):
        self.scratch, self.interval, self.busy = scratch, interval, busy
        self.stored = ""
        self.faults: list[str] = []

    def check(self, agent: Tracer) -> None:
        """Checks in a separate run that the agent sees the load's files: paths are not stored by default."""
        print("  what the agent sees …", file=sys.stderr)
        self.run(agent, CHECKED_SAMPLES)

    def measure(self, tracer: Tracer, samples: int) -> Cost:
        """Measures the additional samples only, by subtracting a run of one sample."""
        print(f"  {tracer.name} …", file=sys.stderr)
        first = self.run(tracer, 1)
        whole = self.run(tracer, 1 + samples)
        return Cost(
            tracer=tracer.name,
            version=tracer.version,
            configuration=tracer.configuration,
            cpu_ms_per_sample=(whole.cpu_ms - first.cpu_ms) / samples,
            bytes_per_sample=(whole.stored_bytes - first.stored_bytes) / samples,
            peak_rss_bytes=whole.peak_rss_bytes,
        )

    def run(self, tracer: Tracer, samples: int) -> Run:
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            return self.run_in(Path(folder), tracer, samples)

    def run_in(self, folder: Path, tracer: Tracer, samples: int) -> Run:
        (folder / "stored").mkdir()
        values = {"samples": samples, "interval": self.interval, "folder": folder, "port": free_port()}
        for name, text in tracer.files.items():
            (folder / name).write_text(text.format(**values))
        environment = os.environ | {"LC_ALL": "C.UTF-8"}
        environment |= {name: text.format(**values) for name, text in tracer.environment.items()}
        groups: list[Group] = []

        def start(command: list[str]) -> Group:
            command = [part.format(**values) for part in command]
            groups.append(Group(command, folder / f"said-{len(groups)}", environment, folder))
            return groups[-1]

        try:
            for command, ready in tracer.services:
                service = start(command)
                wait_for(service, lambda: not ready or Path(ready.format(**values)).exists())
            begun = time.monotonic()
            recorder = start(tracer.record)
            self.until_done(tracer, recorder, folder / "stored", samples)
            took = time.monotonic() - begun
            for group in groups:
                group.end()
        finally:
            for group in groups:
                group.end(signal.SIGKILL)
        if took < 0.9 * (samples - 1) * self.interval:
            raise RuntimeError(f"{tracer.name} ended before it had taken {samples} samples: {recorder.words()}")
        if tracer.is_gleaner:
            self.look_into(folder / "stored/trace.db", samples)
        counted = groups if tracer.counts_recorder else groups[:-1]
        return Run(
            cpu_ms=sum(group.cpu_ms for group in counted),
            stored_bytes=sum(p.stat().st_size for p in (folder / "stored").rglob("*") if p.is_file()),
            peak_rss_bytes=sum(group.peak_rss_bytes for group in counted),
        )

    def until_done(self, tracer: Tracer, recorder: Group, folder: Path, samples: int) -> None:
        """Waits until the recorder ends, or has stored the samples if it does not end by itself."""
        deadline = time.monotonic() + (samples + 5) * self.interval * 1.5 + 10
        while recorder.look():
            if tracer.taken and tracer.taken(folder) >= samples:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"{tracer.name} takes no samples: {recorder.words()}")
            time.sleep(LOOK_SECONDS / 8 if tracer.taken else LOOK_SECONDS)
        if recorder.status != 0 or tracer.taken:
            raise RuntimeError(f"{' '.join(recorder.command)} ended with {recorder.status}: {recorder.words()}")

    def look_into(self, database: Path, samples: int) -> None:
        self.faults += complete.faults(database, samples, self.busy)
        if samples > CHECKED_SAMPLES:
            self.stored = stored.markdown(database)


def wait_for(service: Group, is_ready) -> None:
    deadline = time.monotonic() + 10
    while not is_ready():
        if not service.look() or time.monotonic() > deadline:
            raise RuntimeError(f"{' '.join(service.command)} does not come up: {service.words()}")
        time.sleep(0.05)


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def table(conditions: dict, costs: list[Cost]) -> str:
    """Markdown, for docs/benchmarks.md to quote."""
    reference = costs[0]
    lines = [
        "{date}: {processes} processes ({asleep} asleep and {busy} busy of them the bench's), {samples} samples at "
        "{interval_s} s, {cpus} CPUs, kernel {kernel}.".format(**conditions),
        "",
        "| tracer | CPU ms a sample | × sadc | bytes a sample | × sadc | peak RSS MiB |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for cost in costs:
        cells = [
            f"{cost.tracer} {cost.version}",
            f"{cost.cpu_ms_per_sample:.2f}",
            ratio(cost.cpu_ms_per_sample, reference.cpu_ms_per_sample),
            f"{cost.bytes_per_sample:,.0f}",
            ratio(cost.bytes_per_sample, reference.bytes_per_sample),
            f"{cost.peak_rss_bytes / 2**20:.1f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| tracer | as it was run |", "| --- | --- |"]
    lines += [f"| {cost.tracer} | {cost.configuration} |" for cost in costs]
    return "\n".join(lines) + "\n"


def ratio(value: float, base: float) -> str:
    return f"{value / base:.1f}" if base > 0 else "-"


if __name__ == "__main__":
    sys.exit(main())
