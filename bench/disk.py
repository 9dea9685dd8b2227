#!/usr/bin/env python3
"""The modelled disk (disk.c): an nbdkit plugin after a WD800JD, for other benches; alone, a check of its figures.

disk.py --check [--seconds 20] [--json FILE]

The check runs fio on the plugin's socket: random reads over 10 GB (mean, share of 5 to 10 ms), sequential reads and writes of 128 KiB, random
writes of 4 KiB through the disk's cache, and the same each followed by a flush. *Modelled* is the disk's own time of a request; *measured* is
fio's, which includes NBD and this machine's scheduling. It fails if a modelled figure is outside its bounds.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTITION_BYTES = 9_999_998_976
"""Swap partition of the patent's client, 10 GB, in whole pages."""
PATIENCE_S = 20


def plugin(folder: Path) -> Path:
    """Builds the plugin in this folder, if it is not there."""
    for tool, package in (("nbdkit", "nbdkit"), ("cc", "gcc")):
        subprocess.run([ROOT / "tests/need", tool, package], check=True)
    if not Path("/usr/include/nbdkit-plugin.h").exists():
        subprocess.run([ROOT / "tests/need", "/usr/include/nbdkit-plugin.h", "nbdkit-plugin-dev"], check=True)
    built = folder / "disk.so"
    if not built.exists():
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-pthread", "-o", built, ROOT / "bench/disk.c", "-lm"], check=True)
    return built


@contextlib.contextmanager
def serving(folder: Path, **keys):
    """Serves a modelled disk with these keys (`_` for `-`); yields its Unix socket."""
    built, socket = plugin(folder), folder / "disk.sock"
    socket.unlink(missing_ok=True)
    words = [f"{key.replace('_', '-')}={value}" for key, value in keys.items()]
    process = subprocess.Popen(["nbdkit", "-f", "-U", socket, built, *words])
    try:
        until = time.monotonic() + PATIENCE_S
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"nbdkit {built} {' '.join(words)}: does not serve")
            time.sleep(0.02)
        yield socket
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        socket.unlink(missing_ok=True)


def fio(socket: Path, *options: str) -> dict:
    command = ["fio", "--name=disk", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", f"--size={PARTITION_BYTES}", "--output-format=json"]
    ended = subprocess.run([*command, "--time_based", "--randseed=1", *options], capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"fio at {socket}: {ended.stdout}{ended.stderr}")
    return json.loads(ended.stdout[ended.stdout.index("{") :])["jobs"][0]


def check(seconds: int) -> dict:
    """Figures of the disk, in us and MB/s."""
    figures = {}
    random = ["--rw=randread", "--bs=4k", "--norandommap"]
    with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as name:
        folder = Path(name)
        log = folder / "modelled"
        with serving(folder, log=log) as socket:
            job = fio(socket, *random, f"--runtime={seconds}")
        modelled_us = [float(line) for line in log.read_text().split()]
        figures["random_read"] = {
            "reads": len(modelled_us),
            "modelled_mean_us": round(statistics.mean(modelled_us), 1),
            "modelled_share_5_to_10_ms": round(sum(5000 <= us < 10000 for us in modelled_us) / len(modelled_us), 3),
            "measured_mean_us": round(job["read"]["lat_ns"]["mean"] / 1000, 1),
        }
        for rw in ("read", "write"):
            with serving(folder) as socket:
                job = fio(socket, f"--rw={rw}", "--bs=128k", "--iodepth=4", f"--runtime={seconds // 4 + 1}")
            figures[f"sequential_{rw}"] = {"mb_per_s": round(job[rw]["bw_bytes"] / 1e6, 1)}
        # Fewer writes than the cache holds; then it waits for the arm, as any cache.
        with serving(folder) as socket:
            job = fio(socket, "--rw=randwrite", "--bs=4k", "--norandommap", "--time_based=0", "--number_ios=500")
        figures["write_through_cache"] = {"measured_p50_us": round(job["write"]["clat_ns"]["percentile"]["50.000000"] / 1000, 1)}
        with serving(folder) as socket:
            job = fio(socket, "--rw=randwrite", "--bs=4k", "--norandommap", "--fsync=1", f"--runtime={seconds // 4 + 1}")
        figures["write_and_flush"] = {"measured_mean_flush_us": round(job["sync"]["lat_ns"]["mean"] / 1000, 1)}
        for queue in ("elevator", "fcfs"):
            with serving(folder, queue=queue) as socket:
                job = fio(socket, *random, "--iodepth=16", f"--runtime={seconds // 2}")
            figures[f"random_read_of_16_by_{queue}"] = {"iops": round(job["read"]["iops"], 1)}
    return figures


def faults(figures: dict) -> list[str]:
    """Modelled figures outside their bounds. Bounds of rates leave a quarter for NBD on a busy machine."""
    random, flush = figures["random_read"], figures["write_and_flush"]["measured_mean_flush_us"]
    bounds = [
        ("mean of random reads, modelled, us", random["modelled_mean_us"], 8100, 8500),
        ("share of 5 to 10 ms, modelled", random["modelled_share_5_to_10_ms"], 0.56, 0.64),
        ("sequential reads, MB/s", figures["sequential_read"]["mb_per_s"], 37, 51),
        ("sequential writes, MB/s", figures["sequential_write"]["mb_per_s"], 37, 55),  # the cache is ahead of the arm by 4 MB
        ("write through the cache, us", figures["write_through_cache"]["measured_p50_us"], 60, 1000),
        ("flush of a write, us", flush, 6000, 12000),
    ]
    return [f"{what}: {value} is not within {low} to {high}" for what, value, low, high in bounds if not low <= value <= high]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", required=True, help="check the disk's figures")
    parser.add_argument("--seconds", type=int, default=20, help="of random reads; other cases are shorter")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    args = parser.parse_args()
    subprocess.run([ROOT / "tests/need", "fio", "fio"], check=True)
    figures = check(args.seconds)
    print("| | | |\n| --- | --- | --- |")
    for case, values in figures.items():
        for what, value in values.items():
            print(f"| {case.replace('_', ' ')} | {what.replace('_', ' ')} | {value} |")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({"disk": figures}, indent=2))
    if found := faults(figures):
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
