"""The Debian packages: lintian, their contents, and their treatment of a newer database."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def test_lintian_has_nothing_to_say(debs: dict[str, Path]):
    done = subprocess.run(
        ["lintian", "--allow-root", "--tag-display-limit", "0", "--fail-on", "error,warning", "--info", *debs.values()],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert not [line for line in done.stdout.splitlines() if line.startswith(("E:", "W:"))], done.stdout


def files(tree: Path) -> set[str]:
    return {"/" + str(path.relative_to(tree)) for path in tree.rglob("*") if not path.is_dir()}


# Folders in which a package may have files; PACKAGE is its name.
PLACES = (
    "/usr/bin/", "/etc/gleaner/", "/etc/xdg/autostart/gleaner-session.desktop",
    "/lib/systemd/system/gleaner-", "/usr/lib/sysusers.d/PACKAGE.conf", "/usr/lib/tmpfiles.d/PACKAGE.conf",
    "/usr/share/doc/PACKAGE/", "/usr/share/lintian/overrides/PACKAGE", "/usr/share/man/man1/gleaner",
    "/usr/share/bash-completion/completions/gleaner", "/usr/share/fish/vendor_completions.d/gleaner",
    "/usr/share/zsh/vendor-completions/_gleaner", "/usr/lib/gleaner/references.so",
)  # fmt: skip


def test_files_lie_where_they_are_expected(deb_trees: dict[str, Path]):
    for name, tree in deb_trees.items():
        places = tuple(place.replace("PACKAGE", name) for place in PLACES)
        assert {path for path in files(tree) if not path.startswith(places)} == set()
    programs = {name: {p for p in files(tree) if "/bin/" in p} for name, tree in deb_trees.items()}
    daemons = ("gleaner-agent", "gleaner-clerk", "gleaner-collector", "gleaner-commons", "gleaner-memoryd", "gleaner-recruiter")
    expected = {name: {f"/usr/bin/{name}"} for name in daemons}
    assert programs == expected | {"gleaner": set(), "gleaner-cli": {"/usr/bin/gleaner"}}
    for name in daemons:
        config = deb_trees[name] / "etc/gleaner" / f"{name.removeprefix('gleaner-')}.toml"
        assert config.read_bytes() == (CHECKOUT / "docs" / config.name).read_bytes()


def test_each_program_comes_with_what_it_is_made_of(deb_trees: dict[str, Path]):
    for name in set(deb_trees) - {"gleaner"}:
        bill = json.loads(gzip.decompress((deb_trees[name] / f"usr/share/doc/{name}/{name}.cdx.json.gz").read_bytes()))
        assert bill["bomFormat"] == "CycloneDX"
        assert "serde" in {component["name"] for component in bill["components"]}


def test_the_sums_are_those_of_all_packages(packages: Path):
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=packages, check=True)
    summed = {line.split(maxsplit=1)[1] for line in (packages / "SHA256SUMS").read_text().splitlines()}
    assert summed == {path.name for path in packages.iterdir()} - {"SHA256SUMS"}


def test_what_units_document_is_there(deb_trees: dict[str, Path]):
    for tree in deb_trees.values():
        for unit in tree.glob("lib/systemd/system/*"):
            pages = [word for line in unit.read_text().splitlines() if line.startswith("Documentation=") for word in line[14:].split()]
            assert pages
            for page in pages:
                name, section = page.removeprefix("man:").rstrip(")").split("(")
                found = [t for t in deb_trees.values() if (t / f"usr/share/man/man{section}/{name}.{section}.gz").exists()]
                assert found, f"{unit.name}: {page}"


@pytest.fixture
def refuse(debs: dict[str, Path], tmp_path: Path):
    """The preinst, run on a folder of the test."""
    subprocess.run(["dpkg-deb", "--control", debs["gleaner-agent"], tmp_path / "control"], check=True)
    script = (tmp_path / "control" / "preinst").read_text()
    script = script.replace("/var/lib/gleaner", str(tmp_path)).replace("/etc/gleaner", str(tmp_path))

    def run(action: str) -> subprocess.CompletedProcess:
        return subprocess.run(["sh", "-c", script, "preinst", action], capture_output=True, text=True)

    return run


def header(version: int) -> bytes:
    return b"SQLite format 3\0".ljust(60, b"\0") + version.to_bytes(4, "big") + bytes(36)


def test_a_newer_database_is_refused_before_anything_is_unpacked(refuse, tmp_path: Path):
    known = int((CHECKOUT / "schemas" / "src" / "lib.rs").read_text().split("SCHEMA_VERSION: u32 = ")[1].split(";")[0])
    assert refuse("install").returncode == 0
    for found, status in ((0, 0), (known, 0), (known + 1, 1), (known + 256, 1)):
        (tmp_path / "trace.db").write_bytes(header(found))
        for action in ("install", "upgrade"):
            done = refuse(action)
            assert done.returncode == status, done.stderr
            assert (f"schema version {found}" in done.stderr) == bool(status)
    assert refuse("abort-upgrade").returncode == 0
    (tmp_path / "trace.db").write_bytes(b"")
    assert refuse("install").returncode == 0
    # The database is where the configuration says.
    (tmp_path / "agent.toml").write_text(f'# database = "/x"\ndatabase = "{tmp_path}/other.db"\n')
    (tmp_path / "other.db").write_bytes(header(known + 1))
    assert refuse("install").returncode == 1
