#!/usr/bin/env python3
"""Predictions of `gleaner curve` beside measured runs: ten programs with five sizes of local memory each.

validate.py [--programs target/release] [--by zram] [--runs 3] [--only sort,xz] [--json FILE]

For each program `gleaner curve record` makes its curve, `gleaner curve calibrate` measures the cost of its faults with 50 % of its footprint, and `gleaner curve measure`
runs it with 30 to 90 %. The cost is measured with each program, since it differs between programs by more than a factor of 2. *zram*: swap on a zram device of this
script's own; no other swap may be on. *clerk*: swap on a clerk with two memory servers (programs.py). The kernel's read-ahead is off (vm.page-cluster), since curves know
none.

A point is *inside* if the median of its major faults lies in the predicted band, widened by a quarter at both ends; *within a factor of 2* likewise. A hundred faults
more than predicted are never outside: programs read their own files. *Knees* are points whose band is wider than a factor of 3; they are counted apart. The error of a
slowdown is that of the prediction's middle. Programs that are not installed, that fail, or that have fewer than 1,000 faults with 50 %, are named and left out. In the
JSON document, `technology` has the measured costs of each program. Root only.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from models import SQL
from programs import AREA_MIB, HOUR, PYTHON, SIMULATED_S, SOURCES, SPHERES, VECTORS, borrowed, write_lines
from swap import ROOT, single_pages

SHARES = (30, 45, 60, 75, 90)
CALIBRATED_SHARE = 50
"""Share at which the cost of a fault is measured: none of SHARES, so that no point is predicted from itself."""
WIDER = 1.25
FACTOR = 2.0
FEW_FAULTS = 100
KNEE = 3.0
ERROR_SHARE = 0.35
CALLS = HOUR.calls_mib[0]
ZRAM = Path("/sys/class/zram-control")
OBJECTS = "import random; random.seed(1); found = {i * 7919 % 1000003: str(i) * 3 for i in range(300_000)}; print(sum(len(found[key]) for key in sorted(found, key=hash)))"
HASH = "srand(1); my %found; $found{int(rand(1e9))} = $_ for 1 .. 300_000; my $sum = 0; $sum += $found{$_} for sort keys %found; print $sum;"


def source(path: Path) -> None:
    """C functions for the compiler."""
    dice = random.Random(1)
    with path.open("w") as out:
        for number in range(150):
            steps = "".join(f"  a[{dice.randrange(64)}] += a[{dice.randrange(64)}] * {dice.randrange(1, 99)} ^ n >> {dice.randrange(1, 9)};\n" for _ in range(20))
            out.write(f"int f{number}(int *a, int n) {{\n  for (int i = 0; i < n; i++) {{\n{steps}  }}\n  return a[n & 63];\n}}\n")


def commands(folder: Path) -> dict[str, list]:
    """Command of each program. The recorder does not follow execve, so none is a script of another one.

    Programs write to /dev/null if they can. At the limit of a control group of version 1, a program that writes files waits for the disk (the kernel's reclaim_throttle:
    sort took 94 us a fault with its output on a disk), and curves know no files. xz can only write beside its input, which is small; POV-Ray's picture has 9 KiB.
    """
    write_lines(folder / "lines")
    (folder / "queries.sql").write_text(SQL)
    (folder / "part").write_bytes((folder / "lines").read_bytes()[: 4 << 20])
    source(folder / "functions.i")
    subprocess.run(["cc", "-O2", "-o", folder / "quicksort", ROOT / "bench/quicksort.c"], check=True)
    compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
    picture = ["povray", f"+I{SOURCES / 'spheres.pov'}", f"+O{folder / 'spheres.bmp'}", "+FB", "+W64", "+H48", "+WT1", "-D", f"Declare=Count={SPHERES}"]
    python = PYTHON if PYTHON.exists() else Path(sys.executable)
    return {
        "sort": ["sort", "--parallel=1", "-S", "512M", "-o", "/dev/null", folder / "lines"],
        "sqlite3": ["sqlite3", ":memory:", f".read {folder / 'queries.sql'}"],
        "quicksort": [folder / "quicksort", "64"],
        "nearest neighbours": [python, SOURCES / "nearest.py", VECTORS, "/dev/null"],
        "POV-Ray": picture,
        "gcc": [compiler, "-O2", "-quiet", folder / "functions.i", "-o", "/dev/null"],
        "python3": [python, "-c", OBJECTS],
        "perl": ["perl", "-e", HASH],
        "xz": ["xz", "-3", "-T1", "-k", "-f", folder / "part"],
        "ns-2": ["ns", ROOT / "bench/voice.tcl", CALLS, SIMULATED_S, "/dev/null"],
    }


@contextlib.contextmanager
def zram(size_mib: int):
    """Swap on a new zram device."""
    number = (ZRAM / "hot_add").read_text().strip()
    device, settings = Path(f"/dev/zram{number}"), Path(f"/sys/block/zram{number}")
    try:
        (settings / "disksize").write_text(f"{size_mib}M")
        subprocess.run(["mkswap", "-q", device], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["swapon", "-p", "100", device], check=True)
        try:
            yield
        finally:
            subprocess.run(["swapoff", device], check=True)
    finally:
        (settings / "reset").write_text("1")
        (ZRAM / "hot_remove").write_text(number)


def gleaner(args: argparse.Namespace, *words) -> str:
    environment = os.environ | {"LC_ALL": "C"}
    done = subprocess.run([args.programs / "gleaner", "curve", *map(str, words)], stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return done.stdout


def judged(found: dict) -> dict:
    """A point: what was predicted, what was measured, and how far apart they are."""
    low, high = found["predicted_faults"]["low_count"], found["predicted_faults"]["high_count"]
    faults, by = found["major_faults_count"], found["prediction"]
    within = lambda factor: low / factor - FEW_FAULTS <= faults <= high * factor + FEW_FAULTS
    return {
        "local_bytes": found["local_bytes"],
        "predicted_faults": [low, high],
        "faults": faults,
        "is_knee": high > KNEE * max(low, FEW_FAULTS),
        "is_inside": within(WIDER),
        "is_within_factor": within(FACTOR),
        "predicted_slowdown": [by["slowdown"], by["low"], by["high"]],
        "slowdown": found["slowdown"],
        "slowdown_error": by["slowdown"] / found["slowdown"] - 1,
        "killed_runs": found["killed_runs_count"],
    }


def validated(args: argparse.Namespace, name: str, command: list, folder: Path) -> tuple[str, list[dict]]:
    """Technology with the costs of the program's faults, and its points."""
    curve, mine = folder / "curve", folder / "mine.toml"
    gleaner(args, "record", "-o", curve, "--", *command)
    footprint = json.loads(gleaner(args, "show", curve, "--json"))
    by = "zram" if args.by == "zram" else "swap"
    gleaner(args, "calibrate", "--by", by, "--curve", curve, "--local", f"{CALIBRATED_SHARE}%", "--runs", args.runs, "-o", mine, "--", *command)
    shares = ",".join(f"{share}%" for share in SHARES)
    options = ["--by", by, "--curve", curve, "--technology", mine, "--local", shares, "--runs", args.runs, "--json"]
    document = json.loads(gleaner(args, "measure", *options, "--", *command))
    bytes_all = footprint["footprint_pages"] * footprint["page_bytes"]
    return mine.read_text(), [{"program": name, "footprint_bytes": bytes_all, **judged(found)} for found in document["measurements"]]


