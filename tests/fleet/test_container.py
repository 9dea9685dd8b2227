"""The container definitions, checked by their schema and a linter; no container engine is used."""

import subprocess
import sys
from pathlib import Path

import yaml
from conftest import CHECKOUT

FOLDER = CHECKOUT / "packaging" / "container"
BIN = Path(sys.executable).parent


def test_compose_is_as_its_schema_has_it():
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yaml"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_linter_finds_nothing():
    subprocess.run([BIN / "hadolint", "--failure-threshold", "style", FOLDER / "Containerfile"], check=True, timeout=120)


def test_every_service_is_a_stage_that_is_there_and_has_no_more_rights_than_it_needs():
    stages = [line.split()[-1] for line in (FOLDER / "Containerfile").read_text().splitlines() if line.startswith("FROM ")]
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        assert service["build"]["target"] in stages, name
        assert service["cap_drop"] == ["ALL"] and service["read_only"] is True, name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert not service.get("privileged"), name
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), name
        for config in service.get("configs", []):
            assert config["source"] in compose["configs"], name


def test_nothing_runs_as_root():
    text = (FOLDER / "Containerfile").read_text()
    base = text.split(" AS base\n")[1]
    assert base.index("USER 7480:7480") < base.index("FROM base AS collector")
    assert text.count("USER ") == 1


def mounts(service: dict) -> dict[str, str]:
    """Named volumes of a service and their mount options."""
    parts = [volume.split(":") for volume in service.get("volumes", [])]
    return {part[0]: ":".join(part[1:]) for part in parts if not part[0].startswith("/")}


def test_each_container_gets_its_own_keys_alone():
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    keys = {"authority", "recruiter", "enrolment"}
    got = {name: {v: at for v, at in mounts(service).items() if v in keys} for name, service in compose["services"].items()}
    assert got == {
        "authority": {key: f"/pki/{key}" for key in keys},
        "collector": {"authority": "/pki/authority"},  # signs hosts' certificates
        "recruiter": {"recruiter": "/pki/recruiter:ro"},
        "agent": {},
        "ship": {"enrolment": "/pki/enrolment:ro"},
        "memoryd": {},
    }
    # No mount covers another volume's folder, and no configuration names a file on another volume.
    for name, service in compose["services"].items():
        assert all(at.split(":")[0].rstrip("/") != "/pki" for at in mounts(service).values()), name
    for name, config in compose["configs"].items():
        for folder in keys - {"authority" if name == "collector" else name}:
            assert f"/pki/{folder}" not in config["content"], name


def test_base_images_can_be_pinned_and_no_digest_is_made_up():
    text = (FOLDER / "Containerfile").read_text()
    images = [line.split()[1] for line in text.splitlines() if line.startswith("FROM ")]
    assert set(images) == {"${BUILD_IMAGE}", "${BASE_IMAGE}", "base"}
    build = yaml.safe_load((FOLDER / "compose.yaml").read_text())["x-image"]["args"]
    for argument, value in build.items():
        default = value.split(":-")[1].rstrip("}")
        assert f"ARG {argument}={default}\n" in text
