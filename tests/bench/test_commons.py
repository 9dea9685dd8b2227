"""bench/commons.py without root: policies on the command line, configurations by policy, equal memory under every policy, and what a wait in vain reports."""

import sys
import tomllib
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH)]

import commons  # noqa: E402
from commons_hosts import Site, host_id  # noqa: E402
from commons_lenders import RECRUITED, cap_mib, members, memory_server_keys, missing  # noqa: E402
from daemons import settings, wait_until_none  # noqa: E402

MIB = 1 << 20


@pytest.fixture
def site(tmp_path) -> Site:
    """Three workstations, none of which is started."""
    args = Namespace(programs=tmp_path, peer_timeout=None)
    return Site(args, tmp_path, SimpleNamespace(address="/data.catalog#0", folder=tmp_path), 3, None)


def config(site: Site, policy: str, folder: Path) -> dict:
    return tomllib.loads(site.config(1, policy, 26, 102, folder).read_text())


def status(**changed) -> dict:
    """Status of a service that takes part in a commons of three."""
    link = {"recruiter": "https://127.77.0.3:7444", "is_linked": True}
    found = {"links": [link], "leased_bytes": 64 * MIB, "quota_bytes": 138 * MIB, "epoch": {"number": 9, "targets": [[1, 5]]}}
    return {"peers": [{}, {}], "global": found | changed}


def test_policies_are_read_from_the_command_line(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["commons.py"])
    assert commons.arguments().policies == ["hash", "recruited-hash", "gms", "n-chance", "none"]
    monkeypatch.setattr(sys, "argv", ["commons.py", "--policies", "gms", "none", "--only", "get"])
    args = commons.arguments()
    assert (args.policies, args.only) == (["gms", "none"], ["get"])


def test_only_recruited_policies_have_the_recruiter_and_the_others_the_list_of_members(site, tmp_path):
    for policy in commons.POLICIES:
        keys = config(site, policy, tmp_path)
        assert keys["policy"] == policy.removeprefix("recruited-")
        assert ("recruiters" in keys, "members" in keys) == (policy in RECRUITED, policy not in RECRUITED)
    recruited, fixed = config(site, "gms", tmp_path), config(site, "hash", tmp_path)
    assert recruited["recruiters"] == ["https://127.77.0.3:7444"]
    assert [member.split("@")[0] for member in fixed["members"]] == [host_id(number) for number in range(3)]
    of_policy = {"policy", "recruiters", "members"}
    assert {key: recruited[key] for key in recruited.keys() - of_policy} == {key: fixed[key] for key in fixed.keys() - of_policy}


def test_a_memory_server_has_the_identity_and_the_recruiter_of_its_hosts_service(site, tmp_path):
    keys = tomllib.loads(settings(memory_server_keys(site, 1, 102, tmp_path / "agent.sock", tmp_path)))
    service = config(site, "gms", tmp_path)
    assert {key: keys[key] for key in site.identity(1)} == {key: service[key] for key in site.identity(1)}
    assert keys["recruiters"] == service["recruiters"]
    assert keys["pages_socket"] == str(tmp_path / "pages.sock")


def test_every_policy_divides_the_same_memory_into_whole_slabs():
    for memory_mib in (64, 128, 200):
        for share in (0.3, 0.5, 0.8):
            splits = {commons.split(policy, memory_mib, share) for policy in commons.POLICIES if policy != "none"}
            ((local_mib, hold_mib),) = splits
            assert local_mib + hold_mib == memory_mib and hold_mib % 2 == 0
            assert hold_mib == pytest.approx(memory_mib * share, abs=1)
    assert commons.split("none", 128, 0.8) == (128, 0)


def test_a_quota_lets_the_service_lease_its_part_and_little_more():
    for lease_mib in range(0, 1000, 2):
        quota_mib = cap_mib(lease_mib)
        assert quota_mib > 0 and quota_mib % 2 == 0
        # A commons leaves a quarter of the quota to other clients.
        assert lease_mib <= quota_mib - quota_mib // 4 <= lease_mib + 4


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, ""),
        ({"links": [{"recruiter": "https://r:1", "is_linked": False, "fault": "no route"}]}, "the link to https://r:1 (fault: no route)"),
        ({"leased_bytes": 0}, "a lease of its host's memory (quota: 144703488 bytes)"),
        ({"epoch": {"number": 8, "targets": [[1, 5]]}}, "weights of an epoch after 8: the last is 8"),
        ({"epoch": {"number": 9, "targets": []}}, "hosts for evicted blocks: epoch 9 names none"),
    ],
)
def test_a_service_is_ready_once_it_has_link_members_lease_and_weights(changed, words):
    assert missing(status(**changed), 2, True, True, 8) == words


def test_a_host_without_a_part_for_others_needs_no_lease_and_a_lonely_lender_no_targets():
    assert missing(status(leased_bytes=0), 2, False, True, 8) == ""
    assert missing(status(epoch={"number": 9, "targets": []}), 2, True, False, 8) == ""
    assert missing(status(), 3, True, True, None) == "the other members: 2 of 3 are known"


def test_a_wait_in_vain_names_what_was_missing_and_shows_the_end_of_each_log(tmp_path, monkeypatch):
    monkeypatch.setattr("commons_lenders.TO_JOIN_S", 0)
    log, other = tmp_path / "log", tmp_path / "other"
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    service = SimpleNamespace(status=lambda: status(leased_bytes=0), logs=[log])
    with pytest.raises(SystemExit) as caught, members([service] * 3, [0, 102, 102], [other]):
        pytest.fail("the measure began")
    said = str(caught.value)
    assert "in vain for ws1: a lease of its host's memory" in said
    assert "line 99" in said and "line 0\n" not in said
    assert f"{other}:\n(empty)" in said


def test_a_lease_that_is_lost_during_a_measure_ends_the_bench(tmp_path, monkeypatch):
    monkeypatch.setattr("commons_lenders.TO_STAY_S", 0)
    figures = {"leased_bytes": 64 * MIB}
    epochs = iter(range(1, 1000))
    service = SimpleNamespace(status=lambda: status(epoch={"number": next(epochs), "targets": [[1, 5]]}, **figures), logs=[])
    with pytest.raises(SystemExit, match="in vain for ws1: a lease"), members([service] * 3, [0, 102, 102], []):
        figures["leased_bytes"] = 0


def test_a_wait_ends_when_nothing_is_missing():
    wanted = iter(["one", "two", ""])
    wait_until_none(lambda: next(wanted), 60)
    assert next(wanted, None) is None
