#!/usr/bin/env python3
"""The analysis of a synthetic fleet: every measure, how time and memory grow, and Tables 3 and 4 beside DuckDB and pandas.

analysis.py [--hosts 1000] [--days 14] [--folder DIR] [--growth 10,30,100,300]

Each dataset is made by `gleaner synth` (invented hosts; the same seed gives the same bytes) and kept in the folder, where
a later run finds it. The files are read once before anything is timed, so that every program reads from memory. Peak
memory is what wait4(2) says (files mapped into the process included).

Tables 3 and 4 are worked out three times from the same samples: by `gleaner analyze --measure dips,availability_periods`
from the dataset, by DuckDB's SQL and by pandas from Parquet that `gleaner export` wrote of it. The bench fails where
the results differ.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GLEANER = pathlib.Path(os.environ.get("GLEANER", ROOT / "target/release/gleaner"))
PEERS = pathlib.Path(__file__).resolve().parent / "tables.py"
REGIONS = [64 << 20, 256 << 20, 1 << 30, 4 << 30, 16 << 30, 64 << 30]
DIPS = [8 << 30, 16 << 30, 32 << 30]
COLUMNS = "host_id,database_id,sequence,time,interval_ms,physical_bytes,available_bytes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "out/bench/analysis")
    parser.add_argument("--growth", default="10,30,100,300", help="smaller fleets, to show how cost grows")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    fleets = sorted({*(int(n) for n in args.growth.split(",") if n), args.hosts})
    found = {"days": args.days, "fleets": [whole(args, hosts) for hosts in fleets]}
    found["tables"] = tables(args)
    text = json.dumps(found, indent=2)
    (args.folder / "analysis.json").write_text(text + "\n")
    print(text)


def whole(args: argparse.Namespace, hosts: int) -> dict:
    """Every measure of a fleet."""
    dataset = fleet(args, hosts)
    rows = rows_by_table(dataset)
    cost = run([GLEANER, "analyze", dataset, "--json"], args.folder / "findings.json")
    samples = rows["samples"]
    return {
        "hosts": hosts,
        "samples": samples,
        "process_rows_a_sample": round(rows["processes"] / samples, 2),
        "file_rows_a_sample": round(rows["files"] / samples, 2),
        "dataset_bytes": sum(file["bytes"] for file in manifest(dataset)["files"]),
        "findings_bytes": (args.folder / "findings.json").stat().st_size,
        **cost,
        "samples_per_second": round(samples / cost["wall_s"]),
    }


def tables(args: argparse.Namespace) -> dict:
    """Tables 3 and 4 by three programs, and whether they agree."""
    dataset = fleet(args, args.hosts)
    parquet = args.folder / f"parquet-{args.hosts}-{args.days}"
    if not parquet.exists():
        export = [GLEANER, "export", dataset, "--to", "parquet", "-o", parquet]
        export = [str(part) for part in [*export, "--table", "samples", "--columns", COLUMNS]]
        subprocess.run(export, check=True, stdout=sys.stderr)
    sizes = [f"--region={size}" for size in REGIONS] + [f"--dip={size}" for size in DIPS]
    asked = ["--measure", "dips,availability_periods", "--bootstrap", "0", *sizes]
    costs, results = {}, {}
    for name, command in {
        "gleaner": [GLEANER, "analyze", dataset, "--json", *asked],
        "duckdb": [sys.executable, PEERS, "duckdb", parquet, *sizes],
        "pandas": [sys.executable, PEERS, "pandas", parquet, *sizes],
    }.items():
        output = args.folder / f"tables-{name}.json"
        costs[name] = run(command, output)
        results[name] = comparable(json.loads(output.read_text()))
    for peer in ("duckdb", "pandas"):
        differ = [key for key in results["gleaner"] if results["gleaner"][key] != results[peer].get(key)]
        if differ or len(results[peer]) != len(results["gleaner"]):
            examples = [(key, results["gleaner"][key], results[peer].get(key)) for key in differ[:5]]
            raise SystemExit(f"{peer} differs from gleaner in {len(differ)} figures, such as {examples}")
        costs[peer]["times_gleaner"] = round(costs[peer]["wall_s"] / costs["gleaner"]["wall_s"], 2)
    return {"hosts": args.hosts, "figures_compared": len(results["gleaner"]), **costs}


def comparable(found: dict) -> dict:
    """The figures that all three have, by what they are of."""
    figures = {}
    for dip in found["dips"]:
        if dip.get("threshold_share") is None:
            figures["dip", dip["host"], dip["threshold_bytes"]] = dip["intervals"]
    for periods in found["availability_periods"]:
        if periods["scope"] == "all":
            key = ("periods", periods["size_class"], periods["region_bytes"])
            mean_s = periods["mean_s"]
            figures[key] = (periods["periods"], periods["censored"], mean_s and round(mean_s, 6))
    return figures


def fleet(args: argparse.Namespace, hosts: int) -> pathlib.Path:
    """The dataset of so many hosts, made unless an earlier run did."""
    folder = args.folder / f"fleet-{hosts}-{args.days}"
    if not (folder / "whole").exists():
        subprocess.run(["rm", "-rf", str(folder)], check=True)
        synth = [GLEANER, "synth", "-o", folder / "dataset", "--always-on", "--hosts", str(hosts), "--days", str(args.days)]
        subprocess.run([str(part) for part in synth], check=True, stdout=sys.stderr)
        (folder / "whole").touch()
    subprocess.run(f"cat '{folder}'/dataset/*/*/*.arrow > /dev/null", shell=True, check=True)
    return folder / "dataset"


def manifest(dataset: pathlib.Path) -> dict:
    return json.loads((dataset / "manifest.json").read_text())


def rows_by_table(dataset: pathlib.Path) -> dict:
    rows = {}
    for file in manifest(dataset)["files"]:
        rows[file["table"]] = rows.get(file["table"], 0) + file["rows"]
    return rows


def run(command: list, output: pathlib.Path) -> dict:
    """Runs it into a file; what it cost."""
    begun = time.monotonic()
    with output.open("wb") as file:
        process = subprocess.Popen([str(part) for part in command], stdout=file)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.monotonic() - begun
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return {
        "wall_s": round(wall_s, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_rss_bytes": usage.ru_maxrss * 1024,
    }


if __name__ == "__main__":
    main()
