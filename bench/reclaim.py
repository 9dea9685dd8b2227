#!/usr/bin/env python3
"""Delay until lent memory is the owner's again: from the agent's message of the return to the kernel's free memory.

gleaner-memoryd lends a lease, completely written, and reclaims it when it receives `owner in_use`. The time is measured
outside of it: free memory in /proc/zoneinfo, read by a process of higher priority, at first every 0.1 ms. Beside it are
the times in memoryd's own log, which other processes' memory does not blur, and the kernel's time for the same work alone
("bare madvise": as many threads, the same pages). With --agent the real agent sends the message, and the time runs from a
key press (a pipe for a keyboard). A hypervisor that takes the CPUs away delays everything: "stolen" is the longest such
time (both CPUs together, in steps of 10 ms).

examples:
  bench/reclaim.py --memoryd target/release/gleaner-memoryd
  bench/reclaim.py --memoryd target/release/gleaner-memoryd --agent target/release/gleaner-agent --json out/reclaim.json
  bench/reclaim.py --memoryd target/release/gleaner-memoryd --sizes 1 --trials 20 --pages huge
"""

import argparse
import contextlib
import ctypes
import json
import math
import mmap
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

GIB = 1 << 30
# Sizes in paging/src/store: a slab, and the slabs that one call frees.
SLAB = 2 << 20
RUN = 16 * SLAB
# Free memory fluctuates through other processes: a larger increase counts as the first reclaimed memory ...
NOISE = 4 << 20
# ... and this share may be missing at the end.
MISSING_SHARE = 0.01
# Keys of the durations in memoryd's log, by their names in the figures.
RECLAIM_KEYS = {"first": "first_reclaim_us", "all": "full_reclaim_us"}
KEYS = ("first_ms", "all_ms", "told_first_ms", "told_all_ms", "bare_ms")
# A sample with values for all columns that may not be absent (schemas/src/rows.rs).
COLUMNS = """boottime_ms balloon_bytes dynamic_kernel_bytes file_cache_bytes process_bytes guest_bytes category_correction_bytes
    available_free_bytes available_idle_process_bytes available_unused_cache_bytes available_reclaimable_kernel_bytes
    available_residual_bytes mem_total_bytes mem_free_bytes processes_count active_processes_count agent_cpu_us agent_wall_us
    agent_rss_bytes"""
