"""`gleaner import prometheus` of this machine's metrics, compared with `gleaner-agent`'s samples of the same time."""

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest
from conftest import CHECKOUT
from prometheus import JOB, PATIENCE_S, Prometheus, started

BIN = CHECKOUT / "target" / "prometheus" / "usr" / "bin"
SCRAPES = 14
#: Number of missed scrapes: more than two intervals are a gap.
MISSED = 4
AFTER_MISSED = 4

#: Figures are read within a second after their row's time: the agent's samples within this distance before and after
#: enclose a scrape.
ASIDE_MS, FARTHEST_MS = 1000, 3500
#: Distance that a figure may be outside the agent's samples just before and after, and in what share of the scrapes it must be
#: within.
CLOSE_SHARE, CLOSE_BYTES, CLOSE_ROWS = 0.02, 64 << 10, 0.8
CLOSE_LOAD = 0.5

SAME = ["mem_total_bytes", "swap_total_bytes", "hugetlb_bytes"]
#: Values that change from one moment to the next, so that nothing encloses them.
FICKLE = ["running_tasks_count", "dirty_bytes", "writeback_bytes"]
#: Counts all tasks of the machine, or only those of visible processes.
TASKS = "tasks_count"
MADE = ["boot_id", "boottime_ms", "interval_ms", "is_complete_state", "physical_bytes", "available_bytes", "harvestable_bytes"]


def rows(dataset: Path, table: str) -> list[dict]:
    files = pyarrow.dataset.dataset(
        dataset / table, format="ipc", partitioning=pyarrow.dataset.partitioning(flavor="hive")
    )
    return files.to_table().drop_columns("date").sort_by([("time", "ascending")]).to_pylist()


def ms(row: dict) -> int:
    return round(row["time"].timestamp() * 1000)


@dataclass(frozen=True)
class Seen:
    """Datasets: the agent's, and imported in both ways; and the summaries of the imports."""

    agent: Path
    by_url: Path
    by_folder: Path
    told_by_url: dict
    told_by_folder: dict
    data: Path
    instance: str
    times: list[str]


def import_(programs: Path, *args, succeeds: bool = True, path: str = f"{BIN}:{os.environ['PATH']}") -> str:
    command = [programs / "gleaner", "import", "prometheus", *args]
    ended = subprocess.run(command, capture_output=True, timeout=300, env={**os.environ, "PATH": path})
    assert (ended.returncode == 0) == succeeds, ended.stderr.decode()
    return (ended.stdout if succeeds else ended.stderr).decode()


