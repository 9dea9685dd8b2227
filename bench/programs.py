#!/usr/bin/env python3
"""Programs that need more memory than they have: their time on borrowed memory, beside plain memory and swap on a modelled disk.

programs.py [--programs target/release] [--sets half single concurrent] [--ways memory borrowed fast disk] [--runs 3] [--quick] [--resume] [--json FILE]
programs.py --hour [--resume] [--json FILE]     the table of docs/evaluation.md, "Programs", in at most about 55 minutes

*half*: Debian's sort, a search for nearest neighbours (numpy) and POV-Ray, those of tests/end_to_end/lending/programs, with half to two thirds of the memory that they
need, and four sorts at once, each with its own limit. *single*: Anemone's programs (docs/evaluation.md) at a sixteenth of their sizes with 16 MiB: POV-Ray in three sizes, std::sort
(std_sort.cpp), Debian's ns-2 with voice.tcl, and nearest neighbours. *concurrent*: 1 to 18 processes of POV-Ray or std::sort of 100 MiB in one group of 256 MiB. `gleaner-clerk run`
limits the memory. Outputs are compared with those of the first way. A program may end itself: POV-Ray does if one half of it waits ten seconds for the other. That
is a result, as is a time above --most-s.

*Borrowed*: swap on a clerk, whose pages are at two standalone memoryds over TCP on loopback, encrypted, with its copy on this machine's disk. *Disk*: swap on the modelled disk (disk.c),
run once. In *single* its swap area is a sixteenth of 10 GB and has the seeks of the whole. *Fast*: nbdkit's memory, which shows the cost of the path itself. All three swap by
`gleaner-clerk attach`. Nothing is pinned. --resume skips what the file of --json has. Root only.

With --hour, the patent's programs, local memory and swap partition are divided by 32 instead of 16 in *single*, and by 4 instead of 1 in *concurrent*, whose
processes are 1, 12 and 18. Each way but *fast* is run once. A job is ended after six minutes; if it ran on the disk, the last column is a lower bound.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import json
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import disk
from swap import ROOT, limited, swap

SOURCES = ROOT / "tests/end_to_end/lending/programs"
PYTHON = ROOT / ".venv/bin/python"
LIMIT_MIB = 48
LINES_MIB = 40
VECTORS = 16_000
SPHERES = 80_000
AREA_MIB = 1024
PAGE_BYTES = 4096
WAYS = ("memory", "borrowed", "fast", "disk")
LOCAL_MIB = 256
"""Local memory of the patent's client."""
SIMULATED_S = 3


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of the sets *single* and *concurrent*, and the divisors of the patent's local memory and swap partition."""

    scales: dict[str, int]
    spheres_by_mib: dict[int, int]
    """Sizes of POV-Ray in *single*: spheres for which it needs so many MiB."""
    sort_mib: int
    calls_mib: tuple[int, int]
    """Calls that ns-2 simulates, and the MiB that it needs for them."""
    vectors_mib: tuple[int, int]
    """Vectors that are searched for neighbours, and the MiB that they need."""
    each_mib: int
    """Size of each process in *concurrent*."""
    each_spheres: int
    at_once: tuple[int, ...]

    def local_mib(self, of_set: str) -> int:
        return LOCAL_MIB // self.scales[of_set]


FULL = Sizes(
    {"single": 16, "concurrent": 1}, {54: 40_000, 109: 95_000, 218: 206_000}, 320, (3_500, 64), (14_000, 96), 100, 86_000, (1, 2, 4, 8, 12, 16, 18)
)
# Six minutes are 43,000 random pages of the modelled disk; eight jobs swap on it, so that they take 48 minutes at most. Smaller programs would hardly be more
# than what Python (28 MiB) and POV-Ray (14 MiB) need by themselves. Calls, vectors and the spheres of 25 MiB are interpolated from FULL.
HOUR = Sizes({"single": 32, "concurrent": 4}, {109: 95_000}, 160, (1_400, 32), (4_200, 48), 25, 11_000, (1, 12, 18))
HOUR_OPTIONS = {"sets": ["single", "concurrent"], "ways": ["memory", "borrowed", "disk"], "runs": 1, "most_s": 360}


