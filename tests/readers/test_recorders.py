"""This machine's recordings by sysstat and PCP, imported, compared with `gleaner-agent`'s samples of the same time."""

import json
import os
import sqlite3
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow.dataset
import pytest
from recorders import PATIENCE_S, Pcp, Sysstat, ends

SAMPLES = 10
#: sadc truncates times to seconds, and both read some time after their row's time: the agent's samples within this
#: distance enclose a reading.
ASIDE_MS = 1500
#: Distance that a figure may be outside, relative to itself and to physical memory, and in what share of the rows it must be
#: within. Memory changes between two of the agent's samples, and constantly so where programs are built.
CLOSE_SHARE, CLOSE_BYTES, CLOSE_ROWS = 0.02, 256 << 10, 0.5
NEAR_SHARE, NEAR_ROWS = 0.02, 0.8

SAME = ["mem_total_bytes", "swap_total_bytes", "hugetlb_bytes"]
#: Values that change from one moment to the next, so that nothing encloses them.
FICKLE = ["running_tasks_count", "tasks_count", "dirty_bytes", "writeback_bytes"]
MADE = ["boot_id", "boottime_ms", "interval_ms", "is_complete_state", "physical_bytes", "available_bytes", "harvestable_bytes"]


@dataclass(frozen=True)
class Seen:
    """Datasets of the same seconds, and paths of the recorders' files."""

    agent: Path
    sysstat: Path
    pcp: Path
    binary: Path
    archive: Path
    environment: dict
    told: dict


def import_(programs: Path, source: str, *args, environment: dict, succeeds: bool = True) -> str:
    command = [programs / "gleaner", "import", source, *args]
    ended = subprocess.run(command, capture_output=True, timeout=300, env=os.environ | environment)
    assert (ended.returncode == 0) == succeeds, ended.stderr.decode()
    return (ended.stdout if succeeds else ended.stderr).decode()


def rows(dataset: Path, table: str) -> list[dict]:
    files = pyarrow.dataset.dataset(
        dataset / table, format="ipc", partitioning=pyarrow.dataset.partitioning(flavor="hive")
    )
    return files.to_table().drop_columns("date").sort_by([("time", "ascending")]).to_pylist()


def ms(row: dict) -> int:
    return round(row["time"].timestamp() * 1000)


def wait_until_sampled(trace: Path, time_ms: float) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True)) as database:
            try:
                [[newest]] = database.execute("SELECT max(time_ms) FROM samples")
            except sqlite3.OperationalError:
                newest = None  # not created yet
        if newest and newest > time_ms:
            return
        time.sleep(0.1)
    raise AssertionError("the agent takes no samples")


@pytest.fixture(scope="module")
def seen(programs, tmp_path_factory) -> Seen:
    folder = tmp_path_factory.mktemp("recorders")
    trace, agent = folder / "trace.db", folder / "agent"
    (folder / "agent.toml").write_text("")
    settings = ["--config", folder / "agent.toml", "--database", trace]
    run = [programs / "gleaner-agent", "run", "--sample-interval", "500ms", "--socket", "none", *settings]
    sysstat = Sysstat(folder)
    trace.touch()
    with Pcp(folder) as pcp, (folder / "agent.log").open("w") as log:
        sampler = subprocess.Popen(run, stdin=subprocess.DEVNULL, stderr=log, stdout=log)
        try:
            wait_until_sampled(trace, 0)
            first = sysstat.record(SAMPLES), pcp.record(SAMPLES, "first")
            ends(first[0], sysstat.log), ends(first[1], pcp.log)
            sysstat.restart()
            pcp.restart()
            second = sysstat.record(SAMPLES), pcp.record(SAMPLES, "second")
            ends(second[0], sysstat.log), ends(second[1], pcp.log)
            wait_until_sampled(trace, time.time() * 1000 + ASIDE_MS)
        finally:
            sampler.terminate()
            sampler.wait(PATIENCE_S)
        assert sampler.returncode == 0, (folder / "agent.log").read_text()
        archive = pcp.together("first", "second", into="20261121.00.10")
    subprocess.run([programs / "gleaner-agent", "export", *settings, agent], check=True, timeout=300)
    (folder / "json").mkdir()
    (folder / "json" / "sa21.json").write_bytes(sysstat.json())
    told = {}
    for source, path in [("sysstat", folder / "json"), ("pcp", archive)]:
        dataset = folder / f"of-{source}"
        told[source] = json.loads(
            import_(programs, source, path, "-o", dataset, "--json", environment=pcp.environment)
        )
    datasets = folder / "of-sysstat", folder / "of-pcp"
    return Seen(agent, *datasets, sysstat.file, archive, pcp.environment, told)


