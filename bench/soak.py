#!/usr/bin/env python3
"""An hour of tracing under the bench's load: memory and descriptors must stay flat, and no sample may be missing.

Every ten seconds the agent's memory, descriptors, database and CPU time are written to soak.csv; plot.svg is
drawn from it. Fails with the reason if something grows or is missing.
"""

import argparse
import csv
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path

import complete
from load import Busy, load

ROOT = Path(__file__).resolve().parent.parent

EXAMPLES = """examples:
  bench/soak.py --agent target/release/gleaner-agent
  SOAK_SECONDS=1200 bench/soak.py
"""

COLUMNS = [
    "second",
    "rss_kib",
    "rss_most_kib",
    "rss_anon_kib",
    "descriptors",
    "database_bytes",
    "wal_bytes",
    "samples",
    "processes",
    "cpu_ms",
]
LOOK_SECONDS = 10
#: Initial time excluded from the check: buffers and SQLite's cache grow to their size then.
SETTLING_SECONDS = 600
#: Maximum growth of RSS afterwards, as a slope: one lost page every four minutes. At 90 s between samples
#: that would be less than 18 KiB a day, as a sample costs the same at any interval.
MOST_RSS_KIB_PER_HOUR = 64.0
INTERVAL_SECONDS = 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", type=Path, default=ROOT / "target/release/gleaner-agent", metavar="FILE")
    parser.add_argument("--output", type=Path, default=ROOT / "out/soak", metavar="DIR")
    seconds = int(os.environ.get("SOAK_SECONDS", "3600"))
    parser.add_argument("--seconds", type=int, default=seconds, metavar="S", help="[default: $SOAK_SECONDS, or 3600]")
    args = parser.parse_args()
    if args.seconds < 2 * SETTLING_SECONDS:
        parser.error(f"at least {2 * SETTLING_SECONDS} seconds: the first {SETTLING_SECONDS} say nothing")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        faults = soak(args.agent.resolve(), args.output, args.seconds)
    except KeyboardInterrupt:
        print("\ninterrupted: nothing was shown", file=sys.stderr)
        return 130
    except (OSError, RuntimeError, sqlite3.Error) as error:
        print(f"soak: {error}", file=sys.stderr)
        return 1
    for fault in faults:
        print(f"soak: {fault}", file=sys.stderr)
    return 1 if faults else 0


