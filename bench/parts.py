#!/usr/bin/env python3
"""An analysis in parts beside the analysis by one process: CPU time, memory of a task, size of the parts, equal bytes.

parts.py [--hosts 1000] [--days 14] [--parts 1,2,7,64] [--folder DIR]

The dataset is that of analysis.py. For each number of parts every part is analysed by a process of its own, one after
the other; one part is killed in the middle and repeated, one is analysed twice; the parts are merged in random order, and
the document must have the sha256 of the one process's. Peak memory is that of wait4(2), mapped files included;
`anonymous_peak_bytes` is the highest RssAnon of /proc/PID/status, read every 20 ms.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import subprocess
import threading
import time

import analysis


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--parts", default="1,2,7,64")
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--folder", type=pathlib.Path, default=analysis.ROOT / "out/bench/analysis")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    dataset = analysis.fleet(args, args.hosts)
    one = args.folder / "one.json"
    whole = {**run_gleaner("analyze", dataset, "--json", output=one), "sha256": sha256(one), "findings_bytes": one.stat().st_size}
    bytes_read = sum(file["bytes"] for file in analysis.manifest(dataset)["files"])
    whole["dataset_mb_per_cpu_s"] = round(bytes_read / 1e6 / whole["cpu_s"], 1)
    plan = args.folder / "plan.json"
    planning = run_gleaner("analyze", dataset, "--print-plan", output=plan)
    found = {"hosts": args.hosts, "days": args.days, "dataset_bytes": bytes_read, "whole": whole, "planning": planning}
    found["parts"] = [in_parts(args, dataset, plan, int(n), whole) for n in args.parts.split(",")]
    text = json.dumps(found, indent=2)
    (args.folder / "parts.json").write_text(text + "\n")
    print(text)


def in_parts(args: argparse.Namespace, dataset: pathlib.Path, plan: pathlib.Path, count: int, whole: dict) -> dict:
    """Analyses the dataset in `count` parts, and merges them."""
    dice = random.Random(args.seed)
    folder = args.folder / f"parts-{count}"
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    folder.mkdir()
    files = [folder / str(i) for i in range(1, count + 1)]

    def analyze(i: int, **how) -> dict:
        return run_gleaner("analyze", dataset, "--plan", plan, "--part", f"{i}/{count}", "-o", files[i - 1], **how)

    order = list(range(1, count + 1))
    dice.shuffle(order)
    analyze(order[0], kill_after_s=whole["wall_s"] / count / 2)
    tasks = [analyze(i) for i in order]
    analyze(order[-1])
    given = [*files, files[order[0] - 1]]
    dice.shuffle(given)
    merged = args.folder / "merged.json"
    merge = run_gleaner("merge", *given, "--json", output=merged)
    if sha256(merged) != whole["sha256"]:
        raise SystemExit(f"{count} parts give another document than one process")
    cpu_s = sum(task["cpu_s"] for task in tasks)
    return {
        "parts": count,
        "sha256": sha256(merged),
        "tasks_cpu_s": round(cpu_s, 2),
        "merge": merge,
        "overhead_share": round((cpu_s + merge["cpu_s"]) / whole["cpu_s"] - 1, 3),
        "task_peak_rss_bytes": max(task["peak_rss_bytes"] for task in tasks),
        "task_anonymous_peak_bytes": max(task["anonymous_peak_bytes"] for task in tasks),
        "stored_bytes": sum(file.stat().st_size for file in files),
    }


def run_gleaner(*command: object, output: pathlib.Path | None = None, kill_after_s: float | None = None) -> dict:
    """Runs `gleaner` to its end, or kills it; returns its cost."""
    begun = time.monotonic()
    with (output or pathlib.Path("/dev/null")).open("wb") as file:
        process = subprocess.Popen([str(analysis.GLEANER), *map(str, command)], stdout=file)
    peak = {"bytes": 0}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            try:
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                return
            for line in status.splitlines():
                if line.startswith("RssAnon:"):
                    peak["bytes"] = max(peak["bytes"], int(line.split()[1]) * 1024)

    watcher = threading.Thread(target=watch)
    watcher.start()
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        process.kill()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    done.set()
    watcher.join()
    if process.returncode and kill_after_s is None:
        raise SystemExit(f"gleaner {command[0]} ended with {process.returncode}")
    return {
        "wall_s": round(time.monotonic() - begun, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_rss_bytes": usage.ru_maxrss * 1024,
        "anonymous_peak_bytes": peak["bytes"],
    }


def sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