@pytest.fixture(params=["sysstat", "pcp"])
def source(request) -> str:
    return request.param


def enclosed(seen: Seen, source: str) -> list[tuple[dict, list[dict]]]:
    """Imported rows, each with the agent's samples from just before to just after it."""
    agent = rows(seen.agent, "samples")
    found = []
    for row in rows(getattr(seen, source), "samples"):
        before = [at for at, sample in enumerate(agent) if ms(sample) <= ms(row) - ASIDE_MS]
        after = [at for at, sample in enumerate(agent) if ms(sample) >= ms(row) + ASIDE_MS]
        if before and after:
            found.append((row, agent[before[-1] : after[0] + 1]))
    assert len(found) >= SAMPLES
    return found


def test_what_never_changes_is_what_the_agent_says(seen, source):
    for row, around in enclosed(seen, source):
        for column in SAME:
            assert {sample[column] for sample in around} == {row[column]}, column
        assert row["physical_bytes"] == row["mem_total_bytes"]
        assert row["available_bytes"] == row["mem_available_bytes"]
        headroom = int(row["physical_bytes"] * 0.15)
        assert row["harvestable_bytes"] == max(0, row["available_bytes"] - headroom)
        if source == "pcp":
            booted, agent_booted = (ms(r) - r["boottime_ms"] for r in (row, around[0]))
            assert abs(booted - agent_booted) < 2000
    [imported, *_], [agent, *_] = rows(getattr(seen, source), "hosts"), rows(seen.agent, "hosts")
    for column in ("kernel_release", "architecture", "cpus_count", "headroom_share"):
        assert imported[column] == agent[column], column
    assert imported["host_name"].split(".")[0] == agent["host_name"].split(".")[0]
    assert imported["page_size_bytes"] == (agent["page_size_bytes"] if source == "pcp" else None)


def test_what_changes_lies_between_what_the_agent_saw_before_and_after(seen, source, gleaner):
    filled = json.loads(gleaner("import", source, "--columns", "--json"))["columns"]
    pairs = enclosed(seen, source)
    compared = set()
    for column in (c["column"] for c in filled if c["table"] == "samples"):
        if column in MADE + SAME:
            continue
        known = [(row[column], [sample[column] for sample in around]) for row, around in pairs]
        if all(value is None for value, _ in known):
            continue  # this version lacks it
        compared.add(column)
        assert all(value is not None and None not in around for value, around in known), column
        if column in FICKLE:
            assert all(0 <= value for value, _ in known), column
            continue
        away = [max(min(around) - value, value - max(around), 0) for value, around in known]
        if column.endswith(("_total_us", "_total_count", "_total_pages")) or column.startswith("load"):
            assert max(away) == 0, f"{column}: {known}"
            continue
        near = [far <= NEAR_SHARE * pairs[0][0]["physical_bytes"] for far in away]
        assert sum(near) >= NEAR_ROWS * len(near), f"{column}: {known}"
        close = [far <= CLOSE_SHARE * value + CLOSE_BYTES for far, (value, _) in zip(away, known, strict=True)]
        assert sum(close) >= CLOSE_ROWS * len(close), f"{column}: {known}"
    wanted = {"mem_available_bytes", "mem_free_bytes", "cached_bytes", "anon_bytes", "slab_bytes", "vmalloc_bytes"}
    wanted |= {"load1", "load5", "load15", "tasks_count", "swap_free_bytes", "kernel_stack_bytes"}
    if source == "pcp":
        wanted |= {"psi_memory_some_total_us", "major_fault_total_count", "mapped_bytes", "active_file_bytes"}
    assert wanted <= compared


