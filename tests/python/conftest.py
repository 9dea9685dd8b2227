"""The installed wheel, the program that it must equal, and a synthetic dataset for both."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gleaner
import pyarrow as pa
import pyarrow.dataset
import pytest
from pyspark.sql import SparkSession

CHECKOUT = Path(__file__).resolve().parents[2]
# The package under test is the wheel's, and not the checkout's.
assert not Path(gleaner.__file__).is_relative_to(CHECKOUT / "python"), gleaner.__file__

JARS = CHECKOUT / "target" / "python" / "jars"

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


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A cluster of two executors on this machine, with one core and 1 GiB each."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("gleaner")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.jars": ",".join(map(str, JARS.glob("*.jar"))),  # Iceberg's reader
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def folder_of(dataset: gleaner.Dataset, table: str) -> pyarrow.dataset.Dataset:
    """A table's folder, opened by pyarrow alone."""
    date = pyarrow.dataset.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
    return pyarrow.dataset.dataset(dataset.path / table, format="ipc", partitioning=date)
