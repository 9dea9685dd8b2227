"""Requirements for following the book: the built programs, a disposable machine, and a synthetic dataset."""

import os
import subprocess
from datetime import date, timedelta
from pathlib import Path

import pytest
from machine import Machine
from pages import CHECKOUT


@pytest.fixture(scope="session")
def programs() -> Path:
    return Path(os.environ.get("GLEANER_PROGRAMS", CHECKOUT / "target" / "debug")).resolve()


@pytest.fixture
def machine(programs, tmp_path) -> Machine:
    return Machine(tmp_path, programs)


@pytest.fixture(scope="session")
def dataset(programs, tmp_path_factory) -> Path:
    """The dataset that pages call DATASET: more than two weeks of two hosts, until today."""
    folder = tmp_path_factory.mktemp("book") / "dataset"
    start = date.today() - timedelta(days=16)
    size = ["--hosts", "2", "--days", "17", "--interval", "30m", "--always-on", "--start", str(start)]
    subprocess.run([programs / "gleaner", "synth", "-o", folder, *size], check=True, capture_output=True)
    return folder
