"""Functions beside the program's commands: the same bytes, the same files, the same errors."""

import re
import shutil
import signal
import time
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import gleaner
import pytest

SCENARIO = """
about = 'a short one'
programs = ['lu']
from = 2026-11-17
days = 0.5
seeds = [1, 2]
[scenario]
reference_runs = 1
[sweep]
recruitment.headroom_share = [0.15, 0.6]
"""


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def error_of(program, *args) -> str:
    """Text that the program prints to standard error, as an exception has it."""
    ended = program(*args)
    assert ended.returncode != 0
    return ended.stderr.decode().removeprefix("gleaner: ").rstrip()


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({}, []),
        ({"region": ["64MiB", 1 << 30], "dip": "512MiB"}, ["--region", "64MiB", "--region", "1GiB", "--dip", "512MiB"]),
        ({"measure": ["dips", "hosts"], "dip_percent": 5}, ["--measure", "dips,hosts", "--dip-percent", "5"]),
        (
            {"time_zone": "Europe/Berlin", "headroom": 20, "bootstrap": 0, "curve_points": 5, "load_limit": 0.5},
            "--time-zone Europe/Berlin --headroom 20 --bootstrap 0 --curve-points 5 --load-limit 0.5".split(),
        ),
        (
            {"idle_after": 90, "minimum_period": timedelta(minutes=10), "class_": ["16GiB", "64GiB"]},
            "--idle-after 90s --minimum-period 10m --class 16GiB --class 64GiB".split(),
        ),
        ({"from_": date(2026, 11, 17), "until": "2026-11-18"}, ["--from", "2026-11-17", "--until", "2026-11-18"]),
        ({"until": datetime(2026, 11, 17, 12, tzinfo=timezone.utc)}, ["--until", "2026-11-17T12:00:00Z"]),
        ({"from_": 1_795_219_200_000 - 4 * 86_400_000}, ["--from", "2026-11-17"]),
    ],
)
def test_findings_are_the_programs_bytes(options, arguments, dataset, printed):
    findings = gleaner.analyze(dataset, **options)
    assert findings.json == printed("analyze", dataset.path, "--json", *arguments)


def test_findings_are_records(dataset):
    findings = dataset.analyze(region="64MiB", bootstrap=0)
    assert findings.parameters["region_bytes"] == [64 << 20]
    assert {"hosts", "dips", "missing_measures"} <= set(findings)
    for measure in findings.measures:
        records = findings[measure]
        table = findings.arrow(measure)
        assert table.num_rows == len(records) > 0
        for name in table.column_names:
            assert table[name].to_pylist() == [record.get(name) for record in records], (measure, name)
        assert findings.polars(measure).shape == findings.pandas(measure).shape == table.shape
    assert set(records[0]) <= set(table.column_names)


def test_a_measure_without_records_keeps_its_columns(dataset):
    some = dataset.analyze(bootstrap=0).arrow("reclaims")
    none = dataset.analyze(measure="hosts").arrow("reclaims")
    assert none.num_rows == 0 and some.num_rows > 0
    assert {field.name: field.type for field in none.schema} == {field.name: field.type for field in some.schema}
    with pytest.raises(KeyError, match="findings_version"):
        dataset.analyze(measure="hosts").arrow("findings_version")


def test_explanations_are_the_programs_bytes(dataset, printed):
    host = dataset.hosts()[4]
    at = datetime(2026, 11, 17, 15, tzinfo=timezone.utc)
    for options, arguments in [({}, []), ({"at": at, "headroom": 30}, ["--at", "2026-11-17T15:00:00Z", "--headroom", "30"])]:
        explained = dataset.explain(host, **options)
        assert explained.json == printed("explain", dataset.path, "--host", host, "--json", *arguments)
        assert explained["host_id"] == host


def test_a_report_is_the_programs_page(dataset, printed, tmp_path):
    page = gleaner.report(dataset, tmp_path / "a.html", also=["md", "csv"], title="Desks", region="1GiB", bootstrap=50)
    assert page == tmp_path / "a.html"
    arguments = "--also md,csv --title Desks --region 1GiB --bootstrap 50".split()
    printed("report", dataset.path, "-o", tmp_path / "b.html", *arguments)
    assert (tmp_path / "a.md").exists() and any((tmp_path / "a-tables").iterdir())
    # A page has the time at which it was made.
    made = re.compile(r"\d{2}:\d{2}(:\d{2})?")
    assert made.sub("", (tmp_path / "a.md").read_text()) == made.sub("", (tmp_path / "b.md").read_text())
    assert files(tmp_path / "a-tables") == files(tmp_path / "b-tables")
    with pytest.raises(ValueError, match="either output or folder"):
        gleaner.report(dataset)


