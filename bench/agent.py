#!/usr/bin/env python3
"""The agent alone, for longer than beside its peers: how its CPU time is spread, what it stores and exports."""

import argparse
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import complete
import day
import hold
import stored
from load import load

try:
    import exported
except ModuleNotFoundError:  # pyarrow is installed by `make setup`
    exported = None

ROOT = Path(__file__).resolve().parent.parent

EXAMPLES = """examples:
  bench/agent.py --agent target/release/gleaner-agent
  bench/agent.py --agent target/release/gleaner-agent --interval 90 --samples 41 --asleep 0 --busy 0
"""

#: Samples of the shorter trace: the difference of the two exports is due to the additional samples
#: only.
SHORT_SAMPLES = 41
#: Samples per day at the agent's default interval, 90 s.
SAMPLES_A_DAY = 960
#: CPU time that no sample may exceed.
MOST_CPU_MS = 50


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", type=Path, metavar="FILE", required=True, help="gleaner-agent, built in release")
    parser.add_argument("--samples", type=int, default=600, metavar="N", help="[default: 600]")
    parser.add_argument("--interval", type=int, default=1, metavar="S", help="seconds [default: 1]")
    parser.add_argument("--asleep", type=int, default=300, metavar="N", help="[default: 300]")
    parser.add_argument("--busy", type=int, default=5, metavar="N", help="[default: 5]")
    parser.add_argument("--output", type=Path, default=ROOT / "out/bench", metavar="DIR", help="[default: out/bench]")
    args = parser.parse_args()
    if args.samples < 2:
        parser.error("at least two samples")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return bench(args)
    except KeyboardInterrupt:
        print("interrupted: nothing was measured to its end", file=sys.stderr)
        return 130
    except (OSError, RuntimeError, sqlite3.Error) as error:
        print(f"agent.py: {error}", file=sys.stderr)
        return 1


def bench(args: argparse.Namespace) -> int:
    seconds = args.samples * args.interval
    print(f"about {seconds + 30} s", file=sys.stderr)
    folder = args.output / f"agent-{args.interval}s"
    for old in sorted(folder.rglob("*"), reverse=True):
        old.rmdir() if old.is_dir() else old.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / "trace.db"
    with load(folder, args.asleep, args.busy, seconds + 60) as busy:
        processes = sum(entry.isdigit() for entry in os.listdir("/proc"))
        run(args.agent, database, args.samples, args.interval)
        held = hold.measure(hold.largest_bytes(ROOT))
    faults = complete.faults(database, args.samples, busy)
    parts = [
        f"{time.strftime('%Y-%m-%d', time.gmtime())}: {processes} processes ({args.asleep} asleep and {args.busy} busy of them "
        f"the bench's), {args.samples} samples at {args.interval} s, {os.cpu_count()} CPUs, kernel {platform.release()}.\n",
        cpu(database),
        held.markdown(),
        stored.markdown(database),
        "{1:,.0f} bytes a sample on disk over a day of {0:,} samples like these (`bench/day.py`).\n".format(
            *day.bytes_per_sample(database)
        ),
        exports(args.agent, database, folder),
    ]
    text = "\n".join(parts)
    print(text)
    (args.output / f"agent-{args.interval}s.md").write_text(text)
    for fault in faults[:20]:
        print(f"agent.py: the trace is not complete: {fault}", file=sys.stderr)
    return 1 if faults else 0


def run(agent: Path, database: Path, samples: int, interval: int) -> None:
    command = [str(agent), "run", "--sample-interval", f"{interval}s", "--samples", str(samples), "--database", str(database)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as tracer:
        try:
            _, said = tracer.communicate(timeout=samples * interval * 1.2 + 60)
        finally:
            tracer.kill()
    if tracer.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {tracer.returncode}: {said.strip()}")


def cpu(database: Path) -> str:
    """Distribution of the CPU time of the samples after the first."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as trace:
        query = "SELECT agent_cpu_us, agent_rss_bytes FROM samples ORDER BY sequence"
        rows = trace.execute(query).fetchall()[1:]
    taken_ms = sorted(cpu_us / 1000 for cpu_us, _ in rows)
    at = lambda share: taken_ms[min(len(taken_ms) - 1, int(share * len(taken_ms)))]  # noqa: E731
    over = sum(ms > MOST_CPU_MS for ms in taken_ms)
    return (
        f"CPU ms a sample: mean {sum(taken_ms) / len(taken_ms):.2f}, median {at(0.5):.2f}, p99 {at(0.99):.2f}, "
        f"most {taken_ms[-1]:.2f}; {over} of {len(taken_ms)} over {MOST_CPU_MS} ms. "
        f"RSS at most {max(rss for _, rss in rows) / 2**20:.1f} MiB.\n"
    )


@dataclass(frozen=True)
class Export:
    samples: int
    bytes: int


def exports(agent: Path, database: Path, folder: Path) -> str:
    """Size of the trace as a dataset: the whole, and per additional sample."""
    whole = export(agent, database, folder / "dataset")
    text = f"Exported: {whole.bytes / whole.samples:,.0f} bytes a sample ({whole.samples} samples, {whole.bytes:,} bytes)"
    if whole.samples > SHORT_SAMPLES:
        cut = folder / "short.db"
        shorten(database, cut, SHORT_SAMPLES)
        short = export(agent, cut, folder / "dataset-short")
        marginal = (whole.bytes - short.bytes) / (whole.samples - short.samples)
        fixed = short.bytes - marginal * short.samples
        text += (
            f"; {short.bytes / short.samples:,.0f} of the first {short.samples}; {marginal:,.0f} for each further one, "
            f"which makes {marginal + fixed / SAMPLES_A_DAY:,.0f} a sample where a day's {SAMPLES_A_DAY} lie in one file a table"
        )
    text += ".\n"
    if exported:
        text += "\n" + exported.markdown(folder / "dataset", 25)
    else:
        text += "\nBy column: not measured, pyarrow is missing (`make setup`, then .venv/bin/python bench/agent.py).\n"
    return text


def export(agent: Path, database: Path, dataset: Path) -> Export:
    command = [str(agent), "export", "--database", str(database), str(dataset)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as trace:
        (samples,) = trace.execute("SELECT count(*) FROM samples").fetchone()
    return Export(samples, sum(path.stat().st_size for path in dataset.glob("*/date=*/*.arrow")))


def shorten(database: Path, cut: Path, samples: int) -> None:
    """Copies the trace's first samples."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as trace, sqlite3.connect(cut) as copy:
        trace.backup(copy)
        query = "SELECT sequence FROM samples ORDER BY 1 LIMIT 1 OFFSET ?"
        (last,) = copy.execute(query, (samples - 1,)).fetchone()
        for (name,) in copy.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            if "sequence" in day.columns(copy, name):
                copy.execute(f'DELETE FROM "{name}" WHERE sequence > ?', (last,))


if __name__ == "__main__":
    sys.exit(main())
