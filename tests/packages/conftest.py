"""The packages that packaging/build made from the built programs, unpacked."""

import os
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
NAMES = ("gleaner", "gleaner-agent", "gleaner-clerk", "gleaner-cli", "gleaner-collector", "gleaner-commons", "gleaner-memoryd", "gleaner-recruiter")


@pytest.fixture(scope="session")
def packages() -> Path:
    """Folder of the packages, set by `tests/run`."""
    return Path(os.environ["GLEANER_PACKAGES"]).resolve()


@pytest.fixture(scope="session")
def debs(packages: Path) -> dict[str, Path]:
    found = {path.name.split("_")[0]: path for path in packages.glob("*.deb")}
    assert sorted(found) == sorted(NAMES)
    return found


@pytest.fixture(scope="session")
def rpms(packages: Path) -> dict[str, Path]:
    found = {path.name.rsplit("-", 2)[0]: path for path in packages.glob("*.rpm")}
    assert sorted(found) == sorted(NAMES)
    return found


@pytest.fixture(scope="session")
def deb_trees(debs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    trees = {}
    for name, path in debs.items():
        trees[name] = tmp_path_factory.mktemp("deb") / name
        subprocess.run(["dpkg-deb", "--extract", path, trees[name]], check=True)
    return trees


@pytest.fixture(scope="session")
def rpm_trees(rpms: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    trees = {}
    for name, path in rpms.items():
        trees[name] = tmp_path_factory.mktemp("rpm") / name
        trees[name].mkdir()
        with subprocess.Popen(["rpm2cpio", path], stdout=subprocess.PIPE) as archive:
            subprocess.run(
                ["cpio", "--extract", "--make-directories", "--preserve-modification-time", "--quiet", "--no-absolute-filenames"],
                cwd=trees[name], stdin=archive.stdout, check=True,
            )  # fmt: skip
        assert archive.returncode == 0
    return trees