def soak(agent: Path, output: Path, seconds: int) -> list[str]:
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    database = output / "trace.db"
    command = [str(agent), "run", "--sample-interval", f"{INTERVAL_SECONDS}s", "--samples", str(seconds // INTERVAL_SECONDS)]
    command += ["--database", str(database)]
    with load(output, asleep=300, busy=5, seconds=seconds) as busy, (output / "said").open("wb") as said:
        tracer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            looks = watch(tracer, database, output / "soak.csv", seconds)
        finally:
            tracer.kill()
            tracer.wait()
        if tracer.returncode != 0:
            words = (output / "said").read_text(errors="replace").strip()
            return [f"the agent ended with {tracer.returncode}: {words}"]
        faults = judge(looks, database, seconds // INTERVAL_SECONDS, busy)
    (output / "plot.svg").write_text(plot(looks))
    print(f"soak: {output}/soak.csv, {output}/plot.svg")
    return faults


def watch(tracer: subprocess.Popen, database: Path, table: Path, seconds: int) -> list[dict]:
    """Observes the agent until it ends; a minute after its samples are due it is terminated."""
    begun = time.monotonic()
    looks: list[dict] = []
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        while True:
            try:
                tracer.wait(max(0.0, begun + (len(looks) + 1) * LOOK_SECONDS - time.monotonic()))
                break
            except subprocess.TimeoutExpired:
                pass
            passed = time.monotonic() - begun
            if passed > seconds + 60:
                tracer.terminate()  # it took too few samples: the trace will show which
                break
            if (one := look(tracer.pid, database, round(passed))) is None:
                break  # it has just ended
            looks.append(one)
            writer.writerow(one)
            file.flush()
            progress(one, seconds)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    tracer.wait(60)
    return looks


def look(pid: int, database: Path, second: int) -> dict | None:
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    if "VmRSS" not in status:
        return None
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as trace:
        (samples,) = trace.execute("SELECT count(*) FROM samples").fetchone()
        query = "SELECT processes_count, agent_cpu_us / 1000.0 FROM samples ORDER BY sequence DESC"
        processes, cpu_ms = trace.execute(query).fetchone() or (0, 0.0)
    wal = Path(f"{database}-wal")
    return {
        "second": second,
        "rss_kib": int(status["VmRSS"].split()[0]),
        "rss_most_kib": int(status["VmHWM"].split()[0]),
        "rss_anon_kib": int(status["RssAnon"].split()[0]),
        "descriptors": descriptors,
        "database_bytes": database.stat().st_size,
        "wal_bytes": wal.stat().st_size if wal.exists() else 0,
        "samples": samples,
        "processes": processes,
        "cpu_ms": cpu_ms,
    }


def progress(one: dict, seconds: int) -> None:
    text = "soak: {second:5} of {seconds} s, RSS {rss_kib} KiB, {descriptors} descriptors, {samples} samples, {cpu_ms:.1f} ms".format(
        seconds=seconds, **one
    )
    if sys.stderr.isatty():
        print(f"\r{text} ", end="", file=sys.stderr, flush=True)
    elif one["second"] % 300 < LOOK_SECONDS:
        print(text, file=sys.stderr)


def judge(looks: list[dict], database: Path, samples: int, busy: list[Busy]) -> list[str]:
    """Descriptions of the agent's faults."""
    settled = [one for one in looks if one["second"] >= SETTLING_SECONDS]
    if len(settled) < 10:
        return [f"the agent ended after {len(looks)} looks"]
    slope = kib_per_hour(settled)
    descriptors = {one["descriptors"] for one in settled}
    processes = [one["processes"] for one in settled]
    wal_bytes = max(one["wal_bytes"] for one in looks)
    print(
        f"soak: RSS {settled[0]['rss_kib']} to {settled[-1]['rss_kib']} KiB, slope {slope:+.1f} KiB/h, beside {min(processes)} "
        f"to {max(processes)} processes; descriptors {sorted(descriptors)}; WAL at most {wal_bytes:,} bytes"
    )
    faults = []
    if slope > MOST_RSS_KIB_PER_HOUR:
        faults.append(f"RSS grows by {slope:.0f} KiB an hour; {MOST_RSS_KIB_PER_HOUR:.0f} are allowed")
    first, last = (statistics.median(o["descriptors"] for o in part) for part in halves(settled))
    if last > first:
        faults.append(f"descriptors grow: {first} in the first half, {last} in the second")
    return faults + complete.faults(database, samples, busy)[:20]


def kib_per_hour(looks: list[dict]) -> float:
    """Theil–Sen slope of RSS: the median over all pairs of looks. A look during a sample, or one large process for a while, are outliers;
    up to 29 % of such looks do not move a median of pairs, while least squares would follow each."""
    slopes = [
        (late["rss_kib"] - early["rss_kib"]) / (late["second"] - early["second"]) * 3600
        for at, early in enumerate(looks)
        for late in looks[at + 1 :]
    ]
    return statistics.median(slopes)


def halves(looks: list[dict]) -> tuple[list[dict], list[dict]]:
    middle = len(looks) // 2
    return looks[:middle], looks[middle:]


def plot(looks: list[dict]) -> str:
    """Three panels, one below the other, each from 0 to its largest value."""
    width, height, panels = 800, 150, [("rss_kib", "RSS, KiB"), ("descriptors", "descriptors"), ("database_bytes", "database, bytes")]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 40}" height="{len(panels) * (height + 40)}" font-family="sans-serif" font-size="12">']
    for number, (column, title) in enumerate(panels):
        most = max(one[column] for one in looks) or 1
        top = number * (height + 40) + 25
        points = " ".join(
            f"{20 + one['second'] / looks[-1]['second'] * width:.1f},{top + height * (1 - one[column] / most):.1f}" for one in looks
        )
        parts.append(f'<text x="20" y="{top - 8}">{title}: at most {most:,}, over {looks[-1]["second"]} s</text>')
        parts.append(f'<rect x="20" y="{top}" width="{width}" height="{height}" fill="none" stroke="#bbb"/>')
        parts.append(f'<polyline points="{points}" fill="none" stroke="#06c" stroke-width="1.5"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
