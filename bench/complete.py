"""Checks that a trace has everything that the load showed."""

import sqlite3
from pathlib import Path

from load import Busy


def faults(database: Path, samples: int, load: list[Busy]) -> list[str]:
    """Descriptions of what the trace of `samples` samples lacks; empty if it is complete.

    Files are identified by their paths, which requires a trace with privacy = "plain".
    """
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as trace:
        taken = [sequence for (sequence,) in trace.execute("SELECT sequence FROM samples ORDER BY 1")]
        found = []
        if len(taken) != samples:
            found.append(f"{len(taken)} samples instead of {samples}")
        for cause, milliseconds in trace.execute("SELECT cause, to_time_ms - from_time_ms FROM gaps"):
            found.append(f"a gap of {milliseconds} ms ({cause})")
        for sequence in taken:
            found += splits_missing(trace, sequence, load)
        (privacy,) = trace.execute("SELECT privacy FROM hosts").fetchone() or ("",)
        if privacy == "plain":
            found += files_missing(trace, taken, load)
        return found


def splits_missing(trace: sqlite3.Connection, sequence: int, load: list[Busy]) -> list[str]:
    query = "SELECT pid, anon_bytes, file_bytes, shmem_bytes FROM processes WHERE sequence = ?"
    splits = {pid: split for pid, *split in trace.execute(query, (sequence,))}
    found = []
    for process in load:
        split = splits.get(process.pid)
        if split is None:
            found.append(f"record {sequence}: busy process {process.pid} is not there (or got no CPU: is the machine overloaded?)")
        elif None in split or not split[0] or not split[1]:
            found.append(f"record {sequence}: busy process {process.pid} has no memory split: {split}")
    return found


def files_missing(trace: sqlite3.Connection, taken: list[int], load: list[Busy]) -> list[str]:
    """Files of each sample, computed from the changes since the last complete state."""
    state: dict[str, tuple] = {}
    found = []
    for sequence in taken:
        (whole,) = trace.execute("SELECT is_complete_state FROM samples WHERE sequence = ?", (sequence,)).fetchone()
        if whole:
            state = {}
        query = "SELECT path, open_processes_count, mapping_processes_count, cached_bytes, mapped_cached_bytes FROM files WHERE sequence = ?"
        state |= {path: tuple(figures) for path, *figures in trace.execute(query, (sequence,))}
        for process in load:
            opened, _, cached, _ = state.get(str(process.held), (0, 0, None, None))
            if not opened or not cached:
                found.append(f"record {sequence}: {process.held} is open, and not there with its cached pages")
            _, mappers, cached, mapped_cached = state.get(str(process.mapped), (0, 0, None, None))
            if not mappers or not cached or not mapped_cached:
                found.append(f"record {sequence}: {process.mapped} is mapped, and not there with its cached pages")
    return found
