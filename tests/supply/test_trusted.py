"""docs/dependencies-trusted.md, compared with the host daemons' dependencies: no crate is added or changes unnoticed."""

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from conftest import CHECKOUT

PAGE = CHECKOUT / "docs" / "dependencies-trusted.md"
DAEMONS = {"agent": "gleaner-agent", "memoryd": "gleaner-paging", "commons": "gleaner-commons"}
UNSAFE = re.compile(r"\bunsafe\b\s*(\{|fn\b|impl\b|extern\b|trait\b)|\bunsafe extern\b")


def cargo(*args: str) -> str:
    return subprocess.run(["cargo", *args, "--locked"], cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True).stdout


@cache
def tree(crate: str) -> set[tuple[str, str]]:
    lines = cargo("tree", "-p", crate, "-e", "normal", "--prefix", "none", "--format", "{p}").splitlines()
    crates = {(line.split()[0], line.split()[1].removeprefix("v")) for line in lines if line}
    return {(name, version) for name, version in crates if not name.startswith("gleaner-")}


@cache
def packages() -> dict[tuple[str, str], dict]:
    told = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    platform = ["--filter-platform", re.search(r"^host: (.+)$", told, re.M)[1]]
    return {(p["name"], p["version"]): p for p in json.loads(cargo("metadata", "--format-version", "1", *platform))["packages"]}


def listed() -> dict[tuple[str, str], dict[str, str]]:
    rows = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and re.match(r"\d", cells[1]):
            key = (cells[0], cells[1])
            assert key not in rows, f"{key} is listed twice"
            rows[key] = dict(zip(["in", "keeper", "code", "why"], cells[2:], strict=True))
    return rows


def code(name: str, version: str) -> str:
    """Code of a crate that is outside safe Rust."""
    package = packages()[name, version]
    folder = Path(package["manifest_path"]).parent
    kinds = {kind for target in package["targets"] for kind in target["kind"]}
    told = []
    if "proc-macro" in kinds:
        told.append("macro")
    if "custom-build" in kinds:
        told.append("build script")
    sources = (p for p in (folder / "src").rglob("*.rs") if p.is_file())
    without_comments = (re.sub(r"//.*", "", p.read_text(errors="replace")) for p in sources)
    if any(UNSAFE.search(text) for text in without_comments):
        told.append("unsafe")
    return ", ".join(told) or "safe"


def test_every_crate_is_listed_by_version_and_none_that_is_gone():
    wanted = {key for crate in DAEMONS.values() for key in tree(crate)}
    found = set(listed())
    assert found == wanted, f"not listed: {sorted(wanted - found)}; gone: {sorted(found - wanted)}"


def test_each_line_says_where_it_is_used_and_what_it_may_do():
    for (name, version), row in listed().items():
        users = [daemon for daemon, crate in DAEMONS.items() if (name, version) in tree(crate)]
        assert row["in"] == ", ".join(users), name
        assert row["code"] == code(name, version), name


def test_a_new_crate_would_be_seen():
    wanted, found = tree("gleaner-paging"), set(listed())
    one = sorted(wanted)[0]
    assert found >= wanted and not found - {one} >= wanted


def test_each_keeper_is_explained():
    text = PAGE.read_text()
    explained = set(re.findall(r"^- \*\*(.+?)\*\*", text, re.M))
    named = {row["keeper"] for row in listed().values()}
    assert named == explained, named ^ explained


@pytest.mark.parametrize("crate", DAEMONS.values())
def test_no_second_cryptography_or_tls(crate):
    names = {name for name, _ in tree(crate)}
    assert "ring" in names
    assert not names & {"aws-lc-rs", "aws-lc-sys", "native-tls", "openssl", "openssl-sys"}
