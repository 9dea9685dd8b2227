"""Datasets that the readers are tried on: the golden one, and one that this machine's agent wrote."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
GOLDEN = CHECKOUT / "dataset" / "golden"
VERSIONS = ("v1", "v2", "v3")


def published(version: str) -> dict:
    """Names, types, units of every table's columns."""
    return json.loads((CHECKOUT / "schemas" / "golden" / version / "arrow.json").read_text())


@dataclass(frozen=True)
class Dataset:
    """A dataset's folder and what its manifest says."""

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
        """As any user of pyarrow would: the folder, no word of a manifest."""
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
