#!/usr/bin/env python3
"""Programs that need more memory than they have: their time on borrowed memory, beside plain memory and swap on disks.

programs.py [--programs target/release] [--runs 3] [--at-once 4] [--disk-ms 8] [--json FILE]

The programs are Debian's sort, a search for nearest neighbours (numpy) and POV-Ray, those of tests/end_to_end/lending/programs, to each of which `gleaner-clerk
run` gives half to two thirds of the memory that it needs; then --at-once sorts concurrently, each with its own limit. Their output is compared with that of the first
way. A program that fails has no time: POV-Ray ends if one half of it waits ten seconds for the other.

*Borrowed*: swap on a clerk, whose pages are at two standalone memoryds over TCP on loopback, encrypted, with its copy on this machine's disk. *Disk*: swap on nbdkit's
memory behind its delay filter, which delays each request and serves one at a time: a hard disk with an assumed seek time. *Fast*: the same nbdkit without a delay, which
shows the cost of the path itself. All three swap by `gleaner-clerk attach`. Nothing is pinned. Root only.
"""

import argparse
import contextlib
import hashlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from swap import ROOT, limited, swap

SOURCES = ROOT / "tests/end_to_end/lending/programs"
PYTHON = ROOT / ".venv/bin/python"
LIMIT_MIB = 48
LINES_MIB = 40
VECTORS = 16_000
SPHERES = 80_000
AREA_MIB = 1024
WAYS = ("memory", "borrowed", "fast", "disk")


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
def nbdkit(programs: Path, folder: Path, options: list, delays: list):
    """Swap on nbdkit's memory."""
    socket = folder / "nbdkit.sock"
    command = ["nbdkit", "-f", "-U", socket, *options, "memory", f"{AREA_MIB}M", *delays]
    with server(command, socket), swap(programs / "gleaner-clerk", ["--socket", socket]):
        yield
    socket.unlink()


@contextlib.contextmanager
def way(name: str, args: argparse.Namespace, folder: Path):
    match name:
        case "memory":
            yield
        case "borrowed":
            with borrowed(args.programs, folder):
                yield
        case "fast":
            with nbdkit(args.programs, folder, [], []):
                yield
        case "disk":
            delays = [f"rdelay={args.disk_ms}ms", f"wdelay={args.disk_ms}ms"]
            with nbdkit(args.programs, folder, ["--filter=noparallel", "--filter=delay"], [*delays, "serialize=all-requests"]):
                yield


def run(called: list[tuple[list, Path]], clerk: Path | None) -> tuple[float, list[str]] | None:
    """Seconds until the last program has ended, and their outputs; None if one failed. A clerk's program limits their local memory."""
    words = [limited(clerk, LIMIT_MIB, command) if clerk else list(map(str, command)) for command, _ in called]
    begin = time.monotonic()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in words]
    ended = [process.wait() for process in running]
    seconds = time.monotonic() - begin
    if any(ended):
        print(f"{called[0][0][0]} ended with {ended} after {seconds:.1f} s", file=sys.stderr)
        return None
    made = [hashlib.sha256(file.read_bytes()).hexdigest() for _, file in called]
    for _, file in called:
        file.unlink()
    return seconds, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", metavar="DIR", help="where gleaner-memoryd and gleaner-clerk are")
    parser.add_argument("--runs", type=int, default=3, help="of each way but the disk, which is run once")
    parser.add_argument("--at-once", type=int, default=4, help="sorts; 0: none")
    parser.add_argument("--disk-ms", type=int, default=8, help="of each request to the disk")
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as name:
        folder = Path(name)
        write_lines(folder / "lines")
        jobs = {name: [called] for name, called in commands(folder).items()}
        if args.at_once:
            jobs[f"{args.at_once} sorts at once"] = [sort(folder, number) for number in range(args.at_once)]
        plain, seconds = {}, {}
        for number in range(args.runs):
            # Run only once: it takes minutes per program, and its delay is an assumption.
            for name in (name for name in args.ways if name != "disk" or number == 0):
                with way(name, args, folder):
                    for job, called in jobs.items():
                        if (ran := run(called, None if name == "memory" else args.programs / "gleaner-clerk")) is None:
                            continue
                        took, made = ran
                        if plain.setdefault(job, made) != made:
                            raise SystemExit(f"{job} made something else on {name}")
                        seconds.setdefault((job, name), []).append(took)
                        print(f"run {number + 1}: {job}, {name}: {took:.1f} s", file=sys.stderr, flush=True)
    ended = {key: statistics.median(values) for key, values in seconds.items()}
    rows = [{"program": job, **{name: ended.get((job, name)) for name in args.ways}} for job in jobs]
    titles = {"memory": "memory s", "borrowed": "borrowed s", "fast": "fast s", "disk": f"disk of {args.disk_ms} ms s"}
    print("| | " + " | ".join(titles[name] for name in args.ways) + " | disk / borrowed |")
    print("| --- |" + " --- |" * (len(args.ways) + 1))
    for row in rows:
        ratio = f"{row['disk'] / row['borrowed']:.1f}" if row.get("disk") and row.get("borrowed") else ""
        print(f"| {row['program']} | " + " | ".join(f"{row[name]:.1f}" if row[name] else "failed" for name in args.ways) + f" | {ratio} |")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({"disk_ms": args.disk_ms, "programs": rows}, indent=2))


if __name__ == "__main__":
    main()