@dataclasses.dataclass(frozen=True)
class Job:
    """Processes that start together, and the limit of their local memory."""

    set: str
    name: str
    processes: int
    local_mib: int
    called: tuple
    """Command and output file of each process."""
    is_one_group: bool = False


def commands(folder: Path) -> dict[str, tuple[list, Path]]:
    """Command of each program, and its output file."""
    nearest = [PYTHON, SOURCES / "nearest.py", VECTORS, folder / "nearest"]
    picture = folder / "spheres.bmp"
    draw = ["povray", f"+I{SOURCES / 'spheres.pov'}", f"+O{picture}", "+FB", "+W64", "+H48", "+WT1", "-D", f"Declare=Count={SPHERES}"]
    return {
        "sort": sort(folder, 0),
        "nearest neighbours": (nearest, folder / "nearest"),
        "POV-Ray": (draw, picture),
    }


def sort(folder: Path, number: int) -> tuple[list, Path]:
    made = folder / f"sorted-{number}"
    return ["env", "LC_ALL=C", "sort", "--parallel=1", "-S", "512M", "-o", made, folder / "lines"], made


def drawing(folder: Path, spheres: int, number: int) -> tuple[list, Path]:
    picture = folder / f"spheres-{number}.bmp"
    return ["povray", f"+I{SOURCES / 'spheres.pov'}", f"+O{picture}", "+FB", "+W64", "+H48", "+WT1", "-D", f"Declare=Count={spheres}"], picture


def sorting(folder: Path, mib: int, number: int) -> tuple[list, Path]:
    made = folder / f"std-sorted-{number}"
    return [folder / "std_sort", mib, made], made


