"""Time that a process waits for its memory map while its smaps_rollup is read, at the largest size that the agent reads."""

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

#: Maps this much memory in small pages, and then maps and unmaps one page repeatedly; each turn takes the
#: lock of its memory map. Prints its median and longest turn, first without and then with a reader.
VICTIM = """
import mmap, sys, time
rss_bytes = lambda: int(open("/proc/self/statm").read().split()[1]) * mmap.PAGESIZE
held = mmap.mmap(-1, int(sys.argv[1]) - rss_bytes(), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(0, len(held), mmap.PAGESIZE):
    held[at] = 1
for phase in range(2):
    print("phase", rss_bytes(), flush=True)
    turns = []
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        begun = time.perf_counter_ns()
        mmap.mmap(-1, mmap.PAGESIZE).close()
        turns.append(time.perf_counter_ns() - begun)
        time.sleep(0.0005)
    turns.sort()
    print(turns[len(turns) // 2], turns[-1], flush=True)
"""


@dataclass(frozen=True)
class Hold:
    """Figures of one process, in microseconds."""

    rss_bytes: int
    reads: int
    read_us_median: float
    read_us_most: float
    #: Longest turn of mapping and unmapping one page, without and with a reader.
    turn_us_alone: float
    turn_us_read: float

    def markdown(self) -> str:
        return (
            f"`smaps_rollup` of a process of {self.rss_bytes / 2**20:.0f} MiB (small pages), {self.reads} readings: "
            f"{self.read_us_median:,.0f} µs (median), {self.read_us_most:,.0f} µs at most. Longest turn of that process's own "
            f"mmap and munmap meanwhile: {self.turn_us_read:,.0f} µs; without a reader {self.turn_us_alone:,.0f} µs.\n"
        )


def largest_bytes(root: Path) -> int:
    """The agent's size limit for reading smaps_rollup."""
    text = (root / "agent/src/sample/proportional.rs").read_text()
    found = re.search(r"LARGEST_BYTES: u64 = (\d+) << 20", text)
    if not found:
        raise RuntimeError("agent/src/sample/proportional.rs: no LARGEST_BYTES in MiB")
    return int(found.group(1)) << 20


def measure(size_bytes: int, seconds: float = 10.0) -> Hold:
    command = [sys.executable, "-c", VICTIM, str(size_bytes), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
        try:
            alone = [expect(victim, "phase"), expect(victim, "")][1]
            rss_bytes = int(expect(victim, "phase")[1])
            rollup = Path(f"/proc/{victim.pid}/smaps_rollup")
            took_us = []
            until = time.monotonic() + 0.9 * seconds
            while time.monotonic() < until:
                begun = time.perf_counter_ns()
                rollup.read_bytes()
                took_us.append((time.perf_counter_ns() - begun) / 1000)
                time.sleep(0.02)
            read = expect(victim, "")
        finally:
            victim.kill()
    took_us.sort()
    return Hold(
        rss_bytes=rss_bytes,
        reads=len(took_us),
        read_us_median=took_us[len(took_us) // 2],
        read_us_most=took_us[-1],
        turn_us_alone=int(alone[1]) / 1000,
        turn_us_read=int(read[1]) / 1000,
    )


def expect(victim: subprocess.Popen, word: str) -> list[str]:
    line = victim.stdout.readline().split()
    if len(line) != 2 or (word and line[0] != word):
        raise RuntimeError(f"the process to be read said {line}")
    return line
