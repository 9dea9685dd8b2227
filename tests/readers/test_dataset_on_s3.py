"""Commands that read a dataset from an object store (moto's S3), beside the same commands on a folder."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from object_store import PATIENCE_S, s3, wait_for

PLACE = "s3://traces/site=east"
FLEET = ["--hosts", "5", "--days", "8", "--interval", "10m", "--start", "2026-11-16", "--always-on"]


def environment(endpoint: str) -> dict[str, str]:
    credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | credentials | {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}


@dataclass(frozen=True)
class Stored:
    """A dataset in a folder, and its copy on an object store."""

    here: Path
    endpoint: str
    program: Path

    def request(self, method: str, path: str, content: bytes | None = None) -> None:
        # moto only checks that there is a signature, not that it is right. It would read a body of urllib's default
        # type as a form.
        address = f"{self.endpoint}/{quote(path)}"
        headers = {"Authorization": "AWS test:", "Content-Type": "application/octet-stream"}
        urllib.request.urlopen(urllib.request.Request(address, content, headers, method=method)).close()

    def upload(self, prefix: str) -> str:
        """Copies the dataset to the bucket; returns the copy's URL."""
        for path in [self.here / "manifest.json", *self.here.glob("*/*/*.arrow")]:
            self.request("PUT", f"traces/{prefix}/{path.relative_to(self.here)}", path.read_bytes())
        return f"s3://traces/{prefix}"

    def run(self, *args, **more: str) -> subprocess.CompletedProcess:
        command = [self.program, *args]
        return subprocess.run(command, capture_output=True, timeout=300, env=environment(self.endpoint) | more)

    def output(self, *args) -> bytes:
        ended = self.run(*args)
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout

    def failure(self, *args, **more: str) -> str:
        ended = self.run(*args, **more)
        assert ended.returncode == 1, ended.stdout.decode() + ended.stderr.decode()
        return ended.stderr.decode()


