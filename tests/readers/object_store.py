"""Programs that end with a test; and an S3 server of moto on loopback."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

ENV = os.environ | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
PATIENCE_S = 90


@contextmanager
def running(command: list, log: Path):
    """A program that ends with the test; its output is in the log."""
    with log.open("wb") as said, subprocess.Popen(command, stderr=said, env=ENV) as process:
        try:
            yield
        finally:
            process.terminate()


def wait_for(what: str, log: Path, find):
    begin = time.monotonic()
    while time.monotonic() - begin < PATIENCE_S:
        if found := find():
            return found
        time.sleep(0.05)
    pytest.fail(f"waited too long for {what}: {log.read_text()}")


@contextmanager
def s3(folder: Path):
    """Address of an S3 server. It is a separate process: DuckDB holds Python's lock while it reads."""
    moto, log = Path(sys.executable).with_name("moto_server"), folder / "moto.log"
    with running([moto, "-H", "127.0.0.1", "-p", "0"], log):
        address = re.compile(r"Running on (http://\S+)")
        yield wait_for("moto", log, lambda: address.search(log.read_text()))[1]
