"""The Ansible role, run against the file trees of two machines: a server and a desk."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from conftest import CHECKOUT, free_port, listens, until

ANSIBLE = CHECKOUT / "packaging" / "ansible"
BIN = Path(sys.executable).parent
RECAP = re.compile(r"^(\w+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=0 ", re.M)


def environment(tmp_path: Path) -> dict[str, str]:
    return os.environ | {
        "ANSIBLE_CONNECTION_PLUGINS": str(Path(__file__).parent / "connection"),
        "ANSIBLE_HOME": str(tmp_path / "ansible"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_PIPELINING": "true",
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }


def test_the_role_is_as_ansible_lint_wants_it(tmp_path):
    command = [BIN / "ansible-lint", "--offline", "--strict", "--profile", "production", "--nocolor", "site.yml", "roles"]
    ended = subprocess.run(command, cwd=ANSIBLE, env=environment(tmp_path), capture_output=True, text=True, timeout=900)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_fleet_from_nothing_and_the_second_run_changes_nothing(machines, packages, programs, tmp_path):
    port = free_port()
    server, desk = machines("server"), machines("desk")
    inventory = tmp_path / "inventory.ini"
    hosts = f"[gleaner_server]\nserver tree_root={server.root}\n[gleaner_hosts]\ndesk tree_root={desk.root}\n[gleaner_commons]\ndesk\n"
    variables = "[all:vars]\nansible_connection=tree\nansible_user=root\nansible_python_interpreter=/usr/bin/python3\n"
    inventory.write_text(hosts + variables)
    catalog = tmp_path / "tools.catalog"
    subprocess.run([programs / "gleaner-commons", "seal", ANSIBLE, "-o", catalog], check=True, capture_output=True)
    mount = {"catalog": "/etc/gleaner/catalogs/tools.catalog", "folder": "/mnt/tools/new", "source": "/srv/tools"}
    settings = {
        "gleaner_server_name": "localhost",
        "gleaner_packages_folder": str(packages),
        "gleaner_collector_url": f"https://localhost:{port}",
        "gleaner_collector_config": {"listen": f"127.0.0.1:{port}", "pki": "/etc/gleaner/pki", "local_listen": "none"},
        "gleaner_borrows": True,
        "gleaner_commons_config": {"name": "tools", "hold": "1GiB", "mounts": [mount]},
        "gleaner_commons_catalogs": [str(catalog)],
        "gleaner_agent_config": {"sample_interval": "60s", "ship": {"rate": "64KiB"}},
    }

    def run(*more: str) -> subprocess.CompletedProcess:
        command = [BIN / "ansible-playbook", "-i", inventory, "-e", json.dumps(settings), *more, ANSIBLE / "site.yml"]
        return subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, timeout=900)

    def play(*more: str) -> dict[str, int]:
        """Number of changes on each machine."""
        ended = run(*more)
        assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
        return {machine: int(changed) for machine, changed in RECAP.findall(ended.stdout)}

    would = play("--check")
    assert would["server"] > 0 and would["desk"] > 0
    assert not any(m.path("/usr/bin/gleaner-agent").exists() or m.path("/etc/gleaner").exists() for m in (server, desk))

    assert play("--limit", "gleaner_server")["server"] > 0
    server.start("gleaner-collector", "run", user="gleaner-collector")
    until(lambda: listens(port), "the collector")
    done = play()
    assert done["server"] == 0 and done["desk"] > 0

    ship = desk.path("/var/lib/gleaner/ship")
    assert (ship / "collector.url").read_text() == f"https://localhost:{port}\n"
    assert (ship / "host.pem").stat().st_mode & 0o007 == 0
    issued = json.loads(server.run("gleaner", "pki", "list", "--json").stdout)
    assert [one["state"] for one in issued if one["role"] == "host"] == ["valid"]
    # No usable token remains.
    assert [path.suffix for path in server.path("/etc/gleaner/pki/tokens").iterdir()] == [".used"]
    agent = desk.path("/etc/gleaner/agent.d/ansible.toml").read_text()
    assert 'sample_interval = "60s"\n' in agent and '[ship]\nrate = "64KiB"\n' in agent
    memoryd = desk.path("/etc/gleaner/memoryd.d/ansible.toml")
    assert 'recruiters = ["https://localhost:7444"]' in memoryd.read_text()
    # The package's own file is unchanged, so that an upgrade does not ask about it.
    packaged = desk.path("/etc/gleaner/memoryd.toml")
    assert packaged.read_bytes() == (CHECKOUT / "docs/memoryd.toml").read_bytes()
    assert not any(m.path(f"/etc/gleaner/{name}.toml").exists() for m in (server, desk) for name in ("agent", "clerk", "collector"))
    wanted = desk.path("/etc/systemd/system/multi-user.target.wants")
    for unit in ("agent", "clerk", "commons", "ship", "memoryd"):
        assert (wanted / f"gleaner-{unit}.service").is_symlink()
    # The host is a member of the commons under the id in its certificate. The program accepts the list, and the mount.
    [host_id] = [one["name"] for one in issued if one["role"] == "host"]
    commons = tomllib.loads(desk.path("/etc/gleaner/commons.d/ansible.toml").read_text())
    assert commons == {"name": "tools", "hold": "1GiB", "allow_other": True, "members": [f"{host_id}@desk:7445"], "mounts": [mount]}
    checked = desk.run("gleaner-commons", "check-config")
    assert checked.returncode == 0 and "commons.d/ansible.toml" in checked.stdout, checked
    assert desk.path(mount["catalog"]).read_bytes() == catalog.read_bytes() and desk.path(mount["folder"]).is_dir()
    # The clerk has its own certificate, whose copy on the server was deleted.
    checked = desk.run("gleaner-clerk", "check-config")
    assert checked.returncode == 0 and "https://localhost:7444" in desk.path("/etc/gleaner/clerk.d/ansible.toml").read_text(), checked
    assert desk.run("runuser", "-u", "gleaner-clerk", "--", "cat", "/etc/gleaner/clerk/client.key").returncode == 0
    assert desk.path("/etc/gleaner/clerk").stat().st_mode & 0o077 == 0
    assert [one["name"] for one in issued if one["role"] == "client"] == ["desk"]
    assert not list(server.path("/tmp").glob("ansible*/client.key"))
    # The recruiter can read the public files in the authority's folder, and its own key, but not the authority's
    # key.
    reads = lambda path: server.run("runuser", "-u", "gleaner-recruiter", "--", "cat", path).returncode == 0  # noqa: E731
    assert reads("/etc/gleaner/pki/revoked.crl") and reads("/etc/gleaner/recruiter/recruiter.key")
    assert not reads("/etc/gleaner/pki/authority.key") and not reads("/etc/gleaner/pki/collector.key")

    assert play() == {"server": 0, "desk": 0}

    # All members of a commons need the same list: a run without one of them changes no list.
    inventory.write_text(f"{hosts}gone\n[gleaner_hosts]\ngone tree_root={tmp_path}/gone\n{variables}")
    ended = run("--limit", "gleaner_server:desk")
    assert ended.returncode != 0 and "left out by --limit: gone" in ended.stdout, ended.stdout[-6000:]
    assert tomllib.loads(desk.path("/etc/gleaner/commons.d/ansible.toml").read_text()) == commons
    inventory.write_text(hosts + variables)

    # State left by an earlier role, with a setting of the administrator beside it.
    own = desk.path("/etc/gleaner/memoryd.d/own.toml")
    own.write_text('cap = "1GiB"\n')
    packaged.write_text("# Written by Ansible: changes are lost with its next run.\nrecruiters = []\n")
    memoryd.unlink()
    assert play("--check")["desk"] > 0 and packaged.exists()
    assert play()["desk"] > 0 and not packaged.exists()
    assert 'recruiters = ["https://localhost:7444"]' in memoryd.read_text() and own.read_text() == 'cap = "1GiB"\n'
    checked = desk.run("gleaner-memoryd", "check-config")
    assert checked.returncode == 0 and "memoryd.d/ansible.toml" in checked.stdout, checked
    # The package's next version brings its own file again, without asking.
    settings["gleaner_packages_folder"] = str(newer(packages, "gleaner-memoryd", tmp_path / "newer"))
    assert play()["desk"] > 0
    assert packaged.read_bytes() == (CHECKOUT / "docs/memoryd.toml").read_bytes()

    # Settings no longer configured are removed.
    settings["gleaner_memoryd_config"] = {}
    assert play()["desk"] > 0 and not memoryd.exists() and own.exists()
    assert play() == {"server": 0, "desk": 0}


def newer(packages: Path, name: str, folder: Path) -> Path:
    """A folder of the same packages, one of them with a newer version."""
    shutil.copytree(packages, folder)
    package = next(folder.glob(f"{name}_*.deb"))
    tree = folder / name
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace("Version: 0.1.0-1\n", "Version: 0.1.0-2\n"))
    package.unlink()
    built = folder / package.name.replace("0.1.0-1", "0.1.0-2")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, built], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return folder
