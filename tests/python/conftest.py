"""The installed wheel, the program that it must equal, and a synthetic dataset for both."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import gleaner
import pyarrow as pa
import pyarrow.dataset
import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
# The package under test is the wheel's, and not the checkout's.
assert not Path(gleaner.__file__).is_relative_to(CHECKOUT / "python"), gleaner.__file__

Command = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="session")
def program() -> Command:
    """Runs the built program `gleaner`."""
    folder = os.environ.get("GLEANER_PROGRAMS")
    if not folder:
        pytest.fail("GLEANER_PROGRAMS is not set: name the folder of the built programs")
    path = Path(folder).resolve() / "gleaner"
    return lambda *args: subprocess.run([path, *args], capture_output=True, timeout=300)


@pytest.fixture(scope="session")
def printed(program) -> Callable[..., str]:
    """Output of the program, which must succeed."""

    def run(*args) -> str:
        ended = program(*args)
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout.decode()

    return run


@pytest.fixture(scope="session")
def dataset(tmp_path_factory) -> gleaner.Dataset:
    """Three days of nine synthetic hosts."""
    folder = tmp_path_factory.mktemp("python") / "dataset"
    return gleaner.synth(folder, hosts=9, days=3, interval="10m", start="2026-11-16")


def folder_of(dataset: gleaner.Dataset, table: str) -> pyarrow.dataset.Dataset:
    """A table's folder, opened by pyarrow alone."""
    date = pyarrow.dataset.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
    return pyarrow.dataset.dataset(dataset.path / table, format="ipc", partitioning=date)