def summary(points: list[dict]) -> dict:
    """Shares of the points, without knees, and errors of all slowdowns."""
    plain = [point for point in points if not point["is_knee"]]
    share = lambda rows, key: statistics.mean(row[key] for row in rows) if rows else None
    errors = [abs(point["slowdown_error"]) for point in points]
    return {
        "points": len(points),
        "knees": len(points) - len(plain),
        "inside_share": share(plain, "is_inside"),
        "factor_2_share": share(plain, "is_within_factor"),
        "slowdown_median_error": statistics.median(errors) if errors else None,
        "slowdown_within_35_percent_share": statistics.mean(error <= ERROR_SHARE for error in errors) if errors else None,
        "killed_runs": sum(point["killed_runs"] for point in points),
    }


def table(points: list[dict]) -> str:
    lines = ["| program, footprint | local MiB | predicted faults | measured | predicted slowdown | measured |", "| --- | --- | --- | --- | --- | --- |"]
    for point in points:
        low, high = point["predicted_faults"]
        mark = "knee" if point["is_knee"] else "" if point["is_inside"] else "outside"
        middle, least, most = point["predicted_slowdown"]
        name = f"{point['program']}, {point['footprint_bytes'] / 2**20:.0f} MiB"
        measured = f"{point['faults']:,} {mark}".strip()
        lines.append(f"| {name} | {point['local_bytes'] / 2**20:.0f} | {low:,} to {high:,} | {measured} | {middle:.2f} ({least:.2f} to {most:.2f}) | {point['slowdown']:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", metavar="DIR", help="where gleaner, gleaner-clerk and gleaner-memoryd are")
    parser.add_argument("--by", choices=["zram", "clerk"], default="zram", help="memory of the pages that are not local")
    parser.add_argument("--runs", type=int, default=3, help="of each point")
    parser.add_argument("--only", help="programs, comma-separated")
    parser.add_argument("--json", type=Path, help="write the figures there, after each program")
    args = parser.parse_args()
    subprocess.run([ROOT / "tests/need", f"qemu-{os.uname().machine}", "qemu-user"], check=True)
    subprocess.run([ROOT / "simulator/recorder/build", args.programs], check=True)
    points, missing, technologies = [], [], {}
    with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        wanted = args.only.split(",") if args.only else None
        jobs = {job: command for job, command in commands(folder).items() if not wanted or job in wanted}
        stack.enter_context(zram(AREA_MIB) if args.by == "zram" else borrowed(args.programs, folder))
        stack.enter_context(single_pages())
        for job, command in jobs.items():
            if not shutil.which(str(command[0])):
                missing.append(job)
                continue
            begin = time.monotonic()
            try:
                technologies[job], found = validated(args, job, command, folder)
                points += found
                print(f"{job}:\n{technologies[job]}")
            except subprocess.CalledProcessError as error:
                missing.append(job)
                print(f"{job}: {error}", file=sys.stderr)
            print(f"{job}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
            if args.json:
                args.json.parent.mkdir(parents=True, exist_ok=True)
                figures = {"by": args.by, "technology": technologies, "left_out": missing, **summary(points), "all_points": points}
                args.json.write_text(json.dumps(figures, indent=2) + "\n")
    print(table(points))
    print(f"\n{json.dumps(summary(points), indent=2)}")
    if missing:
        print(f"left out: {', '.join(missing)}")


if __name__ == "__main__":
    main()
