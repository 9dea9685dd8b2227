"""Machines to install on, packages to install, and a collector to enrol with."""

import ctypes
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from machine import Machine

CHECKOUT = Path(__file__).resolve().parents[2]
CLONE_NEWNS = 0x00020000

# Package: its programs, units and user. As in packaging/debian, but without dependencies.
PACKAGES = {
    "gleaner-cli": (["gleaner"], [], None),
    "gleaner-agent": (["gleaner-agent"], ["gleaner-agent.service", "gleaner-ship.service"], "gleaner-agent"),
    "gleaner-memoryd": (["gleaner-memoryd"], ["gleaner-memoryd.service"], "gleaner-memoryd"),
    "gleaner-clerk": (["gleaner-clerk"], ["gleaner-clerk.service"], "gleaner-clerk"),
    "gleaner-commons": (["gleaner-commons"], ["gleaner-commons.service"], "gleaner-commons"),
    "gleaner-collector": (["gleaner-collector"], ["gleaner-collector.service", "gleaner-report.timer"], "gleaner-collector"),
    "gleaner-recruiter": (["gleaner-recruiter"], ["gleaner-recruiter.service"], "gleaner-recruiter"),
}
FOLDERS = {
    "gleaner-agent": "/var/lib/gleaner",
    "gleaner-memoryd": "/var/lib/gleaner/memoryd",
    "gleaner-clerk": "/var/lib/gleaner/clerk",
    "gleaner-commons": "/var/lib/gleaner/commons",
    "gleaner-collector": "/var/lib/gleaner/collector",
    "gleaner-recruiter": "/var/lib/gleaner/recruiter",
}


@pytest.fixture(scope="session")
def programs() -> Path:
    folder = os.environ.get("GLEANER_PROGRAMS")
    if not folder:
        pytest.fail("GLEANER_PROGRAMS is not set: name the folder of the built programs")
    return Path(folder).resolve()


@pytest.fixture(scope="session", autouse=True)
def mounts_of_its_own() -> None:
    """Mounts of a test are invisible to others, and disappear with this process."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        pytest.fail(f"no namespace of mounts: {os.strerror(ctypes.get_errno())}; run as root")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


@pytest.fixture(scope="session")
def packages(programs, tmp_path_factory) -> Path:
    """A folder of small packages with the names, users and paths of the real ones, and the built programs."""
    folder = tmp_path_factory.mktemp("packages")
    for name, (binaries, units, user) in PACKAGES.items():
        tree = folder / name
        (tree / "usr/bin").mkdir(parents=True)
        for binary in binaries:
            subprocess.run(["strip", "-o", tree / "usr/bin" / binary, programs / binary], check=True)
        for unit in units:
            place = tree / "usr/lib/systemd/system" / unit
            place.parent.mkdir(parents=True, exist_ok=True)
            wanted = "timers.target" if unit.endswith(".timer") else "multi-user.target"
            section = "[Timer]\nOnCalendar=Mon 06:00" if unit.endswith(".timer") else "[Service]\nExecStart=/bin/true"
            place.write_text(f"[Unit]\nDescription={unit}\n{section}\n[Install]\nWantedBy={wanted}\n")
        control = tree / "DEBIAN"
        control.mkdir()
        (control / "control").write_text(
            f"Package: {name}\nVersion: 0.1.0-1\nArchitecture: {architecture()}\nMaintainer: Tests <tests@example.org>\n"
            f"Description: Stands in for {name}\n"
        )
        if user:
            place = FOLDERS[user]
            (control / "postinst").write_text(
                f"#!/bin/sh\nset -e\ngetent passwd {user} >/dev/null || useradd --system --no-create-home {user}\n"
                f"install --directory /etc/gleaner\ninstall --directory --owner {user} --group {user} {place}\n"
            )
            (control / "postinst").chmod(0o755)
        memoryd = CHECKOUT / "docs/memoryd.toml"
        if name == "gleaner-memoryd":
            (tree / "etc/gleaner").mkdir(parents=True)
            shutil.copy(memoryd, tree / "etc/gleaner/memoryd.toml")
            (control / "conffiles").write_text("/etc/gleaner/memoryd.toml\n")
        built = folder / f"{name}_0.1.0-1_{architecture()}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, built], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)
    sums = subprocess.run(["sha256sum", *sorted(p.name for p in folder.glob("*.deb"))], cwd=folder, check=True, stdout=subprocess.PIPE)
    (folder / "SHA256SUMS").write_bytes(sums.stdout)
    return folder


def architecture() -> str:
    return subprocess.run(["dpkg", "--print-architecture"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@pytest.fixture
def machines(tmp_path) -> Iterator[Callable[[str], Machine]]:
    made: list[Machine] = []

    def make(name: str) -> Machine:
        made.append(Machine(tmp_path / name, name))
        return made[-1]

    yield make
    for machine in reversed(made):
        machine.end()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(condition: Callable[[], bool], what: str, limit_s: float = 60) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"waited for {what} in vain"
        time.sleep(0.05)


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