def jobs_of(args: argparse.Namespace, folder: Path) -> list[Job]:
    found, sizes = [], HOUR if args.hour else FULL
    if "half" in args.sets:
        found += [Job("half", name, 1, LIMIT_MIB, (called,)) for name, called in commands(folder).items()]
        if args.at_once:
            sorts = tuple(sort(folder, number) for number in range(args.at_once))
            found.append(Job("half", f"{args.at_once} sorts at once", args.at_once, LIMIT_MIB, sorts))
    if "single" in args.sets:
        divisor = 4 if args.quick else 1
        single = [(f"POV-Ray, {mib} MiB", drawing(folder, spheres // divisor, 0)) for mib, spheres in sizes.spheres_by_mib.items()]
        single.append((f"std::sort, {sizes.sort_mib} MiB", sorting(folder, sizes.sort_mib // divisor, 0)))
        voice, (calls, mib) = folder / "voice", sizes.calls_mib
        single.append((f"ns-2, {mib} MiB", (["ns", ROOT / "bench/voice.tcl", calls // divisor, SIMULATED_S, voice], voice)))
        nearest, (vectors, mib) = folder / "nearest", sizes.vectors_mib
        single.append((f"nearest neighbours, {mib} MiB", ([PYTHON, SOURCES / "nearest.py", vectors // divisor, nearest], nearest)))
        found += [Job("single", name, 1, sizes.local_mib("single"), (called,)) for name, called in single]
    if "concurrent" in args.sets:
        # Without a size in its name, a row has the published size; `gleaner fidelity` compares only these.
        suffix = f", {sizes.each_mib} MiB" if args.hour else ""
        for at_once in (1, 2, 4) if args.quick else sizes.at_once:
            for name, make, size in (("POV-Ray", drawing, sizes.each_spheres), ("std::sort", sorting, sizes.each_mib)):
                called = tuple(make(folder, size, number) for number in range(at_once))
                found.append(Job("concurrent", name + suffix, at_once, sizes.local_mib("concurrent"), called, is_one_group=True))
    return found


def write_lines(path: Path) -> None:
    source = random.Random(10)
    with path.open("w") as out:
        for _ in range((LINES_MIB << 20) // 64):
            out.write(f"{source.getrandbits(64):020} {source.getrandbits(64):042}\n")


@contextlib.contextmanager
def server(command: list, ready: Path | None = None):
    """Runs a server; it is ready when its socket exists, or when it has printed a line, which is the value."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL if ready else subprocess.PIPE)
    try:
        while ready and not ready.exists():
            if process.poll() is not None:
                raise SystemExit(f"{command[0]} ended with {process.returncode}")
            time.sleep(0.02)
        yield None if ready else process.stdout.readline().decode()
    finally:
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def borrowed(programs: Path, folder: Path):
    """Swap on a clerk with two memory servers and a copy on disk."""
    with contextlib.ExitStack() as stack:
        serve = [programs / "gleaner-memoryd", "standalone", f"{AREA_MIB}MiB", "--listen", "127.0.0.1:0"]
        urls = [next(word for word in stack.enter_context(server(serve)).split() if word.startswith("nbd://")) for _ in range(2)]
        config = folder / "clerk.toml"
        config.write_text(f"servers = {json.dumps(urls)}\ndisk_folder = {json.dumps(str(folder / 'disk'))}\n")
        yield stack.enter_context(swap(programs / "gleaner-clerk", ["--config", config, "--size", f"{AREA_MIB}MiB"]))


@contextlib.contextmanager
def nbdkit(programs: Path, folder: Path):
    """Swap on nbdkit's memory."""
    socket = folder / "nbdkit.sock"
    with server(["nbdkit", "-f", "-U", socket, "memory", f"{AREA_MIB}M"], socket), swap(programs / "gleaner-clerk", ["--socket", socket]):
        yield
    socket.unlink()


@contextlib.contextmanager
def way(name: str, of_set: str, args: argparse.Namespace, folder: Path):
    match name:
        case "memory":
            yield
        case "borrowed":
            with borrowed(args.programs, folder):
                yield
        case "fast":
            with nbdkit(args.programs, folder):
                yield
        case "disk":
            scale = (HOUR if args.hour else FULL).scales.get(of_set, 1)
            keys = {"size": disk.PARTITION_BYTES // scale // PAGE_BYTES * PAGE_BYTES, "span": disk.PARTITION_BYTES}
            with disk.serving(folder, **keys) as socket, swap(args.programs / "gleaner-clerk", ["--socket", socket]):
                yield


def together(called: tuple) -> list[str]:
    """One command that runs all, and fails if one fails."""
    begins = [f"{shlex.join(map(str, command))} & pids+=($!)" for command, _ in called]
    return ["bash", "-c", "pids=(); " + "; ".join(begins) + '; code=0; for pid in "${pids[@]}"; do wait "$pid" || code=$?; done; exit $code']


def run(job: Job, clerk: Path | None, most_s: float) -> dict:
    """Seconds until the last program has ended, outcome, and hashes of the outputs. A clerk's program limits their local memory."""
    words = [together(job.called)] if job.is_one_group else [list(map(str, command)) for command, _ in job.called]
    if clerk:
        words = [limited(clerk, job.local_mib, command) for command in words]
    begin = time.monotonic()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in words]
    outcome, codes = "done", []
    for process in running:
        try:
            codes.append(process.wait(max(0.1, begin + most_s - time.monotonic())))
        except subprocess.TimeoutExpired:
            outcome = "took too long"
            process.terminate()  # gleaner-clerk passes it on, and removes the group
            process.wait(600)
    # The end of a program that took too long is not part of its time.
    seconds = time.monotonic() - begin if outcome == "done" else most_s
    files = [file for _, file in job.called]
    if outcome == "done" and any(codes):
        outcome = "ended itself"
    made = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files] if outcome == "done" else []
    for file in files:
        file.unlink(missing_ok=True)
    return {"seconds": round(seconds, 2), "outcome": outcome, "made": made}


def table(rows: list[dict], ways: list[str]) -> str:
    lines = ["| set | program | processes | " + " | ".join(ways) + " | disk / borrowed |", "| --- | --- | --- |" + " --- |" * (len(ways) + 1)]
    for key in dict.fromkeys((row["set"], row["program"], row["processes"]) for row in rows):
        cells, medians, sign = [], {}, ""
        for name in ways:
            runs = [row for row in rows if (row["set"], row["program"], row["processes"], row["way"]) == (*key, name)]
            done = [row["seconds"] for row in runs if row["outcome"] == "done"]
            if done:
                medians[name] = statistics.median(done)
                cells.append(f"{medians[name]:.1f}")
            else:
                cells.append(f"{runs[0]['outcome']} ({runs[0]['seconds']:.0f} s)" if runs else "")
                if name == "disk" and runs and runs[0]["outcome"] == "took too long":
                    medians[name], sign = runs[0]["seconds"], "> "
        ratio = f"{sign}{medians['disk'] / medians['borrowed']:.1f}" if {"disk", "borrowed"} <= medians.keys() else ""
        lines.append(f"| {key[0]} | {key[1]} | {key[2]} | " + " | ".join(cells) + f" | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", metavar="DIR", help="where gleaner-memoryd and gleaner-clerk are")
    parser.add_argument("--sets", nargs="+", default=["half"], choices=["half", "single", "concurrent"])
    parser.add_argument("--runs", type=int, default=3, help="of each way but the disk, which is run once")
    parser.add_argument("--at-once", type=int, default=4, help="sorts of the set half; 0: none")
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--most-s", type=float, default=7200, help="of a job; then its programs are ended")
    parser.add_argument("--quick", action="store_true", help="one run, a quarter of the single sizes, 1 to 4 processes: a trial, not a result")
    parser.add_argument(
        "--hour",
        action="store_true",
        help="the table of docs/evaluation.md in at most about 55 minutes: sets, ways, runs and time of a job are fixed; single programs have half of their sizes and 8 MiB of "
        "local memory instead of 16, processes at once 25 MiB each and 64 MiB instead of 100 and 256",
    )
    parser.add_argument("--resume", action="store_true", help="skip what the file of --json has")
    parser.add_argument("--json", type=Path, help="write the figures there, after each run")
    args = parser.parse_args()
    if args.hour and args.quick:
        parser.error("--hour and --quick: choose one")
    if args.hour:
        vars(args).update(HOUR_OPTIONS)
    for tool, package in (("povray", "povray"), ("ns", "ns2"), ("c++", "g++"), ("nbdkit", "nbdkit")):
        subprocess.run([ROOT / "tests/need", tool, package], check=True)
    rows: list[dict] = []
    if args.resume and args.json and args.json.exists():
        rows = json.loads(args.json.read_text())["programs"]
        if any((row["is_quick"], row.get("is_hour", False)) != (args.quick, args.hour) for row in rows):
            parser.error(f"{args.json} has runs with other sizes (--quick, --hour, or neither): choose another file")
    with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as name:
        folder = Path(name)
        write_lines(folder / "lines")
        subprocess.run(["c++", "-O2", "-o", folder / "std_sort", ROOT / "bench/std_sort.cpp"], check=True)
        for number in range(1 if args.quick else args.runs):
            # The disk is run only once: it takes minutes or hours.
            for name in (name for name in args.ways if name != "disk" or number == 0):
                for job in jobs_of(args, folder):
                    key = {"set": job.set, "program": job.name, "processes": job.processes, "way": name, "run": number + 1}
                    if any(key.items() <= row.items() for row in rows):
                        continue
                    with way(name, job.set, args, folder):
                        row = key | {"is_quick": args.quick, "is_hour": args.hour} | run(job, None if name == "memory" else args.programs / "gleaner-clerk", args.most_s)
                    others = (old["made"] for old in rows if old["made"] and (old["set"], old["program"], old["processes"]) == (job.set, job.name, job.processes))
                    if row["made"] and row["made"] != next(others, row["made"]):
                        raise SystemExit(f"{job.name} made something else on {name}")
                    rows.append(row)
                    print(f"run {number + 1}: {job.set}, {job.processes} × {job.name}, {name}: {row['outcome']}, {row['seconds']:.1f} s", file=sys.stderr, flush=True)
                    if args.json:
                        args.json.parent.mkdir(parents=True, exist_ok=True)
                        args.json.write_text(json.dumps({"programs": rows}, indent=1))
    print(table(rows, args.ways))


if __name__ == "__main__":
    main()
