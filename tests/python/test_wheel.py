"""The wheel: its name, its command, its types."""

import subprocess
import sys
from importlib.metadata import entry_points, version
from importlib.resources import files
from pathlib import Path

import gleaner
import pytest
from conftest import CHECKOUT

COMMAND = Path(sys.executable).parent / "gleaner"


def test_one_wheel_serves_every_python_from_3_10_on_any_recent_linux():
    [wheel] = (CHECKOUT / "target" / "wheels").glob("*.whl")
    name, release, python, abi, platform = wheel.stem.split("-")
    assert (name, release, python, abi) == ("gleaner", version("gleaner"), "cp310", "abi3")
    assert platform.startswith("manylinux_2_"), wheel


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