def test_where_recording_stopped_is_a_gap_with_its_cause(seen, source):
    [gap] = rows(getattr(seen, source), "gaps")
    assert gap["cause"] == {"sysstat": "boot", "pcp": "stopped"}[source]
    samples = rows(getattr(seen, source), "samples")
    [after] = [at for at, row in enumerate(samples) if ms(row) == gap["to_time_ms"]]
    assert ms(samples[after - 1]) == gap["from_time_ms"]
    steps = [ms(b) - ms(a) for a, b in zip(samples, samples[1:], strict=False)]
    for at, step in enumerate(steps, 1):
        if at == after or step > 2500:
            assert samples[at]["interval_ms"] is None
        elif step < 1900:
            assert samples[at]["interval_ms"] == step
    total = seen.told[source]["total"]
    assert total["unreadable_count"] == total["without_memory_count"] == 0
    assert total["samples_count"] == len(samples)


def test_binary_files_are_read_and_nothing_is_imported_twice(seen, programs):
    files = ["sysstat", seen.binary, "-o", seen.sysstat, "--json"]
    told = json.loads(import_(programs, *files, environment=seen.environment))
    assert told["total"] == seen.told["sysstat"]["total"]
    assert (told["new_rows_count"], told["existing_rows_count"]) == (0, seen.told["sysstat"]["new_rows_count"])
    for name in (f"{seen.archive}.meta", f"{seen.archive}.0"):
        files = ["pcp", name, "-o", seen.pcp, "--json"]
        told = json.loads(import_(programs, *files, environment=seen.environment))
        assert (told["new_rows_count"], told["existing_rows_count"]) == (0, seen.told["pcp"]["new_rows_count"])


def test_local_times_are_read_in_their_time_zone(seen, programs, tmp_path):
    local = Sysstat(seen.binary.parent).json("-T", zone="Europe/Paris")
    (tmp_path / "local.json").write_bytes(local)
    files = ["sysstat", tmp_path / "local.json", "-o", seen.sysstat, "--json"]
    said = import_(programs, *files, environment=seen.environment, succeeds=False)
    assert "local.json: its times are local" in said and "--time-zone" in said
    told = json.loads(import_(programs, *files, "--time-zone", "Europe/Paris", environment=seen.environment))
    assert (told["new_rows_count"], told["existing_rows_count"]) == (0, seen.told["sysstat"]["new_rows_count"])


def test_what_cannot_be_read_is_said_with_what_to_do(seen, programs, tmp_path):
    dataset = ["-o", tmp_path / "dataset"]
    cut, other = tmp_path / "sa01", tmp_path / "other"
    cut.write_bytes(seen.binary.read_bytes()[:300])
    for ending in (".meta", ".index", ".0"):
        Path(f"{other}{ending}").write_bytes(b"\x96 no archive")
    nowhere, there = seen.environment | {"PATH": str(tmp_path)}, seen.environment
    for args, environment, parts in [
        (["sysstat", seen.binary], nowhere, [str(seen.binary), "sadf, which is not on the PATH", "package sysstat"]),
        (["pcp", seen.archive], nowhere, [str(seen.archive), "pmlogdump or pmdumplog", "Debian's package pcp"]),
        (["sysstat", cut], there, [str(cut), "cannot be read; sadf: "]),
        (["pcp", other], there, [str(other), "cannot be read; pmdumplog: Cannot open archive"]),
        (["pcp", tmp_path / "none"], there, ["none cannot be read", "No such file or directory"]),
        (["sysstat", tmp_path / "none"], there, ["cannot open", "none: No such file or directory"]),
    ]:
        said = import_(programs, *args, *dataset, environment=environment, succeeds=False)
        for part in parts:
            assert part in said, said
    assert not (tmp_path / "dataset").exists()


def test_a_torn_archive_is_taken_as_far_as_it_goes(seen, programs, tmp_path):
    for ending in (".meta", ".0"):
        whole = Path(f"{seen.archive}{ending}").read_bytes()
        (tmp_path / f"torn{ending}").write_bytes(whole if ending == ".meta" else whole[: len(whole) * 3 // 4])
    files = ["pcp", tmp_path, "-o", tmp_path / "dataset", "--json"]
    told = json.loads(import_(programs, *files, environment=seen.environment))
    [machine] = told["machines"]
    assert machine["unreadable_count"] == 1 and "torn: cut short: pmdumplog: " in machine["first_unreadable"]
    assert 0 < machine["samples_count"] < seen.told["pcp"]["total"]["samples_count"]
