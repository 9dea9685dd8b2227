#!/usr/bin/env python3
"""The weekly report of a synthetic fleet: the cost of making it, its size, and how soon a browser shows it.

report.py [--hosts 10,100,1000] [--folder DIR]

Each dataset is two weeks of `gleaner synth` (invented hosts; the same seed gives the same bytes) and kept in the folder
for later runs; the report is of the second week, compared with the first. The files are read once before anything is
timed. Peak memory is that of wait4(2) (files mapped into the process included).

A page counts as shown once every figure of the questions is drawn, and a host's page once its figures are, in the
headless Chromium of the tests (tests/browser): on this machine, without a graphics card.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from analysis import run

ROOT = pathlib.Path(__file__).resolve().parent.parent
GLEANER = pathlib.Path(os.environ.get("GLEANER", ROOT / "target/release/gleaner"))
WEEK = ["--week", "2026-W47", "--time-zone", "Europe/Berlin"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="10,100,1000")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "out/bench/report")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    found = [report(args.folder, int(hosts)) for hosts in args.hosts.split(",")]
    text = json.dumps(found, indent=2)
    (args.folder / "report.json").write_text(text + "\n")
    print(text)


def report(folder: pathlib.Path, hosts: int) -> dict:
    """Makes a report, and opens it in the browser."""
    dataset = fleet(folder, hosts)
    page = folder / f"report-{hosts}.html"
    cost = run([GLEANER, "report", dataset, *WEEK, "-o", page], folder / "said")
    opened = subprocess.run(
        ["node", ROOT / "bench/open_report.mjs", page], check=True, capture_output=True, text=True
    )
    return {"hosts": hosts, "page_bytes": page.stat().st_size, **cost, **json.loads(opened.stdout)}


def fleet(folder: pathlib.Path, hosts: int) -> pathlib.Path:
    """The dataset of this number of hosts, generated unless an earlier run left it."""
    dataset = folder / f"fleet-{hosts}"
    if not (dataset / "manifest.json").exists():
        subprocess.run(["rm", "-rf", str(dataset)], check=True)
        synth = [GLEANER, "synth", "-o", dataset, "--hosts", str(hosts), "--days", "14", "--start", "2026-11-09"]
        subprocess.run([str(part) for part in synth], check=True, stdout=sys.stderr)
    subprocess.run(f"cat '{dataset}'/*/*/*.arrow > /dev/null", shell=True, check=True)
    return dataset


if __name__ == "__main__":
    main()
