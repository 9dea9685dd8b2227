#!/usr/bin/env python3
"""The weekly report of a synthetic fleet: the cost of making it, its size, and how soon a browser shows it.

report.py [--hosts 10,100,1000] [--sites N] [--folder DIR]

Each dataset is two weeks of `gleaner synth` (invented hosts; the same seed gives the same bytes) and kept in the folder
for later runs; the report is of the second week, compared with the first. The files are read once before anything is
timed. Peak memory is that of wait4(2) (files mapped into the process included).

With --sites, the hosts are divided into N sites of nearly equal size, whose hosts alternate in the order of ids, and
`gleaner report --sites` is measured: all pages by one command, then each site by a command of its own and the page of all
hosts from their parts. Sizes are those of the page of all hosts and of the largest page of a site.

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
    parser.add_argument("--sites", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "out/bench/report")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    measure = report if args.sites == 0 else lambda folder, hosts: by_sites(folder, hosts, args.sites)
    found = [measure(args.folder, int(hosts)) for hosts in args.hosts.split(",")]
    text = json.dumps(found, indent=2)
    name = "report.json" if args.sites == 0 else "report-by-sites.json"
    (args.folder / name).write_text(text + "\n")
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


def by_sites(folder: pathlib.Path, hosts: int, count: int) -> dict:
    """Makes a report by sites: by one command, and by a command for each site and one for the page of all hosts."""
    dataset = fleet(folder, hosts)
    listed = subprocess.run([GLEANER, "analyze", dataset, "--json", "--measure", "hosts"], check=True, capture_output=True)
    names = [host["host_name"] for host in json.loads(listed.stdout)["hosts"]]
    sites = folder / f"sites-{hosts}-{count}.toml"
    sites.write_text("".join(f"site-{at + 1} = {json.dumps(names[at::count])}\n" for at in range(count)))
    page = folder / f"fleet-{hosts}-{count}.html"
    command = [GLEANER, "report", dataset, *WEEK, "--sites", sites, "-o", page]
    at_once = run(command, folder / "said")
    pages = list((folder / f"{page.stem}-sites").glob("*.html"))
    alone = [run([*command, "--site", f"site-{at + 1}"], folder / "said") for at in range(count)]
    of_all = run([*command, "--fleet"], folder / "said")
    opened = subprocess.run(
        ["node", ROOT / "bench/open_report.mjs", page], check=True, capture_output=True, text=True
    )
    return {
        "hosts": hosts,
        "sites": count,
        "page_bytes": page.stat().st_size,
        "largest_site_page_bytes": max(site.stat().st_size for site in pages),
        "all_pages_bytes": page.stat().st_size + sum(site.stat().st_size for site in pages),
        "at_once": at_once,
        "largest_site": {key: max(site[key] for site in alone) for key in alone[0]},
        "page_of_all_hosts": of_all,
        **json.loads(opened.stdout),
    }


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
