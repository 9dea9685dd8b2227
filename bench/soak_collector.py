#!/usr/bin/env python3
"""An hour of a collector with 50 synthetic shippers, each with its own certificate and connection.

Every ten seconds the collector's memory, descriptors and dataset are written to soak-collector.csv. Fails
with the reason if memory or descriptors grow, or if a row is not in the dataset exactly once at the end.
"""

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from soak import SETTLING_SECONDS, halves, kib_per_hour

ROOT = Path(__file__).resolve().parent.parent

EXAMPLES = """examples:
  bench/soak_collector.py
  SOAK_SECONDS=1260 bench/soak_collector.py --hosts 10
"""

COLUMNS = ["second", "rss_kib", "rss_most_kib", "rss_anon_kib", "descriptors", "files", "dataset_rows"]
LOOK_SECONDS = 10
#: Maximum growth of RSS once it has settled, as a slope: only the manifest and the allocator's pools
#: may grow.
MOST_RSS_KIB_PER_HOUR = 4096.0
COLLECTOR = "127.0.0.1:17443"
LOCAL = "127.0.0.1:17480"
CONFIG = """data_folder = "{data}"
listen = "{listen}"
local_listen = "{local}"
local_access = "all"
pki = "{pki}"
seal_after = "1m"
disk_reserve = "64MiB"
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    built = ROOT / "target/release"
    parser.add_argument("--collector", type=Path, default=built / "gleaner-collector", metavar="FILE")
    parser.add_argument("--swarm", type=Path, default=built / "examples/swarm", metavar="FILE")
    parser.add_argument("--gleaner", type=Path, default=ROOT / "target/debug/gleaner", metavar="FILE", help="for certificates alone")
    parser.add_argument("--output", type=Path, default=ROOT / "out/soak-collector", metavar="DIR")
    parser.add_argument("--hosts", type=int, default=50, metavar="N")
    seconds = int(os.environ.get("SOAK_SECONDS", "3600"))
    parser.add_argument("--seconds", type=int, default=seconds, metavar="S", help="[default: $SOAK_SECONDS, or 3600]")
    args = parser.parse_args()
    if args.seconds < 2 * SETTLING_SECONDS:
        parser.error(f"at least {2 * SETTLING_SECONDS} seconds: the first {SETTLING_SECONDS} say nothing")
    try:
        faults = soak(args)
    except KeyboardInterrupt:
        print("\ninterrupted: nothing was shown", file=sys.stderr)
        return 130
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        print(f"soak: {error}", file=sys.stderr)
        return 1
    for fault in faults:
        print(f"soak: {fault}", file=sys.stderr)
    return 1 if faults else 0


def soak(args: argparse.Namespace) -> list[str]:
    shutil.rmtree(args.output, ignore_errors=True)
    args.output.mkdir(parents=True)
    output = args.output.resolve()
    pki = output / "pki"
    subprocess.run(
        [args.gleaner, "pki", "init", pki, "--name", "localhost"], check=True, stdout=subprocess.DEVNULL
    )
    config = output / "collector.toml"
    config.write_text(CONFIG.format(data=output / "data", listen=COLLECTOR, local=LOCAL, pki=pki))
    with (output / "said").open("wb") as said, (output / "sent.json").open("wb") as sent:
        collector = subprocess.Popen([args.collector, "run", "--config", config], stdin=subprocess.DEVNULL, stderr=said)
        swarm = None
        try:
            wait_for_status()
            command = [args.swarm, "--pki", pki, "--url", COLLECTOR, "--hosts", str(args.hosts), "--seconds", str(args.seconds)]
            swarm = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sent, stderr=said)
            looks = watch(collector.pid, swarm, output / "soak-collector.csv", args.seconds)
            request(f"http://{LOCAL}/v1/seal", b"")
            status = json.loads(request(f"http://{LOCAL}/v1/status"))
        finally:
            for process in filter(None, [swarm, collector]):
                process.kill()
                process.wait()
    if swarm.returncode != 0:
        return [f"the swarm ended with {swarm.returncode}: see {output}/said"]
    manifest = json.loads((output / "data/dataset/manifest.json").read_text())
    # Rows of the table clocks are the collector's own.
    arrived = sum(file["rows"] for file in manifest["files"] if file["table"] != "clocks")
    return judge(looks, json.loads((output / "sent.json").read_text()), arrived, status["dataset_files_count"])


def request(url: str, body: bytes | None = None) -> bytes:
    with urllib.request.urlopen(url, body, timeout=600) as answer:
        return answer.read()


def wait_for_status() -> None:
    end = time.monotonic() + 60
    while True:
        try:
            request(f"http://{LOCAL}/v1/status")
            return
        except OSError as error:
            if time.monotonic() > end:
                raise RuntimeError(f"the collector does not answer: {error}") from error
            time.sleep(0.1)


def watch(pid: int, swarm: subprocess.Popen, table: Path, seconds: int) -> list[dict]:
    """Observes the collector until the swarm ends."""
    begun = time.monotonic()
    looks: list[dict] = []
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        while time.monotonic() < begun + seconds + 600:
            try:
                swarm.wait(max(0.0, begun + (len(looks) + 1) * LOOK_SECONDS - time.monotonic()))
                break
            except subprocess.TimeoutExpired:
                looks.append(look(pid, round(time.monotonic() - begun)))
                writer.writerow(looks[-1])
                file.flush()
                if looks[-1]["second"] % 300 < LOOK_SECONDS:
                    print("soak: {second:5} s, RSS {rss_kib} KiB, {descriptors} descriptors, {files} files, {dataset_rows} rows".format(**looks[-1]), file=sys.stderr)
    return looks


def look(pid: int, second: int) -> dict:
    process = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    status = json.loads(request(f"http://{LOCAL}/v1/status"))
    return {
        "second": second,
        "rss_kib": int(process["VmRSS"].split()[0]),
        "rss_most_kib": int(process["VmHWM"].split()[0]),
        "rss_anon_kib": int(process["RssAnon"].split()[0]),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "files": status["dataset_files_count"],
        "dataset_rows": status["dataset_rows_count"],
    }


def judge(looks: list[dict], sent: dict, arrived: int, files: int) -> list[str]:
    """Descriptions of the collector's faults."""
    settled = [one for one in looks if one["second"] >= SETTLING_SECONDS]
    if len(settled) < 10:
        return [f"the swarm ended after {len(looks)} looks"]
    slope = kib_per_hour(settled)
    first, last = (statistics.median(o["descriptors"] for o in part) for part in halves(settled))
    print(
        f"soak: RSS {settled[0]['rss_kib']} to {settled[-1]['rss_kib']} KiB, at most {looks[-1]['rss_most_kib']}, slope "
        f"{slope:+.1f} KiB/h; descriptors {first:.0f} and {last:.0f}; {sent['rows']} rows in {sent['batches']} batches sent, "
        f"{arrived} in {files} files of the dataset"
    )
    faults = []
    if slope > MOST_RSS_KIB_PER_HOUR:
        faults.append(f"RSS grows by {slope:.0f} KiB an hour; {MOST_RSS_KIB_PER_HOUR:.0f} are allowed")
    if last > first + 5:
        faults.append(f"descriptors grow: {first} in the first half, {last} in the second")
    if arrived != sent["rows"] or sent["failures"]:
        faults.append(f"{sent['rows']} rows were sent, {arrived} arrived; {sent['failures']} failures ({sent['last_failure']})")
    return faults


if __name__ == "__main__":
    sys.exit(main())
