#!/usr/bin/env python3
"""The collector's whole path beside pyarrow writing the same batches to local files, and beside the disk.

collector.py [--hosts 50] [--samples 960] [--folder DIR]

Each host sends a day of samples in batches of 512 records over its own mutual TLS connection. Measured are rows per second
until all are acknowledged (durable in the journal), and until all are sealed in the dataset. pyarrow: the same bodies, read
from files, decompressed, decoded, and written as one Arrow IPC file with zstd for each table of a batch, each synced. Disk:
the same bodies written and synced, one after another.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.request

import pyarrow as pa
import pyarrow.ipc as ipc

ROOT = pathlib.Path(__file__).resolve().parent.parent
RELEASE = ROOT / "target/release"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--samples", type=int, default=960)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--folder", type=pathlib.Path)
    args = parser.parse_args()
    folder = args.folder or pathlib.Path(tempfile.mkdtemp(prefix="gleaner-bench-"))
    try:
        found = {"hosts": args.hosts, "samples_a_host": args.samples}
        bodies = folder / "bodies"
        made = swarm("--hosts", args.hosts, "--backlog", args.samples, "--dump", bodies)
        rows = made["rows"]
        found["rows"] = rows
        found["bodies_bytes"] = sum(f.stat().st_size for f in bodies.iterdir())
        found["collector"] = collector(folder, args, rows)
        found["pyarrow_rows_per_second"] = rows / timed(with_pyarrow, bodies, folder / "pyarrow")
        found["disk_rows_per_second"] = rows / timed(with_disk, bodies, folder / "disk")
        whole = found["collector"]["sealed_rows_per_second"]
        found["whole_path_to_pyarrow"] = whole / found["pyarrow_rows_per_second"]
        found["whole_path_to_disk"] = whole / found["disk_rows_per_second"]
        print(json.dumps(found, indent=2))
    finally:
        if args.folder is None:
            shutil.rmtree(folder)


def swarm(*arguments: object) -> dict:
    command = [RELEASE / "examples/swarm", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def collector(folder: pathlib.Path, args: argparse.Namespace, rows: int) -> dict:
    pki = folder / "pki"
    # Certificates are made beforehand, since they are not measured.
    certify(pki, args.hosts)
    with running(folder, pki) as (process, tls, local):
        sent = swarm("--pki", pki, "--url", tls, "--hosts", args.hosts, "--backlog", args.samples, "--at-once", args.at_once)
        acknowledged_s = sent["seconds"]
        sealing = time.monotonic()
        seal(local)
        sealed_s = acknowledged_s + time.monotonic() - sealing
        status = json.load(urllib.request.urlopen(f"http://{local}/v1/status"))
        kept = status["dataset_rows_count"]
        if kept < rows:
            raise SystemExit(f"{kept} rows in the dataset, {rows} were sent")
        return {
            "acknowledged_rows_per_second": rows / acknowledged_s,
            "sealed_rows_per_second": rows / sealed_s,
            "dataset_bytes": status["dataset_bytes"],
            "retries": sent["retries"],
            **cost(process.pid),
        }


def certify(pki: pathlib.Path, hosts: int) -> None:
    subprocess.run([RELEASE / "examples/swarm", "--pki", pki, "--hosts", str(hosts), "--seconds", "0"], check=True)


@contextlib.contextmanager
def running(folder: pathlib.Path, pki: pathlib.Path, port: int = 0, more: str = ""):
    """A collector with full access on loopback; its process and its two addresses. `more` has lines of configuration."""
    config = folder / "collector.toml"
    config.write_text(
        f'data_folder = "{folder}/data"\nlisten = "127.0.0.1:{port}"\npki = "{pki}"\nlocal_listen = "127.0.0.1:0"\n'
        f'local_access = "all"\ndisk_reserve = "0MiB"\n{more}'
    )
    process = subprocess.Popen([RELEASE / "gleaner-collector", "run", "--config", config], stderr=subprocess.PIPE, text=True)
    try:
        addresses = [next(line for line in process.stderr if "listening on" in line).split()[-1] for _ in range(2)]
        yield process, *(address.split("://")[1] for address in addresses)
    finally:
        process.terminate()
        process.wait()


def seal(local: str) -> None:
    urllib.request.urlopen(urllib.request.Request(f"http://{local}/v1/seal", method="POST"), timeout=3600).read()


def cost(pid: int) -> dict:
    """CPU time and memory that a process has used so far."""
    ticks = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("VmHWM", "VmRSS"))}
    return {
        "cpu_s": (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK"),
        "rss_mib": kib["VmRSS"] / 1024,
        "peak_rss_mib": kib["VmHWM"] / 1024,
    }


def timed(work, bodies: pathlib.Path, out: pathlib.Path) -> float:
    out.mkdir()
    begin = time.monotonic()
    work(bodies, out)
    return time.monotonic() - begin


def with_pyarrow(bodies: pathlib.Path, out: pathlib.Path) -> None:
    codec = ipc.IpcWriteOptions(compression="zstd")
    for body in sorted(bodies.iterdir()):
        content = pa.CompressedInputStream(pa.memory_map(str(body)), "zstd").read()
        source = pa.BufferReader(content)
        while source.tell() < len(content):
            table = ipc.open_stream(source).read_all()
            name = table.schema.metadata[b"gleaner.table"].decode()
            with open(out / f"{body.stem}-{name}.arrow", "wb") as file:
                with ipc.new_file(file, table.schema, options=codec) as writer:
                    writer.write_table(table)
                file.flush()
                os.fsync(file.fileno())


def with_disk(bodies: pathlib.Path, out: pathlib.Path) -> None:
    with open(out / "bodies", "wb") as file:
        for body in sorted(bodies.iterdir()):
            file.write(body.read_bytes())
            file.flush()
            os.fdatasync(file.fileno())


if __name__ == "__main__":
    main()
