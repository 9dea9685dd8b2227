"""The wheel: its name, its command, its types."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points, version
from importlib.resources import files
from pathlib import Path

import gleaner
import pytest
from conftest import CHECKOUT

COMMAND = Path(sys.executable).parent / "gleaner"


def interpreters() -> dict[str, str]:
    """The machine's interpreters by version, from 3.10 on: this one, those on the path and those of pyenv."""
    on_path = (shutil.which(f"python3.{minor}") for minor in range(10, 20))
    of_pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.*/bin/python3")
    found = {}
    for path in (sys.executable, *filter(None, on_path), *map(str, of_pyenv)):
        asked = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
        major, minor = (int(number) for number in (asked.stdout.split() or (0, 0)))
        if (major, minor) >= (3, 10):
            found.setdefault(f"{major}.{minor}", path)
    return found


INTERPRETERS = interpreters()


def test_one_wheel_serves_every_python_from_3_10_on_any_recent_linux():
    [wheel] = (CHECKOUT / "target" / "wheels").glob("*.whl")
    name, release, python, abi, platform = wheel.stem.split("-")
    assert (name, release, python, abi) == ("gleaner", version("gleaner"), "cp310", "abi3")
    assert platform.startswith("manylinux_2_"), wheel


@pytest.mark.parametrize("version", INTERPRETERS)
def test_a_clean_environment_needs_only_the_wheel(version, dataset, tmp_path):
    subprocess.run([INTERPRETERS[version], "-m", "venv", tmp_path / "venv"], check=True)
    [wheel] = (CHECKOUT / "target" / "wheels").glob("*.whl")
    subprocess.run([tmp_path / "venv/bin/pip", "install", "-q", "--no-index", wheel], check=True)
    code = "import sys, gleaner; print(gleaner.open(sys.argv[1]).analyze(bootstrap=0).json, end='')"
    python = tmp_path / "venv/bin/python"
    printed = subprocess.run([python, "-c", code, dataset.path], capture_output=True, check=True, cwd=tmp_path).stdout
    assert printed.decode() == dataset.analyze(bootstrap=0).json


def test_its_version_is_the_programs(printed):
    assert printed("--version").split() == ["gleaner", gleaner.__version__]
    assert version("gleaner") == gleaner.__version__


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["analyze", "--help"], 0),
        (["schema", "--as", "findings"], 0),
        (["analyze", "nowhere"], 1),
        (["analyze"], 2),
        (["analyze", "nowhere", "--region", "much"], 2),
        (["report", "DATASET", "--from", "2031-01-01", "--until", "2031-01-02"], 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_its_command_is_the_program(arguments, code, program, dataset, tmp_path):
    arguments = [str(dataset.path) if word == "DATASET" else word for word in arguments]
    by_program = program(*arguments)
    by_wheel = subprocess.run([COMMAND, *arguments], capture_output=True, timeout=300, cwd=tmp_path)
    assert by_program.returncode == code
    assert (by_wheel.returncode, by_wheel.stdout, by_wheel.stderr) == (code, by_program.stdout, by_program.stderr)


def test_a_closed_pipe_is_no_error():
    command = f"set -o pipefail; {COMMAND} schema --as findings | head -n 1"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_it_has_one_command():
    [entry] = [entry for entry in entry_points(group="console_scripts") if entry.dist.name == "gleaner"]
    assert entry.name == "gleaner"


def test_it_has_types_that_hold(tmp_path):
    assert (files(gleaner) / "py.typed").is_file()
    use = tmp_path / "use.py"
    use.write_text(
        "import gleaner\n"
        "d: gleaner.Dataset = gleaner.open('d')\n"
        "f: gleaner.Findings = d.analyze(region=['64MiB', 1 << 30], time_zone='UTC')\n"
        "text: str = f.json\n"
        "d.analyze(regions=1)  # type: ignore[call-arg]\n"
        "d.analyze(time_zone=1)  # type: ignore[arg-type]\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", tmp_path / "cache"]
    for of in ([use], ["-p", "gleaner"]):
        checked = subprocess.run([*mypy, *of], capture_output=True, text=True, timeout=300, cwd=tmp_path)
        assert checked.returncode == 0, checked.stdout + checked.stderr
