"""The recruiter's HTTP API, used by tools that know only its OpenAPI document, and by a real Prometheus."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import CHECKOUT
from prometheus import Server
from recruiter import GIB, PATIENCE_S, SLAB, Recruiter

HOSTS = 4


@pytest.fixture(scope="module")
def recruiter(programs, tmp_path_factory):
    with Recruiter(programs, tmp_path_factory.mktemp("recruiter"), HOSTS) as recruiter:
        yield recruiter


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_schemathesis_finds_no_fault(recruiter, seed, tmp_path):
    """Every operation with valid and invalid data, and sequences of operations."""
    command = [Path(sys.executable).with_name("schemathesis"), "--config-file", CHECKOUT / "tests/readers/schemathesis.toml"]
    command += ["run", f"{recruiter.url}/openapi.json", "--seed", str(seed), "--max-examples", "50"]
    # An endless stream of events, which the recruiter's own tests cover.
    command += ["--exclude-path", "/v1/quotas/watch"]
    command += ["--request-timeout", str(PATIENCE_S), "--generation-database", "none", "--no-color"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    # Each kind of test must have run.
    for phase in ("Coverage", "Fuzzing", "Stateful"):
        assert f"✅  {phase}" in ended.stdout, ended.stdout
    assert recruiter.process.poll() is None
    assert len(recruiter.get("/v1/hosts")["hosts"]) == HOSTS


def test_a_client_written_from_the_document_alone_gets_renews_and_ends_a_lease(recruiter):
    paths = recruiter.get("/openapi.json")["paths"]
    assert set(paths["/v1/leases/{lease_id}"]) == {"get", "delete"}
    granted = recruiter.post("/v1/leases", {"bytes": 1, "key": "by hand", "copies": 2, "placement": "spread"})
    leases = granted["leases"]
    assert {lease["granted_bytes"] for lease in leases} == {SLAB}
    assert len({lease["host_id"] for lease in leases}) == 2
    for lease in leases:
        renewed = recruiter.post(f"/v1/leases/{lease['lease_id']}/renew", {"term_ms": 5000})
        assert renewed["expires_in_ms"] == 5000
        request = urllib.request.Request(f"{recruiter.url}/v1/leases/{lease['lease_id']}", method="DELETE")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            assert answer.status == 204


def test_a_refusal_says_what_why_and_when_to_come_again(recruiter):
    with pytest.raises(urllib.error.HTTPError) as refused:
        recruiter.post("/v1/leases", {"bytes": 1000 * GIB, "key": "too much"})
    answer = refused.value
    assert answer.code == 503 and answer.headers["Content-Type"] == "application/problem+json"
    problem = json.load(answer)
    assert problem["kind"] == "no_memory" and "1000.0 GiB" in problem["detail"]
    assert int(answer.headers["Retry-After"]) * 1000 >= problem["retry_in_ms"] > 0


def test_a_real_prometheus_scrapes_it(recruiter, tmp_path):
    recruiter.post("/v1/leases", {"bytes": GIB, "key": "scraped"})
    address = recruiter.url.removeprefix("http://")
    bin = CHECKOUT / "target" / "prometheus" / "usr" / "bin"
    with Server(bin, tmp_path, {"recruiter": address}) as prometheus:
        prometheus.wait_until("gleaner_recruiter_links", HOSTS)
        prometheus.wait_until("sum(gleaner_memoryd_lent_bytes)", GIB)
        prometheus.wait_until("gleaner_recruiter_grant_duration_seconds_count", 1)
        quotas = prometheus.query("gleaner_memoryd_quota_bytes")
        assert {q["metric"]["host_id"] for q in quotas} == {host.id for host in recruiter.hosts}
        [bucket] = prometheus.query('gleaner_recruiter_grant_duration_seconds_bucket{le="+Inf"}')
        assert float(bucket["value"][1]) >= 1
    with urllib.request.urlopen(f"{recruiter.url}/metrics", timeout=PATIENCE_S) as answer:
        text = older(answer.read().decode())
    promtool = [bin / "promtool", "check", "metrics"]
    checked = subprocess.run(promtool, input=text, text=True, capture_output=True, timeout=PATIENCE_S)
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout + checked.stderr


def older(openmetrics: str) -> str:
    """The metrics in the text format before OpenMetrics, the only one that promtool reads."""
    kinds = {"counter": ("_total", "counter"), "info": ("_info", "gauge")}
    found = {words[2]: words[3] for words in map(str.split, openmetrics.splitlines()) if words[:2] == ["#", "TYPE"]}
    lines = []
    for line in openmetrics.splitlines():
        words = line.split(" ", 3)
        if words[0] == "#" and len(words) == 4 and found.get(words[2]) in kinds:
            suffix, kind = kinds[found[words[2]]]
            line = " ".join([*words[:2], words[2] + suffix, kind if words[1] == "TYPE" else words[3]])
        if line != "# EOF":
            lines.append(line)
    return "\n".join(lines) + "\n"
