"""Checks the output of `gleaner analyze --json`, `explain --json` and `doctor --json` against the published JSON Schemas."""

import copy
import json
import subprocess

import pytest
from conftest import CHECKOUT
from jsonschema import Draft202012Validator


def published(name: str) -> Draft202012Validator:
    schema = json.loads((CHECKOUT / "schemas" / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def wrong(validator: Draft202012Validator, document: dict) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]


@pytest.fixture(scope="module")
def findings(gleaner, synthetic) -> dict:
    """Every finding, of hosts that record everything."""
    keys = [key for key, of in published("findings").schema["properties"].items() if of.get("type") == "array"]
    return json.loads(gleaner("analyze", synthetic.root, "--json", "--measure", ",".join(keys)))


def test_findings_of_a_synthetic_dataset(findings):
    assert not wrong(published("findings"), findings)
    untried = [key for key, records in findings.items() if records == []]
    assert untried == ["sources"]  # of imports only: the next test


def test_findings_of_an_imported_dataset(gleaner, imported):
    found = json.loads(gleaner("analyze", imported, "--json"))
    assert not wrong(published("findings"), found)
    assert found["missing_measures"] and found["sources"]


def test_explanations(gleaner, synthetic, imported):
    validator = published("explanation")
    for dataset in (synthetic.root, imported):
        found = json.loads(gleaner("analyze", dataset, "--json", "--measure", "memory_usage"))
        for host in found["hosts"]:
            for time in ("from_time_ms", "to_time_ms"):
                asked = ["--host", host["host_id"], "--at", str(host[time])]
                explained = json.loads(gleaner("explain", dataset, "--json", *asked))
                assert not wrong(validator, explained)
                assert wrong(validator, {**explained, "colour": "red"})


def test_diagnoses(programs, tmp_path):
    """Diagnoses of a host without any daemon, and of all daemons named explicitly, none of which runs."""
    validator = published("diagnosis")
    for daemons in ([], ["agent", "ship", "collector", "recruiter", "memoryd"]):
        doctor = [programs / "gleaner", "doctor", "--json", "--config-folder", tmp_path, "--programs", programs, *daemons]
        ended = subprocess.run(doctor, capture_output=True, timeout=300)
        assert ended.returncode in (0, 3), ended.stderr.decode()
        found = json.loads(ended.stdout)
        assert not wrong(validator, found)
        assert wrong(validator, {**found, "colour": "red"})
        states = [check["state"] for check in found["checks"]]
        for state in ("ok", "warning", "fault", "not_used"):
            assert found[f"{state}_count"] == states.count(state)
        assert all((check["code"] is None) == (check["state"] == "ok") for check in found["checks"])
    assert found["fault_count"] > 0


def test_schemas_refuse_what_they_do_not_describe(findings):
    validator = published("findings")

    def refused(change) -> bool:
        other = copy.deepcopy(findings)
        change(other)
        return bool(wrong(validator, other))

    assert refused(lambda f: f["dips"][0].update(colour="red"))
    assert refused(lambda f: f["dips"][0].pop("intervals_count"))
    assert refused(lambda f: f["dips"][0].update(intervals=0.5))
    assert refused(lambda f: f["memory_usage"][0].update(mean_bytes=None))
    assert refused(lambda f: f["availability_periods"][0].update(scope="busy"))
    assert refused(lambda f: f["parameters"].update(colour="red"))
    assert refused(lambda f: f.update(colours=[]))
    assert refused(lambda f: f.pop("dips"))
    assert refused(lambda f: f.update(findings_version=f["findings_version"] + 1))
    assert not refused(lambda f: f["dips"].clear())


@pytest.mark.parametrize("name", ["findings", "explanation", "diagnosis"])
def test_printed_schema_is_the_published_one(gleaner, name):
    committed = (CHECKOUT / "schemas" / f"{name}.schema.json").read_bytes()
    assert gleaner("schema", "--as", name) == committed


def test_a_curve_and_its_predictions(gleaner, tmp_path):
    curve = tmp_path / "a.curve"
    curve.write_text((CHECKOUT / "fuzz/corpus/curve/curve").read_text().removeprefix("0"))
    assert not wrong(published("curve"), json.loads(gleaner("curve", "show", curve, "--json")))
    assert not wrong(published("predictions"), json.loads(gleaner("curve", "predict", curve, "--local", "50%", "--json")))
