#!/usr/bin/env python3
"""An analysis of a dataset on an object store beside the analysis of the same dataset in a folder.

s3.py [--hosts 1000] [--days 14] [--runs 3] [--delay 0,20] [--part I/N] [--folder DIR]

The dataset is that of analysis.py. The stand-in for S3 is Debian's nginx (target/nginx, which this bench unpacks): it
serves the files of the folder with ranges, and answers a list request with a fixed empty list. It checks no signature,
uses no TLS and shares the machine with the analysis, so that its CPU time counts against the store; a real store adds
TLS and its own latency. `--delay` lets nginx wait so many milliseconds before each answer (module echo).

Runs of folder and store alternate, and all documents must have the same sha256. CPU time is wait4(2)'s of `gleaner`;
nginx's own is `server_cpu_s`. `speed_share` is the time of the folder's median run by that of the store's.
`--part` analyses one part of a plan instead of everything, as one of several machines does.
"""

import argparse
import hashlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass

import analysis

PLACE = "traces/east"
NGINX = analysis.ROOT / "target/nginx"
PACKAGES = ["nginx", "libnginx-mod-http-echo"]
EMPTY_LIST = (
    '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    "<Name>traces</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--delay", default="0,20", help="milliseconds before each answer, one or several")
    parser.add_argument("--part", help="one part, such as 1/64")
    parser.add_argument("--folder", type=pathlib.Path, default=analysis.ROOT / "out/bench/analysis")
    args = parser.parse_args()
    subprocess.run([analysis.ROOT / "tests/unpack", NGINX, *PACKAGES], check=True)
    args.folder.mkdir(parents=True, exist_ok=True)
    dataset = analysis.fleet(args, args.hosts).resolve()
    plan = args.folder / "plan.json"
    with plan.open("wb") as printed:
        subprocess.run([str(analysis.GLEANER), "analyze", str(dataset), "--print-plan"], check=True, stdout=printed)
    found = {
        "hosts": args.hosts,
        "days": args.days,
        "part": args.part,
        "dataset_bytes": sum(file["bytes"] for file in analysis.manifest(dataset)["files"]),
        "files": len(analysis.manifest(dataset)["files"]),
        "delays": [compared(args, dataset, plan, float(delay)) for delay in args.delay.split(",")],
    }
    text = json.dumps(found, indent=2)
    (args.folder / "s3.json").write_text(text + "\n")
    print(text)


def compared(args: argparse.Namespace, dataset: pathlib.Path, plan: pathlib.Path, delay_ms: float) -> dict:
    """Runs the analysis of folder and store alternately."""
    runs: dict[str, list[dict]] = {"folder": [], "store": []}
    with served(args.folder.resolve() / "nginx", dataset, delay_ms) as server:
        environment = {
            "AWS_ENDPOINT_URL": server.address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_SKIP_SIGNATURE": "true",
        }
        for _ in range(args.runs):
            runs["folder"].append(run(args, dataset, plan, {}))
            before = server.work()
            runs["store"].append(run(args, f"s3://{PLACE}", plan, environment))
            work = {name: round(value - before[name], 2) for name, value in server.work().items()}
            runs["store"][-1] |= work
    hashes = {one.pop("sha256") for both in runs.values() for one in both}
    if len(hashes) != 1:
        raise SystemExit("folder and store give different documents")
    median = {name: statistics.median(one["wall_s"] for one in both) for name, both in runs.items()}
    return {"delay_ms": delay_ms, **runs, "speed_share": round(median["folder"] / median["store"], 3)}


def run(args: argparse.Namespace, dataset: object, plan: pathlib.Path, environment: dict) -> dict:
    """Cost of an analysis, and the hash of its document or part."""
    output = args.folder / "s3-output"
    command = [analysis.GLEANER, "analyze", dataset]
    command += ["--plan", plan, "--part", args.part, "-o", output] if args.part else ["--json"]
    begun = time.monotonic()
    with open(os.devnull if args.part else output, "wb") as printed:
        process = subprocess.Popen([str(part) for part in command], stdout=printed, env=os.environ | environment)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"gleaner ended with {process.returncode}")
    with output.open("rb") as document:
        sha256 = hashlib.file_digest(document, "sha256").hexdigest()
    return {
        "wall_s": round(wall_s, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_rss_bytes": usage.ru_maxrss * 1024,
        "sha256": sha256,
    }


@dataclass(frozen=True)
class Server:
    """A running nginx, and its address."""

    process: subprocess.Popen
    address: str
    log: pathlib.Path

    def work(self) -> dict[str, float]:
        """Work since its start: requests, bytes of answers and CPU time."""
        time.sleep(2)  # nginx writes its log once a second
        answers = [line.split() for line in self.log.read_text().splitlines()]
        if failed := [line for line in answers if line[0] not in ("200", "206")]:
            raise SystemExit(f"the store answered {failed[:3]}")
        # After the name in parentheses: user and system time are fields 14 and 15.
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return {
            "requests": len(answers),
            "fetched_bytes": sum(int(line[1]) for line in answers),
            "server_cpu_s": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        }


@contextmanager
def served(folder: pathlib.Path, dataset: pathlib.Path, delay_ms: float):
    """nginx with the dataset's files below the place, until the end of the block."""
    subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    files = f"alias {dataset}/;"
    if delay_ms:
        place = f"location /{PLACE}/ {{ echo_sleep {delay_ms / 1000}; echo_exec /files$uri; }}"
        place += f" location /files/{PLACE}/ {{ internal; {files} }}"
    else:
        place = f"location /{PLACE}/ {{ {files} }}"
    temporary = "".join(f"{of}_temp_path {folder};" for of in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    bucket = PLACE.split("/")[0]
    (folder / "nginx.conf").write_text(
        f"""
        daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
        load_module {NGINX}/usr/lib/nginx/modules/ngx_http_echo_module.so;
        events {{ worker_connections 512; }}
        http {{
            log_format answers '$status $body_bytes_sent';
            access_log {folder}/access.log answers buffer=64k flush=1s;
            {temporary}
            sendfile on; tcp_nopush on; keepalive_requests 1000000000; keepalive_timeout 1h;
            default_type application/octet-stream;
            server {{
                listen 127.0.0.1:{port};
                location = /{bucket} {{ default_type application/xml; return 200 '{EMPTY_LIST}'; }}
                {place}
            }}
        }}
        """
    )
    program = [NGINX / "usr/sbin/nginx", "-e", folder / "error.log", "-c", folder / "nginx.conf"]
    process = subprocess.Popen(program)
    try:
        while process.poll() is None:
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield Server(process, f"http://127.0.0.1:{port}", folder / "access.log")
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
