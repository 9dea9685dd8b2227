"""A dataset on an object store: S3 as emulated by moto, which tests/setup installs in the readers' environment."""

import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import gleaner
import pytest
from conftest import CHECKOUT
from gleaner import parts

URL = "s3://traces/gleaner"
PATIENCE_S = 90


def put(endpoint: str, path: str, content: bytes | None = None) -> None:
    # moto only checks that there is a signature, not that it is right.
    # A body of urllib's default type would be read as a form.
    headers = {"Authorization": "AWS test:", "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"{endpoint}/{quote(path)}", content, headers, method="PUT")
    urllib.request.urlopen(request).close()


def address(log: Path) -> str:
    begun = time.monotonic()
    while not (found := re.search(r"Running on (http://\S+)", log.read_text())):
        assert time.monotonic() - begun < PATIENCE_S, log.read_text()
        time.sleep(0.05)
    return found[1]


@pytest.fixture(scope="module")
def stored(dataset, tmp_path_factory) -> Iterator[gleaner.Dataset]:
    """The dataset's copy on S3."""
    log = tmp_path_factory.mktemp("store") / "moto.log"
    command = [CHECKOUT / ".venv/bin/moto_server", "-H", "127.0.0.1", "-p", "0"]
    with log.open("wb") as said, subprocess.Popen(command, stderr=said) as server, pytest.MonkeyPatch.context() as set:
        try:
            endpoint = address(log)
            put(endpoint, "traces")
            for path in [dataset.path / "manifest.json", *dataset.path.glob("*/*/*.arrow")]:
                put(endpoint, f"traces/gleaner/{path.relative_to(dataset.path)}", path.read_bytes())
            for name, value in {
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_ALLOW_HTTP": "true",
            }.items():
                set.setenv(name, value)
            yield gleaner.open(URL)
        finally:
            server.terminate()


def test_it_is_the_same_dataset(dataset, stored):
    assert (stored.path, os.fspath(stored), repr(stored)) == (URL, URL, f"gleaner.open({URL!r})")
    assert stored == gleaner.open(URL + "/") != dataset
    assert (stored.hosts(), stored.tables(), stored.span()) == (dataset.hosts(), dataset.tables(), dataset.span())


def test_tables_have_the_same_rows(dataset, stored):
    for name in dataset.tables():
        assert stored.table(name).arrow().equals(dataset.table(name).arrow()), name
    selected = {"hosts": dataset.hosts()[2:5], "from_": "2026-11-17", "columns": ["time", "mem_free_bytes"]}
    assert stored.table("samples", **selected).pandas().equals(dataset.table("samples", **selected).pandas())


def test_analyses_have_the_same_bytes(dataset, stored):
    options = {"region": "1GiB", "bootstrap": 50}
    whole = dataset.analyze(**options).json
    assert stored.analyze(**options).json == whole
    assert gleaner.analyze_in_parts(stored, 2, **options).json == whole
    assert [task[0] for task in parts.tasks(URL, 2, options)] == [URL, URL]
    host = dataset.hosts()[0]
    assert stored.explain(host).json == dataset.explain(host).json


def test_a_place_without_a_dataset_is_named(stored):
    with pytest.raises(gleaner.Error, match="no manifest.json in s3://traces/nothing"):
        gleaner.open("s3://traces/nothing")
    with pytest.raises(gleaner.Error, match="cannot list s3://nobucket/x/manifests"):
        gleaner.open("s3://nobucket/x")