@pytest.fixture(scope="module")
def stored(programs, gleaner, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    gleaner("synth", "-o", folder / "dataset", *FLEET)
    with s3(folder) as endpoint:
        stored = Stored(folder / "dataset", endpoint, programs / "gleaner")
        stored.request("PUT", "traces")
        assert stored.upload("site=east") == PLACE
        yield stored


def test_analyses_have_the_same_bytes(stored, tmp_path):
    whole = stored.output("analyze", stored.here, "--json")
    assert stored.output("analyze", PLACE, "--json") == whole
    assert stored.output("analyze", f"file://{stored.here}", "--json") == whole
    span = ["--from", "2026-11-18T06:00:00Z", "--until", "2026-11-20", "--measure", "dips"]
    assert stored.output("analyze", PLACE, *span) == stored.output("analyze", stored.here, *span)
    plan = tmp_path / "plan"
    plan.write_bytes(stored.output("analyze", PLACE, "--print-plan"))
    assert plan.read_bytes() == stored.output("analyze", stored.here, "--print-plan")
    parts = [tmp_path / str(part) for part in (1, 2, 3)]
    stored.output("analyze", PLACE, "--plan", plan, "--part", "1/3", "-o", parts[0])
    stored.output("analyze", stored.here, "--plan", plan, "--part", "2/3", "-o", parts[1])
    stored.output("analyze", PLACE, "--part", "3/3", "-o", parts[2])
    assert stored.output("merge", *parts, "--json") == whole


def test_explain_report_and_exports_have_the_same_results(stored, tmp_path):
    findings = stored.output("analyze", stored.here, "--measure", "hosts", "--rows", "1").decode()
    host = next(word for word in findings.split() if len(word) == 32 and word.isalnum())
    for options in (["--host", host], ["--host", host, "--at", "2026-11-18T12:00:00Z", "--json"]):
        assert stored.output("explain", PLACE, *options) == stored.output("explain", stored.here, *options)
    folders = {}
    for name, dataset in {"here": stored.here, "there": PLACE}.items():
        folders[name] = tmp_path / name
        folders[name].mkdir()
        stored.output("report", dataset, "-o", folders[name] / "page.html", "--also", "csv")
        (folders[name] / "page.html").unlink()  # it has the time at which it was made
        stored.output("export", dataset, "--to", "csv", "-o", folders[name] / "csv", "--host", host)
        sizes = ["--region", "1GiB", "--as", "csv"]
        stored.output("export", dataset, "--to", "availability", *sizes, "-o", folders[name] / "available")
    here, there = map(contents, folders.values())
    assert len(here) > 20
    assert here == there


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_simulation_has_the_same_rows(stored):
    options = ["--days", "0.1", "--program", "lu", "--seed", "1", "--json", "-"]
    here = stored.output("simulate", "headroom", "--dataset", f"lab={stored.here}", *options)
    assert stored.output("simulate", "headroom", "--dataset", f"lab={PLACE}", *options) == here


def test_commands_that_need_a_folder_refuse_a_url(stored, tmp_path):
    for command in (
        ["export", PLACE, "--to", "iceberg", "-o", tmp_path / "tables"],
        ["synth", "-o", PLACE, "--hosts", "1", "--days", "1"],
    ):
        said = stored.failure(*command)
        assert f"{PLACE} is no folder" in said and "copy the dataset" in said, said
    assert not Path("s3:").exists()
    collector = stored.program.with_name("gleaner-collector")
    for command in ("verify", "repair"):
        ended = subprocess.run([collector, command, PLACE], capture_output=True, timeout=60)
        assert ended.returncode != 0
        assert f"{PLACE} is no folder" in ended.stderr.decode(), ended.stderr.decode()


def test_places_without_a_dataset_are_named(stored):
    said = stored.failure("analyze", "s3://nobucket/east")
    assert "cannot list s3://nobucket/east/manifests" in said and "NoSuchBucket" in said, said
    said = stored.failure("analyze", "s3://traces/west")
    assert "not a dataset: no manifest.json in s3://traces/west" in said, said
    assert "neither s3://bucket/prefix nor file:///folder" in stored.failure("analyze", "gs://traces/east")
    assert "https" in stored.failure("analyze", PLACE, AWS_ALLOW_HTTP="false")


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def test_faults_of_objects_are_named(stored):
    files = sorted(stored.here.glob("samples/*/*.arrow"))
    for name, changed, expected in (
        ("removed", None, "does not exist"),
        ("empty", lambda content: b"", "is torn: 0 bytes instead of"),
        ("torn", lambda content: content[: len(content) // 2], "is torn"),
        ("flipped", lambda content: flipped(content, len(content) // 2), "was altered"),
        ("footer", lambda content: flipped(content, len(content) - 99), "was altered"),
    ):
        url, path = stored.upload(name), files[2].relative_to(stored.here)
        if changed:
            stored.request("PUT", f"traces/{name}/{path}", changed(files[2].read_bytes()))
        else:
            stored.request("DELETE", f"traces/{name}/{path}")
        said = stored.failure("analyze", url, "--json")
        assert f"{url}/{path} {expected}" in said, said
    manifest = (stored.here / "manifest.json").read_bytes()
    stored.request("PUT", "traces/removed/manifest.json", manifest.replace(b'"rows": ', b'"rows": 1', 1))
    said = stored.failure("analyze", "s3://traces/removed")
    assert "s3://traces/removed/manifest.json was altered" in said, said


def test_wrong_credentials_are_refused_with_the_remedy(stored, tmp_path):
    with s3(tmp_path) as endpoint:
        refusing = Stored(stored.here, endpoint, stored.program)
        refusing.request("PUT", "traces")
        # From now on moto checks keys: it knows none.
        address, text = f"{endpoint}/moto-api/reset-auth", {"Content-Type": "text/plain"}
        urllib.request.urlopen(urllib.request.Request(address, b"0", text, method="POST")).close()
        said = refusing.failure("analyze", PLACE)
        assert PLACE in said and "AWS_ACCESS_KEY_ID" in said and "AWS_SKIP_SIGNATURE" in said, said


def test_a_store_that_dies_ends_the_analysis(stored, tmp_path):
    """The server is killed while the files are being read: an error, not a hang."""
    moto, log = Path(sys.executable).with_name("moto_server"), tmp_path / "moto.log"
    with log.open("wb") as said, subprocess.Popen([moto, "-H", "127.0.0.1", "-p", "0"], stderr=said) as server:
        try:
            address = re.compile(r"Running on (http://\S+)")
            endpoint = wait_for("moto", log, lambda: address.search(log.read_text()))[1]
            dying = Stored(stored.here, endpoint, stored.program)
            dying.request("PUT", "traces")
            url = dying.upload("site=east")
            command = [dying.program, "analyze", url, "--json"]
            streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
            with subprocess.Popen(command, env=environment(endpoint), **streams) as analysis:
                begun, fetched = time.monotonic(), re.compile(r"GET /traces/\S+\.arrow")
                while not fetched.search(log.read_text()):
                    assert time.monotonic() - begun < PATIENCE_S and analysis.poll() is None
                server.send_signal(signal.SIGKILL)
                failed = analysis.communicate(timeout=300)[1].decode()
            assert analysis.returncode == 1 and f"cannot read {url}/" in failed, failed
        finally:
            server.kill()