def test_a_synthetic_dataset_is_the_programs(printed, tmp_path):
    made = gleaner.synth(tmp_path / "a", hosts=2, days=1, interval=timedelta(minutes=30), seed=7, start=date(2026, 11, 16))
    arguments = "--hosts 2 --days 1 --interval 30m --seed 7 --start 2026-11-16".split()
    printed("synth", "-o", tmp_path / "b", *arguments)
    assert made.path == tmp_path / "a"
    assert files(tmp_path / "a") == files(tmp_path / "b") != {}


def test_a_simulation_is_the_programs_document(dataset, printed, tmp_path):
    scenario = tmp_path / "short.toml"
    scenario.write_text(SCENARIO)
    simulated = gleaner.simulate(scenario, dataset={"lab": dataset}, sweep={"remote.placement": ["random", "spread"]}, seed=3)
    arguments = ["--dataset", f"lab={dataset.path}", "--sweep", "remote.placement=random,spread", "--seed", "3"]
    assert simulated.json == printed("simulate", scenario, *arguments, "--json", "-")
    assert simulated["seeds"] == [3]
    assert len(simulated["rows"]) == 4


def test_any_command_returns_its_output(dataset, printed, tmp_path):
    for command in (["schema", "--as", "sql"], ["analyze", str(dataset.path), "--measure", "dips"], ["--help"]):
        assert gleaner.run(*command) == printed(*command)
    exported = gleaner.run("export", dataset, "--to", "parquet", "-o", tmp_path / "parquet")
    assert exported.split()[0] == str(sum(dataset.tables().values()))


def test_errors_have_the_programs_text(dataset, program, tmp_path):
    nowhere, damaged = tmp_path / "nowhere", tmp_path / "damaged"
    shutil.copytree(dataset.path, damaged)
    for file in (damaged / "samples").rglob("*.arrow"):
        file.write_bytes(file.read_bytes()[:-100])
    path = dataset.path
    for call, arguments in [
        (lambda: gleaner.open(nowhere), ["analyze", nowhere]),
        (lambda: gleaner.analyze(nowhere), ["analyze", nowhere]),
        (lambda: gleaner.analyze(damaged), ["analyze", damaged]),
        (lambda: dataset.analyze(region="much"), ["analyze", path, "--json", "--region", "much"]),
        (lambda: dataset.analyze(idle_after="soon"), ["analyze", path, "--idle-after", "soon"]),
        (lambda: dataset.analyze(measure="dip"), ["analyze", path, "--measure", "dip"]),
        (lambda: dataset.analyze(headroom=200), ["analyze", path, "--headroom", "200"]),
        (lambda: dataset.analyze(time_zone="Mars/Base"), ["analyze", path, "--time-zone", "Mars/Base"]),
        (lambda: dataset.analyze(from_="2031-01-01"), ["analyze", path, "--from", "2031-01-01"]),
        (lambda: dataset.explain("nobody"), ["explain", path, "--host", "nobody"]),
        (lambda: dataset.report("-", also="md"), ["report", path, "-o", "-", "--also", "md"]),
        (lambda: dataset.table("samples", hosts="nobody"), ["export", path, "--to", "csv", "-o", tmp_path / "x", "--host", "nobody"]),
        (lambda: gleaner.synth(path), ["synth", "-o", path]),
        (lambda: gleaner.simulate("stduy"), ["simulate", "stduy"]),
        (lambda: gleaner.run("analyse"), ["analyse"]),
    ]:
        with pytest.raises(gleaner.Error) as raised:
            call()
        assert str(raised.value) == error_of(program, *map(str, arguments))


def test_wrong_use_from_python_is_pythons_error(dataset):
    with pytest.raises(TypeError, match="there is no option 'regions': there are bootstrap, class_"):
        dataset.analyze(regions="64MiB")
    with pytest.raises(TypeError, match="region cannot be 1.5"):
        dataset.analyze(region=1.5)
    with pytest.raises(gleaner.Error, match="cannot open gs://bucket/dataset: neither s3://"):
        gleaner.open("gs://bucket/dataset")


def test_a_signal_ends_an_analysis(dataset):
    """As Ctrl-C does: the exception of the signal's handler comes before the analysis is done."""

    def seconds(analyze) -> float:
        begun = time.monotonic()
        analyze()
        return time.monotonic() - begun

    class Interrupt(Exception):
        pass

    def handler(*_):
        raise Interrupt

    def interrupted():
        with pytest.raises(Interrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            dataset.analyze(bootstrap=0)

    whole_s = seconds(lambda: dataset.analyze(bootstrap=0))
    before = signal.signal(signal.SIGALRM, handler)
    try:
        assert seconds(interrupted) < 0.8 * whole_s
    finally:
        signal.signal(signal.SIGALRM, before)
