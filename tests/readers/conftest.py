"""Datasets for the readers: the golden one, and one written by this machine's agent."""

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest
from collector import Collector

CHECKOUT = Path(__file__).resolve().parents[2]
GOLDEN = CHECKOUT / "dataset" / "golden"
VERSIONS = ("v1", "v2", "v3", "v4", "v5", "v6", "v7")


def published(version: str) -> dict:
    """Names, types and units of every table's columns."""
    return json.loads((CHECKOUT / "schemas" / "golden" / version / "arrow.json").read_text())


@dataclass(frozen=True)
class Dataset:
    """A dataset's folder and its manifest's contents."""

    root: Path
    manifest: dict

    @property
    def published(self) -> dict:
        return published(f"v{self.manifest['schema_version']}")

    @property
    def tables(self) -> list[str]:
        return sorted({file["table"] for file in self.manifest["files"]})

    def files(self, table: str) -> list[dict]:
        return [file for file in self.manifest["files"] if file["table"] == table]

    def rows(self, table: str) -> int:
        return sum(file["rows"] for file in self.files(table))

    def open(self, table: str) -> pyarrow.dataset.Dataset:
        """Opens the folder as a pyarrow user would, without the manifest."""
        date = pyarrow.dataset.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
        return pyarrow.dataset.dataset(self.root / table, format="ipc", partitioning=date)


def folder_from(variable: str) -> Path:
    folder = os.environ.get(variable)
    if not folder:
        pytest.fail(f"{variable} is not set: name the folder to test (tests/readers/README.md)")
    return Path(folder)


@pytest.fixture(params=[*VERSIONS, "GLEANER_DATASET"])
def dataset(request) -> Dataset:
    golden = request.param in VERSIONS
    root = GOLDEN / request.param if golden else folder_from(request.param)
    return Dataset(root, json.loads((root / "manifest.json").read_text()))


@pytest.fixture
def traced() -> Dataset:
    root = folder_from("GLEANER_DATASET")
    return Dataset(root, json.loads((root / "manifest.json").read_text()))


@pytest.fixture
def parquet() -> Path:
    """The Parquet export of the dataset in GLEANER_DATASET."""
    return folder_from("GLEANER_PARQUET")


@pytest.fixture(scope="session")
def programs() -> Path:
    """Folder of the built programs."""
    return folder_from("GLEANER_PROGRAMS").resolve()


@pytest.fixture(scope="session")
def gleaner(programs) -> Callable[..., bytes]:
    """Runs the `gleaner` command, which must succeed; returns its output."""

    def run(*args) -> bytes:
        ended = subprocess.run([programs / "gleaner", *args], capture_output=True, timeout=300)
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout

    return run


@pytest.fixture(scope="session")
def imported(gleaner, tmp_path_factory) -> Path:
    """Dataset imported from the sample of the Bitbrains archive."""
    folder = tmp_path_factory.mktemp("imported")
    source, dataset = folder / "source", folder / "dataset"
    source.mkdir()
    for packed in (CHECKOUT / "tests" / "data" / "bitbrains").glob("*.csv.zst"):
        with pa.input_stream(packed, compression="zstd") as stream:
            (source / packed.stem).write_bytes(stream.read())
    gleaner("import", "bitbrains", source, "-o", dataset)
    return dataset


@dataclass(frozen=True)
class Served:
    """A collector, and the dataset that it serves."""

    collector: Collector
    root: Path

    @property
    def dataset(self) -> Dataset:
        return Dataset(self.root, json.loads((self.root / "manifest.json").read_text()))

    def stream(self, path: str) -> pa.RecordBatchReader:
        return pa.ipc.open_stream(self.collector.open(f"tables/{path}"))


@pytest.fixture(scope="session")
def shipped(programs, tmp_path_factory) -> Served:
    """The trace in GLEANER_TRACE, sent by `gleaner-agent ship`."""
    folder = tmp_path_factory.mktemp("shipped")
    trace = folder / "trace.db"
    with closing(sqlite3.connect(folder_from("GLEANER_TRACE"))) as traced:
        with closing(sqlite3.connect(trace)) as copy:
            traced.backup(copy)
    pki, config = folder / "pki", folder / "agent.toml"
    gleaner = programs / "gleaner"
    names = ["--name", "localhost", "--name", "127.0.0.1"]
    subprocess.run([gleaner, "pki", "init", pki, *names], check=True)
    more = f'listen = "127.0.0.1:0"\npki = "{pki}"\n'
    with Collector(programs, folder, more) as collector:
        config.write_text(f'database = "{trace}"\n[ship]\ncollector = "{collector.url}"\n')
        ship = [programs / "gleaner-agent", "--config", config, "ship", "--once"]
        subprocess.run(ship, check=True, timeout=300)
        collector.seal()
        yield Served(collector, collector.data / "dataset")


@pytest.fixture(scope="session")
def synthetic(programs, tmp_path_factory) -> Served:
    """Three synthetic hosts for two days."""
    folder = tmp_path_factory.mktemp("synthetic")
    root = folder / "dataset"
    size = ["--hosts", "3", "--days", "2", "--interval", "5m"]
    subprocess.run([programs / "gleaner", "synth", "-o", root, *size], check=True)
    with Collector(programs, folder, f'dataset = "{root}"') as collector:
        yield Served(collector, root)


@pytest.fixture(params=["shipped", "synthetic"])
def served(request) -> Served:
    return request.getfixturevalue(request.param)