def listing(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def seen(programs, tmp_path_factory) -> Seen:
    folder = tmp_path_factory.mktemp("prometheus")
    trace, agent, by_url, by_folder = (folder / name for name in ("trace.db", "agent", "by_url", "by_folder"))
    (folder / "agent.toml").write_text("")
    settings = ["--config", folder / "agent.toml", "--database", trace, "--socket", "none"]
    run = [programs / "gleaner-agent", "run", "--sample-interval", "1s", *settings]
    up = f'sum_over_time(up{{job="{JOB}"}}[10m])'
    with Prometheus(BIN, folder) as prometheus:
        with (folder / "agent.log").open("w") as log:
            sampler = subprocess.Popen(run, stdin=subprocess.DEVNULL, stderr=log, stdout=log)
        try:
            prometheus.wait_until(up, SCRAPES)
            prometheus.fail_scrapes(MISSED)
            prometheus.wait_until(up, SCRAPES + AFTER_MISSED)
        finally:
            sampler.terminate()
            sampler.wait(PATIENCE_S)
        assert sampler.returncode == 0, (folder / "agent.log").read_text()
        # The current scrape may be in only one of the two.
        times = ["--until", str(int(time.time() * 1000) - 2000)]
        told_by_url = import_(programs, "--url", prometheus.url, *times, "--json", "-o", by_url)
        prometheus.stop()
        before = listing(prometheus.data)
        told_by_folder = import_(programs, prometheus.data, *times, "--json", "-o", by_folder)
        assert listing(prometheus.data) == before, "Prometheus' folder was written to"
        data, instance = prometheus.data, prometheus.instance
    subprocess.run([programs / "gleaner-agent", "export", *settings[:4], agent], check=True, timeout=300)
    told = [json.loads(text) for text in (told_by_url, told_by_folder)]
    return Seen(agent, by_url, by_folder, *told, data, instance, times)


def test_both_ways_give_the_same_rows(seen, programs):
    for table in ("samples", "hosts"):
        assert rows(seen.by_url, table) == rows(seen.by_folder, table)
        assert rows(seen.by_url, table)
    told = seen.told_by_url
    assert told["machines"] == seen.told_by_folder["machines"]
    assert [machine["machine"] for machine in told["machines"]] == [seen.instance]
    assert told["total"]["unreadable_count"] == told["total"]["without_memory_count"] == 0
    assert told["skipped_entries"] == ["127.0.0.1:1 (it has no node_memory_MemTotal_bytes)"]
    # Samples imported in one way are recognised in the other.
    again = json.loads(import_(programs, seen.data, *seen.times, "--json", "-o", seen.by_url))
    assert (again["new_rows_count"], again["existing_rows_count"]) == (0, told["new_rows_count"])


def test_failed_scrapes_are_a_gap_and_no_figures(seen):
    samples = rows(seen.by_url, "samples")
    steps = [ms(b) - ms(a) for a, b in zip(samples, samples[1:], strict=False)]
    [gap] = [at for at, step in enumerate(steps, 1) if samples[at]["interval_ms"] is None]
    assert steps[gap - 1] > MISSED * 1000
    assert all(row["interval_ms"] == step for row, step in zip(samples[1:], steps, strict=True) if row is not samples[gap])
    assert all(row["mem_total_bytes"] and row["mem_available_bytes"] for row in samples)
    assert len({row["boot_id"] for row in samples}) == 1


def enclosed(seen) -> list[tuple[dict, list[dict]]]:
    """Imported rows, each with the agent's samples from just before to just after it."""
    agent = rows(seen.agent, "samples")
    found = []
    for row in rows(seen.by_url, "samples"):
        around = [sample for sample in agent if abs(ms(sample) - ms(row)) <= FARTHEST_MS]
        before = [sample for sample in around if ms(sample) <= ms(row) - ASIDE_MS]
        after = [sample for sample in around if ms(sample) >= ms(row) + ASIDE_MS]
        if before and after:
            found.append((row, around))
    assert len(found) >= SCRAPES // 2
    return found


def test_what_never_changes_is_what_the_agent_says(seen):
    for row, around in enclosed(seen):
        for column in SAME:
            assert {sample[column] for sample in around} == {row[column]}, column
        assert row["physical_bytes"] == row["mem_total_bytes"]
        assert row["available_bytes"] == row["mem_available_bytes"]
        headroom = int(row["physical_bytes"] * 0.15)
        assert row["harvestable_bytes"] == max(0, row["available_bytes"] - headroom)
        booted, agent_booted = (ms(r) - r["boottime_ms"] for r in (row, around[0]))
        assert abs(booted - agent_booted) < 2000
    [imported, *_], [agent, *_] = rows(seen.by_url, "hosts"), rows(seen.agent, "hosts")
    for column in ("host_name", "kernel_release", "architecture", "cpus_count", "headroom_share"):
        assert imported[column] == agent[column], column
    assert imported["source"] == "Prometheus node_exporter"


def test_what_changes_lies_between_what_the_agent_saw_before_and_after(seen, gleaner):
    filled = json.loads(gleaner("import", "prometheus", "--columns", "--json"))["columns"]
    pairs = enclosed(seen)
    compared = set()
    for column in (c["column"] for c in filled if c["table"] == "samples"):
        if column in MADE + SAME:
            continue
        known = [(row[column], [sample[column] for sample in around]) for row, around in pairs]
        if all(value is None for value, _ in known):
            assert all(theirs is None for _, around in known for theirs in around) or column.startswith("arc"), column
            continue
        compared.add(column)
        assert all(value is not None and None not in around for value, around in known), column
        if column in FICKLE:
            continue
        away = [max(min(around) - value, value - max(around), 0) for value, around in known]
        if column.endswith(("_total_us", "_total_count", "_total_pages")):
            assert max(away) == 0, f"{column}: {known}"
        elif column.startswith("load"):
            assert max(away) <= CLOSE_LOAD, f"{column}: {known}"
        elif column == TASKS:
            assert all(0 < value <= 1.1 * max(around) + 10 for value, around in known), known
        else:
            close = [far <= CLOSE_SHARE * value + CLOSE_BYTES for far, (value, _) in zip(away, known, strict=True)]
            assert sum(close) >= CLOSE_ROWS * len(close), f"{column}: {known}"
    wanted = {"mem_available_bytes", "load5", "psi_memory_some_total_us", "major_fault_total_count", "swap_free_bytes"}
    assert wanted <= compared


def test_what_cannot_be_read_is_said_with_what_to_do(seen, programs, tmp_path):
    dataset = ["-o", tmp_path / "dataset"]
    empty = tmp_path / "empty"
    empty.mkdir()
    for args, path, parts in [
        ([seen.data], str(tmp_path), ["cannot run promtool", "Debian's package `prometheus`"]),
        ([empty], str(BIN), [str(empty), "neither a folder `wal` nor a block"]),
        ([seen.data, "--selector", '{job="nobody"}'], str(BIN), [str(seen.data), "no series node_memory_MemTotal"]),
        ([seen.data, "--selector", '{job="a[}'], str(BIN), ["promtool cannot read", "parse error"]),
        (["--url", "http://127.0.0.1:1"], str(BIN), ["http://127.0.0.1:1/api/v1", "see that Prometheus runs there"]),
    ]:
        said = import_(programs, *args, *dataset, succeeds=False, path=path)
        for part in parts:
            assert part in said, said
    assert not (tmp_path / "dataset").exists()


def test_a_server_with_a_certificate_is_believed_when_its_authority_is(programs, tmp_path):
    certificate, key, config = (tmp_path / name for name in ("certificate.pem", "key.pem", "prometheus.yml"))
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=prometheus"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE", "-out", certificate, "-keyout", key]
    subprocess.run([*make.split(), *names], check=True, capture_output=True, timeout=PATIENCE_S)
    config.write_text("")
    web = tmp_path / "web.yml"
    web.write_text(f"tls_server_config: {{cert_file: {certificate}, key_file: {key}}}")
    server = [BIN / "prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    process, address = started([*server, f"--web.config.file={web}"], tmp_path / "server.log")
    try:
        args = ["--url", f"https://{address}", "-o", tmp_path / "dataset"]
        said = import_(programs, *args, succeeds=False)
        assert f"cannot query https://{address}" in said and "certificate" in said, said
        deadline = time.monotonic() + PATIENCE_S
        while True:
            said = import_(programs, *args, "--ca", certificate, succeeds=False)
            if "answers 503" not in said or time.monotonic() > deadline:  # it listens before it is ready
                break
        assert "no series node_memory_MemTotal_bytes" in said, said
    finally:
        process.kill()
        process.wait()
