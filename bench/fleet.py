#!/usr/bin/env python3
"""A fleet's collector: the cost of N hosts, each with its own certificate and connection.

fleet.py [--hosts 10000] [--seconds 300]     a sample each, every 90 s: CPU, memory, time to acknowledge
fleet.py --hosts 1000 --backlog 960          a day each at once: time until acknowledged, and until in the dataset

Certificates take some 10 ms each and are kept in --folder for the next run.
"""

import argparse
import json
import pathlib
import resource
import shutil
import tempfile
import time

from collector import certify, cost, running, seal, swarm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--backlog", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--folder", type=pathlib.Path)
    args = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most < args.hosts + 100:
        raise SystemExit(f"{args.hosts} connections need as many descriptors in each of two processes; the limit is {most}")
    folder = args.folder or pathlib.Path(tempfile.mkdtemp(prefix="gleaner-bench-"))
    try:
        folder.mkdir(exist_ok=True)
        certify(folder / "pki", args.hosts)
        shutil.rmtree(folder / "data", ignore_errors=True)
        with running(folder, folder / "pki") as (process, tls, local):
            how = ["--backlog", args.backlog, "--at-once", args.at_once] if args.backlog else ["--seconds", args.seconds]
            begin = time.monotonic()
            found = swarm("--pki", folder / "pki", "--url", tls, "--hosts", args.hosts, *how)
            seal(local)
            found["sealed_s"] = time.monotonic() - begin
            print(json.dumps(found | cost(process.pid), indent=2))
    finally:
        if args.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
