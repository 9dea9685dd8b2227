"""The RPMs: rpmlint, and the same contents as the Debian packages."""

import hashlib
import re
import stat
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Documents that differ between the two kinds of package.
PAPERS = re.compile(r"/usr/share/(doc/[^/]+/(copyright|changelog\.gz)$|lintian/|licenses/)")


def test_rpmlint_has_nothing_to_say(rpms: dict[str, Path]):
    config = HERE.parents[1] / "packaging" / "rpm" / "rpmlint.toml"
    done = subprocess.run(["rpmlint", "--config", config, *rpms.values()], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 errors, 0 warnings" in done.stdout, done.stdout


def contents(tree: Path) -> dict[str, tuple[str, str]]:
    """Mode and hash of every file, by its path on a merged /usr."""
    found = {}
    for path in sorted(tree.rglob("*")):
        name = re.sub(r"^/lib/", "/usr/lib/", "/" + str(path.relative_to(tree)))
        if path.is_dir() or PAPERS.match(name):
            continue
        assert stat.S_ISREG(path.lstat().st_mode), name
        found[name] = (oct(path.stat().st_mode), hashlib.sha256(path.read_bytes()).hexdigest())
    return found


def test_they_install_the_same_files(deb_trees: dict[str, Path], rpm_trees: dict[str, Path]):
    for name, tree in deb_trees.items():
        expected = contents(tree)
        assert contents(rpm_trees[name]) == expected
        assert bool(expected) == (name != "gleaner")


def query(path: Path, what: str) -> list[str]:
    done = subprocess.run(["rpm", "-qp", *what.split(), path], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line != "(contains no files)"]


def test_all_of_it_is_roots_and_configuration_is_kept(debs: dict[str, Path], rpms: dict[str, Path]):
    for name, path in rpms.items():
        owners = query(path, "--qf [%{FILEUSERNAME}:%{FILEGROUPNAME}\\n]")
        assert set(owners) <= {"root:root"}
        listed = subprocess.run(["dpkg-deb", "--contents", debs[name]], capture_output=True, text=True, check=True)
        assert {line.split()[1] for line in listed.stdout.splitlines()} <= {"root/root"}
        conffiles = subprocess.run(["dpkg-deb", "--info", debs[name], "conffiles"], capture_output=True, text=True).stdout
        assert sorted(query(path, "-c")) == sorted(conffiles.split())


def test_both_ask_for_each_other_alike(debs: dict[str, Path], rpms: dict[str, Path]):
    for name, path in rpms.items():
        depends = subprocess.run(["dpkg-deb", "--field", debs[name], "Depends"], capture_output=True, text=True, check=True)
        of_deb = set(re.findall(r"gleaner-\w+", depends.stdout))
        of_rpm = {line.split()[0] for line in query(path, "--requires") if line.startswith("gleaner-")}
        assert of_rpm == of_deb
