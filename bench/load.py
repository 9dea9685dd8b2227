"""The load during the benches: sleeping processes, and busy ones whose memory and files are known."""

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: Uses a fifth of a CPU and touches 20 MiB: active in every sample, and leaves CPU time for the
#: tracers. Holds one file open and maps another, and reads both, so that their pages stay in the
#: cache.
BUSY = """
import mmap, os, sys, time
parent, held, mapped = int(sys.argv[1]), open(sys.argv[2], "rb"), open(sys.argv[3], "rb")
pages = mmap.mmap(mapped.fileno(), 0, access=mmap.ACCESS_READ)
mapped.close()
memory = bytearray(os.urandom(20 << 20))
print("ready", flush=True)
while os.getppid() == parent:
    os.pread(held.fileno(), 1 << 20, 0)
    until = time.process_time() + 0.02
    while time.process_time() < until:
        memory[::4096] = memory[::4096]
        pages[::4096]
    time.sleep(0.08)
"""

HELD_BYTES = 64 << 10
MAPPED_BYTES = 256 << 10


@dataclass(frozen=True)
class Busy:
    """One busy process, and the files that a trace must show with it."""

    pid: int
    held: Path
    mapped: Path


@contextmanager
def load(folder: Path, asleep: int, busy: int, seconds: float):
    """Starts the load and yields its busy processes. Its files are in `folder`, which must not be on tmpfs, whose
    files count as shared memory. The processes are ended by pid, and end by themselves if this program dies."""
    folder.mkdir(parents=True, exist_ok=True)
    sleeping = ["sleep", str(int(seconds) + 600)]
    children: list[subprocess.Popen] = []
    started: list[Busy] = []
    try:
        for _ in range(asleep):
            children.append(subprocess.Popen(sleeping, stdin=subprocess.DEVNULL))
        for number in range(busy):
            held, mapped = folder.absolute() / f"held-{number}", folder.absolute() / f"mapped-{number}"
            held.write_bytes(os.urandom(HELD_BYTES))
            mapped.write_bytes(os.urandom(MAPPED_BYTES))
            command = [sys.executable, "-c", BUSY, str(os.getpid()), str(held), str(mapped)]
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            children.append(child)
            started.append(Busy(child.pid, held, mapped))
        for child in children[asleep:]:
            if child.stdout.readline() != b"ready\n":
                raise RuntimeError("a busy process of the load ended at once")
        yield started
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()
        for process in started:
            process.held.unlink(missing_ok=True)
            process.mapped.unlink(missing_ok=True)
