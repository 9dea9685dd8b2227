#!/usr/bin/env python3
"""The clerk's window of requests in flight: fixed ones beside the adaptive one, for the comparison with Anemone (docs/evaluation.md).

window.py [--programs target/release] [--windows 1 2 4 ... 1024 0] [--runs 3] [--seconds 5] [--queue-kib 64] [--no-quicksort] [--json FILE]

Three memory servers send to a clerk through one port of 1 Gbit/s with a short queue (links.py). Random page-ins with 1024 in flight at the clerk give the goodput
(bytes of pages a second) and the retransmitted TCP segments (nstat) of each window a server; 0 is the adaptive window. Then quicksort.c, with a quarter of its memory, swaps on
the same clerk. Needs a clerk with the key `window`. Root only.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from links import ROOT, Network, call
from swap import limited, swap

SERVERS = ["server1", "server2", "server3"]
WINDOWS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 0]
IN_FLIGHT = 1024
BURST_BYTES = 16 << 10


@contextlib.contextmanager
def clerk(network: Network, window: int, folder: Path, args: argparse.Namespace):
    """Runs a clerk on the client with this window; yields its Unix socket."""
    with contextlib.ExitStack() as stack:
        urls = []
        for server in SERVERS:
            address, port = network.listen(server)
            serve = [args.programs / "gleaner-memoryd", "standalone", f"{args.size_mib}MiB", "--listen", f"{address}:{port}"]
            urls.append(stack.enter_context(network.serving(server, "client", network.url(server), *serve)))
        config, socket = folder / "clerk.toml", folder / "clerk.sock"
        config.write_text(f'servers = {json.dumps(urls)}\ndisk_folder = "none"\nwindow = {window}\n')
        words = ["run", "--config", config, "--size", f"{args.size_mib * 2}MiB", "--listen", socket, "--status-socket", f"{socket}.status"]
        url = f"nbd+unix:///?socket={socket}"
        stack.enter_context(network.serving("client", "client", url, args.programs / "gleaner-clerk", *words))
        yield socket


def fio(socket: Path, args: argparse.Namespace, *options: str) -> dict:
    words = ["fio", "--name=pages", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", f"--size={args.size_mib}m", "--output-format=json"]
    said = call(*words, *options)
    return json.loads(said[said.index("{") :])["jobs"][0]


def measured(network: Network, window: int, folder: Path, args: argparse.Namespace) -> dict:
    with clerk(network, window, folder, args) as socket:
        fio(socket, args, "--rw=write", "--bs=1m")
        before = network.retransmissions(), network.dropped("client")
        job = fio(socket, args, "--rw=randread", "--bs=4k", f"--iodepth={IN_FLIGHT}", "--norandommap", "--time_based", f"--runtime={args.seconds}")
        after = network.retransmissions(), network.dropped("client")
        pages = job["read"]["total_ios"]
        row = {
            "goodput_mib_per_s": job["read"]["bw_bytes"] / (1 << 20),
            "retransmissions": after[0] - before[0],
            "retransmissions_per_1000_pages": 1000 * (after[0] - before[0]) / pages,
            "dropped": after[1] - before[1],
        }
        if args.no_quicksort:
            return row
        with swap(args.programs / "gleaner-clerk", ["--socket", socket]):
            command = limited(args.programs / "gleaner-clerk", args.sort_mib // 4, [folder / "quicksort", args.sort_mib])
            begin = time.monotonic()
            call(*command)
            return row | {"quicksort_s": time.monotonic() - begin}


def check_key(folder: Path, args: argparse.Namespace) -> None:
    config = folder / "check.toml"
    config.write_text("window = 1\n")
    done = subprocess.run([args.programs / "gleaner-clerk", "check-config", "--config", config], capture_output=True, text=True)
    if "window" in done.stderr:
        raise SystemExit(f"{args.programs}/gleaner-clerk has no key `window`: build a newer one ({done.stderr.strip()})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", metavar="DIR", help="where gleaner-memoryd and gleaner-clerk are")
    parser.add_argument("--windows", nargs="+", type=int, default=WINDOWS, help="requests in flight at each server; 0: adaptive")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5, help="of page-ins, each run")
    parser.add_argument("--queue-kib", type=int, default=64, help="of each port")
    parser.add_argument("--size-mib", type=int, default=256, help="of each server's memory, and of the pages that are read")
    parser.add_argument("--sort-mib", type=int, default=64, help="of the numbers that are sorted; the patent's 1 GB is 64 MiB at a sixteenth")
    parser.add_argument("--no-quicksort", action="store_true")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    args = parser.parse_args()
    for tool, package in (("fio", "fio"), ("nbdinfo", "libnbd-bin"), ("ip", "iproute2"), ("cc", "gcc")):
        call(ROOT / "tests/need", tool, package)
    runs: dict[int, list[dict]] = {}
    with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as name:
        folder = Path(name)
        check_key(folder, args)
        call("cc", "-O2", "-o", folder / "quicksort", ROOT / "bench/quicksort.c")
        for run in range(args.runs):
            for window in args.windows:
                with Network(["client", *SERVERS], 1000, args.queue_kib << 10, BURST_BYTES) as network:
                    runs.setdefault(window, []).append(measured(network, window, folder, args))
            print(f"run {run + 1} of {args.runs}", file=sys.stderr, flush=True)
    rows = [{"window": window, **{key: round(statistics.median(row[key] for row in done), 2) for key in done[0]}} for window, done in runs.items()]
    print("| window | " + " | ".join(key.replace("_", " ") for key in list(rows[0])[1:]) + " |\n|" + " --- |" * len(rows[0]))
    for row in rows:
        print(f"| {row['window'] or 'adaptive'} | " + " | ".join(str(value) for value in list(row.values())[1:]) + " |")
    fixed = [row["goodput_mib_per_s"] for row in rows if row["window"]]
    if fixed and (adaptive := next((row for row in rows if not row["window"]), None)):
        print(f"\nadaptive over the best fixed window: {adaptive['goodput_mib_per_s'] / max(fixed):.3f} (aim: 0.95)")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({"window": {"queue_kib": args.queue_kib, "rows": rows}}, indent=1))


if __name__ == "__main__":
    main()