SAMPLE = {"type": "sample", "headroom_share": 0.0, "is_complete_state": False} | dict.fromkeys(COLUMNS.split(), 0)
# Time after the event at which memory not reclaimed counts as lost.
PATIENCE_S = 3.0
# A lease that has not grown for this time will never be completely written. The total time says nothing: memoryd fills the lease at
# normal priority, with whatever CPU time others leave.
STALLED_S = 60.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0],
        epilog=__doc__[__doc__.index("examples") :],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--memoryd", type=Path, required=True, metavar="FILE", help="gleaner-memoryd, built in release")
    parser.add_argument("--agent", type=Path, metavar="FILE", help="gleaner-agent, for times from a key press as well")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 4, 8], metavar="GIB", help="sizes [1 4 8]")
    parser.add_argument("--trials", type=int, default=100, metavar="N", help="reclaims of each kind [100]")
    parser.add_argument("--presses", type=int, default=20, metavar="N", help="key presses of each kind [20]")
    parser.add_argument("--pages", nargs="+", choices=["huge", "4KiB"], default=["huge", "4KiB"], help="[both]")
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 2], metavar="N", help="processes that use CPU [0 2]")
    parser.add_argument("--no-priority", action="store_true", help="memoryd without CAP_SYS_NICE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser.parse_args()


ZONEINFO = os.open("/proc/zoneinfo", os.O_RDONLY)
PAGE = os.sysconf("SC_PAGE_SIZE")
FREE = re.compile(rb"(?:nr_free_pages|^ +count:) +(\d+)", re.MULTILINE)


def free_bytes() -> int:
    """Free memory in all zones, and on each CPU's lists of pages just freed, which are reused first."""
    return sum(map(int, FREE.findall(os.pread(ZONEINFO, 1 << 16, 0)))) * PAGE


def line(**message) -> bytes:
    return (json.dumps(message) + "\n").encode()


class FakeAgent:
    """Sends the agent's messages (docs/live.md): heartbeats from a thread, the others on request."""

    def __init__(self, root: Path):
        self.path = root / "agent.sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.listener.settimeout(30)
        self.connection = None
        self.is_over = threading.Event()
        self.said = threading.Lock()

    def ready(self) -> None:
        self.connection, _ = self.listener.accept()
        threading.Thread(target=self.live, daemon=True).start()

    def live(self) -> None:
        # A thread starts at normal priority (SCHED_RESET_ON_FORK), and three seconds of silence count as the owner's return.
        before_others(threading.get_native_id())
        while not self.is_over.wait(1):
            with contextlib.suppress(OSError), self.said:
                self.connection.sendall(line(type="alive", time_ms=0))

    def idle(self, headroom_share: float = 0.0) -> None:
        """Sends a sample of an idle host; with a headroom of 1 its quota is 0."""
        now_ms = int(time.time() * 1000)
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        figures = {"physical_bytes": total, "available_bytes": total, "mem_available_bytes": total}
        row = SAMPLE | figures | {"headroom_share": headroom_share}
        with self.said:
            self.connection.sendall(line(**row | {"time_ms": now_ms, "state": "idle", "since_time_ms": now_ms}))

    def owner_returns(self) -> None:
        with self.said:
            self.connection.sendall(line(type="owner", state="in_use", time_ms=0, source="input"))

    def close(self) -> None:
        self.is_over.set()


class RealAgent:
    """gleaner-agent with a pipe in place of an event device; it takes a sample each second."""

    def __init__(self, root: Path, agent: Path):
        for folder in ("dev/input", "dev/pts", "sys", "run"):
            (root / folder).mkdir(parents=True)
        node = root / "dev/input/event0"
        os.mkfifo(node)
        self.keyboard = os.open(node, os.O_RDWR)
        self.path = root / "agent.sock"
        (root / "agent.toml").write_text('return_watch_after = "300ms"\n')
        command = [str(agent.resolve()), "run", "--sample-interval", "2s"]
        command += ["--config", str(root / "agent.toml"), "--database", str(root / "trace.db"), "--socket", str(root / "agent.sock")]
        command += ["--dev-root", str(root / "dev"), "--sys-root", str(root / "sys"), "--run-root", str(root / "run")]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.messages = None

    def ready(self) -> None:
        listener = socket.socket(socket.AF_UNIX)
        wait_for(lambda: listener.connect_ex(str(self.path)) == 0, "the agent")
        self.messages = listener.makefile("r")

    def idle(self) -> None:
        """Waits until a sample shows the owner away; from then on the host lends and the owner may return."""
        for text in self.messages:
            message = json.loads(text)
            if message["type"] == "sample" and (message["owner_idle_ms"] or 0) >= 300:
                return

    def owner_returns(self) -> None:
        now = time.time_ns()
        os.write(self.keyboard, struct.pack("=qqHHi", now // 10**9, now % 10**9 // 1000, 1, 0, 1))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        os.close(self.keyboard)


def stolen_ms() -> float:
    """CPU time that a hypervisor has taken from all CPUs since boot (proc_stat(5))."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) * 1000 / os.sysconf("SC_CLK_TCK")


def bare(pages: str, gib: int, trials_count: int) -> list[float]:
    """Milliseconds in which the kernel alone reclaims the memory: a lower bound for any memory server."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size = gib * GIB
    area = mmap.mmap(-1, size + SLAB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = (ctypes.addressof(ctypes.c_char.from_buffer(area)) + SLAB - 1) // SLAB * SLAB
    libc.madvise(base, size, mmap.MADV_HUGEPAGE if pages == "huge" else mmap.MADV_NOHUGEPAGE)
    times = []
    for _ in range(trials_count):
        ctypes.memset(base, 1, size)
        runs = iter(range(base, base + size, RUN))
        # ctypes releases the interpreter lock, so that these calls run in parallel.
        hands = [
            threading.Thread(target=lambda: [libc.madvise(at, RUN, mmap.MADV_DONTNEED) for at in runs])
            for _ in range(min(os.cpu_count(), 2))
        ]
        began = time.monotonic_ns()
        for hand in hands:
            hand.start()
        for hand in hands:
            hand.join()
        times.append((time.monotonic_ns() - began) / 1e6)
    return times


def before_others(thread: int) -> None:
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(thread, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(50))


def wait_for(is_there, what: str) -> None:
    until = time.monotonic() + 60
    while not is_there():
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.02)


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def huge_bytes(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(text.split()[1]) << 10 for text in rollup.splitlines() if text.startswith("AnonHugePages:"))


def wait_until_written(pid: int, size: int) -> None:
    """Waits until the lease is in memory, as long as it keeps growing."""
    most, until = 0, time.monotonic() + STALLED_S
    while (resident := resident_bytes(pid)) < size:
        if resident > most:
            most, until = resident, time.monotonic() + STALLED_S
        elif time.monotonic() > until:
            raise TimeoutError(f"a lease of {size >> 20} MiB: {most >> 20} MiB were written, and none since {STALLED_S:.0f} s")
        time.sleep(0.02)


class Trial:
    def __init__(self):
        self.stolen_ms = 0.0
        self.first_ms = None
        self.all_ms = None
        self.huge_share = 0.0


def reclaim(agent, pid: int, size: int) -> Trial:
    agent.idle()
    wait_until_written(pid, size)
    trial = Trial()
    trial.huge_share = huge_bytes(pid) / size
    # A page or two may still be in transit, and the real agent starts watching after its sample.
    time.sleep(0.2)
    before, stolen_before_ms = free_bytes(), stolen_ms()
    began = time.monotonic_ns()
    agent.owner_returns()
    while trial.all_ms is None:
        back = free_bytes() - before
        passed_ms = (time.monotonic_ns() - began) / 1e6
        if trial.first_ms is None and back >= NOISE:
            trial.first_ms = passed_ms
        if back >= (1 - MISSING_SHARE) * size:
            trial.all_ms = passed_ms
        if passed_ms > PATIENCE_S * 1000:
            break
        # Seldom enough to leave the CPUs to the reclaim.
        time.sleep(min(max(passed_ms / 50, 0.1), 5) / 1000)
    trial.stolen_ms = stolen_ms() - stolen_before_ms
    return trial


def run(args: argparse.Namespace, pages: str, gib: int, busy: int, trials_count: int, is_real: bool) -> dict:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / "memoryd.toml").write_text(f"huge_pages = {str(pages == 'huge').lower()}\n")
        agent = RealAgent(root, args.agent) if is_real else FakeAgent(root)
        drop = ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"] if args.no_priority else []
        command = [*drop, str(args.memoryd.resolve()), "run", "--standalone", f"{gib}GiB", "--fill"]
        command += ["--config", str(root / "memoryd.toml"), "--socket", str(root / "memoryd.sock")]
        command += ["--agent-socket", str(root / "agent.sock"), "--state-folder", str(root / "state")]
        if is_real:
            wait_for(agent.path.exists, "the agent's socket")
        with (root / "said").open("w") as said:
            daemon = subprocess.Popen(command, stderr=said)
        load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
        try:
            agent.ready()
            try:
                trials = [reclaim(agent, daemon.pid, gib * GIB) for _ in range(trials_count)]
            except TimeoutError as why:
                sys.exit(f"{why}; memoryd said: {(root / 'said').read_text() or 'nothing'}; it gave back: {reclaims(root)}")
            # The last line of its log is written after the reclaim.
            daemon.terminate()
            daemon.wait()
            told = reclaims(root)
            bare_ms = [] if is_real or busy else bare(pages, gib, max(3, trials_count // 5))
        finally:
            for process in load:
                process.kill()
                process.wait()
            daemon.terminate()
            daemon.wait()
            agent.close()
    kind = {"from": "key press" if is_real else "agent's word", "pages": pages, "gib": gib, "busy": busy}
    return kind | figures(trials, told, bare_ms)


def reclaims(root: Path) -> list[dict]:
    """memoryd's own records of reclaims: cause, amount and times."""
    log = root / "state/lending.jsonl"
    return [json.loads(text) for text in log.read_text().splitlines()] if log.exists() else []


def figures(trials: list[Trial], told: list[dict], bare_ms: list[float]) -> dict:
    found = {"trials": len(trials), "unclear": sum(trial.all_ms is None for trial in trials)}
    found["stolen_ms"] = max(trial.stolen_ms for trial in trials)
    found["huge_share"] = sum(trial.huge_share for trial in trials) / len(trials)
    series = {name: [getattr(trial, name) for trial in trials] for name in ("first_ms", "all_ms")}
    series |= {f"told_{of}_ms": [line[key] / 1000 for line in told] for of, key in RECLAIM_KEYS.items()}
    series["bare_ms"] = bare_ms
    for name, times in series.items():
        times = sorted(at for at in times if at is not None)
        if times:
            at = lambda share: times[max(0, math.ceil(share * len(times)) - 1)]
            found[name] = {"p50": at(0.5), "p99": at(0.99), "max": times[-1]}
    return found


def main() -> int:
    args = arguments()
    before_others(0)
    found = []
    columns = "from | pages | GiB | busy | reclaims | first p50 ms | p99 | max | all p50 ms | p99 | max | by memoryd's log first p50 ms | p99 | max | all p50 ms | p99 | max | bare madvise p50 ms | p99 | max | stolen ms | unclear"
    print(f"| {columns} |\n|{' --- |' * len(columns.split('|'))}", flush=True)
    for is_real in (False, True) if args.agent else (False,):
        for pages in args.pages[:1] if is_real else args.pages:
            for busy in args.busy:
                for gib in args.sizes:
                    row = run(args, pages, gib, busy, args.presses if is_real else args.trials, is_real)
                    found.append(row)
                    times = [f"{row[key][at]:.2f}" if key in row else "" for key in KEYS for at in ("p50", "p99", "max")]
                    cells = [row["from"], pages, gib, busy, row["trials"], *times, row["stolen_ms"], row["unclear"]]
                    print(f"| {' | '.join(map(str, cells))} |", flush=True)
                    if args.json:
                        args.json.parent.mkdir(parents=True, exist_ok=True)
                        args.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
