"""packaging/install.sh in the file tree of a machine, with a real collector for enrolment."""

import functools
import http.server
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import CHECKOUT, free_port, listens, until
from machine import Machine

SCRIPT = CHECKOUT / "packaging" / "install.sh"
HOST = "/var/lib/gleaner/ship/host.pem"


class Server:
    """A collector with its authority, on its own machine."""

    def __init__(self, machine: Machine, packages: Path):
        self.machine, self.port = machine, free_port()
        for name in ("gleaner-cli", "gleaner-collector"):
            machine.run("dpkg", "--install", *map(str, packages.glob(f"{name}_*.deb")), check=True)
        machine.run("gleaner", "pki", "init", "--name", "localhost", check=True)
        machine.run("chown", "-R", "gleaner-collector:", "/etc/gleaner/pki", check=True)
        config = f'listen = "127.0.0.1:{self.port}"\nlocal_listen = "none"\npki = "/etc/gleaner/pki"\n'
        machine.path("/etc/gleaner/collector.toml").write_text(config)
        machine.start("gleaner-collector", "run", user="gleaner-collector")
        until(lambda: listens(self.port), "the collector")
        self.url = f"https://localhost:{self.port}"

    def token(self) -> str:
        return self.machine.run("gleaner", "pki", "token", check=True).stdout.split(" enroll ")[1].split()[1]


@pytest.fixture
def server(machines, packages) -> Server:
    return Server(machines("server"), packages)


def install(machine: Machine, *args: object, token: str = "") -> subprocess.CompletedProcess:
    return machine.run("sh", str(SCRIPT), *map(str, args), input=token + "\n")


def test_shellcheck_finds_nothing():
    subprocess.run([Path(sys.executable).parent / "shellcheck", "--shell=sh", "--severity=style", SCRIPT], check=True)


def test_a_host_is_installed_enrolled_and_left_alone_the_second_time(machines, packages, server):
    desk = machines("desk")
    # Records command lines, which every user can see.
    spy = desk.path("/usr/local/sbin/runuser")
    spy.write_text('#!/bin/sh\necho "$@" >>/command-lines\nexec /usr/sbin/runuser "$@"\n')
    spy.chmod(0o755)
    token = server.token()
    asked = ["--packages", packages, "--collector", server.url, "--recruiter", "https://localhost:7444", "--token-file", "-"]

    done = desk.run("env", "PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "sh", str(SCRIPT), *map(str, asked), input=token + "\n")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = desk.path("/command-lines").read_text()
    assert f"enroll {server.url} -\n" in lines and token not in lines
    certificate = desk.path(HOST).read_bytes()
    assert desk.path(HOST).stat().st_mode & 0o007 == 0
    assert desk.path("/usr/bin/gleaner-memoryd").exists()
    # The package's own file is unchanged, so that an upgrade does not ask about it.
    assert desk.path("/etc/gleaner/memoryd.d/install.toml").read_text() == 'recruiters = ["https://localhost:7444"]\n'
    assert desk.path("/etc/gleaner/memoryd.toml").read_bytes() == (CHECKOUT / "docs/memoryd.toml").read_bytes()

    again = install(desk, *asked[:-2])
    assert again.returncode == 0, again.stdout + again.stderr
    assert "is enrolled" in again.stdout and desk.path(HOST).read_bytes() == certificate


def test_nothing_is_installed_that_is_not_what_it_should_be(machines, packages):
    desk = machines("desk")
    where = ["--collector", "https://localhost:1", "--token-file", "-"]
    sums = (packages / "SHA256SUMS").read_text()
    # In the machine's own layer: files below its layers must not change meanwhile.
    served = desk.path("/served")
    shutil.copytree(packages, served)

    def refused(*args: object) -> str:
        ended = install(desk, *args, *where, token="t")
        assert ended.returncode == 1, ended.stdout + ended.stderr
        assert not desk.path("/usr/bin/gleaner-agent").exists()
        return ended.stderr

    package = next(served.glob("gleaner-agent_*"))
    whole = package.read_bytes()
    package.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "is not what SHA256SUMS says" in refused("--packages", "/served")
    package.write_bytes(whole)
    assert "not the one of" in refused("--packages", "/served", "--checksum", "0" * 64)
    (served / "SHA256SUMS").write_text(sums.replace("gleaner-agent_", "gleaner-agent_../../x_"))
    assert "names no deb of gleaner-agent" in refused("--packages", "/served")
    (served / "SHA256SUMS").write_text(sums + sums)
    assert "names several" in refused("--packages", "/served")
    (served / "SHA256SUMS").unlink()
    assert "has no SHA256SUMS" in refused("--packages", "/served")
    assert "in the clear" in refused("--packages", "http://packages.example/gleaner")
    plain = desk.run("sh", str(SCRIPT), "--packages", str(packages), "--collector", "http://collector.example")
    assert plain.returncode == 1 and "https://" in plain.stderr


def test_a_token_that_is_none_leaves_a_host_that_can_be_enrolled_later(machines, packages, server):
    desk = machines("desk")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=packages)
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        where = ["--packages", f"http://127.0.0.1:{web.server_port}", "--collector", server.url]
        without = install(desk, *where)
        assert without.returncode == 1 and "gleaner pki token" in without.stderr, without.stderr
        wrong = install(desk, *where, "--token-file", "-", token="0" * 32 + "." + "0" * 64)
        assert wrong.returncode != 0 and not desk.path(HOST).exists()
        # Token from the environment, as from a secret of a build.
        right = desk.run("env", f"GLEANER_TOKEN={server.token()}", "sh", str(SCRIPT), *where)
        assert right.returncode == 0, right.stdout + right.stderr
        web.shutdown()
    assert desk.path(HOST).exists()
