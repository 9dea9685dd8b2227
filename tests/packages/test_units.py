"""The units, checked by systemd."""

import re
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).resolve().parents[2] / "packaging" / "systemd"
SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
# Maximum exposure level, from 0 (safe) to 10.
WORST = 2.5
# The commons mounts for the whole host, which no unit with a mount namespace of its own can do; the unit has the details. One tenth is for
# capset(2): the daemon gives its capability up, which systemd-analyze does not see.
WORST_OF = {"gleaner-commons.service": 3.7}


def test_every_daemon_has_a_unit():
    daemons = ("agent", "clerk", "collector", "commons", "follow@", "memoryd", "recruiter", "report", "ship")
    assert [f"gleaner-{daemon}.service" for daemon in daemons] == SERVICES


@pytest.mark.parametrize("service", SERVICES)
def test_the_unit_is_hardened(service: str):
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--no-pager", UNITS / service],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert float(exposure[1]) <= WORST_OF.get(service, WORST), done.stdout
    assert not done.stderr, done.stderr


def test_a_report_without_a_dataset_is_an_error():
    """If a condition is not met, `systemctl start` succeeds silently."""
    unit = (UNITS / "gleaner-report.service").read_text()
    assert "AssertPathExists=/var/lib/gleaner/collector/dataset" in unit
    assert "\nCondition" not in unit


# Each of these gives a service a mount namespace (systemd.exec(5), PrivateMounts=).
NAMESPACED = re.compile(
    r"^(BindPaths|BindReadOnlyPaths|InaccessiblePaths|MountFlags|NoExecPaths|PrivateDevices|PrivateIPC|PrivateTmp|ProcSubset|ProtectControlGroups"
    r"|ProtectHome|ProtectKernelLogs|ProtectKernelModules|ProtectKernelTunables|ProtectProc|ProtectSystem|ReadOnlyPaths|ReadWritePaths"
    r"|TemporaryFileSystem)=",
    re.M,
)


def test_the_commons_may_use_the_memory_servers_sockets():
    """A socket in /run/gleaner has the folder's group, by the folder's setgid bit."""
    for service in ("gleaner-memoryd.service", "gleaner-commons.service"):
        unit = (UNITS / service).read_text()
        assert "\nSupplementaryGroups=gleaner\n" in unit
        assert "\nEnvironment=RUNTIME_DIRECTORY=/run/gleaner\n" in unit
    assert "\nd /run/gleaner 3775 root gleaner\n" in (UNITS / "tmpfiles" / "gleaner-commons.conf").read_text()


def test_mounts_of_the_commons_are_seen_by_the_host():
    others = [(UNITS / service).read_text() for service in SERVICES if service != "gleaner-commons.service"]
    assert all(NAMESPACED.search(unit) for unit in others)
    unit = (UNITS / "gleaner-commons.service").read_text()
    assert not NAMESPACED.findall(unit)
    assert "\nPrivateMounts=no\n" in unit
